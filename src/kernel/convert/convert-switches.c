/* SPDX-License-Identifier: MIT */
/* Switches that no page has: each is laid out as the ring would have it, and converted like the others. */
#include <string.h>

#include "kernel/convert/convert-plan.h"
#include "kernel/convert/convert-record.h"
#include "kernel/switches/switches.h"

/* Bits of common_flags: interrupts are off in the scheduler. */
#define IRQS_OFF 0x01

/* Where the record has the field that the kernel calls @name; NULL: nowhere, or it is of another size. */
static uint8_t *convert_switches_place_of(const struct ky_convert_plan *plan, const char *name,
					  size_t size, uint8_t *data)
{
	for (size_t i = 0; i < plan->n_fields; i++) {
		const struct ky_event_field *field = &plan->fields[i];

		if (strcmp(field->kernel_name, name) == 0)
			return field->size == size && field->offset + size <= KY_SWITCH_RECORD_BYTES
				       ? data + field->offset
				       : NULL;
	}
	return NULL;
}

static void convert_switches_put(const struct ky_convert_plan *plan, const char *name,
				 const void *value, size_t size, uint8_t *data)
{
	uint8_t *at = convert_switches_place_of(plan, name, size, data);

	if (at)
		memcpy(at, value, size);
}

int ky_convert_switch(struct ky_convert_cpu *cpu, const struct ky_switches_slot *slot,
		      struct kymo_error *err)
{
	const struct ky_convert *convert = cpu->convert;
	const struct ky_convert_plan *plan = convert->plans[convert->switch_id];
	uint8_t data[KY_SWITCH_RECORD_BYTES] = {0};

	memcpy(data, &convert->switch_id, sizeof(convert->switch_id));
	data[2] = IRQS_OFF;
	convert_switches_put(plan, "prev_comm", slot->prev_comm, sizeof(slot->prev_comm), data);
	convert_switches_put(plan, "prev_prio", &slot->prev_prio, 4, data);
	convert_switches_put(plan, "next_comm", slot->next_comm, sizeof(slot->next_comm), data);
	convert_switches_put(plan, "next_pid", &slot->next_tid, 4, data);
	convert_switches_put(plan, "next_prio", &slot->next_prio, 4, data);
	/* The clocks of both sources are compared by measuring: a neighbour may seem some ns younger. */
	cpu->cycles =
		slot->time_ns > cpu->writer.last_cycles ? slot->time_ns : cpu->writer.last_cycles;
	return ky_convert_foreign(cpu, plan, data, sizeof(data), err);
}

/*
 * The BPF program gets a switch before the ring does, because it is attached first. So if the ring has the switches from idle,
 * the record after the one of the program is the same switch.
 */
void ky_convert_compare_switch(const struct ky_convert_cpu *cpu, const uint8_t *data, uint32_t len)
{
	const struct ky_convert *convert = cpu->convert;
	uint16_t type;

	if (!convert->switches || cpu->of_group || len < 8)
		return;
	memcpy(&type, data, sizeof(type));
	if (type == convert->switch_id && ky_record_word(data + 4) == 0)
		ky_switches_in_ring(convert->switches, cpu->cpu);
}

bool ky_convert_set_switches(struct ky_convert *convert, uint16_t id, struct ky_switches *switches)
{
	const struct ky_convert_plan *plan = id < convert->n_plans ? convert->plans[id] : NULL;

	if (!plan || plan->src_bytes > KY_SWITCH_RECORD_BYTES)
		return false;
	convert->switch_id = id;
	convert->switches = switches;
	return true;
}
