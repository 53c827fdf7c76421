/* SPDX-License-Identifier: MIT */
/*
 * Packets of any bytes, put together anew with some of their events: what is read from the new
 * packets must be the same events, with the same values and times.
 * The first byte chooses between metadata, the bits of the second which events stay.
 */
#include <stdint.h>

#include "base/strbuf.h"
#include "ctf/repack.h"
#include "packet-metadata.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct run {
	const struct ky_trace_class *trace;
	struct ky_decoder *decoder, *again;
	struct ky_repacker *repacker;
	struct ky_values values;
	struct ky_strbuf want, got; /* events, as bytes */
	uint8_t keep;
	unsigned int n_events;
};

static void add(struct ky_strbuf *out, const void *data, size_t len)
{
	ky_strbuf_add(out, data, len);
}

static void add_value(struct ky_strbuf *out, const struct ky_value *v)
{
	uint64_t word;

	add(out, &v->cls, sizeof(v->cls));
	if (v->cls->kind >= KY_FIELD_STRING && v->cls->kind <= KY_FIELD_BLOB) {
		add(out, &v->str.len_bytes, sizeof(v->str.len_bytes));
		add(out, v->str.data, v->str.len_bytes);
	} else if (v->cls->kind == KY_FIELD_ARRAY) {
		add(out, &v->n_children, sizeof(v->n_children));
	} else if (v->cls->kind == KY_FIELD_FLOAT && v->cls->num.length_bits <= 64) {
		add(out, &v->f_bits, sizeof(v->f_bits));
	} else if (v->cls->kind < KY_FIELD_STRING) {
		for (unsigned int i = 0; i == 0 || i * 64 < v->cls->num.length_bits; i++) {
			word = v->cls->num.length_bits > 64 ? ky_value_word(v, i) : v->u;
			add(out, &word, sizeof(word));
		}
	}
}

/* False when a value cannot be read: then the event is not one to compare. */
static bool add_event(struct run *run, struct ky_strbuf *out, const struct ky_event *event)
{
	size_t before = out->len;

	add(out, &event->cls, sizeof(event->cls));
	add(out, &event->cycles, sizeof(event->cycles));
	for (int scope = KY_SCOPE_EVENT_HEADER; scope < KY_SCOPE_COUNT; scope++) {
		int n = ky_values_decode(&run->values, event, (enum ky_scope)scope, NULL);

		if (n < 0) {
			out->len = before;
			return false;
		}
		for (int i = 0; i < n; i++)
			add_value(out, &run->values.list.data[i]);
	}
	return true;
}

/* What is in the finished packet. */
static void read_again(struct run *run, const struct ky_repacked *done)
{
	const struct ky_packet *packet;
	struct ky_event events[5];
	struct kymo_error err;
	int n;

	/* Without header, context and events a packet is nothing. */
	if (!done->size_bytes && !run->want.len)
		return;
	if (ky_decoder_packet(run->again, done->data, done->size_bytes, 0, &packet, &err) < 0 ||
	    packet->packet_bits != done->size_bytes * 8)
		abort();
	while ((n = ky_decoder_next(run->again, events, 5, &err)) > 0) {
		for (int i = 0; i < n; i++) {
			if (!add_event(run, &run->got, &events[i]))
				abort();
		}
	}
	if (n < 0 || run->want.len != run->got.len ||
	    memcmp(ky_strbuf_text(&run->want), ky_strbuf_text(&run->got), run->want.len) != 0)
		abort();
	ky_strbuf_clear(&run->want);
	ky_strbuf_clear(&run->got);
}

static bool may_fail(int ret)
{
	if (ret >= 0)
		return false;
	if (ret != KYMO_E_UNSUPPORTED && ret != KYMO_E_LIMIT && ret != KYMO_E_FORMAT &&
	    ret != KYMO_E_MEMORY)
		abort();
	return true;
}

/* False when the packet cannot go on. */
static bool keep_event(struct run *run, const struct ky_event *event)
{
	struct ky_strbuf one = KY_STRBUF_INIT;
	struct ky_repacked done;
	bool ok = add_event(run, &one, event);
	int ret = ok ? ky_repacker_event(run->repacker, event, NULL) : 0;

	if (ret == 1) {
		ret = ky_repacker_end(run->repacker, true, &done, NULL);
		if (ret == KYMO_OK) {
			read_again(run, &done);
			ret = ky_repacker_continue(run->repacker, event->cycles, 9, NULL);
		}
		if (ret == KYMO_OK)
			ret = ky_repacker_event(run->repacker, event, NULL);
	}
	if (ok && ret == KYMO_OK)
		add(&run->want, one.data, one.len);
	ky_strbuf_fini(&one);
	return !may_fail(ret);
}

static void repack(struct run *run, const struct ky_packet *packet)
{
	struct ky_event events[7];
	struct ky_repacked done;
	bool going;
	int n, ret;

	ky_strbuf_clear(&run->want);
	ky_strbuf_clear(&run->got);
	going = !may_fail(ky_repacker_begin(run->repacker, packet, 7, NULL));
	while (going && (n = ky_decoder_next(run->decoder, events, 7, NULL)) > 0) {
		for (int i = 0; i < n && going; i++) {
			if (run->keep >> run->n_events++ % 8 & 1)
				going = keep_event(run, &events[i]);
		}
	}
	if (!going)
		return;
	ret = ky_repacker_end(run->repacker, false, &done, NULL);
	if (!may_fail(ret))
		read_again(run, &done);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct ky_packet *packet;
	struct run run = {.n_events = 0};
	size_t at = 2;

	if (size < 2 || size > 65536)
		return 0;
	run.trace = trace_class(data[0] % N_METADATA);
	run.keep = data[1];
	run.decoder = ky_decoder_new(run.trace);
	run.again = ky_decoder_new(run.trace);
	run.repacker = ky_repacker_new(run.trace, NULL);
	ky_values_init(&run.values);
	if (!run.decoder || !run.again || !run.repacker)
		abort();
	while (at < size &&
	       ky_decoder_packet(run.decoder, data + at, size - at, at, &packet, NULL) == KYMO_OK) {
		repack(&run, packet);
		if (packet->packet_bits / 8 > size - at)
			break;
		at += packet->packet_bits / 8;
	}
	ky_values_fini(&run.values);
	ky_strbuf_fini(&run.want);
	ky_strbuf_fini(&run.got);
	ky_repacker_free(run.repacker);
	ky_decoder_free(run.again);
	ky_decoder_free(run.decoder);
	return 0;
}
