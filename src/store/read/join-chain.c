/* SPDX-License-Identifier: MIT */
#include "store/read/join-chain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "os/sigbus-guard.h"

static int by_first_packet(const void *a, const void *b)
{
	const struct ky_join_file *x = a, *y = b;
	const struct ky_packet_entry *p = x->packets.data, *q = y->packets.data;

	if (!x->packets.len || !y->packets.len)
		return (x->packets.len == 0) - (y->packets.len == 0);
	if (p->has_sequence && q->has_sequence && p->sequence != q->sequence)
		return p->sequence < q->sequence ? -1 : 1;
	if (p->begin_cycles != q->begin_cycles)
		return p->begin_cycles < q->begin_cycles ? -1 : 1;
	return strcmp(x->stream->file.path, y->stream->file.path);
}

static bool same_packet(const struct ky_join_file *a, const struct ky_packet_entry *p,
			const struct ky_join_file *b, const struct ky_packet_entry *q)
{
	return p->sequence == q->sequence && p->begin_cycles == q->begin_cycles &&
	       p->end_cycles == q->end_cycles && p->content_bits == q->content_bits &&
	       memcmp(a->stream->file.data + p->offset_bytes,
		      b->stream->file.data + q->offset_bytes, (p->content_bits + 7) / 8) == 0;
}

static bool join_chain_is_whole(const struct ky_join_file *file, const struct ky_packet_entry *p)
{
	return (p->content_bits + 7) / 8 <= file->stream->file.size_bytes - p->offset_bytes;
}

/* Is @q before @p in their data stream? */
static bool join_chain_is_before(const struct ky_packet_entry *q, const struct ky_packet_entry *p)
{
	if (q->has_sequence && p->has_sequence && q->sequence != p->sequence)
		return q->sequence < p->sequence;
	return q->begin_cycles < p->begin_cycles;
}

/* Packets of one time that are compared with another one: of forged files, all are of one time. */
#define SAME_TIME_MAX 64

/* The first packet of @file that is not before @p: its packets are in order. */
static size_t first_not_before(const struct ky_join_file *file, const struct ky_packet_entry *p)
{
	size_t low = 0, high = file->packets.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (join_chain_is_before(&file->packets.data[middle], p))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Has @earlier the packet @p of @file? */
static bool file_has_packet(const struct ky_join_file *earlier, const struct ky_join_file *file,
			    const struct ky_packet_entry *p)
{
	size_t first = first_not_before(earlier, p);

	for (size_t i = first; i < earlier->packets.len && i - first < SAME_TIME_MAX; i++) {
		const struct ky_packet_entry *q = &earlier->packets.data[i];

		if (join_chain_is_before(p, q))
			return false;
		if (join_chain_is_whole(earlier, q) && same_packet(earlier, q, file, p))
			return true;
	}
	return false;
}

/* Has a file of @chain the packet @p of @file? The files of a chain are in order. */
static bool has_packet(const struct ky_join_files *chain, const struct ky_join_file *file,
		       const struct ky_packet_entry *p)
{
	if (!join_chain_is_whole(file, p) || (!p->has_times && !p->has_sequence))
		return false;
	for (size_t k = chain->len; k-- > 0;) {
		const struct ky_join_file *earlier = &chain->data[k];

		if (earlier->packets.len && join_chain_is_before(ky_vec_last(&earlier->packets), p))
			return false;
		if (file_has_packet(earlier, file, p))
			return true;
	}
	return false;
}

/* May @next follow @last in one stream? */
static bool join_chain_follows(const struct ky_packet_entry *last,
			       const struct ky_packet_entry *next, bool has_quirks)
{
	uint64_t end = has_quirks ? last->begin_cycles : last->end_cycles;

	if (last->has_sequence && next->has_sequence && last->sequence >= next->sequence)
		return false;
	if (last->has_times && next->has_times)
		return next->begin_cycles >= end;
	return last->has_sequence && next->has_sequence;
}

/* Is the last packet of @tail torn (a killed recorder wrote its beginning), and the first one of @next the whole of it? */
static bool join_chain_is_torn(const struct ky_join_file *tail, const struct ky_join_file *next)
{
	const struct ky_packet_entry *p = ky_vec_last(&tail->packets), *q = &next->packets.data[0];

	return !join_chain_is_whole(tail, p) && join_chain_is_whole(next, q) && p->has_sequence &&
	       p->has_times && p->sequence == q->sequence && p->begin_cycles == q->begin_cycles &&
	       p->end_cycles == q->end_cycles && p->content_bits == q->content_bits;
}

/* What @file has whole, no torn beginning of is needed in @tail. Is it left out now? */
static bool replace_torn(struct ky_join_file *tail, const struct ky_join_file *file)
{
	if (tail->packets.len < 2 || !join_chain_is_torn(tail, file))
		return false;
	tail->packets.len--;
	tail->is_cut = true;
	return true;
}

/* The torn packet stays: nothing replaces it. */
static void keep_torn(struct ky_join_file *tail)
{
	tail->packets.len++;
	tail->is_cut = false;
}

bool ky_join_fits(struct ky_join_files *chain, struct ky_join_file *file)
{
	const struct ky_packet_entry *last;
	struct ky_join_file *tail;
	bool replaced, fits;

	if (!chain->len)
		return true;
	tail = &chain->data[chain->len - 1];
	replaced = replace_torn(tail, file);
	while (file->first < file->packets.len &&
	       has_packet(chain, file, &file->packets.data[file->first]))
		file->first++;
	if (file->first == file->packets.len)
		return true;
	last = ky_vec_last(&tail->packets);
	fits = join_chain_follows(last, &file->packets.data[file->first],
				  file->stream->trace->quirks);
	if (replaced && !fits)
		keep_torn(tail);
	return fits;
}

int ky_join_list(struct ky_stream **streams, size_t from, size_t upto, struct ky_join_files *files,
		 struct kymo_error *err)
{
	if (ky_vec_reserve(files, upto - from) < 0)
		return ky_error_nomem(err);
	for (size_t i = from; i < upto; i++) {
		struct ky_join_file *file = &files->data[files->len++];
		int ret;

		*file = (struct ky_join_file){.stream = streams[i], .at = i};
		ret = ky_stream_packets(file->stream, &file->packets, err);
		/* Damage: reading will meet it. */
		if (ret < 0 && ret != KYMO_E_FORMAT)
			return ret;
	}
	qsort(files->data, files->len, sizeof(*files->data), by_first_packet);
	return KYMO_OK;
}

void ky_join_files_fini(struct ky_join_files *files)
{
	ky_vec_foreach(files, file)
		ky_vec_fini(&file->packets);
	ky_vec_fini(files);
}

/* ---- mapping ----------------------------------------------------------------------------- */

static uint64_t page_up(uint64_t bytes)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) & ~(page - 1);
}

/* Let the file of @file end before its torn packet, which begins at @bytes. */
static int cut_file(const struct ky_join_file *file, uint64_t bytes, struct kymo_error *err)
{
	struct ky_stream *stream = file->stream;
	uint64_t kept = page_up(bytes), mapped = page_up(stream->file.size_bytes);

	ky_sigbus_guard_remove(stream->file.data, stream->file.size_bytes);
	if (ky_sigbus_guard_add(stream->file.data, bytes) < 0)
		return ky_error_nomem(err);
	if (mapped > kept)
		munmap((void *)(uintptr_t)(stream->file.data + kept), mapped - kept);
	stream->file.size_bytes = stream->parts.data[0].size_bytes = bytes;
	return KYMO_OK;
}

static int cut_files(const struct ky_join_files *chain, struct kymo_error *err)
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

/* Move the mapping of @file to @to; its stream keeps nothing of it. */
static int move_mapping(struct ky_join_file *file, uint8_t *to)
{
	struct ky_stream *stream = file->stream;
	void *from = (void *)(uintptr_t)stream->file.data;
	uint64_t bytes = stream->file.size_bytes;
	void *moved = mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to);

	if (moved == MAP_FAILED)
		return -errno;
	/* Whatever happens now, what lies at the old place is not the stream's. */
	stream->file.data = NULL;
	stream->file.size_bytes = 0;
	ky_sigbus_guard_remove(from, bytes);
	return ky_sigbus_guard_add(moved, bytes) < 0 ? -ENOMEM : 0;
}

/* Append @file, whose bytes begin at @at_bytes of @stream, to its parts. */
static void join_chain_add_part(struct ky_stream *stream, struct ky_join_file *file,
				uint64_t at_bytes)
{
	struct ky_stream_part part = file->stream->parts.data[0];

	part.at_bytes = at_bytes;
	part.begin_bytes = at_bytes + file->packets.data[file->first].offset_bytes;
	(void)ky_vec_push(&stream->parts, part);
}

static int map_all(const struct ky_join_files *chain, struct kymo_error *err)
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
		struct ky_join_file *file = &chain->data[i];
		uint64_t bytes = file->stream->file.size_bytes;

		ret = move_mapping(file, space + at);
		if (ret < 0) {
			/* Nothing refers to what was moved: its streams have no bytes any more. */
			ky_sigbus_guard_remove(space, total);
			munmap(space, total);
			return ky_error_errno(err, -ret, "cannot map a stream of several files");
		}
		if (i) {
			join_chain_add_part(stream, file, at);
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

int ky_join_map(const struct ky_join_files *chain, struct kymo_error *err)
{
	int ret = cut_files(chain, err);

	return ret == KYMO_OK && chain->len > 1 ? map_all(chain, err) : ret;
}
