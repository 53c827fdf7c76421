/* SPDX-License-Identifier: MIT */
/* Batches on their way to the server, and the lines that say what is there. */
#include "fleet/fleet-clickhouse.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "fleet/fleet-tsv.h"

#define DELETE_STEP_US 100000
#define DELETE_STEPS   3000

/* A line of kymo_batch for each trace that was begun; above all numbers of batches and slices. */
#define BEGUN (INT64_C(1) << 62)

/* Of a statement in the address of a request; in quotes it may become three times as long. */
#define STATEMENT_MAX_BYTES 4000

/* ---- what is there -------------------------------------------------------------------- */

void ky_fleet_clickhouse_forget(struct ky_fleet_clickhouse *ch)
{
	ky_vec_foreach(&ch->noted, noted)
		free(noted->of);
	ky_vec_fini(&ch->noted);
	ky_names_fini(&ch->fresh);
	ky_strbuf_fini(&ch->notes);
	ch->was_begun = false;
}

static int64_t fleet_clickhouse_integer(const struct ky_sql_value *value)
{
	return value->type == KY_SQL_TEXT ? strtoll(value->text, NULL, 10) : value->integer;
}

static int fleet_clickhouse_take_noted(void *data, const struct ky_sql_value *values, size_t n,
				       struct kymo_error *err)
{
	struct ky_fleet_clickhouse *ch = data;
	struct ky_fleet_noted noted;

	if (n < 3 || values[0].type != KY_SQL_TEXT)
		return ky_error_set(err, KYMO_E_FORMAT, "kymo_batch has other columns");
	noted.number = (uint64_t)fleet_clickhouse_integer(&values[1]);
	noted.n_rows = (uint64_t)fleet_clickhouse_integer(&values[2]);
	ch->was_begun |= noted.number == BEGUN;
	noted.of = strndup(values[0].text, values[0].len);
	if (!noted.of || ky_vec_push(&ch->noted, noted) < 0) {
		free(noted.of);
		return ky_error_nomem(err);
	}
	return KYMO_OK;
}

int ky_fleet_clickhouse_begin(struct ky_fleet *store, const char *trace, struct kymo_error *err)
{
	struct ky_fleet_clickhouse *ch = (struct ky_fleet_clickhouse *)store;
	const struct ky_sql_sink sink = {ch, ky_fleet_clickhouse_names,
					 fleet_clickhouse_take_noted};
	struct ky_strbuf text = KY_STRBUF_INIT;
	int ret;

	ky_fleet_clickhouse_forget(ch);
	ky_names_init(&ch->fresh);
	memcpy(ch->trace, trace, sizeof(ch->trace));
	ky_strbuf_addf(&text, "SELECT of, number, n_rows FROM kymo_batch WHERE trace = '%s'",
		       trace);
	ret = ky_strbuf_failed(&text)
		      ? ky_error_nomem(err)
		      : ky_fleet_clickhouse_query(store, ky_strbuf_text(&text), &sink, err);
	ky_strbuf_fini(&text);
	if (ret < 0 || ch->was_begun)
		return ret;
	return ky_fleet_clickhouse_note(store, trace, "", BEGUN, 0, err);
}

static void fleet_clickhouse_put_note(struct ky_strbuf *text, const char *trace, const char *of,
				      uint64_t number, int64_t n_rows, int64_t last_ns)
{
	ky_strbuf_addf(text, "%s('%s', '", text->len ? ", " : "", trace);
	ky_fleet_tsv_put_quoted(text, of);
	ky_strbuf_addf(text, "', %" PRIu64 ", %" PRId64 ", %" PRId64 ")", number, n_rows, last_ns);
}

static int fleet_clickhouse_write_notes(struct ky_fleet_clickhouse *ch, struct ky_strbuf *notes,
					struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;

	if (!notes->len)
		return KYMO_OK;
	ky_strbuf_adds(&text, "INSERT INTO kymo_batch VALUES ");
	ky_strbuf_add(&text, ky_strbuf_text(notes), notes->len);
	text.failed |= notes->failed;
	ky_strbuf_fini(notes);
	return ky_fleet_clickhouse_run(ch, &text, err);
}

int ky_fleet_clickhouse_note(struct ky_fleet *store, const char *trace, const char *of,
			     uint64_t number, int64_t n_rows, struct kymo_error *err)
{
	struct ky_strbuf notes = KY_STRBUF_INIT;

	fleet_clickhouse_put_note(&notes, trace, of, number, n_rows, 0);
	return fleet_clickhouse_write_notes((struct ky_fleet_clickhouse *)store, &notes, err);
}

/* The last batches of all tables are noted together: small traces are many. */
int ky_fleet_clickhouse_end(struct ky_fleet *store, struct kymo_error *err)
{
	struct ky_fleet_clickhouse *ch = (struct ky_fleet_clickhouse *)store;

	return fleet_clickhouse_write_notes(ch, &ch->notes, err);
}

static int fleet_clickhouse_note_batch(struct ky_fleet_clickhouse *ch,
				       const struct ky_fleet_batch *batch, struct kymo_error *err)
{
	struct ky_strbuf notes = KY_STRBUF_INIT;

	if (!batch->is_last) {
		fleet_clickhouse_put_note(&notes, batch->trace, batch->table->name, batch->number,
					  (int64_t)batch->n_rows, batch->last_ns);
		return fleet_clickhouse_write_notes(ch, &notes, err);
	}
	pthread_mutex_lock(&ch->lock);
	fleet_clickhouse_put_note(&ch->notes, batch->trace, batch->table->name, batch->number,
				  (int64_t)batch->n_rows, batch->last_ns);
	pthread_mutex_unlock(&ch->lock);
	return KYMO_OK;
}

/* ---- finding a batch ------------------------------------------------------------------ */

static void fleet_clickhouse_put_key(struct ky_strbuf *text, const struct ky_fleet_batch *batch)
{
	ky_strbuf_addf(text, "\"trace\" = '%s' AND \"batch\" = %" PRIu64, batch->trace,
		       batch->number);
}

static int fleet_clickhouse_count(struct ky_fleet_clickhouse *ch,
				  const struct ky_fleet_batch *batch, uint64_t *n_rows,
				  struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	int64_t first, last;

	ky_strbuf_adds(&text, "SELECT count() FROM ");
	ky_fleet_put_name(&text, batch->table->name);
	ky_strbuf_adds(&text, " WHERE ");
	fleet_clickhouse_put_key(&text, batch);
	/* So that the server looks only there. */
	if (batch->table->time >= 0 && !batch->vectors.data[batch->table->time].nulls.len &&
	    ky_fleet_batch_bounds(batch, (size_t)batch->table->time, &first, &last))
		ky_strbuf_addf(&text, " AND \"time\" >= %" PRId64 " AND \"time\" <= %" PRId64,
			       first, last);
	return ky_fleet_clickhouse_number(ch, &text, (int64_t *)n_rows, err);
}

static uint64_t fleet_clickhouse_noted(const struct ky_fleet_clickhouse *ch,
				       const struct ky_fleet_batch *batch)
{
	ky_vec_foreach(&ch->noted, noted)
		if (noted->number == batch->number && strcmp(noted->of, batch->table->name) == 0)
			return noted->n_rows;
	return 0;
}

/* *n_rows: of the batch on the server. One that came there without a line is found by its rows; behind it there are no others of its table. */
static int fleet_clickhouse_find(struct ky_fleet_clickhouse *ch, const struct ky_fleet_batch *batch,
				 uint64_t *n_rows, struct kymo_error *err)
{
	bool is_fresh;
	int ret;

	*n_rows = fleet_clickhouse_noted(ch, batch);
	if (*n_rows || !ch->was_begun)
		return KYMO_OK;
	pthread_mutex_lock(&ch->lock);
	is_fresh = ky_names_get(&ch->fresh, batch->table->name) != NULL;
	pthread_mutex_unlock(&ch->lock);
	if (is_fresh)
		return KYMO_OK;
	ret = fleet_clickhouse_count(ch, batch, n_rows, err);
	if (ret < 0 || *n_rows)
		return !ret && *n_rows == batch->n_rows
			       ? fleet_clickhouse_note_batch(ch, batch, err)
			       : ret;
	pthread_mutex_lock(&ch->lock);
	ret = ky_names_set(&ch->fresh, batch->table->name, ch);
	pthread_mutex_unlock(&ch->lock);
	return ret < 0 ? ky_error_nomem(err) : KYMO_OK;
}

/* ---- putting -------------------------------------------------------------------------- */

static void fleet_clickhouse_put_insert(struct ky_fleet_clickhouse *ch, struct ky_strbuf *text,
					const struct ky_fleet_table *table)
{
	ky_strbuf_adds(text, "INSERT INTO ");
	ky_fleet_put_name(text, table->name);
	ky_strbuf_adds(text, " (\"trace\", \"batch\"");
	for (size_t i = 0; i < table->columns.len; i++) {
		if (ky_fleet_clickhouse_form(ch, table, i)->kind == KY_FLEET_COMPUTED)
			continue;
		ky_strbuf_adds(text, ", ");
		ky_fleet_put_name(text, table->columns.data[i].name);
	}
	ky_strbuf_adds(text, ") FORMAT Native");
}

static int fleet_clickhouse_insert(struct ky_fleet_clickhouse *ch,
				   const struct ky_fleet_batch *batch, struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT, rows = KY_STRBUF_INIT, packed = KY_STRBUF_INIT;
	bool is_in_body;
	int ret;

	fleet_clickhouse_put_insert(ch, &text, batch->table);
	/* Servers refuse long addresses. */
	is_in_body = text.len > STATEMENT_MAX_BYTES;
	if (is_in_body)
		ky_strbuf_addf(&rows, "%s\n", ky_strbuf_text(&text));
	ky_fleet_clickhouse_put_rows(ch, &rows, batch);
	ret = ky_strbuf_failed(&text) || ky_strbuf_failed(&rows)
		      ? ky_error_nomem(err)
		      : ky_fleet_clickhouse_pack(&rows, &packed, err);
	ky_strbuf_fini(&rows);
	if (!ret)
		ret = ky_fleet_clickhouse_insert(ch, is_in_body ? NULL : ky_strbuf_text(&text),
						 &packed, true, err);
	ky_strbuf_fini(&text);
	ky_strbuf_fini(&packed);
	return ret;
}

/* ---- deleting ------------------------------------------------------------------------- */

/* Deleting is slow there, and the server does it when it likes: waits for it. */
int ky_fleet_clickhouse_delete(struct ky_fleet_clickhouse *ch, const char *table, const char *where,
			       struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	int64_t n = 1;
	int ret;

	ky_strbuf_adds(&text, "ALTER TABLE ");
	ky_fleet_put_name(&text, table);
	ky_strbuf_addf(&text, " DELETE WHERE %s", where);
	ret = ky_fleet_clickhouse_run(ch, &text, err);
	for (int i = 0; i < DELETE_STEPS && !ret && n; i++) {
		text = (struct ky_strbuf)KY_STRBUF_INIT;
		ky_strbuf_addf(&text,
			       "SELECT count() FROM system.mutations WHERE NOT is_done AND "
			       "database = '%s'",
			       ch->url.database);
		ret = ky_fleet_clickhouse_number(ch, &text, &n, err);
		if (n)
			usleep(DELETE_STEP_US);
	}
	if (!ret && n)
		ret = ky_error_set(err, KYMO_E_IO, "the server does not come to delete old rows");
	return ret;
}

int ky_fleet_clickhouse_put(struct ky_fleet *store, const struct ky_fleet_batch *batch,
			    bool *is_known, struct kymo_error *err)
{
	struct ky_fleet_clickhouse *ch = (struct ky_fleet_clickhouse *)store;
	struct ky_strbuf where = KY_STRBUF_INIT;
	uint64_t there;
	int ret = fleet_clickhouse_find(ch, batch, &there, err);

	*is_known = !ret && there == batch->n_rows;
	if (ret < 0 || *is_known)
		return ret;
	if (there) {
		fleet_clickhouse_put_key(&where, batch);
		ret = ky_strbuf_failed(&where)
			      ? ky_error_nomem(err)
			      : ky_fleet_clickhouse_delete(ch, batch->table->name,
							   ky_strbuf_text(&where), err);
		ky_strbuf_fini(&where);
	}
	ret = ret ? ret : fleet_clickhouse_insert(ch, batch, err);
	return ret ? ret : fleet_clickhouse_note_batch(ch, batch, err);
}

int ky_fleet_clickhouse_drop(struct ky_fleet *store, const struct ky_fleet_table *table,
			     const char *trace, struct kymo_error *err)
{
	struct ky_fleet_clickhouse *ch = (struct ky_fleet_clickhouse *)store;
	struct ky_strbuf where = KY_STRBUF_INIT;
	int ret;

	if (!ky_fleet_clickhouse_has_table(ch, table->name))
		return KYMO_OK;
	ky_strbuf_addf(&where, "\"trace\" = '%s'", trace);
	ret = ky_strbuf_failed(&where)
		      ? ky_error_nomem(err)
		      : ky_fleet_clickhouse_delete(ch, table->name, ky_strbuf_text(&where), err);
	ky_strbuf_adds(&where, " AND of = '");
	ky_fleet_tsv_put_quoted(&where, table->name);
	ky_strbuf_adds(&where, "'");
	if (!ret)
		ret = ky_strbuf_failed(&where)
			      ? ky_error_nomem(err)
			      : ky_fleet_clickhouse_delete(ch, "kymo_batch", ky_strbuf_text(&where),
							   err);
	ky_strbuf_fini(&where);
	/* The lines of before are wrong now. */
	ky_vec_foreach(&ch->noted, noted)
		if (strcmp(noted->of, table->name) == 0)
			noted->n_rows = 0;
	return ret;
}
