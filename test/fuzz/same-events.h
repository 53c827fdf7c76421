/* SPDX-License-Identifier: MIT */
/*
 * Packets that were written anew, against the events that were put into them: fuzz-repack, where they
 * are the same to the bit, and fuzz-transcode, where the same values are of other classes.
 */
#ifndef KY_TEST_SAME_EVENTS_H
#define KY_TEST_SAME_EVENTS_H

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/strbuf.h"
#include "ctf/decode/decode.h"
#include "ctf/encode/repack.h"
#include "ctf/model/unicode.h"

struct same_events {
	bool exact; /* of the same classes, texts to the byte, with their headers */
	struct ky_decoder *again;
	struct ky_values values;
	struct ky_strbuf want, got; /* events, as bytes */
};

static void same_init(struct same_events *same, const struct ky_trace_class *again, bool exact)
{
	*same = (struct same_events){.exact = exact, .again = ky_decoder_new(again)};
	ky_values_init(&same->values);
	if (!same->again)
		abort();
}

static void same_fini(struct same_events *same)
{
	ky_decoder_free(same->again);
	ky_values_fini(&same->values);
	ky_strbuf_fini(&same->want);
	ky_strbuf_fini(&same->got);
}

static void same_number(struct ky_strbuf *out, uint64_t number)
{
	ky_strbuf_add(out, (const char *)&number, sizeof(number));
}

static void same_bytes(const struct same_events *same, struct ky_strbuf *out,
		       const struct ky_value *v)
{
	size_t before = out->len;

	if (v->cls->kind == KY_FIELD_BLOB) {
		for (size_t i = 0; i < v->str.len_bytes; i++)
			same_number(out, (uint8_t)v->str.data[i]);
		return;
	}
	if (same->exact)
		ky_strbuf_add(out, v->str.data, v->str.len_bytes);
	else
		ky_utf8_from(out, v->cls->text.encoding, (const uint8_t *)v->str.data,
			     v->str.len_bytes);
	same_number(out, out->len - before);
}

static void same_words(struct ky_strbuf *out, const struct ky_value *v)
{
	uint32_t bits = v->cls->num.length_bits;

	if (v->cls->kind == KY_FIELD_FLOAT && bits <= 64)
		same_number(out, v->f_bits);
	else if (v->cls->kind == KY_FIELD_BOOL)
		same_number(out, v->u);
	else if (bits <= 64)
		same_number(out, bits ? v->u & ky_mask_bits(bits) : v->u);
	else
		for (unsigned int i = 0; i * 64 < bits; i++)
			same_number(out, ky_value_word(v, i));
}

/* A copy of a length or selector has no place in the original. */
static bool same_is_copy(const struct ky_value *v)
{
	return v->name && (strstr(v->name, "_length") || strstr(v->name, "_selector"));
}

static void same_value(const struct same_events *same, struct ky_strbuf *out,
		       const struct ky_value *v)
{
	if (same->exact)
		ky_strbuf_add(out, (const char *)&v->cls, sizeof(v->cls));
	else if (same_is_copy(v))
		return;
	if (v->cls->kind < KY_FIELD_STRING)
		same_words(out, v);
	else if (v->cls->kind <= KY_FIELD_BLOB)
		same_bytes(same, out, v);
	else if (v->cls->kind == KY_FIELD_ARRAY && same->exact)
		same_number(out, v->n_children);
}

/* False when a value cannot be read: then the event is not one to compare. */
static bool same_add(struct same_events *same, struct ky_strbuf *out, const struct ky_event *event)
{
	size_t before = out->len;
	int scope = same->exact ? KY_SCOPE_EVENT_HEADER : KY_SCOPE_STREAM_CONTEXT;

	same_number(out, event->cls->id);
	same_number(out, event->cycles);
	for (; scope < KY_SCOPE_COUNT; scope++) {
		int n = ky_values_decode(&same->values, event, (enum ky_scope)scope, NULL);

		if (n < 0) {
			out->len = before;
			return false;
		}
		for (int i = 0; i < n; i++)
			same_value(same, out, &same->values.list.data[i]);
	}
	return true;
}

/* What is read from the finished packet must be what same->want holds; both are empty then. */
static void same_read(struct same_events *same, const struct ky_repacked *done)
{
	const struct ky_packet *packet;
	struct ky_event events[5];
	struct kymo_error err;
	int n;

	/* Without header, context and events a packet is nothing. */
	if (!done->size_bytes && !same->want.len)
		return;
	if (ky_decoder_packet(same->again, done->data, done->size_bytes, 0, &packet, &err) < 0 ||
	    packet->packet_bits != done->size_bytes * 8 ||
	    (!same->exact && packet->begin_cycles != done->begin_cycles))
		abort();
	while ((n = ky_decoder_next(same->again, events, 5, &err)) > 0) {
		for (int i = 0; i < n; i++) {
			if (!same_add(same, &same->got, &events[i]))
				abort();
		}
	}
	if (n < 0 || same->want.len != same->got.len ||
	    memcmp(ky_strbuf_text(&same->want), ky_strbuf_text(&same->got), same->want.len) != 0)
		abort();
	ky_strbuf_clear(&same->want);
	ky_strbuf_clear(&same->got);
}

#endif
