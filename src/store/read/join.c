/* SPDX-License-Identifier: MIT */
#include "store/read/join.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "store/read/join-chain.h"
#include "store/read/join-classes.h"

/*
 * Unrelated traces may share an identity, when a program has one built in. This many times we look
 * which of them belong to one trace all the same; every time costs in proportion to all of them.
 */
#define MISFITS_MAX 64

KY_VEC_TYPE(streams, struct ky_stream *);

/* ---- streams ----------------------------------------------------------------------------- */

static bool join_same_stream(const struct ky_stream *a, const struct ky_stream *b)
{
	return a->cls && b->cls && a->cls->id == b->cls->id && a->has_id && b->has_id &&
	       a->id == b->id;
}

static void remove_stream(struct ky_trace *trace, const struct ky_join_file *file)
{
	trace->streams.data[file->at] = NULL;
	ky_stream_free(file->stream);
}

static int join_files(struct ky_trace *trace, struct ky_join_files *files, struct kymo_error *err)
{
	struct ky_join_files chain = KY_VEC_INIT;
	int ret = ky_vec_reserve(&chain, files->len) < 0 ? ky_error_nomem(err) : KYMO_OK;

	for (size_t i = 0; i < files->len && ret == KYMO_OK; i++) {
		struct ky_join_file *file = &files->data[i];

		if (!file->packets.len || !ky_join_fits(&chain, file))
			continue;
		if (file->first == file->packets.len)
			remove_stream(trace, file);
		else
			(void)ky_vec_push(&chain, *file);
	}
	if (ret == KYMO_OK)
		ret = ky_join_map(&chain, err);
	for (size_t i = 1; i < chain.len && ret == KYMO_OK; i++)
		remove_stream(trace, &chain.data[i]);
	ky_vec_fini(&chain);
	return ret;
}

/* Streams @from to @upto claim to be one. */
static int join_group(struct ky_trace *trace, size_t from, size_t upto, struct kymo_error *err)
{
	struct ky_join_files files = KY_VEC_INIT;
	int ret = ky_join_list(trace->streams.data, from, upto, &files, err);

	if (ret == KYMO_OK)
		ret = join_files(trace, &files, err);
	ky_join_files_fini(&files);
	return ret;
}

static void close_gaps(struct ky_trace *trace)
{
	size_t n = 0;

	for (size_t i = 0; i < trace->streams.len; i++) {
		if (trace->streams.data[i])
			trace->streams.data[n++] = trace->streams.data[i];
	}
	trace->streams.len = n;
}

static int join_streams(struct ky_trace *trace, struct kymo_error *err)
{
	struct ky_stream **streams = trace->streams.data;
	size_t n = trace->streams.len, upto;
	int ret = KYMO_OK;

	if (n < 2)
		return KYMO_OK;
	qsort(streams, n, sizeof(*streams), ky_stream_compare);
	for (size_t i = 0; i < n && ret == KYMO_OK; i = upto) {
		upto = i + 1;
		while (upto < n && join_same_stream(streams[i], streams[upto]))
			upto++;
		if (upto - i > 1)
			ret = join_group(trace, i, upto, err);
	}
	close_gaps(trace);
	return ret;
}

/* ---- one trace in several places ---------------------------------------------------------- */

static void join_take_stream(struct ky_trace *to, struct ky_stream *stream)
{
	if (!stream->cls) {
		ky_stream_free(stream);
		return;
	}
	stream->trace = to;
	stream->cls = ky_map_get(&to->cls->streams_by_id, stream->cls->id);
	(void)ky_vec_push(&to->streams, stream);
}

/* All streams of @from become @to's, but for empty files; and @from goes. */
static int take_streams(struct ky_trace *to, struct ky_trace *from, struct kymo_error *err)
{
	if (ky_vec_reserve(&to->streams, from->streams.len) < 0)
		return ky_error_nomem(err);
	ky_vec_foreach(&from->streams, it)
		join_take_stream(to, *it);
	ky_vec_clear(&from->streams);
	ky_trace_free(from);
	return KYMO_OK;
}

/* Chunks of one recording are below one path that was given. */
static bool is_same_place(const struct ky_trace *a, const struct ky_trace *b)
{
	return a->given_bytes == b->given_bytes && strncmp(a->path, b->path, a->given_bytes) == 0;
}

/* Join trace @late into @early: the metadata that knows more is kept, and the earlier path. */
static int join_pair(struct ky_trace **early, struct ky_trace *late, struct kymo_error *err)
{
	struct ky_trace *first = *early;
	char *path = first->path;
	int ret;

	first->name_at = strlen(path);
	if (!is_same_place(first, late))
		first->given_bytes = first->name_at;
	if (ky_join_covers(first->cls, late->cls))
		return take_streams(first, late, err);
	first->path = late->path;
	late->path = path;
	late->name_at = first->name_at;
	late->given_bytes = first->given_bytes;
	ret = take_streams(late, first, err);
	if (ret == KYMO_OK) {
		*early = late;
	}
	return ret;
}

KY_VEC_TYPE(traces, struct ky_trace *);

/* Do all packets of streams @from to @upto, which claim to be one, follow one another? */
static int group_fits(struct ky_stream **streams, size_t from, size_t upto, struct kymo_error *err)
{
	struct ky_join_files files = KY_VEC_INIT, chain = KY_VEC_INIT;
	int ret = ky_join_list(streams, from, upto, &files, err);

	if (ret == KYMO_OK && ky_vec_reserve(&chain, upto - from) < 0)
		ret = ky_error_nomem(err);
	if (ret == KYMO_OK)
		ret = 1;
	for (size_t i = 0; i < files.len && ret > 0; i++) {
		struct ky_join_file *file = &files.data[i];

		if (!file->packets.len || !ky_join_fits(&chain, file))
			ret = 0;
		else if (file->first < file->packets.len)
			(void)ky_vec_push(&chain, *file);
	}
	ky_join_files_fini(&files);
	ky_vec_fini(&chain);
	return ret;
}

/* All streams with a packet of the traces of @family; 1, 0 when one has no identity, or negative. */
static int collect_streams(const struct traces *family, struct streams *all, struct kymo_error *err)
{
	ky_vec_foreach(family, trace) {
		ky_vec_foreach(&(*trace)->streams, it) {
			struct ky_stream *stream = *it;

			if (!stream->file.size_bytes)
				continue;
			if (!stream->cls || !stream->has_id)
				return 0;
			if (ky_vec_push(all, stream) < 0)
				return ky_error_nomem(err);
		}
	}
	return 1;
}

/*
 * Are they places of one trace? Yes if nothing speaks against it: then every data stream is
 * continuous. Unrelated traces may have the same UUID, when a program has one built in.
 */
static int family_fits(const struct traces *family, struct kymo_error *err)
{
	struct streams all = KY_VEC_INIT;
	int ret = collect_streams(family, &all, err);
	size_t upto;

	if (ret > 0 && all.len)
		qsort(all.data, all.len, sizeof(*all.data), ky_stream_compare);
	for (size_t i = 0; i < all.len && ret > 0; i = upto) {
		upto = i + 1;
		while (upto < all.len && join_same_stream(all.data[i], all.data[upto]))
			upto++;
		if (upto - i > 1)
			ret = group_fits(all.data, i, upto, err);
	}
	ky_vec_fini(&all);
	return ret;
}

/* By identity, then in the order of the set. */
static int compare_places(const void *a, const void *b)
{
	struct ky_trace *const *x = *(struct ky_trace * *const *)a,
			       *const *y = *(struct ky_trace * *const *)b;

	return ky_join_compare((*x)->cls, (*y)->cls) ?: (x > y) - (x < y);
}

KY_VEC_TYPE(places, struct ky_trace **);

/*
 * Fold those of @places, which share one identity, that are one trace with the first of them into
 * it; those that are gone become NULL. 1: nothing spoke against it, or 0, or negative.
 */
static int join_family(struct ky_trace ***places, size_t n, struct kymo_error *err)
{
	struct ky_trace **first = places[0];
	struct traces family = KY_VEC_INIT;
	int ret = ky_vec_push(&family, *first) < 0 ? ky_error_nomem(err) : 1;

	for (size_t i = 1; i < n && ret > 0; i++) {
		if (*places[i] && ky_join_is_possible((*first)->cls, (*places[i])->cls) &&
		    ky_vec_push(&family, *places[i]) < 0)
			ret = ky_error_nomem(err);
	}
	if (ret > 0)
		ret = family.len > 1 ? family_fits(&family, err) : 0;
	for (size_t i = 1, k = 1; i < n && k < family.len && ret > 0; i++) {
		if (*places[i] != family.data[k])
			continue;
		k++;
		/* What was joined meanwhile may know other events than this one. */
		if (!ky_join_is_possible((*first)->cls, (*places[i])->cls))
			continue;
		ret = join_pair(first, *places[i], err);
		if (ret < 0)
			break;
		*places[i] = NULL;
		ret = 1;
	}
	ky_vec_fini(&family);
	return ret;
}

/* The traces of @places share one identity. */
static int join_identity(struct ky_trace ***places, size_t n, struct kymo_error *err)
{
	size_t n_misfits = 0;
	int ret = 1;

	for (size_t i = 0; i + 1 < n && ret >= 0 && n_misfits < MISFITS_MAX; i++) {
		if (!*places[i])
			continue;
		ret = join_family(places + i, n - i, err);
		n_misfits += ret == 0;
	}
	return ret < 0 ? ret : KYMO_OK;
}

static void close_trace_gaps(struct ky_trace_set *set)
{
	size_t n = 0;

	for (size_t i = 0; i < set->traces.len; i++) {
		if (set->traces.data[i])
			set->traces.data[n++] = set->traces.data[i];
	}
	set->traces.len = n;
}

static int join_traces(struct ky_trace_set *set, struct kymo_error *err)
{
	struct places places = KY_VEC_INIT;
	int ret = KYMO_OK;
	size_t upto;

	ky_vec_foreach(&set->traces, trace) {
		if (ky_join_has_identity((*trace)->cls) && ky_vec_push(&places, trace) < 0)
			ret = ky_error_nomem(err);
	}
	if (places.len > 1)
		qsort(places.data, places.len, sizeof(*places.data), compare_places);
	for (size_t i = 0; i < places.len && ret == KYMO_OK; i = upto) {
		upto = i + 1;
		while (upto < places.len &&
		       ky_join_compare((*places.data[i])->cls, (*places.data[upto])->cls) == 0)
			upto++;
		ret = join_identity(places.data + i, upto - i, err);
	}
	ky_vec_fini(&places);
	close_trace_gaps(set);
	return ret;
}

int ky_trace_set_join(struct ky_trace_set *set, struct kymo_error *err)
{
	int ret = join_traces(set, err);

	for (size_t i = 0; i < set->traces.len && ret == KYMO_OK; i++)
		ret = join_streams(set->traces.data[i], err);
	return ret;
}
