/* SPDX-License-Identifier: MIT */
/*
 * Packets of any bytes, put together anew with some of their events: what is read from the new
 * packets must be the same events, with the same values and times.
 * The first byte chooses between metadata, the bits of the second which events stay.
 */
#include <stdint.h>

#include "packet-metadata.h"
#include "same-events.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct run {
	const struct ky_trace_class *trace;
	struct ky_decoder *decoder;
	struct ky_repacker *repacker;
	struct same_events same;
	uint8_t keep;
	unsigned int n_events;
};

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
	bool ok = same_add(&run->same, &one, event);
	int ret = ok ? ky_repacker_event(run->repacker, event, NULL) : 0;

	if (ret == 1) {
		ret = ky_repacker_end(run->repacker, true, &done, NULL);
		if (ret == KYMO_OK) {
			same_read(&run->same, &done);
			ret = ky_repacker_continue(run->repacker, event->cycles, 9, NULL);
		}
		if (ret == KYMO_OK)
			ret = ky_repacker_event(run->repacker, event, NULL);
	}
	if (ok && ret == KYMO_OK)
		ky_strbuf_add(&run->same.want, one.data, one.len);
	ky_strbuf_fini(&one);
	return !may_fail(ret);
}

static void repack(struct run *run, const struct ky_packet *packet)
{
	struct ky_event events[7];
	struct ky_repacked done;
	bool going;
	int n, ret;

	ky_strbuf_clear(&run->same.want);
	ky_strbuf_clear(&run->same.got);
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
		same_read(&run->same, &done);
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
	run.repacker = ky_repacker_new(run.trace, NULL);
	same_init(&run.same, run.trace, true);
	if (!run.decoder || !run.repacker)
		abort();
	while (at < size &&
	       ky_decoder_packet(run.decoder, data + at, size - at, at, &packet, NULL) == KYMO_OK) {
		repack(&run, packet);
		if (packet->packet_bits / 8 > size - at)
			break;
		at += packet->packet_bits / 8;
	}
	same_fini(&run.same);
	ky_repacker_free(run.repacker);
	ky_decoder_free(run.decoder);
	return 0;
}
