/* SPDX-License-Identifier: MIT */
/* kymo/model.h: the packets of data streams, and their times. */
#include <stdlib.h>

#include "api/api.h"
#include "base/error.h"
#include "flow/graph/range.h"

struct kymo_packets {
	size_t n;
	struct kymo_packet packets[];
};

bool kymo_stream_range(const struct kymo_stream *stream, int64_t *begin_ns, int64_t *end_ns)
{
	int64_t begin = INT64_MIN, end = INT64_MIN;
	bool known = stream && stream_in(stream)->file.data &&
		     ky_stream_range(stream_in(stream), &begin, &end) == KYMO_OK && begin <= end;

	if (begin_ns)
		*begin_ns = known ? begin : INT64_MIN;
	if (end_ns)
		*end_ns = known ? end : INT64_MIN;
	return known;
}

static struct kymo_packet packet_out(const struct ky_packet_entry *entry)
{
	return (struct kymo_packet){
		.offset_bytes = entry->offset_bytes,
		.packet_bits = entry->packet_bits,
		.content_bits = entry->content_bits,
		.begin_cycles = entry->has_times ? entry->begin_cycles : KYMO_UNKNOWN,
		.end_cycles = entry->has_times ? entry->end_cycles : KYMO_UNKNOWN,
		.begin_ns = entry->has_times ? entry->begin_ns : INT64_MIN,
		.end_ns = entry->has_times ? entry->end_ns : INT64_MIN,
		.sequence = entry->has_sequence ? entry->sequence : KYMO_UNKNOWN,
		.discarded = entry->has_discarded ? entry->discarded : KYMO_UNKNOWN,
	};
}

int kymo_packets_open(const struct kymo_stream *stream, struct kymo_packets **packets,
		      struct kymo_error *err)
{
	struct ky_packet_list list = KY_VEC_INIT;
	int ret = KYMO_OK;

	if (packets)
		*packets = NULL;
	if (!stream || !packets)
		return ky_error_set(err, KYMO_E_INVALID,
				    "kymo_packets_open() wants a data stream and a place for its "
				    "packets");
	if (stream_in(stream)->file.data)
		ret = ky_stream_packets(stream_in(stream), &list, err);
	if (ret == KYMO_OK || ret == KYMO_E_FORMAT) {
		*packets = malloc(sizeof(**packets) + list.len * sizeof((*packets)->packets[0]));
		if (!*packets)
			ret = ky_error_nomem(err);
	}
	if (*packets) {
		(*packets)->n = list.len;
		for (size_t i = 0; i < list.len; i++)
			(*packets)->packets[i] = packet_out(&list.data[i]);
	}
	ky_vec_fini(&list);
	return ret;
}

void kymo_packets_free(struct kymo_packets *packets)
{
	free(packets);
}

size_t kymo_packets_n(const struct kymo_packets *packets)
{
	return packets ? packets->n : 0;
}

const struct kymo_packet *kymo_packets_get(const struct kymo_packets *packets, size_t i)
{
	return i < kymo_packets_n(packets) ? &packets->packets[i] : NULL;
}
