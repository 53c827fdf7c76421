/* SPDX-License-Identifier: MIT */
#include "view/session/programs.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "os/child.h"
#include "os/file.h"
#include "view/answers/answer-internal.h"
#include "view/answers/query.h"

#define WAIT_NS	      50000000
#define MESSAGE_BYTES ((size_t)300)
#define OWN_MAX_BYTES (1u << 20)

static pthread_mutex_t programs_turn = PTHREAD_MUTEX_INITIALIZER;

static int programs_wait(const struct ky_view_stop *stop, struct kymo_error *err)
{
	const struct timespec some = {.tv_nsec = WAIT_NS};

	while (pthread_mutex_trylock(&programs_turn) != 0) {
		if (stop->is_over(stop->data))
			return ky_error_set(err, KYMO_E_INTERRUPTED,
					    "the client has closed the connection");
		nanosleep(&some, NULL);
	}
	return KYMO_OK;
}

/* The last line that is no blank one, and only its begin. */
static void programs_add_last_line(struct ky_strbuf *out, const struct ky_strbuf *text)
{
	const char *begin = ky_strbuf_text(text), *end = begin + text->len, *line;

	while (end > begin && (unsigned char)end[-1] <= ' ')
		end--;
	for (line = end; line > begin && line[-1] != '\n';)
		line--;
	ky_strbuf_add(out, line,
		      (size_t)(end - line) < MESSAGE_BYTES ? (size_t)(end - line) : MESSAGE_BYTES);
}

static int programs_failed(const char *name, int status, const struct ky_strbuf *out,
			   const struct ky_strbuf *errors, struct kymo_error *err)
{
	struct ky_strbuf message = KY_STRBUF_INIT;

	if (!ky_program_error(out, &message))
		programs_add_last_line(&message, errors);
	ky_error_set(err, KYMO_E_UNSUPPORTED, "%s has failed (status %d)%s%s", name, status,
		     message.len ? ": " : "", ky_strbuf_text(&message));
	ky_strbuf_fini(&message);
	return KYMO_E_UNSUPPORTED;
}

static int programs_run(const char *const *argv, const struct ky_view_stop *stop,
			struct ky_strbuf *out, struct kymo_error *err)
{
	const struct ky_child_limits limits = {KY_PROGRAM_MAX_BYTES, KY_PROGRAM_MAX_NS,
					       stop->is_over, stop->data};
	struct ky_strbuf errors = KY_STRBUF_INIT;
	int ret = ky_child_run(argv, &limits, out, &errors, err);

	if (ret > 0)
		ret = programs_failed(argv[0], ret, out, &errors, err);
	ky_strbuf_fini(&errors);
	return ret;
}

static int programs_report(const struct ky_view_programs *programs,
			   const struct ky_view_request *request, const struct ky_view_stop *stop,
			   struct ky_strbuf *out, struct kymo_error *err)
{
	struct ky_strbuf metadata = KY_STRBUF_INIT, results = KY_STRBUF_INIT;
	const char *name = programs->names[request->row];
	const char *about[] = {name, "--metadata", NULL};
	char begin[24], end[24];
	const char *words[] = {name, "--begin", begin, "--end", end, programs->trace, NULL};
	int ret;

	snprintf(begin, sizeof(begin), "%lld", (long long)request->begin_ns);
	snprintf(end, sizeof(end), "%lld", (long long)request->end_ns);
	ret = programs_run(about, stop, &metadata, err);
	if (ret == KYMO_OK)
		ret = programs_run(words, stop, &results, err);
	if (ret == KYMO_OK)
		ret = ky_program_report(name, &metadata, &results, out, err);
	ky_strbuf_fini(&metadata);
	ky_strbuf_fini(&results);
	return ret;
}

/* A report of the user's own. */
static int programs_own(const char *path, struct ky_view *view,
			const struct ky_view_request *request, const struct ky_view_stop *stop,
			struct ky_strbuf *out, struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	int ret = ky_read_regular(AT_FDCWD, path, OWN_MAX_BYTES, &text);

	if (ret < 0) {
		ky_error_errno(err, -ret, "cannot read");
		ky_error_path(err, path);
		ret = KYMO_E_UNSUPPORTED;
		err->code = ret;
	} else {
		ret = ky_view_statements(view, path, ky_strbuf_text(&text), request, stop, out,
					 err);
	}
	ky_strbuf_fini(&text);
	return ret;
}

/* ["lttng-cputop-mi", ..., "slow-calls.sql"]: without their directories. */
static void programs_put_list(const struct ky_view_programs *programs, struct ky_strbuf *out)
{
	ky_strbuf_adds(out, "{\"programs\": [");
	for (size_t i = 0; i < programs->n + programs->n_own; i++) {
		const char *name =
			i < programs->n ? programs->names[i] : programs->own[i - programs->n];
		const char *slash = strrchr(name, '/');

		ky_strbuf_adds(out, i ? ", " : "");
		ky_view_put_text(out, slash ? slash + 1 : name);
	}
	ky_strbuf_adds(out, "]}\n");
}

int ky_view_programs_answer(const struct ky_view_programs *programs, struct ky_view *view,
			    const struct ky_view_request *request, const struct ky_view_stop *stop,
			    struct ky_strbuf *out, struct kymo_error *err)
{
	int ret;

	if (request->what == KY_VIEW_PROGRAMS) {
		programs_put_list(programs, out);
		return KYMO_OK;
	}
	if (request->row >= programs->n + programs->n_own)
		return ky_error_set(err, KYMO_E_NOT_FOUND, "there is no such program");
	if (request->row >= programs->n)
		return programs_own(programs->own[request->row - programs->n], view, request, stop,
				    out, err);
	ret = programs_wait(stop, err);
	if (ret < 0)
		return ret;
	ret = programs_report(programs, request, stop, out, err);
	pthread_mutex_unlock(&programs_turn);
	return ret;
}
