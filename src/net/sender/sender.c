/* SPDX-License-Identifier: MIT */
#include "net/sender/sender.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "net/protocol/answer-reader.h"
#include "net/link/link.h"
#include "net/sender/spill.h"
#include "net/link/ssh.h"

#define QUEUE_BYTES (64u << 20)
#define CONNECT_MS  5000
#define GREETING_MS 5000
#define SSH_MS	    60000 /* the user may have to enter a password */
/* Without an acknowledgement for so long, the connection counts as broken. */
#define SILENCE_MS 5000
/* An idle connection says that often that it is alive. */
#define PING_MS		 20000
#define BACKOFF_FIRST_MS 50
#define BACKOFF_MOST_MS	 2000
#define PARTS_AT_A_TIME	 64
#define FIXED_MAX	 96
/* Entries of packets are of multiples of this size, and are used again. */
#define LARGE_BYTES	(32u << 10)
#define SPARE_BYTES_MAX (8u << 20)
/* So much comes from the spill file before the thread turns to the connection again. */
#define REFILL_BYTES (4u << 20)

/* A frame in the queue. */
struct entry {
	struct entry *next;
	struct ky_frame frame;
	uint32_t head_bytes; /* of the frame's head and its fixed part */
	uint8_t head[KY_FRAME_HEAD_BYTES + FIXED_MAX];
	size_t bytes, capacity; /* of data */
	uint8_t data[];
};

struct ky_sender {
	struct ky_sender_options options;
	char *host, *token, *ssh_dir, *spill_dir;
	pid_t ssh; /* 0: none runs */
	uint8_t session[16];
	int wake_fd, readers_fd;
	pthread_t thread;
	bool has_thread;

	/* The thread's own. */
	struct ky_link *link; /* NULL: not connected */
	uint64_t sent_bytes;  /* of the entry at `next` */
	struct ky_answer_reader answers;
	bool is_welcome;	 /* the relay has answered the greeting */
	uint64_t told_features;	 /* what it said before that */
	int64_t acknowledged_ms; /* CLOCK_MONOTONIC */
	int backoff_ms;

	pthread_mutex_t lock; /* of the following */
	pthread_cond_t changed;
	/*
	 * The queue, in the order of the frames: entries in memory, the spill file, and entries that are
	 * newer than the file because it has no room.
	 */
	struct entry *first, *last;
	struct entry *next; /* the first that is not sent yet */
	struct ky_spill spill;
	struct entry *late_first, *late_last;
	uint64_t late_bytes;
	struct entry *spare;
	size_t spare_bytes;
	uint64_t queued_bytes; /* in memory */
	uint64_t number;       /* of the next numbered frame */
	uint64_t acknowledged; /* the relay wants this one next */
	bool is_waiting;       /* the thread sleeps, and has nothing to send */
	uint32_t delay_ms;     /* that readers want; 0: there are none */
	uint64_t features;     /* of the relay */
	bool stops;
	int failed; /* the relay has refused the session: a negative status */
	struct kymo_error err;
};

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- the queue ------------------------------------------------------------------------ */

/* A large entry that is not needed any more, of this size at least; NULL: none. Under the lock. */
static struct entry *take_spare(struct ky_sender *sender, size_t bytes)
{
	for (struct entry **at = &sender->spare; *at; at = &(*at)->next) {
		struct entry *entry = *at;

		if (entry->capacity < bytes)
			continue;
		*at = entry->next;
		sender->spare_bytes -= entry->capacity;
		return entry;
	}
	return NULL;
}

static struct entry *entry_new(struct ky_sender *sender, size_t bytes)
{
	size_t capacity =
		bytes < LARGE_BYTES ? bytes : (bytes + LARGE_BYTES - 1) / LARGE_BYTES * LARGE_BYTES;
	struct entry *entry = NULL;

	if (capacity >= LARGE_BYTES) {
		pthread_mutex_lock(&sender->lock);
		entry = take_spare(sender, capacity);
		pthread_mutex_unlock(&sender->lock);
		capacity = entry ? entry->capacity : capacity;
	}
	if (!entry)
		entry = malloc(sizeof(*entry) + capacity);
	if (entry)
		*entry = (struct entry){.bytes = bytes, .capacity = capacity};
	return entry;
}

/* Large ones stay for later packets: new memory costs more than the copy into it. Under the lock. */
static void entry_free(struct ky_sender *sender, struct entry *entry)
{
	if (entry->capacity < LARGE_BYTES ||
	    sender->spare_bytes + entry->capacity > SPARE_BYTES_MAX) {
		free(entry);
		return;
	}
	entry->next = sender->spare;
	sender->spare = entry;
	sender->spare_bytes += entry->capacity;
}

/* The definitions of traces and streams stay until the end: a new connection begins with them. */
static bool is_definition(const struct entry *entry)
{
	return entry->frame.type == KY_FRAME_OPEN || entry->frame.type == KY_FRAME_STREAM;
}

static void append(struct ky_sender *sender, struct entry *entry)
{
	if (sender->last)
		sender->last->next = entry;
	else
		sender->first = entry;
	sender->last = entry;
	if (!sender->next)
		sender->next = entry;
	sender->queued_bytes += entry->bytes + entry->head_bytes;
}

static void append_late(struct ky_sender *sender, struct entry *entry)
{
	if (sender->late_last)
		sender->late_last->next = entry;
	else
		sender->late_first = entry;
	sender->late_last = entry;
	sender->late_bytes += entry->bytes + entry->head_bytes;
	sender->queued_bytes += entry->bytes + entry->head_bytes;
}

/* What came after the frames in the spill file follows when the file is empty. Under the lock. */
static void append_all_late(struct ky_sender *sender)
{
	while (sender->late_first && !sender->spill.n) {
		struct entry *entry = sender->late_first;

		sender->late_first = entry->next;
		if (!entry->next)
			sender->late_last = NULL;
		entry->next = NULL;
		sender->late_bytes -= entry->bytes + entry->head_bytes;
		sender->queued_bytes -= entry->bytes + entry->head_bytes;
		append(sender, entry);
	}
}

/* A new frame comes behind all others, wherever these are. Under the lock. */
static void enqueue(struct ky_sender *sender, struct entry *entry)
{
	bool was_broken = sender->spill.is_broken;

	if (!sender->spill.n && !sender->late_first &&
	    (sender->spill.fd < 0 || sender->queued_bytes <= sender->options.queue_bytes)) {
		append(sender, entry);
		return;
	}
	if (!sender->late_first && ky_spill_put(&sender->spill, entry->head, entry->head_bytes,
						entry->data, (uint32_t)entry->bytes))
		entry_free(sender, entry);
	else
		append_late(sender, entry);
	if (sender->spill.is_broken && !was_broken)
		ky_log_warning(sender->options.log,
			       "the spill file takes no more: its disk is full, or has failed");
	append_all_late(sender);
}

/* The next frame of the spill file. The thread's. 0 or a negative errno. */
static int take_spilled(struct ky_sender *sender, uint64_t *taken)
{
	uint32_t head_bytes, bytes;
	struct entry *entry;
	int ret = ky_spill_next(&sender->spill, &head_bytes, &bytes);

	if (!ret && head_bytes > sizeof(entry->head))
		ret = -EIO;
	if (ret < 0)
		return ret;
	entry = entry_new(sender, bytes);
	if (!entry)
		return -ENOMEM;
	entry->head_bytes = head_bytes;
	ret = ky_spill_read(&sender->spill, entry->head, head_bytes, entry->data, bytes);
	ky_frame_get(&entry->frame, entry->head);
	pthread_mutex_lock(&sender->lock);
	if (!ret) {
		ky_spill_advance(&sender->spill, head_bytes, bytes);
		append(sender, entry);
	} else {
		entry_free(sender, entry);
	}
	append_all_late(sender);
	pthread_mutex_unlock(&sender->lock);
	*taken += head_bytes + (uint64_t)bytes;
	return ret;
}

/* Whether the queue has room for frames of the spill file. */
static bool can_refill(struct ky_sender *sender)
{
	bool can;

	pthread_mutex_lock(&sender->lock);
	can = sender->spill.n &&
	      sender->queued_bytes - sender->late_bytes < sender->options.queue_bytes;
	pthread_mutex_unlock(&sender->lock);
	return can;
}

int ky_sender_put(struct ky_sender *sender, enum ky_frame_type type, uint32_t trace,
		  const void *fixed, size_t fixed_bytes, const struct ky_sender_part *parts,
		  unsigned int n_parts, struct kymo_error *err)
{
	size_t bytes = 0, at = 0;
	struct entry *entry;
	bool wakes;

	for (unsigned int i = 0; i < n_parts; i++)
		bytes += parts[i].bytes;
	entry = entry_new(sender, bytes);
	if (!entry)
		return ky_error_nomem(err);
	for (unsigned int i = 0; i < n_parts; i++) {
		if (parts[i].bytes)
			memcpy(entry->data + at, parts[i].data, parts[i].bytes);
		at += parts[i].bytes;
	}
	entry->frame = (struct ky_frame){type, trace, 0, fixed_bytes + bytes};
	entry->head_bytes = (uint32_t)(KY_FRAME_HEAD_BYTES + fixed_bytes);
	if (fixed_bytes)
		memcpy(entry->head + KY_FRAME_HEAD_BYTES, fixed, fixed_bytes);
	pthread_mutex_lock(&sender->lock);
	if (sender->failed) {
		if (err)
			*err = sender->err;
		pthread_mutex_unlock(&sender->lock);
		free(entry);
		return sender->failed;
	}
	if (!is_definition(entry))
		entry->frame.number = sender->number++;
	ky_frame_put(&entry->frame, entry->head);
	enqueue(sender, entry);
	wakes = sender->is_waiting;
	sender->is_waiting = false;
	pthread_mutex_unlock(&sender->lock);
	if (wakes)
		(void)eventfd_write(sender->wake_fd, 1);
	return KYMO_OK;
}

bool ky_sender_is_full(struct ky_sender *sender)
{
	bool is_full;

	pthread_mutex_lock(&sender->lock);
	is_full = sender->queued_bytes > sender->options.queue_bytes && !sender->failed &&
		  (sender->late_first || !ky_spill_has_room(&sender->spill, 1));
	pthread_mutex_unlock(&sender->lock);
	return is_full;
}

void ky_sender_backlog(struct ky_sender *sender, struct ky_store_backlog *backlog)
{
	pthread_mutex_lock(&sender->lock);
	*backlog = (struct ky_store_backlog){
		.memory_bytes = sender->queued_bytes,
		.file_bytes = sender->spill.end - sender->spill.begin,
		.spilled_bytes = sender->spill.total_bytes,
	};
	pthread_mutex_unlock(&sender->lock);
}

uint32_t ky_sender_readers_delay_ms(struct ky_sender *sender)
{
	uint32_t delay_ms;

	pthread_mutex_lock(&sender->lock);
	delay_ms = sender->delay_ms;
	pthread_mutex_unlock(&sender->lock);
	return delay_ms;
}

int ky_sender_readers_fd(struct ky_sender *sender)
{
	return sender->readers_fd;
}

uint64_t ky_sender_features(struct ky_sender *sender)
{
	uint64_t features;

	pthread_mutex_lock(&sender->lock);
	features = sender->features;
	pthread_mutex_unlock(&sender->lock);
	return features;
}

/* Takes the entry at *at out of the queue; @before: the one in front of it, or NULL. Under the lock. */
static void take_out(struct ky_sender *sender, struct entry **at, struct entry *before)
{
	struct entry *entry = *at;

	*at = entry->next;
	sender->queued_bytes -= entry->bytes + entry->head_bytes;
	if (sender->last == entry)
		sender->last = before;
	entry_free(sender, entry);
}

/*
 * Trace @trace, which the relay has closed, needs its definitions no more: with them, a new connection would begin it
 * anew. They are in front of *end. Returns the last entry in front of *end, or NULL. Under the lock.
 */
static struct entry *forget_definitions(struct ky_sender *sender, uint32_t trace,
					struct entry **end, struct entry ***new_end)
{
	struct entry **at = &sender->first, *last = NULL;

	while (at != end) {
		if ((*at)->frame.trace != trace) {
			last = *at;
			at = &last->next;
			continue;
		}
		/* The place of what follows is in the entry that goes. */
		if (end == &(*at)->next)
			end = at;
		take_out(sender, at, last);
	}
	*new_end = at;
	return last;
}

static bool ends_trace(const struct entry *entry)
{
	return entry->frame.type == KY_FRAME_CLOSE || entry->frame.type == KY_FRAME_DISCARD;
}

/*
 * The relay has carried out all frames before @number. What stays in front of the others are the definitions of traces
 * that it has not closed.
 */
static void acknowledge(struct ky_sender *sender, uint64_t number)
{
	struct entry **at = &sender->first, *entry, *last = NULL;

	pthread_mutex_lock(&sender->lock);
	if (number > sender->acknowledged && number <= sender->number) {
		sender->acknowledged = number;
		sender->acknowledged_ms = now_ms();
	}
	while ((entry = *at) && entry != sender->next) {
		if (is_definition(entry)) {
			last = entry;
			at = &entry->next;
			continue;
		}
		if (entry->frame.number >= sender->acknowledged)
			break;
		if (ends_trace(entry))
			last = forget_definitions(sender, entry->frame.trace, at, &at);
		take_out(sender, at, last);
	}
	pthread_cond_broadcast(&sender->changed);
	pthread_mutex_unlock(&sender->lock);
}

/* ---- frames of the relay -------------------------------------------------------------- */

static void set_failed(struct ky_sender *sender, const char *text)
{
	pthread_mutex_lock(&sender->lock);
	if (!sender->failed) {
		sender->failed =
			ky_error_set(&sender->err, KYMO_E_IO, "the relay %s has refused: %s",
				     sender->options.address.host, text);
		sender->err.code = KYMO_E_IO;
	}
	pthread_cond_broadcast(&sender->changed);
	pthread_mutex_unlock(&sender->lock);
}

static void take_readers(struct ky_sender *sender, uint64_t delay_ms)
{
	pthread_mutex_lock(&sender->lock);
	sender->delay_ms = delay_ms ? ky_net_delay_ms(delay_ms) : 0;
	pthread_mutex_unlock(&sender->lock);
	(void)eventfd_write(sender->readers_fd, 1);
}

/* A new connection: frames that the relay lacks are sent again, after the definitions. */
static int take_welcome(struct ky_sender *sender, uint64_t number)
{
	uint64_t acknowledged, known;

	pthread_mutex_lock(&sender->lock);
	known = sender->acknowledged;
	acknowledged = sender->number;
	pthread_mutex_unlock(&sender->lock);
	if (number < known || number > acknowledged) {
		set_failed(sender, "it has lost the session");
		return -EPROTO;
	}
	/* Nothing is sent yet: whatever has arrived can go. */
	pthread_mutex_lock(&sender->lock);
	sender->next = NULL;
	pthread_mutex_unlock(&sender->lock);
	acknowledge(sender, number);
	pthread_mutex_lock(&sender->lock);
	/* A relay of another version may have taken the place. */
	sender->features = sender->told_features;
	sender->next = sender->first;
	pthread_mutex_unlock(&sender->lock);
	sender->sent_bytes = 0;
	return 0;
}

/* 0 or a negative errno: the connection is of no use any more. */
static int take_answer(void *data, const struct ky_answer *answer)
{
	struct ky_sender *sender = data;

	switch (answer->type) {
	case KY_FRAME_WELCOME:
		if (sender->is_welcome)
			return -EPROTO;
		sender->is_welcome = true;
		return take_welcome(sender, answer->value);
	case KY_FRAME_ACK:
		acknowledge(sender, answer->value);
		return 0;
	case KY_FRAME_READERS:
		take_readers(sender, answer->value);
		return 0;
	case KY_FRAME_FEATURES:
		sender->told_features = answer->value;
		return 0;
	default:
		set_failed(sender, answer->text);
		return -EPROTO;
	}
}

/* Whatever the relay has sent until now. 0 or a negative errno. */
static int receive(struct ky_sender *sender)
{
	uint8_t data[4096];
	ssize_t got;
	int ret = 0;

	while (!ret) {
		got = ky_link_receive(sender->link, data, sizeof(data));
		if (got == -EAGAIN)
			return 0;
		if (got <= 0)
			return got < 0 ? (int)got : -ECONNRESET;
		ret = ky_answer_reader_take(&sender->answers, data, (size_t)got, take_answer,
					    sender);
	}
	return ret;
}

/* ---- sending -------------------------------------------------------------------------- */

/* The bytes that are to be sent next, from several entries. Returns the number of parts. */
static int collect(struct ky_sender *sender, struct iovec parts[PARTS_AT_A_TIME])
{
	uint64_t skip = sender->sent_bytes;
	int n = 0;

	pthread_mutex_lock(&sender->lock);
	for (struct entry *entry = sender->next; entry && n + 2 <= PARTS_AT_A_TIME;
	     entry = entry->next) {
		/* Already carried out, by a connection that has ended. */
		if (!is_definition(entry) && entry->frame.number < sender->acknowledged)
			continue;
		if (skip < entry->head_bytes) {
			parts[n++] = (struct iovec){entry->head + skip, entry->head_bytes - skip};
			skip = 0;
		} else {
			skip -= entry->head_bytes;
		}
		if (entry->bytes)
			parts[n++] = (struct iovec){entry->data + skip, entry->bytes - skip};
		skip = 0;
	}
	pthread_mutex_unlock(&sender->lock);
	return n;
}

/* So many bytes more are sent. */
static void advance(struct ky_sender *sender, uint64_t bytes)
{
	pthread_mutex_lock(&sender->lock);
	sender->sent_bytes += bytes;
	while (sender->next) {
		const struct entry *entry = sender->next;
		uint64_t size = entry->head_bytes + entry->bytes;

		if (!is_definition(entry) && entry->frame.number < sender->acknowledged)
			size = 0;
		if (sender->sent_bytes < size || (!sender->sent_bytes && size))
			break;
		sender->sent_bytes -= size;
		sender->next = sender->next->next;
	}
	pthread_mutex_unlock(&sender->lock);
}

/* As much as the peer takes. 1: it takes no more at present; 0: all is sent; a negative errno. */
static int send_all(struct ky_sender *sender)
{
	struct iovec parts[PARTS_AT_A_TIME];
	ssize_t sent;
	int n;

	while ((n = collect(sender, parts)) > 0) {
		sent = ky_link_send(sender->link, parts, n);
		if (sent == -EAGAIN)
			return 1;
		if (sent < 0)
			return (int)sent;
		advance(sender, (uint64_t)sent);
	}
	return 0;
}

static int send_ping(struct ky_sender *sender)
{
	const struct ky_frame frame = {KY_FRAME_PING, 0, 0, 0};
	uint8_t head[KY_FRAME_HEAD_BYTES];
	struct iovec part = {head, sizeof(head)};
	ssize_t sent;

	ky_frame_put(&frame, head);
	sent = ky_link_send(sender->link, &part, 1);
	return sent == (ssize_t)sizeof(head) ? 0 : -ECONNRESET;
}

/* ---- connecting ----------------------------------------------------------------------- */

static void disconnect(struct ky_sender *sender)
{
	ky_link_free(sender->link);
	sender->link = NULL;
	ky_ssh_end(&sender->ssh);
	sender->answers = (struct ky_answer_reader){.n_head = 0};
	sender->is_welcome = false;
	sender->told_features = 0;
	sender->sent_bytes = 0;
}

static int send_hello(struct ky_sender *sender)
{
	const char *name = sender->options.address.name,
		   *token = sender->token ? sender->token : "";
	struct ky_net_hello hello = {
		.version = htole32(KY_NET_VERSION),
		.wishes = htole32(KY_NET_TAKES_FEATURES),
		.token_bytes = htole16((uint16_t)strlen(token)),
		.host_bytes = htole16((uint16_t)strlen(sender->host)),
		.name_bytes = htole16((uint16_t)strlen(name)),
	};
	struct ky_frame frame = {KY_FRAME_HELLO, 0, 0,
				 sizeof(hello) + strlen(token) + strlen(sender->host) +
					 strlen(name)};
	uint8_t head[KY_FRAME_HEAD_BYTES];
	struct iovec parts[] = {
		{head, sizeof(head)},		{&hello, sizeof(hello)},
		{(void *)token, strlen(token)}, {sender->host, strlen(sender->host)},
		{(void *)name, strlen(name)},
	};

	memcpy(hello.magic, KY_NET_MAGIC, sizeof(hello.magic));
	memcpy(hello.session, sender->session, sizeof(hello.session));
	ky_frame_put(&frame, head);
	/* So little fits into the buffer of a new connection. */
	return ky_link_send(sender->link, parts, 5) == (ssize_t)(sizeof(head) + frame.bytes)
		       ? 0
		       : -ECONNRESET;
}

/* Waits for the relay's answer. 0 or a negative errno. */
static int greet(struct ky_sender *sender)
{
	int64_t end = now_ms() + (sender->ssh_dir ? SSH_MS : GREETING_MS);
	int ret = send_hello(sender);

	while (!ret && !sender->is_welcome) {
		struct pollfd wanted = {ky_link_in_fd(sender->link), POLLIN, 0};
		int64_t left = end - now_ms();

		if (left <= 0)
			return -ETIMEDOUT;
		if (poll(&wanted, 1, (int)left) < 0 && errno != EINTR)
			return -errno;
		ret = receive(sender);
	}
	return ret;
}

static int connect_now(struct ky_sender *sender, struct kymo_error *err)
{
	bool is_loopback;
	int fd = sender->ssh_dir
			 ? ky_ssh_connect(sender->options.address.host, sender->ssh_dir,
					  &sender->ssh, err)
			 : ky_net_connect(&sender->options.address, CONNECT_MS, &is_loopback, err),
	    ret;

	if (fd < 0)
		return fd;
	ret = ky_link_new(fd, fd, &sender->link, err);
	if (!ret && sender->options.tls)
		ret = ky_link_use_tls(sender->link, sender->options.tls, err);
	if (!ret)
		ret = ky_link_handshake(sender->link, GREETING_MS, err);
	if (ret < 0) {
		disconnect(sender);
		return ret;
	}
	ret = greet(sender);
	if (ret == 0) {
		sender->acknowledged_ms = now_ms();
		return KYMO_OK;
	}
	disconnect(sender);
	if (sender->failed) {
		if (err)
			*err = sender->err;
		return sender->failed;
	}
	if (sender->ssh_dir) {
		ky_error_set(err, KYMO_E_IO, "the relay on %s does not answer through ssh",
			     sender->options.address.host);
		ky_error_hint(err, "check that 'ssh HOST kymo help' works");
	} else {
		ky_error_errno(err, -ret, "the relay %s, port %s, does not answer",
			       sender->options.address.host, sender->options.address.port);
	}
	if (err)
		err->code = KYMO_E_IO;
	return KYMO_E_IO;
}

/* ---- the thread ----------------------------------------------------------------------- */

static void connection_broke(struct ky_sender *sender, int errnum)
{
	disconnect(sender);
	sender->backoff_ms = BACKOFF_FIRST_MS;
	if (!sender->failed)
		ky_log_info(sender->options.log, "the connection to the relay %s broke: %s",
			    sender->options.address.host, strerror(errnum));
}

/* Sleeps until there is something to do. */
static void wait_awake(struct ky_sender *sender, bool is_slow, bool has_unacknowledged)
{
	struct pollfd wanted[] = {
		{sender->wake_fd, POLLIN, 0},
		{sender->link ? ky_link_in_fd(sender->link) : -1, POLLIN, 0},
		{sender->link && is_slow ? ky_link_out_fd(sender->link) : -1, POLLOUT, 0},
	};
	int timeout_ms = !sender->link ? sender->backoff_ms : has_unacknowledged ? 1000 : PING_MS;
	eventfd_t count;

	if (poll(wanted, 3, timeout_ms) > 0 && wanted[0].revents)
		(void)eventfd_read(sender->wake_fd, &count);
}

/* Whether the thread may sleep; *has_unacknowledged: it waits for the relay. False: it ends. */
static bool look(struct ky_sender *sender, bool *has_unacknowledged)
{
	bool goes_on;

	pthread_mutex_lock(&sender->lock);
	goes_on = !sender->stops;
	*has_unacknowledged = sender->acknowledged < sender->number;
	sender->is_waiting = true;
	pthread_mutex_unlock(&sender->lock);
	return goes_on;
}

static void reconnect(struct ky_sender *sender)
{
	if (!sender->failed && connect_now(sender, NULL) == 0) {
		ky_log_info(sender->options.log, "connected to the relay %s again",
			    sender->options.address.host);
		return;
	}
	sender->backoff_ms =
		sender->backoff_ms * 2 < BACKOFF_MOST_MS ? sender->backoff_ms * 2 : BACKOFF_MOST_MS;
}

/* Frames of the spill file, as far as there is room in memory, but not too many at a time. 0 or a negative errno. */
static int refill(struct ky_sender *sender)
{
	uint64_t taken = 0;
	int ret = 0;

	while (!ret && taken < REFILL_BYTES && can_refill(sender))
		ret = take_spilled(sender, &taken);
	if (!ret)
		return 0;
	pthread_mutex_lock(&sender->lock);
	if (!sender->failed) {
		sender->failed = KYMO_E_IO;
		(void)ky_error_errno(&sender->err, -ret, "cannot read the spill file");
		sender->err.code = KYMO_E_IO;
	}
	pthread_cond_broadcast(&sender->changed);
	pthread_mutex_unlock(&sender->lock);
	return ret;
}

/* One round of receiving and sending. 1: the peer is slow; 0; a negative errno. */
static int exchange(struct ky_sender *sender, bool has_unacknowledged)
{
	int64_t silence_ms = now_ms() - sender->acknowledged_ms;
	int ret;

	do {
		ret = receive(sender);
		if (!ret)
			ret = refill(sender);
		if (!ret)
			ret = send_all(sender);
	} while (!ret && can_refill(sender));
	if (ret >= 0 && has_unacknowledged && silence_ms > SILENCE_MS)
		return -ETIMEDOUT;
	if (ret == 0 && !has_unacknowledged && silence_ms >= PING_MS) {
		sender->acknowledged_ms = now_ms();
		return send_ping(sender);
	}
	return ret;
}

static void *run(void *data)
{
	struct ky_sender *sender = data;
	bool has_unacknowledged = true, was_idle = false;
	int ret = 0;

	while (look(sender, &has_unacknowledged)) {
		/* The relay is silent because there was nothing to acknowledge. */
		if (was_idle && has_unacknowledged)
			sender->acknowledged_ms = now_ms();
		was_idle = !has_unacknowledged;
		if (!sender->link) {
			wait_awake(sender, false, has_unacknowledged);
			reconnect(sender);
			continue;
		}
		ret = exchange(sender, has_unacknowledged);
		if (ret < 0)
			connection_broke(sender, -ret);
		else
			wait_awake(sender, ret == 1, has_unacknowledged);
	}
	return NULL;
}

/* ---- opening, closing ----------------------------------------------------------------- */

static int start(struct ky_sender *sender, struct kymo_error *err)
{
	int errnum, ret;

	if (!sender->host || (sender->options.token && !sender->token) ||
	    (sender->options.ssh_dir && !sender->ssh_dir) ||
	    (sender->options.spill_dir && !sender->spill_dir))
		return ky_error_nomem(err);
	if (sender->wake_fd < 0 || sender->readers_fd < 0)
		return ky_error_errno(err, errno, "cannot set up the connection");
	if (getrandom(sender->session, sizeof(sender->session), 0) != sizeof(sender->session))
		return ky_error_errno(err, errno, "no random numbers");
	ret = sender->options.spill_bytes ? ky_spill_open(&sender->spill, sender->spill_dir,
							  sender->options.spill_bytes, err)
					  : KYMO_OK;
	if (!ret)
		ret = connect_now(sender, err);
	if (ret < 0)
		return ret;
	errnum = pthread_create(&sender->thread, NULL, run, sender);
	if (errnum)
		return ky_error_errno(err, errnum, "cannot start the thread that sends");
	sender->has_thread = true;
	return KYMO_OK;
}

int ky_sender_open(const struct ky_sender_options *options, struct ky_sender **out,
		   struct kymo_error *err)
{
	struct ky_sender *sender = calloc(1, sizeof(*sender));
	int ret;

	*out = NULL;
	if (!sender)
		return ky_error_nomem(err);
	sender->options = *options;
	if (!sender->options.queue_bytes)
		sender->options.queue_bytes = QUEUE_BYTES;
	sender->host = strdup(options->host);
	sender->token = options->token ? strdup(options->token) : NULL;
	sender->ssh_dir = options->ssh_dir ? strdup(options->ssh_dir) : NULL;
	sender->spill_dir = options->spill_dir ? strdup(options->spill_dir) : NULL;
	sender->spill = (struct ky_spill)KY_SPILL_INIT;
	sender->number = sender->acknowledged = 1;
	sender->backoff_ms = BACKOFF_FIRST_MS;
	sender->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	sender->readers_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_mutex_init(&sender->lock, NULL);
	pthread_cond_init(&sender->changed, NULL);
	ret = start(sender, err);
	if (ret < 0) {
		ky_sender_close(sender);
		return ret;
	}
	*out = sender;
	return KYMO_OK;
}

/* Waits for progress. Returns whether there was some. */
static bool wait_for_progress(struct ky_sender *sender, int patience_ms)
{
	uint64_t before = sender->acknowledged;
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += patience_ms / 1000;
	until.tv_nsec += (long)(patience_ms % 1000) * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	while (!sender->failed && sender->acknowledged == before)
		if (pthread_cond_timedwait(&sender->changed, &sender->lock, &until) == ETIMEDOUT)
			break;
	return !sender->failed && sender->acknowledged != before;
}

int ky_sender_finish(struct ky_sender *sender, int patience_ms, struct kymo_error *err)
{
	int ret = ky_sender_put(sender, KY_FRAME_BYE, 0, NULL, 0, NULL, 0, err);

	if (ret < 0)
		return ret;
	pthread_mutex_lock(&sender->lock);
	while (sender->acknowledged < sender->number && wait_for_progress(sender, patience_ms))
		;
	if (sender->failed) {
		ret = sender->failed;
		if (err)
			*err = sender->err;
	} else if (sender->acknowledged < sender->number) {
		ret = ky_error_set(err, KYMO_E_IO,
				   "the relay %s does not answer: the last %" PRIu64
				   " bytes of the recording are lost",
				   sender->options.address.host,
				   sender->queued_bytes + sender->spill.end - sender->spill.begin);
	}
	pthread_mutex_unlock(&sender->lock);
	return ret;
}

static void free_entries(struct entry *entry)
{
	while (entry) {
		struct entry *next = entry->next;

		free(entry);
		entry = next;
	}
}

void ky_sender_close(struct ky_sender *sender)
{
	if (!sender)
		return;
	if (sender->has_thread) {
		pthread_mutex_lock(&sender->lock);
		sender->stops = true;
		pthread_mutex_unlock(&sender->lock);
		(void)eventfd_write(sender->wake_fd, 1);
		pthread_join(sender->thread, NULL);
	}
	disconnect(sender);
	free_entries(sender->first);
	free_entries(sender->late_first);
	free_entries(sender->spare);
	ky_spill_close(&sender->spill);
	if (sender->wake_fd >= 0)
		close(sender->wake_fd);
	if (sender->readers_fd >= 0)
		close(sender->readers_fd);
	pthread_cond_destroy(&sender->changed);
	pthread_mutex_destroy(&sender->lock);
	free(sender->host);
	free(sender->token);
	free(sender->ssh_dir);
	free(sender->spill_dir);
	free(sender);
}
