/* SPDX-License-Identifier: MIT */
/* What a viewer watches: recordings, which viewers share, and their streams; requests that begin and end that. */
#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "net/link/address.h"
#include "net/viewer/viewer-client-internal.h"

#define ATTACHED_MAX 64
/* How long a viewer that asks for streams only once waits for those of a young recording. */
#define FIRST_STREAMS_NS 3000000000

/* ---- recordings that viewers share ---------------------------------------------------- */

static struct ky_viewer_recording *share(const struct ky_viewer_client *client, const char *below,
					 struct kymo_error *err)
{
	struct ky_viewer_hub *hub = client->hub;
	struct ky_viewer_recording *recording;
	char path[PATH_MAX];

	ky_vec_foreach(&hub->recordings, it) {
		if (strcmp((*it)->name, below) == 0) {
			(*it)->users++;
			return *it;
		}
	}
	snprintf(path, sizeof(path), "%s%s%s", hub->list.dir, below[0] ? "/" : "", below);
	if (ky_viewer_recording_open(path, below, client->delay_ms, client->now_ns, &recording,
				     err) < 0)
		return NULL;
	recording->serial = ++hub->serial;
	recording->users = 1;
	if (ky_vec_push(&hub->recordings, recording) == 0)
		return recording;
	ky_viewer_recording_close(recording);
	return NULL;
}

/* The smallest delay of its viewers is the recording's. */
static void want_delay(const struct ky_viewer_hub *hub, struct ky_viewer_recording *recording)
{
	uint32_t delay_ms = UINT32_MAX;

	ky_vec_foreach(&hub->clients, client)
		ky_vec_foreach(&(*client)->attached, it)
			if ((*it)->recording == recording && (*client)->delay_ms < delay_ms)
				delay_ms = (*client)->delay_ms;
	if (delay_ms != UINT32_MAX)
		ky_viewer_recording_want(recording, delay_ms);
}

static void unshare(struct ky_viewer_hub *hub, struct ky_viewer_recording *recording)
{
	if (--recording->users) {
		want_delay(hub, recording);
		return;
	}
	for (size_t i = 0; i < hub->recordings.len; i++)
		if (hub->recordings.data[i] == recording)
			hub->recordings.data[i] = hub->recordings.data[--hub->recordings.len];
	ky_viewer_recording_close(recording);
}

void ky_viewer_look(struct ky_viewer_client *client, struct ky_viewer_recording *recording)
{
	struct ky_viewer_hub *hub = client->hub;

	if (hub->update)
		hub->update(hub->data, recording);
	/* A directory that cannot be read any more has no new traces. */
	(void)ky_viewer_recording_look(recording, client->now_ns, NULL);
}

/* ---- attachments ---------------------------------------------------------------------- */

void ky_viewer_detach(struct ky_viewer_client *client, struct ky_viewer_attachment *attachment)
{
	unshare(client->hub, attachment->recording);
	client->hub->n_cursors -= attachment->cursors.len;
	ky_vec_fini(&attachment->cursors);
	free(attachment->shown);
	free(attachment);
}

struct ky_viewer_attachment *ky_viewer_attachment_of(const struct ky_viewer_client *client,
						     uint64_t session)
{
	ky_vec_foreach(&client->attached, it)
		if ((*it)->session == session)
			return *it;
	return NULL;
}

struct ky_viewer_cursor *ky_viewer_find(const struct ky_viewer_client *client, uint64_t id,
					struct ky_viewer_attachment **out)
{
	uint32_t number = (uint32_t)id;

	ky_vec_foreach(&client->attached, it) {
		struct ky_viewer_attachment *attachment = *it;

		if (attachment->recording->serial != id >> 32 || !number ||
		    number > attachment->cursors.len)
			continue;
		*out = attachment;
		return &attachment->cursors.data[number - 1];
	}
	return NULL;
}

/* How far a viewer that merges streams can be: not beyond any of them. */
static uint64_t position_of(const struct ky_viewer_attachment *attachment)
{
	uint64_t least = UINT64_MAX, most = 0;

	for (size_t i = 0; i < attachment->cursors.len; i++) {
		const struct ky_viewer_cursor *cursor = &attachment->cursors.data[i];

		if (!attachment->recording->tracks.data[i].name)
			continue;
		if (!cursor->is_over && cursor->told_cycles < least)
			least = cursor->told_cycles;
		if (cursor->told_cycles > most)
			most = cursor->told_cycles;
	}
	return least == UINT64_MAX ? most : least;
}

/* Whether the viewer may follow @more streams. */
static bool viewer_attachment_has_room(const struct ky_viewer_client *client, size_t more)
{
	const struct ky_viewer_hub *hub = client->hub;
	size_t left =
		hub->n_cursors < KY_VIEWER_CURSORS_ALL ? KY_VIEWER_CURSORS_ALL - hub->n_cursors : 0;

	ky_vec_foreach(&client->attached, it)
		more += (*it)->cursors.len;
	if (more <= KY_VIEWER_CURSORS_OWN || more <= left)
		return true;
	ky_log_warning(hub->log, "a viewer gets no further streams: viewers follow %zu",
		       hub->n_cursors);
	return false;
}

/* The viewer learns of all streams that there are now. False: no memory, or viewers follow too many. */
static bool tell_streams(struct ky_viewer_client *client, struct ky_viewer_attachment *attachment)
{
	struct ky_viewer_recording *recording = attachment->recording;
	uint64_t position = client->is_strict ? position_of(attachment) : 0;
	struct ky_viewer_reply *reply = &client->reply;

	if (recording->tracks.len > attachment->cursors.len &&
	    !viewer_attachment_has_room(client, recording->tracks.len - attachment->cursors.len))
		return false;
	reply->recording = recording;
	reply->next = attachment->cursors.len;
	reply->end = recording->tracks.len;
	reply->shown = attachment->shown;
	reply->hidden_end = attachment->hidden_end;
	reply->has_places = client->is_strict && ky_net_peer_is_local(ky_link_in_fd(client->link));
	attachment->n_passed = 0;
	while (attachment->cursors.len < recording->tracks.len) {
		const struct ky_viewer_track *track =
			&recording->tracks.data[attachment->cursors.len];
		struct ky_viewer_cursor cursor = {0};

		/* A stream that comes late has no event before that. */
		if (client->is_strict && track->name)
			cursor.told_cycles =
				track->base_cycles > position ? track->base_cycles : position;
		if (client->is_strict && track->trace->is_tardy)
			cursor.floor_cycles = position;
		if (ky_vec_push(&attachment->cursors, cursor) < 0)
			return false;
		client->hub->n_cursors++;
	}
	return true;
}

/* Only what comes from now on. Traces that are complete have nothing more to show. */
static bool seek_end(struct ky_viewer_attachment *attachment)
{
	struct ky_viewer_recording *recording = attachment->recording;

	ky_vec_foreach(&recording->traces, trace)
		if ((*trace)->is_written)
			ky_viewer_trace_list(recording, *trace);
	attachment->hidden_end = recording->tracks.len;
	attachment->shown = calloc(recording->tracks.len + 1, sizeof(bool));
	for (size_t i = 0; attachment->shown && i < recording->tracks.len; i++)
		attachment->shown[i] = !recording->tracks.data[i].trace->is_complete;
	return attachment->shown != NULL;
}

static void skip_to_end(struct ky_viewer_attachment *attachment)
{
	for (size_t i = 0; i < attachment->hidden_end; i++) {
		const struct ky_viewer_track *track = &attachment->recording->tracks.data[i];
		struct ky_viewer_cursor *cursor = &attachment->cursors.data[i];

		cursor->is_over = !attachment->shown[i];
		cursor->told_cycles = 0;
		if (track->name)
			cursor->next = ky_viewer_track_entries(track);
	}
}

static struct ky_viewer_attachment *attachment_new(struct ky_viewer_client *client,
						   const struct ky_viewer_entry *entry)
{
	struct ky_viewer_attachment *attachment = calloc(1, sizeof(*attachment));
	struct kymo_error err;

	if (!attachment)
		return NULL;
	attachment->session = entry->id;
	attachment->recording = share(client, entry->below, &err);
	if (!attachment->recording) {
		ky_log_warning(client->hub->log, "%s: cannot be shown to a viewer: %s",
			       entry->below, err.message);
		free(attachment);
		return NULL;
	}
	if (ky_vec_push(&client->attached, attachment) == 0) {
		want_delay(client->hub, attachment->recording);
		return attachment;
	}
	ky_viewer_detach(client, attachment);
	return NULL;
}

/*
 * A recorder writes the packets of buffers that are not full only from the moment on when a viewer is there. Trace Compass, which never
 * asks for new streams, would miss them all.
 */
static bool lacks_streams(const struct ky_viewer_client *client,
			  const struct ky_viewer_recording *recording)
{
	return client->ends_early && client->now_ns - client->asked_ns < FIRST_STREAMS_NS &&
	       !ky_viewer_recording_is_told(recording) &&
	       !ky_viewer_recording_is_over(recording, client->now_ns);
}

/* A viewer that attaches once more continues where it was. */
static int viewer_attachment_begin(struct ky_viewer_client *client,
				   struct ky_viewer_attachment *attachment, bool at_end)
{
	ky_viewer_look(client, attachment->recording);
	ky_viewer_recording_look_at_all(attachment->recording, client->now_ns);
	client->is_held = lacks_streams(client, attachment->recording);
	if (client->is_held)
		return KY_VIEWER_ATTACH_OK;
	/* A complete recording has its events only in the past. */
	at_end = at_end && !ky_viewer_recording_is_over(attachment->recording, client->now_ns);
	if (at_end && !seek_end(attachment))
		return KY_VIEWER_ATTACH_NO_SESSION;
	if (!tell_streams(client, attachment))
		return KY_VIEWER_ATTACH_NO_SESSION;
	if (at_end)
		skip_to_end(attachment);
	return KY_VIEWER_ATTACH_OK;
}

static void viewer_attachment_put_streams(struct ky_viewer_client *client, uint32_t status)
{
	const struct ky_viewer_streams answer = {htobe32(status),
						 htobe32(ky_viewer_reply_streams(&client->reply))};

	ky_viewer_reply_put(&client->reply, &answer, sizeof(answer));
}

/* A status of ATTACH; @attachment: NULL, unless it is OK. */
static int viewer_attachment_join(struct ky_viewer_client *client, uint64_t session,
				  struct ky_viewer_attachment **attachment)
{
	const struct ky_viewer_entry *entry;

	*attachment = NULL;
	ky_viewer_list_look(&client->hub->list, client->now_ns, client->hub->is_connected,
			    client->hub->data);
	entry = ky_viewer_list_find(&client->hub->list, session);
	if (entry && client->attached.len >= ATTACHED_MAX)
		return KY_VIEWER_ATTACH_NO_SESSION;
	if (entry)
		*attachment = attachment_new(client, entry);
	return *attachment ? KY_VIEWER_ATTACH_OK : KY_VIEWER_ATTACH_UNKNOWN;
}

int ky_viewer_answer_attach(struct ky_viewer_client *client)
{
	const struct ky_viewer_attach *request = (const void *)client->body;
	uint64_t session = be64toh(request->session);
	uint32_t seek = be32toh(request->seek);
	struct ky_viewer_attachment *attachment = ky_viewer_attachment_of(client, session);
	int status = KY_VIEWER_ATTACH_OK;

	if (!client->has_session) {
		viewer_attachment_put_streams(client, KY_VIEWER_ATTACH_NO_SESSION);
		return 0;
	}
	if (seek != KY_VIEWER_SEEK_BEGIN && seek != KY_VIEWER_SEEK_LAST) {
		viewer_attachment_put_streams(client, KY_VIEWER_ATTACH_SEEK);
		return 0;
	}
	if (attachment && !client->is_held) {
		if (!tell_streams(client, attachment))
			status = KY_VIEWER_ATTACH_NO_SESSION;
	} else {
		if (!attachment)
			status = viewer_attachment_join(client, session, &attachment);
		if (attachment)
			status = viewer_attachment_begin(client, attachment,
							 seek == KY_VIEWER_SEEK_LAST);
	}
	if (!client->is_held)
		viewer_attachment_put_streams(client, (uint32_t)status);
	return 0;
}

int ky_viewer_answer_detach(struct ky_viewer_client *client)
{
	uint64_t session = be64toh(*(const ky_be64 *)client->body);
	bool is_attached = ky_viewer_attachment_of(client, session) != NULL;
	uint32_t status = htobe32(is_attached ? KY_VIEWER_OK : KY_VIEWER_UNKNOWN);

	/* It stays in the list, so that a viewer that comes back gets nothing twice. */
	ky_viewer_reply_put(&client->reply, &status, sizeof(status));
	return 0;
}

static bool is_read_out(const struct ky_viewer_attachment *attachment)
{
	for (size_t i = 0; i < attachment->cursors.len; i++) {
		const struct ky_viewer_track *track = &attachment->recording->tracks.data[i];

		/* A viewer may not ask again for a stream whose files were removed. */
		if (track->name && !attachment->cursors.data[i].is_over &&
		    ky_viewer_track_entries(track))
			return false;
	}
	return true;
}

int ky_viewer_answer_new_streams(struct ky_viewer_client *client)
{
	uint64_t session = be64toh(*(const ky_be64 *)client->body);
	struct ky_viewer_attachment *attachment = ky_viewer_attachment_of(client, session);
	struct ky_viewer_recording *recording;

	if (!attachment) {
		viewer_attachment_put_streams(client, KY_VIEWER_STREAMS_ERROR);
		return 0;
	}
	recording = attachment->recording;
	ky_viewer_look(client, recording);
	ky_viewer_recording_look_at_all(recording, client->now_ns);
	if (!tell_streams(client, attachment))
		return -ENOMEM;
	if (ky_viewer_reply_streams(&client->reply))
		viewer_attachment_put_streams(client, KY_VIEWER_STREAMS_OK);
	else if (ky_viewer_recording_is_over(recording, client->now_ns) && is_read_out(attachment))
		viewer_attachment_put_streams(client, KY_VIEWER_STREAMS_HUP);
	else
		viewer_attachment_put_streams(client, KY_VIEWER_STREAMS_NO_NEW);
	return 0;
}
