/* SPDX-License-Identifier: MIT */
/* What a live feed has: traces with their streams and metadata, as the relay tells them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ctf/tsdl/tsdl.h"
#include "net/reader/live-feed-internal.h"
#include "os/now.h"

/* Metadata that cannot be read is incomplete for so long, at most. */
#define METADATA_MS 10000
#define PIECES_MAX  65536
/* Of all sessions. */
#define TRACES_MAX   4096
#define METADATA_MAX 64 /* streams of metadata, of a trace */
#define CHANNELS_MAX 65536

/* ---- traces and streams -------------------------------------------------------------- */

/* A relay's text becomes a part of paths that people see. */
static void make_name(char *to, size_t size, const char *path, size_t path_size, bool is_path)
{
	size_t n = 0;

	for (size_t i = 0; i < path_size && path[i] && n + 1 < size; i++) {
		unsigned char c = (unsigned char)path[i];
		bool dot = c == '.' && (!n || to[n - 1] == '/');

		if (c == '/' && is_path && (!n || to[n - 1] == '/'))
			continue;
		to[n++] = c < ' ' || c == 0x7f || dot || (c == '/' && !is_path) ? '_' : (char)c;
	}
	while (n && to[n - 1] == '/')
		n--;
	to[n] = '\0';
}

/* "HOST/SESSION/ust/uid/0/64-bit": people know the first two already; LTTng begins it in several ways. */
static void name_trace(char name[512], struct ky_live_feed *feed,
		       const struct ky_live_channel *from)
{
	static const char *const domains[] = {"ust/", "kernel"};
	char path[KY_VIEWER_PATH_BYTES];
	const char *begin = path;
	size_t len;

	make_name(path, sizeof(path), from->path, sizeof(from->path), true);
	for (size_t i = 0; i < 2; i++) {
		const char *found = strstr(path, domains[i]);

		if (found && (found == path || found[-1] == '/'))
			begin = found;
	}
	snprintf(name, 480, "%.479s", *begin ? begin : "trace");
	len = strlen(name);
	for (size_t i = 0; i < feed->base.traces.len; i++) {
		if (strcmp(feed->base.traces.data[i]->name, name) != 0)
			continue;
		snprintf(name + len, 512 - len, "-%u", ++feed->renamed + 1);
		i = (size_t)-1;
	}
}

static int get_trace(struct ky_live_feed *feed, const struct ky_live_channel *from,
		     struct ky_live_feed_trace **out, struct kymo_error *err)
{
	struct ky_live_feed_trace *trace;
	char name[512];

	ky_vec_foreach(&feed->traces, it) {
		*out = *it;
		if ((*it)->id == from->trace)
			return KYMO_OK;
	}
	if (feed->traces.len >= TRACES_MAX)
		return ky_error_set(err, KYMO_E_LIMIT, "the relay has too many traces");
	name_trace(name, feed, from);
	trace = calloc(1, sizeof(*trace));
	if (!trace || ky_vec_push(&feed->traces, trace) < 0) {
		free(trace);
		return ky_error_nomem(err);
	}
	trace->id = from->trace;
	trace->metadata = (struct ky_strbuf)KY_STRBUF_INIT;
	trace->feed = ky_feed_add_trace(&feed->base, name);
	*out = trace;
	return trace->feed ? KYMO_OK : ky_error_nomem(err);
}

static bool has_stream(const struct ky_feed_trace *trace, const char *name)
{
	ky_vec_foreach(&trace->streams, stream)
		if (strcmp((*stream)->file->name, name) == 0)
			return true;
	return false;
}

/* A name that the trace does not have yet. */
static void name_stream(char name[300], struct ky_live_feed_trace *trace,
			const struct ky_live_channel *from)
{
	char base[KY_VIEWER_NAME_BYTES + 1];

	make_name(base, sizeof(base), from->name, sizeof(from->name), false);
	snprintf(name, 300, "%s", base[0] ? base : "stream");
	while (has_stream(trace->feed, name))
		snprintf(name, 300, "%s-%u", base[0] ? base : "stream", ++trace->renamed + 1);
}

static int live_feed_traces_add_metadata(struct ky_live_feed_trace *trace, uint64_t id,
					 struct kymo_error *err)
{
	ky_vec_foreach(&trace->metadata_ids, known)
		if (*known == id)
			return KYMO_OK;
	if (trace->metadata_ids.len >= METADATA_MAX)
		return ky_error_set(err, KYMO_E_LIMIT, "a trace has too much metadata");
	return ky_vec_push(&trace->metadata_ids, id) < 0 ? ky_error_nomem(err) : KYMO_OK;
}

static int add_channel(struct ky_live_feed *feed, const struct ky_live_channel *from,
		       struct kymo_error *err)
{
	struct ky_live_feed_trace *trace = NULL;
	struct ky_live_feed_channel *channel;
	char name[300];
	int ret = get_trace(feed, from, &trace, err);

	if (ret < 0)
		return ret;
	trace->wants_metadata = true;
	if (from->is_metadata)
		return live_feed_traces_add_metadata(trace, from->id, err);
	ky_vec_foreach(&feed->channels, known)
		if ((*known)->id == from->id)
			return KYMO_OK;
	if (feed->channels.len >= CHANNELS_MAX)
		return ky_error_set(err, KYMO_E_LIMIT, "the relay has too many streams");
	channel = calloc(1, sizeof(*channel));
	if (!channel || ky_vec_push(&feed->channels, channel) < 0) {
		free(channel);
		return ky_error_nomem(err);
	}
	channel->id = from->id;
	channel->trace = trace;
	name_stream(name, trace, from);
	trace->feed->is_written = true;
	return ky_feed_add_stream(&feed->base, trace->feed, name, &channel->stream, err);
}

static int add_channels(struct ky_live_feed *feed, const struct ky_live_channels *channels,
			struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (size_t i = 0; i < channels->len && !ret; i++)
		ret = add_channel(feed, &channels->data[i], err);
	return ret;
}

int ky_live_feed_channels(struct ky_live_feed *feed, struct ky_live_feed_session *session,
			  bool attach, struct kymo_error *err)
{
	struct ky_live_channels channels = KY_VEC_INIT;
	int ret = attach ? ky_live_client_attach(feed->client, session->id, &channels, err)
			 : ky_live_client_new_channels(feed->client, session->id, &channels,
						       &session->has_ended, err);

	session->wants_channels = false;
	if (!ret)
		ret = add_channels(feed, &channels, err);
	ky_vec_fini(&channels);
	return ret;
}

/* ---- metadata ------------------------------------------------------------------------ */

/* A part of a declaration may still be missing. */
static int use_metadata(struct ky_live_feed *feed, struct ky_live_feed_trace *trace,
			struct kymo_error *err)
{
	struct ky_strbuf *to = &trace->feed->files.metadata;
	struct ky_trace_class *cls;
	int ret =
		ky_metadata_read(ky_strbuf_text(&trace->metadata), trace->metadata.len, &cls, err);

	if (ret == KYMO_OK) {
		ky_trace_class_free(cls);
		ky_strbuf_clear(to);
		ky_strbuf_add(to, ky_strbuf_text(&trace->metadata), trace->metadata.len);
		feed->base.has_news = true;
		trace->incomplete_ms = 0;
		return ky_strbuf_failed(to) ? ky_error_nomem(err) : KYMO_OK;
	}
	if (!trace->incomplete_ms)
		trace->incomplete_ms = ky_os_now_ms();
	if (ret != KYMO_E_FORMAT || ky_os_now_ms() - trace->incomplete_ms > METADATA_MS)
		return ret;
	trace->wants_metadata = true;
	return KYMO_OK;
}

int ky_live_feed_metadata(struct ky_live_feed *feed, struct ky_live_feed_trace *trace,
			  struct kymo_error *err)
{
	size_t before = trace->metadata.len;
	int ret = KYMO_OK;

	trace->wants_metadata = false;
	ky_vec_foreach(&trace->metadata_ids, id) {
		for (int i = 0; i < PIECES_MAX && ret >= 0; i++) {
			ret = ky_live_client_metadata(feed->client, *id, &trace->metadata, err);
			if (ret == 0)
				break;
		}
	}
	if (ret < 0)
		return ret;
	/* A relay that has none yet says so again and again. */
	trace->wants_metadata = !trace->metadata.len;
	if (trace->metadata.len == before && !trace->incomplete_ms)
		return KYMO_OK;
	return use_metadata(feed, trace, err);
}
