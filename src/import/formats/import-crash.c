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
#define SUB_BYTES_MIN	  4096u		      /* LTTng's are pages */
#define OTHERS_MAX	  64 /* files of a trace that are no buffers, before one that is */

/* What is read of a file with holes, for what it has on the disk. Files of compressing file systems have less there. */
#define HOLES_RATIO_MAX	 64u
#define HOLES_FREE_BYTES (UINT64_C(256) << 20)

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
	uint8_t *sub; /* room for a sub-buffer */
	int out;
	uint64_t out_bytes, taken_bytes; /* the same in whole sub-buffers */
	uint64_t take_max_bytes;
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
	    layout->sub_bytes < SUB_BYTES_MIN || layout->sub_bytes > KY_FOREIGN_PIECE_MAX ||
	    layout->n_subs > SUBS_MAX || layout->commits_each < layout->committed.bytes ||
	    layout->pages_of_each < layout->page_of.bytes ||
	    layout->pages_each < layout->page_at.bytes ||
	    (layout->word_bits != 32 && layout->word_bits != 64) ||
	    (layout->content_size.bytes != 0 && layout->content_size.bytes != 8) ||
	    (layout->packet_size.bytes != 0 && layout->packet_size.bytes != 8))
		return ky_foreign_bad(&crash->file, 96, "the sizes of the buffer make no sense",
				      crash->err);
	return KYMO_OK;
}

/* Where sub-buffers and their numbers lie in any order, a window of the file would be read again for each. False: crash->err. */
static bool crash_read(struct crash *crash, uint64_t offset, uint8_t *to, uint64_t bytes)
{
	uint64_t size = crash->file.size_bytes, have = 0;
	ssize_t got = 1;

	if (offset > size || bytes > size - offset) {
		ky_foreign_bad(&crash->file, offset, "the buffer is cut: the file ends before",
			       crash->err);
		return false;
	}
	while (have < bytes && got) {
		got = pread(crash->file.fd, to + have, bytes - have, (off_t)(offset + have));
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			ky_error_errno(crash->err, errno, "cannot read");
			ky_error_path(crash->err, crash->file.path);
			return false;
		}
		have += (uint64_t)got;
	}
	if (have < bytes)
		ky_foreign_bad(&crash->file, offset + have,
			       "the file became shorter while it was read", crash->err);
	return have == bytes;
}

/* The number at @place behind @base. False: crash->err. */
static bool crash_number(struct crash *crash, uint64_t base, struct crash_place place,
			 uint64_t *value)
{
	uint8_t bytes[8];

	if (base > UINT64_MAX / 2 || (place.bytes != 4 && place.bytes != 8)) {
		ky_foreign_bad(&crash->file, base, "a number of the buffer has no place",
			       crash->err);
		return false;
	}
	if (!crash_read(crash, base + place.at, bytes, place.bytes))
		return false;
	*value = place.bytes == 8 ? ky_foreign_u64(bytes, crash->file.swap)
				  : ky_foreign_u32(bytes, crash->file.swap);
	return true;
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
		if (done < 0) {
			ky_error_errno(crash->err, errno, "cannot write a temporary file");
			ky_error_hint(crash->err, "set TMPDIR to a directory with more space");
			return crash->err->code;
		}
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
	uint64_t head = bytes < PACKET_HEADER_MAX ? bytes : PACKET_HEADER_MAX, said;

	/* Each sub-buffer has a place of its own, so all of them are no longer than the file. */
	crash->taken_bytes += layout->sub_bytes;
	if (crash->taken_bytes > crash->file.size_bytes)
		return ky_foreign_bad(&crash->file, place, "two sub-buffers have the same place",
				      crash->err);
	if (crash->taken_bytes > crash->take_max_bytes) {
		ky_error_set(crash->err, KYMO_E_LIMIT, "most of the file is holes");
		ky_error_path(crash->err, crash->file.path);
		ky_error_offset(crash->err, place);
		return KYMO_E_LIMIT;
	}
	if (!crash_read(crash, place, crash->sub, bytes))
		return crash->err->code;
	if (is_whole && layout->packet_size.bytes && (uint64_t)layout->packet_size.at + 8 <= head) {
		said = ky_foreign_u64(crash->sub + layout->packet_size.at, crash->file.swap) / 8;
		bytes = said && said < bytes ? said : bytes;
	} else if (!is_whole) {
		crash_set_size(crash, layout->content_size, crash->sub, bytes);
		crash_set_size(crash, layout->packet_size, crash->sub, bytes);
	}
	return crash_write(crash, crash->sub, bytes);
}

/* From the first sub-buffer that was not consumed, at *@at, to where the writer is. */
static int crash_positions(struct crash *crash, uint64_t *at, uint64_t *end)
{
	const struct crash_layout *layout = &crash->layout;
	uint64_t most = layout->sub_bytes * layout->n_subs;

	if (!crash_number(crash, 0, layout->consumed, at) ||
	    !crash_number(crash, 0, layout->produced, end))
		return crash->err->code;
	/* Positions of programs of 32 bits go on from 0. What is counted from them is modulo 2^32, too. */
	if (*end < *at && layout->produced.bytes == 4 && *at - *end > UINT32_MAX / 2)
		*end += UINT64_C(1) << 32;
	if (*end < *at)
		return ky_foreign_bad(&crash->file, layout->consumed.at,
				      "the reader is ahead of the writer", crash->err);
	*at &= ~(layout->sub_bytes - 1);
	/* A writer that writes over what is there is ahead of a reader that never comes. */
	if (*end - *at > most)
		*at = (*end - most + layout->sub_bytes - 1) & ~(layout->sub_bytes - 1);
	return KYMO_OK;
}

static int crash_run(struct crash *crash)
{
	const struct crash_layout *layout = &crash->layout;
	uint64_t at, end, bytes, place, left;
	struct stat st;
	int ret = crash_read_layout(crash);

	if (ret < 0)
		return ret;
	if (fstat(crash->file.fd, &st) < 0)
		return ky_error_errno(crash->err, errno, "cannot read the file's size");
	crash->take_max_bytes = HOLES_FREE_BYTES + (uint64_t)st.st_blocks * 512 * HOLES_RATIO_MAX;
	crash->sub = malloc(layout->sub_bytes);
	if (!crash->sub)
		return ky_error_nomem(crash->err);
	ret = crash_positions(crash, &at, &end);
	left = !ret && at < end ? (end - at - 1) / layout->sub_bytes + 1 : 0;
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

/* @is_given: by the user, who may name a symbolic link. */
static bool crash_is_directory(const char *path, bool is_given)
{
	struct stat st;

	return (is_given ? stat(path, &st) : lstat(path, &st)) == 0 && S_ISDIR(st.st_mode);
}

static bool crash_is_trace(const char *path)
{
	char metadata[PATH_MAX];
	struct stat st;

	return snprintf(metadata, sizeof(metadata), "%s/metadata", path) < (int)sizeof(metadata) &&
	       lstat(metadata, &st) == 0 && S_ISREG(st.st_mode);
}

struct crash_search {
	unsigned int left, depth, others;
};

/* Is it a file beside the metadata? */
static bool crash_is_stream(const char *path, const char *name)
{
	struct stat st;

	return strcmp(name, "metadata") != 0 && lstat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* 1: it is a buffer; 2: too many others are none. */
static int crash_look_at_stream(void *data, const char *path, const char *name)
{
	struct crash_search *search = data;

	if (!crash_is_stream(path, name))
		return 0;
	if (ky_foreign_begins(path, 0, crash_magic, sizeof(crash_magic)))
		return 1;
	return ++search->others == OTHERS_MAX ? 2 : 0;
}

static int crash_look_at(void *data, const char *path, const char *name)
{
	struct crash_search *search = data;
	int ret;

	(void)name;
	if (!crash_is_directory(path, !search->depth))
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

/* The caller reports the first broken thing at the end. */
static int crash_keep_broken(struct crash_traces *traces)
{
	if (!traces->broken->code)
		*traces->broken = *traces->err;
	ky_error_clear(traces->err);
	return KYMO_OK;
}

/* LTTng names the buffers of a channel by CPUs: channel0_1. */
static bool crash_has_cpu(const char *name)
{
	const char *cpu = strrchr(name, '_');

	return cpu && cpu[1] && cpu[1 + strspn(cpu + 1, "0123456789")] == '\0';
}

/* The file has a buffer's name, but not a buffer's head, or cannot be read. */
static int crash_skip_stream(struct crash_traces *traces, const char *path)
{
	struct ky_foreign_file file = {0};
	int ret = ky_foreign_open(&file, path, -1, traces->err);

	if (!ret)
		ky_foreign_bad(&file, 0, "not a buffer of LTTng", traces->err);
	ky_foreign_close(&file);
	return crash_keep_broken(traces);
}

static int crash_add_stream(void *data, const char *path, const char *name)
{
	struct crash_traces *traces = data;
	struct crash crash = {.err = traces->err};
	struct ky_scratch_stream *stream;
	int ret;

	if (!crash_is_stream(path, name))
		return 0;
	if (!ky_foreign_begins(path, 0, crash_magic, sizeof(crash_magic)))
		return crash_has_cpu(name) ? crash_skip_stream(traces, path) : 0;
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
	free(crash.sub);
	/* What is damaged ends this CPU. */
	return ret == KYMO_E_FORMAT || ret == KYMO_E_LIMIT ? crash_keep_broken(traces) : ret;
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
	ret = ky_read_regular(AT_FDCWD, metadata, METADATA_BYTES, &traces->trace->metadata);
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
	if (!crash_is_directory(path, !traces->depth))
		return 0;
	if (access(path, R_OK | X_OK) < 0) {
		ky_error_errno(traces->err, errno, "cannot read the directory");
		ky_error_path(traces->err, path);
		return crash_keep_broken(traces);
	}
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
