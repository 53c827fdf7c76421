/* SPDX-License-Identifier: MIT */
#include "store/join.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "os/guard.h"
#include "store/join-classes.h"
#include "store/stream.h"

/*
 * Unrelated traces may share an identity, when a program has one built in. This many times we look
 * which of them belong to one trace all the same; every time costs in proportion to all of them.
 */
#define MISFITS_MAX 64

/* ---- files of one stream ----------------------------------------------------------------- */

struct file {
	struct ky_stream *stream;
	size_t at; /* its place among the trace's streams */
	struct ky_packet_list packets;
	size_t first; /* packets before are in an earlier file too */
	bool is_cut; /* its last packet is torn, and whole in a later file: ->packets is without it */
};

KY_VEC_TYPE(files, struct file);
KY_VEC_TYPE(streams, struct ky_stream *);

static int by_first_packet(const void *a, const void *b)
{
	const struct file *x = a, *y = b;
	const struct ky_packet_entry *p = x->packets.data, *q = y->packets.data;

	if (!x->packets.len || !y->packets.len)
		return (x->packets.len == 0) - (y->packets.len == 0);
	if (p->has_sequence && q->has_sequence && p->sequence != q->sequence)
		return p->sequence < q->sequence ? -1 : 1;
	if (p->begin_cycles != q->begin_cycles)
		return p->begin_cycles < q->begin_cycles ? -1 : 1;
	return strcmp(x->stream->file.path, y->stream->file.path);
}

static bool same_packet(const struct file *a, const struct ky_packet_entry *p, const struct file *b,
			const struct ky_packet_entry *q)
{
	return p->sequence == q->sequence && p->begin_cycles == q->begin_cycles &&
	       p->end_cycles == q->end_cycles && p->content_bits == q->content_bits &&
	       memcmp(a->stream->file.data + p->offset_bytes,
		      b->stream->file.data + q->offset_bytes, (p->content_bits + 7) / 8) == 0;
}

static bool is_whole(const struct file *file, const struct ky_packet_entry *p)
{
	return (p->content_bits + 7) / 8 <= file->stream->file.size_bytes - p->offset_bytes;
}

/* Is @q before @p in their data stream? */
static bool is_before(const struct ky_packet_entry *q, const struct ky_packet_entry *p)
{
	if (q->has_sequence && p->has_sequence && q->sequence != p->sequence)
		return q->sequence < p->sequence;
	return q->begin_cycles < p->begin_cycles;
}

/* Has a file of @chain the packet @p of @file? The packets of a chain are in order. */
static bool has_packet(const struct files *chain, const struct file *file,
		       const struct ky_packet_entry *p)
{
	if (!is_whole(file, p) || (!p->has_times && !p->has_sequence))
		return false;
	for (size_t k = chain->len; k-- > 0;) {
		const struct file *earlier = &chain->data[k];

		for (size_t i = earlier->packets.len; i-- > 0;) {
			const struct ky_packet_entry *q = &earlier->packets.data[i];

			if (is_before(q, p))
				return false;
			if (is_whole(earlier, q) && same_packet(earlier, q, file, p))
				return true;
		}
	}
	return false;
}

/* May @next follow @last in one stream? */
static bool follows(const struct ky_packet_entry *last, const struct ky_packet_entry *next,
		    bool has_quirks)
{
	uint64_t end = has_quirks ? last->begin_cycles : last->end_cycles;

	if (last->has_sequence && next->has_sequence && last->sequence >= next->sequence)
		return false;
	if (last->has_times && next->has_times)
		return next->begin_cycles >= end;
	return last->has_sequence && next->has_sequence;
}

static uint64_t page_up(uint64_t bytes)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) & ~(page - 1);
}

/* Is the last packet of @tail torn (a killed recorder wrote its beginning), and the first one of @next the whole of it? */
static bool is_torn(const struct file *tail, const struct file *next)
{
	const struct ky_packet_entry *p = ky_vec_last(&tail->packets), *q = &next->packets.data[0];

	return !is_whole(tail, p) && is_whole(next, q) && p->has_sequence && p->has_times &&
	       p->sequence == q->sequence && p->begin_cycles == q->begin_cycles &&
	       p->end_cycles == q->end_cycles && p->content_bits == q->content_bits;
}

/* Let the file of @file end before its torn packet, which begins at @bytes. */
static int cut_file(const struct file *file, uint64_t bytes, struct kymo_error *err)
{
	struct ky_stream *stream = file->stream;
	uint64_t kept = page_up(bytes), mapped = page_up(stream->file.size_bytes);

	ky_guard_remove(stream->file.data, stream->file.size_bytes);
	if (ky_guard_add(stream->file.data, bytes) < 0)
		return ky_error_nomem(err);
	if (mapped > kept)
		munmap((void *)(uintptr_t)(stream->file.data + kept), mapped - kept);
	stream->file.size_bytes = stream->parts.data[0].size_bytes = bytes;
	return KYMO_OK;
}

/* What @file has whole, no torn beginning of is needed in @chain. */
static void replace_torn(struct files *chain, const struct file *file)
{
	struct file *tail = chain->len ? &chain->data[chain->len - 1] : NULL;

	if (!tail || tail->packets.len < 2 || !is_torn(tail, file))
		return;
	tail->packets.len--;
	tail->is_cut = true;
}

/*
 * Does @file go on where those of @chain end? Sets file->first, which is behind the last
 * packet when all of it is there already.
 */
static bool fits(struct files *chain, struct file *file)
{
	const struct ky_packet_entry *last;
	const struct file *tail;

	if (!chain->len)
		return true;
	replace_torn(chain, file);
	while (file->first < file->packets.len &&
	       has_packet(chain, file, &file->packets.data[file->first]))
		file->first++;
	if (file->first == file->packets.len)
		return true;
	tail = &chain->data[chain->len - 1];
	last = ky_vec_last(&tail->packets);
	return follows(last, &file->packets.data[file->first], file->stream->trace->quirks);
}

/* ---- mapping ----------------------------------------------------------------------------- */

/* Move the mapping of @file to @to; its stream keeps nothing of it. */
static int move_mapping(struct file *file, uint8_t *to)
{
	struct ky_stream *stream = file->stream;
	void *moved = mremap((void *)(uintptr_t)stream->file.data, stream->file.size_bytes,
			     stream->file.size_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to);

	if (moved == MAP_FAILED)
		return -errno;
	ky_guard_remove(stream->file.data, stream->file.size_bytes);
	if (ky_guard_add(moved, stream->file.size_bytes) < 0)
		return -ENOMEM;
	stream->file.data = NULL;
	stream->file.size_bytes = 0;
	return 0;
}

/* Append @file, whose bytes begin at @at_bytes of @stream, to its parts. */
static void add_part(struct ky_stream *stream, struct file *file, uint64_t at_bytes)
{
	struct ky_stream_part part = file->stream->parts.data[0];

	part.at_bytes = at_bytes;
	part.begin_bytes = at_bytes + file->packets.data[file->first].offset_bytes;
	(void)ky_vec_push(&stream->parts, part);
}

/* The files of @chain become the first one's stream; the others stay as empty shells. */
static int map_chain(const struct files *chain, struct kymo_error *err)
{
	struct ky_stream *stream = chain->data[0].stream;
	uint64_t total = 0, at = 0, size = 0;
	uint8_t *space;
	int ret;

	ky_vec_foreach(chain, file)
		total += page_up(file->stream->file.size_bytes);
	if (ky_vec_reserve(&stream->parts, chain->len) < 0)
		return ky_error_nomem(err);
	space = mmap(NULL, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (space == MAP_FAILED)
		return ky_error_errno(err, errno, "cannot map a stream of several files");
	for (size_t i = 0; i < chain->len; i++) {
		struct file *file = &chain->data[i];
		uint64_t bytes = file->stream->file.size_bytes;

		ret = move_mapping(file, space + at);
		if (ret < 0) {
			/* Nothing refers to what was moved: its streams have no bytes any more. */
			ky_guard_remove(space, total);
			munmap(space, total);
			return ky_error_errno(err, -ret, "cannot map a stream of several files");
		}
		if (i) {
			add_part(stream, file, at);
			/* The path is the part's now. */
			ky_vec_clear(&file->stream->parts);
		}
		size = at + bytes;
		at += page_up(bytes);
	}
	stream->file.data = space;
	stream->file.size_bytes = size;
	return KYMO_OK;
}

/* ---- streams ----------------------------------------------------------------------------- */

static bool same_stream(const struct ky_stream *a, const struct ky_stream *b)
{
	return a->cls && b->cls && a->cls->id == b->cls->id && a->has_id && b->has_id &&
	       a->id == b->id;
}

/* List the packets of streams @from to @upto. */
static int list_files(struct ky_stream **streams, size_t from, size_t upto, struct files *files,
		      struct kymo_error *err)
{
	if (ky_vec_reserve(files, upto - from) < 0)
		return ky_error_nomem(err);
	for (size_t i = from; i < upto; i++) {
		struct file *file = &files->data[files->len++];
		int ret;

		*file = (struct file){.stream = streams[i], .at = i};
		ret = ky_stream_packets(file->stream, &file->packets, err);
		/* Damage: reading will meet it. */
		if (ret < 0 && ret != KYMO_E_FORMAT)
			return ret;
	}
	return KYMO_OK;
}

static void remove_stream(struct ky_trace *trace, const struct file *file)
{
	trace->streams.data[file->at] = NULL;
	ky_stream_free(file->stream);
}

static int cut_files(const struct files *chain, struct kymo_error *err)
{
	int ret = KYMO_OK;

	ky_vec_foreach(chain, file) {
		if (ret == KYMO_OK && file->is_cut)
			/* What is behind the last packet of the list, which still stands there. */
			ret = cut_file(file, file->packets.data[file->packets.len].offset_bytes,
				       err);
	}
	return ret;
}

static int join_files(struct ky_trace *trace, struct files *files, struct kymo_error *err)
{
	struct files chain = KY_VEC_INIT;
	int ret = ky_vec_reserve(&chain, files->len) < 0 ? ky_error_nomem(err) : KYMO_OK;

	qsort(files->data, files->len, sizeof(*files->data), by_first_packet);
	for (size_t i = 0; i < files->len && ret == KYMO_OK; i++) {
		struct file *file = &files->data[i];

		if (!file->packets.len || !fits(&chain, file))
			continue;
		if (file->first == file->packets.len)
			remove_stream(trace, file);
		else
			(void)ky_vec_push(&chain, *file);
	}
	if (ret == KYMO_OK)
		ret = cut_files(&chain, err);
	if (ret == KYMO_OK && chain.len > 1) {
		ret = map_chain(&chain, err);
		for (size_t i = 1; i < chain.len && ret == KYMO_OK; i++)
			remove_stream(trace, &chain.data[i]);
	}
	ky_vec_fini(&chain);
	return ret;
}

/* Streams @from to @upto claim to be one. */
static int join_group(struct ky_trace *trace, size_t from, size_t upto, struct kymo_error *err)
{
	struct files files = KY_VEC_INIT;
	int ret = list_files(trace->streams.data, from, upto, &files, err);

	if (ret == KYMO_OK)
		ret = join_files(trace, &files, err);
	ky_vec_foreach(&files, file)
		ky_vec_fini(&file->packets);
	ky_vec_fini(&files);
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
		while (upto < n && same_stream(streams[i], streams[upto]))
			upto++;
		if (upto - i > 1)
			ret = join_group(trace, i, upto, err);
	}
	close_gaps(trace);
	return ret;
}

/* ---- one trace in several places ---------------------------------------------------------- */

/* All streams of @from become @to's, but for empty files; and @from goes. */
static int take_streams(struct ky_trace *to, struct ky_trace *from, struct kymo_error *err)
{
	if (ky_vec_reserve(&to->streams, from->streams.len) < 0)
		return ky_error_nomem(err);
	ky_vec_foreach(&from->streams, it) {
		struct ky_stream *stream = *it;

		if (!stream->cls) {
			ky_stream_free(stream);
			continue;
		}
		stream->trace = to;
		stream->cls = ky_map_get(&to->cls->streams_by_id, stream->cls->id);
		(void)ky_vec_push(&to->streams, stream);
	}
	ky_vec_clear(&from->streams);
	ky_trace_free(from);
	return KYMO_OK;
}

/* Join trace @late into @early: the metadata that knows more is kept, and the earlier path. */
static int join_pair(struct ky_trace **early, struct ky_trace *late, struct kymo_error *err)
{
	struct ky_trace *first = *early;
	char *path = first->path;
	int ret;

	first->name_at = strlen(path);
	if (ky_join_covers(first->cls, late->cls))
		return take_streams(first, late, err);
	first->path = late->path;
	late->path = path;
	late->name_at = first->name_at;
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
	struct files files = KY_VEC_INIT, chain = KY_VEC_INIT;
	int ret = list_files(streams, from, upto, &files, err);

	if (ret == KYMO_OK && ky_vec_reserve(&chain, upto - from) < 0)
		ret = ky_error_nomem(err);
	if (ret == KYMO_OK)
		ret = 1;
	qsort(files.data, files.len, sizeof(*files.data), by_first_packet);
	for (size_t i = 0; i < files.len && ret > 0; i++) {
		struct file *file = &files.data[i];

		if (!file->packets.len || !fits(&chain, file))
			ret = 0;
		else if (file->first < file->packets.len)
			(void)ky_vec_push(&chain, *file);
	}
	ky_vec_foreach(&files, file)
		ky_vec_fini(&file->packets);
	ky_vec_fini(&files);
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
		while (upto < all.len && same_stream(all.data[i], all.data[upto]))
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
