/* SPDX-License-Identifier: MIT */
/* The state history: writing the file. */
#include "analysis/history/history-writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/utf8.h"

#define WRITE_BYTES ((size_t)1 << 20)

/* ---- the file ------------------------------------------------------------------------ */

static int history_writer_fail(struct ky_history_writer *writer, int errnum)
{
	if (!writer->error.code)
		ky_error_errno(&writer->error, errnum, "cannot write the state history");
	return writer->error.code;
}

static int history_writer_write_at(struct ky_history_writer *writer, const void *data, size_t len,
				   uint64_t offset)
{
	const char *at = data;

	while (len) {
		ssize_t n = pwrite(writer->fd, at, len, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return history_writer_fail(writer, n < 0 ? errno : EIO);
		at += n;
		offset += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

static int history_writer_flush(struct ky_history_writer *writer)
{
	int status;

	if (ky_strbuf_failed(&writer->out))
		return KYMO_E_MEMORY;
	status =
		history_writer_write_at(writer, writer->out.data, writer->out.len, writer->written);
	writer->written += writer->out.len;
	ky_strbuf_clear(&writer->out);
	return status;
}

/* A record with the payload in ->scratch. *@at: its offset. */
static int put_record(struct ky_history_writer *writer, enum ky_record_kind kind, uint32_t row,
		      uint32_t level, uint64_t *at)
{
	struct ky_record_head head = {
		.kind = kind, .bytes = (uint32_t)writer->scratch.len, .row = row, .level = level};

	if (ky_strbuf_failed(&writer->scratch))
		return KYMO_E_MEMORY;
	if (writer->scratch.len > UINT32_MAX)
		return KYMO_E_LIMIT;
	*at = writer->written + writer->out.len;
	head.checksum = ky_record_checksum(&head, *at, ky_strbuf_text(&writer->scratch));
	ky_strbuf_add(&writer->out, (const char *)&head, sizeof(head));
	ky_strbuf_add(&writer->out, ky_strbuf_text(&writer->scratch), writer->scratch.len);
	ky_strbuf_clear(&writer->scratch);
	return writer->out.len >= WRITE_BYTES ? history_writer_flush(writer) : 0;
}

int ky_history_writer_init(struct ky_history_writer *writer, int fd,
			   const struct ky_history_identity *identity)
{
	struct ky_history_head head = {.magic = KY_HISTORY_MAGIC,
				       .version = KY_HISTORY_VERSION,
				       .bytes = sizeof(head),
				       .identity = *identity};
	uint8_t begin[KY_HISTORY_RECORDS_AT] = {0};

	*writer = (struct ky_history_writer){.fd = fd, .written = KY_HISTORY_RECORDS_AT};
	ky_arena_init(&writer->arena);
	ky_names_init(&writer->numbers);
	if (ky_vec_push(&writer->names, "") < 0)
		return KYMO_E_MEMORY;
	head.checksum = ky_history_checksum(0, &head, offsetof(struct ky_history_head, checksum));
	memcpy(begin, &head, sizeof(head));
	return history_writer_write_at(writer, begin, sizeof(begin), 0);
}

static void free_open_row(struct ky_open_row *row)
{
	free(row->durations);
	free(row->codes);
	free(row->states);
	free(row->slots);
	for (uint32_t i = 0; i < KY_LEVELS; i++)
		free(row->levels[i]);
}

void ky_history_writer_fini(struct ky_history_writer *writer)
{
	ky_vec_foreach(&writer->rows, it)
		free_open_row(*it);
	ky_vec_fini(&writer->rows);
	ky_vec_fini(&writer->names);
	ky_vec_fini(&writer->objects);
	ky_vec_fini(&writer->unnamed);
	ky_vec_fini(&writer->states);
	ky_names_fini(&writer->numbers);
	ky_strbuf_fini(&writer->out);
	ky_strbuf_fini(&writer->scratch);
	ky_arena_fini(&writer->arena);
}

/* ---- rows and names ------------------------------------------------------------------ */

int ky_open_row_name(struct ky_history_writer *writer, struct ky_open_row *row, const char *name)
{
	size_t len = name ? strnlen(name, KY_ROW_NAME_BYTES) : 0;

	if (row->name && strlen(row->name) == len && memcmp(row->name, name ? name : "", len) == 0)
		return 0;
	row->name = ky_arena_strndup(&writer->arena, name ? name : "", len);
	row->is_dirty = true;
	return row->name ? 0 : KYMO_E_MEMORY;
}

struct ky_open_row *ky_history_writer_row(struct ky_history_writer *writer, enum ky_row_kind kind,
					  uint32_t parent, int64_t number, const char *name)
{
	struct ky_open_row *row = NULL;

	if (writer->rows.len < KY_ROWS_MAX)
		row = ky_arena_new(&writer->arena, struct ky_open_row);
	if (!row)
		return NULL;
	row->kind = kind;
	row->id = (uint32_t)writer->rows.len;
	row->parent = parent;
	row->number = number;
	row->is_dirty = true;
	if (ky_open_row_name(writer, row, name) < 0 || ky_vec_push(&writer->rows, row) < 0)
		return NULL;
	return row;
}

uint64_t ky_history_writer_name(struct ky_history_writer *writer, const char *name)
{
	uintptr_t known;
	char *copy;

	if (!*name)
		return 0;
	known = (uintptr_t)ky_names_get(&writer->numbers, name);
	if (known)
		return known;
	copy = ky_arena_strdup(&writer->arena, name);
	known = writer->names.len;
	if (!copy || ky_vec_push(&writer->names, copy) < 0 ||
	    ky_names_set(&writer->numbers, copy, (void *)known) < 0)
		return UINT64_MAX;
	return known;
}

uint32_t ky_history_writer_object(struct ky_history_writer *writer,
				  const struct ky_unnamed_object *object)
{
	struct ky_unnamed_object copy = *object;
	uint8_t *id = ky_arena_alloc(&writer->arena, object->build_id_bytes + 1);

	copy.path = ky_arena_strdup(&writer->arena, object->path);
	if (!copy.path || !id)
		return UINT32_MAX;
	memcpy(id, object->build_id, object->build_id_bytes);
	copy.build_id = id;
	if (ky_vec_push(&writer->objects, copy) < 0)
		return UINT32_MAX;
	return (uint32_t)writer->objects.len - 1;
}

uint64_t ky_history_writer_unnamed(struct ky_history_writer *writer, const char *text,
				   uint32_t object, uint64_t address)
{
	const struct ky_unnamed one = {
		.name = writer->names.len, .address = address, .object = object};
	char *copy = ky_arena_strdup(&writer->arena, text);

	/* Not in ->numbers: another file may have the same name, and another function at this address. */
	if (!copy || ky_vec_push(&writer->names, copy) < 0 ||
	    ky_vec_push(&writer->unnamed, one) < 0)
		return UINT64_MAX;
	return one.name;
}

/* ---- leaves and nodes ---------------------------------------------------------------- */

static int push_entry(struct ky_history_writer *writer, struct ky_open_row *row, uint32_t level,
		      const struct ky_entry *entry);

/* Node @level is full. */
static int close_node(struct ky_history_writer *writer, struct ky_open_row *row, uint32_t level)
{
	struct ky_open_node *node = row->levels[level];
	struct ky_entry entry = {.begin_ns = node->entries[0].begin_ns,
				 .end_ns = node->entries[node->n - 1].end_ns};
	int status;

	ky_open_node_entry(row, node, &entry);
	ky_entries_put(&writer->scratch, node->entries, node->n);
	node->n = 0;
	status = put_record(writer, KY_RECORD_NODE, row->id, level + 1, &entry.offset);
	return status < 0 ? status : push_entry(writer, row, level + 1, &entry);
}

static int push_entry(struct ky_history_writer *writer, struct ky_open_row *row, uint32_t level,
		      const struct ky_entry *entry)
{
	struct ky_open_node *node;

	if (level >= KY_LEVELS)
		return KYMO_E_LIMIT;
	if (!row->levels[level])
		row->levels[level] = calloc(1, sizeof(*node));
	node = row->levels[level];
	if (!node)
		return KYMO_E_MEMORY;
	node->entries[node->n++] = *entry;
	return node->n == KY_NODE_ENTRIES ? close_node(writer, row, level) : 0;
}

static int close_leaf(struct ky_history_writer *writer, struct ky_open_row *row, int64_t end_ns)
{
	struct ky_entry entry = {.begin_ns = row->leaf_begin_ns, .end_ns = end_ns};
	int status;

	ky_open_leaf_entry(row, &entry);
	ky_leaf_put(&writer->scratch, row->leaf_begin_ns, row->n, row->durations, row->codes,
		    row->n_states, row->states);
	ky_open_leaf_clear(row);
	status = put_record(writer, KY_RECORD_LEAF, row->id, 0, &entry.offset);
	return status < 0 ? status : push_entry(writer, row, 0, &entry);
}

/* ---- intervals ----------------------------------------------------------------------- */

/* The leaf gets an interval, which ends at @end_ns. One more fits in afterwards. */
static int history_writer_push(struct ky_history_writer *writer, struct ky_open_row *row,
			       int64_t begin_ns, int64_t end_ns, uint64_t state)
{
	int full = ky_open_leaf_push(row, begin_ns, end_ns, state);

	if (full < 0)
		return full;
	writer->n_intervals++;
	return full ? close_leaf(writer, row, end_ns) : 0;
}

/* The last interval does not grow any more. */
static int history_writer_settle(struct ky_history_writer *writer, struct ky_open_row *row)
{
	if (!row->has_last)
		return 0;
	row->has_last = false;
	return history_writer_push(writer, row, row->last_begin_ns, row->last_end_ns,
				   row->last_state);
}

int ky_open_row_add(struct ky_history_writer *writer, struct ky_open_row *row, int64_t begin_ns,
		    int64_t end_ns, uint64_t state)
{
	bool any = row->has_last;
	int64_t last_ns = row->last_end_ns;
	int status = 0;

	if (row->has_last && begin_ns < last_ns)
		begin_ns = last_ns;
	if (begin_ns > end_ns || (begin_ns == end_ns && row->kind != KY_ROW_STREAM))
		return 0;
	row->is_dirty = true;
	if (row->has_last && begin_ns == last_ns && state == row->last_state &&
	    row->kind != KY_ROW_STREAM) {
		row->last_end_ns = end_ns;
		return 0;
	}
	status = history_writer_settle(writer, row);
	if (status >= 0 && any && begin_ns > last_ns)
		status = history_writer_push(writer, row, last_ns, begin_ns, KY_STATE_NONE);
	row->has_last = true;
	row->last_begin_ns = begin_ns;
	row->last_end_ns = end_ns;
	row->last_state = state;
	return status;
}

/* ---- what readers see ---------------------------------------------------------------- */

static int history_writer_put_row(struct ky_history_writer *writer, struct ky_open_row *row)
{
	struct ky_strbuf *out = &writer->scratch;
	size_t len = strlen(row->name);
	uint32_t n_levels = 0;
	int status;

	while (n_levels < KY_LEVELS && row->levels[n_levels])
		n_levels++;
	ky_put_varint(out, row->kind);
	ky_put_varint(out, row->parent == KY_HISTORY_NO_ROW ? 0 : (uint64_t)row->parent + 1);
	ky_put_signed(out, row->number);
	ky_put_signed(out, row->origin);
	ky_put_varint(out, len);
	ky_strbuf_add(out, row->name, len);
	ky_put_varint(out, n_levels);
	/* In the order of time. */
	for (uint32_t i = n_levels; i-- > 0;)
		ky_entries_put(out, row->levels[i]->entries, row->levels[i]->n);
	status = ky_open_leaf_put(row, out);
	if (status >= 0)
		status = put_record(writer, KY_RECORD_ROW, row->id, 0, &row->record_at);
	row->is_dirty = false;
	return status;
}

static void put_unnamed(struct ky_history_writer *writer)
{
	struct ky_strbuf *out = &writer->scratch;

	ky_put_varint(out, writer->objects.len);
	ky_vec_foreach(&writer->objects, object) {
		ky_put_varint(out, strlen(object->path));
		ky_strbuf_adds(out, object->path);
		ky_put_varint(out, object->build_id_bytes);
		ky_strbuf_add(out, (const char *)object->build_id, object->build_id_bytes);
	}
	ky_put_varint(out, writer->unnamed.len);
	ky_vec_foreach(&writer->unnamed, one) {
		ky_put_varint(out, one->name);
		ky_put_varint(out, one->object);
		ky_put_varint(out, one->address);
	}
}

static int put_names(struct ky_history_writer *writer)
{
	if (writer->names_at && writer->n_names_written == writer->names.len)
		return 0;
	ky_put_varint(&writer->scratch, writer->names.len);
	ky_vec_foreach(&writer->names, name) {
		ky_put_varint(&writer->scratch, strlen(*name));
		ky_strbuf_adds(&writer->scratch, *name);
	}
	put_unnamed(writer);
	writer->n_names_written = writer->names.len;
	return put_record(writer, KY_RECORD_NAMES, 0, 0, &writer->names_at);
}

static int put_root(struct ky_history_writer *writer, const struct ky_history_facts *facts,
		    uint64_t *at)
{
	struct ky_strbuf *out = &writer->scratch;

	ky_put_signed(out, facts->begin_ns);
	ky_put_signed(out, facts->end_ns);
	ky_put_varint(out, facts->n_events);
	ky_put_varint(out, writer->names_at);
	ky_put_varint(out, writer->rows.len);
	ky_vec_foreach(&writer->rows, row)
		ky_put_varint(out, (*row)->record_at);
	ky_put_varint(out, writer->states.len);
	ky_vec_foreach(&writer->states, state) {
		ky_put_signed(out, state->ns);
		ky_put_varint(out, state->offset);
	}
	return put_record(writer, KY_RECORD_ROOT, 0, 0, at);
}

int ky_history_writer_state(struct ky_history_writer *writer, int64_t ns)
{
	struct ky_saved_state state = {.ns = ns};
	int status = put_record(writer, KY_RECORD_STATE, 0, 0, &state.offset);

	return status < 0 ? status : ky_vec_push(&writer->states, state);
}

int ky_history_writer_publish(struct ky_history_writer *writer,
			      const struct ky_history_facts *facts, bool complete)
{
	struct ky_history_slot slot = {.generation = ++writer->generation, .is_complete = complete};
	uint64_t begun = writer->written + writer->out.len;
	int status = put_names(writer);

	ky_vec_foreach(&writer->rows, row) {
		if (status >= 0 && (*row)->is_dirty)
			status = history_writer_put_row(writer, *row);
	}
	if (status >= 0)
		status = put_root(writer, facts, &slot.root_bytes);
	if (status >= 0)
		status = history_writer_flush(writer);
	if (status < 0)
		return status;
	slot.end_bytes = writer->written;
	writer->published_at = writer->written;
	writer->published_bytes = writer->written - begun;
	slot.checksum = ky_history_checksum(0, &slot, offsetof(struct ky_history_slot, checksum));
	return history_writer_write_at(writer, &slot, sizeof(slot),
				       KY_HISTORY_SLOT_AT(slot.generation & 1));
}
