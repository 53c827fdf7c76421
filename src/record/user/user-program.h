/* SPDX-License-Identifier: MIT */
/*
 * Programs that link libkymo-trace and run now: found by their control files in /proc, described
 * by them, and asked to join sessions. What they write is not trusted (abi/control.h).
 *
 * Threads: one at a time per list.
 */
#ifndef KY_RECORD_USER_USER_PROGRAM_H
#define KY_RECORD_USER_USER_PROGRAM_H

#include <stdbool.h>
#include <sys/types.h>

#include <kymo/error.h>

#include "abi/control.h"
#include "base/vec.h"
#include "record/user/user-event.h"

struct ky_program {
	pid_t pid;		/* whose files it was found in; forked children share it */
	uint64_t device, inode; /* of the control file: its identity */
	int fd;
	struct ky_control *control; /* mapped, shared with the program: slots, off */
	const char *blocked; /* why it must be left alone ("seccomp ..."); NULL: it need not */
	bool is_sandboxed;   /* by seccomp: system calls may be its end */
	/* Copies of what it said. */
	uint32_t own_pid, off;
	uid_t uid; /* of the control file's owner */
	uint64_t start_ns;
	char procname[16];
	uint8_t *table;
	size_t table_bytes;
	bool is_seen; /* in the last scan: it lives */
};

struct ky_programs {
	KY_VEC(struct ky_program *) list;
	KY_VEC(uid_t) uids; /* whose processes run, each once */
	uint32_t n_denied;  /* processes whose files we may not look at */
	/* The last scan's: programs that there is no room for; where memfds are. */
	uint32_t n_refused;
	dev_t memfd_device;
};

/*
 * Look through /proc and add the programs that are not in the list yet; is_seen says of each
 * whether it was there. @own: our own process is left out. 0, KYMO_E_IO (no /proc), KYMO_E_MEMORY.
 */
int ky_programs_scan(struct ky_programs *programs, struct kymo_error *err);
void ky_programs_fini(struct ky_programs *programs);
/*
 * Copy the event table of one of them as it is now. One whose user's programs take too much memory has none, and is
 * blocked. 0, KYMO_E_MEMORY.
 */
int ky_programs_read_table(struct ky_programs *programs, struct ky_program *program,
			   struct kymo_error *err);

/*
 * Take the control file in @fd, which becomes the program's. KYMO_E_FORMAT: it is none, or not
 * safe to map; KYMO_E_LIMIT: it cannot be mapped; @fd is closed then.
 */
int ky_program_open(int fd, struct ky_program **program, struct kymo_error *err);
void ky_program_free(struct ky_program *program);

/* Copy the event table as it is now. 0, KYMO_E_IO, KYMO_E_MEMORY. */
int ky_program_read_table(struct ky_program *program, struct kymo_error *err);

/* The events of the table that are well-formed and still there. Start with *at = 0; false: end. */
bool ky_program_next_event(const struct ky_program *program, size_t *at,
			   struct ky_user_event *event);

/*
 * Ask the program to join the session in @directory. The enable bits of @wants'ed events are set.
 * 0; KYMO_E_LIMIT: all its slots are taken; KYMO_E_IO.
 */
int ky_program_join(struct ky_program *program, uint64_t cookie, const char *directory,
		    bool (*wants)(void *data, const struct ky_user_event *event), void *data,
		    struct kymo_error *err);

/* Its slots with @cookie have @other now: the session changed. */
void ky_program_replace(struct ky_program *program, uint64_t cookie, uint64_t other);

/* Take @cookie out of its slots: its part in the session ends. */
void ky_program_leave(struct ky_program *program, uint64_t cookie);

/* What the program says about its part in the session. */
struct ky_program_state {
	bool has_slot, has_joined;
	uint32_t reason; /* enum ky_off */
	int os_error;
};
void ky_program_state(const struct ky_program *program, uint64_t cookie,
		      struct ky_program_state *state);

/* What process @pid is called in its own PID namespace, the innermost; 0: it is gone. */
uint32_t ky_program_inner_pid(pid_t pid);

/* "its event table is full" and so on, for enum ky_off; static text. */
const char *ky_off_text(uint32_t off);

#endif
