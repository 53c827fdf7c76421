/* SPDX-License-Identifier: MIT */
/*
 * Calls of 32-bit programs, and those that the kernel does not know: what the content's programs have left of each is laid out as the ring would
 * have it, so that it is converted, filtered and given its context like any other event.
 */
#include <string.h>

#include "kernel/events/compat-calls.h"
#include "kernel/convert/convert-plan.h"

#define ARGS_AT	    16
#define ENTRY_BYTES (ARGS_AT + 6 * 8)
#define EXIT_BYTES  (ARGS_AT + 8 + 6 * 8) /* of unknown calls, the arguments behind the result */

static uint64_t next_switch(const struct ky_convert_cpu *cpu)
{
	const struct ky_switches *switches = cpu->convert->switches;

	return switches ? ky_switches_next(switches, cpu->cpu) : UINT64_MAX;
}

uint64_t ky_convert_next_call(const struct ky_convert_cpu *cpu)
{
	const struct ky_content *content = cpu->convert->content;
	uint64_t call = content ? ky_content_next_call(content, cpu->cpu) : UINT64_MAX;
	uint64_t from_idle = next_switch(cpu);

	if (cpu->of_group)
		return UINT64_MAX;
	return call < from_idle ? call : from_idle;
}

static const struct ky_convert_plan *convert_compat_plan_of(const struct ky_convert *convert,
							    uint32_t id)
{
	return id < convert->n_plans ? convert->plans[id] : NULL;
}

/* Registers are unsigned; a 64-bit argument that is signed was one of 32 bits. */
static void extend_signs(const struct ky_convert_plan *plan, uint64_t args[6])
{
	for (size_t i = 0; i < plan->n_fields; i++) {
		const struct ky_event_field *field = &plan->fields[i];
		size_t arg = (field->offset - ARGS_AT) / 8u;

		if (field->how == KY_HOW_COPY && field->is_signed && field->bytes == 8 &&
		    field->offset >= ARGS_AT && arg < 6)
			args[arg] = (uint64_t)(int64_t)(int32_t)args[arg];
	}
}

/* NULL: it is not recorded. */
static const struct ky_convert_plan *plan_of_call(const struct ky_convert *convert,
						  const struct ky_content_record *call)
{
	bool is_exit = (call->flags & KY_CONTENT_EXIT) != 0;
	uint32_t base = is_exit ? KY_COMPAT_EXIT_ID : KY_COMPAT_ENTRY_ID;
	const struct ky_convert_plan *plan = NULL;

	if (call->flags & KY_CONTENT_UNKNOWN)
		return convert_compat_plan_of(convert,
					      is_exit ? KY_UNKNOWN_EXIT_ID : KY_UNKNOWN_ENTRY_ID);
	if (call->number < KY_COMPAT_UNKNOWN)
		plan = convert_compat_plan_of(convert, base + call->number);
	return plan ? plan : convert_compat_plan_of(convert, base + KY_COMPAT_UNKNOWN);
}

static int convert_call(struct ky_convert_cpu *cpu, const struct ky_content_record *call,
			struct kymo_error *err)
{
	bool is_exit = (call->flags & KY_CONTENT_EXIT) != 0;
	const struct ky_convert_plan *plan = plan_of_call(cpu->convert, call);
	uint64_t args[6];
	uint8_t data[EXIT_BYTES] = {0};

	if (!plan)
		return KYMO_OK;
	memcpy(data + 4, &call->tid, 4);
	memcpy(data + 8, &call->number, 4);
	if (is_exit) {
		memcpy(data + ARGS_AT, &call->ret, 8);
		memcpy(data + ARGS_AT + 8, call->args, sizeof(call->args));
	} else {
		memcpy(args, call->args, sizeof(args));
		extend_signs(plan, args);
		memcpy(data + ARGS_AT, args, sizeof(args));
	}
	/* An interrupt's event may have come between the program's stamp and its record. */
	cpu->cycles =
		call->time_ns > cpu->writer.last_cycles ? call->time_ns : cpu->writer.last_cycles;
	return ky_convert_call(cpu, plan, data, is_exit ? EXIT_BYTES : ENTRY_BYTES, call, err);
}

static int take_call(struct ky_convert_cpu *cpu, struct kymo_error *err)
{
	const struct ky_convert *convert = cpu->convert;
	const struct ky_content_record *call = ky_content_take_call(convert->content, cpu->cpu);

	if (!call || (convert->chosen && !ky_map_get(convert->chosen, call->tid)))
		return KYMO_OK;
	return convert_call(cpu, call, err);
}

static int take_switch(struct ky_convert_cpu *cpu, struct kymo_error *err)
{
	struct ky_switches_slot slot = ky_switches_take(cpu->convert->switches, cpu->cpu);

	return ky_convert_switch(cpu, &slot, err);
}

int ky_convert_calls(struct ky_convert_cpu *cpu, uint64_t until_cycles, struct kymo_error *err)
{
	uint64_t next;
	int ret = KYMO_OK;

	/* UINT64_MAX: none exists, though @until_cycles may still be that number: a damaged page's. */
	while (!ret && (next = ky_convert_next_call(cpu)) <= until_cycles && next < UINT64_MAX)
		ret = next == next_switch(cpu) ? take_switch(cpu, err) : take_call(cpu, err);
	return ret;
}

/* ---- threads of 32-bit programs ------------------------------------------------------- */

void ky_convert_choose_child(const struct ky_convert *convert, uint32_t parent, uint32_t child)
{
	void *is_chosen = convert->chosen ? ky_map_get(convert->chosen, parent) : NULL;

	/* Without memory for it, its calls are missed. */
	if (is_chosen && convert->chosen_follow)
		(void)ky_map_set(convert->chosen, child, is_chosen);
}

void ky_convert_choose_no_more(const struct ky_convert *convert, uint32_t tid)
{
	if (convert->chosen)
		(void)ky_map_del(convert->chosen, tid);
}
