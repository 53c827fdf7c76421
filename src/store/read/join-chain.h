/* SPDX-License-Identifier: MIT */
/* The files of one data stream: their order, and how they become one stream. */
#ifndef KY_STORE_JOIN_CHAIN_H
#define KY_STORE_JOIN_CHAIN_H

#include "base/vec.h"
#include "store/read/stream.h"

struct ky_join_file {
	struct ky_stream *stream;
	size_t at; /* its index in the trace's streams */
	struct ky_packet_list packets;
	size_t first; /* earlier packets are also in an earlier file */
	bool is_cut; /* its last packet is incomplete here, and whole in a later file: ->packets omits it */
};

KY_VEC_TYPE(ky_join_files, struct ky_join_file);

/*
 * Lists the packets of streams @from to @upto, in the order of their first ones. The caller frees
 * @files in any case.
 */
int ky_join_list(struct ky_stream **streams, size_t from, size_t upto, struct ky_join_files *files,
		 struct kymo_error *err);
void ky_join_files_fini(struct ky_join_files *files);

/*
 * Does @file continue the files of @chain? Sets file->first, which is after the last packet when
 * the chain has all of its packets already.
 */
bool ky_join_fits(struct ky_join_files *chain, struct ky_join_file *file);

/*
 * Drops incomplete packets. The first file's stream gets all files of @chain; the others stay as
 * empty streams.
 */
int ky_join_map(const struct ky_join_files *chain, struct kymo_error *err);

#endif
