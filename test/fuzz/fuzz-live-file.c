/* SPDX-License-Identifier: MIT */
/* What a writer says to live readers: any bytes. What is accepted is written back, and read again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "store/live/live-file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct ky_live_state *state)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	struct ky_live_state again;

	ky_live_put_head(&text, state->until_cycles);
	ky_vec_foreach(&state->streams, stream) {
		if (!stream->name[0] || strchr(stream->name, '/') || strchr(stream->name, '\n'))
			abort();
		ky_live_put_stream(&text, stream->name, stream->size_bytes);
	}
	if (ky_strbuf_failed(&text) ||
	    ky_live_parse(ky_strbuf_text(&text), text.len, &again, NULL) < 0 ||
	    again.until_cycles != state->until_cycles || again.streams.len != state->streams.len)
		abort();
	ky_live_state_fini(&again);
	ky_strbuf_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ky_live_state state;
	struct kymo_error err;

	if (ky_live_parse((const char *)data, size, &state, &err) == KYMO_OK)
		check(&state);
	ky_live_state_fini(&state);
	return 0;
}
