/* SPDX-License-Identifier: MIT */
/* The state history: the reader's side of the file. Every number in it is checked before its use. */
#include "analysis/history/history-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/error.h"
#include "os/thread-pool.h"

#define AROUND_BYTES ((uint64_t)128 << 10) /* of a record that is not in the cache */
#define FIRST_BYTES  ((uint64_t)2048)	   /* of a record: most records are smaller */

int ky_history_damaged(struct ky_history *history, uint64_t offset, const char *what,
		       struct kymo_error *err)
{
	history->is_damaged = true;
	ky_error_set(err, KYMO_E_FORMAT, "damaged state history: %s", what);
	ky_error_offset(err, offset);
	return KYMO_E_FORMAT;
}

/* ---- records ---------------------------------------------------------------------------------- */

static bool is_inside(const struct ky_history *history, uint64_t offset)
{
	return offset >= KY_HISTORY_RECORDS_AT && offset < history->slot.end_bytes &&
	       history->slot.end_bytes - offset >= sizeof(struct ky_record_head);
}

/*
 * A read at @offset that the kernel's cache can serve. Else the cache gets what is around, too: a picture's records are near each other, and
 * one large read is cheaper than many small ones.
 */
static ssize_t history_file_read_cached(struct ky_history *history, uint64_t offset, void *to,
					size_t len)
{
	struct iovec iov = {to, len};
	ssize_t n = preadv2(history->fd, &iov, 1, (off_t)offset, RWF_NOWAIT);

	if (n < 0 && errno == EAGAIN)
		history->expected.is_missed = history->expected.n_rows != 0;
	if (n < 0 && errno == EAGAIN && !history->expected.is_brought)
		(void)posix_fadvise(history->fd, (off_t)(offset & ~(AROUND_BYTES - 1)),
				    (off_t)AROUND_BYTES, POSIX_FADV_WILLNEED);
	return n;
}

/* ->buffer gets @len bytes, which the file has at @offset. */
static int history_file_read(struct ky_history *history, uint64_t offset, uint64_t len,
			     struct kymo_error *err)
{
	uint64_t done = 0;

	if (ky_vec_reserve(&history->buffer, len) < 0)
		return ky_error_nomem(err);
	while (done < len) {
		ssize_t n = history_file_read_cached(
			history, offset + done, history->buffer.data + done, (size_t)(len - done));

		if (n < 0)
			n = pread(history->fd, history->buffer.data + done, (size_t)(len - done),
				  (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return ky_error_errno(err, errno, "cannot read the state history");
		if (n == 0)
			return ky_history_damaged(history, offset, "the file is too short", err);
		done += (uint64_t)n;
	}
	return 0;
}

int ky_history_record(struct ky_history *history, uint64_t offset, enum ky_record_kind kind,
		      uint32_t row, uint32_t level, struct ky_bytes *bytes, struct kymo_error *err)
{
	struct ky_record_head head;
	uint64_t first;
	int status;

	if (!is_inside(history, offset))
		return ky_history_damaged(history, offset, "a place outside of the file", err);
	first = history->slot.end_bytes - offset;
	first = first < FIRST_BYTES ? first : FIRST_BYTES;
	status = history_file_read(history, offset, first, err);
	if (status < 0)
		return status;
	memcpy(&head, history->buffer.data, sizeof(head));
	if (head.bytes > history->slot.end_bytes - offset - sizeof(head) || head.kind != kind ||
	    head.row != row || head.level != level)
		return ky_history_damaged(history, offset, "another record than expected", err);
	if (sizeof(head) + head.bytes > first)
		status = history_file_read(history, offset, sizeof(head) + head.bytes, err);
	if (status < 0)
		return status;
	*bytes = (struct ky_bytes){.at = history->buffer.data + sizeof(head)};
	bytes->end = bytes->at + head.bytes;
	if (ky_record_checksum(&head, offset, bytes->at) != head.checksum)
		return ky_history_damaged(history, offset, "the checksum does not agree", err);
	return 0;
}

int ky_history_top(struct ky_history *history, uint64_t offset, uint32_t row,
		   const struct ky_wanted *wanted, struct ky_row_top *top, const char **name,
		   size_t *name_len, struct kymo_error *err)
{
	struct ky_bytes bytes;
	uint64_t kind, parent, len, n_levels;
	int64_t ns = 0;
	bool any = false;
	int status = ky_history_record(history, offset, KY_RECORD_ROW, row, 0, &bytes, err);

	if (status < 0)
		return status;
	kind = ky_bytes_varint(&bytes);
	parent = ky_bytes_varint(&bytes);
	top->row.number = ky_bytes_signed(&bytes);
	top->row.origin = ky_bytes_signed(&bytes);
	len = ky_bytes_varint(&bytes);
	if (bytes.bad || kind >= KY_ROW_KINDS || parent > KY_ROWS_MAX || len > KY_ROW_NAME_BYTES ||
	    len > (uint64_t)(bytes.end - bytes.at))
		return ky_history_damaged(history, offset, "a malformed row", err);
	*name = (const char *)bytes.at;
	*name_len = (size_t)len;
	bytes.at += len;
	n_levels = ky_bytes_varint(&bytes);
	if (n_levels > KY_LEVELS)
		return ky_history_damaged(history, offset, "a malformed row", err);
	top->row.id = row;
	top->row.kind = (enum ky_row_kind)kind;
	top->row.parent = parent ? (uint32_t)parent - 1 : KY_HISTORY_NO_ROW;
	top->row.begin_ns = top->row.end_ns = INT64_MIN;
	top->offset = offset;
	top->n_levels = (uint32_t)n_levels;
	for (uint64_t i = n_levels; i-- > 0;) {
		const struct ky_entry *entries = top->levels[i].entries;
		uint32_t n;

		if (!ky_entries_get(&bytes, wanted, top->levels[i].entries, &top->levels[i].n))
			return ky_history_damaged(history, offset, "malformed entries", err);
		n = top->levels[i].n;
		if (n && any && entries[0].begin_ns != ns)
			return ky_history_damaged(history, offset, "entries with gaps", err);
		if (n && !any)
			top->row.begin_ns = entries[0].begin_ns;
		if (n)
			ns = entries[n - 1].end_ns;
		any |= n != 0;
	}
	if (!ky_leaf_get(&bytes, &top->leaf) || bytes.at != bytes.end)
		return ky_history_damaged(history, offset, "malformed intervals", err);
	if (top->leaf.n && any && top->leaf.begin_ns != ns)
		return ky_history_damaged(history, offset, "intervals with gaps", err);
	if (top->leaf.n && !any)
		top->row.begin_ns = top->leaf.begin_ns;
	if (top->leaf.n || any)
		top->row.end_ns = top->leaf.n ? top->leaf.end_ns : ns;
	return 0;
}

/* ---- the head ----------------------------------------------------------------------------------- */

static int history_file_read_head(struct ky_history *history, struct kymo_error *err)
{
	struct ky_history_head *head = &history->head;
	int status = history_file_read(history, 0, KY_HISTORY_RECORDS_AT, err);

	if (status < 0)
		return status;
	memcpy(head, history->buffer.data, sizeof(*head));
	if (head->magic != KY_HISTORY_MAGIC)
		return ky_history_damaged(
			history, 0, "the begin is wrong, or the byte order is another one", err);
	if (head->bytes != sizeof(*head) || head->version != KY_HISTORY_VERSION)
		return ky_error_set(err, KYMO_E_NOT_FOUND, "the state history has another version");
	if (head->checksum !=
	    ky_history_checksum(0, head, offsetof(struct ky_history_head, checksum)))
		return ky_history_damaged(history, 0, "the checksum does not agree", err);
	return 0;
}

/* What the builder has published; ->buffer has the begin of the file. */
static int read_slot(struct ky_history *history, struct kymo_error *err)
{
	struct ky_history_slot best = {0}, slot;

	for (int i = 0; i < 2; i++) {
		memcpy(&slot, history->buffer.data + KY_HISTORY_SLOT_AT(i), sizeof(slot));
		if (slot.checksum ==
			    ky_history_checksum(0, &slot,
						offsetof(struct ky_history_slot, checksum)) &&
		    slot.generation > best.generation && slot.end_bytes <= history->file_bytes)
			best = slot;
	}
	history->slot = best;
	return best.generation
		       ? 0
		       : ky_error_set(err, KYMO_E_AGAIN, "the state history is not complete");
}

/* ---- names and rows ------------------------------------------------------------------------------ */

/* A length and so many bytes. NULL: out of memory; @bytes->bad: "". */
static const char *read_text(struct ky_history *history, struct ky_bytes *bytes)
{
	uint64_t len = ky_bytes_varint(bytes);
	const char *text;

	if (bytes->bad || len > (uint64_t)(bytes->end - bytes->at)) {
		bytes->bad = true;
		return "";
	}
	text = ky_arena_strndup(&history->arena, (const char *)bytes->at, (size_t)len);
	bytes->at += len;
	return text;
}

static int read_objects(struct ky_history *history, struct ky_bytes *bytes)
{
	uint64_t n = ky_bytes_varint(bytes);

	for (uint64_t i = 0; i < n && !bytes->bad; i++) {
		struct ky_unnamed_object object = {.path = read_text(history, bytes)};
		uint64_t len = ky_bytes_varint(bytes);

		bytes->bad |= len > (uint64_t)(bytes->end - bytes->at);
		if (bytes->bad)
			break;
		/* Bytes of any value. */
		object.build_id = (const uint8_t *)ky_arena_strndup(
			&history->arena, (const char *)bytes->at, (size_t)len);
		object.build_id_bytes = (uint32_t)len;
		bytes->at += len;
		if (!object.path || !object.build_id)
			return KYMO_E_MEMORY;
		if (ky_vec_push(&history->objects, object) < 0)
			return KYMO_E_MEMORY;
	}
	return 0;
}

static int read_unnamed(struct ky_history *history, struct ky_bytes *bytes)
{
	int status = read_objects(history, bytes);
	uint64_t n = ky_bytes_varint(bytes);

	for (uint64_t i = 0; i < n && status >= 0 && !bytes->bad; i++) {
		struct ky_unnamed one = {.name = ky_bytes_varint(bytes)};
		uint64_t object = ky_bytes_varint(bytes);

		one.object = (uint32_t)object;
		one.address = ky_bytes_varint(bytes);
		if (object >= history->objects.len || one.name >= history->names.len)
			bytes->bad = true;
		else if (ky_vec_push(&history->unnamed, one) < 0)
			status = KYMO_E_MEMORY;
	}
	return status;
}

static int read_names(struct ky_history *history, uint64_t offset, struct kymo_error *err)
{
	struct ky_bytes bytes;
	int status = ky_history_record(history, offset, KY_RECORD_NAMES, 0, 0, &bytes, err);
	uint64_t n;

	if (status < 0)
		return status;
	n = ky_bytes_varint(&bytes);
	for (uint64_t i = 0; i < n && !bytes.bad; i++) {
		const char *name = read_text(history, &bytes);

		if (!name || ky_vec_push(&history->names, name) < 0)
			return ky_error_nomem(err);
	}
	status = read_unnamed(history, &bytes);
	if (status < 0)
		return ky_error_nomem(err);
	return bytes.bad || bytes.at != bytes.end
		       ? ky_history_damaged(history, offset, "malformed names", err)
		       : 0;
}

static int read_row(struct ky_history *history, uint64_t offset, struct ky_row_top *top,
		    struct kymo_error *err)
{
	uint32_t id = (uint32_t)history->rows.len;
	const char *name;
	size_t len;
	int status = ky_history_top(history, offset, id, NULL, top, &name, &len, err);

	if (status < 0)
		return status;
	top->row.name = ky_arena_strndup(&history->arena, name, len);
	if (!top->row.name || ky_vec_push(&history->rows, top->row) < 0 ||
	    ky_vec_push(&history->records, offset) < 0)
		return ky_error_nomem(err);
	return 0;
}

/* Parents have smaller kinds, so that no row is below itself. */
static int check_parents(struct ky_history *history, struct kymo_error *err)
{
	ky_vec_foreach(&history->rows, row) {
		if (row->parent == KY_HISTORY_NO_ROW)
			continue;
		if (row->parent >= history->rows.len ||
		    history->rows.data[row->parent].kind >= row->kind)
			return ky_history_damaged(history, history->slot.root_bytes,
						  "a row that is below no other one", err);
	}
	return 0;
}

static int history_file_read_rows(struct ky_history *history, struct ky_bytes *bytes,
				  struct kymo_error *err)
{
	uint64_t n = ky_bytes_varint(bytes);
	struct ky_row_top *top;
	int status = 0;

	if (bytes->bad || n > (uint64_t)(bytes->end - bytes->at) || n > KY_ROWS_MAX)
		return ky_history_damaged(history, history->slot.root_bytes, "a malformed root",
					  err);
	top = malloc(sizeof(*top));
	if (!top)
		return ky_error_nomem(err);
	for (uint64_t i = 0; i < n && status >= 0; i++)
		status = read_row(history, ky_bytes_varint(bytes), top, err);
	free(top);
	if (status >= 0 && bytes->bad)
		status = ky_history_damaged(history, history->slot.root_bytes, "a malformed root",
					    err);
	return status < 0 ? status : check_parents(history, err);
}

static int read_states(struct ky_history *history, struct ky_bytes *bytes, struct kymo_error *err)
{
	uint64_t n = ky_bytes_varint(bytes);

	for (uint64_t i = 0; i < n && !bytes->bad; i++) {
		struct ky_saved_state state = {.ns = ky_bytes_signed(bytes),
					       .offset = ky_bytes_varint(bytes)};

		if (history->states.len &&
		    state.ns <= history->states.data[history->states.len - 1].ns)
			bytes->bad = true;
		if (ky_vec_push(&history->states, state) < 0)
			return ky_error_nomem(err);
	}
	if (bytes->bad || bytes->at != bytes->end)
		return ky_history_damaged(history, history->slot.root_bytes, "a malformed root",
					  err);
	return 0;
}

static int read_root_bytes(struct ky_history *history, struct ky_bytes bytes,
			   struct kymo_error *err)
{
	uint64_t names_at;
	int status;

	history->begin_ns = ky_bytes_signed(&bytes);
	history->end_ns = ky_bytes_signed(&bytes);
	history->n_events = ky_bytes_varint(&bytes);
	names_at = ky_bytes_varint(&bytes);
	if (bytes.bad || history->begin_ns > history->end_ns)
		return ky_history_damaged(history, history->slot.root_bytes, "a malformed root",
					  err);
	status = read_names(history, names_at, err);
	if (status >= 0)
		status = history_file_read_rows(history, &bytes, err);
	return status < 0 ? status : read_states(history, &bytes, err);
}

static int read_root(struct ky_history *history, struct kymo_error *err)
{
	struct ky_bytes bytes;
	int status = ky_history_record(history, history->slot.root_bytes, KY_RECORD_ROOT, 0, 0,
				       &bytes, err);
	uint8_t *copy;
	size_t len;

	if (status < 0)
		return status;
	/* The next record takes its place. */
	len = (size_t)(bytes.end - bytes.at);
	copy = malloc(len + 1);
	if (!copy)
		return ky_error_nomem(err);
	memcpy(copy, bytes.at, len);
	status = read_root_bytes(history, (struct ky_bytes){.at = copy, .end = copy + len}, err);
	free(copy);
	return status;
}

/* ---- opening --------------------------------------------------------------------------------------- */

static int history_file_own(struct ky_history *history, int fd, struct kymo_error *err)
{
	struct stat st;

	history->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (history->fd < 0 || fstat(fd, &st) < 0)
		return ky_error_errno(err, errno, "cannot read the state history");
	if (!S_ISREG(st.st_mode) || st.st_size < (off_t)KY_HISTORY_RECORDS_AT)
		return ky_history_damaged(history, 0, "the file is too short", err);
	history->file_bytes = (uint64_t)st.st_size;
	return 0;
}

static int history_file_check_identity(const struct ky_history *history,
				       const struct ky_history_identity *identity,
				       struct kymo_error *err)
{
	if (identity && memcmp(identity, &history->head.identity, sizeof(*identity)) != 0)
		return ky_error_set(err, KYMO_E_NOT_FOUND,
				    "the state history is of other traces, or they have changed");
	return 0;
}

int ky_history_open_fd(int fd, const struct ky_history_identity *identity, bool partial,
		       struct ky_history **out, struct kymo_error *err)
{
	struct ky_history *history = calloc(1, sizeof(*history));
	int status;

	*out = NULL;
	if (!history)
		return ky_error_nomem(err);
	ky_arena_init(&history->arena);
	history->fd = -1;
	status = history_file_own(history, fd, err);
	if (status >= 0)
		status = history_file_read_head(history, err);
	if (status >= 0)
		status = history_file_check_identity(history, identity, err);
	if (status >= 0)
		status = read_slot(history, err);
	if (status >= 0 && !partial && !history->slot.is_complete)
		status = ky_error_set(err, KYMO_E_AGAIN, "the state history is not complete");
	if (status >= 0)
		status = read_root(history, err);
	if (status < 0) {
		ky_history_close(history);
		return status;
	}
	*out = history;
	return 0;
}

void ky_history_close(struct ky_history *history)
{
	if (!history)
		return;
	if (history->is_kept && history->is_damaged)
		ky_history_discard(history);
	ky_thread_pool_free(history->pool);
	if (history->fd >= 0)
		close(history->fd);
	ky_vec_fini(&history->buffer);
	ky_vec_fini(&history->rows);
	ky_vec_fini(&history->records);
	ky_vec_fini(&history->names);
	ky_vec_fini(&history->objects);
	ky_vec_fini(&history->unnamed);
	ky_vec_fini(&history->states);
	ky_arena_fini(&history->arena);
	free(history);
}

int ky_history_refresh(struct ky_history *history, int fd, struct kymo_error *err)
{
	struct ky_history *newer, swap;
	int status;

	if (history->slot.is_complete)
		return 0;
	status = ky_history_open_fd(fd, &history->head.identity, true, &newer, err);
	if (status < 0)
		return status;
	status = newer->slot.generation != history->slot.generation;
	swap = *history;
	*history = *newer;
	*newer = swap;
	ky_history_close(newer);
	return status;
}

/* ---- facts ---------------------------------------------------------------------------------------- */

bool ky_history_is_damaged(const struct ky_history *history)
{
	return history->is_damaged;
}

bool ky_history_is_complete(const struct ky_history *history)
{
	return history->slot.is_complete != 0;
}

uint64_t ky_history_n_events(const struct ky_history *history)
{
	return history->n_events;
}

uint64_t ky_history_size_bytes(const struct ky_history *history)
{
	return history->slot.end_bytes;
}

int64_t ky_history_begin_ns(const struct ky_history *history)
{
	return history->begin_ns;
}

int64_t ky_history_end_ns(const struct ky_history *history)
{
	return history->end_ns;
}

size_t ky_history_n_rows(const struct ky_history *history)
{
	return history->rows.len;
}

const struct ky_history_row *ky_history_row(const struct ky_history *history, uint32_t id)
{
	return &history->rows.data[id];
}

const char *ky_history_name(const struct ky_history *history, uint64_t name)
{
	return name < history->names.len ? history->names.data[name] : "";
}
