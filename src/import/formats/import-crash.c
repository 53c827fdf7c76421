/* SPDX-License-Identifier: MIT */
/*
 * The buffers of LTTng-UST in files (`lttng create --shm-path`), as they are after a crash of the machine, the programs or the daemons:
 * what nobody has consumed. They lie as the trace would: SESSION/ust/uid/0/64-bit/metadata, and beside it a file for each CPU.
 *
 * A file begins with a description of its own layout, so that debuggers find the buffers in memory: where the positions of writer
 * and reader are, which page has which sub-buffer, and how much of it is committed. Sub-buffers are packets. The last one of a CPU
 * does not know yet how long it is; its header gets what is committed.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "import/common/foreign-file.h"
#include "import/common/import-internal.h"
#include "os/file.h"

#define DEPTH_MAX	  8    /* of directories */
#define ENTRIES_MAX	  4096 /* looked at, until the first trace is found */
#define METADATA_BYTES	  ((size_t)64 << 20)
#define HEAD_BYTES	  132u
#define ENDIAN		  0x1234u
#define PACKET_HEADER_MAX 4096u
#define SUBS_MAX	  ((uint64_t)1 << 20) /* sub-buffers of a CPU */

static const uint8_t crash_magic[16] = {0x17, 0x7b, 0xf1, 0x77, 0xbf, 0x17, 0x7b, 0xf1,
					0x77, 0xbf, 0x17, 0x7b, 0xf1, 0x77, 0xbf, 0x17};

/* A number in the file: where, and how many bytes. */
struct crash_place {
	uint32_t at;
	uint8_t bytes;
};

/* What the file's head says; places in arrays are behind the element's begin. */
struct crash_layout {
	struct crash_place produced, consumed, committed, page_of, page_at, data_at;
	struct crash_place content_size, packet_size; /* in the header of a packet */
	uint32_t commits_at, pages_of_at,
		pages_at; /* arrays: by sub-buffer, by sub-buffer, by page */
	uint32_t commits_each, pages_of_each, pages_each;
	uint64_t sub_bytes, n_subs;
	unsigned int word_bits;
	bool has_reader_page; /* numbers of pages have flags in their upper half */
};

struct crash {
	struct ky_foreign_file file;
	struct crash_layout layout;
	struct kymo_error *err;
	int out;
	uint64_t out_bytes;
};

/* ---- the description -------------------------------------------------------------------- */

static bool crash_is_power(uint64_t value)
{
	return value && !(value & (value - 1));
}

static void crash_parse(struct crash_layout *to, const uint8_t *head, bool swap)
{
	uint32_t at[11], each[3];

	for (unsigned int i = 0; i < 11; i++)
		at[i] = ky_foreign_u32(head + 32 + 4 * i, swap);
	for (unsigned int i = 0; i < 3; i++)
		each[i] = ky_foreign_u32(head + 84 + 4 * i, swap);
	*to = (struct crash_layout){
		.produced = {at[0], head[76]},
		.consumed = {at[1], head[77]},
		.commits_at = at[2],
		.committed = {at[3], head[78]},
		.pages_of_at = at[4],
		.page_of = {at[5], head[79]},
		.pages_at = at[6],
		.page_at = {at[7], head[80]},
		.data_at = {at[8], head[81]},
		.content_size = {at[9], head[82]},
		.packet_size = {at[10], head[83]},
		.commits_each = each[0],
		.pages_of_each = each[1],
		.pages_each = each[2],
		.sub_bytes = ky_foreign_u64(head + 104, swap),
		.n_subs = ky_foreign_u64(head + 112, swap),
		.word_bits = head[30] * 8u,
		/* Version 0: only of buffers that are written over. */
		.has_reader_page =
			ky_foreign_u16(head + 26, swap) || !ky_foreign_u32(head + 120, swap),
	};
}

static int crash_read_layout(struct crash *crash)
{
	struct crash_layout *layout = &crash->layout;
	const uint8_t *head =
		ky_foreign_bytes(&crash->file, 0, HEAD_BYTES, "the head of the buffer", crash->err);

	if (!head)
		return crash->err->code;
	crash->file.swap = ky_foreign_u16(head + 24, false) != ENDIAN;
	crash_parse(layout, head, crash->file.swap);
	if (ky_foreign_u16(head + 24, crash->file.swap) != ENDIAN || head[31] != 0 ||
	    ky_foreign_u16(head + 26, crash->file.swap) > 1)
		return ky_foreign_bad(&crash->file, 24, "this version of the buffer is not known",
				      crash->err);
	if (!crash_is_power(layout->sub_bytes) || !crash_is_power(layout->n_subs) ||
	    layout->sub_bytes > KY_FOREIGN_PIECE_MAX || layout->n_subs > SUBS_MAX ||
	    layout->commits_each < layout->committed.bytes ||
	    layout->pages_of_each < layout->page_of.bytes ||
	    layout->pages_each < layout->page_at.bytes ||
	    (layout->word_bits != 32 && layout->word_bits != 64) ||
	    (layout->content_size.bytes != 0 && layout->content_size.bytes != 8) ||
	    (layout->packet_size.bytes != 0 && layout->packet_size.bytes != 8))
		return ky_foreign_bad(&crash->file, 96, "the sizes of the buffer make no sense",
				      crash->err);
	return KYMO_OK;
}

/* The number at @place behind @base. False: crash->err. */
static bool crash_number(struct crash *crash, uint64_t base, struct crash_place place,
			 uint64_t *value)
{
	const uint8_t *bytes = base > UINT64_MAX / 2
				       ? NULL
				       : ky_foreign_bytes(&crash->file, base + place.at,
							  place.bytes, "the buffer", crash->err);

	if (bytes && place.bytes == 8)
		*value = ky_foreign_u64(bytes, crash->file.swap);
	else if (bytes && place.bytes == 4)
		*value = ky_foreign_u32(bytes, crash->file.swap);
	else if (bytes || !crash->err->code)
		ky_foreign_bad(&crash->file, base, "a number of the buffer has no place",
			       crash->err);
	return bytes && (place.bytes == 4 || place.bytes == 8);
}

/* ---- sub-buffers ------------------------------------------------------------------------ */

/* How much of the sub-buffer that the writer's position @at is in can be read. False: crash->err. */
static bool crash_committed(struct crash *crash, uint64_t at, uint64_t *bytes)
{
	const struct crash_layout *layout = &crash->layout;
	uint64_t word = layout->word_bits == 32 ? UINT32_MAX : UINT64_MAX;
	uint64_t number = at / layout->sub_bytes % layout->n_subs;
	uint64_t round = at / layout->sub_bytes / layout->n_subs * layout->sub_bytes;
	uint64_t count;

	if (!crash_number(crash, layout->commits_at + number * layout->commits_each,
			  layout->committed, &count))
		return false;
	/* The count goes on from round to round; after this one it is whole. */
	if (((count - layout->sub_bytes - round) & (word / layout->n_subs)) == 0)
		*bytes = layout->sub_bytes;
	else
		*bytes = count & (layout->sub_bytes - 1);
	return true;
}

/* Where the bytes of that sub-buffer are. */
static bool crash_place(struct crash *crash, uint64_t at, uint64_t *place)
{
	const struct crash_layout *layout = &crash->layout;
	uint64_t number = at / layout->sub_bytes % layout->n_subs, page, page_at;

	if (!crash_number(crash, layout->pages_of_at + number * layout->pages_of_each,
			  layout->page_of, &page))
		return false;
	/* The upper half of the word has flags. */
	if (layout->has_reader_page)
		page &= (UINT64_C(1) << layout->word_bits / 2) - 1;
	if (page > layout->n_subs) {
		ky_foreign_bad(&crash->file, layout->pages_of_at,
			       "a sub-buffer has no place in the buffer", crash->err);
		return false;
	}
	return crash_number(crash, layout->pages_at + page * layout->pages_each, layout->page_at,
			    &page_at) &&
	       crash_number(crash, page_at, layout->data_at, place);
}

/* A size in the packet's header, in bits. */
static void crash_set_size(const struct crash *crash, struct crash_place place, uint8_t *packet,
			   uint64_t bytes)
{
	uint64_t bits = bytes * 8;

	if (!place.bytes || (uint64_t)place.at + 8 > PACKET_HEADER_MAX)
		return;
	bits = crash->file.swap ? __builtin_bswap64(bits) : bits;
	memcpy(packet + place.at, &bits, sizeof(bits));
}

static int crash_write(struct crash *crash, const uint8_t *data, uint64_t bytes)
{
	while (bytes) {
		ssize_t done = write(crash->out, data, bytes);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return ky_error_errno(crash->err, errno, "cannot write a temporary file");
		data += done;
		bytes -= (uint64_t)done;
		crash->out_bytes += (uint64_t)done;
	}
	return KYMO_OK;
}

static int crash_copy(struct crash *crash, uint64_t place, uint64_t bytes)
{
	const struct crash_layout *layout = &crash->layout;
	bool is_whole = bytes == layout->sub_bytes;
	uint8_t header[PACKET_HEADER_MAX] = {0};
	const uint8_t *data =
		ky_foreign_bytes(&crash->file, place, bytes, "a sub-buffer", crash->err);
	uint64_t head = bytes < sizeof(header) ? bytes : sizeof(header), said;
	int ret;

	if (!data)
		return crash->err->code;
	/* Each sub-buffer has a place of its own, so all of them are no longer than the file. */
	if (crash->out_bytes + bytes > crash->file.size_bytes)
		return ky_foreign_bad(&crash->file, place, "two sub-buffers have the same place",
				      crash->err);
	memcpy(header, data, head);
	if (is_whole && layout->packet_size.bytes && (uint64_t)layout->packet_size.at + 8 <= head) {
		said = ky_foreign_u64(header + layout->packet_size.at, crash->file.swap) / 8;
		bytes = said && said < bytes ? said : bytes;
	} else if (!is_whole) {
		crash_set_size(crash, layout->content_size, header, bytes);
		crash_set_size(crash, layout->packet_size, header, bytes);
	}
	ret = crash_write(crash, header, head < bytes ? head : bytes);
	return ret || bytes <= head ? ret : crash_write(crash, data + head, bytes - head);
}

/* From what was not consumed to what was written. */
static int crash_run(struct crash *crash)
{
	const struct crash_layout *layout = &crash->layout;
	uint64_t at, end, bytes, place, most, left;
	int ret = crash_read_layout(crash);

	if (ret < 0)
		return ret;
	most = layout->sub_bytes * layout->n_subs;
	if (!crash_number(crash, 0, layout->consumed, &at) ||
	    !crash_number(crash, 0, layout->produced, &end))
		return crash->err->code;
	at &= ~(layout->sub_bytes - 1);
	/* A writer that writes over what is there is ahead of a reader that never comes. */
	if (end > at && end - at > most)
		at = (end - most + layout->sub_bytes - 1) & ~(layout->sub_bytes - 1);
	left = at < end ? (end - at - 1) / layout->sub_bytes + 1 : 0;
	for (; left && !ret; left--, at += layout->sub_bytes) {
		if (!crash_committed(crash, at, &bytes))
			return crash->err->code;
		if (!bytes)
			continue;
		if (!crash_place(crash, at, &place))
			return crash->err->code;
		ret = crash_copy(crash, place, bytes);
	}
	return ret;
}

/* ---- directories ------------------------------------------------------------------------ */

/* Calls @use with each entry's path, until that says other than 0. @left: how many entries may still be looked at; may be NULL. */
static int crash_each(const char *path, unsigned int *left, void *data,
		      int (*use)(void *data, const char *path, const char *name))
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int ret = 0;

	while (dir && !ret && (entry = readdir(dir))) {
		char at[PATH_MAX];

		if (entry->d_name[0] == '.' ||
		    snprintf(at, sizeof(at), "%s/%s", path, entry->d_name) >= (int)sizeof(at))
			continue;
		if (left && !(*left)--)
			break;
		ret = use(data, at, entry->d_name);
	}
	if (dir)
		closedir(dir);
	return ret;
}

static bool crash_is_directory(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool crash_is_trace(const char *path)
{
	char metadata[PATH_MAX];
	struct stat st;

	return snprintf(metadata, sizeof(metadata), "%s/metadata", path) < (int)sizeof(metadata) &&
	       lstat(metadata, &st) == 0 && S_ISREG(st.st_mode);
}

struct crash_search {
	unsigned int left, depth;
};

/* 1: it is a buffer; 2: it is something else, or a trace without buffers. */
static int crash_look_at_stream(void *data, const char *path, const char *name)
{
	struct stat st;

	(void)data;
	if (strcmp(name, "metadata") == 0 || lstat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	return ky_foreign_begins(path, 0, crash_magic, sizeof(crash_magic)) ? 1 : 2;
}

static int crash_look_at(void *data, const char *path, const char *name)
{
	struct crash_search *search = data;
	int ret;

	(void)name;
	if (!crash_is_directory(path))
		return 0;
	if (crash_is_trace(path)) {
		ret = crash_each(path, &search->left, search, crash_look_at_stream);
		return ret ? ret : 2;
	}
	if (search->depth == DEPTH_MAX)
		return 0;
	search->depth++;
	ret = crash_each(path, &search->left, search, crash_look_at);
	search->depth--;
	return ret;
}

static bool import_crash_is(const char *path)
{
	struct crash_search search = {.left = ENTRIES_MAX};

	return crash_look_at(&search, path, "") == 1;
}

/* ---- traces ----------------------------------------------------------------------------- */

struct crash_traces {
	struct ky_import *imports;
	const char *path;
	struct ky_scratch_trace *trace;
	struct kymo_error *err, *broken;
	unsigned int depth;
};

static int crash_add_stream(void *data, const char *path, const char *name)
{
	struct crash_traces *traces = data;
	struct crash crash = {.err = traces->err};
	struct ky_scratch_stream *stream;
	int ret;

	if (crash_look_at_stream(NULL, path, name) != 1)
		return 0;
	ret = ky_scratch_trace_add(traces->trace, name, false, traces->err);
	if (!ret)
		ret = ky_foreign_open(&crash.file, path, -1, traces->err);
	if (ret < 0)
		return ret;
	stream = *ky_vec_last(&traces->trace->streams);
	crash.out = stream->fd;
	ret = crash_run(&crash);
	stream->size_bytes = crash.out_bytes;
	ky_foreign_close(&crash.file);
	/* What is damaged ends this CPU. */
	if (ret != KYMO_E_FORMAT && ret != KYMO_E_LIMIT)
		return ret;
	if (!traces->broken->code)
		*traces->broken = *traces->err;
	ky_error_clear(traces->err);
	return KYMO_OK;
}

static int crash_add_trace(struct crash_traces *traces, const char *path)
{
	const char *name = path + strlen(traces->path);
	char metadata[PATH_MAX];
	int ret;

	traces->trace = ky_import_new_trace(traces->imports);
	if (!traces->trace)
		return ky_error_nomem(traces->err);
	snprintf(metadata, sizeof(metadata), "%s/metadata", path);
	ret = ky_read_file(AT_FDCWD, metadata, METADATA_BYTES, &traces->trace->metadata);
	if (ret < 0) {
		ret = ky_error_errno(traces->err, -ret, "cannot read");
		ky_error_path(traces->err, metadata);
		return ret;
	}
	ret = crash_each(path, NULL, traces, crash_add_stream);
	name += strspn(name, "/");
	return ret ? ret
		   : ky_import_add_place(traces->imports, traces->path, *name ? name : "crash",
					 traces->trace, traces->err);
}

static int crash_add(void *data, const char *path, const char *name)
{
	struct crash_traces *traces = data;
	int ret;

	(void)name;
	if (!crash_is_directory(path))
		return 0;
	if (crash_is_trace(path))
		return crash_add_trace(traces, path);
	if (traces->depth == DEPTH_MAX)
		return 0;
	traces->depth++;
	ret = crash_each(path, NULL, traces, crash_add);
	traces->depth--;
	return ret;
}

static int import_crash_open(struct ky_import *imports, const char *path, const struct ky_log *log,
			     struct kymo_error *err)
{
	struct kymo_error own = {0}, broken = {0};
	struct crash_traces traces = {
		.imports = imports, .path = path, .err = &own, .broken = &broken};
	int ret = crash_add(&traces, path, "");

	(void)log;
	if (!ret && broken.code)
		ky_import_broken(imports, &broken);
	if (ret < 0 && err)
		*err = own;
	return ret;
}

const struct ky_import_format ky_import_crash = {
	.name = "lttng-crash",
	.probe = import_crash_is,
	.open = import_crash_open,
};
