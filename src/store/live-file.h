/* SPDX-License-Identifier: MIT */
/*
 * What tells readers of a directory that a trace is being written there, and how far it can be read.
 *
 * - The writer holds a shared flock() on the trace's index/ directory: without it the trace is complete, or its writer
 *   has died.
 * - A reader that follows the recording holds a shared flock() on the recording's directory. A writer looks for it before it
 *   does anything for live readers.
 * - The file `.live` in the trace's directory says how many bytes of each stream are whole packets, and up to when the
 *   events of all streams are in them, also of streams that are still to come:
 *
 *	kymo-live 1
 *	until 123456789		clock value
 *	81920 channel0_0	bytes, stream
 *
 *   The writer replaces it as a whole, and removes it when the trace is complete. Readers do not trust it.
 *
 * Threads: any.
 */
#ifndef KY_STORE_LIVE_FILE_H
#define KY_STORE_LIVE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kymo/error.h>

#include "base/strbuf.h"
#include "base/vec.h"

#define KY_LIVE_FILE_NAME ".live"

/* ---- writing -------------------------------------------------------------------------- */

/* Tell that a trace is being written, as long as @index_fd, its index/ directory, is open. */
void ky_live_begin(int index_fd);
/* Does a reader follow the recording in the directory that is open as @dir_fd? */
bool ky_live_has_readers(int dir_fd);
/*
 * A descriptor of inotify, which becomes readable when somebody opens directory @path, as readers do; -1: there is none. The
 * caller closes it.
 */
int ky_live_watch(const char *path);
/* Take what made @watch_fd readable. */
void ky_live_watch_clear(int watch_fd);

/* Append to @text what the file says; ky_live_put_stream() for each stream follows. */
void ky_live_put_head(struct ky_strbuf *text, uint64_t until_cycles);
/* A stream whose name cannot stand in the file is left out: readers find it when the trace is complete. */
void ky_live_put_stream(struct ky_strbuf *text, const char *name, uint64_t size_bytes);

/* ---- reading -------------------------------------------------------------------------- */

struct ky_live_stream {
	char *name;
	uint64_t size_bytes;
};

/* Zeros: nothing is known. */
struct ky_live_state {
	bool is_told; /* there was a file */
	uint64_t until_cycles;
	KY_VEC(struct ky_live_stream) streams;
};

/* Is the trace in directory @path being written? */
bool ky_live_is_written(const char *path);
/* What the file of @text says. 0, KYMO_E_FORMAT with the line, KYMO_E_MEMORY; @state is to be freed in any case. */
int ky_live_parse(const char *text, size_t len_bytes, struct ky_live_state *state,
		  struct kymo_error *err);
/* The same of the file in the trace's directory @path; without one, *state is zeros. KYMO_E_IO, too. */
int ky_live_read(const char *path, struct ky_live_state *state, struct kymo_error *err);
/* How many bytes of stream @name can be read; 0: the file does not know it. */
uint64_t ky_live_size(const struct ky_live_state *state, const char *name);
void ky_live_state_fini(struct ky_live_state *state);

#endif
