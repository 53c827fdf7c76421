/* SPDX-License-Identifier: MIT */
/* Records and pages of a foreign kernel. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "import/ftrace/foreign-kernel-internal.h"

/* Room for a copy of a record. */
static inline uint8_t *foreign_records_reserve(struct ky_foreign_kernel *foreign, uint32_t len)
{
	uint8_t *record;

	if (__builtin_expect(len <= foreign->record_cap, 1))
		return foreign->record;
	len = len < KY_FOREIGN_STACK_BYTES ? KY_FOREIGN_STACK_BYTES : len;
	record = realloc(foreign->record, len);
	if (!record)
		return NULL;
	foreign->record = record;
	foreign->record_cap = len;
	return record;
}

/* A copy of a record, in this machine's byte order. */
static const uint8_t *foreign_records_turned(struct ky_foreign_kernel *foreign, uint32_t id,
					     const uint8_t *data, uint32_t len)
{
	uint8_t *record = foreign_records_reserve(foreign, len);

	if (!record)
		return NULL;
	memcpy(record, data, len);
	ky_foreign_turn(foreign->swaps[id]->format, record, len);
	return record;
}

/* Behind the record of its event, at the same time: with the event's thread and level. */
static int foreign_records_put_stack(struct ky_foreign_kernel *foreign, struct ky_foreign_cpu *cpu,
				     const uint8_t common[8], uint16_t id, const uint64_t *frames,
				     size_t n, struct kymo_error *err)
{
	uint32_t size = (uint32_t)(n < KY_FOREIGN_STACK_FRAMES ? n : KY_FOREIGN_STACK_FRAMES);
	uint8_t *at = n ? foreign_records_reserve(foreign, KY_FOREIGN_STACK_BYTES) : NULL;

	if (!n)
		return KYMO_OK;
	if (!at)
		return ky_error_nomem(err);
	memset(at, 0, KY_FOREIGN_STACK_BYTES);
	memcpy(at, common, 8);
	memcpy(at, &id, sizeof(id));
	memcpy(at + 8, &size, sizeof(size));
	memcpy(at + 16, frames, size * sizeof(*frames));
	return ky_convert_one(&cpu->cpu.convert, cpu->last_ns, id, at, KY_FOREIGN_STACK_BYTES, err);
}

static int foreign_records_put_stacks(struct ky_foreign_kernel *foreign, struct ky_foreign_cpu *cpu,
				      const uint8_t *record, const struct ky_foreign_stacks *stacks,
				      struct kymo_error *err)
{
	uint8_t common[8];
	int ret;

	memcpy(common, record, sizeof(common));
	ret = foreign_records_put_stack(foreign, cpu, common, KY_FOREIGN_KERNEL_STACK_ID,
					stacks->kernel, stacks->n_kernel, err);
	return ret < 0 ? ret
		       : foreign_records_put_stack(foreign, cpu, common, KY_FOREIGN_USER_STACK_ID,
						   stacks->user, stacks->n_user, err);
}

/*
 * What @data is converted as. A system call of raw_syscalls becomes the event of that call: the first of each adds the event.
 */
static inline int foreign_records_type(struct ky_foreign_kernel *foreign, uint32_t id,
				       const uint8_t *data, uint32_t len, uint16_t *type,
				       struct kymo_error *err)
{
	bool is_exit = id == foreign->raw_exit_id;
	uint64_t number;
	int ret;

	memcpy(type, data, sizeof(*type));
	if (!id || (!is_exit && id != foreign->raw_entry_id) || len < (is_exit ? 24u : 64u))
		return KYMO_OK;
	number = ky_record_long(data + 8);
	if (number >= KY_FOREIGN_CALLS)
		return KYMO_OK;
	if (__builtin_expect(!foreign->calls[is_exit][number], 0)) {
		ret = ky_foreign_add_call(foreign, (uint32_t)number, is_exit, err);
		if (ret < 0)
			return ret;
	}
	if (foreign->calls[is_exit][number] == KY_FOREIGN_CALL_KNOWN)
		*type = (uint16_t)((is_exit ? KY_FOREIGN_EXIT_ID : KY_FOREIGN_ENTRY_ID) + number);
	return KYMO_OK;
}

static int foreign_records_put(struct ky_foreign_kernel *foreign, struct ky_foreign_cpu *cpu,
			       uint32_t id, const uint8_t *data, uint32_t len,
			       const struct ky_foreign_stacks *stacks, struct kymo_error *err)
{
	uint16_t type;
	int ret = cpu->lost ? ky_foreign_tell_lost(cpu, err) : KYMO_OK;

	if (!ret)
		ret = foreign_records_type(foreign, id, data, len, &type, err);
	if (!ret)
		ret = ky_convert_one(&cpu->cpu.convert, cpu->last_ns, type, data, len, err);
	if (!ret && stacks && foreign->has_stacks)
		ret = foreign_records_put_stacks(foreign, cpu, data, stacks, err);
	return ret;
}

int ky_foreign_kernel_record(struct ky_foreign_kernel *foreign, uint32_t number, uint32_t id,
			     uint64_t ns, const uint8_t *data, uint32_t len,
			     const struct ky_foreign_stacks *stacks, struct kymo_error *err)
{
	struct ky_foreign_cpu *cpu;

	foreign->next_ns = ns;
	cpu = ky_foreign_cpu(foreign, number, err);
	if (!cpu)
		return err ? err->code : KYMO_E_MEMORY;
	if (len < 8 || id > UINT16_MAX)
		return KYMO_OK;
	/* The bytes of its type would be taken for another event's. */
	if (foreign->swap && (!foreign->swaps || !foreign->swaps[id]))
		return KYMO_OK;
	if (foreign->swap) {
		data = foreign_records_turned(foreign, id, data, len);
		if (!data)
			return ky_error_nomem(err);
	}
	cpu->last_ns = ns > cpu->last_ns ? ns : cpu->last_ns;
	foreign->last_ns = ns > foreign->last_ns ? ns : foreign->last_ns;
	return foreign_records_put(foreign, cpu, id, data, len, stacks, err);
}

int ky_foreign_kernel_page(struct ky_foreign_kernel *foreign, uint32_t number,
			   const struct ky_page *page, struct kymo_error *err)
{
	struct ky_foreign_cpu *cpu = ky_foreign_cpu(foreign, number, err);
	struct ky_page own = *page;
	int ret;

	if (!cpu)
		return err ? err->code : KYMO_E_MEMORY;
	if (cpu->lost) {
		own.missed = true;
		own.lost += cpu->lost;
		cpu->lost = 0;
	}
	ret = ky_convert_page(&cpu->cpu.convert, &own, err);
	if (!ret)
		ret = ky_convert_run(&cpu->cpu.convert, UINT64_MAX, err);
	if (cpu->cpu.convert.writer.last_cycles > foreign->last_ns)
		foreign->last_ns = cpu->cpu.convert.writer.last_cycles;
	return ret < 0 ? ret : KYMO_OK;
}

int ky_foreign_kernel_lost(struct ky_foreign_kernel *foreign, uint32_t number, uint64_t n,
			   struct kymo_error *err)
{
	struct ky_foreign_cpu *cpu = ky_foreign_cpu(foreign, number, err);

	if (!cpu)
		return err ? err->code : KYMO_E_MEMORY;
	cpu->lost += n;
	return KYMO_OK;
}
