/* SPDX-License-Identifier: MIT */
#include "cli/reading/remotes.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "cli/options/relay-key-option.h"
#include "cli/reading/run-flow.h"
#include "cli/terminal/command.h"
#include "cli/terminal/json-output.h"
#include "net/reader/live-feed.h"

static int remotes_connect_to(const struct ky_live_address *address, const char *key_path,
			      uint32_t delay_ms, struct ky_tls **tls,
			      struct ky_live_client **client, struct kymo_error *err)
{
	const struct ky_relay_key_choice choice = {
		.path = key_path,
		.missing = "give --relay-key FILE, which kymo relay --init makes there",
	};
	struct ky_live_client_options options = {
		.address = address->relay,
		.is_kymo = address->is_kymo,
		.delay_ms = delay_ms,
		.stop = ky_cli_interrupted,
	};
	struct ky_relay_key key;
	int ret = KYMO_OK;

	*tls = NULL;
	/* LTTng's protocol has no encryption. */
	if (address->is_kymo)
		ret = ky_cli_relay_key(address->relay.host, &choice, &key, tls, err);
	options.tls = *tls;
	options.token = *tls ? key.token : NULL;
	return ret < 0 ? ret : ky_live_client_open(&options, client, err);
}

static int open_remote(struct ky_cli_remotes *remotes, const char *path,
		       const struct ky_cli_remote_options *options, struct kymo_error *err)
{
	const struct ky_live_feed_options feed = {
		.is_live = options->delay_ms != 0,
		.keeps = options->keeps,
		.space_bytes = options->space_bytes,
	};
	struct ky_trace_at_feed at = {.path = path};
	struct ky_live_address address;
	struct ky_live_client *client;
	struct ky_tls *tls = NULL;
	int ret = ky_live_address_parse(path, &address, err);

	if (!ret)
		ret = remotes_connect_to(&address, options->key_path, options->delay_ms, &tls,
					 &client, err);
	if (tls && ky_vec_push(&remotes->keys, tls) < 0) {
		if (!ret)
			ky_live_client_close(client);
		ky_tls_free(tls);
		return ky_error_nomem(err);
	}
	if (!ret)
		ret = ky_live_feed_open(client, &address, &feed, &at.feed, err);
	if (!ret && ky_vec_push(&remotes->feeds, at) < 0) {
		ky_feed_free(at.feed);
		ret = ky_error_nomem(err);
	}
	if (ret < 0 && err && !err->path[0])
		ky_error_path(err, path);
	return ret;
}

int ky_cli_remotes_open(struct ky_cli_remotes *remotes, char **paths, int n_paths,
			const struct ky_cli_remote_options *options, struct kymo_error *err)
{
	int ret = KYMO_OK;

	*remotes = (struct ky_cli_remotes){0};
	for (int i = 0; i < n_paths && !ret; i++) {
		if (ky_live_address_is(paths[i]))
			ret = open_remote(remotes, paths[i], options, err);
		else if (ky_vec_push(&remotes->local, (const char *)paths[i]) < 0)
			ret = ky_error_nomem(err);
	}
	return ret;
}

void ky_cli_remotes_fini(struct ky_cli_remotes *remotes)
{
	ky_vec_foreach(&remotes->feeds, at)
		ky_feed_free(at->feed);
	ky_vec_foreach(&remotes->keys, tls)
		ky_tls_free(*tls);
	ky_vec_fini(&remotes->feeds);
	ky_vec_fini(&remotes->local);
	ky_vec_fini(&remotes->keys);
}

/* ---- lists ---------------------------------------------------------------------------- */

bool ky_cli_is_relay(const char *path)
{
	struct ky_live_address address;

	return ky_live_address_is(path) && ky_live_address_parse(path, &address, NULL) == KYMO_OK &&
	       !address.name[0];
}

static void print_session(const struct ky_live_session *session, const char *relay,
			  const struct ky_live_address *address)
{
	/* Without the slash at the end. lint: own text: the user's own argument */
	printf("%.*s%s/", (int)(strlen(relay) - (relay[strlen(relay) - 1] == '/')), relay,
	       address->is_kymo ? "" : "/host");
	ky_cli_put_text(stdout, session->host);
	putchar('/');
	ky_cli_put_text(stdout, session->name);
	/* Of lttng-relayd as babeltrace2 says it. */
	if (address->is_kymo)
		printf(" (%u stream%s, %u reader%s)\n", session->streams,
		       session->streams == 1 ? "" : "s", session->clients,
		       session->clients == 1 ? "" : "s");
	else
		printf(" (timer = %u us, %u stream(s), %u client(s) connected)\n",
		       session->timer_us, session->streams, session->clients);
}

static json_t *session_json(const struct ky_live_session *session, const char *relay,
			    const struct ky_live_address *address)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	json_t *json;

	ky_strbuf_addf(&text, "%.*s%s/%s/%s",
		       (int)(strlen(relay) - (relay[strlen(relay) - 1] == '/')), relay,
		       address->is_kymo ? "" : "/host", session->host, session->name);
	json = json_pack("{s:o, s:o, s:o, s:I, s:I}", "name", ky_jansson_text(session->name),
			 "host", ky_jansson_text(session->host), "address",
			 ky_jansson_text(ky_strbuf_text(&text)), "streams",
			 (json_int_t)session->streams, "readers", (json_int_t)session->clients);
	ky_strbuf_fini(&text);
	return json;
}

static int remotes_print_json(const struct ky_live_sessions *sessions, const char *relay,
			      const struct ky_live_address *address, struct kymo_error *err)
{
	json_t *list = json_array();

	ky_vec_foreach(sessions, session)
		json_array_append_new(list, session_json(session, relay, address));
	return ky_cli_put_json(json_pack("{s:o}", "recordings", list), 1, err);
}

int ky_cli_list_relay(const char *path, const char *key_path, bool json, struct kymo_error *err)
{
	struct ky_live_sessions sessions = KY_VEC_INIT;
	struct ky_live_client *client = NULL;
	struct ky_live_address address;
	struct ky_tls *tls = NULL;
	int ret = ky_live_address_parse(path, &address, err);

	if (!ret)
		ret = remotes_connect_to(&address, key_path, 0, &tls, &client, err);
	if (!ret)
		ret = ky_live_client_sessions(client, &sessions, err);
	if (!ret && json)
		ret = remotes_print_json(&sessions, path, &address, err);
	for (size_t i = 0; i < sessions.len && !ret && !json; i++)
		print_session(&sessions.data[i], path, &address);
	ky_live_sessions_fini(&sessions);
	ky_live_client_close(client);
	ky_tls_free(tls);
	if (ret < 0)
		ky_error_path(err, path);
	return ret;
}
