/* SPDX-License-Identifier: MIT */
/*
 * CTF 2 metadata and a packet of it: no crash, no hang, no memory out of proportion. What is
 * written from the model must be read again, and be written the same.
 *
 * Input: a byte n, then n * 16 bytes of metadata (or what there is), then the packet.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ctf/ctf2/ctf2-read.h"
#include "ctf/ctf2/ctf2-write.h"
#include "ctf/decode/decode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_written(const struct ky_trace_class *trace)
{
	struct ky_trace_class *again;
	size_t len, again_len;
	char *text, *twice;

	if (ky_ctf2_write(trace, &text, &len, NULL) < 0)
		return;
	if (ky_ctf2_read(text, len, &again, NULL) == 0) {
		if (ky_ctf2_write(again, &twice, &again_len, NULL) < 0 || len != again_len ||
		    memcmp(text, twice, len) != 0)
			abort();
		free(twice);
		ky_trace_class_free(again);
	}
	free(text);
}

/* Every scope of every event, and every top-level field by handle. */
static void look_at(struct ky_values *values, const struct ky_event *event)
{
	struct ky_handle handle;
	size_t len;

	for (int s = 0; s < KY_SCOPE_COUNT; s++) {
		const struct ky_field_class *root = ky_scope_root(event->cls, (enum ky_scope)s);

		(void)ky_values_decode(values, event, (enum ky_scope)s, NULL);
		for (size_t i = 0; root && i < root->st.n_members && i < 16; i++) {
			if (!ky_handle_find(&handle, event->cls, (enum ky_scope)s,
					    root->st.members[i].name))
				continue;
			(void)ky_get_u64(event, &handle, 0);
			(void)ky_get_text(event, &handle, &len);
		}
	}
}

static void decode(const struct ky_trace_class *trace, const uint8_t *data, size_t size)
{
	struct ky_decoder *decoder = ky_decoder_new(trace);
	const struct ky_packet *packet;
	struct ky_event events[8];
	struct ky_values values;
	int n, left = 64;

	ky_values_init(&values);
	if (decoder && ky_decoder_packet(decoder, data, size, 0, &packet, NULL) == 0) {
		while (left-- && (n = ky_decoder_next(decoder, events, 8, NULL)) > 0) {
			for (int i = 0; i < n; i++)
				look_at(&values, &events[i]);
		}
	}
	ky_values_fini(&values);
	ky_decoder_free(decoder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ky_trace_class *trace;
	size_t len;
	uint8_t *packet;

	if (!size)
		return 0;
	len = (size_t)data[0] * 16;
	if (len > size - 1)
		len = size - 1;
	if (ky_ctf2_read((const char *)data + 1, len, &trace, NULL) < 0)
		return 0;
	check_written(trace);
	/* A heap copy of exactly this size, so that reading past it is noticed. */
	size -= 1 + len;
	packet = malloc(size ? size : 1);
	if (packet && size)
		memcpy(packet, data + 1 + len, size);
	if (packet)
		decode(trace, packet, size);
	free(packet);
	ky_trace_class_free(trace);
	return 0;
}
