/* SPDX-License-Identifier: MIT */
/* The pass before the one that makes rows: for what only the end of the trace can tell. */
#include "analysis/causes/causes-pass.h"
#include "base/error.h"
#include "sql/sql-pass.h"

static int sql_before_no_wait(void *data, const struct ky_lock_wait *wait)
{
	(void)data;
	(void)wait;
	return 0;
}

static int sql_before_model(struct ky_sql_before *before, const struct ky_sql *sql, bool causes,
			    bool locks, struct kymo_error *err)
{
	const struct ky_listener listener = {.lock_wait = sql_before_no_wait};

	before->model = ky_model_new(sql->set, err);
	if (!before->model || (locks && ky_model_listen(before->model, &listener) < 0))
		return ky_error_nomem(err);
	before->causes = causes ? ky_causes_new(before->model) : NULL;
	return causes && !before->causes ? ky_error_nomem(err) : KYMO_OK;
}

int ky_sql_before_run(struct ky_sql_before *before, const struct ky_sql *sql, const bool *only,
		      bool causes, bool locks, struct kymo_error *err)
{
	struct ky_flow *flow = NULL;
	int ret = sql_before_model(before, sql, causes, locks, err);

	if (!ret)
		ret = ky_sql_open_all(sql, only, &flow, err);
	for (int more = 1; !ret && more > 0;) {
		if (ky_sql_is_stopped(sql, err)) {
			ret = KYMO_E_INTERRUPTED;
			break;
		}
		more = ky_model_step(before->model, flow, err);
		ret = more == KYMO_E_MEMORY ? more : 0;
	}
	ky_flow_close(flow);
	return ret;
}

void ky_sql_before_fini(struct ky_sql_before *before)
{
	ky_causes_free(before->causes);
	ky_model_free(before->model);
	*before = (struct ky_sql_before){.model = NULL};
}

int ky_sql_pass_before(struct ky_sql_pass *pass, bool causes, bool locks, struct kymo_error *err)
{
	if (pass->is_fed)
		return KYMO_OK;
	pass->before = &pass->own_before;
	return ky_sql_before_run(&pass->own_before, pass->table->sql, pass->only, causes, locks,
				 err);
}
