/* SPDX-License-Identifier: MIT */
/* Compiles an event's fields into operations, and into its class of the trace model. */
#include "kernel/convert/convert-plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/vec.h"
#include "ctf/resolve/lttng-layout.h"

/* LTTng counts priorities from the kernel's real-time ones: MAX_RT_PRIO. */
#define PRIO_OFFSET 100

KY_VEC_TYPE(op_list, struct ky_convert_op);

struct compiler {
	struct op_list ops;
	/* A run of bytes that are copied as they are, and what is corrected in it afterwards. */
	uint16_t run_src, run_len;
	uint16_t fix_at[KY_FORMAT_MAX_FIELDS];
	size_t n_fix;
	bool failed;
	struct ky_convert_plan *plan;
};

static void convert_plan_emit(struct compiler *c, struct ky_convert_op op)
{
	if (ky_vec_push(&c->ops, op) < 0)
		c->failed = true;
}

static enum ky_op copy_op(uint16_t len)
{
	switch (len) {
	case 4:
		return KY_OP_COPY4;
	case 8:
		return KY_OP_COPY8;
	case 16:
		return KY_OP_COPY16;
	default:
		return KY_OP_COPY;
	}
}

static void convert_plan_end_run(struct compiler *c)
{
	if (c->run_len)
		convert_plan_emit(c, (struct ky_convert_op){.code = (uint8_t)copy_op(c->run_len),
							    .src = c->run_src,
							    .len = c->run_len});
	for (size_t i = 0; i < c->n_fix; i++)
		convert_plan_emit(
			c, (struct ky_convert_op){.code = KY_OP_ADD,
						  .src = (uint16_t)(c->run_src + c->fix_at[i]),
						  .len = (uint16_t)(c->run_len - c->fix_at[i]),
						  .add = -PRIO_OFFSET});
	c->run_len = 0;
	c->n_fix = 0;
}

/* Copy @len bytes at @src; returns where they lie in the run. */
static uint16_t convert_plan_copy(struct compiler *c, uint16_t src, uint16_t len)
{
	if (c->run_len && c->run_src + c->run_len != src)
		convert_plan_end_run(c);
	if (!c->run_len)
		c->run_src = src;
	c->run_len = (uint16_t)(c->run_len + len);
	c->plan->out_bytes += len;
	return (uint16_t)(c->run_len - len);
}

static void other(struct compiler *c, enum ky_op code, const struct ky_event_field *field,
		  uint16_t len, uint32_t out_bytes)
{
	convert_plan_end_run(c);
	convert_plan_emit(c, (struct ky_convert_op){.code = (uint8_t)code,
						    .src = field->offset,
						    .len = len,
						    .relative = field->is_relative});
	c->plan->out_bytes += out_bytes;
}

static void compile_field(struct compiler *c, const struct ky_event_field *field)
{
	switch (field->how) {
	case KY_HOW_COPY:
		convert_plan_copy(c, field->offset, field->bytes);
		break;
	case KY_HOW_PRIO: {
		uint16_t at = convert_plan_copy(c, field->offset, 4);

		c->fix_at[c->n_fix++] = at;
		break;
	}
	case KY_HOW_TEXT:
		convert_plan_copy(c, field->offset, field->elements);
		break;
	case KY_HOW_ARRAY:
		convert_plan_copy(c, field->offset, (uint16_t)(field->elements * field->bytes));
		break;
	case KY_HOW_RWBS:
		other(c, KY_OP_RWBS, field, field->size, 4);
		break;
	case KY_HOW_TID:
		other(c, KY_OP_TID, field, 0, 4);
		break;
	case KY_HOW_PARENT_PID:
	case KY_HOW_CHILD_PID:
		other(c, KY_OP_PID, field, 0, 4);
		break;
	case KY_HOW_COMM:
		other(c, KY_OP_COMM, field, KY_EVENT_COMM_BYTES, KY_EVENT_COMM_BYTES);
		break;
	case KY_HOW_ADDRESS:
		other(c, KY_OP_ADDRESS, field, 0, 0);
		c->plan->n_dynamic++;
		break;
	case KY_HOW_CONTENT:
		other(c, KY_OP_CONTENT, field, field->elements, 0);
		c->plan->n_dynamic++;
		break;
	case KY_HOW_STRING:
		other(c, KY_OP_STRING, field, field->is_rest, 0);
		c->plan->n_dynamic++;
		break;
	case KY_HOW_SEQUENCE:
		other(c, KY_OP_SEQUENCE, field, field->bytes, 4);
		c->plan->n_dynamic++;
		break;
	}
}

/* ---- the class of the trace model -----------------------------------------------------  */

/* An integer whose values have names. */
static bool convert_plan_add_enum(struct ky_trace_class *trace, struct ky_field_class *st,
				  const char *name, const struct ky_event_field *field)
{
	struct ky_field_class *cls =
		ky_struct_add_enum(trace, st, name, field->bytes * 8u, field->is_signed);

	for (uint16_t i = 0; cls && i < field->n_labels; i++)
		if (ky_enum_add(trace, cls, field->labels[i].text, field->labels[i].value,
				field->labels[i].value) < 0)
			return false;
	return cls != NULL;
}

static bool convert_plan_add_class(struct ky_trace_class *trace, struct ky_field_class *st,
				   const struct ky_event_field *field)
{
	uint32_t bits = field->bytes * 8u;
	struct ky_field_class *length;
	char name[300];

	snprintf(name, sizeof(name), "_%s", field->name);
	if (field->n_labels)
		return convert_plan_add_enum(trace, st, name, field);
	switch (field->how) {
	case KY_HOW_COPY:
	case KY_HOW_PRIO:
	case KY_HOW_RWBS:
	case KY_HOW_TID:
	case KY_HOW_PARENT_PID:
	case KY_HOW_CHILD_PID:
		return ky_struct_add_int(trace, st, name, bits, field->is_signed, field->base);
	case KY_HOW_TEXT:
	case KY_HOW_COMM:
		return ky_struct_add_text(trace, st, name, field->elements);
	case KY_HOW_ARRAY:
		return ky_struct_add_array(trace, st, name,
					   ky_int_new(trace, bits, field->is_signed, field->base),
					   field->elements);
	case KY_HOW_ADDRESS:
	case KY_HOW_CONTENT:
	case KY_HOW_STRING:
		return ky_struct_add_string(trace, st, name);
	case KY_HOW_SEQUENCE:
		snprintf(name, sizeof(name), "__%s_length", field->name);
		length = ky_struct_add_int(trace, st, name, 32, false, 10);
		snprintf(name, sizeof(name), "_%s", field->name);
		return length &&
		       ky_struct_add_sequence(
			       trace, st, name,
			       ky_int_new(trace, bits, field->is_signed, field->base), length);
	}
	return false;
}

static int add_payload(struct ky_event_class *event, const struct ky_event_field *fields, int n,
		       struct kymo_error *err)
{
	struct ky_trace_class *trace = event->stream->trace;

	event->payload = ky_struct_new(trace);
	if (!event->payload)
		return ky_error_nomem(err);
	for (int i = 0; i < n; i++)
		if (!convert_plan_add_class(trace, event->payload, &fields[i]))
			return ky_error_nomem(err);
	return KYMO_OK;
}

static int reserve_plan(struct ky_convert *convert, uint16_t id, struct kymo_error *err)
{
	struct ky_convert_plan **plans;
	uint32_t n = (id / 256u + 1) * 256;

	if (id < convert->n_plans)
		return KYMO_OK;
	plans = realloc(convert->plans, n * sizeof(*plans));
	if (!plans)
		return ky_error_nomem(err);
	memset(plans + convert->n_plans, 0, (n - convert->n_plans) * sizeof(*plans));
	convert->plans = plans;
	convert->n_plans = n;
	return KYMO_OK;
}

static int convert_plan_compile(struct ky_convert *convert, struct ky_convert_plan *plan,
				const struct ky_event_field *fields, int n, struct kymo_error *err)
{
	struct compiler c = {.plan = plan};

	for (int i = 0; i < n; i++)
		compile_field(&c, &fields[i]);
	convert_plan_end_run(&c);
	if (plan->content && ky_content_plan_has_fields(plan->content)) {
		convert_plan_emit(&c, (struct ky_convert_op){.code = KY_OP_CONTENT_TAIL});
		plan->n_dynamic++;
	}
	plan->n_ops = (uint32_t)c.ops.len;
	plan->ops = c.ops.len ? ky_arena_memdup(&convert->arena, c.ops.data,
						c.ops.len * sizeof(c.ops.data[0]))
			      : NULL;
	ky_vec_fini(&c.ops);
	if (c.failed || (plan->n_ops && !plan->ops))
		return ky_error_nomem(err);
	if (plan->n_dynamic > KY_PLAN_MAX_DYNAMIC)
		return ky_error_set(err, KYMO_E_FORMAT, "an event with too many dynamic fields");
	return KYMO_OK;
}

int ky_convert_add(struct ky_convert *convert, const char *system, const struct ky_format *format,
		   struct ky_event_class *event, struct kymo_error *err)
{
	struct ky_convert_plan *plan = ky_arena_new(&convert->arena, struct ky_convert_plan);
	struct ky_event_field *fields;
	int ret = reserve_plan(convert, format->id, err), n;

	if (ret < 0 || !plan)
		return ret < 0 ? ret : ky_error_nomem(err);
	/* convert.c reads both at these places. */
	if (format->type_offset != 0 || format->pid_offset != 4)
		return ky_error_set(err, KYMO_E_FORMAT, "a record header that is not known");
	n = ky_event_fields(&convert->arena, system, format, &fields);
	if (n < 0)
		return ky_error_nomem(err);
	plan->hidden = !event;
	plan->fields = fields;
	plan->n_fields = (size_t)n;
	plan->src_bytes = format->fixed_bytes;
	ky_convert_set_role(convert, plan, ky_event_role(system, format->name), format);
	if (convert->content &&
	    ky_content_plan(convert->content, &convert->arena, system, format->name, fields, n,
			    format->fixed_bytes, &plan->content) < 0)
		return ky_error_nomem(err);
	if (event) {
		plan->event_id = (uint32_t)event->id;
		ret = convert_plan_compile(convert, plan, fields, n, err);
		if (!ret)
			ret = add_payload(event, fields, n, err);
		if (!ret && plan->content &&
		    ky_content_add_classes(plan->content, event->stream->trace, event->payload) < 0)
			ret = ky_error_nomem(err);
	}
	if (!ret)
		convert->plans[format->id] = plan;
	return ret;
}

void ky_convert_forget(struct ky_convert *convert, uint16_t id, bool learns)
{
	if (id >= convert->n_plans || !convert->plans[id])
		return;
	if (learns)
		convert->plans[id]->hidden = true;
	else
		convert->plans[id] = NULL;
}

void ky_convert_set_stacks(struct ky_convert *convert, uint16_t id, unsigned int stacks)
{
	struct ky_convert_plan *plan = id < convert->n_plans ? convert->plans[id] : NULL;

	if (plan)
		plan->stacks = (uint8_t)stacks;
}

void ky_convert_set_counters_key(struct ky_convert *convert, uint16_t id, uint32_t key)
{
	struct ky_convert_plan *plan = id < convert->n_plans ? convert->plans[id] : NULL;

	if (plan)
		plan->counters_key = key;
}

const struct ky_event_field *ky_convert_fields(const struct ky_convert *convert, uint16_t id,
					       size_t *n)
{
	const struct ky_convert_plan *plan = id < convert->n_plans ? convert->plans[id] : NULL;

	*n = plan ? plan->n_fields : 0;
	return plan ? plan->fields : NULL;
}

void ky_convert_set_filter(struct ky_convert *convert, uint16_t id, const struct ky_filter *filter,
			   const struct ky_event_class *event)
{
	struct ky_convert_plan *plan = id < convert->n_plans ? convert->plans[id] : NULL;

	if (!plan)
		return;
	plan->filter = filter;
	plan->event = event;
}
