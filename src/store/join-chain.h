/* SPDX-License-Identifier: MIT */
/* Files of one data stream: which follow one another, and how they become one stream. */
#ifndef KY_STORE_JOIN_CHAIN_H
#define KY_STORE_JOIN_CHAIN_H

#include "base/vec.h"
#include "store/stream.h"

struct ky_join_file {
	struct ky_stream *stream;
	size_t at; /* its place among the trace's streams */
	struct ky_packet_list packets;
	size_t first; /* packets before are in an earlier file too */
	bool is_cut; /* its last packet is torn, and whole in a later file: ->packets is without it */
};

KY_VEC_TYPE(ky_join_files, struct ky_join_file);

/* List the packets of streams @from to @upto, in the order of their first ones. The caller frees @files in any case. */
int ky_join_list(struct ky_stream **streams, size_t from, size_t upto, struct ky_join_files *files,
		 struct kymo_error *err);
void ky_join_files_fini(struct ky_join_files *files);

/*
 * Does @file go on where those of @chain end? Sets file->first, which is behind the last
 * packet when all of it is there already.
 */
bool ky_join_fits(struct ky_join_files *chain, struct ky_join_file *file);

/* Cut what is torn. The files of @chain become the first one's stream; the others stay as empty shells. */
int ky_join_map(const struct ky_join_files *chain, struct kymo_error *err);

#endif
