/* SPDX-License-Identifier: MIT */
/* Events of a log, and their shapes: the classes of the trace. */
#include "base/error.h"
#include "import/logs/log-format.h"

/*
 * A log whose lines have more sets of fields than this has no sets, but chance: a trace of so many kinds of events helps nobody, and
 * takes a kilobyte of memory for each field of each kind.
 */
#define SHAPES_MAX	 8192
#define SHAPE_FIELDS_MAX 65536
#define SHAPE_NAMES_MAX	 (4u << 20)
/* Likewise the names of events: further events are "other", with the name as a field. */
#define NAMES_MAX 32768

/* ---- shapes --------------------------------------------------------------------------- */

/* The same for the same fields in any order: some formats write them as a hash table has them. */
static uint64_t log_shape_hash(const char *name, const struct ky_log_value *values, size_t n)
{
	uint64_t hash = ky_hash_bytes(name, strlen(name));

	for (size_t i = 0; i < n; i++)
		hash += ky_hash_u64(ky_hash_bytes(values[i].name, values[i].name_len) ^
				    (uint64_t)values[i].kind << 56);
	return hash;
}

static inline bool log_shape_is_field(const struct ky_log_shape_field *field,
				      const struct ky_log_value *value)
{
	return field->kind == value->kind && field->name_len == value->name_len &&
	       (field->name == value->name ||
		memcmp(field->name, value->name, field->name_len) == 0);
}

/* Puts the values into the shape's order. False: they are other fields; then the order is undefined. */
static inline bool log_shape_fits(const struct ky_log_shape *shape, const char *name,
				  struct ky_log_value *values, size_t n)
{
	if (!shape || shape->n != n || (shape->event != name && strcmp(shape->event, name) != 0))
		return false;
	for (size_t i = 0; i < n; i++) {
		struct ky_log_value value = values[i];
		size_t j = i;

		if (__builtin_expect(log_shape_is_field(&shape->fields[i], &values[i]), 1))
			continue;
		while (++j < n && !log_shape_is_field(&shape->fields[i], &values[j]))
			;
		if (j >= n)
			return false;
		values[i] = values[j];
		values[j] = value;
	}
	return true;
}

static struct ky_log_shape *log_shape_new(struct ky_log_file *log, const char *name,
					  const struct ky_log_value *values, size_t n)
{
	struct ky_log_shape *shape =
		ky_arena_alloc(&log->arena, sizeof(*shape) + n * sizeof(shape->fields[0]));

	if (!shape)
		return NULL;
	shape->event = ky_arena_strdup(&log->arena, name);
	shape->n = n;
	for (size_t i = 0; i < n; i++) {
		shape->fields[i].name =
			ky_arena_strndup(&log->arena, values[i].name, values[i].name_len);
		shape->fields[i].name_len = values[i].name_len;
		shape->fields[i].kind = values[i].kind;
		if (!shape->fields[i].name)
			return NULL;
		log->shape_names_bytes += values[i].name_len;
	}
	log->n_shape_fields += n;
	return shape->event ? shape : NULL;
}

static int log_shape_add(struct ky_log_file *log, const char *name,
			 const struct ky_log_value *values, size_t n)
{
	struct ky_log_shape *shape = log_shape_new(log, name, values, n);
	struct ky_maker_field fields[KY_LOG_FIELDS_MAX];

	if (!shape)
		return ky_error_nomem(log->err);
	for (size_t i = 0; i < n; i++)
		fields[i] = (struct ky_maker_field){.kind = values[i].kind,
						    .name = shape->fields[i].name};
	shape->number = ky_maker_event(log->maker, name, fields, n, log->err);
	if (shape->number < 0)
		return shape->number;
	if (ky_map_set(&log->classes, log_shape_hash(name, values, n), shape) < 0)
		return ky_error_nomem(log->err);
	log->shape = shape;
	return KYMO_OK;
}

static bool log_shape_find(struct ky_log_file *log, const char *name, struct ky_log_value *values,
			   size_t n)
{
	log->shape = ky_map_get(&log->classes, log_shape_hash(name, values, n));
	return log_shape_fits(log->shape, name, values, n);
}

/* The trace of another format has no events "other": the maker has a limit. */
static bool log_shape_has_name(const struct ky_log_file *log)
{
	return !log->is_log || log->classes.len < NAMES_MAX;
}

/* Whether the trace can have one more kind of event with these fields. */
static bool log_shape_has_room(const struct ky_log_file *log, const struct ky_log_value *values,
			       size_t n)
{
	size_t bytes = log->shape_names_bytes;

	for (size_t i = 0; i < n; i++)
		bytes += values[i].name_len;
	return (n ? log->classes.len < SHAPES_MAX : log_shape_has_name(log)) &&
	       log->n_shape_fields + n <= SHAPE_FIELDS_MAX && bytes <= SHAPE_NAMES_MAX;
}

/* One text of all fields, instead of a shape of its own. */
static void log_shape_join(struct ky_log_file *log, const struct ky_log_value *values, size_t n)
{
	struct ky_strbuf *text = &log->joined;

	ky_strbuf_clear(text);
	for (size_t i = 0; i < n; i++) {
		ky_strbuf_adds(text, i ? " " : "");
		ky_strbuf_add(text, values[i].name, values[i].name_len);
		if (values[i].kind == KY_MAKER_TEXT) {
			ky_strbuf_adds(text, "=\"");
			ky_strbuf_add(text, values[i].text, values[i].len);
			ky_strbuf_adds(text, "\"");
		} else if (values[i].kind == KY_MAKER_DOUBLE) {
			ky_strbuf_addf(text, "=%.17g", values[i].real);
		} else if (values[i].kind == KY_MAKER_U64) {
			ky_strbuf_addf(text, "=%llu", (unsigned long long)values[i].number);
		} else {
			ky_strbuf_addf(text, "=%lld", (long long)values[i].number);
		}
	}
}

/* A shape for fields that get none of their own: log->replaced instead of them. */
static int log_shape_replace(struct ky_log_file *log, const char *name,
			     const struct ky_log_value *values, size_t n)
{
	struct ky_log_value *made = log->replaced;

	log_shape_join(log, values, n);
	if (ky_strbuf_failed(&log->joined))
		return ky_error_nomem(log->err);
	made[0] = ky_log_text("fields", ky_strbuf_text(&log->joined), log->joined.len);
	log->n_replaced = 1;
	if (log_shape_find(log, name, made, 1))
		return KYMO_OK;
	if (log_shape_has_name(log))
		return log_shape_add(log, name, made, 1);
	made[1] = ky_log_text("name", name, strlen(name));
	log->n_replaced = 2;
	return log_shape_find(log, "other", made, 2) ? KYMO_OK
						     : log_shape_add(log, "other", made, 2);
}

/* The shape of other fields than the last event had. */
static int log_shape_choose(struct ky_log_file *log, const char *name, struct ky_log_value *values,
			    size_t n)
{
	if (log_shape_find(log, name, values, n))
		return KYMO_OK;
	if (log_shape_has_room(log, values, n))
		return log_shape_add(log, name, values, n);
	return log_shape_replace(log, name, values, n);
}

/* ---- values --------------------------------------------------------------------------- */

void ky_log_context_number(struct ky_log_file *log, int64_t value)
{
	log->event_bytes += sizeof(value);
	if (log->is_late)
		ky_log_late_number(&log->late, (uint64_t)value);
	else
		ky_maker_number(log->maker, (uint64_t)value);
}

static void log_shape_put_double(struct ky_log_file *log, double value)
{
	if (log->is_late)
		ky_log_late_double(&log->late, value);
	else
		ky_maker_double(log->maker, value);
}

static void log_shape_put_plain(struct ky_log_file *log, const char *text, size_t len)
{
	log->event_bytes += len + 1;
	if (log->is_late)
		ky_log_late_text(&log->late, text, len);
	else
		ky_maker_text(log->maker, text, len);
}

/* The text of a trace ends at a NUL: the text says "\0" instead. */
void ky_log_context_text(struct ky_log_file *log, const char *text, size_t len)
{
	const char *end = text + len, *nul = len ? memchr(text, '\0', len) : NULL;
	struct ky_strbuf without = KY_STRBUF_INIT;

	if (!nul) {
		log_shape_put_plain(log, text, len);
		return;
	}
	for (; nul; nul = text < end ? memchr(text, '\0', (size_t)(end - text)) : NULL) {
		ky_strbuf_add(&without, text, (size_t)(nul - text));
		ky_strbuf_adds(&without, "\\0");
		text = nul + 1;
	}
	ky_strbuf_add(&without, text, (size_t)(end - text));
	log_shape_put_plain(log, ky_strbuf_text(&without), without.len);
	ky_strbuf_fini(&without);
}

static void log_shape_put_value(struct ky_log_file *log, const struct ky_log_value *value)
{
	const char *text = value->text ? value->text : "";

	if (value->kind == KY_MAKER_DOUBLE) {
		log_shape_put_double(log, value->real);
	} else if (value->kind != KY_MAKER_TEXT) {
		ky_log_context_number(log, value->number);
	} else if (value->is_escaped) {
		ky_strbuf_clear(&log->unescaped);
		ky_log_unescape(&log->unescaped, text, value->len);
		ky_log_context_text(log, ky_strbuf_text(&log->unescaped), log->unescaped.len);
	} else {
		ky_log_context_text(log, text, value->len);
	}
}

/* ---- events --------------------------------------------------------------------------- */

int ky_log_begin(struct ky_log_file *log, const char *name, int64_t ns, struct ky_log_value *values,
		 size_t n)
{
	int ret = KYMO_OK;

	if (__builtin_expect(!log->has_event, 0)) {
		ret = ky_log_stray_flush(log, ns);
		if (ret < 0)
			return ret;
	}
	n = n < KY_LOG_FIELDS_MAX ? n : KY_LOG_FIELDS_MAX;
	log->n_replaced = 0;
	log->event_bytes = 0;
	if (!log_shape_fits(log->shape, name, values, n))
		ret = log_shape_choose(log, name, values, n);
	if (ret < 0) {
		ky_strbuf_fini(&log->joined);
		return ret;
	}
	/* The clock counts from 1970 on. */
	log->n_early += ns < 0;
	log->last_ns = ns < 0 ? 0 : ns;
	log->is_late = log->is_log && !log->format->has_cpus && log->last_ns < log->newest_ns;
	if (log->is_late)
		return ky_log_late_begin(&log->late, log->shape->number, (uint64_t)log->last_ns,
					 log->err);
	log->newest_ns = log->last_ns;
	ky_maker_begin(log->maker, log->stream, log->shape->number, (uint64_t)log->last_ns);
	return KYMO_OK;
}

int ky_log_put(struct ky_log_file *log, const struct ky_log_value *values, size_t n)
{
	if (log->n_replaced) {
		values = log->replaced;
		n = log->n_replaced;
	}
	for (size_t i = 0; i < n && i < KY_LOG_FIELDS_MAX; i++)
		log_shape_put_value(log, &values[i]);
	if (log->n_replaced)
		ky_strbuf_fini(&log->joined);
	log->n_shortened += log->event_bytes + 16 * (n + 1) > KY_LOG_EVENT_MAX;
	return log->is_late ? ky_log_late_commit(&log->late, log->maker, log->err)
			    : ky_maker_commit(log->maker, log->err);
}

int ky_log_event(struct ky_log_file *log, const char *name, int64_t ns, struct ky_log_value *values,
		 size_t n)
{
	int ret = ky_log_begin(log, name, ns, values, n);

	return ret < 0 ? ret : ky_log_put(log, values, n);
}
