/* SPDX-License-Identifier: MIT */
/*
 * Symbols of a recording that goes to another machine. This machine knows what the addresses mean, and the other one has the
 * trace. So the recorder keeps a copy of the trace in a temporary directory, finds the symbols of its addresses, and
 * sends them.
 */
#ifndef KY_CLI_RECORDING_RECORD_SYMBOLS_H
#define KY_CLI_RECORDING_RECORD_SYMBOLS_H

#include <limits.h>

#include "cli/reading/symbol-options.h"
#include "store/packets/packet-store.h"

struct ky_record_symbols {
	struct ky_packet_store *store; /* with the copy; NULL: none */
	char dir[PATH_MAX];	       /* of the copy; "": none */
	int lock_fd;
};

#define KY_RECORD_SYMBOLS_INIT \
	{                      \
		.lock_fd = -1  \
	}

/*
 * *store becomes a store that also keeps a copy. Where this cannot be, it stays the same, and a warning says why. Removes copies
 * that killed recorders have left.
 */
void ky_record_symbols_begin(struct ky_record_symbols *symbols, struct ky_packet_store **store);
/* All traces are closed: stores the symbols of the copy's addresses, and sends them. Says what it did. */
void ky_record_symbols_send(struct ky_record_symbols *symbols,
			    const struct ky_symbol_options *options);
/* Removes the copy. */
void ky_record_symbols_fini(struct ky_record_symbols *symbols);

#endif
