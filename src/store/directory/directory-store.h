/* SPDX-License-Identifier: MIT */
/*
 * A packet store in a directory, with LTTng's layout of traces: metadata, one file per stream,
 * index/NAME.idx. Directories have mode 0700, files 0600.
 */
#ifndef KY_STORE_DIRECTORY_STORE_H
#define KY_STORE_DIRECTORY_STORE_H

#include "store/packets/packet-store.h"

/*
 * Open the store at @path. Its traces create directories below @path as needed. Only a trace at ""
 * creates @path itself; for other traces it must exist. A trace may use an existing empty
 * directory; for another one it returns KYMO_E_INVALID with a hint.
 *
 * Traces of this store support all optional operations. A trace needs the store only during its
 * opening and rotation.
 *
 * Returns 0 or KYMO_E_MEMORY.
 */
int ky_directory_store_open(const char *path, struct ky_packet_store **store,
			    struct kymo_error *err);

/* A trace at @path, in a store of its own, which ends with the trace. */
int ky_directory_trace_open(const char *path, bool is_atomic, struct ky_store_trace **trace,
			    struct kymo_error *err);

#endif
