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
#include <errno.h>
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
#include "import/uftrace/uftrace-text.h"
#include "os/file.h"

#define INFO_BYTES   40
#define RECORD_BYTES 16
#define RECORD_MAGIC 5
#define THREADS_MAX  65536u

enum { KIND_ENTRY, KIND_EXIT, KIND_LOST, KIND_EVENT };

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

/* The name of a function, by which reports know it where its file is missing. */
static const struct ky_maker_field function_fields[] = {
	{.name = "begin", .kind = KY_MAKER_HEX},
	{.name = "size", .kind = KY_MAKER_U64},
	{.name = "name", .kind = KY_MAKER_TEXT},
};

/* ---- records ------------------------------------------------------------------------------ */

/* What is broken of one thread ends that thread. */
static void import_uftrace_broken(struct uftrace *uftrace, struct uftrace_thread *thread)
{
	ky_uftrace_keep_broken(uftrace);
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
	uint64_t depth = thread->word >> 6 & (UFTRACE_DEPTH_MAX - 1), address = thread->word >> 16;

	int ret = is_exit ? KYMO_OK
			  : ky_uftrace_names_tell(uftrace, thread->tid, thread->pid, address,
						  thread->time);

	if (ret < 0)
		return ret;
	thread->callers[depth] = address;
	ky_maker_begin(uftrace->maker, 0, uftrace->events[is_exit ? UFTRACE_EXIT : UFTRACE_ENTRY],
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

/* ---- task.txt ------------------------------------------------------------------------------- */

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
	return ky_uftrace_no_file(uftrace);
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
		return ky_uftrace_keep_broken(uftrace);
	}
	if (uftrace->threads.len >= THREADS_MAX) {
		if (access(path, F_OK) < 0)
			return KYMO_OK;
		ky_error_set(uftrace->err, KYMO_E_LIMIT,
			     "more than %u threads: the others are missing", THREADS_MAX);
		ky_error_path(uftrace->err, path);
		return ky_uftrace_keep_broken(uftrace);
	}
	return import_uftrace_open_thread(uftrace, path, tid, pid);
}

static int import_uftrace_tasks(struct uftrace *uftrace)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	char path[PATH_MAX];
	int ret;

	if (snprintf(path, sizeof(path), "%s/task.txt", uftrace->path) >= (int)sizeof(path))
		return ky_error_set(uftrace->err, KYMO_E_INVALID, "the path is too long");
	ret = ky_uftrace_text(uftrace, path, &text);
	for (const char *at = ky_strbuf_text(&text); ret == KYMO_OK && *at;) {
		int64_t pid = ky_uftrace_word(at, "pid"), tid = ky_uftrace_word(at, "tid");

		if (strncmp(at, "SESS ", 5) == 0)
			ret = ky_uftrace_maps(uftrace, at);
		else if (strncmp(at, "TASK ", 5) == 0 && tid > 0 && tid <= INT32_MAX)
			ret = import_uftrace_add_thread(uftrace, tid, pid);
		else if (strncmp(at, "FORK ", 5) == 0 && pid > 0 && pid <= INT32_MAX)
			ret = import_uftrace_add_thread(uftrace, pid, pid);
		at += strcspn(at, "\n");
		at += strspn(at, "\n");
	}
	ky_uftrace_free_maps(uftrace);
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
	ret = uftrace->events[UFTRACE_ENTRY] = ky_maker_event(
		uftrace->maker, "lttng_ust_cyg_profile:func_entry", call_fields, 2, uftrace->err);
	if (ret >= 0)
		ret = uftrace->events[UFTRACE_EXIT] =
			ky_maker_event(uftrace->maker, "lttng_ust_cyg_profile:func_exit",
				       call_fields, 2, uftrace->err);
	if (ret >= 0)
		ret = uftrace->events[UFTRACE_IMAGE] =
			ky_maker_event(uftrace->maker, "lttng_ust_statedump:bin_info", image_fields,
				       5, uftrace->err);
	if (ret >= 0)
		ret = uftrace->events[UFTRACE_BUILD_ID] =
			ky_maker_event(uftrace->maker, "lttng_ust_statedump:build_id", build_fields,
				       2, uftrace->err);
	if (ret >= 0)
		ret = uftrace->events[UFTRACE_FUNCTION] = ky_maker_event(
			uftrace->maker, "uftrace:function", function_fields, 3, uftrace->err);
	return ret < 0 ? ret : KYMO_OK;
}

static void import_uftrace_fini(struct uftrace *uftrace)
{
	ky_vec_foreach(&uftrace->threads, thread)
		import_uftrace_free_thread(*thread);
	ky_vec_fini(&uftrace->threads);
	ky_map_fini(&uftrace->tids);
	ky_uftrace_names_fini(&uftrace->names);
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

/* The byte order: 1 is little. */
static int import_uftrace_info(struct uftrace *uftrace)
{
	struct ky_foreign_file file = {0};
	char info[PATH_MAX];
	int ret;

	(void)snprintf(info, sizeof(info), "%s/info", uftrace->path);
	ret = ky_foreign_open(&file, info, -1, uftrace->err);
	ky_foreign_close(&file);
	uftrace->swap =
		ky_foreign_begins(info, 14, "\2", 1) == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
	return ret;
}

static int import_uftrace_open(struct ky_import *imports, const char *path,
			       const struct ky_log *log, struct kymo_error *err)
{
	struct ky_scratch_trace *scratch = ky_import_new_trace(imports);
	struct kymo_error own = {0}, broken = {0};
	struct uftrace uftrace = {.path = path, .err = &own, .broken = &broken};
	struct ky_packet_store *store;
	int ret = scratch ? import_uftrace_info(&uftrace) : ky_error_nomem(&own);

	(void)log;
	if (ret == KYMO_OK)
		ret = ky_scratch_store_open(scratch, &store, &own);
	if (ret == KYMO_OK) {
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

/* Only the reason why says what to do about a directory of uftrace whose info cannot be read. */
static bool import_uftrace_is_locked(const char *path, const char *info)
{
	char tasks[PATH_MAX];

	return access(info, R_OK) < 0 && errno != ENOENT && errno != ENOTDIR &&
	       snprintf(tasks, sizeof(tasks), "%s/task.txt", path) < (int)sizeof(tasks) &&
	       access(tasks, F_OK) == 0;
}

static bool import_uftrace_is(const char *path)
{
	char info[PATH_MAX];

	return snprintf(info, sizeof(info), "%s/info", path) < (int)sizeof(info) &&
	       (ky_foreign_begins(info, 0, "Ftrace!", 8) || import_uftrace_is_locked(path, info));
}

const struct ky_import_format ky_import_uftrace = {
	.name = "uftrace",
	.probe = import_uftrace_is,
	.open = import_uftrace_open,
};
