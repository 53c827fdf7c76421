/* SPDX-License-Identifier: MIT */
/* Reading field values from event views: whole scopes. Single fields: handle.c. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ctf/decode/decode.h"
#include "ctf/decode/plan.h"
#include "ctf/decode/plan-interpreter.h"
#include "ctf/decode/stored-stacks.h"

void ky_values_init(struct ky_values *values)
{
	memset(values, 0, sizeof(*values));
}

void ky_values_fini(struct ky_values *values)
{
	ky_vec_fini(&values->list);
	free(values->slots);
	values->slots = NULL;
	values->n_slots = 0;
}

static int need_slots(struct ky_values *values, size_t n, struct kymo_error *err)
{
	uint64_t *slots;

	if (n <= values->n_slots)
		return KYMO_OK;
	slots = calloc(n, sizeof(*slots));
	if (!slots)
		return ky_error_nomem(err);
	free(values->slots);
	values->slots = slots;
	values->n_slots = n;
	return KYMO_OK;
}

int ky_values_decode(struct ky_values *values, const struct ky_event *event, enum ky_scope scope,
		     struct kymo_error *err)
{
	const struct ky_scope_plan *plan = ky_scope_plan_of(event->cls, scope);
	struct ky_cursor c = {.data = event->packet->data, .end_bits = event->end_bits};
	int ret;

	ky_vec_clear(&values->list);
	if (!plan->root)
		return 0;
	ret = need_slots(values, event->cls->stream->trace->n_slots, err);
	if (ret < 0)
		return ret;
	c.slots = values->slots;
	ret = ky_enter_scope(&c, event, scope, err);
	if (ret == KYMO_OK) {
		c.values = values;
		ret = ky_run(&c, plan, 0, plan->n_steps, err);
	}
	if (ret < 0) {
		ky_error_offset(err, event->packet->file_offset_bytes + c.at_bits / 8);
		return ret;
	}
	if (scope == KY_SCOPE_STREAM_CONTEXT && ky_stored_stacks_are_in(event->cls->stream) &&
	    ky_stored_stacks_fill(values, event) < 0)
		return ky_error_nomem(err);
	return (int)values->list.len;
}
