/* SPDX-License-Identifier: MIT */
/*
 * Files of symbols that recorders send: in the directory "symbols" of a recording or of one of its archives. Directory and
 * names are the relay's choice; a client chooses only between names that such files have.
 *
 * Errors: KYMO_E_FORMAT: the client's data makes no sense; KYMO_E_IO: the disk; KYMO_E_AGAIN: descriptors are short.
 * Threads: one at a time per file.
 */
#ifndef KY_NET_FILES_RELAY_SYMBOLS_H
#define KY_NET_FILES_RELAY_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#include <kymo/error.h>

#include "net/protocol/frame.h"

struct ky_relay_symbols {
	int dir_fd, fd; /* -1: no file comes in, or its archive is gone */
	char name[sizeof(((struct ky_net_file *)0)->name)];
	uint64_t bytes;
};

#define KY_RELAY_SYMBOLS_INIT          \
	{                              \
		.dir_fd = -1, .fd = -1 \
	}

/* A file begins, in the recording at @session_fd. *added_bytes: what a new directory counts is added. */
int ky_relay_symbols_begin(struct ky_relay_symbols *symbols, int session_fd,
			   const struct ky_net_file *file, uint64_t *added_bytes,
			   struct kymo_error *err);
/* The next bytes of it, which *added_bytes gets, too. */
int ky_relay_symbols_write(struct ky_relay_symbols *symbols, const uint8_t *data, size_t bytes,
			   uint64_t *added_bytes, struct kymo_error *err);
/* It is whole, and takes the place of a file with the same name. Both counts are added to. */
int ky_relay_symbols_end(struct ky_relay_symbols *symbols, uint64_t *added_bytes,
			 uint64_t *removed_bytes, struct kymo_error *err);
/* Removes a file that is not whole; *removed_bytes gets what it has counted. */
void ky_relay_symbols_fini(struct ky_relay_symbols *symbols, uint64_t *removed_bytes);

#endif
