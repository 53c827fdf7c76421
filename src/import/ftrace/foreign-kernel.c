/* SPDX-License-Identifier: MIT */
/* The trace of a foreign kernel, and its CPUs. */
#include "import/ftrace/foreign-kernel-internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define PAGE_BYTES (64u << 10)
void ky_foreign_kernel_init(struct ky_foreign_kernel *foreign)
{
	memset(foreign, 0, sizeof(*foreign));
	ky_kernel_trace_init(&foreign->kernel);
	ky_arena_init(&foreign->arena);
	ky_arena_init(&foreign->kernel.catalogue.arena);
	foreign->kernel.clock.frequency_hz = 1000000000;
	foreign->kernel.page_bytes = PAGE_BYTES;
	foreign->dump_stream = -1;
}

static void foreign_kernel_free_cpu(struct ky_foreign_cpu *cpu)
{
	if (!cpu)
		return;
	ky_kernel_cpu_fini(&cpu->cpu);
	free(cpu);
}

void ky_foreign_kernel_fini(struct ky_foreign_kernel *foreign)
{
	ky_vec_foreach(&foreign->cpus, cpu)
		foreign_kernel_free_cpu(*cpu);
	ky_vec_fini(&foreign->cpus);
	ky_packet_writer_fini(&foreign->dump);
	free(foreign->swaps);
	free(foreign->record);
	(void)ky_store_close(foreign->kernel.packets, NULL);
	ky_kernel_trace_fini(&foreign->kernel);
	ky_arena_fini(&foreign->arena);
}

int ky_foreign_kernel_begin(struct ky_foreign_kernel *foreign, struct ky_packet_store *store,
			    uint64_t begin_ns, struct kymo_error *err)
{
	const struct ky_store_place place = {.path = "kernel"};
	struct ky_kernel_trace *kernel = &foreign->kernel;
	int ret = ky_kernel_trace_make_uuid(kernel, err);

	kernel->start_cycles = foreign->last_ns = begin_ns;
	/* Names in the events' formats are worth what the file's kernel says, which is unknown; not what this one says. */
	kernel->has_constants = true;
	/* System calls get their events when the first of them comes. */
	kernel->grows = foreign->raw_entry_id || foreign->raw_exit_id;
	if (!ret && foreign->has_stacks)
		ret = ky_foreign_add_stacks(foreign, err);
	if (!ret)
		ret = ky_convert_init(&kernel->convert, kernel->context, err);
	if (!ret)
		ret = ky_kernel_trace_build(kernel, err);
	if (!ret)
		ret = ky_store_open(store, &place, &kernel->packets, err);
	foreign->has_begun = !ret;
	return ret;
}

/* ---- CPUs ----------------------------------------------------------------------------- */

static int foreign_kernel_new_cpu(struct ky_foreign_kernel *foreign, uint32_t number,
				  struct kymo_error *err)
{
	struct ky_foreign_cpu *cpu = calloc(1, sizeof(*cpu));
	const struct ky_page nothing = {.cycles = foreign->begins_with_events
							  ? foreign->next_ns
							  : foreign->kernel.start_cycles};
	int ret;

	if (!cpu)
		return ky_error_nomem(err);
	ky_kernel_cpu_init(&cpu->cpu, &foreign->kernel, number);
	cpu->last_ns = nothing.cycles;
	foreign->cpus.data[number] = cpu;
	if (ky_vec_push(&foreign->kernel.cpus, &cpu->cpu) < 0)
		return ky_error_nomem(err);
	ret = ky_kernel_cpu_begin(&cpu->cpu, err);
	/* Begun again, it is packet 1: packet 0 would tell readers that the CPU was recorded from the first event of all traces on. */
	if (!ret && foreign->begins_with_events)
		ky_packet_writer_begin(&cpu->cpu.convert.writer, nothing.cycles);
	return ret < 0 ? ret : ky_convert_page(&cpu->cpu.convert, &nothing, err);
}

struct ky_foreign_cpu *ky_foreign_add_cpu(struct ky_foreign_kernel *foreign, uint32_t number,
					  struct kymo_error *err)
{
	if (number >= KY_FOREIGN_CPUS_MAX) {
		ky_error_set(err, KYMO_E_LIMIT, "CPU %u is above the limit of %u CPUs", number,
			     KY_FOREIGN_CPUS_MAX);
		return NULL;
	}
	while (foreign->cpus.len <= number)
		if (ky_vec_push(&foreign->cpus, NULL) < 0) {
			ky_error_nomem(err);
			return NULL;
		}
	if (foreign_kernel_new_cpu(foreign, number, err) < 0)
		return NULL;
	return foreign->cpus.data[number];
}

/* Tells what was lost before the next record. */
int ky_foreign_tell_lost(struct ky_foreign_cpu *cpu, struct kymo_error *err)
{
	const struct ky_page page = {.cycles = cpu->last_ns, .missed = true, .lost = cpu->lost};

	cpu->lost = 0;
	return ky_convert_page(&cpu->cpu.convert, &page, err);
}

int ky_foreign_kernel_end(struct ky_foreign_kernel *foreign, uint64_t *n_events, uint64_t *n_bad,
			  struct kymo_error *err)
{
	struct ky_kernel_trace *kernel = &foreign->kernel;
	int ret = KYMO_OK, closed;

	*n_events = *n_bad = 0;
	ky_vec_foreach(&foreign->cpus, cpu) {
		if (!*cpu || ret < 0)
			continue;
		ret = (*cpu)->lost ? ky_foreign_tell_lost(*cpu, err) : KYMO_OK;
		*n_events += (*cpu)->cpu.convert.events;
		*n_bad += (*cpu)->cpu.convert.bad;
	}
	if (!ret && foreign->dump.data)
		ret = ky_foreign_send_dump(foreign, err);
	if (!ret)
		ret = ky_kernel_trace_end_streams(kernel, foreign->last_ns, err);
	if (!ret && kernel->n_added)
		ret = ky_trace_class_finish(kernel->trace, true, err);
	if (!ret)
		ret = ky_kernel_trace_write_metadata(kernel, err);
	closed = ky_store_close(kernel->packets, ret < 0 ? NULL : err);
	kernel->packets = NULL;
	return ret < 0 ? ret : closed;
}
