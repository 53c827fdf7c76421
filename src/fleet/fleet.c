/* SPDX-License-Identifier: MIT */
#include "fleet/fleet.h"

#include <string.h>

int ky_fleet_open(const char *place, bool writes, struct ky_fleet **store, struct kymo_error *err)
{
	return strstr(place, "://") ? ky_fleet_open_clickhouse(place, writes, store, err)
				    : ky_fleet_open_local(place, writes, store, err);
}

void ky_fleet_close(struct ky_fleet *store)
{
	if (store)
		store->ops->close(store);
}

static int fleet_take_names(void *data, const char *const *names, size_t n, struct kymo_error *err)
{
	(void)data;
	(void)names;
	(void)n;
	(void)err;
	return KYMO_OK;
}

static int fleet_take_number(void *data, const struct ky_sql_value *values, size_t n,
			     struct kymo_error *err)
{
	int64_t *number = data;

	(void)err;
	if (n && values[0].type == KY_SQL_INTEGER)
		*number = values[0].integer;
	return KYMO_OK;
}

int ky_fleet_number(struct ky_fleet *store, const char *text, int64_t *number,
		    struct kymo_error *err)
{
	const struct ky_sql_sink sink = {number, fleet_take_names, fleet_take_number};

	*number = 0;
	return ky_fleet_query(store, text, &sink, err);
}

void ky_fleet_put_name(struct ky_strbuf *out, const char *name)
{
	ky_strbuf_addc(out, '"');
	for (; *name; name++) {
		/* Names come from src/sql, which has made words of them; whatever else there was becomes one here. */
		bool is_word = (*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') ||
			       (*name >= '0' && *name <= '9') || *name == '_';

		ky_strbuf_addc(out, is_word ? *name : '_');
	}
	ky_strbuf_addc(out, '"');
}
