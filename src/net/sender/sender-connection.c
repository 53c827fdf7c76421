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

#define CONNECT_MS	5000
#define GREETING_MS	5000
#define SSH_MS		60000 /* the user may have to enter a password */
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

/* Waits for the relay's answer. 0 or a negative errno. */
static int sender_connection_greet(struct ky_sender *sender)
{
	int64_t end = ky_os_now_ms() + (sender->ssh_dir ? SSH_MS : GREETING_MS);
	int ret = send_hello(sender);

	while (!ret && !sender->is_welcome) {
		struct pollfd wanted = {ky_link_in_fd(sender->link), POLLIN, 0};
		int64_t left = end - ky_os_now_ms();

		if (left <= 0)
			return -ETIMEDOUT;
		if (poll(&wanted, 1, (int)left) < 0 && errno != EINTR)
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

int ky_sender_connect(struct ky_sender *sender, struct kymo_error *err)
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
		ky_sender_disconnect(sender);
		return ret;
	}
	ret = sender_connection_greet(sender);
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
	return no_answer(sender, -ret, err);
}
