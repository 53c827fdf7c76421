/* SPDX-License-Identifier: MIT */
/*
 * When the relay reads the packets of LTTng's daemons. A daemon waits for the answer to each index, and the packet itself
 * can wait in the connection: so packets are read in blocks of their file.
 */
#include <sys/socket.h>

#include "net/files/relay-block.h"
#include "net/lttng/lttng-consumer.h"

/*
 * The kernel wakes the relay at so many bytes, not for each piece of a packet; earlier when its buffer is nearly full, or
 * when the connection ends.
 */
#define WAKEUP_BYTES (1 << 20)
/* At so many bytes, or indexes, whose packets are not read yet, the relay reads once; or after KY_CLIENTS_GATHER_NS. */
#define READ_BYTES   KY_RELAY_BLOCK_BYTES
#define READ_INDEXES 64

void ky_lttng_consumer_expect_data(struct ky_lttng_consumer *consumer, bool expects)
{
	int bytes = expects ? 1 : WAKEUP_BYTES;

	if (!consumer->data || consumer->expects_data == expects)
		return;
	consumer->expects_data = expects;
	(void)setsockopt(ky_link_in_fd(consumer->data->link), SOL_SOCKET, SO_RCVLOWAT, &bytes,
			 sizeof(bytes));
}

int ky_lttng_consumer_take_data(struct ky_lttng_consumer *consumer, struct kymo_error *err)
{
	consumer->unread_bytes = 0;
	consumer->n_unread = 0;
	return consumer->data ? ky_client_read(consumer->data, true, err) : KYMO_OK;
}

void ky_lttng_consumer_note_packet(struct ky_lttng_consumer *consumer, uint64_t bytes)
{
	/* After a look at all of the connection, both count from zero again. */
	consumer->unread_bytes -= bytes < consumer->unread_bytes ? bytes : consumer->unread_bytes;
	consumer->n_unread -= consumer->n_unread != 0;
}

static bool has_late(const struct ky_lttng_consumer *consumer)
{
	ky_vec_foreach(&consumer->streams, stream)
		if ((*stream)->records.len)
			return true;
	return false;
}

/*
 * The daemon sends a packet's head and then its content, and its kernel holds the content back until the head is
 * acknowledged (Nagle's algorithm). To read the head is to acknowledge it, so the second read finds the rest.
 */
static int read_arrived(struct ky_lttng_consumer *consumer, struct kymo_error *err)
{
	int ret = ky_lttng_consumer_take_data(consumer, err);

	return !ret && has_late(consumer) ? ky_lttng_consumer_take_data(consumer, err) : ret;
}

/* One block of the file; the same again where the rest of a packet was held back. */
static int lttng_arrival_read_block(struct ky_lttng_consumer *consumer, struct kymo_error *err)
{
	int ret = consumer->data ? ky_client_read(consumer->data, false, err) : KYMO_OK;

	if (!ret && consumer->data && consumer->data->is_drained && has_late(consumer))
		ret = ky_client_read(consumer->data, false, err);
	return ret;
}

/* Packets that are late wake the relay, until the next time that it looks. */
static int read_all(struct ky_lttng_consumer *consumer, struct kymo_error *err)
{
	int ret = consumer->n_unread || consumer->expects_data ? read_arrived(consumer, err)
							       : KYMO_OK;

	consumer->is_due = false;
	/* While it has its control connection, the end of another one does not free it. */
	ky_lttng_consumer_expect_data(consumer, has_late(consumer));
	return ret;
}

int ky_lttng_take_late(void *data, struct kymo_error *err)
{
	struct ky_lttng_relay *relay = data;
	int ret = KYMO_OK;

	ky_loop_set_timer(relay->data_timer, 0);
	relay->data_is_due = false;
	for (size_t i = relay->consumers.len; i-- > 0 && !ret;) {
		struct ky_lttng_consumer *consumer = relay->consumers.data[i];

		if (consumer->has_control && consumer->is_due)
			ret = read_all(consumer, err);
	}
	return ret;
}

int ky_lttng_consumer_take_index(struct ky_lttng_consumer *consumer, uint64_t packet_bytes,
				 struct kymo_error *err)
{
	struct ky_lttng_relay *relay = consumer->relay;

	consumer->unread_bytes += packet_bytes;
	consumer->n_unread += packet_bytes != 0;
	consumer->is_due |= packet_bytes || consumer->expects_data;
	if (consumer->is_due && !relay->data_is_due) {
		relay->data_is_due = true;
		ky_loop_set_timer(relay->data_timer, KY_CLIENTS_GATHER_NS);
	}
	if (consumer->unread_bytes >= READ_BYTES || consumer->n_unread >= READ_INDEXES)
		return lttng_arrival_read_block(consumer, err);
	return KYMO_OK;
}
