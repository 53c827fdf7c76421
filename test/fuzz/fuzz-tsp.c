/* SPDX-License-Identifier: MIT */
/*
 * Requests of the Trace Server Protocol, as any program of the user can send them, and their answers from a small kernel trace.
 * Whatever the request is: parameters are within their limits, the answer is one JSON value, and its status is one of the protocol's.
 *
 * The input is "METHOD TARGET", a line feed, and the body; '@' in the target, and "@" as a text of the body, stand for the
 * experiment's UUID, '#' for the trace's.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/utf8.h"
#include "ctf/json/json.h"
#include "small-trace.h"
#include "view/tsp/tsp-internal.h"
#include "view/tsp/tsp-pattern.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct trace {
	char directory[64];
	struct ky_trace_set set;
	struct ky_view *view;
};

/* ---- the trace --------------------------------------------------------------------------- */

static struct trace trace;

/* Bookmarks of an input are none of the next one's. */
static void remove_notes(void)
{
	char path[128];
	const struct dirent *entry;
	DIR *directory;

	snprintf(path, sizeof(path), "%s/kymo/notes", trace.directory);
	directory = opendir(path);
	while (directory && (entry = readdir(directory))) {
		if (entry->d_name[0] != '.')
			unlinkat(dirfd(directory), entry->d_name, 0);
	}
	if (directory)
		closedir(directory);
}

static void remove_trace(void)
{
	char path[128];

	remove_notes();
	snprintf(path, sizeof(path), "%s/kymo/notes", trace.directory);
	rmdir(path);
	snprintf(path, sizeof(path), "%s/kymo", trace.directory);
	rmdir(path);

	ky_view_free(trace.view);
	ky_trace_set_close(&trace.set);
	snprintf(path, sizeof(path), "%s/metadata", trace.directory);
	unlink(path);
	snprintf(path, sizeof(path), "%s/stream", trace.directory);
	unlink(path);
	rmdir(trace.directory);
}

/* With its state history, which stays in memory. */
static void make_trace(void)
{
	const char *const paths[] = {trace.directory};
	struct ky_tsp_engine engine = {.n_users = 1};
	struct kymo_error err;

	strcpy(trace.directory, "/tmp/kymo-fuzz-tsp-XXXXXX");
	setenv("XDG_CACHE_HOME", "/nonexistent/cache", 1);
	if (!mkdtemp(trace.directory))
		abort();
	setenv("XDG_DATA_HOME", trace.directory, 1);
	small_trace_write(trace.directory);
	if (ky_trace_set_open(&trace.set, paths, 1, NULL, &err) < 0 ||
	    ky_view_new(&trace.set, &trace.view, &err) < 0 || atexit(remove_trace) != 0)
		abort();
	engine.view = trace.view;
	while (!ky_tsp_history_is_over(&engine, engine.view))
		usleep(1000);
	if (trace.view->begin_ns == INT64_MIN)
		abort();
}

/* ---- requests ---------------------------------------------------------------------------- */

static bool is_over(void *data)
{
	(void)data;
	return false;
}

static void check_text(const char *text, size_t max)
{
	size_t len = text ? strnlen(text, max) : 0;

	if (len == max)
		abort();
	for (size_t i = 0, n; i < len; i += n) {
		n = ky_utf8_length((const uint8_t *)text + i, len - i);
		if (!n)
			abort();
	}
}

static void check_request(const struct ky_tsp_request *request)
{
	check_text(request->uri, KY_TSP_PATH_BYTES);
	check_text(request->name, KY_TSP_NAME_BYTES);
	check_text(request->filter, KY_TSP_FILTER_BYTES);
	check_text(request->output, KY_TSP_OUTPUT_BYTES);
	if (request->end_ns < request->begin_ns || request->n_times > KY_TSP_TIMES ||
	    request->count > KY_TSP_LINES || request->element_duration_ns < 0 ||
	    strchr(request->output, '/'))
		abort();
	for (size_t i = 0; i < request->traces.len; i++)
		check_text(request->traces.data[i], KY_TSP_UUID_BYTES);
}

static void check_answer(unsigned int status, const struct ky_strbuf *out)
{
	static const unsigned int good[] = {200, 400, 403, 404, 405, 406, 409};
	struct ky_json_reader reader = {.line = 1, .depth_left = 64};
	struct ky_arena arena;
	struct kymo_error err;
	bool is_good = false;

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		is_good |= status == good[i];
	ky_arena_init(&arena);
	ky_error_clear(&err);
	reader.arena = &arena;
	reader.err = &err;
	reader.at = reader.line_begin = ky_strbuf_text(out);
	reader.end = reader.at + out->len;
	if (!is_good || !ky_json_read(&reader) || ky_json_more(&reader))
		abort();
	ky_arena_fini(&arena);
}

static void try_request(struct ky_tsp *tsp, const char *method, const char *target,
			const char *body, size_t len)
{
	static const struct ky_view_stop stop = {is_over, NULL};
	struct ky_strbuf out = KY_STRBUF_INIT;
	struct ky_tsp_request request;
	struct ky_arena arena;
	struct kymo_error err;
	unsigned int status;
	int ret;

	ky_error_clear(&err);
	ky_arena_init(&arena);
	ret = ky_tsp_request_parse(method, target, body, len, &arena, &request, &err);
	if (ret < 0) {
		if (ret != err.code || !memchr(err.message, 0, sizeof(err.message)))
			abort();
		status = ky_tsp_put_error(&out, &err);
	} else {
		check_request(&request);
		status = ky_tsp_answer(tsp, &request, &stop, &out);
	}
	check_answer(status, &out);
	ky_strbuf_fini(&out);
	ky_arena_fini(&arena);
}

/* ---- inputs ------------------------------------------------------------------------------ */

static void put_uuids(struct ky_strbuf *out, const struct ky_tsp *tsp, const char *text, size_t len,
		      bool is_body)
{
	for (size_t i = 0; i < len; i++) {
		bool is_alone =
			!is_body || (i && i + 1 < len && text[i - 1] == '"' && text[i + 1] == '"');

		if (text[i] == '@' && is_alone)
			ky_strbuf_adds(out, tsp->experiments.data[0]->uuid);
		else if (text[i] == '#' && is_alone)
			ky_strbuf_adds(out, tsp->traces.data[0]->uuid);
		else if (text[i] || is_body)
			ky_strbuf_addc(out, text[i]);
	}
}

/* What the search in tables may find is in the text. */
static void try_pattern(const char *text)
{
	struct ky_tsp_pattern *pattern;

	if (ky_tsp_pattern_new(text, &pattern, NULL) < 0)
		return;
	ky_tsp_pattern_finds(pattern, "", 0);
	if (!strpbrk(text, "\\.[](){}|*+?^$") && !ky_tsp_pattern_finds(pattern, text, strlen(text)))
		abort();
	ky_tsp_pattern_finds(pattern, "sched_switch aaaaaaaaaaaaaaaaaaaaaaaaab", 39);
	ky_tsp_pattern_free(pattern);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *const paths[] = {trace.directory};
	const char *text = (const char *)data, *space, *end;
	struct ky_strbuf target = KY_STRBUF_INIT, body = KY_STRBUF_INIT;
	struct ky_tsp_source source = {.paths = paths, .n_paths = 1};
	struct ky_tsp *tsp;
	char method[16];

	if (!trace.view)
		make_trace();
	source.view = trace.view;
	space = memchr(text, ' ', size < 16 ? size : 16);
	end = space ? memchr(space, '\n', (size_t)(text + size - space)) : NULL;
	if (!end || size > 65536)
		return 0;
	snprintf(method, sizeof(method), "%.*s", (int)(space - text), text);
	if (ky_tsp_new(&source, &tsp, NULL) < 0)
		abort();
	put_uuids(&target, tsp, space + 1, (size_t)(end - space - 1), false);
	put_uuids(&body, tsp, end + 1, (size_t)(text + size - end - 1), true);
	try_request(tsp, method, ky_strbuf_text(&target), ky_strbuf_text(&body), body.len);
	try_pattern(ky_strbuf_text(&body));
	if (ky_tsp_is_host(ky_strbuf_text(&target), 80) &&
	    ky_tsp_is_origin(ky_strbuf_text(&target), NULL, 0))
		abort();
	ky_tsp_free(tsp);
	if (strstr(ky_strbuf_text(&target), "bookmarks"))
		remove_notes();
	ky_strbuf_fini(&target);
	ky_strbuf_fini(&body);
	return 0;
}
