/* SPDX-License-Identifier: MIT */
#include "import/logs/log-chrome.h"

#include <stdlib.h>

#include "base/error.h"

/* Threads and processes beyond have no names. */
#define NAMES_MAX 65536
/* So many durations are open at once; the ends of others have the names that the file gives them. */
#define OPEN_MAX 65536

struct chrome_open {
	struct chrome_open *outer;
	char name[];
};

struct chrome_thread {
	struct chrome_open *innermost;
	uint64_t n_unkept; /* begins within the innermost one: too many are open */
};

struct chrome_threads {
	/* Hash of the ids -> name, in the log's arena. Metadata may stand anywhere in the file. */
	struct ky_map names, processes;
	struct ky_map threads; /* hash of the ids -> struct chrome_thread, in the log's arena */
	size_t n_names, n_open;
};

/* ---- members -------------------------------------------------------------------------- */

const char *ky_chrome_text(json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

static bool chrome_threads_number(const char *text, int64_t *value)
{
	char *end;

	*value = strtoll(text, &end, 10);
	return *text && !*end;
}

int64_t ky_chrome_id(json_t *object, const char *name)
{
	json_t *member = json_object_get(object, name);
	const char *text = json_string_value(member);
	double real = json_real_value(member);
	int64_t value;

	if (!text && json_is_real(member))
		return real > -9e18 && real < 9e18 ? (int64_t)real : 0;
	if (!text)
		return json_integer_value(member);
	if (chrome_threads_number(text, &value))
		return value;
	return (int64_t)(ky_hash_bytes(text, strlen(text)) & INT32_MAX);
}

/* ---- names ---------------------------------------------------------------------------- */

static uint64_t chrome_threads_key(int64_t pid, int64_t tid)
{
	return ky_hash_u64((uint64_t)pid) ^ (uint64_t)tid;
}

int ky_chrome_keep_name(struct ky_log_file *log, json_t *object)
{
	struct chrome_threads *threads = log->state;
	const char *what = ky_chrome_text(object, "name");
	const char *name = ky_chrome_text(json_object_get(object, "args"), "name");
	int64_t pid = ky_chrome_id(object, "pid"), tid = ky_chrome_id(object, "tid");
	bool is_thread = strcmp(what, "thread_name") == 0;
	char *kept;

	if (!*name || threads->n_names >= NAMES_MAX ||
	    (!is_thread && strcmp(what, "process_name") != 0))
		return KYMO_OK;
	kept = ky_arena_strndup(&log->arena, name, strnlen(name, KY_CHROME_NAME_BYTES));
	if (!kept)
		return ky_error_nomem(log->err);
	threads->n_names++;
	if (is_thread)
		return ky_map_set(&threads->names, chrome_threads_key(pid, tid), kept);
	return ky_map_set(&threads->processes, (uint64_t)pid, kept);
}

const char *ky_chrome_name(const struct ky_log_file *log, json_t *object, int64_t pid, int64_t tid)
{
	const struct chrome_threads *threads = log->state;
	const char *name = ky_map_get(&threads->names, chrome_threads_key(pid, tid));
	const char *text = ky_chrome_text(object, "tid");
	int64_t number;

	if (name)
		return name;
	/* A thread that has a text instead of a number is called so. */
	if (*text && !chrome_threads_number(text, &number))
		return text;
	name = ky_map_get(&threads->processes, (uint64_t)pid);
	text = ky_chrome_text(object, "pid");
	if (!name && !chrome_threads_number(text, &number))
		return text;
	return name ? name : "";
}

/* ---- durations ------------------------------------------------------------------------ */

int ky_chrome_push(struct ky_log_file *log, json_t *object, const char *name)
{
	struct chrome_threads *threads = log->state;
	uint64_t key = chrome_threads_key(ky_chrome_id(object, "pid"), ky_chrome_id(object, "tid"));
	struct chrome_thread *thread = ky_map_get(&threads->threads, key);
	size_t len = strnlen(name, KY_CHROME_NAME_BYTES);
	struct chrome_open *open;

	if (!thread && (threads->n_open >= OPEN_MAX || threads->threads.len >= NAMES_MAX))
		return KYMO_OK;
	if (thread && (threads->n_open >= OPEN_MAX || thread->n_unkept)) {
		thread->n_unkept++;
		return KYMO_OK;
	}
	if (!thread) {
		thread = ky_arena_new(&log->arena, struct chrome_thread);
		if (!thread || ky_map_set(&threads->threads, key, thread) < 0)
			return ky_error_nomem(log->err);
	}
	open = malloc(sizeof(*open) + len + 1);
	if (!open)
		return ky_error_nomem(log->err);
	memcpy(open->name, name, len);
	open->name[len] = '\0';
	open->outer = thread->innermost;
	thread->innermost = open;
	threads->n_open++;
	return KYMO_OK;
}

static void chrome_threads_take(struct chrome_threads *threads, struct chrome_thread *thread)
{
	struct chrome_open *open = thread->innermost;

	thread->innermost = open->outer;
	free(open);
	threads->n_open--;
}

void ky_chrome_pop(struct ky_log_file *log, json_t *object, char name[KY_CHROME_NAME_BYTES + 1])
{
	struct chrome_threads *threads = log->state;
	struct chrome_thread *thread =
		ky_map_get(&threads->threads, chrome_threads_key(ky_chrome_id(object, "pid"),
								 ky_chrome_id(object, "tid")));

	*name = '\0';
	if (thread && thread->n_unkept) {
		thread->n_unkept--;
		return;
	}
	if (!thread || !thread->innermost)
		return;
	memcpy(name, thread->innermost->name, strlen(thread->innermost->name) + 1);
	chrome_threads_take(threads, thread);
}

/* ---- begin and end -------------------------------------------------------------------- */

int ky_chrome_threads_open(struct ky_log_file *log)
{
	struct chrome_threads *threads = calloc(1, sizeof(*threads));

	log->state = threads;
	if (!threads)
		return ky_error_nomem(log->err);
	ky_map_init(&threads->names);
	ky_map_init(&threads->processes);
	ky_map_init(&threads->threads);
	return KYMO_OK;
}

void ky_chrome_threads_close(struct ky_log_file *log)
{
	struct chrome_threads *threads = log->state;
	uint64_t key;
	size_t pos = 0;
	void *thread;

	log->state = NULL;
	if (!threads)
		return;
	while (ky_map_next(&threads->threads, &pos, &key, &thread))
		while (((struct chrome_thread *)thread)->innermost)
			chrome_threads_take(threads, thread);
	ky_map_fini(&threads->names);
	ky_map_fini(&threads->processes);
	ky_map_fini(&threads->threads);
	free(threads);
}
