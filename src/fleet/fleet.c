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

const char *ky_fleet_schema(const struct ky_fleet *store)
{
	return store->is_clickhouse
		       ? "SELECT table, name AS column, type FROM system.columns WHERE database = "
			 "currentDatabase() AND table NOT LIKE 'kymo%'"
		       : "SELECT m.name AS \"table\", c.name AS column, lower(c.type) AS type FROM "
			 "sqlite_master AS m JOIN pragma_table_info(m.name) AS c WHERE m.type = "
			 "'table' AND m.name NOT LIKE 'kymo%' ORDER BY m.name, c.cid";
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
