/* SPDX-License-Identifier: MIT */
/*
 * The spill file of a sender: frames that do not fit into its memory, first in, first out. The file has no name, so the kernel
 * removes it with the process. It takes space only for frames that have not been read yet, and never more than its limit.
 *
 * Threads: one that reads; the others put. The caller holds a lock where a function says so.
 */
#ifndef KY_NET_SENDER_SPILL_H
#define KY_NET_SENDER_SPILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include <kymo/error.h>

struct ky_spill {
	int fd; /* -1: there is no spill file */
	uint64_t limit_bytes;
	uint64_t begin,
		end;	  /* places in the file: of the next record to read, behind the last one */
	uint64_t punched; /* before it, the file has no space any more */
	uint64_t n;	  /* records in it */
	uint64_t total_bytes; /* of all records so far */
	bool is_broken;	      /* a write has failed: no more until the file is empty */
};
#define KY_SPILL_INIT     \
	{                 \
		.fd = -1, \
	}

/* Makes the file in @dir; NULL: $TMPDIR, /var/tmp or /tmp. KYMO_E_IO and other results of open(). */
int ky_spill_open(struct ky_spill *spill, const char *dir, uint64_t limit_bytes,
		  struct kymo_error *err);
void ky_spill_close(struct ky_spill *spill);

/* Under the lock. Whether more can be put. */
bool ky_spill_has_room(const struct ky_spill *spill, uint64_t bytes);
/* Under the lock. Appends a frame: its head and its data. False: there is no room, or the disk has failed; nothing is added. */
bool ky_spill_put(struct ky_spill *spill, const void *head, uint32_t head_bytes, const void *data,
		  uint32_t bytes);

/* The sizes of the first record, of which there is one (spill->n, under the lock). 0 or a negative errno. */
int ky_spill_next(const struct ky_spill *spill, uint32_t *head_bytes, uint32_t *bytes);
/* The first record, whose sizes ky_spill_next() has given. 0 or a negative errno. */
int ky_spill_read(const struct ky_spill *spill, void *head, uint32_t head_bytes, void *data,
		  uint32_t bytes);
/* Under the lock: the first record has been read. */
void ky_spill_advance(struct ky_spill *spill, uint32_t head_bytes, uint32_t bytes);

#endif
