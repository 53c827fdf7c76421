/* SPDX-License-Identifier: MIT */
#include "cli/recordings.h"

#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "cli/command.h"

/* The value of the status's @n-th word called @name; NULL: it has not so many. */
static const char *value(const struct ky_remote_message *status, const char *name, unsigned int n)
{
	const char *word, *text;
	size_t at = 0;

	(void)ky_remote_next(status, &at); /* "ok" */
	while ((word = ky_remote_next(status, &at)) && (text = ky_remote_next(status, &at))) {
		if (strcmp(word, name) == 0 && !n--)
			return text;
	}
	return NULL;
}

static const char *text_of(const struct ky_remote_message *status, const char *name)
{
	const char *text = value(status, name, 0);

	return text ? text : "";
}

static int ask(const char *path, struct ky_remote_message *status, struct kymo_error *err)
{
	struct ky_remote_message request = {.len = 0};

	ky_remote_add(&request, "status");
	return ky_remote_ask(path, &request, status, err);
}

/* ---- finding one ---------------------------------------------------------------------- */

struct search {
	const char *id;
	char directory[PATH_MAX]; /* the id as one; "" */
	bool flight;
	unsigned int n, n_others;
	char *path;
	struct ky_strbuf names;
};

static bool is_meant(const struct search *search, const char *path,
		     const struct ky_remote_message *status)
{
	const char *output = text_of(status, "output"), *slash = strrchr(output, '/');

	return !search->id || strcmp(search->id, ky_remote_name(path)) == 0 ||
	       (search->directory[0] && strcmp(search->directory, output) == 0) ||
	       strcmp(search->id, slash ? slash + 1 : output) == 0;
}

static int look_at(void *data, const char *path)
{
	struct ky_remote_message status;
	struct search *search = data;

	if (ask(path, &status, NULL) < 0 || !is_meant(search, path, &status))
		return KYMO_OK;
	if (search->flight && strcmp(text_of(&status, "mode"), "flight") != 0) {
		search->n_others++;
		return KYMO_OK;
	}
	ky_strbuf_addf(&search->names, "%s%s (%s)", search->n ? ", " : "", ky_remote_name(path),
		       text_of(&status, "output"));
	if (!search->n++)
		snprintf(search->path, KY_REMOTE_PATH_MAX, "%s", path);
	return KYMO_OK;
}

int ky_recordings_find(const char *id, bool flight, char path[KY_REMOTE_PATH_MAX],
		       struct kymo_error *err)
{
	struct search search = {.id = id, .flight = flight, .path = path};
	const char *what = flight ? "flight recorder" : "recording";
	int ret = KYMO_OK;

	if (id && !realpath(id, search.directory))
		search.directory[0] = 0;
	(void)ky_remote_each(look_at, &search);
	if (!search.n && search.n_others)
		ret = ky_error_set(err, KYMO_E_NOT_FOUND,
				   "the recording that runs is no flight recorder: it writes its "
				   "trace as it goes");
	else if (!search.n && id)
		ret = ky_error_set(err, KYMO_E_NOT_FOUND, "no %s '%s' of yours runs", what, id);
	else if (!search.n)
		ret = ky_error_set(err, KYMO_E_NOT_FOUND, "no %s of yours runs", what);
	else if (search.n > 1)
		ret = ky_error_set(err, KYMO_E_INVALID, "which one? %s",
				   ky_strbuf_text(&search.names));
	if (ret == KYMO_E_NOT_FOUND)
		ky_error_hint(err, flight ? "start one: kymo record --overwrite"
					  : "'kymo list --recordings' shows those that run");
	ky_strbuf_fini(&search.names);
	return ret;
}

/* ---- listing them --------------------------------------------------------------------- */

struct listing {
	json_t *json; /* NULL: text */
	unsigned int n;
};

/* What is recorded: words of a status, and options of kymo record. */
static const char *const kinds[] = {"kernel", "probe", "sdt", "kprobe", "user"};

static void print_text(const char *path, const struct ky_remote_message *status)
{
	int64_t start_ns = strtoll(text_of(status, "start"), NULL, 10);
	struct timespec now;
	const char *word;
	char time[32];

	clock_gettime(CLOCK_REALTIME, &now);
	start_ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec - start_ns;
	printf("%-8s ", ky_remote_name(path));
	ky_cli_put_text(stdout, text_of(status, "output"));
	printf("  %s, for %s\n",
	       strcmp(text_of(status, "mode"), "flight") == 0 ? "flight recorder" : "recording",
	       ky_format_duration(time, start_ns > 0 ? (uint64_t)start_ns : 0));
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
		for (unsigned int i = 0; (word = value(status, kinds[k], i)); i++) {
			printf("         --%s ", kinds[k]);
			ky_cli_put_text(stdout, word);
			putchar('\n');
		}
}

static json_t *words_json(const struct ky_remote_message *status, const char *name)
{
	json_t *list = json_array();
	const char *word;

	for (unsigned int i = 0; (word = value(status, name, i)); i++)
		json_array_append_new(list, json_string(word));
	return list;
}

static json_t *recording_json(const char *path, const struct ky_remote_message *status)
{
	json_t *recording =
		json_pack("{s:s, s:I, s:o, s:s, s:I}", "id", ky_remote_name(path), "pid",
			  (json_int_t)strtoll(text_of(status, "pid"), NULL, 10), "output",
			  json_string(text_of(status, "output")), "mode", text_of(status, "mode"),
			  "start_ns", (json_int_t)strtoll(text_of(status, "start"), NULL, 10));

	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
		json_object_set_new(recording, kinds[k], words_json(status, kinds[k]));
	return recording;
}

static int show(void *data, const char *path)
{
	struct ky_remote_message status;
	struct listing *listing = data;

	if (ask(path, &status, NULL) < 0)
		return KYMO_OK;
	listing->n++;
	if (listing->json)
		json_array_append_new(listing->json, recording_json(path, &status));
	else
		print_text(path, &status);
	return KYMO_OK;
}

int ky_recordings_print(bool json, struct kymo_error *err)
{
	struct listing listing = {.json = json ? json_array() : NULL};
	json_t *all;
	int ret;

	(void)ky_remote_each(show, &listing);
	if (!json) {
		if (!listing.n)
			puts("No recording of yours runs.");
		return KYMO_OK;
	}
	all = json_pack("{s:o}", "recordings", listing.json);
	ret = all ? json_dumpf(all, stdout, JSON_INDENT(1)) : -1;
	json_decref(all);
	putchar('\n');
	return ret < 0 ? ky_error_nomem(err) : KYMO_OK;
}
