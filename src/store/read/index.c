/* SPDX-License-Identifier: MIT */
#include "store/read/index.h"

#include "base/bits.h"
#include "base/error.h"

struct index_header {
	uint32_t minor;
	uint32_t entry_bytes;
	size_t n_entries;
	/* What packets do not tell an index cannot know: it has zeros then. */
	bool has_discarded, has_sequence;
};

static int index_read_header(const uint8_t *data, size_t size_bytes, struct index_header *header,
			     struct kymo_error *err)
{
	if (size_bytes < KY_INDEX_HEADER_BYTES)
		return ky_error_set(err, KYMO_E_FORMAT, "it is shorter than its header");
	if (ky_load32(data, true) != KY_INDEX_MAGIC)
		return ky_error_set(err, KYMO_E_FORMAT, "its magic number is 0x%x",
				    ky_load32(data, true));
	header->minor = ky_load32(data + 8, true);
	header->entry_bytes = ky_load32(data + 12, true);
	if (ky_load32(data + 4, true) != 1)
		return ky_error_set(err, KYMO_E_FORMAT, "its version is %u.%u",
				    ky_load32(data + 4, true), header->minor);
	if (header->entry_bytes < (header->minor ? KY_INDEX_ENTRY_1_1 : KY_INDEX_ENTRY_1_0))
		return ky_error_set(err, KYMO_E_FORMAT, "its entries are %u bytes long",
				    header->entry_bytes);
	size_bytes -= KY_INDEX_HEADER_BYTES;
	if (size_bytes % header->entry_bytes)
		return ky_error_set(err, KYMO_E_FORMAT, "its last entry is cut");
	header->n_entries = size_bytes / header->entry_bytes;
	return KYMO_OK;
}

static void index_note_fields(const struct ky_stream_class *cls, struct index_header *header)
{
	const struct ky_field_class *context = cls ? cls->packet_context : NULL;

	header->has_discarded = header->has_sequence = !cls;
	for (size_t i = 0; context && i < context->st.n_members; i++) {
		header->has_discarded |= ky_has_role(context->st.members[i].cls, KY_ROLE_DISCARDED);
		header->has_sequence |= ky_has_role(context->st.members[i].cls, KY_ROLE_SEQUENCE);
	}
}

static void index_read_entry(const uint8_t *at, const struct index_header *header,
			     const struct ky_clock_class *clock, struct ky_packet_entry *entry)
{
	*entry = (struct ky_packet_entry){
		.offset_bytes = ky_load64(at, true),
		.packet_bits = ky_load64(at + 8, true),
		.content_bits = ky_load64(at + 16, true),
		.begin_cycles = ky_load64(at + 24, true),
		.end_cycles = ky_load64(at + 32, true),
		.discarded = ky_load64(at + 40, true),
		.begin_ns = INT64_MIN,
		.end_ns = INT64_MIN,
		.has_discarded = header->has_discarded,
	};
	if (header->minor) {
		entry->sequence = ky_load64(at + 64, true);
		entry->has_sequence = header->has_sequence;
	}
	if (clock) {
		entry->has_times = true;
		entry->begin_ns = ky_clock_to_ns(clock, entry->begin_cycles);
		entry->end_ns = ky_clock_to_ns(clock, entry->end_cycles);
	}
}

/* @expected: where the packet must begin, in a file of @size_bytes. */
static int check_entry(const struct ky_packet_entry *entry, size_t number, uint64_t expected,
		       uint64_t size_bytes, struct kymo_error *err)
{
	if (entry->offset_bytes != expected)
		return ky_error_set(err, KYMO_E_FORMAT,
				    "packet %zu begins at byte %llu instead of %llu", number,
				    (unsigned long long)entry->offset_bytes,
				    (unsigned long long)expected);
	if (!entry->packet_bits || entry->packet_bits % 8 ||
	    entry->packet_bits / 8 > size_bytes - expected)
		return ky_error_set(err, KYMO_E_FORMAT, "packet %zu does not fit into the file",
				    number);
	if (entry->content_bits > entry->packet_bits)
		return ky_error_set(err, KYMO_E_FORMAT,
				    "the content of packet %zu is larger than the packet", number);
	return KYMO_OK;
}

int ky_index_read(const uint8_t *data, size_t size_bytes, const struct ky_stream *stream,
		  struct ky_packet_list *packets, struct kymo_error *err)
{
	uint64_t expected = 0, file_bytes = stream->file.size_bytes;
	struct index_header header = {0};
	int ret = index_read_header(data, size_bytes, &header, err);

	ky_vec_clear(packets);
	if (ret < 0)
		return ret;
	index_note_fields(stream->cls, &header);
	if (ky_vec_reserve(packets, header.n_entries) < 0)
		return ky_error_nomem(err);
	for (size_t i = 0; i < header.n_entries; i++) {
		const uint8_t *at = data + KY_INDEX_HEADER_BYTES + i * header.entry_bytes;
		struct ky_packet_entry *entry = &packets->data[i];

		index_read_entry(at, &header, stream->cls ? stream->cls->clock : NULL, entry);
		ret = check_entry(entry, i, expected, file_bytes, err);
		if (ret < 0)
			return ret;
		if (stream->cls && stream->cls->has_id &&
		    ky_load64(at + 48, true) != stream->cls->id)
			return ky_error_set(err, KYMO_E_FORMAT,
					    "packet %zu is of another stream class", i);
		expected += entry->packet_bits / 8;
		packets->len++;
	}
	if (expected != file_bytes)
		return ky_error_set(err, KYMO_E_FORMAT,
				    "it covers %llu bytes of a file of %llu bytes",
				    (unsigned long long)expected, (unsigned long long)file_bytes);
	return KYMO_OK;
}
