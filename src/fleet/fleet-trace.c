/* SPDX-License-Identifier: MIT */
/* A trace that is loaded: its tables are opened, and it gets its name in the store. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "fleet/fleet-load.h"
#include "store/read/sync-file.h"

static int load_take_names(void *data, const char *const *names, size_t n, struct kymo_error *err)
{
	(void)data;
	(void)names;
	(void)n;
	(void)err;
	return KYMO_OK;
}

static int load_take_time(void *data, const struct ky_sql_value *values, size_t n,
			  struct kymo_error *err)
{
	int64_t *ns = data;

	(void)err;
	if (n && values[0].type == KY_SQL_INTEGER)
		*ns = values[0].integer;
	return KYMO_OK;
}

int64_t ky_fleet_load_time(struct ky_fleet_load *load, const char *text)
{
	int64_t ns = 0;
	const struct ky_sql_sink sink = {&ns, load_take_names, load_take_time};

	(void)ky_sql_run(load->sql, text, NULL, 0, &sink, NULL);
	return ns;
}

/* The chunks of a rotated recording have all else in common, but not their first event. */
static void fleet_load_name_trace(struct ky_fleet_load *load)
{
	uint64_t hash = load->options->host
				? ky_hash_bytes(load->options->host, strlen(load->options->host))
				: 0;

	ky_vec_foreach(&load->set->traces, trace) {
		const struct ky_env *env = ky_env_find((*trace)->cls, "hostname");

		hash = ky_hash_u64(hash ^ ky_sync_identity(*trace));
		if (env && env->is_text)
			hash = ky_hash_u64(hash ^ ky_hash_bytes(env->text, strlen(env->text)));
	}
	hash = ky_hash_u64(hash ^
			   (uint64_t)ky_fleet_load_time(load, "SELECT time FROM event LIMIT 1"));
	(void)snprintf(load->trace, sizeof(load->trace), "%016" PRIx64, hash);
}

int ky_fleet_load_begin(struct ky_fleet_load *load, struct kymo_error *err)
{
	int ret = ky_sql_open(load->set, &load->sql, err);

	if (!ret)
		fleet_load_name_trace(load);
	return ret;
}

int ky_fleet_load(struct ky_fleet *store, const struct ky_trace_set *set,
		  const struct ky_fleet_options *options, struct ky_fleet_result *result,
		  struct kymo_error *err)
{
	struct ky_fleet_load load = {
		.store = store, .set = set, .options = options, .result = result};
	int ret = ky_fleet_load_begin(&load, err);

	if (!ret)
		ret = ky_fleet_load_tables(&load, err);
	if (!ret && options->n_reports)
		ret = ky_fleet_load_reports(&load, err);
	ky_sql_close(load.sql);
	return ret;
}
