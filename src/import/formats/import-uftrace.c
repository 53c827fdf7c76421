/* SPDX-License-Identifier: MIT */
/*
 * uftrace's data directory: entries and exits of functions of each thread, as LTTng's events of instrumented functions, and what the
 * process had mapped, so that functions get their names.
 *
 *	info		magic, byte order
 *	task.txt	threads and sessions
 *	TID.dat		records of 16 bytes: time; kind, depth, address
 *	sid-SID.map	/proc/PID/maps of a session
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/strbuf.h"
#include "import/common/foreign-file.h"
#include "import/common/import-internal.h"
#include "import/common/trace-maker.h"
#include "os/file.h"

#define INFO_BYTES     40
#define RECORD_BYTES   16
#define RECORD_MAGIC   5
#define DEPTH_MAX      1024
#define THREADS_MAX    65536u
#define TEXT_BYTES     ((size_t)64 << 20)
#define BUILD_ID_BYTES 20

enum { KIND_ENTRY, KIND_EXIT, KIND_LOST, KIND_EVENT };
enum { EVENT_ENTRY, EVENT_EXIT, EVENT_IMAGE, EVENT_BUILD_ID, N_EVENTS };

struct uftrace_thread {
	struct ky_foreign_file file;
	char *path;
	int64_t tid, pid;
	size_t order;  /* among the threads: of equal times, the first comes first */
	uint64_t at;   /* of the record at hand */
	uint64_t time; /* of it; UINT64_MAX: the file is over */
	uint64_t word;
	uint64_t callers[DEPTH_MAX];
};

struct uftrace {
	const char *path;
	bool swap;
	struct ky_maker *maker;
	int events[N_EVENTS];
	KY_VEC(struct uftrace_thread *) threads;
	struct ky_map tids; /* that task.txt names, with a file or without */
	uint64_t map_bytes; /* that were read: sessions can name one map again and again */
	struct kymo_error *err, *broken;
};

static const struct ky_maker_field context[] = {
	{.name = "vtid", .kind = KY_MAKER_S32},
	{.name = "vpid", .kind = KY_MAKER_S32},
};
static const struct ky_maker_field call_fields[] = {
	{.name = "addr", .kind = KY_MAKER_HEX},
	{.name = "call_site", .kind = KY_MAKER_HEX},
};
/* As LTTng's programs tell what they have loaded. */
static const struct ky_maker_field image_fields[] = {
	{.name = "baddr", .kind = KY_MAKER_HEX},       {.name = "memsz", .kind = KY_MAKER_U64},
	{.name = "path", .kind = KY_MAKER_TEXT},       {.name = "is_pic", .kind = KY_MAKER_U8},
	{.name = "has_build_id", .kind = KY_MAKER_U8},
};
static const struct ky_maker_field build_fields[] = {
	{.name = "baddr", .kind = KY_MAKER_HEX},
	{.name = "build_id", .kind = KY_MAKER_BYTES},
};

/* ---- records ------------------------------------------------------------------------------ */

/* The first thing that is broken is told at the end. */
static int import_uftrace_keep_broken(struct uftrace *uftrace)
{
	if (!uftrace->broken->code)
		*uftrace->broken = *uftrace->err;
	ky_error_clear(uftrace->err);
	return KYMO_OK;
}

/* A file that is missing says that there is nothing; one that cannot be read is told, and the others go on. */
static int import_uftrace_no_file(struct uftrace *uftrace)
{
	if (uftrace->err->code == KYMO_E_MEMORY)
		return KYMO_E_MEMORY;
	if (uftrace->err->code != KYMO_E_NOT_FOUND)
		return import_uftrace_keep_broken(uftrace);
	ky_error_clear(uftrace->err);
	return KYMO_OK;
}

/* What is broken of one thread ends that thread. */
static void import_uftrace_broken(struct uftrace *uftrace, struct uftrace_thread *thread)
{
	import_uftrace_keep_broken(uftrace);
	thread->time = UINT64_MAX;
}

static void import_uftrace_load(struct uftrace *uftrace, struct uftrace_thread *thread)
{
	const uint8_t *bytes;

	thread->time = UINT64_MAX;
	if (thread->at >= thread->file.size_bytes)
		return;
	bytes = ky_foreign_bytes(&thread->file, thread->at, RECORD_BYTES, "a record", uftrace->err);
	if (!bytes) {
		import_uftrace_broken(uftrace, thread);
		return;
	}
	thread->word = ky_foreign_u64(bytes + 8, uftrace->swap);
	if ((thread->word >> 3 & 7) != RECORD_MAGIC) {
		ky_foreign_bad(&thread->file, thread->at, "this is no record of uftrace",
			       uftrace->err);
		import_uftrace_broken(uftrace, thread);
		return;
	}
	thread->time = ky_foreign_u64(bytes, uftrace->swap);
	if (thread->time == UINT64_MAX)
		thread->time--;
}

static int import_uftrace_call(struct uftrace *uftrace, struct uftrace_thread *thread, bool is_exit)
{
	uint64_t depth = thread->word >> 6 & (DEPTH_MAX - 1), address = thread->word >> 16;

	thread->callers[depth] = address;
	ky_maker_begin(uftrace->maker, 0, uftrace->events[is_exit ? EVENT_EXIT : EVENT_ENTRY],
		       thread->time);
	ky_maker_number(uftrace->maker, (uint64_t)thread->tid);
	ky_maker_number(uftrace->maker, (uint64_t)thread->pid);
	ky_maker_number(uftrace->maker, address);
	ky_maker_number(uftrace->maker, depth ? thread->callers[depth - 1] : 0);
	return ky_maker_commit(uftrace->maker, uftrace->err);
}

/* The record at hand becomes an event; the next one comes. */
static int import_uftrace_take(struct uftrace *uftrace, struct uftrace_thread *thread)
{
	unsigned int kind = thread->word & 3;
	int ret = KYMO_OK;

	if (kind == KIND_ENTRY || kind == KIND_EXIT)
		ret = import_uftrace_call(uftrace, thread, kind == KIND_EXIT);
	else if (kind == KIND_LOST)
		ret = ky_maker_lost(uftrace->maker, 0, thread->word >> 16, uftrace->err);
	if (ret < 0)
		return ret;
	if (thread->word & 4) {
		ky_foreign_bad(&thread->file, thread->at,
			       "arguments follow, whose form only uftrace knows", uftrace->err);
		ky_error_hint(uftrace->err, "try uftrace record without -A, -R and -a, or uftrace "
					    "dump in Chrome's format, which Kymo reads, too");
		import_uftrace_broken(uftrace, thread);
		return KYMO_OK;
	}
	thread->at += RECORD_BYTES;
	import_uftrace_load(uftrace, thread);
	return KYMO_OK;
}

/* ---- in the order of time -------------------------------------------------------------------- */

static bool import_uftrace_is_before(const struct uftrace_thread *a, const struct uftrace_thread *b)
{
	return a->time != b->time ? a->time < b->time : a->order < b->order;
}

/* The threads are a binary heap: the one at @at goes down to where it belongs. */
static void import_uftrace_sink(struct uftrace *uftrace, size_t at)
{
	struct uftrace_thread **heap = uftrace->threads.data, *thread = heap[at];
	size_t n = uftrace->threads.len;

	for (size_t child; (child = 2 * at + 1) < n; at = child) {
		if (child + 1 < n && import_uftrace_is_before(heap[child + 1], heap[child]))
			child++;
		if (import_uftrace_is_before(thread, heap[child]))
			break;
		heap[at] = heap[child];
	}
	heap[at] = thread;
}

/* The time at which another thread than the first is next. */
static uint64_t import_uftrace_second(const struct uftrace *uftrace)
{
	uint64_t ns = UINT64_MAX;

	for (size_t i = 1; i < 3 && i < uftrace->threads.len; i++)
		if (uftrace->threads.data[i]->time < ns)
			ns = uftrace->threads.data[i]->time;
	return ns;
}

/* The thread that is first, until another one is. */
static int import_uftrace_run(struct uftrace *uftrace)
{
	int ret = KYMO_OK;

	for (size_t i = uftrace->threads.len / 2; i-- > 0;)
		import_uftrace_sink(uftrace, i);
	while (uftrace->threads.len && uftrace->threads.data[0]->time != UINT64_MAX) {
		struct uftrace_thread *first = uftrace->threads.data[0];
		uint64_t second_ns = import_uftrace_second(uftrace);

		while (ret == KYMO_OK && first->time <= second_ns && first->time != UINT64_MAX)
			ret = import_uftrace_take(uftrace, first);
		if (ret < 0)
			return ret;
		import_uftrace_sink(uftrace, 0);
	}
	return KYMO_OK;
}

/* ---- task.txt, maps ------------------------------------------------------------------------- */

/* A byte 0, as a crash of the machine leaves it, would end the text: it ends a line instead, and is told. */
static void import_uftrace_end_lines(struct uftrace *uftrace, const char *path,
				     struct ky_strbuf *text)
{
	bool told = false;

	for (size_t i = 0; i < text->len; i++) {
		if (text->data[i])
			continue;
		text->data[i] = '\n';
		if (told)
			continue;
		told = true;
		ky_error_set(uftrace->err, KYMO_E_FORMAT, "a byte 0 in the text");
		ky_error_path(uftrace->err, path);
		ky_error_offset(uftrace->err, i);
		import_uftrace_keep_broken(uftrace);
	}
}

static int import_uftrace_text(struct uftrace *uftrace, const char *path, struct ky_strbuf *text)
{
	int got = ky_read_regular(AT_FDCWD, path, TEXT_BYTES, text);

	if (got == 0) {
		import_uftrace_end_lines(uftrace, path, text);
		return KYMO_OK;
	}
	if (got == -EINVAL)
		ky_error_set(uftrace->err, KYMO_E_IO, "cannot read: not a regular file");
	else if (got == -EFBIG)
		ky_error_set(uftrace->err, KYMO_E_LIMIT, "the file has more than 64 MiB");
	else
		ky_error_errno(uftrace->err, -got, "cannot read");
	ky_error_path(uftrace->err, path);
	return uftrace->err->code;
}

/* "tid=31180" in the line; -1: it has none. */
static int64_t import_uftrace_word(const char *line, const char *name)
{
	size_t len = strlen(name), line_len = strcspn(line, "\n");

	for (size_t i = 0; i + len < line_len; i++) {
		if (line[i] == ' ' && strncmp(line + i + 1, name, len) == 0 &&
		    line[i + 1 + len] == '=')
			return strtoll(line + i + 2 + len, NULL, 10);
	}
	return -1;
}

static void import_uftrace_free_thread(struct uftrace_thread *thread)
{
	ky_foreign_close(&thread->file);
	free(thread->path);
	free(thread);
}

static int import_uftrace_open_thread(struct uftrace *uftrace, const char *path, int64_t tid,
				      int64_t pid)
{
	struct uftrace_thread *thread = calloc(1, sizeof(*thread));

	if (!thread || ky_vec_push(&uftrace->threads, thread) < 0) {
		free(thread);
		return ky_error_nomem(uftrace->err);
	}
	thread->tid = tid;
	thread->pid = pid;
	thread->order = uftrace->threads.len;
	thread->time = UINT64_MAX;
	thread->file.fd = -1;
	thread->path = strdup(path);
	if (!thread->path)
		return ky_error_nomem(uftrace->err);
	if (ky_foreign_open(&thread->file, thread->path, -1, uftrace->err) == 0) {
		import_uftrace_load(uftrace, thread);
		return KYMO_OK;
	}
	/* A thread that called nothing has no file. */
	uftrace->threads.len--;
	import_uftrace_free_thread(thread);
	return import_uftrace_no_file(uftrace);
}

static int import_uftrace_add_thread(struct uftrace *uftrace, int64_t tid, int64_t pid)
{
	char path[PATH_MAX];

	if (ky_map_get(&uftrace->tids, (uint64_t)tid))
		return KYMO_OK;
	if (ky_map_set(&uftrace->tids, (uint64_t)tid, uftrace) < 0)
		return ky_error_nomem(uftrace->err);
	if (snprintf(path, sizeof(path), "%s/%" PRId64 ".dat", uftrace->path, tid) >=
	    (int)sizeof(path)) {
		ky_error_set(uftrace->err, KYMO_E_INVALID, "the path is too long");
		ky_error_path(uftrace->err, uftrace->path);
		return import_uftrace_keep_broken(uftrace);
	}
	if (uftrace->threads.len >= THREADS_MAX) {
		if (access(path, F_OK) < 0)
			return KYMO_OK;
		ky_error_set(uftrace->err, KYMO_E_LIMIT,
			     "more than %u threads: the others are missing", THREADS_MAX);
		ky_error_path(uftrace->err, path);
		return import_uftrace_keep_broken(uftrace);
	}
	return import_uftrace_open_thread(uftrace, path, tid, pid);
}

static void import_uftrace_begin_event(struct uftrace *uftrace, int event, int64_t pid, uint64_t ns)
{
	ky_maker_begin(uftrace->maker, 0, uftrace->events[event], ns);
	ky_maker_number(uftrace->maker, (uint64_t)pid);
	ky_maker_number(uftrace->maker, (uint64_t)pid);
}

/* Hexadecimal digits as bytes. */
static void import_uftrace_bytes(struct uftrace *uftrace, const char *text, const char *end)
{
	uint8_t bytes[BUILD_ID_BYTES];
	size_t n = 0;

	for (; n < sizeof(bytes) && end - text >= 2; n++, text += 2) {
		const char digits[3] = {text[0], text[1], '\0'};

		bytes[n] = (uint8_t)strtoul(digits, NULL, 16);
	}
	ky_maker_bytes(uftrace->maker, bytes, n);
}

/* "55e6e6f7e000-55e6e6f83000 r-xp 00000000 00:00 0   /tmp/p build-id:20cd..." */
static int import_uftrace_map(struct uftrace *uftrace, const char *line, int64_t pid,
			      uint64_t begin_ns)
{
	size_t len = strcspn(line, "\n");
	const char *end = line + len, *path = memchr(line, '/', len), *id, *path_end;
	uint64_t begin, stop, offset;
	char mode[8] = "", head[128];
	int ret;

	/* sscanf() looks at the whole text, of which this is a line. */
	(void)snprintf(head, sizeof(head), "%.*s", (int)(len < 127 ? len : 127), line);
	if (!path ||
	    sscanf(head, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64, &begin, &stop, mode, &offset) !=
		    4 ||
	    mode[2] != 'x' || stop <= begin)
		return KYMO_OK;
	id = memmem(path, (size_t)(end - path), " build-id:", 10);
	path_end = id ? id : end;
	while (path_end > path && isspace((unsigned char)path_end[-1]))
		path_end--;
	import_uftrace_begin_event(uftrace, EVENT_IMAGE, pid, begin_ns);
	ky_maker_number(uftrace->maker, begin);
	ky_maker_number(uftrace->maker, stop - begin);
	ky_maker_text(uftrace->maker, path, (size_t)(path_end - path));
	ky_maker_number(uftrace->maker, 1);
	ky_maker_number(uftrace->maker, id != NULL);
	ret = ky_maker_commit(uftrace->maker, uftrace->err);
	if (ret < 0 || !id)
		return ret;
	import_uftrace_begin_event(uftrace, EVENT_BUILD_ID, pid, begin_ns);
	ky_maker_number(uftrace->maker, begin);
	import_uftrace_bytes(uftrace, id + 10, end);
	return ky_maker_commit(uftrace->maker, uftrace->err);
}

static int import_uftrace_images(struct uftrace *uftrace, const char *text, int64_t pid,
				 uint64_t begin_ns)
{
	int ret = KYMO_OK;

	for (const char *at = text; *at && ret == KYMO_OK;) {
		ret = import_uftrace_map(uftrace, at, pid, begin_ns);
		at += strcspn(at, "\n");
		at += strspn(at, "\n");
	}
	return ret;
}

static int import_uftrace_maps(struct uftrace *uftrace, const char *line)
{
	size_t line_len = strcspn(line, "\n");
	const char *sid = memmem(line, line_len, " sid=", 5);
	const char *stamp = memmem(line, line_len, "timestamp=", 10);
	size_t len = sid ? strspn(sid + 5, "0123456789abcdef") : 0;
	struct ky_strbuf text = KY_STRBUF_INIT;
	uint64_t s = 0, ns = 0;
	char path[PATH_MAX], times[64];
	int ret = KYMO_OK;

	(void)snprintf(times, sizeof(times), "%.*s", 63, stamp ? stamp : "");
	if (!len || len > 32 || !stamp ||
	    sscanf(times, "timestamp=%" SCNu64 ".%" SCNu64, &s, &ns) != 2 || s > INT32_MAX ||
	    snprintf(path, sizeof(path), "%s/sid-%.*s.map", uftrace->path, (int)len, sid + 5) >=
		    (int)sizeof(path))
		return KYMO_OK;
	ret = import_uftrace_text(uftrace, path, &text);
	uftrace->map_bytes += text.len;
	if (ret < 0)
		ret = import_uftrace_no_file(uftrace);
	else if (uftrace->map_bytes > 4 * TEXT_BYTES)
		ret = ky_error_set(uftrace->err, KYMO_E_LIMIT,
				   "%s: the maps of sessions have more than 256 MiB",
				   uftrace->path);
	else
		ret = import_uftrace_images(uftrace, ky_strbuf_text(&text),
					    import_uftrace_word(line, "pid"),
					    s * 1000000000 + ns % 1000000000);
	ky_strbuf_fini(&text);
	return ret;
}

static int import_uftrace_tasks(struct uftrace *uftrace)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	char path[PATH_MAX];
	int ret;

	if (snprintf(path, sizeof(path), "%s/task.txt", uftrace->path) >= (int)sizeof(path))
		return ky_error_set(uftrace->err, KYMO_E_INVALID, "the path is too long");
	ret = import_uftrace_text(uftrace, path, &text);
	for (const char *at = ky_strbuf_text(&text); ret == KYMO_OK && *at;) {
		int64_t pid = import_uftrace_word(at, "pid"), tid = import_uftrace_word(at, "tid");

		if (strncmp(at, "SESS ", 5) == 0)
			ret = import_uftrace_maps(uftrace, at);
		else if (strncmp(at, "TASK ", 5) == 0 && tid > 0 && tid <= INT32_MAX)
			ret = import_uftrace_add_thread(uftrace, tid, pid);
		else if (strncmp(at, "FORK ", 5) == 0 && pid > 0 && pid <= INT32_MAX)
			ret = import_uftrace_add_thread(uftrace, pid, pid);
		at += strcspn(at, "\n");
		at += strspn(at, "\n");
	}
	ky_strbuf_fini(&text);
	return ret;
}

/* ---- the directory -------------------------------------------------------------------------- */

static int import_uftrace_begin(struct uftrace *uftrace, struct ky_packet_store *store)
{
	const struct ky_maker_about about = {
		.path = "uftrace",
		.name = uftrace->path,
		.domain = "ust",
		.tracer = "uftrace",
		.clock = "monotonic",
		.description = "CLOCK_MONOTONIC: since the machine was started",
		.context = context,
		.n_context = 2,
		.reorders = true,
	};
	int ret = ky_maker_open(&uftrace->maker, store, &about, uftrace->err);

	if (ret < 0)
		return ret;
	ret = uftrace->events[EVENT_ENTRY] = ky_maker_event(
		uftrace->maker, "lttng_ust_cyg_profile:func_entry", call_fields, 2, uftrace->err);
	if (ret >= 0)
		ret = uftrace->events[EVENT_EXIT] =
			ky_maker_event(uftrace->maker, "lttng_ust_cyg_profile:func_exit",
				       call_fields, 2, uftrace->err);
	if (ret >= 0)
		ret = uftrace->events[EVENT_IMAGE] =
			ky_maker_event(uftrace->maker, "lttng_ust_statedump:bin_info", image_fields,
				       5, uftrace->err);
	if (ret >= 0)
		ret = uftrace->events[EVENT_BUILD_ID] =
			ky_maker_event(uftrace->maker, "lttng_ust_statedump:build_id", build_fields,
				       2, uftrace->err);
	return ret < 0 ? ret : KYMO_OK;
}

static void import_uftrace_fini(struct uftrace *uftrace)
{
	ky_vec_foreach(&uftrace->threads, thread)
		import_uftrace_free_thread(*thread);
	ky_vec_fini(&uftrace->threads);
	ky_map_fini(&uftrace->tids);
}

static int import_uftrace_convert(struct uftrace *uftrace, struct ky_packet_store *store)
{
	struct ky_maker *maker;
	int ret = import_uftrace_begin(uftrace, store);

	if (ret == KYMO_OK)
		ret = import_uftrace_tasks(uftrace);
	if (ret == KYMO_OK)
		ret = import_uftrace_run(uftrace);
	maker = uftrace->maker;
	uftrace->maker = NULL;
	if (ret == KYMO_OK)
		return ky_maker_close(maker, uftrace->err);
	(void)ky_maker_close(maker, NULL);
	return ret;
}

static int import_uftrace_open(struct ky_import *imports, const char *path,
			       const struct ky_log *log, struct kymo_error *err)
{
	struct ky_scratch_trace *scratch = ky_import_new_trace(imports);
	struct kymo_error own = {0}, broken = {0};
	struct uftrace uftrace = {.path = path, .err = &own, .broken = &broken};
	struct ky_packet_store *store;
	char info[PATH_MAX];
	int ret = scratch ? ky_scratch_store_open(scratch, &store, &own) : ky_error_nomem(&own);

	(void)log;
	if (ret == KYMO_OK) {
		/* The byte order: 1 is little. */
		(void)snprintf(info, sizeof(info), "%s/info", path);
		uftrace.swap = ky_foreign_begins(info, 14, "\2", 1) ==
			       (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
		ky_file_raise_limit();
		ret = import_uftrace_convert(&uftrace, store);
		ky_store_free(store);
	}
	import_uftrace_fini(&uftrace);
	if (ret == KYMO_OK)
		ret = ky_import_add_place(imports, path, "uftrace", scratch, &own);
	if (ret == KYMO_OK && broken.code)
		ky_import_broken(imports, &broken);
	if (ret < 0 && err)
		*err = own;
	return ret;
}

static bool import_uftrace_is(const char *path)
{
	char info[PATH_MAX];

	return snprintf(info, sizeof(info), "%s/info", path) < (int)sizeof(info) &&
	       ky_foreign_begins(info, 0, "Ftrace!", 8);
}

const struct ky_import_format ky_import_uftrace = {
	.name = "uftrace",
	.probe = import_uftrace_is,
	.open = import_uftrace_open,
};
