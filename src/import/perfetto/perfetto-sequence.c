/* SPDX-License-Identifier: MIT */
/* What packets of Perfetto say to later packets of their sequence. */
#include "base/error.h"
#include "import/perfetto/perfetto-trace.h"

/* A recording has a sequence for each thread that writes. */
#define SEQUENCES_MAX 65536u
#define DEFAULT_CLOCK 58

struct ky_perfetto_sequence *ky_perfetto_sequence(struct ky_perfetto *perfetto, uint64_t id)
{
	struct ky_perfetto_sequence *sequence = ky_map_get(&perfetto->sequences, id + 1);

	if (sequence)
		return sequence;
	if (perfetto->all_sequences.len == SEQUENCES_MAX) {
		ky_error_set(perfetto->err, KYMO_E_LIMIT,
			     "there are more than %u sequences of packets", SEQUENCES_MAX);
		return NULL;
	}
	sequence = ky_arena_new(&perfetto->arena, struct ky_perfetto_sequence);
	if (!sequence || ky_vec_push(&perfetto->all_sequences, sequence) < 0 ||
	    ky_map_set(&perfetto->sequences, id + 1, sequence) < 0) {
		ky_error_nomem(perfetto->err);
		return NULL;
	}
	return sequence;
}

void ky_perfetto_clear(struct ky_perfetto_sequence *sequence)
{
	for (int i = 0; i < KY_PERFETTO_TABLES; i++)
		ky_map_fini(&sequence->names[i]);
	sequence->clock = 0;
	sequence->track = 0;
}

static int perfetto_sequence_name(struct ky_perfetto *perfetto, struct ky_map *names,
				  const struct ky_pb_field *message)
{
	struct ky_pb_reader reader = ky_pb_reader(message->data, message->len);
	struct ky_pb_field field, name = {0};
	uint64_t iid = 0;
	const char *text;

	while (ky_pb_next(&reader, &field)) {
		if (field.number == 1 && !field.has_bytes)
			iid = field.value;
		else if (field.number == 2 && field.has_bytes)
			name = field;
	}
	text = name.data ? ky_perfetto_text(perfetto, &name) : "";
	if (!text || ky_map_set(names, iid, (void *)(uintptr_t)text) < 0)
		return ky_error_nomem(perfetto->err);
	return KYMO_OK;
}

int ky_perfetto_intern(struct ky_perfetto *perfetto, struct ky_perfetto_sequence *sequence,
		       const struct ky_pb_field *interned)
{
	struct ky_pb_reader reader = ky_pb_reader(interned->data, interned->len);
	struct ky_pb_field field;
	int ret = KYMO_OK;

	while (ret == KYMO_OK && ky_pb_next(&reader, &field)) {
		int table = field.number == 1	 ? KY_PERFETTO_CATEGORIES
			    : field.number == 2	 ? KY_PERFETTO_EVENTS
			    : field.number == 3	 ? KY_PERFETTO_ANNOTATIONS
			    : field.number == 29 ? KY_PERFETTO_TEXTS
						 : KY_PERFETTO_TABLES;

		if (table < KY_PERFETTO_TABLES && field.has_bytes)
			ret = perfetto_sequence_name(perfetto, &sequence->names[table], &field);
	}
	return ret;
}

void ky_perfetto_defaults(struct ky_perfetto_sequence *sequence, const struct ky_pb_field *defaults)
{
	struct ky_pb_reader reader = ky_pb_reader(defaults->data, defaults->len), event;
	struct ky_pb_field field, inner;

	while (ky_pb_next(&reader, &field)) {
		if (field.number == DEFAULT_CLOCK && !field.has_bytes) {
			sequence->clock = (uint32_t)field.value;
		} else if (field.number == 11 && field.has_bytes) {
			event = ky_pb_reader(field.data, field.len);
			while (ky_pb_next(&event, &inner)) {
				if (inner.number == 11 && !inner.has_bytes)
					sequence->track = inner.value;
			}
		}
	}
}
