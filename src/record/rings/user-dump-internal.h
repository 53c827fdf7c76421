/* SPDX-License-Identifier: MIT */
/* The shared part of user-dump.c and user-states.c. */
#ifndef KY_RECORD_RINGS_USER_DUMP_INTERNAL_H
#define KY_RECORD_RINGS_USER_DUMP_INTERNAL_H

#include <dirent.h>
#include <limits.h>

#include "base/vec.h"
#include "record/rings/user-dump.h"

#define KY_USER_DUMP_MAPS_MAX	  (16u << 20)
#define KY_USER_DUMP_BODY_BYTES	  (PATH_MAX + 256)
#define KY_USER_DUMP_PROCNAME_MAX 17

/* A file that was written. */
struct ky_user_dump_known {
	uint64_t base, end, inode;
};

/* What the trace has of one process. */
struct ky_user_dumped {
	KY_VEC(struct ky_user_dump_known) known; /* by address */
	bool has_state;				 /* the first look was written */
	uint32_t notes_bytes;			 /* so much of the program's notes was */
	/* Of a process that shares its ring: */
	uint32_t pid;		/* in its own PID namespace */
	struct ky_strbuf state; /* the events of its last state dump */
};

struct ky_user_dump {
	struct ky_user_ring *ring;
	struct ky_user_dumped *dumped;
	struct ky_strbuf *to; /* the events */
	struct kymo_error *err;
	DIR *proc; /* /proc/PID; NULL: it is gone, and its paths are looked up here */
	int32_t vpid;
	char procname[KY_USER_DUMP_PROCNAME_MAX];
	bool has_ip;
	uint32_t used_bytes;
	uint8_t body[KY_USER_DUMP_BODY_BYTES];
};

/* Of the process @pid with the name @procname (16 bytes). NULL: no memory. */
struct ky_user_dump *ky_user_dump_new(struct ky_user_ring *ring, struct ky_user_dumped *dumped,
				      uint32_t pid, const char *procname, struct kymo_error *err);
void ky_user_dump_free(struct ky_user_dump *dump);

/* Write what the note says, whose bytes stand at @body. */
int ky_user_dump_note(struct ky_user_dump *dump, const struct ky_note *note, const char *body,
		      uint64_t now_cycles);

#endif
