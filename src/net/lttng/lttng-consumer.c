/* SPDX-License-Identifier: MIT */
#include "net/lttng/lttng-consumer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>

#include "base/error.h"
#include "net/protocol/frame.h"
#include "os/now.h"

/* Of one consumer daemon. */
#define STREAMS_MAX 65536
/* Open files: of a stream, with its index; of a trace, with its metadata. */
#define STREAM_FILES 2
#define TRACE_FILES  3
/* How long data may come after the end of the control connection, in ms. */
#define LINGER_MS 500
/* A channel's name leaves room for the number of a file and ".idx". */
#define CHANNEL_NAME_MAX 200

/* No other daemon can guess it. */
static int random_number(uint64_t *number, struct kymo_error *err)
{
	do {
		if (getrandom(number, sizeof(*number), 0) != sizeof(*number))
			return ky_error_set(err, KYMO_E_IO, "there are no random numbers");
	} while (!*number || *number == UINT64_MAX);
	return KYMO_OK;
}

/* ---- begin, end ----------------------------------------------------------------------- */

int ky_lttng_consumer_new(struct ky_lttng_relay *relay, uint32_t minor,
			  struct ky_lttng_consumer **out, struct kymo_error *err)
{
	struct ky_lttng_consumer *consumer = calloc(1, sizeof(*consumer));
	int ret;

	if (!consumer)
		return ky_error_nomem(err);
	*consumer = (struct ky_lttng_consumer){
		.relay = relay, .minor = minor, .is_old = minor < 11, .has_control = true};
	ret = random_number(&consumer->number, err);
	if (!ret && ky_vec_push(&relay->consumers, consumer) < 0)
		ret = ky_error_nomem(err);
	if (ret < 0) {
		free(consumer);
		return ret;
	}
	*out = consumer;
	return KYMO_OK;
}

static void free_stream(struct ky_lttng_consumer *consumer, size_t i)
{
	struct ky_lttng_stream *stream = consumer->streams.data[i];

	consumer->streams.data[i] = consumer->streams.data[--consumer->streams.len];
	consumer->n_files -= stream->n_files;
	(void)ky_map_del(&consumer->relay->streams, stream->handle);
	ky_lttng_stream_free(stream);
}

void ky_lttng_consumer_free(struct ky_lttng_consumer *consumer)
{
	struct ky_lttng_relay *relay = consumer->relay;
	size_t i = 0;

	while (relay->consumers.data[i] != consumer)
		i++;
	relay->consumers.data[i] = relay->consumers.data[--relay->consumers.len];
	if (consumer->session)
		ky_log_info(relay->options.clients->log, "%s: complete",
			    ky_lttng_consumer_name(consumer));
	while (consumer->streams.len)
		free_stream(consumer, consumer->streams.len - 1);
	ky_vec_fini(&consumer->streams);
	ky_lttng_chunk_put(consumer->closing);
	ky_lttng_chunk_put(consumer->current);
	ky_lttng_session_put(consumer->session);
	ky_relay_host_leave(consumer->host);
	free(consumer);
}

static bool may_have_data(const struct ky_lttng_relay *relay)
{
	ky_vec_foreach(&relay->options.clients->list, client)
		if ((*client)->calls == &ky_lttng_data_calls)
			return true;
	return false;
}

void ky_lttng_consumer_lose_control(struct ky_lttng_consumer *consumer)
{
	if (!consumer)
		return;
	consumer->has_control = false;
	consumer->gone_ms = ky_os_now_ms();
	ky_lttng_consumer_expect_data(consumer, true);
	if (consumer->n_data)
		return;
	/* A data connection says in its first packet that it is this daemon's. */
	if (consumer->streams.len && !consumer->has_lost_data && may_have_data(consumer->relay))
		ky_loop_set_timer(consumer->relay->timer, UINT64_C(1000000) * LINGER_MS);
	else
		ky_lttng_consumer_free(consumer);
}

void ky_lttng_consumer_gain_data(struct ky_lttng_consumer *consumer, struct ky_client *data)
{
	consumer->n_data++;
	if (consumer->data || !consumer->has_control || consumer->minor < 4 ||
	    consumer->is_snapshot)
		return;
	consumer->data = data;
	consumer->expects_data = true;
}

void ky_lttng_consumer_lose_data(struct ky_lttng_consumer *consumer, struct ky_client *data)
{
	consumer->n_data--;
	consumer->has_lost_data = true;
	if (consumer->data == data)
		consumer->data = NULL;
	if (!consumer->n_data && !consumer->has_control)
		ky_lttng_consumer_free(consumer);
}

static int take_lost(void *data, struct kymo_error *err)
{
	struct ky_lttng_relay *relay = data;
	int64_t now = ky_os_now_ms();
	bool again = false;

	(void)err;
	for (size_t i = relay->consumers.len; i-- > 0;) {
		struct ky_lttng_consumer *consumer = relay->consumers.data[i];

		if (consumer->has_control || consumer->n_data)
			continue;
		if (now - consumer->gone_ms >= LINGER_MS)
			ky_lttng_consumer_free(consumer);
		else
			again = true;
	}
	if (again)
		ky_loop_set_timer(relay->timer, UINT64_C(1000000) * LINGER_MS);
	return KYMO_OK;
}

int ky_lttng_relay_new(const struct ky_lttng_relay_options *options, struct ky_lttng_relay **out,
		       struct kymo_error *err)
{
	struct ky_lttng_relay *relay = calloc(1, sizeof(*relay));
	int ret;

	*out = NULL;
	if (!relay)
		return ky_error_nomem(err);
	relay->options = *options;
	relay->sessions = (struct ky_lttng_sessions){.dir = options->dir,
						     .dir_fd = options->dir_fd,
						     .log = options->clients->log,
						     .note = options->note,
						     .note_data = options->note_data};
	ky_map_init(&relay->streams);
	ret = ky_lttng_traces_init(&relay->traces, options->clients->loop, err);
	if (!ret)
		ret = ky_loop_add_timer(options->clients->loop, take_lost, relay, &relay->timer,
					err);
	if (!ret)
		ret = ky_loop_add_timer(options->clients->loop, ky_lttng_take_late, relay,
					&relay->data_timer, err);
	if (ret < 0) {
		ky_lttng_relay_free(relay);
		return ret;
	}
	*out = relay;
	return KYMO_OK;
}

void ky_lttng_relay_free(struct ky_lttng_relay *relay)
{
	if (!relay)
		return;
	while (relay->consumers.len)
		ky_lttng_consumer_free(relay->consumers.data[0]);
	ky_vec_fini(&relay->consumers);
	ky_map_fini(&relay->streams);
	ky_lttng_traces_fini(&relay->traces);
	ky_lttng_sessions_fini(&relay->sessions);
	ky_loop_remove(relay->timer);
	ky_loop_remove(relay->data_timer);
	free(relay);
}

/* ---- the session ---------------------------------------------------------------------- */

const char *ky_lttng_consumer_name(const struct ky_lttng_consumer *consumer)
{
	return consumer && consumer->session ? consumer->session->path : "an LTTng daemon";
}

int ky_lttng_consumer_check_quota(const struct ky_lttng_consumer *consumer, struct kymo_error *err)
{
	return consumer->host ? ky_relay_host_check(consumer->host,
						    consumer->relay->options.quota_bytes, err)
			      : KYMO_OK;
}

/* The daemons before chunks have one chunk, which stays where it is. */
static int open_only_chunk(struct ky_lttng_consumer *consumer, struct kymo_error *err)
{
	return ky_lttng_chunk_begin(consumer->session, consumer->number, (uint64_t)time(NULL), NULL,
				    &consumer->current, err);
}

/* team/a is team-a: a session's directory is in its host's, and so in no other recording's. */
static bool make_plain(const char *path, char name[KY_LTTNG_PATH_BYTES])
{
	size_t len = strlen(path);

	if (!ky_net_is_path(path, len) || len >= KY_LTTNG_PATH_BYTES)
		return false;
	for (size_t i = 0; i <= len; i++)
		name[i] = path[i];
	for (char *slash = name; (slash = strchr(slash, '/'));)
		*slash = '-';
	return ky_net_is_name(name, len);
}

int ky_lttng_consumer_open(struct ky_lttng_consumer *consumer,
			   const struct ky_lttng_session_spec *spec, const uint64_t *chunk,
			   struct kymo_error *err)
{
	struct ky_lttng_relay *relay = consumer->relay;
	struct ky_lttng_session_spec plain = *spec;
	struct ky_lttng_chunk *found;
	char name[KY_LTTNG_PATH_BYTES];
	int ret;

	if (!ky_net_is_name(spec->host, strlen(spec->host)) || !make_plain(spec->name, name))
		return ky_error_set(err, KYMO_E_INVALID,
				    "the name of the host or of the session cannot be used");
	plain.name = name;
	/* A daemon that was refused may try again. */
	ky_relay_host_leave(consumer->host);
	consumer->host = NULL;
	ret = ky_relay_hosts_find(relay->options.hosts, relay->options.dir, spec->host,
				  &consumer->host, err);
	if (!ret)
		ret = ky_lttng_consumer_check_quota(consumer, err);
	if (!ret)
		ret = ky_lttng_session_get(&relay->sessions, &plain, consumer->host,
					   &consumer->session, err);
	if (ret < 0)
		return ret;
	consumer->is_snapshot = spec->is_snapshot;
	ky_log_info(relay->options.clients->log, "%s: connected", consumer->session->path);
	if (consumer->is_old)
		return open_only_chunk(consumer, err);
	found = chunk ? ky_lttng_chunk_find(consumer->session, *chunk) : NULL;
	if (chunk && !found)
		return ky_error_set(err, KYMO_E_FORMAT, "the session has no such chunk");
	consumer->current = found ? ky_lttng_chunk_ref(found) : NULL;
	return KYMO_OK;
}

/* ---- streams -------------------------------------------------------------------------- */

/*
 * /HOST/SESSION-TIME/ust/uid/0: old daemons name the whole path. Before version 2.4, this is all that they say
 * about the session.
 */
static int take_old_path(struct ky_lttng_consumer *consumer, struct ky_lttng_stream_spec *spec,
			 struct kymo_error *err)
{
	char *copy = strdup(spec->path + (spec->path[0] == '/')), *name, *rest;
	int ret = KYMO_OK;

	if (!copy)
		return ky_error_nomem(err);
	name = strchr(copy, '/');
	rest = name ? strchr(name + 1, '/') : NULL;
	if (!rest) {
		free(copy);
		return ky_error_set(err, KYMO_E_FORMAT, "the path '%s' has no trace", spec->path);
	}
	*name++ = *rest++ = '\0';
	if (!consumer->session)
		ret = ky_lttng_consumer_open(
			consumer, &(struct ky_lttng_session_spec){.host = copy, .name = name}, NULL,
			err);
	spec->path += (spec->path[0] == '/') + (size_t)(rest - copy);
	free(copy);
	return ret;
}

/* That all streams, traces, sessions and chunks may have. */
static size_t count_files(const struct ky_lttng_relay *relay)
{
	size_t n = 0;

	ky_vec_foreach(&relay->consumers, consumer)
		n += (*consumer)->n_files;
	ky_vec_foreach(&relay->sessions.list, session)
		n += 1 + (*session)->chunks.len;
	return n;
}

/*
 * Connections get three quarters of the process's descriptors (clients.c). All daemons together get the last one, and each of
 * them a half of that: other daemons and recorders go on when one wants too much.
 */
static int check_files(const struct ky_lttng_consumer *consumer, size_t more,
		       struct kymo_error *err)
{
	struct rlimit limit;
	rlim_t share;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return KYMO_OK;
	share = limit.rlim_cur / 8;
	if (consumer->n_files + more > share)
		return ky_error_set(
			err, KYMO_E_LIMIT,
			"the daemon's streams need more than %zu open files, an eighth of "
			"the relay's limit (ulimit -n)",
			(size_t)share);
	if (count_files(consumer->relay) + more > 2 * share)
		return ky_error_set(
			err, KYMO_E_LIMIT,
			"the streams of all LTTng daemons need more than %zu open files, a "
			"quarter of the relay's limit (ulimit -n)",
			2 * (size_t)share);
	return KYMO_OK;
}

static int lttng_consumer_check_stream(const struct ky_lttng_consumer *consumer,
				       const struct ky_lttng_stream_spec *spec,
				       struct kymo_error *err)
{
	size_t len = strlen(spec->channel);

	if (!ky_net_is_path(spec->path, strlen(spec->path)) ||
	    !ky_net_is_name(spec->channel, len) || len > CHANNEL_NAME_MAX ||
	    strcmp(spec->channel, "index") == 0)
		return ky_error_set(err, KYMO_E_FORMAT,
				    "the path or name of a stream cannot be used");
	if (!consumer->current)
		return ky_error_set(err, KYMO_E_FORMAT, "a stream comes before its chunk");
	if (consumer->streams.len >= STREAMS_MAX)
		return ky_error_set(err, KYMO_E_LIMIT, "the session has too many streams");
	return check_files(consumer, STREAM_FILES + TRACE_FILES, err);
}

/* A new stream; how many traces there were before it. */
static int lttng_consumer_keep(struct ky_lttng_consumer *consumer, struct ky_lttng_stream *stream,
			       size_t n_traces, struct kymo_error *err)
{
	struct ky_lttng_relay *relay = consumer->relay;

	stream->consumer = consumer;
	if (ky_vec_push(&consumer->streams, stream) < 0) {
		ky_lttng_stream_free(stream);
		return ky_error_nomem(err);
	}
	stream->n_files = (stream->is_metadata ? 0 : STREAM_FILES) +
			  (relay->traces.list.len > n_traces ? TRACE_FILES : 0);
	consumer->n_files += stream->n_files;
	if (ky_map_set(&relay->streams, stream->handle, stream) < 0) {
		free_stream(consumer, consumer->streams.len - 1);
		return ky_error_nomem(err);
	}
	return KYMO_OK;
}

int ky_lttng_consumer_add(struct ky_lttng_consumer *consumer, struct ky_lttng_stream_spec *spec,
			  struct ky_lttng_stream **out, struct kymo_error *err)
{
	struct ky_lttng_relay *relay = consumer->relay;
	size_t n_traces = relay->traces.list.len;
	struct ky_lttng_stream *stream;
	uint64_t handle = 0;
	int ret = consumer->is_old ? take_old_path(consumer, spec, err) : KYMO_OK;

	spec->has_index = consumer->minor >= 4 && !consumer->is_snapshot;
	spec->has_sequence = consumer->minor >= 8;
	if (!ret)
		ret = lttng_consumer_check_stream(consumer, spec, err);
	if (!ret)
		ret = ky_lttng_consumer_check_quota(consumer, err);
	if (!ret)
		ret = random_number(&handle, err);
	if (!ret)
		ret = ky_lttng_stream_new(&relay->traces, consumer->current, spec, &stream, err);
	if (ret < 0)
		return ret;
	stream->handle = handle;
	ret = lttng_consumer_keep(consumer, stream, n_traces, err);
	*out = ret < 0 ? NULL : stream;
	return ret;
}

int ky_lttng_consumer_find(const struct ky_lttng_consumer *consumer, uint64_t handle,
			   struct ky_lttng_stream **stream, struct kymo_error *err)
{
	*stream = ky_map_get(&consumer->relay->streams, handle);
	if (*stream && (*stream)->consumer == consumer)
		return KYMO_OK;
	return ky_error_set(err, KYMO_E_FORMAT, "the session has no such stream");
}

void ky_lttng_consumer_try_close(struct ky_lttng_consumer *consumer, struct ky_lttng_stream *stream)
{
	size_t i = 0;

	if (!stream->is_closing || stream->is_busy ||
	    (!stream->is_metadata &&
	     ky_lttng_consumer_is_pending(consumer, stream, stream->last_number)))
		return;
	while (consumer->streams.data[i] != stream)
		i++;
	free_stream(consumer, i);
}

/* ---- chunks --------------------------------------------------------------------------- */

int ky_lttng_consumer_begin_chunk(struct ky_lttng_consumer *consumer, uint64_t number,
				  uint64_t created_s, const char *name, struct kymo_error *err)
{
	struct ky_lttng_chunk *chunk;
	int ret;

	if (consumer->closing)
		return ky_error_set(err, KYMO_E_FORMAT,
				    "a chunk begins before the last one is closed");
	if (check_files(consumer, 1, err) < 0)
		return KYMO_E_LIMIT;
	if (name && (!ky_net_is_name(name, strlen(name)) || strcmp(name, "archives") == 0))
		return ky_error_set(err, KYMO_E_INVALID, "the name of a chunk cannot be used");
	ret = ky_lttng_chunk_begin(consumer->session, number, created_s, name, &chunk, err);
	if (ret < 0)
		return ret;
	consumer->closing = consumer->current;
	consumer->current = chunk;
	return KYMO_OK;
}

int ky_lttng_consumer_close_chunk(struct ky_lttng_consumer *consumer, uint64_t number,
				  uint64_t closed_s, enum ky_lttng_chunk_command command,
				  char *path, size_t size, struct kymo_error *err)
{
	struct ky_lttng_chunk *chunk = ky_lttng_chunk_find(consumer->session, number);
	int ret;

	if (!chunk || (consumer->closing && consumer->closing != chunk))
		return ky_error_set(
			err, KYMO_E_FORMAT,
			"the peer closes a chunk that does not exist, or closes it too early");
	ret = ky_lttng_chunk_close(chunk, closed_s, command, path, size, err);
	if (ret < 0)
		return ret;
	if (consumer->closing) {
		ky_lttng_chunk_put(consumer->closing);
		consumer->closing = NULL;
	} else if (consumer->current == chunk) {
		ky_lttng_chunk_put(consumer->current);
		consumer->current = NULL;
	}
	return KYMO_OK;
}

/* ---- data on the way ------------------------------------------------------------------ */

bool ky_lttng_consumer_is_pending(const struct ky_lttng_consumer *consumer,
				  const struct ky_lttng_stream *stream, uint64_t number)
{
	/* Nothing comes any more after the end of the data connection. */
	return !(consumer->has_lost_data && !consumer->n_data) &&
	       ky_lttng_stream_is_pending(stream, number);
}

bool ky_lttng_consumer_has_pending(const struct ky_lttng_consumer *consumer)
{
	if (consumer->has_lost_data && !consumer->n_data)
		return false;
	ky_vec_foreach(&consumer->streams, stream)
		if (!(*stream)->is_checked)
			return true;
	return false;
}
