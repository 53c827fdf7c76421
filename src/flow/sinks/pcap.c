/* SPDX-License-Identifier: MIT */
#include "flow/sinks/pcap.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "os/file.h"

#define WRITE_BYTES  ((size_t)256 << 10)
#define PACKET_BYTES 262144 /* libpcap takes no longer ones */

struct pcap_sink {
	struct ky_sink sink;
	int fd;
	bool begun;
	uint32_t link;
	struct ky_values values;
	struct ky_strbuf out, bytes;
};

struct pcap_packet {
	const struct ky_value *data;
	uint32_t link, length;
};

/* Both ends are of this machine: the magic number tells the byte order. */
static void pcap_u32(struct ky_strbuf *out, uint32_t value)
{
	ky_strbuf_add(out, (const char *)&value, sizeof(value));
}

static void pcap_head(struct pcap_sink *pcap)
{
	static const uint16_t version[2] = {2, 4};

	pcap_u32(&pcap->out, 0xa1b23c4d);
	ky_strbuf_add(&pcap->out, (const char *)version, sizeof(version));
	pcap_u32(&pcap->out, 0);
	pcap_u32(&pcap->out, 0);
	pcap_u32(&pcap->out, PACKET_BYTES);
	pcap_u32(&pcap->out, pcap->link);
}

/* Has the event a packet's bytes? */
static bool pcap_find(const struct ky_value *root, struct pcap_packet *packet)
{
	const struct ky_value *at = root + 1, *end = at + root->n_below;
	bool has_link = false;

	memset(packet, 0, sizeof(*packet));
	for (; at < end; at += 1 + at->n_below) {
		if (strcmp(at->name, "data") == 0 && at->cls->kind == KY_FIELD_ARRAY) {
			packet->data = at;
		} else if (strcmp(at->name, "data_link") == 0 && at->cls->kind == KY_FIELD_UINT) {
			packet->link = (uint32_t)at->u;
			has_link = true;
		} else if (strcmp(at->name, "length") == 0 && at->cls->kind == KY_FIELD_UINT) {
			packet->length = (uint32_t)at->u;
		}
	}
	return packet->data && has_link;
}

static int pcap_write(struct pcap_sink *pcap, struct kymo_error *err)
{
	int ret;

	if (ky_strbuf_failed(&pcap->out) || ky_strbuf_failed(&pcap->bytes))
		return ky_error_nomem(err);
	ret = ky_write_all(pcap->fd, pcap->out.data, pcap->out.len);
	ky_strbuf_clear(&pcap->out);
	return ret < 0 ? ky_error_errno(err, -ret, "cannot write the packets") : KYMO_OK;
}

static void pcap_put(struct pcap_sink *pcap, const struct pcap_packet *packet, int64_t ns)
{
	const struct ky_value *at = packet->data + 1, *end = at + packet->data->n_below;
	uint64_t time = (uint64_t)ns;

	ky_strbuf_clear(&pcap->bytes);
	for (; at < end && pcap->bytes.len < PACKET_BYTES; at += 1 + at->n_below)
		ky_strbuf_addc(&pcap->bytes, (char)at->u);
	pcap_u32(&pcap->out, (uint32_t)(time / 1000000000));
	pcap_u32(&pcap->out, (uint32_t)(time % 1000000000));
	pcap_u32(&pcap->out, (uint32_t)pcap->bytes.len);
	pcap_u32(&pcap->out,
		 packet->length > pcap->bytes.len ? packet->length : (uint32_t)pcap->bytes.len);
	ky_strbuf_add(&pcap->out, pcap->bytes.data, pcap->bytes.len);
}

static int pcap_other_link(const struct pcap_sink *pcap, uint32_t link, struct kymo_error *err)
{
	ky_error_set(err, KYMO_E_UNSUPPORTED,
		     "a pcap file has packets of one kind of link; these are of %u and %u",
		     pcap->link, link);
	ky_error_hint(err, "the filter \"data_link == %u\" selects those of one kind", link);
	return KYMO_E_UNSUPPORTED;
}

static int pcap_other_time(struct kymo_error *err)
{
	ky_error_set(err, KYMO_E_UNSUPPORTED,
		     "cannot write a packet: a pcap file has times from 1970 to 2106");
	ky_error_hint(err, "an offset of the clock shifts the times");
	return KYMO_E_UNSUPPORTED;
}

static int pcap_event(struct pcap_sink *pcap, const struct ky_event *event, struct kymo_error *err)
{
	struct pcap_packet packet;
	int n = ky_values_decode(&pcap->values, event, KY_SCOPE_PAYLOAD, err);

	if (n <= 0)
		return n;
	if (event->ns == INT64_MIN || !pcap_find(pcap->values.list.data, &packet))
		return KYMO_OK;
	if (!pcap->begun) {
		pcap->link = packet.link;
		pcap->begun = true;
		pcap_head(pcap);
	}
	if (packet.link != pcap->link)
		return pcap_other_link(pcap, packet.link, err);
	if (event->ns < 0 || event->ns / 1000000000 > UINT32_MAX)
		return pcap_other_time(err);
	pcap_put(pcap, &packet, event->ns);
	return pcap->out.len >= WRITE_BYTES ? pcap_write(pcap, err) : KYMO_OK;
}

static int pcap_batch(struct ky_sink *sink, const struct ky_batch *batch, struct kymo_error *err)
{
	struct pcap_sink *pcap = (struct pcap_sink *)sink;
	int ret = KYMO_OK;

	for (size_t i = 0; i < batch->n_events && ret >= 0; i++) {
		ret = pcap_event(pcap, &batch->events[i], err);
		if (ret == KYMO_E_FORMAT)
			ky_sink_place(ky_batch_stream(batch, &batch->events[i]), err);
	}
	return ret < 0 ? ret : KYMO_OK;
}

static int pcap_finish(struct ky_sink *sink, struct kymo_error *err)
{
	struct pcap_sink *pcap = (struct pcap_sink *)sink;

	if (pcap->begun)
		return pcap_write(pcap, err);
	ky_error_set(err, KYMO_E_UNSUPPORTED, "no event has a packet's bytes");
	ky_error_hint(err,
		      "packets come from pcap and pcapng files, or from traces that were made of "
		      "them with their bytes");
	return KYMO_E_UNSUPPORTED;
}

static void pcap_free(struct ky_sink *sink)
{
	struct pcap_sink *pcap = (struct pcap_sink *)sink;

	ky_values_fini(&pcap->values);
	ky_strbuf_fini(&pcap->out);
	ky_strbuf_fini(&pcap->bytes);
	free(pcap);
}

static const struct ky_sink_ops pcap_ops = {
	.batch = pcap_batch,
	.finish = pcap_finish,
	.free = pcap_free,
	.any_stream = true,
};

struct ky_sink *ky_pcap_sink_new(int fd)
{
	struct pcap_sink *pcap = calloc(1, sizeof(*pcap));

	if (!pcap)
		return NULL;
	pcap->sink.ops = &pcap_ops;
	pcap->fd = fd;
	ky_values_init(&pcap->values);
	return &pcap->sink;
}
