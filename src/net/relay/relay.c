/* SPDX-License-Identifier: MIT */
#include "net/relay/relay.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "net/link/clients.h"
#include "net/lttng/lttng-relay.h"
#include "net/files/relay-files.h"
#include "net/files/relay-hosts.h"
#include "net/relay/relay-readers.h"
#include "net/relay/relay-session.h"
#include "os/file.h"
#include "os/now.h"
#include "store/live/live-file.h"

#define CLIENTS_MAX 1000
/* What files may have ahead: so much, and this part of a quota. */
#define ROOM_BYTES (UINT64_C(1) << 30)
#define ROOM_SHARE 4
/* How long a client may be silent before and after it has said who it is. */
#define GREETING_S     10
#define SILENCE_S      60
#define SETTLE_S       5 /* until the first look at old sessions */
#define CLEAN_S	       600
#define CLEAN_PAUSE_NS UINT64_C(50000000) /* between two parts of it */
/* A recorder gets an acknowledgement after so many bytes, with a turn after this time, and after twice the time in any case. */
#define ACK_BYTES (4u << 20)
#define ACK_NS	  UINT64_C(20000000)

struct client {
	struct ky_client base;
	struct ky_relay *relay;
	struct ky_relay_session *session; /* NULL: it has not said who it is */
	struct ky_relay_host *host;
	struct ky_relay_use counted; /* of the session's, in the host's count */
	int watch;		     /* for live readers; -1: none */
	uint32_t delay_ms;	     /* that the recorder knows its readers want */
	/* The frame that is coming in. */
	uint8_t head[KY_FRAME_HEAD_BYTES];
	size_t n_head;
	struct ky_frame frame;
	uint64_t left_bytes; /* of its payload */
	uint8_t *hello;	     /* the payload of KY_FRAME_HELLO, until it is whole */
	size_t n_hello;
	/* What goes out: the beginning of a frame that did not fit. */
	uint8_t output[64];
	size_t n_output;
	uint64_t acknowledged;
	uint64_t acknowledged_bytes; /* of the session, when it was acknowledged */
	int64_t acknowledged_ns;
	bool owes_ack;		  /* the timer acknowledges */
	uint32_t reader_delay_ms; /* that a reader wishes, which leaves */
};

struct ky_relay {
	struct ky_relay_options options;
	struct ky_loop *loop;
	int dir_fd;
	DIR *cleaned; /* NULL: no look at old sessions goes on */
	struct ky_loop_source *timer, *ack_timer;
	size_t n_owing; /* clients that the second timer acknowledges; it is set while there are some */
	struct ky_relay_hosts hosts;
	struct ky_relay_readers readers;
	struct ky_relay_batch batch; /* of the client whose turn it is */
	struct ky_clients clients;
	struct ky_lttng_relay *lttng; /* NULL: no daemon of LTTng can connect */
};

static const struct ky_client_calls calls;

/* ---- answers -------------------------------------------------------------------------- */

/* Sends what waits. False: the client takes no more at present. */
static bool relay_flush(struct client *client)
{
	const struct iovec part = {client->output, client->n_output};
	ssize_t sent = client->n_output ? ky_link_send(client->base.link, &part, 1) : 0;

	if (sent > 0) {
		client->n_output -= (size_t)sent;
		memmove(client->output, client->output + sent, client->n_output);
	}
	return client->n_output == 0;
}

/* A frame with one number. When the client does not take it, a later one has the news. */
static bool relay_answer(struct client *client, enum ky_frame_type type, uint64_t value)
{
	const struct ky_frame frame = {type, 0, 0, sizeof(value)};

	if (!relay_flush(client))
		return false;
	value = htole64(value);
	ky_frame_put(&frame, client->output);
	memcpy(client->output + KY_FRAME_HEAD_BYTES, &value, sizeof(value));
	client->n_output = KY_FRAME_HEAD_BYTES + sizeof(value);
	(void)relay_flush(client);
	return true;
}

static void relay_set_owing(struct client *client, bool owes)
{
	struct ky_relay *relay = client->relay;

	if (client->owes_ack == owes)
		return;
	client->owes_ack = owes;
	relay->n_owing += owes ? 1 : -1;
	if (relay->n_owing == owes)
		ky_loop_set_timer(relay->ack_timer, owes ? 2 * ACK_NS : 0);
}

static void acknowledge(struct client *client, bool is_asked)
{
	uint64_t next = client->session ? ky_relay_session_next(client->session) : 0;

	relay_set_owing(client, false);
	if ((next == client->acknowledged && !is_asked) ||
	    !relay_answer(client, KY_FRAME_ACK, next))
		return;
	client->acknowledged = next;
	client->acknowledged_bytes = ky_relay_session_bytes(client->session);
	client->acknowledged_ns = ky_os_now_ns();
}

/*
 * Each acknowledgement wakes the recorder and costs both sides: there is one for much data, or a
 * little later.
 */
static void acknowledge_soon(struct client *client)
{
	if (!client->session || ky_relay_session_next(client->session) == client->acknowledged)
		return;
	if (ky_relay_session_is_complete(client->session) ||
	    ky_relay_session_bytes(client->session) - client->acknowledged_bytes >= ACK_BYTES ||
	    ky_os_now_ns() - client->acknowledged_ns >= (int64_t)ACK_NS)
		acknowledge(client, false);
	else
		relay_set_owing(client, true);
}

static int take_acks(void *data, struct kymo_error *err)
{
	struct ky_relay *relay = data;

	(void)err;
	ky_loop_set_timer(relay->ack_timer, 0);
	ky_vec_foreach(&relay->clients.list, it)
		if ((*it)->calls == &calls && ((struct client *)*it)->owes_ack)
			acknowledge((struct client *)*it, false);
	return KYMO_OK;
}

/* Says why the connection ends, as far as the client listens. */
static void relay_refuse(struct ky_client *base, const struct kymo_error *err)
{
	struct client *client = (struct client *)base;
	char text[KY_NET_TEXT_MAX];
	int len = snprintf(text, sizeof(text), "%s", err->message);
	size_t bytes = len < (int)sizeof(text) ? (size_t)len : sizeof(text) - 1;
	const struct ky_frame frame = {KY_FRAME_ERROR, 0, 0, bytes};
	uint8_t head[KY_FRAME_HEAD_BYTES];
	const struct iovec parts[] = {{head, sizeof(head)}, {text, bytes}};

	ky_frame_put(&frame, head);
	if (relay_flush(client))
		(void)ky_link_send(client->base.link, parts, 2);
}

/* ---- the quota ------------------------------------------------------------------------ */

/* What the session's files have taken since the last time. */
static void count_use(struct client *client)
{
	const struct ky_relay_use *use = ky_relay_session_use(client->session);

	client->host->bytes += use->added_bytes - client->counted.added_bytes;
	ky_relay_host_subtract(client->host, use->removed_bytes - client->counted.removed_bytes);
	client->counted = *use;
}

static int check_quota(struct client *client, struct kymo_error *err)
{
	count_use(client);
	return ky_relay_host_check(client->host, client->relay->options.quota_bytes, err);
}

/* ---- clients come and go -------------------------------------------------------------- */

static const char *relay_name_of(const struct ky_client *base)
{
	const struct client *client = (const struct client *)base;

	return client->session ? ky_relay_session_path(client->session) : "a client";
}

/* For viewers: a recording whose recorder may come back is not over. */
static void note_recorder(const struct client *client, enum ky_viewer_recorder recorder)
{
	if (client->relay->options.viewers)
		ky_viewer_server_note(client->relay->options.viewers,
				      ky_relay_session_path(client->session), recorder);
}

static int begin_client(struct ky_client *base, struct kymo_error *err)
{
	struct client *client = (struct client *)base;

	(void)err;
	client->relay = base->owner;
	client->watch = -1;
	return KYMO_OK;
}

static void end_client(struct ky_client *base)
{
	struct client *client = (struct client *)base;

	if (client->session)
		(void)ky_relay_session_flush(client->session, NULL);
	/* Then this: a watch takes long to close, and a viewer that comes now is to find a complete recording. */
	if (client->session)
		note_recorder(client, ky_relay_session_is_complete(client->session)
					      ? KY_VIEWER_RECORDER_GONE
					      : KY_VIEWER_RECORDER_AWAY);
	if (client->session)
		ky_relay_readers_forget(&client->relay->readers, client->watch);
	relay_set_owing(client, false);
	/* A part of a packet takes room, too; other parts go. */
	if (client->session) {
		ky_relay_session_drop_part(client->session);
		count_use(client);
	}
	ky_relay_session_close(client->session);
	ky_relay_host_leave(client->host);
	free(client->hello);
}

static const char *ending_of(const struct ky_client *base)
{
	const struct client *client = (const struct client *)base;

	return client->session && ky_relay_session_is_complete(client->session) ? "complete" : NULL;
}

static size_t relay_files_of(const struct ky_client *base)
{
	const struct client *client = (const struct client *)base;

	return client->session ? ky_relay_session_use(client->session)->n_files : 0;
}

static int patience_of(const struct ky_client *base, bool *since_begin)
{
	*since_begin = !((const struct client *)base)->session;
	return *since_begin ? GREETING_S : SILENCE_S;
}

/* ---- the greeting --------------------------------------------------------------------- */

/* Compares in the same time whatever differs. */
static bool relay_is_token(const char *token, const uint8_t *text, size_t len)
{
	unsigned int differs = 0;

	if (!token)
		return true;
	if (strlen(token) != len)
		return false;
	for (size_t i = 0; i < len; i++)
		differs |= (unsigned int)((uint8_t)token[i] ^ text[i]);
	return !differs;
}

static struct client *relay_client_of(const struct ky_relay *relay, const uint8_t id[16])
{
	ky_vec_foreach(&relay->clients.list, it) {
		struct client *client = (struct client *)*it;

		if ((*it)->calls == &calls && client->session &&
		    memcmp(ky_relay_session_id(client->session), id, 16) == 0)
			return client;
	}
	return NULL;
}

/* A live reader may come, or go. */
static void relay_look_for_readers(void *data)
{
	struct client *client = data;
	uint32_t delay_ms = ky_relay_session_delay_ms(client->session);

	if (delay_ms != client->delay_ms && relay_answer(client, KY_FRAME_READERS, delay_ms))
		client->delay_ms = delay_ms;
}

static void watch_readers(struct client *client)
{
	struct ky_relay *relay = client->relay;
	char *path;

	if (asprintf(&path, "%s/%s", relay->options.dir, relay_name_of(&client->base)) < 0)
		return;
	client->watch = ky_relay_readers_watch(&relay->readers, path, client);
	free(path);
	/* A reader may have come before the watch. */
	relay_look_for_readers(client);
}

static int relay_begin_session(struct client *client, const struct ky_net_hello *hello,
			       const char *host, const char *name, struct kymo_error *err)
{
	struct ky_relay *relay = client->relay;
	struct client *before = relay_client_of(relay, hello->session);
	struct ky_relay_session_spec spec = {hello->session, host, name, NULL};
	struct kymo_error refusal;
	int ret;

	/* The recorder has given its last connection up before we have noticed. */
	if (before)
		ky_client_drop(&before->base);
	ret = ky_relay_hosts_find(&relay->hosts, relay->options.dir, host, &client->host, err);
	if (!ret && ky_relay_host_check(client->host, relay->options.quota_bytes, &refusal) < 0)
		spec.refusal = &refusal;
	if (!ret)
		ret = ky_relay_session_open(relay->dir_fd, &spec, &relay->batch, &client->session,
					    err);
	if (ret < 0)
		return ret;
	ky_log_info(relay->options.log, "%s: connected", relay_name_of(&client->base));
	note_recorder(client, KY_VIEWER_RECORDER_HERE);
	client->acknowledged = ky_relay_session_next(client->session);
	if (le32toh(hello->wishes) & KY_NET_TAKES_FEATURES)
		(void)relay_answer(client, KY_FRAME_FEATURES,
				   KY_NET_FEATURE_REMOVE | KY_NET_FEATURE_FILE);
	(void)relay_answer(client, KY_FRAME_WELCOME, client->acknowledged);
	watch_readers(client);
	return KYMO_OK;
}

static char *relay_take_text(const uint8_t **at, size_t len)
{
	char *text = strndup((const char *)*at, len);

	*at += len;
	return text;
}

/* Leaves the connection to the server of viewers. */
static int begin_reader(struct client *client, const struct ky_net_hello *hello,
			struct kymo_error *err)
{
	if (!client->relay->options.viewers)
		return ky_error_set(err, KYMO_E_UNSUPPORTED, "this relay does not serve readers");
	if (!relay_answer(client, KY_FRAME_WELCOME, 0) || !relay_flush(client))
		return ky_error_set(err, KYMO_E_IO, "the reader does not take its welcome");
	client->reader_delay_ms = ky_net_delay_ms(le32toh(hello->wishes));
	client->base.is_leaving = true;
	return KYMO_OK;
}

/* A reader may have a token of its own. */
static bool may_greet(const struct client *client, const uint8_t *token, size_t len)
{
	const struct ky_relay_options *options = &client->relay->options;

	if (client->base.is_only || relay_is_token(options->token, token, len))
		return true;
	return client->frame.type == KY_FRAME_READER && options->reader_token &&
	       relay_is_token(options->reader_token, token, len);
}

static int refuse_token(const struct client *client, const uint8_t *token, size_t len,
			struct kymo_error *err)
{
	const char *readers = client->relay->options.reader_token;

	if (readers && relay_is_token(readers, token, len))
		return ky_error_set(err, KYMO_E_PERMISSION,
				    "the key is one of readers, which cannot send recordings; "
				    "recorders need the file recorder-key");
	return ky_error_set(err, KYMO_E_PERMISSION, "the token is wrong");
}

static int relay_greet(struct client *client, struct kymo_error *err)
{
	const uint8_t *at = client->hello + sizeof(struct ky_net_hello);
	size_t token_bytes, host_bytes, name_bytes;
	struct ky_net_hello hello;
	char *host, *name;
	int ret;

	memcpy(&hello, client->hello, sizeof(hello));
	token_bytes = le16toh(hello.token_bytes);
	host_bytes = le16toh(hello.host_bytes);
	name_bytes = le16toh(hello.name_bytes);
	if (memcmp(hello.magic, KY_NET_MAGIC, sizeof(hello.magic)) != 0)
		return ky_error_set(err, KYMO_E_FORMAT,
				    "the client does not speak Kymo's protocol");
	if (le32toh(hello.version) != KY_NET_VERSION)
		return ky_error_set(err, KYMO_E_FORMAT,
				    "the client speaks version %u of the protocol, this relay "
				    "version %u",
				    le32toh(hello.version), KY_NET_VERSION);
	if (sizeof(hello) + token_bytes + host_bytes + name_bytes != client->n_hello)
		return ky_error_set(err, KYMO_E_FORMAT, "the greeting makes no sense");
	if (!may_greet(client, at, token_bytes))
		return refuse_token(client, at, token_bytes, err);
	if (client->frame.type == KY_FRAME_READER)
		return begin_reader(client, &hello, err);
	at += token_bytes;
	host = relay_take_text(&at, host_bytes);
	name = relay_take_text(&at, name_bytes);
	if (!host || !name)
		ret = ky_error_nomem(err);
	else if (!ky_net_is_name(host, strlen(host)) || !ky_net_is_name(name, strlen(name)))
		ret = ky_error_set(err, KYMO_E_INVALID,
				   "the name of the host or of the session cannot be used");
	else
		ret = relay_begin_session(client, &hello, host, name, err);
	free(host);
	free(name);
	return ret;
}

/* ---- frames --------------------------------------------------------------------------- */

static bool is_greeting(const struct ky_frame *frame)
{
	return frame->type == KY_FRAME_HELLO || frame->type == KY_FRAME_READER;
}

static bool relay_takes_room(uint32_t type)
{
	return type == KY_FRAME_DATA || type == KY_FRAME_METADATA || type == KY_FRAME_PATCH ||
	       type == KY_FRAME_FILE;
}

static int begin_frame(struct client *client, struct kymo_error *err)
{
	struct ky_frame *frame = &client->frame;
	int ret;

	ky_frame_get(frame, client->head);
	ret = ky_frame_check(frame, false, err);
	if (ret < 0)
		return ret;
	client->left_bytes = frame->bytes;
	if (!client->session != is_greeting(frame))
		return ky_error_set(err, KYMO_E_FORMAT, "a greeting must come first, and once");
	if (is_greeting(frame)) {
		client->hello = malloc(frame->bytes);
		return client->hello ? KYMO_OK : ky_error_nomem(err);
	}
	if (relay_takes_room(frame->type))
		ret = check_quota(client, err);
	if (ret < 0 || frame->type == KY_FRAME_PING)
		return ret;
	return ky_relay_session_begin(client->session, frame, err);
}

static int relay_end_frame(struct client *client, struct kymo_error *err)
{
	int ret;

	client->n_head = 0;
	if (client->frame.type == KY_FRAME_PING) {
		acknowledge(client, true);
		return KYMO_OK;
	}
	if (is_greeting(&client->frame)) {
		ret = relay_greet(client, err);
		free(client->hello);
		client->hello = NULL;
		return ret;
	}
	ret = ky_relay_session_end(client->session, err);
	if (!ret && client->frame.type == KY_FRAME_BEACON)
		relay_look_for_readers(client);
	return ret < 0 ? ret : check_quota(client, err);
}

static int relay_take_payload(struct client *client, const uint8_t *data, size_t bytes,
			      struct kymo_error *err)
{
	client->left_bytes -= bytes;
	if (!is_greeting(&client->frame)) {
		int ret = ky_relay_session_take(client->session, data, bytes, err);

		/* A frame has up to 256 MiB, and each client can send one. */
		return ret < 0 || !relay_takes_room(client->frame.type) ? ret
									: check_quota(client, err);
	}
	memcpy(client->hello + client->n_hello, data, bytes);
	client->n_hello += bytes;
	return KYMO_OK;
}

/* All that came: heads and payloads in any pieces. */
static int relay_take_frames(struct ky_client *base, const uint8_t *data, size_t bytes,
			     struct kymo_error *err)
{
	struct client *client = (struct client *)base;
	int ret = KYMO_OK;

	while (bytes && !ret) {
		/* A reader waits for its welcome. */
		if (client->base.is_leaving)
			return ky_error_set(err, KYMO_E_FORMAT, "the reader does not wait");
		if (!client->n_head && ky_client_is_over_time(base))
			return ky_client_keep(base, data, bytes, err);
		size_t part;

		if (client->n_head < KY_FRAME_HEAD_BYTES) {
			part = KY_FRAME_HEAD_BYTES - client->n_head;
			part = part < bytes ? part : bytes;
			memcpy(client->head + client->n_head, data, part);
			client->n_head += part;
			if (client->n_head == KY_FRAME_HEAD_BYTES)
				ret = begin_frame(client, err);
		} else {
			part = client->left_bytes < bytes ? (size_t)client->left_bytes : bytes;
			ret = relay_take_payload(client, data, part, err);
		}
		data += part;
		bytes -= part;
		if (!ret && client->n_head == KY_FRAME_HEAD_BYTES && !client->left_bytes)
			ret = relay_end_frame(client, err);
	}
	return ret;
}

static int relay_take(struct ky_client *base, const uint8_t *data, size_t bytes,
		      struct kymo_error *err)
{
	struct client *client = (struct client *)base;
	int ret = relay_take_frames(base, data, bytes, err), flushed;

	if (!client->session)
		return ret;
	flushed = ky_relay_session_flush_data(client->session, ret < 0 ? NULL : err);
	return ret < 0 ? ret : flushed;
}

/* Packets of a recorder are written in whole blocks, as far as they follow each other. */
static size_t relay_best_bytes(const struct ky_client *base, size_t most)
{
	const struct client *client = (const struct client *)base;
	uint64_t came = client->n_head;

	if (!client->session)
		return most;
	if (came == KY_FRAME_HEAD_BYTES)
		came += client->frame.bytes - client->left_bytes;
	return ky_relay_block_bytes(ky_relay_session_place(client->session), came, most);
}

static void relay_leave(struct ky_client *base, struct ky_link *link)
{
	const struct client *client = (const struct client *)base;

	ky_viewer_server_take(client->relay->options.viewers, link, client->reader_delay_ms);
}

static int relay_rest(struct ky_client *base, struct kymo_error *err)
{
	struct client *client = (struct client *)base;
	int ret = client->session ? ky_relay_session_flush(client->session, err) : KYMO_OK;

	if (!ret)
		acknowledge_soon(client);
	return ret;
}

static const struct ky_client_calls calls = {
	.struct_bytes = sizeof(struct client),
	.begin = begin_client,
	.take = relay_take,
	.rest = relay_rest,
	.refuse = relay_refuse,
	.leave = relay_leave,
	.end = end_client,
	.name = relay_name_of,
	.ending = ending_of,
	.patience_s = patience_of,
	.comes_again = true,
	.gathers = true,
	.best_bytes = relay_best_bytes,
	.files = relay_files_of,
};

/* ---- opening, closing ----------------------------------------------------------------- */

static int relay_clean(void *data, struct kymo_error *err)
{
	struct ky_relay *relay = data;

	(void)err;
	ky_loop_set_timer(relay->timer, ky_relay_session_clean(relay->dir_fd, &relay->cleaned)
						? CLEAN_PAUSE_NS
						: UINT64_C(1000000000) * CLEAN_S);
	return KYMO_OK;
}

int ky_relay_open(const struct ky_relay_options *options, struct ky_loop *loop,
		  struct ky_relay **out, struct kymo_error *err)
{
	struct ky_relay *relay = calloc(1, sizeof(*relay));
	int ret = KYMO_OK;

	*out = NULL;
	if (!relay)
		return ky_error_nomem(err);
	relay->options = *options;
	if (!relay->options.clients_max)
		relay->options.clients_max = CLIENTS_MAX;
	relay->loop = loop;
	relay->readers.fd = -1;
	if (options->quota_bytes && options->quota_bytes / ROOM_SHARE < ROOM_BYTES)
		ky_relay_limit_room(options->quota_bytes / ROOM_SHARE);
	ky_file_raise_limit();
	relay->dir_fd = ky_file_open(AT_FDCWD, options->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (relay->dir_fd < 0) {
		ret = ky_error_errno(err, errno, "cannot open the directory for recordings");
		ky_error_path(err, options->dir);
	}
	if (!ret)
		ret = ky_clients_init(&relay->clients, loop, options->log,
				      relay->options.clients_max, err);
	if (!ret)
		ret = ky_relay_readers_open(&relay->readers, loop, relay_look_for_readers, err);
	if (!ret)
		ret = ky_loop_add_timer(loop, relay_clean, relay, &relay->timer, err);
	if (!ret)
		ret = ky_loop_add_timer(loop, take_acks, relay, &relay->ack_timer, err);
	if (ret < 0) {
		ky_relay_close(relay);
		return ret;
	}
	ky_loop_set_timer(relay->timer, UINT64_C(1000000000) * SETTLE_S);
	*out = relay;
	return KYMO_OK;
}

int ky_relay_listen(struct ky_relay *relay, int fd, struct kymo_error *err)
{
	return ky_clients_listen(&relay->clients, fd, &calls, relay, relay->options.tls, err);
}

/* Readers find the session before its first trace, and wait for that. */
static void note_lttng(void *data, const char *path, bool is_here)
{
	const struct ky_relay *relay = data;

	if (relay->options.viewers)
		ky_viewer_server_note(relay->options.viewers, path,
				      is_here ? KY_VIEWER_RECORDER_HERE : KY_VIEWER_RECORDER_GONE);
}

int ky_relay_listen_lttng(struct ky_relay *relay, int control_fd, int data_fd,
			  struct kymo_error *err)
{
	const struct ky_lttng_relay_options options = {.dir = relay->options.dir,
						       .dir_fd = relay->dir_fd,
						       .quota_bytes = relay->options.quota_bytes,
						       .clients = &relay->clients,
						       .hosts = &relay->hosts,
						       .note = note_lttng,
						       .note_data = relay};
	int ret = ky_lttng_relay_new(&options, &relay->lttng, err);

	if (!ret)
		ret = ky_clients_listen(&relay->clients, control_fd, &ky_lttng_control_calls,
					relay->lttng, NULL, err);
	else
		close(control_fd);
	if (!ret)
		return ky_clients_listen(&relay->clients, data_fd, &ky_lttng_data_calls,
					 relay->lttng, NULL, err);
	close(data_fd);
	return ret;
}

int ky_relay_serve(struct ky_relay *relay, int in_fd, int out_fd, struct kymo_error *err)
{
	/* Who speaks through the standard input has been let in by ssh. */
	return ky_clients_add(&relay->clients, in_fd, out_fd, &calls, relay, NULL, true, err);
}

void ky_relay_close(struct ky_relay *relay)
{
	if (!relay)
		return;
	ky_clients_fini(&relay->clients);
	ky_lttng_relay_free(relay->lttng);
	ky_relay_readers_close(&relay->readers);
	ky_relay_hosts_fini(&relay->hosts);
	ky_loop_remove(relay->timer);
	ky_loop_remove(relay->ack_timer);
	if (relay->cleaned)
		closedir(relay->cleaned);
	if (relay->dir_fd >= 0)
		close(relay->dir_fd);
	free(relay);
}
