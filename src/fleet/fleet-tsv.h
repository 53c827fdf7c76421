/* SPDX-License-Identifier: MIT */
/* Rows in ClickHouse's TabSeparatedWithNamesAndTypes, piece by piece. They are not trusted. */
#ifndef KY_FLEET_FLEET_TSV_H
#define KY_FLEET_FLEET_TSV_H

#include "base/strbuf.h"
#include "base/vec.h"
#include "sql/sql.h"

struct ky_fleet_tsv {
	const struct ky_sql_sink *sink;
	struct ky_strbuf line;	/* not yet whole */
	struct ky_strbuf cells; /* of a line, without escapes, each with a NUL */
	KY_VEC(size_t) at;	/* where they begin there; SIZE_MAX: NULL */
	KY_VEC(uint8_t) types;	/* enum ky_sql_type, by column */
	KY_VEC(struct ky_sql_value) row;
	size_t n_columns; /* as the names tell */
	uint64_t n_lines;
};

void ky_fleet_tsv_init(struct ky_fleet_tsv *tsv, const struct ky_sql_sink *sink);
void ky_fleet_tsv_fini(struct ky_fleet_tsv *tsv);
/* More bytes; @data: a struct ky_fleet_tsv. KYMO_E_FORMAT, KYMO_E_LIMIT, KYMO_E_MEMORY, or what the sink says. */
int ky_fleet_tsv_take(void *data, const char *bytes, size_t n, struct kymo_error *err);
/* There are no more. */
int ky_fleet_tsv_end(struct ky_fleet_tsv *tsv, struct kymo_error *err);

/* Appends @text so that it can stand between single quotes of a statement. */
void ky_fleet_tsv_put_quoted(struct ky_strbuf *out, const char *text);

#endif
