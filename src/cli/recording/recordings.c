/* SPDX-License-Identifier: MIT */
#include "cli/recording/recordings.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "cli/daemon/policy-client.h"
#include "cli/terminal/command.h"
#include "cli/terminal/json-output.h"

const char *ky_recordings_value(const struct ky_control_socket_message *status, const char *name,
				unsigned int n)
{
	const char *word, *text;
	size_t at = 0;

	(void)ky_control_socket_next(status, &at); /* "ok" */
	while ((word = ky_control_socket_next(status, &at)) &&
	       (text = ky_control_socket_next(status, &at))) {
		if (strcmp(word, name) == 0 && !n--)
			return text;
	}
	return NULL;
}

const char *ky_recordings_word(const struct ky_control_socket_message *status, const char *name)
{
	const char *text = ky_recordings_value(status, name, 0);

	return text ? text : "";
}

/* A recorder answers within milliseconds, but for one that writes a snapshot to a slow disk. */
#define STATUS_TIMEOUT_S 5
/* The first time that all are asked for one that the caller names: others may be suspended. */
#define QUICK_TIMEOUT_S 1

static int recordings_ask(const struct ky_control_socket_place *place, unsigned int timeout_s,
			  struct ky_control_socket_message *status, struct kymo_error *err)
{
	struct ky_control_socket_message request = {.len = 0};

	ky_control_socket_add(&request, "status");
	return ky_control_socket_ask(place, &request, timeout_s, status, err);
}

int ky_recordings_ask(const struct ky_control_socket_place *place,
		      struct ky_control_socket_message *status, struct kymo_error *err)
{
	return recordings_ask(place, STATUS_TIMEOUT_S, status, err);
}

/* What a callback returns after @ret of ky_recordings_ask(): another user's recorders hold root up once. */
static int recordings_go_on(const struct ky_control_socket_place *place, int ret)
{
	return ret == KYMO_E_AGAIN && !place->is_own;
}

/* ---- finding one ---------------------------------------------------------------------- */

struct search {
	const char *id;
	char directory[PATH_MAX]; /* the id as one; "" */
	bool flight, own_only;
	bool is_exact; /* the one that was found has this name, not only a directory of this name */
	unsigned int timeout_s;
	unsigned int n, n_others, n_silent;
	struct ky_control_socket_place *place;
	struct ky_strbuf names;
};

static bool recordings_is_meant(const struct search *search,
				const struct ky_control_socket_place *place,
				const struct ky_control_socket_message *status)
{
	const char *output = ky_recordings_word(status, "output"), *slash = strrchr(output, '/');

	/* The names of sockets are the kernel's numbers; what a recorder says is its own. */
	if (search->own_only)
		return strcmp(search->id, ky_control_socket_name(place->path)) == 0;
	return !search->id || strcmp(search->id, ky_control_socket_name(place->path)) == 0 ||
	       strcmp(search->id, ky_recordings_word(status, "name")) == 0 ||
	       (search->directory[0] && strcmp(search->directory, output) == 0) ||
	       strcmp(search->id, slash ? slash + 1 : output) == 0;
}

static int recordings_look_at(void *data, const struct ky_control_socket_place *place)
{
	struct ky_control_socket_message status;
	struct search *search = data;
	const char *name;
	int ret;

	if (search->own_only &&
	    (!place->is_own || strcmp(search->id, ky_control_socket_name(place->path)) != 0))
		return KYMO_OK;
	/* Other users cannot make root's own recording ambiguous. */
	if (!place->is_own && search->n && search->place->is_own)
		return KYMO_OK;
	ret = recordings_ask(place, search->timeout_s, &status, NULL);
	search->n_silent += ret == KYMO_E_AGAIN && place->is_own;
	if (ret < 0 || !recordings_is_meant(search, place, &status))
		return recordings_go_on(place, ret);
	if (search->flight && strcmp(ky_recordings_word(&status, "mode"), "flight") != 0 &&
	    !*ky_recordings_word(&status, "snapshots")) {
		search->n_others++;
		return KYMO_OK;
	}
	name = ky_recordings_word(&status, "name");
	ky_strbuf_addf(&search->names, "%s%s (%s)", search->n ? ", " : "",
		       *name ? name : ky_control_socket_name(place->path),
		       ky_recordings_word(&status, "output"));
	search->is_exact = search->id && strcmp(search->id, name) == 0;
	if (!search->n++)
		*search->place = *place;
	return KYMO_OK;
}

static int recordings_not_one(const struct search *search, struct kymo_error *err)
{
	const char *what = search->flight ? "flight recorder" : "recording";
	const char *whose = geteuid() == 0 ? "" : " of yours";

	if (search->n > 1)
		return ky_error_set(err, KYMO_E_INVALID, "several %ss are running; name one of: %s",
				    what, ky_strbuf_text(&search->names));
	if (search->n_silent)
		ky_error_set(err, KYMO_E_NOT_FOUND,
			     "%u of your recordings did not answer within %d s", search->n_silent,
			     STATUS_TIMEOUT_S);
	else if (search->n_others)
		ky_error_set(err, KYMO_E_NOT_FOUND,
			     "the running recording is not a flight recorder; it writes its trace "
			     "continuously");
	else if (err && search->id && ky_policy_has(search->id)) {
		ky_error_set(err, KYMO_E_NOT_FOUND,
			     "'%s' is a recording of a policy, which only root can change",
			     search->id);
		ky_error_hint(err, "'kymo stop' and 'kymo snapshot' are yours");
		return KYMO_E_NOT_FOUND;
	} else if (search->id)
		ky_error_set(err, KYMO_E_NOT_FOUND, "no %s '%s'%s is running", what, search->id,
			     whose);
	else
		ky_error_set(err, KYMO_E_NOT_FOUND, "no %s%s is running", what, whose);
	ky_error_hint(err, search->flight ? "start one: kymo record --overwrite"
					  : "'kymo sessions' shows the running recordings");
	return KYMO_E_NOT_FOUND;
}

static int recordings_find(const char *id, bool flight, bool own_only,
			   struct ky_control_socket_place *place, struct kymo_error *err)
{
	struct search search = {.id = id, .flight = flight, .own_only = own_only, .place = place};
	int ret;

	if (id && !realpath(id, search.directory))
		search.directory[0] = 0;
	if (id && !own_only) {
		search.timeout_s = QUICK_TIMEOUT_S;
		(void)ky_control_socket_each(recordings_look_at, &search);
	}
	if (search.n != 1 || !search.is_exact) {
		ky_strbuf_fini(&search.names);
		search.names = (struct ky_strbuf)KY_STRBUF_INIT;
		search.n = search.n_others = search.n_silent = 0;
		search.timeout_s = STATUS_TIMEOUT_S;
		(void)ky_control_socket_each(recordings_look_at, &search);
	}
	ret = search.n == 1 ? KYMO_OK : recordings_not_one(&search, err);
	ky_strbuf_fini(&search.names);
	return ret;
}

int ky_recordings_find(const char *id, bool flight, struct ky_control_socket_place *place,
		       struct kymo_error *err)
{
	return recordings_find(id, flight, false, place, err);
}

int ky_recordings_find_own(pid_t pid, bool flight, struct ky_control_socket_place *place,
			   struct kymo_error *err)
{
	char id[16];

	snprintf(id, sizeof(id), "%d", (int)pid);
	return recordings_find(id, flight, true, place, err);
}

/* ---- listing them --------------------------------------------------------------------- */

struct listing {
	json_t *json; /* NULL: text */
	unsigned int n;
};

static void show_silent(const struct listing *listing, const struct ky_control_socket_place *place)
{
	if (listing->json) {
		json_array_append_new(listing->json, json_pack("{s:s, s:I, s:s}", "id",
							       ky_control_socket_name(place->path),
							       "uid", (json_int_t)place->uid,
							       "error", "does not answer"));
		return;
	}
	printf("%-8s recording", ky_control_socket_name(place->path));
	ky_recordings_print_owner(place);
	printf(", does not answer within %d s: it is suspended, or waits for a disk\n",
	       STATUS_TIMEOUT_S);
}

static int recordings_show(void *data, const struct ky_control_socket_place *place)
{
	struct ky_control_socket_message status;
	struct listing *listing = data;
	int ret = ky_recordings_ask(place, &status, NULL);

	if (ret < 0 && ret != KYMO_E_AGAIN)
		return KYMO_OK;
	listing->n++;
	if (ret < 0)
		show_silent(listing, place);
	else if (listing->json)
		json_array_append_new(listing->json, ky_recordings_json(place, &status));
	else
		ky_recordings_print_one(place, &status);
	return recordings_go_on(place, ret);
}

/* One that the daemon has for this user. */
static void show_policy(void *data, const char *name, const char *policy,
			const struct ky_control_socket_message *status)
{
	struct ky_control_socket_place place = {.uid = geteuid(), .is_own = true};
	struct listing *listing = data;
	json_t *recording;

	listing->n++;
	/* In place of its number. */
	snprintf(place.path, sizeof(place.path), "/%.64s", name);
	if (!listing->json) {
		if (status) {
			ky_recordings_print_one(&place, status);
			return;
		}
		ky_cli_put_text(stdout, name);
		fputs(" has ended; it waits for 'kymo stop ", stdout);
		ky_cli_put_text(stdout, name);
		puts("'");
		return;
	}
	recording = status ? ky_recordings_json(&place, status)
			   : json_pack("{s:o, s:o, s:I, s:b}", "id", ky_jansson_text(name), "name",
				       ky_jansson_text(name), "uid", (json_int_t)place.uid,
				       "has_ended", 1);
	json_object_set_new(recording, "policy", ky_jansson_text(policy));
	json_array_append_new(listing->json, recording);
}

int ky_recordings_print(bool json, struct kymo_error *err)
{
	struct listing listing = {.json = json ? json_array() : NULL};

	(void)ky_control_socket_each(recordings_show, &listing);
	/* Root sees their recorders. */
	if (geteuid() != 0)
		ky_policy_each(show_policy, &listing);
	if (!json) {
		if (!listing.n)
			puts(geteuid() == 0 ? "No recording is running."
					    : "No recording of yours is running.");
		return KYMO_OK;
	}
	return ky_cli_put_json(json_pack("{s:o}", "recordings", listing.json), 1, err);
}

int ky_recordings_directory(const char *name, char path[PATH_MAX])
{
	struct ky_control_socket_message status;
	struct ky_control_socket_place place;
	int ret = ky_recordings_find(name, false, &place, NULL);

	if (!ret)
		ret = ky_recordings_ask(&place, &status, NULL);
	if (!ret && strcmp(ky_recordings_word(&status, "name"), name) != 0)
		ret = KYMO_E_NOT_FOUND;
	if (!ret)
		snprintf(path, PATH_MAX, "%s", ky_recordings_word(&status, "output"));
	return ret;
}

static int show_name(void *data, const struct ky_control_socket_place *place)
{
	struct ky_control_socket_message status;
	const char *name = "";

	(void)data;
	if (ky_recordings_ask(place, &status, NULL) < 0)
		return KYMO_OK;
	name = ky_recordings_word(&status, "name");
	ky_cli_put_text(stdout, *name ? name : ky_control_socket_name(place->path));
	putchar('\n');
	return KYMO_OK;
}

static void show_policy_name(void *data, const char *name, const char *policy,
			     const struct ky_control_socket_message *status)
{
	(void)data;
	(void)policy;
	(void)status;
	ky_cli_put_text(stdout, name);
	putchar('\n');
}

void ky_recordings_print_names(void)
{
	(void)ky_control_socket_each(show_name, NULL);
	if (geteuid() != 0)
		ky_policy_each(show_policy_name, NULL);
}

bool ky_recordings_write(char **paths, int n_paths)
{
	for (int i = 0; i < n_paths; i++) {
		struct ky_control_socket_place place;
		char *real = realpath(paths[i], NULL);
		bool found = real && ky_recordings_find(real, false, &place, NULL) == KYMO_OK;

		free(real);
		if (found)
			return true;
	}
	return false;
}
