/* SPDX-License-Identifier: MIT */
/*
 * Running programs that link libkymo-trace. The recorder finds them by their control files in
 * /proc, reads their events there, and asks them to join sessions. The data of programs is
 * untrusted (abi/control.h).
 *
 * Threads: one at a time per list.
 */
#ifndef KY_RECORD_REQUEST_USER_PROGRAM_H
#define KY_RECORD_REQUEST_USER_PROGRAM_H

#include <stdbool.h>
#include <sys/types.h>

#include <kymo/error.h>

#include "abi/control.h"
#include "base/vec.h"
#include "record/request/user-event.h"

struct ky_program {
	pid_t pid; /* the process in which the file was found; forked children share the file */
	uint64_t device, inode; /* of the control file: its identity */
	int fd;
	struct ky_control *control; /* mapped, shared with the program: slots, off */
	const char *blocked; /* why the recorder must not ask it ("seccomp ..."); NULL: it may */
	bool is_sandboxed;   /* by seccomp: a system call may kill it */
	/* Copies of the program's data. */
	uint32_t own_pid, off;
	uid_t uid; /* of the control file's owner */
	uint64_t start_ns;
	char procname[16];
	uint8_t *table;
	size_t table_bytes;
	bool is_seen; /* found in the last scan: the process runs */
};

struct ky_programs {
	KY_VEC(struct ky_program *) list;
	KY_VEC(uid_t) uids; /* users with processes, each once */
	uint32_t n_denied;  /* processes whose files this recorder must not read */
	/* The last scan's results: programs above the limit; the device of memfds. */
	uint32_t n_refused;
	dev_t memfd_device;
};

/*
 * Search /proc and add new programs to the list; is_seen is set for programs that were found. The
 * recorder's own process is omitted. Returns 0, KYMO_E_IO (no /proc), KYMO_E_MEMORY.
 */
int ky_programs_scan(struct ky_programs *programs, struct kymo_error *err);
/* The same of these processes only, which costs less. */
int ky_programs_scan_pids(struct ky_programs *programs, const pid_t *pids, size_t n,
			  struct kymo_error *err);
/* Only adds the users with processes to uids. */
int ky_programs_find_uids(struct ky_programs *programs, struct kymo_error *err);
void ky_programs_fini(struct ky_programs *programs);
/*
 * Copy the present event table of a program. When the programs of a user take too much memory, the
 * program gets no table and is blocked. Returns 0 or KYMO_E_MEMORY.
 */
int ky_programs_read_table(struct ky_programs *programs, struct ky_program *program,
			   struct kymo_error *err);

/*
 * Map the control file in @fd, which the program takes over. KYMO_E_FORMAT: it is not a control
 * file, or not safe to map; KYMO_E_LIMIT: mapping failed. On failure the function closes @fd.
 */
int ky_program_open(int fd, struct ky_program **program, struct kymo_error *err);
void ky_program_free(struct ky_program *program);

/* Copies the present event table. Returns 0, KYMO_E_IO, KYMO_E_MEMORY. */
int ky_program_read_table(struct ky_program *program, struct kymo_error *err);

/*
 * The well-formed events of the table that still exist. The caller starts with *at = 0. Returns
 * false at the end.
 */
bool ky_program_next_event(const struct ky_program *program, size_t *at,
			   struct ky_user_event *event);

/*
 * Ask the program to join the session in @directory. The function sets the enable bits of the
 * events for which @wants is true. Returns 0; KYMO_E_LIMIT: all slots are in use; KYMO_E_IO.
 */
int ky_program_join(struct ky_program *program, uint64_t cookie, const char *directory,
		    bool (*wants)(void *data, const struct ky_user_event *event), void *data,
		    struct kymo_error *err);

/* Replaces @cookie by @other in the program's slots: the session has changed. */
void ky_program_replace(struct ky_program *program, uint64_t cookie, uint64_t other);

/* Removes @cookie from the program's slots: the program leaves the session. */
void ky_program_leave(struct ky_program *program, uint64_t cookie);

/* The program's report about its part in the session. */
struct ky_program_state {
	bool has_slot, has_joined;
	uint32_t reason; /* enum ky_off */
	int os_error;
};
void ky_program_state(const struct ky_program *program, uint64_t cookie,
		      struct ky_program_state *state);

/* The pid of process @pid in its own (innermost) PID namespace; 0: the process has ended. */
uint32_t ky_program_inner_pid(pid_t pid);

/* The text of an enum ky_off: "its event table is full" and so on; static. */
const char *ky_off_text(uint32_t off);

#endif
