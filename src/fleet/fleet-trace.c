/* SPDX-License-Identifier: MIT */
/* A trace that is loaded. */

#include "fleet/fleet-load.h"

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

int ky_fleet_load_open(struct ky_fleet_load *load, struct kymo_error *err)
{
	return ky_sql_open(load->set, &load->sql, err);
}

int ky_fleet_load(struct ky_fleet *store, const struct ky_trace_set *set,
		  const struct ky_fleet_options *options, struct ky_fleet_result *result,
		  struct kymo_error *err)
{
	struct ky_fleet_load load = {
		.store = store, .set = set, .options = options, .result = result};
	uint64_t n_rest = result->n_rows;
	int ret = ky_fleet_key_find(&load, err);

	/* What a relay has begun comes to its end. */
	if (!ret && !options->again)
		ret = ky_fleet_load_rest(&load, err);
	n_rest = result->n_rows - n_rest;
	if (!ret && !load.sql)
		ret = ky_fleet_load_open(&load, err);
	if (!ret)
		ret = ky_fleet_load_tables(&load, err);
	result->n_known -= n_rest < result->n_known ? n_rest : result->n_known;
	if (!ret && options->n_reports)
		ret = ky_fleet_load_reports(&load, err);
	ky_sql_close(load.sql);
	return ret;
}
