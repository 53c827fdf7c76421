/* SPDX-License-Identifier: MIT */
/* What tables of events have in their columns: fields of events, as cells. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "flow/sinks/json-value.h"
#include "sql/sql-rows.h"

/* ---- one field ------------------------------------------------------------------------ */

static void sql_fields_put(struct ky_sql_cell *cell, const char *text, size_t len)
{
	if (len > INT32_MAX)
		return;
	*cell = (struct ky_sql_cell){.type = KY_SQL_TEXT, .len = (uint32_t)len};
	cell->text = text ? text : "";
}

/* What is more than a number or a text, as JSON. */
static void sql_fields_put_json(struct ky_sql_rows *texts, struct ky_sql_cell *cell,
				const struct ky_event *event, const struct ky_handle *handle)
{
	struct ky_strbuf out = KY_STRBUF_INIT;
	struct ky_values values;

	ky_values_init(&values);
	if (ky_handle_decode(&values, event, handle, NULL) > 0) {
		ky_json_value(&out, values.list.data);
		ky_sql_put_text(texts, cell, ky_strbuf_text(&out), out.len);
	}
	ky_values_fini(&values);
	ky_strbuf_fini(&out);
}

static void sql_fields_put_number(struct ky_sql_rows *texts, struct ky_sql_cell *cell,
				  const struct ky_field_class *cls, uint64_t value)
{
	const char *label = cls->num.is_enum ? ky_enum_label(cls, value) : NULL;
	char hex[24];

	if (label) {
		sql_fields_put(cell, label, strlen(label));
	} else if ((cls->kind == KY_FIELD_UINT || cls->kind == KY_FIELD_VARUINT) &&
		   value > INT64_MAX) {
		/* SQLite's numbers have a sign. */
		snprintf(hex, sizeof(hex), "0x%" PRIx64, value);
		ky_sql_put_text(texts, cell, hex, strlen(hex));
	} else {
		ky_sql_put(cell, (int64_t)value);
	}
}

static bool sql_fields_put_real(struct ky_sql_cell *cell, const struct ky_event *event,
				const struct ky_place *place)
{
	double real;

	if (!ky_place_real(event, place, &real))
		return false;
	cell->type = KY_SQL_REAL;
	cell->real = real;
	return true;
}

static bool sql_fields_put_bytes(struct ky_sql_cell *cell, const struct ky_event *event,
				 const struct ky_place *place)
{
	size_t len;
	const char *text = ky_place_bytes(event, place, &len);

	if (text)
		sql_fields_put(cell, text, len);
	return text != NULL;
}

static void sql_fields_cell(struct ky_sql_rows *texts, struct ky_sql_cell *cell,
			    const struct ky_event *event, const struct ky_handle *handle)
{
	struct ky_place place;
	uint64_t value;

	if (!handle->cls || !ky_handle_place(event, handle, &place))
		return;
	switch (place.cls->kind) {
	case KY_FIELD_UINT:
	case KY_FIELD_SINT:
	case KY_FIELD_BOOL:
	case KY_FIELD_VARUINT:
	case KY_FIELD_VARSINT:
		if (ky_place_number(event, &place, &value)) {
			sql_fields_put_number(texts, cell, place.cls, value);
			return;
		}
		break;
	case KY_FIELD_FLOAT:
		if (sql_fields_put_real(cell, event, &place))
			return;
		break;
	case KY_FIELD_STRING:
	case KY_FIELD_TEXT:
		if (sql_fields_put_bytes(cell, event, &place))
			return;
		break;
	default:
		break;
	}
	sql_fields_put_json(texts, cell, event, handle);
}

/* ---- all fields ----------------------------------------------------------------------- */

static bool sql_fields_has_member(const struct ky_event_class *cls, enum ky_scope scope,
				  const char *name)
{
	const struct ky_field_class *root = ky_scope_root(cls, scope);

	for (size_t i = 0; root && i < root->st.n_members; i++)
		if (strcmp(root->st.members[i].display, name) == 0)
			return true;
	return false;
}

/* As the columns of the tables: a context field with the name of another field begins with "context_". */
static bool sql_fields_is_taken(const struct ky_event_class *cls, enum ky_scope scope,
				const char *name)
{
	if (scope == KY_SCOPE_PAYLOAD)
		return false;
	return sql_fields_has_member(cls, KY_SCOPE_PAYLOAD, name) ||
	       (scope == KY_SCOPE_EVENT_CONTEXT &&
		sql_fields_has_member(cls, KY_SCOPE_STREAM_CONTEXT, name));
}

static void sql_fields_scope_json(struct ky_strbuf *out, const struct ky_event *event,
				  enum ky_scope scope, const struct ky_value *root)
{
	const struct ky_value *member = root + 1;

	for (uint32_t i = 0; i < root->n_children; i++) {
		const char *name = member->name ? member->name : "";

		ky_strbuf_adds(out, out->len > 1 ? ", " : "");
		if (sql_fields_is_taken(event->cls, scope, name)) {
			struct ky_strbuf longer = KY_STRBUF_INIT;

			ky_strbuf_addf(&longer, "context_%s", name);
			ky_json_text(out, ky_strbuf_text(&longer), longer.len);
			ky_strbuf_fini(&longer);
		} else {
			ky_json_text(out, name, strlen(name));
		}
		ky_strbuf_adds(out, ": ");
		member = ky_json_value(out, member);
	}
}

void ky_sql_fields_json(struct ky_strbuf *out, const struct ky_event *event)
{
	static const enum ky_scope scopes[] = {KY_SCOPE_STREAM_CONTEXT, KY_SCOPE_EVENT_CONTEXT,
					       KY_SCOPE_PAYLOAD};
	struct ky_values values;

	ky_values_init(&values);
	ky_strbuf_addc(out, '{');
	for (size_t i = 0; i < sizeof(scopes) / sizeof(scopes[0]); i++)
		if (ky_values_decode(&values, event, scopes[i], NULL) > 0)
			sql_fields_scope_json(out, event, scopes[i], values.list.data);
	ky_strbuf_addc(out, '}');
	ky_values_fini(&values);
}
static void sql_fields_put_all(struct ky_sql_rows *texts, struct ky_sql_cell *cell,
			       const struct ky_event *event)
{
	struct ky_strbuf out = KY_STRBUF_INIT;

	ky_sql_fields_json(&out, event);
	ky_sql_put_text(texts, cell, ky_strbuf_text(&out), out.len);
	ky_strbuf_fini(&out);
}

/* ---- columns -------------------------------------------------------------------------- */

static void sql_fields_put_name(struct ky_sql_cell *cell, const char *name)
{
	sql_fields_put(cell, name, strlen(name));
}

void ky_sql_event_cell(const struct ky_sql_table *table, const struct ky_sql_class *cls,
		       const struct ky_event *event, uint32_t column, struct ky_sql_rows *texts,
		       struct ky_sql_cell *cell)
{
	const struct ky_handle *handle;

	*cell = (struct ky_sql_cell){.type = KY_SQL_NULL};
	switch (table->columns.data[column].kind) {
	case KY_SQL_TIME:
		if (event->ns != INT64_MIN)
			ky_sql_put(cell, event->ns);
		break;
	case KY_SQL_CPU:
		if (event->cpu_id != UINT32_MAX)
			ky_sql_put(cell, event->cpu_id);
		break;
	case KY_SQL_HOST:
		sql_fields_put_name(cell, ky_sql_host(table->sql, event));
		break;
	case KY_SQL_STREAM:
		sql_fields_put_name(cell, event->packet->stream->name);
		break;
	case KY_SQL_TID:
		handle = ky_map_get(&table->sql->tids, (uintptr_t)event->cls);
		if (handle)
			sql_fields_cell(texts, cell, event, handle);
		break;
	case KY_SQL_NAME:
		sql_fields_put_name(cell, event->cls->name);
		break;
	case KY_SQL_FIELDS:
		sql_fields_put_all(texts, cell, event);
		break;
	default:
		sql_fields_cell(texts, cell, event, &cls->handles[column]);
		break;
	}
}
