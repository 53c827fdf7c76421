/* SPDX-License-Identifier: MIT */
/*
 * The protocol between the writer of a trace and its live readers: whether a writer is still
 * writing a trace in a directory, and how much of it can be read.
 *
 * - The writer holds a shared flock() on the trace's index/ directory. Without it, the trace is
 *   complete, or its writer is dead.
 * - A live reader holds a shared flock() on the recording's directory. A writer looks for it before
 *   it does work for live readers. A read lock of fcntl() on the byte with the number of the delay in milliseconds
 *   says how soon the reader wants events.
 * - A recorder that looks for readers holds such a lock on another byte of the recording's directory. A reader that has no
 *   trace to wait for sees by it that traces may still come, and does not have to ask the recorder.
 * - The file `.live` in the trace's directory has the size of each stream's whole packets, and the
 *   time up to which these contain all events, also of streams that do not exist yet:
 *
 *	kymo-live 1
 *	until 123456789		clock value
 *	81920 channel0_0	bytes, stream
 *
 *   The writer replaces the file as a whole, and removes it when the trace is complete. Readers do not trust it.
 *
 * Threads: any.
 */
#ifndef KY_STORE_LIVE_FILE_H
#define KY_STORE_LIVE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kymo/error.h>

#include "base/hash.h"
#include "base/strbuf.h"
#include "base/vec.h"

#define KY_LIVE_FILE_NAME ".live"

/* ---- writing -------------------------------------------------------------------------- */

/* Marks a trace as being written, while @index_fd, its index/ directory, is open. */
void ky_live_begin(int index_fd);
/* Whether a live reader has a lock on the directory @dir_fd. */
bool ky_live_has_readers(int dir_fd);
/* The shortest delay that a live reader of the directory @dir_fd wants, in ms; 0: there is no reader. */
uint32_t ky_live_delay_ms(int dir_fd);
/* Says that a recorder writes to the directory @dir_fd, until its close. */
void ky_live_claim(int dir_fd);
/*
 * Returns an inotify descriptor that becomes readable when a process opens directory @path, as
 * readers do; or -1. The caller closes it.
 */
int ky_live_watch(const char *path);
/* Reads the events from @watch_fd, or from any other non-blocking descriptor. */
void ky_live_watch_clear(int watch_fd);

/* Appends the file's head to @text; the caller then calls ky_live_put_stream() for each stream. */
void ky_live_put_head(struct ky_strbuf *text, uint64_t until_cycles);
/*
 * Omits a stream whose name is not possible in the file: readers find it when the trace is
 * complete.
 */
void ky_live_put_stream(struct ky_strbuf *text, const char *name, uint64_t size_bytes);

/*
 * Streams "NAME.overwrite_0" are of buffers that overwrite: their packets come when a trace is complete, long after
 * their events. Live readers leave them out.
 */
#define KY_LIVE_LATE_MARK ".overwrite"
bool ky_live_is_late(const char *name);

/* ---- reading -------------------------------------------------------------------------- */

struct ky_live_stream {
	char *name;
	uint64_t size_bytes;
};

/* Zeros: unknown. */
struct ky_live_state {
	bool is_told; /* there was a file */
	uint64_t until_cycles;
	KY_VEC(struct ky_live_stream) streams; /* ky_live_add_stream() adds to it */
	struct ky_names numbers;	       /* by name: place in the list, and 1 */
};

/* Tells the writers below the directory @dir_fd, until its close, that a reader wants events within @delay_ms. */
void ky_live_want(int dir_fd, uint32_t delay_ms);
/* Whether a recorder that looks for readers writes to the directory @dir_fd. */
bool ky_live_is_claimed(int dir_fd);
/* Whether a writer is writing the trace in directory @path. */
bool ky_live_is_written(const char *path);
/*
 * Parses the file @text. Returns 0, KYMO_E_FORMAT with the line, or KYMO_E_MEMORY; the caller must
 * free @state in any case.
 */
int ky_live_parse(const char *text, size_t len_bytes, struct ky_live_state *state,
		  struct kymo_error *err);
/*
 * The same for the file in the trace's directory @path; without a file, *state is zeros. KYMO_E_IO,
 * too.
 */
int ky_live_read(const char *path, struct ky_live_state *state, struct kymo_error *err);
/* Adds a stream; its name is copied. KYMO_E_MEMORY. */
int ky_live_add_stream(struct ky_live_state *state, const char *name, size_t len_bytes,
		       uint64_t size_bytes);
/* The number of readable bytes of stream @name; 0 when the file does not have it. */
uint64_t ky_live_size(const struct ky_live_state *state, const char *name);
void ky_live_state_fini(struct ky_live_state *state);

#endif
