/* SPDX-License-Identifier: MIT */
/*
 * A round asks every stream for its next packet, unless its readers are far behind. So what is received and not yet read
 * stays small, and the relay holds the rest.
 *
 * A packet can need metadata, and a stream can come: the relay flags that, and both come first.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "net/reader/live-feed-internal.h"
#include "os/now.h"

/* Between two looks for new sessions of the name. */
#define LIST_MS 1000
/* Received bytes of a stream that readers have not reached. */
#define UNREAD_MAX ((uint64_t)1 << 20)
/* Packets without bytes after each other, of a stream. */
#define EMPTY_MAX 1000
/* Between two rounds that bring nothing. */
#define PAUSE_MS 30

/* ---- sessions ------------------------------------------------------------------------ */

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

static bool has_session(const struct ky_live_feed *feed, uint64_t id)
{
	ky_vec_foreach(&feed->sessions, session)
		if (session->id == id)
			return true;
	return false;
}

/* A user's session is several sessions of the relay, of one machine: one each for the kernel and for programs. */
static int choose_sessions(struct ky_live_feed *feed, const struct ky_live_sessions *all,
			   struct kymo_error *err)
{
	const struct ky_live_address *address = &feed->address;
	const char *machine = NULL;

	ky_vec_foreach(all, session) {
		struct ky_live_feed_session chosen = {.id = session->id};

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
static int list_sessions(struct ky_live_feed *feed, struct kymo_error *err)
{
	struct ky_live_sessions all = KY_VEC_INIT;
	int ret = ky_live_client_sessions(feed->client, &all, err);

	feed->listed_ms = ky_os_now_ms();
	if (!ret)
		ret = choose_sessions(feed, &all, err);
	ky_live_sessions_fini(&all);
	return ret;
}

static int attach_from(struct ky_live_feed *feed, size_t first, struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (size_t i = first; i < feed->sessions.len && !ret; i++)
		ret = ky_live_feed_channels(feed, &feed->sessions.data[i], true, err);
	return ret;
}

static int look_for_sessions(struct ky_live_feed *feed, struct kymo_error *err)
{
	size_t known = feed->sessions.len;
	int ret = list_sessions(feed, err);

	return ret < 0 ? ret : attach_from(feed, known, err);
}

static int live_feed_attach(struct ky_live_feed *feed, struct kymo_error *err)
{
	int ret = list_sessions(feed, err);

	if (!ret)
		ret = ky_live_client_begin_session(feed->client, err);
	return ret < 0 ? ret : attach_from(feed, 0, err);
}

/* ---- packets ------------------------------------------------------------------------- */

/* What must come before packets: new streams, then metadata. */
static int ask_first(struct ky_live_feed *feed, struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (size_t i = 0; i < feed->sessions.len && !ret; i++)
		if (feed->sessions.data[i].wants_channels && !feed->sessions.data[i].has_ended)
			ret = ky_live_feed_channels(feed, &feed->sessions.data[i], false, err);
	for (size_t i = 0; i < feed->traces.len && !ret; i++)
		if (feed->traces.data[i]->wants_metadata)
			ret = ky_live_feed_metadata(feed, feed->traces.data[i], err);
	return ret;
}

/* The relay says what is new, but not of which session. */
static void note_flags(struct ky_live_feed *feed, struct ky_live_feed_channel *channel)
{
	channel->trace->wants_metadata |= channel->index.has_metadata;
	ky_vec_foreach(&feed->sessions, session)
		session->wants_channels |= channel->index.has_streams;
}

/* Before a packet comes: the relay says how large it is. */
static int check_space(const struct ky_live_feed *feed, uint64_t packet_bytes,
		       struct kymo_error *err)
{
	char size[32];

	if (feed->base.held_bytes <= feed->space_bytes &&
	    packet_bytes <= feed->space_bytes - feed->base.held_bytes)
		return KYMO_OK;
	ky_error_set(err, KYMO_E_LIMIT, "what the relay sends takes more than %s",
		     ky_format_bytes(size, feed->space_bytes));
	ky_error_input(err, "relay space");
	ky_error_hint(err,
		      feed->base.is_live && !feed->base.keeps
			      ? "give a larger size"
			      : "give a larger size, follow the recording, or read the relay's own "
				"directory");
	return KYMO_E_LIMIT;
}

/* The packet of channel->index. *progress: it has come. */
static int bring_packet(struct ky_live_feed *feed, struct ky_live_feed_channel *channel,
			bool *progress, struct kymo_error *err)
{
	struct ky_feed_stream *stream = channel->stream;
	int ret;

	channel->has_index = true;
	if (channel->trace->wants_metadata && channel->trace->metadata_ids.len)
		return KYMO_OK;
	ret = check_space(feed, channel->index.packet_bytes, err);
	if (ret < 0)
		return ret;
	ret = ky_live_client_packet(feed->client, channel->id, &channel->index, stream->file->fd,
				    stream->file->size_bytes, err);
	note_flags(feed, channel);
	if (ret < 0 || (!ret && !channel->index.is_gone))
		return ret;
	channel->has_index = false;
	channel->n_empty = 0;
	/* The stream's next answer tells its end. */
	if (channel->index.is_gone)
		return KYMO_OK;
	*progress = true;
	feed->base.held_bytes += channel->index.packet_bytes;
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

static int ask_channel(struct ky_live_feed *feed, struct ky_live_feed_channel *channel,
		       bool *progress, struct kymo_error *err)
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
		if (channel->index.packet_bytes)
			return bring_packet(feed, channel, progress, err);
		/* The reader has the new streams now, and asks again. */
		*progress = true;
		return ++channel->n_empty > EMPTY_MAX
			       ? ky_error_set(err, KYMO_E_FORMAT,
					      "the relay sends too many packets without bytes")
			       : KYMO_OK;
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

/* ---- rounds -------------------------------------------------------------------------- */

/* Streams that have ended end traces; a stream that comes later continues its trace. */
static bool note_ends(struct ky_live_feed *feed)
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

static bool live_feed_all_ended(const struct ky_live_feed *feed)
{
	ky_vec_foreach(&feed->sessions, session)
		if (!session->has_ended)
			return false;
	return true;
}

/* One question for each stream. *progress: there is something new. */
static int round_once(struct ky_live_feed *feed, bool *progress, struct kymo_error *err)
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
	if (!open && live_feed_all_ended(feed) && feed->base.is_live)
		ret = look_for_sessions(feed, err);
	feed->base.has_ended = !open && live_feed_all_ended(feed);
	return ret;
}

static int bring_more(struct ky_feed *base, int timeout_ms, struct kymo_error *err)
{
	struct ky_live_feed *feed = (struct ky_live_feed *)base;
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

/* Everything that the relay has now. */
static int bring_all(struct ky_live_feed *feed, struct kymo_error *err)
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

/* ---- the feed ------------------------------------------------------------------------ */

static void free_feed(struct ky_feed *base)
{
	struct ky_live_feed *feed = (struct ky_live_feed *)base;

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

static uint64_t live_feed_space(const struct ky_live_feed_options *options)
{
	if (options->space_bytes)
		return options->space_bytes;
	return options->is_live && !options->keeps ? KY_FEED_HELD_MAX : KY_FEED_KEPT_MAX;
}

int ky_live_feed_open(struct ky_live_client *client, const struct ky_live_address *address,
		      const struct ky_live_feed_options *options, struct ky_feed **out,
		      struct kymo_error *err)
{
	bool is_live = options->is_live;
	struct ky_live_feed *feed = calloc(1, sizeof(*feed));
	int ret;

	*out = NULL;
	if (!feed) {
		ky_live_client_close(client);
		return ky_error_nomem(err);
	}
	ky_feed_init(&feed->base, &live_feed_ops, is_live);
	feed->base.keeps = options->keeps;
	feed->space_bytes = live_feed_space(options);
	feed->client = client;
	feed->address = *address;
	ret = live_feed_attach(feed, err);
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
