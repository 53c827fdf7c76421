/* SPDX-License-Identifier: MIT */
/* Conditions on hosts. Wildcards come from users, and stand between quotes. */
#include <inttypes.h>
#include <string.h>

#include "fleet/fleet-ask-table.h"
#include "fleet/fleet-tsv.h"

/* A character that means itself, for GLOB. */
static void where_put_glob(struct ky_strbuf *out, char c)
{
	if (strchr("*?[", c))
		ky_strbuf_addf(out, "[%c]", c);
	else if (c == '\'')
		ky_strbuf_adds(out, "''");
	else
		ky_strbuf_addc(out, c);
}

static void where_put_like(struct ky_strbuf *out, char c)
{
	if (strchr("%_\\", c))
		ky_strbuf_addc(out, '\\');
	ky_strbuf_addc(out, c);
}

/* Case counts: with LIKE it does not in SQLite, and GLOB is not there in ClickHouse. */
static void where_put_pattern(struct ky_strbuf *text, const char *glob, bool is_clickhouse)
{
	struct ky_strbuf pattern = KY_STRBUF_INIT;

	for (; *glob; glob++) {
		bool is_quoted = *glob == '\\' && glob[1];

		if (!is_quoted && (*glob == '*' || *glob == '?')) {
			ky_strbuf_addc(&pattern, !is_clickhouse ? *glob : *glob == '*' ? '%' : '_');
			continue;
		}
		glob += is_quoted;
		if (is_clickhouse)
			where_put_like(&pattern, *glob);
		else
			where_put_glob(&pattern, *glob);
	}
	ky_strbuf_addf(text, "\"host\" %s '", is_clickhouse ? "LIKE" : "GLOB");
	if (is_clickhouse)
		ky_fleet_tsv_put_quoted(text, ky_strbuf_text(&pattern));
	else
		ky_strbuf_add(text, ky_strbuf_text(&pattern), pattern.len);
	ky_strbuf_addc(text, '\'');
	text->failed |= pattern.failed;
	ky_strbuf_fini(&pattern);
}

void ky_fleet_ask_put_where(struct ky_strbuf *text, const struct ky_fleet_ask *ask,
			    bool is_clickhouse, int64_t from_ns)
{
	ky_strbuf_addf(text, " WHERE \"end\" >= %" PRId64, from_ns);
	if (!ask->n_hosts)
		return;
	/* The last wildcard that fits decides. */
	ky_strbuf_adds(text, " AND ");
	for (size_t i = 0; i < ask->n_hosts; i++)
		ky_strbuf_addc(text, '(');
	ky_strbuf_adds(text, ask->hosts[0][0] == '!' ? "1 = 1" : "1 = 0");
	for (size_t i = 0; i < ask->n_hosts; i++) {
		bool takes_out = ask->hosts[i][0] == '!';

		ky_strbuf_adds(text, takes_out ? " AND NOT " : " OR ");
		where_put_pattern(text, ask->hosts[i] + takes_out, is_clickhouse);
		ky_strbuf_addc(text, ')');
	}
}
