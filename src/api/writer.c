/* SPDX-License-Identifier: MIT */
/* kymo/writer.h: the writer itself, from new to close. */
#include "api/writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "api/api.h"
#include "base/error.h"
#include "ctf/ctf2/ctf2-write.h"
#include "ctf/resolve/lttng-layout.h"
#include "ctf/tsdl/tsdl.h"
#include "store/directory/directory-store.h"

/* The size of the first version's options. */
#define OPTIONS_MIN offsetof(struct kymo_writer_options, atomic)

#define PACKET_BYTES_MIN 4096u
#define PACKET_BYTES_MAX (1u << 30)

/* Compact event headers have 5 bits for the id, of which 31 is the way out. */
#define COMPACT_EVENTS_MAX 31

/* ---- new ---------------------------------------------------------------------------------- */

static int writer_take_options(struct kymo_writer *writer,
			       const struct kymo_writer_options *options, struct kymo_error *err)
{
	struct kymo_writer_options *own = &writer->options;
	int ret = KYMO_OK;

	*own = kymo_writer_options_init();
	if (options)
		ret = ky_api_options(own, sizeof(*own), OPTIONS_MIN, options, err);
	if (ret < 0)
		return ret;
	if (own->format != KYMO_FORMAT_CTF_1_8 && own->format != KYMO_FORMAT_CTF_2)
		return ky_error_set(err, KYMO_E_INVALID, "there is no format %d", (int)own->format);
	if (own->packet_bytes < PACKET_BYTES_MIN || own->packet_bytes > PACKET_BYTES_MAX ||
	    own->packet_bytes % 8)
		return ky_error_set(err, KYMO_E_INVALID,
				    "packets of %zu bytes: %u to %u, a multiple of 8, are possible",
				    own->packet_bytes, PACKET_BYTES_MIN, PACKET_BYTES_MAX);
	return KYMO_OK;
}

static int writer_set_uuid(struct kymo_writer *writer, struct kymo_error *err)
{
	uint8_t *uuid = writer->trace->uuid;

	writer->trace->has_uuid = true;
	if (writer->options.uuid) {
		memcpy(uuid, writer->options.uuid, 16);
		writer->options.uuid = NULL;
		return KYMO_OK;
	}
	if (getrandom(uuid, 16, 0) != 16)
		return ky_error_errno(err, errno, "no random numbers for the trace's UUID");
	uuid[6] = (uint8_t)((uuid[6] & 0x0f) | 0x40);
	uuid[8] = (uint8_t)((uuid[8] & 0x3f) | 0x80);
	return KYMO_OK;
}

static int writer_init(struct kymo_writer *writer, const struct kymo_writer_options *options,
		       struct kymo_error *err)
{
	int ret = writer_take_options(writer, options, err);

	if (ret < 0)
		return ret;
	writer->trace = ky_trace_class_new();
	if (!writer->trace)
		return ky_error_nomem(err);
	writer->trace->big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
	if (ky_lttng_layout_trace(writer->trace) < 0)
		return ky_error_nomem(err);
	return writer_set_uuid(writer, err);
}

int kymo_writer_new(const struct kymo_writer_options *options, struct kymo_writer **out,
		    struct kymo_error *err)
{
	struct kymo_writer *writer;
	int ret;

	if (!out)
		return ky_error_set(err, KYMO_E_INVALID, "no place for the writer");
	*out = NULL;
	writer = calloc(1, sizeof(*writer));
	if (!writer)
		return ky_error_nomem(err);
	pthread_mutex_init(&writer->lock, NULL);
	ret = writer_init(writer, options, err);
	if (ret < 0) {
		(void)kymo_writer_close(writer, NULL);
		return ret;
	}
	*out = writer;
	return KYMO_OK;
}

/* ---- open --------------------------------------------------------------------------------- */

static int finish_model(struct kymo_writer *writer, struct kymo_error *err)
{
	int ret = ky_put_compile(writer, err);

	if (ret < 0)
		return ret;
	ky_vec_foreach(&writer->streams, s) {
		struct kymo_stream_def *stream = *s;

		stream->compact_header = stream->cls->events.len <= COMPACT_EVENTS_MAX;
		if (!stream->compact_header &&
		    ky_lttng_layout_header(stream->cls, stream->clock, false) < 0)
			return ky_error_nomem(err);
	}
	return ky_trace_class_finish(writer->trace, true, err);
}

static int writer_write_metadata(struct kymo_writer *writer, struct kymo_error *err)
{
	bool ctf2 = writer->options.format == KYMO_FORMAT_CTF_2;
	char *text = NULL;
	size_t len = 0;
	int ret;

	ret = (ctf2 ? ky_ctf2_write : ky_tsdl_write)(writer->trace, &text, &len, err);
	if (ret == KYMO_OK)
		ret = ky_store_metadata(writer->packets, text, len, err);
	free(text);
	return ret;
}

static int writer_open_trace(struct kymo_writer *writer, const char *path, struct kymo_error *err)
{
	int ret = finish_model(writer, err);

	if (ret == KYMO_OK)
		ret = ky_directory_trace_open(path, writer->options.atomic, &writer->packets, err);
	if (ret == KYMO_OK)
		ret = writer_write_metadata(writer, err);
	return ret;
}

int kymo_writer_open(struct kymo_writer *writer, const char *path, struct kymo_error *err)
{
	int ret;

	if (!writer || !path)
		return ky_error_set(err, KYMO_E_INVALID,
				    "kymo_writer_open() wants a writer and a path");
	if (writer->tried)
		return ky_error_set(err, KYMO_E_STATE, "the writer was opened before");
	writer->tried = true;
	if (writer->code != KYMO_OK) {
		if (err)
			*err = writer->first;
		return writer->code;
	}
	ret = writer->code = writer_open_trace(writer, path, &writer->first);
	if (ret < 0 && err)
		*err = writer->first;
	return ret;
}

/* ---- close -------------------------------------------------------------------------------- */

/* All that was made for it; the outputs and the sink are gone. */
static void writer_release(struct kymo_writer *writer)
{
	ky_vec_foreach(&writer->events, event)
		ky_vec_fini(&(*event)->steps);
	ky_vec_fini(&writer->events);
	ky_vec_fini(&writer->streams);
	ky_vec_fini(&writer->outputs);
	ky_trace_class_free(writer->trace);
	pthread_mutex_destroy(&writer->lock);
	free(writer);
}

int kymo_writer_close(struct kymo_writer *writer, struct kymo_error *err)
{
	int ret = KYMO_OK, here;

	if (!writer)
		return KYMO_OK;
	ky_vec_foreach(&writer->outputs, output) {
		here = ky_output_close(*output, ret < 0 ? NULL : err);
		if (ret == KYMO_OK)
			ret = here;
	}
	/* What could not be opened, or not be written, is not whole. */
	if (writer->packets && writer->options.atomic && (ret < 0 || writer->code != KYMO_OK)) {
		ky_store_discard(writer->packets);
	} else if (writer->packets) {
		here = ky_store_close(writer->packets, ret < 0 ? NULL : err);
		if (ret == KYMO_OK)
			ret = here;
	}
	writer_release(writer);
	return ret;
}

void kymo_writer_abort(struct kymo_writer *writer)
{
	if (!writer)
		return;
	ky_vec_foreach(&writer->outputs, output)
		ky_output_free(*output);
	if (writer->packets)
		ky_store_discard(writer->packets);
	writer_release(writer);
}
