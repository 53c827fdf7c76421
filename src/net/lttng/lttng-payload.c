/* SPDX-License-Identifier: MIT */
/* Answers to a consumer daemon, and what payloads of its commands have. */
#include <endian.h>
#include <string.h>

#include "base/error.h"
#include "net/lttng/lttng-control-internal.h"

int ky_lttng_answer_two(struct ky_lttng_control *control, const void *first, size_t n_first,
			const void *then, size_t n_then, struct kymo_error *err)
{
	const struct iovec parts[] = {{(void *)first, n_first}, {(void *)then, n_then}};
	ssize_t sent = ky_link_send(control->base.link, parts, n_then ? 2 : 1);

	if (sent == (ssize_t)(n_first + n_then))
		return KYMO_OK;
	return ky_error_set(err, KYMO_E_IO, "the daemon does not take its answer");
}

int ky_lttng_answer(struct ky_lttng_control *control, const void *reply, size_t bytes,
		    struct kymo_error *err)
{
	return ky_lttng_answer_two(control, reply, bytes, NULL, 0, err);
}

int ky_lttng_answer_code(struct ky_lttng_control *control, uint32_t code, struct kymo_error *err)
{
	const uint32_t reply = htobe32(code);

	return ky_lttng_answer(control, &reply, sizeof(reply), err);
}

int ky_lttng_answer_status(struct ky_lttng_control *control, int ret, struct kymo_error *err)
{
	if (ret < 0) {
		(void)ky_lttng_answer_code(control, KY_LTTNG_ERROR, NULL);
		return ret;
	}
	return ky_lttng_answer_code(control, KY_LTTNG_OK, err);
}

int ky_lttng_too_short(struct kymo_error *err)
{
	return ky_error_set(err, KYMO_E_FORMAT, "a command has the wrong size");
}

int ky_lttng_take_fixed(const struct ky_lttng_control *control, void *to, size_t bytes,
			const uint8_t **rest, struct kymo_error *err)
{
	size_t part = control->n_payload < bytes ? control->n_payload : bytes;

	memset(to, 0, bytes);
	memcpy(to, control->payload, part);
	if (rest)
		*rest = control->payload + part;
	return part < bytes ? ky_lttng_too_short(err) : KYMO_OK;
}

int ky_lttng_take_text(const struct ky_lttng_control *control, const uint8_t **at, uint32_t bytes,
		       const char **text, struct kymo_error *err)
{
	size_t left = control->n_payload - (size_t)(*at - control->payload);

	if (bytes > left || (bytes && (*at)[bytes - 1]))
		return ky_error_set(err, KYMO_E_FORMAT, "a text in a command has no end");
	*text = bytes ? (const char *)*at : "";
	*at += bytes;
	return KYMO_OK;
}

int ky_lttng_take_stream(const struct ky_lttng_control *control,
			 struct ky_lttng_stream_number *number, struct ky_lttng_stream **stream,
			 struct kymo_error *err)
{
	int ret = ky_lttng_take_fixed(control, number, sizeof(*number), NULL, err);

	if (ret < 0)
		return ret;
	number->number = be64toh(number->number);
	return ky_lttng_consumer_find(control->consumer, be64toh(number->stream), stream, err);
}
