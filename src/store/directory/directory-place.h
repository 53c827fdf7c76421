/* SPDX-License-Identifier: MIT */
/*
 * Where the traces of a directory store are: their directories below the store's.
 *
 * Threads: any.
 */
#ifndef KY_STORE_DIRECTORY_PLACE_H
#define KY_STORE_DIRECTORY_PLACE_H

#include "store/packets/packet-store.h"
#include "store/directory/trace-dir.h"

/*
 * Makes the directories between the store, whose path has @store_len bytes, and the last name of @path, which begins with the
 * store's. @path is the same afterwards. KYMO_E_IO and other results of mkdir().
 */
int ky_directory_make_parents(char *path, size_t store_len, struct kymo_error *err);
/*
 * Makes the directory of @place, which becomes @dir. *below: its path below the store; the caller frees it. KYMO_E_MEMORY, and
 * as ky_trace_dir_make().
 */
int ky_directory_make_place(const struct ky_packet_store *store, const struct ky_store_place *place,
			    struct ky_trace_dir *dir, char **below, struct kymo_error *err);

#endif
