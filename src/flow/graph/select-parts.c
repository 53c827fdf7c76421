/* SPDX-License-Identifier: MIT */
/* Several graphs for one selection: copies of it, or one for each stream. */
#include <stdlib.h>

#include "base/error.h"
#include "flow/graph/select-internal.h"

/* ---- copies ----------------------------------------------------------------------------------------- */

struct owned_copies {
	struct ky_copies copies;
	struct ky_selected tables;
};

void ky_copies_close(struct ky_copies *copies)
{
	struct owned_copies *owned = (struct owned_copies *)copies;

	if (!copies)
		return;
	for (size_t i = 0; i < copies->n; i++) {
		ky_flow_close(copies->copies[i].flow);
		free(copies->copies[i].sources);
	}
	free(copies->copies);
	ky_selected_fini(&owned->tables);
	free(owned);
}

static int open_copy(struct owned_copies *owned, const struct ky_trace_set *set,
		     struct ky_copy *copy, struct kymo_error *err)
{
	const struct ky_stream_list *picked = &owned->tables.picked;
	struct ky_flow **flows = calloc(picked->len + 1, sizeof(*flows));
	int ret = KYMO_OK;
	size_t n = 0;

	copy->sources = calloc(picked->len + 1, sizeof(*copy->sources));
	if (!flows || !copy->sources)
		ret = ky_error_nomem(err);
	while (ret == KYMO_OK && n < picked->len) {
		ret = ky_selected_stream(&owned->tables, set, n, picked->len, NULL, &flows[n],
					 &copy->sources[n], err);
		n += ret == KYMO_OK;
	}
	return ky_selected_merge(flows, n, ret, &copy->flow, err);
}

static int open_copies(struct owned_copies *owned, const struct ky_trace_set *set,
		       const struct ky_selection *selection, size_t n, struct kymo_error *err)
{
	struct ky_copies *copies = &owned->copies;
	int ret = ky_selected_init(&owned->tables, set, selection, err);

	copies->copies = calloc(n, sizeof(*copies->copies));
	if (!copies->copies)
		ret = ky_error_nomem(err);
	while (ret == KYMO_OK && copies->n < n)
		ret = open_copy(owned, set, &copies->copies[copies->n++], err);
	copies->streams = owned->tables.picked.data;
	copies->n_streams = owned->tables.picked.len;
	return ret;
}

int ky_copies_open(const struct ky_trace_set *set, const struct ky_selection *selection, size_t n,
		   struct ky_copies **copies, struct kymo_error *err)
{
	struct owned_copies *owned = calloc(1, sizeof(*owned));
	int ret;

	if (!owned)
		return ky_error_nomem(err);
	ret = open_copies(owned, set, selection, n, err);
	if (ret < 0) {
		ky_copies_close(&owned->copies);
		return ret;
	}
	*copies = &owned->copies;
	return KYMO_OK;
}

/* ---- parts ------------------------------------------------------------------------------------------ */

struct owned_parts {
	struct ky_parts parts;
	struct ky_selected tables;
};

void ky_parts_close(struct ky_parts *parts)
{
	struct owned_parts *owned = (struct owned_parts *)parts;

	if (!parts)
		return;
	for (size_t i = 0; i < parts->n; i++) {
		ky_flow_close(parts->parts[i].flow);
		ky_log_keep_fini(&parts->parts[i].log);
	}
	free(parts->parts);
	ky_selected_fini(&owned->tables);
	free(owned);
}

static int select_parts_open_part(struct owned_parts *owned, const struct ky_trace_set *set,
				  const struct ky_selection *selection, struct kymo_error *err)
{
	size_t i = owned->parts.n++;
	struct ky_part *part = &owned->parts.parts[i];
	struct ky_flow *flow;
	int ret;

	part->stream = owned->tables.picked.data[i];
	ky_log_keep_init(&part->log);
	ret = ky_selected_stream(&owned->tables, set, i, 1, &part->log.log, &flow, NULL, err);
	return ret == KYMO_OK ? ky_selected_limit(flow, selection, &part->flow, err) : ret;
}

static int open_parts(struct owned_parts *owned, const struct ky_trace_set *set,
		      const struct ky_selection *selection, struct kymo_error *err)
{
	const struct ky_stream_list *picked = &owned->tables.picked;
	int ret = ky_selected_init(&owned->tables, set, selection, err);

	owned->parts.parts = calloc(picked->len + 1, sizeof(*owned->parts.parts));
	if (!owned->parts.parts)
		ret = ky_error_nomem(err);
	while (ret == KYMO_OK && owned->parts.n < picked->len)
		ret = select_parts_open_part(owned, set, selection, err);
	return ret;
}

int ky_parts_open(const struct ky_trace_set *set, const struct ky_selection *selection,
		  struct ky_parts **parts, struct kymo_error *err)
{
	struct owned_parts *owned = calloc(1, sizeof(*owned));
	int ret;

	if (!owned)
		return ky_error_nomem(err);
	ret = open_parts(owned, set, selection, err);
	if (ret < 0) {
		ky_parts_close(&owned->parts);
		return ret;
	}
	*parts = &owned->parts;
	return KYMO_OK;
}
