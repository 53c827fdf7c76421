/* SPDX-License-Identifier: MIT */
/*
 * A round asks every stream for its next packet, unless its readers are far behind. So what is received and not yet read
 * stays small, and the relay holds the rest.
 *
 * A packet can need metadata, and a stream can come: the relay flags that, and both come first.
 */
#include "net/reader/live-feed.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ctf/tsdl/tsdl.h"
#include "os/now.h"

/* Between two looks for new sessions of the name. */
#define LIST_MS 1000
/* Received bytes of a stream that readers have not reached. */
#define UNREAD_MAX ((uint64_t)1 << 20)
/* Between two rounds that bring nothing. */
#define PAUSE_MS 30
/* Metadata that cannot be read is incomplete for so long, at most. */
#define METADATA_MS 10000
#define PIECES_MAX  65536
/* Of all sessions. */
#define TRACES_MAX   4096
#define METADATA_MAX 64 /* streams of metadata, of a trace */
#define CHANNELS_MAX 65536

struct channel {
	uint64_t id;
	struct ky_feed_stream *stream;
	struct live_trace *trace;
	struct ky_live_index index; /* of a packet that must wait; has_index */
	bool has_index;
	bool has_all; /* of a feed that is not live: the stream had nothing more */
};

struct live_trace {
	uint64_t id; /* the relay's */
	struct ky_feed_trace *feed;
	unsigned int renamed; /* streams whose name had to get a number */
	KY_VEC(uint64_t) metadata_ids;
	struct ky_strbuf metadata; /* what has come; the feed has the part that can be read */
	int64_t incomplete_ms;	   /* since when it cannot be read; 0: it can */
	bool wants_metadata;
};

struct session {
	uint64_t id;
	bool has_ended, wants_channels;
};

struct live_feed {
	struct ky_feed base;
	struct ky_live_client *client;
	struct ky_live_address address;
	unsigned int renamed; /* traces whose name had to get a number */
	int64_t listed_ms;    /* when the relay listed its sessions */
	KY_VEC(struct session) sessions;
	KY_VEC(struct live_trace *) traces;
	KY_VEC(struct channel *) channels;
};

/* ---- addresses ------------------------------------------------------------------------ */

#define NET  "net://"
#define KYMO "kymo://"

bool ky_live_address_is(const char *text)
{
	return strncmp(text, NET, strlen(NET)) == 0 || ky_net_address_is(text);
}

static int bad_address(const char *text, struct kymo_error *err)
{
	return ky_error_set(err, KYMO_E_INVALID,
			    strncmp(text, NET, strlen(NET)) == 0
				    ? "'%s' is not " NET "HOST[:PORT]/host/MACHINE/SESSION"
				    : "'%s' is not " KYMO "HOST[:PORT]/[MACHINE/]NAME",
			    text);
}

/* "A/B" or "B"; false: it is neither. */
static bool split_name(const char *text, struct ky_live_address *address)
{
	const char *slash = strchr(text, '/'), *name = slash ? slash + 1 : text;
	size_t machine_len = slash ? (size_t)(slash - text) : 0, name_len = strlen(name);

	/* LTTng's names have blanks and more. */
	if (strchr(name, '/') || name_len >= sizeof(address->name) ||
	    machine_len >= sizeof(address->machine) || (slash && !machine_len))
		return false;
	memcpy(address->machine, text, machine_len);
	memcpy(address->name, name, name_len);
	return name_len > 0;
}

int ky_live_address_parse(const char *text, struct ky_live_address *address, struct kymo_error *err)
{
	bool is_kymo = ky_net_address_is(text);
	const char *host = text + strlen(is_kymo ? KYMO : NET), *slash = strchr(host, '/');
	size_t host_len = slash ? (size_t)(slash - host) : strlen(host);
	char name[300];
	const char *close;
	int ret;

	*address = (struct ky_live_address){.is_kymo = is_kymo};
	if (!host_len || host_len >= sizeof(name))
		return bad_address(text, err);
	snprintf(name, sizeof(name), "%.*s", (int)host_len, host);
	ret = ky_net_address_parse_host(name, &address->relay, err);
	if (ret < 0)
		return ret;
	close = strrchr(name, ']');
	if (!is_kymo && !strchr(close ? close : name, ':'))
		snprintf(address->relay.port, sizeof(address->relay.port), "%d", KY_VIEWER_PORT);
	if (!slash || !slash[1])
		return KYMO_OK;
	slash++;
	if (!is_kymo && strncmp(slash, "host/", 5) != 0)
		return bad_address(text, err);
	if (!split_name(is_kymo ? slash : slash + 5, address) || (!is_kymo && !address->machine[0]))
		return bad_address(text, err);
	return KYMO_OK;
}

/* ---- traces and streams --------------------------------------------------------------- */

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
static void name_trace(char name[512], struct live_feed *feed, const struct ky_live_channel *from)
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

static int get_trace(struct live_feed *feed, const struct ky_live_channel *from,
		     struct live_trace **out, struct kymo_error *err)
{
	struct live_trace *trace;
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
static void name_stream(char name[300], struct live_trace *trace,
			const struct ky_live_channel *from)
{
	char base[KY_VIEWER_NAME_BYTES + 1];

	make_name(base, sizeof(base), from->name, sizeof(from->name), false);
	snprintf(name, 300, "%s", base[0] ? base : "stream");
	while (has_stream(trace->feed, name))
		snprintf(name, 300, "%s-%u", base[0] ? base : "stream", ++trace->renamed + 1);
}

static int add_metadata(struct live_trace *trace, uint64_t id, struct kymo_error *err)
{
	ky_vec_foreach(&trace->metadata_ids, known)
		if (*known == id)
			return KYMO_OK;
	if (trace->metadata_ids.len >= METADATA_MAX)
		return ky_error_set(err, KYMO_E_LIMIT, "a trace has too much metadata");
	return ky_vec_push(&trace->metadata_ids, id) < 0 ? ky_error_nomem(err) : KYMO_OK;
}

static int add_channel(struct live_feed *feed, const struct ky_live_channel *from,
		       struct kymo_error *err)
{
	struct live_trace *trace = NULL;
	struct channel *channel;
	char name[300];
	int ret = get_trace(feed, from, &trace, err);

	if (ret < 0)
		return ret;
	trace->wants_metadata = true;
	if (from->is_metadata)
		return add_metadata(trace, from->id, err);
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

static int add_channels(struct live_feed *feed, const struct ky_live_channels *channels,
			struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (size_t i = 0; i < channels->len && !ret; i++)
		ret = add_channel(feed, &channels->data[i], err);
	return ret;
}

static int ask_for_channels(struct live_feed *feed, struct session *session, bool attach,
			    struct kymo_error *err)
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

/* ---- metadata ------------------------------------------------------------------------- */

/* A part of a declaration may still be missing. */
static int use_metadata(struct live_feed *feed, struct live_trace *trace, struct kymo_error *err)
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

static int ask_for_metadata(struct live_feed *feed, struct live_trace *trace,
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

/* What must come before packets: new streams, then metadata. */
static int ask_first(struct live_feed *feed, struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (size_t i = 0; i < feed->sessions.len && !ret; i++)
		if (feed->sessions.data[i].wants_channels && !feed->sessions.data[i].has_ended)
			ret = ask_for_channels(feed, &feed->sessions.data[i], false, err);
	for (size_t i = 0; i < feed->traces.len && !ret; i++)
		if (feed->traces.data[i]->wants_metadata)
			ret = ask_for_metadata(feed, feed->traces.data[i], err);
	return ret;
}

/* ---- packets -------------------------------------------------------------------------- */

/* The relay says what is new, but not of which session. */
static void note_flags(struct live_feed *feed, struct channel *channel)
{
	channel->trace->wants_metadata |= channel->index.has_metadata;
	ky_vec_foreach(&feed->sessions, session)
		session->wants_channels |= channel->index.has_streams;
}

/* The packet of channel->index. *progress: it has come. */
static int bring_packet(struct live_feed *feed, struct channel *channel, bool *progress,
			struct kymo_error *err)
{
	struct ky_feed_stream *stream = channel->stream;
	int ret;

	channel->has_index = true;
	if (channel->trace->wants_metadata && channel->trace->metadata_ids.len)
		return KYMO_OK;
	ret = ky_live_client_packet(feed->client, channel->id, &channel->index, stream->file->fd,
				    stream->file->size_bytes, err);
	note_flags(feed, channel);
	if (ret < 0 || (!ret && !channel->index.is_gone))
		return ret;
	channel->has_index = false;
	/* The stream's next answer tells its end. */
	if (channel->index.is_gone)
		return KYMO_OK;
	*progress = true;
	feed->base.kept_bytes += feed->base.keeps ? channel->index.packet_bytes : 0;
	if (feed->base.kept_bytes > KY_FEED_KEPT_MAX)
		return ky_error_set(err, KYMO_E_LIMIT,
				    "more than %llu GiB have come from the relay",
				    (unsigned long long)(KY_FEED_KEPT_MAX >> 30));
	return ky_feed_add_packet(stream, channel->index.packet_bytes, channel->index.end_cycles) <
			       0
		       ? ky_error_nomem(err)
		       : KYMO_OK;
}

static void note_inactive(struct ky_feed_stream *stream, uint64_t until_cycles, bool *progress)
{
	if (stream->has_until && until_cycles <= stream->until_cycles)
		return;
	stream->until_cycles = until_cycles;
	stream->has_until = true;
	*progress = true;
}

static int ask_channel(struct live_feed *feed, struct channel *channel, bool *progress,
		       struct kymo_error *err)
{
	int ret;

	if (channel->stream->has_ended || channel->has_all ||
	    (feed->base.is_live && ky_feed_unread(channel->stream) > UNREAD_MAX))
		return KYMO_OK;
	if (!channel->has_index) {
		ret = ky_live_client_index(feed->client, channel->id, &channel->index, err);
		if (ret < 0)
			return ret;
		note_flags(feed, channel);
	}
	if (channel->index.has_metadata || channel->index.has_streams) {
		ret = ask_first(feed, err);
		if (ret < 0)
			return ret;
		channel->index.has_metadata = channel->index.has_streams = false;
	}
	switch (channel->index.status) {
	case KY_VIEWER_INDEX_OK:
		return bring_packet(feed, channel, progress, err);
	case KY_VIEWER_INDEX_INACTIVE:
		note_inactive(channel->stream, channel->index.end_cycles, progress);
		channel->has_all = !feed->base.is_live;
		return KYMO_OK;
	case KY_VIEWER_INDEX_HUP:
	case KY_VIEWER_INDEX_EOF:
		channel->stream->has_ended = *progress = true;
		return KYMO_OK;
	default:
		channel->has_all = !feed->base.is_live;
		return KYMO_OK;
	}
}

/* Streams that have ended end traces; a stream that comes later continues its trace. */
static bool note_ends(struct live_feed *feed)
{
	bool any = false;

	ky_vec_foreach(&feed->traces, trace) {
		bool open = !(*trace)->feed->streams.len;

		ky_vec_foreach(&(*trace)->feed->streams, stream)
			open |= !(*stream)->has_ended;
		(*trace)->feed->is_written = open;
		any |= open;
	}
	return any;
}

static bool all_ended(const struct live_feed *feed)
{
	ky_vec_foreach(&feed->sessions, session)
		if (!session->has_ended)
			return false;
	return true;
}

static int look_for_sessions(struct live_feed *feed, struct kymo_error *err);

/* One question for each stream. *progress: there is something new. */
static int round_once(struct live_feed *feed, bool *progress, struct kymo_error *err)
{
	bool open;
	int ret = KYMO_OK;

	*progress = false;
	if (feed->base.is_live && ky_os_now_ms() - feed->listed_ms > LIST_MS)
		ret = look_for_sessions(feed, err);
	if (!ret)
		ret = ask_first(feed, err);
	for (size_t i = 0; i < feed->channels.len && !ret; i++)
		ret = ask_channel(feed, feed->channels.data[i], progress, err);
	if (ret < 0)
		return ret;
	open = note_ends(feed);
	ky_vec_foreach(&feed->sessions, session)
		session->wants_channels |= !open || !feed->channels.len;
	/* A session of the same name may have come meanwhile. */
	if (!open && all_ended(feed) && feed->base.is_live)
		ret = look_for_sessions(feed, err);
	feed->base.has_ended = !open && all_ended(feed);
	return ret;
}

static int bring_more(struct ky_feed *base, int timeout_ms, struct kymo_error *err)
{
	struct live_feed *feed = (struct live_feed *)base;
	int64_t end = ky_os_now_ms() + timeout_ms, left;
	bool progress = false;
	int ret;

	do {
		ret = round_once(feed, &progress, err);
		left = end - ky_os_now_ms();
		if (ret < 0 || progress || base->has_news || base->has_ended || left <= 0)
			break;
	} while (poll(NULL, 0, left < PAUSE_MS ? (int)left : PAUSE_MS) == 0);
	return ret;
}

/* ---- the feed ------------------------------------------------------------------------- */

static void free_feed(struct ky_feed *base)
{
	struct live_feed *feed = (struct live_feed *)base;

	ky_live_client_close(feed->client);
	ky_vec_foreach(&feed->traces, trace) {
		ky_vec_fini(&(*trace)->metadata_ids);
		ky_strbuf_fini(&(*trace)->metadata);
		free(*trace);
	}
	ky_vec_foreach(&feed->channels, channel)
		free(*channel);
	ky_vec_fini(&feed->traces);
	ky_vec_fini(&feed->channels);
	ky_vec_fini(&feed->sessions);
	ky_feed_fini(base);
	free(feed);
}

static const struct ky_feed_ops live_feed_ops = {.more = bring_more, .free = free_feed};

static int no_session(const struct ky_live_sessions *all, const struct ky_live_address *address,
		      struct kymo_error *err)
{
	struct ky_strbuf names = KY_STRBUF_INIT;

	for (size_t i = 0; i < all->len && i < 8; i++)
		ky_strbuf_addf(&names, "%s%.64s/%.64s", i ? ", " : "", all->data[i].host,
			       all->data[i].name);
	ky_error_set(err, KYMO_E_NOT_FOUND, "the relay %s, port %s, has no session '%s'",
		     address->relay.host, address->relay.port, address->name);
	ky_error_hint(err, all->len ? "it has %s" : "it has none%s", ky_strbuf_text(&names));
	ky_strbuf_fini(&names);
	return KYMO_E_NOT_FOUND;
}

static bool has_session(const struct live_feed *feed, uint64_t id)
{
	ky_vec_foreach(&feed->sessions, session)
		if (session->id == id)
			return true;
	return false;
}

/* A user's session is several sessions of the relay, of one machine: one each for the kernel and for programs. */
static int choose_sessions(struct live_feed *feed, const struct ky_live_sessions *all,
			   struct kymo_error *err)
{
	const struct ky_live_address *address = &feed->address;
	const char *machine = NULL;

	ky_vec_foreach(all, session) {
		struct session chosen = {.id = session->id};

		if (strcmp(session->name, address->name) != 0 ||
		    (address->machine[0] && strcmp(session->host, address->machine) != 0))
			continue;
		if (machine && strcmp(machine, session->host) != 0) {
			ky_error_set(err, KYMO_E_INVALID,
				     "the machines %.64s and %.64s have a session '%s'", machine,
				     session->host, address->name);
			ky_error_hint(err, "name the machine: MACHINE/NAME");
			return KYMO_E_INVALID;
		}
		machine = session->host;
		if (!has_session(feed, session->id) && ky_vec_push(&feed->sessions, chosen) < 0)
			return ky_error_nomem(err);
	}
	return feed->sessions.len ? KYMO_OK : no_session(all, address, err);
}

/* The sessions of the relay that have the name, and that are not known. */
static int list_sessions(struct live_feed *feed, struct kymo_error *err)
{
	struct ky_live_sessions all = KY_VEC_INIT;
	int ret = ky_live_client_sessions(feed->client, &all, err);

	feed->listed_ms = ky_os_now_ms();
	if (!ret)
		ret = choose_sessions(feed, &all, err);
	ky_live_sessions_fini(&all);
	return ret;
}

static int attach_from(struct live_feed *feed, size_t first, struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (size_t i = first; i < feed->sessions.len && !ret; i++)
		ret = ask_for_channels(feed, &feed->sessions.data[i], true, err);
	return ret;
}

static int look_for_sessions(struct live_feed *feed, struct kymo_error *err)
{
	size_t known = feed->sessions.len;
	int ret = list_sessions(feed, err);

	return ret < 0 ? ret : attach_from(feed, known, err);
}

static int attach(struct live_feed *feed, struct kymo_error *err)
{
	int ret = list_sessions(feed, err);

	if (!ret)
		ret = ky_live_client_begin_session(feed->client, err);
	return ret < 0 ? ret : attach_from(feed, 0, err);
}

/* Everything that the relay has now. */
static int bring_all(struct live_feed *feed, struct kymo_error *err)
{
	bool progress = true;
	int ret = KYMO_OK, quiet = 0;

	/* What a flag announces comes in the round after it. */
	while (!ret && !feed->base.has_ended && quiet < 3) {
		ret = round_once(feed, &progress, err);
		quiet = progress ? 0 : quiet + 1;
	}
	feed->base.has_ended = true;
	ky_vec_foreach(&feed->base.traces, trace)
		(*trace)->is_written = false;
	return ret;
}

int ky_live_feed_open(struct ky_live_client *client, const struct ky_live_address *address,
		      bool is_live, bool keeps, struct ky_feed **out, struct kymo_error *err)
{
	struct live_feed *feed = calloc(1, sizeof(*feed));
	int ret;

	*out = NULL;
	if (!feed) {
		ky_live_client_close(client);
		return ky_error_nomem(err);
	}
	ky_feed_init(&feed->base, &live_feed_ops, is_live);
	feed->base.keeps = keeps;
	feed->client = client;
	feed->address = *address;
	ret = attach(feed, err);
	if (!ret)
		ret = ask_first(feed, err);
	if (!ret && !is_live)
		ret = bring_all(feed, err);
	if (ret < 0) {
		free_feed(&feed->base);
		return ret;
	}
	*out = &feed->base;
	return KYMO_OK;
}
