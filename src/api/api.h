/* SPDX-License-Identifier: MIT */
/*
 * The public types and what they really are.
 *
 * Opaque public objects ARE the internal ones under another name, so that nothing is copied or
 * looked up on the way. Enumerations have the same values on both sides; that, and the places
 * of what programs see of an event, is asserted in trace.c and reader.c.
 */
#ifndef KY_API_API_H
#define KY_API_API_H

#include <kymo/reader.h>
#include <kymo/model.h>

#include "ctf/decode/decode.h"
#include "store/read/trace.h"

#define KY_API_CAST(name, public_type, internal_type)                                     \
	static inline const struct internal_type *name##_in(const struct public_type *p)  \
	{                                                                                 \
		return (const struct internal_type *)(const void *)p;                     \
	}                                                                                 \
	static inline const struct public_type *name##_out(const struct internal_type *p) \
	{                                                                                 \
		return (const struct public_type *)(const void *)p;                       \
	}

KY_API_CAST(trace, kymo_trace, ky_trace)
KY_API_CAST(stream, kymo_stream, ky_stream)
KY_API_CAST(stream_class, kymo_stream_class, ky_stream_class)
KY_API_CAST(event_class, kymo_event_class, ky_event_class)
KY_API_CAST(field_class, kymo_field_class, ky_field_class)
KY_API_CAST(clock, kymo_clock, ky_clock_class)
KY_API_CAST(event, kymo_event, ky_event)
KY_API_CAST(value, kymo_value, ky_value)

static inline const struct ky_handle *handle_of(const struct kymo_field *field)
{
	return (const struct ky_handle *)(const void *)field->internal;
}

/*
 * @text of any encoding as UTF-8: what kymo_event_get_utf8() says of its buffer and its length.
 */
size_t ky_api_utf8(enum ky_encoding encoding, const char *text, size_t len_bytes, char *buffer,
		   size_t size_bytes);

/* So many words of a bit map are looked at for its flags. */
#define KY_API_LABEL_WORDS 64

/*
 * The labels of a number of class @cls, or a bit map's flags. @labels: room for @max, or NULL.
 * Returns how many there are.
 */
size_t ky_api_labels(const struct ky_field_class *cls, const uint64_t *words, size_t n_words,
		     const char **labels, size_t max);

/*
 * Copy @given, a public options struct whose first member is its size, into @own, the one of
 * this library (@own_bytes), which holds the defaults. What @given lacks keeps its default.
 *
 * KYMO_E_INVALID: its size makes no sense (@min_bytes is that of the first version);
 * KYMO_E_UNSUPPORTED: it is of a later version and uses that.
 */
int ky_api_options(void *own, size_t own_bytes, size_t min_bytes, const void *given,
		   struct kymo_error *err);

#endif
