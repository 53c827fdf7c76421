/* SPDX-License-Identifier: MIT */
#include "net/sender/sender-internal.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/uio.h>

#include "base/error.h"
#include "net/link/link.h"
#include "net/link/ssh.h"
#include "os/now.h"

/* Of one try: a relay that takes no connections is asked again. */
#define CONNECT_MS 5000
/* While it waits, it looks that often whether that is still wanted. */
#define STEP_MS 100
/* At the start, between two tries. */
#define PAUSE_FIRST_MS 100
#define PAUSE_MOST_MS  1000
/* After so long the user learns why nothing happens. */
#define TELL_MS 3000
/* At the start, so many connections may break: the relay may have been full, or is no relay. */
#define CLOSED_MAX	3
#define PARTS_AT_A_TIME 64
/* So often the relay's answers are read before frames are sent: a relay can talk without end. */
#define READS_AT_A_TIME 16

/* The relay has refused the session, and says why. */
static void sender_connection_refuse(struct ky_sender *sender, const char *text)
{
	struct kymo_error err = {.code = KYMO_OK};

	(void)ky_error_set(&err, KYMO_E_IO, "the relay %s has refused: %s",
			   sender->options.address.host, text);
	ky_sender_fail(sender, &err);
}

static void sender_connection_take_readers(struct ky_sender *sender, uint64_t delay_ms)
{
	uint32_t now_ms = delay_ms ? ky_net_delay_ms(delay_ms) : 0;

	if (__atomic_exchange_n(&sender->delay_ms, now_ms, __ATOMIC_RELAXED) != now_ms)
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
		sender_connection_refuse(sender, "it has lost the session");
		return -EPROTO;
	}
	/* Nothing is sent yet: whatever has arrived can go. */
	pthread_mutex_lock(&sender->lock);
	sender->next = NULL;
	pthread_mutex_unlock(&sender->lock);
	ky_sender_acknowledge(sender, number);
	/* A relay of another version may have taken the place. */
	__atomic_store_n(&sender->features, sender->told_features, __ATOMIC_RELAXED);
	pthread_mutex_lock(&sender->lock);
	sender->next = sender->first;
	sender->sent = number;
	pthread_mutex_unlock(&sender->lock);
	sender->sent_bytes = 0;
	return 0;
}

/* 0 or a negative errno: the connection is of no use any more. */
static int sender_connection_take_answer(void *data, const struct ky_answer *answer)
{
	struct ky_sender *sender = data;

	switch (answer->type) {
	case KY_FRAME_WELCOME:
		if (sender->is_welcome)
			return -EPROTO;
		sender->is_welcome = true;
		return take_welcome(sender, answer->value);
	case KY_FRAME_ACK:
		/* A frame of which the relay has a part stays until its end is sent. */
		if (!sender->is_welcome || !ky_sender_has_sent(sender, answer->value))
			return -EPROTO;
		ky_sender_acknowledge(sender, answer->value);
		return 0;
	case KY_FRAME_READERS:
		sender_connection_take_readers(sender, answer->value);
		return 0;
	case KY_FRAME_FEATURES:
		sender->told_features = answer->value;
		return 0;
	default:
		sender_connection_refuse(sender, answer->text);
		return -EPROTO;
	}
}

int ky_sender_receive(struct ky_sender *sender)
{
	uint8_t data[4096];
	ssize_t got;
	int ret = 0;

	for (int i = 0; i < READS_AT_A_TIME && !ret; i++) {
		got = ky_link_receive(sender->link, data, sizeof(data));
		if (got == -EAGAIN)
			return 0;
		if (got <= 0)
			return got < 0 ? (int)got : -ECONNRESET;
		ret = ky_answer_reader_take(&sender->answers, data, (size_t)got,
					    sender_connection_take_answer, sender);
	}
	return ret;
}

int ky_sender_send(struct ky_sender *sender)
{
	struct iovec parts[PARTS_AT_A_TIME];
	ssize_t sent;
	int n;

	while ((n = ky_sender_collect(sender, parts, PARTS_AT_A_TIME)) > 0) {
		sent = ky_link_send(sender->link, parts, n);
		if (sent == -EAGAIN)
			return 1;
		if (sent < 0)
			return (int)sent;
		ky_sender_advance(sender, (uint64_t)sent);
	}
	return 0;
}

int ky_sender_ping(struct ky_sender *sender)
{
	const struct ky_frame frame = {KY_FRAME_PING, 0, 0, 0};
	uint8_t head[KY_FRAME_HEAD_BYTES];
	struct iovec part = {head, sizeof(head)};
	ssize_t sent;

	ky_frame_put(&frame, head);
	sent = ky_link_send(sender->link, &part, 1);
	return sent == (ssize_t)sizeof(head) ? 0 : -ECONNRESET;
}

void ky_sender_disconnect(struct ky_sender *sender)
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

/* Whether there is time to wait, and nobody wants the end. */
static bool may_wait(struct ky_sender *sender, int64_t end_ms)
{
	int64_t now_ms = ky_os_now_ms();
	bool stops;

	if (sender->tell_ms && now_ms >= sender->tell_ms) {
		ky_log_info(sender->options.log, "waiting for the relay %s",
			    sender->options.address.host);
		sender->tell_ms = 0;
	}
	if (sender->is_first)
		return now_ms < end_ms && !(sender->options.gives_up && sender->options.gives_up());
	pthread_mutex_lock(&sender->lock);
	stops = sender->stops;
	pthread_mutex_unlock(&sender->lock);
	return !stops && now_ms < end_ms;
}

/* A step of waiting, after which may_wait() is asked. */
static int step_ms(int64_t end_ms)
{
	int64_t left_ms = end_ms - ky_os_now_ms();

	return left_ms <= 0 ? 0 : left_ms < STEP_MS ? (int)left_ms : STEP_MS;
}

/* Waits for the relay's answer. 0 or a negative errno. */
static int sender_connection_greet(struct ky_sender *sender, int64_t end_ms)
{
	int ret = send_hello(sender);

	while (!ret && !sender->is_welcome) {
		struct pollfd wanted = {ky_link_in_fd(sender->link), POLLIN, 0};

		if (!may_wait(sender, end_ms))
			return -ETIMEDOUT;
		if (poll(&wanted, 1, step_ms(end_ms)) < 0 && errno != EINTR)
			return -errno;
		ret = ky_sender_receive(sender);
	}
	return ret;
}

static int no_answer(struct ky_sender *sender, int errnum, struct kymo_error *err)
{
	if (sender->ssh_dir) {
		ky_error_set(err, KYMO_E_IO, "the relay on %s does not answer through ssh",
			     sender->options.address.host);
		ky_error_hint(err, "check that 'ssh HOST kymo help' works");
	} else {
		ky_error_errno(err, errnum, "the relay %s, port %s, does not answer",
			       sender->options.address.host, sender->options.address.port);
	}
	if (err)
		err->code = KYMO_E_IO;
	return KYMO_E_IO;
}

/* With TLS, if that is asked for. */
static int open_link(struct ky_sender *sender, int64_t end_ms, struct kymo_error *err)
{
	int64_t left_ms = end_ms - ky_os_now_ms();
	bool is_loopback;
	int fd, ret;

	if (sender->ssh_dir)
		fd = ky_ssh_connect(sender->options.address.host, sender->ssh_dir, &sender->ssh,
				    err);
	else
		fd = ky_net_connect(&sender->options.address,
				    left_ms < CONNECT_MS ? (int)left_ms : CONNECT_MS, &is_loopback,
				    &sender->errnum, err);
	if (fd < 0)
		return fd;
	ret = ky_link_new(fd, fd, &sender->link, err);
	if (!ret && sender->options.tls)
		ret = ky_link_use_tls(sender->link, sender->options.tls, err);
	if (ret < 0)
		return ret;
	do {
		ret = ky_link_handshake(sender->link, step_ms(end_ms), err);
	} while (ret == KYMO_E_AGAIN && may_wait(sender, end_ms));
	return ret == KYMO_E_AGAIN ? KYMO_E_IO : ret;
}

int ky_sender_connect(struct ky_sender *sender, int64_t end_ms, struct kymo_error *err)
{
	int ret;

	sender->errnum = 0;
	ret = open_link(sender, end_ms, err);
	if (ret < 0) {
		ky_sender_disconnect(sender);
		return ret;
	}
	ret = sender_connection_greet(sender, end_ms);
	if (ret == 0) {
		sender->acknowledged_ms = ky_os_now_ms();
		return KYMO_OK;
	}
	ky_sender_disconnect(sender);
	if (sender->failed) {
		if (err)
			*err = sender->err;
		return sender->failed;
	}
	sender->errnum = -ret;
	return no_answer(sender, -ret, err);
}

/* ---- the first time -------------------------------------------------------------------- */

/* Whether the last try may have failed because the relay had too much to do, or begins just now. *n_closed: of such tries. */
static bool may_try_again(const struct ky_sender *sender, unsigned int *n_closed)
{
	/* The user would have to enter the password again. */
	if (sender->ssh_dir)
		return false;
	switch (sender->errnum) {
	case ETIMEDOUT:
		return true;
	case ECONNRESET:
	case EPIPE:
		return ++*n_closed <= CLOSED_MAX;
	case ECONNREFUSED:
	case EHOSTUNREACH:
	case ENETUNREACH:
		return sender->options.waits_for_relay || *n_closed;
	default:
		return false;
	}
}

static void sleep_ms(int ms)
{
	(void)poll(NULL, 0, ms);
}

int ky_sender_connect_first(struct ky_sender *sender, struct kymo_error *err)
{
	int64_t wait_ms = sender->options.wait_ms ? (int64_t)sender->options.wait_ms
			  : sender->ssh_dir	  ? KY_SENDER_SSH_MS
						  : KY_SENDER_WAIT_MS;
	int64_t end_ms = ky_os_now_ms() + wait_ms;
	unsigned int n_closed = 0;
	int ret, pause_ms = PAUSE_FIRST_MS;

	sender->is_first = true;
	sender->tell_ms = ky_os_now_ms() + TELL_MS;
	while ((ret = ky_sender_connect(sender, end_ms, err)) < 0) {
		if (!may_try_again(sender, &n_closed))
			break;
		for (int ms = 0; ms < pause_ms && may_wait(sender, end_ms); ms += STEP_MS)
			sleep_ms(step_ms(end_ms));
		if (!may_wait(sender, end_ms))
			break;
		pause_ms = pause_ms * 2 < PAUSE_MOST_MS ? pause_ms * 2 : PAUSE_MOST_MS;
	}
	sender->is_first = false;
	sender->tell_ms = 0;
	return ret;
}
