/* SPDX-License-Identifier: MIT */
#include "record/rings/user-registry.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define ENTRY_BYTES ((uint32_t)sizeof(struct ky_shared_entry))

struct out {
	uint8_t *data; /* KY_BLOB_BYTES */
	size_t bytes;
};

/* Words, each read once. */
static void user_registry_copy_words(void *to, const void *from, size_t bytes)
{
	for (size_t i = 0; i < bytes / 8; i++)
		((uint64_t *)to)[i] = __atomic_load_n((const uint64_t *)from + i, __ATOMIC_RELAXED);
}

/* The length of the record of the entry at @at; 0: no entry; KYMO_E_FORMAT: the length is impossible. */
static int64_t entry_at(const struct ky_blob *shared, uint64_t at)
{
	const struct ky_shared_entry *entry = (const void *)((const uint8_t *)shared + at);
	uint64_t claim, bytes;

	if (at > KY_BLOB_BYTES - ENTRY_BYTES)
		return 0;
	claim = __atomic_load_n(&entry->claim, __ATOMIC_ACQUIRE);
	bytes = claim >> 32;
	if (claim && (bytes % 8 || bytes < sizeof(struct ky_event_record) ||
		      bytes > KY_RECORD_BYTES_MAX || bytes > KY_BLOB_BYTES - ENTRY_BYTES - at))
		return KYMO_E_FORMAT;
	return (int64_t)bytes;
}

/*
 * The context fields have an id, which no event uses. babeltrace2 --debug-info (2.0.4) wants all ids up to the last one:
 * so the id gets an event class without fields.
 */
static void make_unused(struct ky_event_record *record)
{
	static const char texts[] = "kymo\0no_event";
	char *to = (char *)&record->fields[0];

	if (record->bytes < sizeof(*record) + sizeof(texts))
		return;
	memset(to, 0, record->bytes - sizeof(*record));
	memcpy(to, texts, sizeof(texts));
	record->kind = KY_EVENT_PLAIN;
	record->n_fields = 0;
	record->log_level = 14;
	record->provider = sizeof(*record);
	record->name = sizeof(*record) + 5;
	record->file = sizeof(*record) + 4;
}

static void user_registry_add(struct out *out, const struct ky_blob *shared, uint64_t at,
			      uint32_t bytes, uint32_t id, bool is_context)
{
	const struct ky_shared_entry *entry = (const void *)((const uint8_t *)shared + at);
	struct ky_event_record *record = (void *)(out->data + out->bytes);

	/* Partner: the program's release. */
	if (!__atomic_load_n(&entry->ready, __ATOMIC_ACQUIRE))
		return;
	user_registry_copy_words(record, entry + 1, bytes);
	if (record->bytes == bytes && record->kind == KY_EVENT_CONTEXT && !is_context)
		make_unused(record);
	if (record->bytes != bytes || (record->kind == KY_EVENT_CONTEXT) != is_context)
		return;
	record->number = id;
	out->bytes += bytes;
}

/* The entry with the context fields comes first. Entries of its kind have an id, too. */
static int add_entries(struct out *out, const struct ky_blob *shared)
{
	uint64_t layout = __atomic_load_n(&shared->layout, __ATOMIC_ACQUIRE);
	int64_t bytes;

	if (layout < sizeof(*shared) || layout % 8)
		return KYMO_E_FORMAT;
	bytes = entry_at(shared, layout);
	if (bytes <= 0)
		return KYMO_E_FORMAT;
	user_registry_add(out, shared, layout, (uint32_t)bytes, 0, true);
	if (out->bytes == sizeof(*shared))
		return KYMO_E_FORMAT;
	for (uint64_t at = sizeof(*shared), id = 0; id < KY_EVENTS_MAX; id++) {
		bytes = entry_at(shared, at);
		if (bytes <= 0)
			return (int)bytes;
		/* A layout between the entries could fill the copy. */
		if ((uint64_t)bytes > KY_BLOB_BYTES - out->bytes)
			return KYMO_E_FORMAT;
		user_registry_add(out, shared, at, (uint32_t)bytes, (uint32_t)id, false);
		at += ENTRY_BYTES + (uint64_t)bytes;
	}
	return KYMO_OK;
}

int ky_user_registry_copy(const struct ky_blob *shared, uint64_t room, uint64_t **copy,
			  size_t *bytes, struct kymo_error *err)
{
	struct out out = {calloc(1, KY_BLOB_BYTES), sizeof(*shared)};
	struct ky_blob *head = (struct ky_blob *)out.data;
	void *shorter;

	*copy = NULL;
	*bytes = 0;
	if (!out.data)
		return ky_error_nomem(err);
	if (room < KY_BLOB_BYTES) {
		free(out.data);
		return ky_error_set(err, KYMO_E_FORMAT, "not a ring of libkymo-trace");
	}
	user_registry_copy_words(head, shared, sizeof(*head));
	if (add_entries(&out, shared) < 0) {
		free(out.data);
		return ky_error_set(err, KYMO_E_FORMAT,
				    "the ring's description of events is malformed");
	}
	head->bytes = out.bytes;
	shorter = realloc(out.data, out.bytes);
	*copy = shorter ? shorter : (void *)out.data;
	*bytes = out.bytes;
	return KYMO_OK;
}
