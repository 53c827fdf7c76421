/* SPDX-License-Identifier: MIT */
#include "import/perf/perf-stacks.h"

#include <string.h>
#include <sys/utsname.h>

#include "base/error.h"

#define MISC_COMM_EXEC (1u << 13)
#define EXECUTABLE     4u

void ky_perf_stacks_fini(struct ky_perf_stacks *stacks)
{
	if (!stacks->has_begun)
		return;
	ky_unwind_free(stacks->unwind);
	ky_sample_processes_fini(&stacks->processes);
}

/* Registers have this machine's numbers. */
static bool perf_stacks_is_own_kind(const struct ky_perf_file *perf)
{
	struct utsname name;

	return !perf->file.swap && perf->arch && uname(&name) == 0 &&
	       strcmp(perf->arch, name.machine) == 0;
}

static void perf_stacks_begin(struct ky_perf_stacks *stacks, const struct ky_perf_file *perf)
{
	stacks->has_begun = true;
	ky_sample_processes_init(&stacks->processes);
	stacks->processes.is_foreign = true;
	if (!perf_stacks_is_own_kind(perf) || !ky_unwind_registers() ||
	    ky_unwind_new(&stacks->unwind, true, ky_perf_boot_is_here(perf), NULL) < 0)
		stacks->unwind = NULL;
}

/* {header, u32 pid, tid, u64 begin, length, offset, (union with a build ID, u32 protection, flags), name} */
static int perf_stacks_map(struct ky_perf_stacks *stacks, struct ky_perf_file *perf,
			   const struct ky_perf_head *head)
{
	bool swap = perf->file.swap, is_2 = head->type == KY_PERF_MMAP2, told;
	uint32_t name_at = is_2 ? 72 : 40;
	const struct ky_perf_build_id *id;
	const char *path = (const char *)head->bytes + name_at;
	struct ky_sample_map map = {.protection = EXECUTABLE};

	if (head->size <= name_at || strnlen(path, head->size - name_at) == head->size - name_at ||
	    (is_2 && !(ky_foreign_u32(head->bytes + 64, swap) & EXECUTABLE)))
		return KYMO_OK;
	map.begin = ky_foreign_u64(head->bytes + 16, swap);
	map.end = map.begin + ky_foreign_u64(head->bytes + 24, swap);
	map.offset = ky_foreign_u64(head->bytes + 32, swap);
	map.path = (char *)(uintptr_t)path;
	id = ky_names_get(&perf->build_ids, path);
	map.build_id_bytes = ky_perf_map_build_id(perf, head);
	if (map.build_id_bytes) {
		memcpy(map.build_id, head->bytes + 44, map.build_id_bytes);
	} else if (id) {
		map.build_id_bytes = id->n;
		memcpy(map.build_id, id->bytes, id->n);
	}
	return ky_sample_processes_map(
		&stacks->processes, (int32_t)ky_foreign_u32(head->bytes + 8, swap), &map, 0, &told);
}

static int32_t perf_stacks_number(const struct ky_perf_file *perf, const struct ky_perf_head *head,
				  uint32_t at)
{
	return at + 4 <= head->size ? (int32_t)ky_foreign_u32(head->bytes + at, perf->file.swap)
				    : 0;
}

int ky_perf_stacks_record(struct ky_perf_stacks *stacks, struct ky_perf_file *perf,
			  const struct ky_perf_head *head)
{
	int32_t first = perf_stacks_number(perf, head, 8),
		second = perf_stacks_number(perf, head, 12);

	if (!perf->has_user_stacks)
		return KYMO_OK;
	if (!stacks->has_begun)
		perf_stacks_begin(stacks, perf);
	switch (head->type) {
	case KY_PERF_MMAP:
	case KY_PERF_MMAP2:
		return perf_stacks_map(stacks, perf, head);
	case KY_PERF_COMM:
		if (!(head->misc & MISC_COMM_EXEC))
			return KYMO_OK;
		return ky_sample_processes_name(&stacks->processes, first, second, "", true);
	case KY_PERF_FORK:
		return ky_sample_processes_fork(&stacks->processes, first,
						perf_stacks_number(perf, head, 16), second,
						perf_stacks_number(perf, head, 20));
	default:
		return KYMO_OK;
	}
}

uint32_t ky_perf_stacks_unwind(struct ky_perf_stacks *stacks, struct ky_perf_file *perf,
			       const struct ky_perf_sample *sample)
{
	uint64_t needed = ky_unwind_registers(), registers[64];
	struct ky_unwind_copy copy = {
		.mask = sample->attr->user_registers,
		.registers = registers,
		.n_registers = (uint32_t)__builtin_popcountll(sample->attr->user_registers),
		.stack = sample->stack,
		.stack_bytes = sample->stack_bytes,
	};
	struct ky_sample_process *process;

	if (!sample->registers || !sample->stack)
		return 0;
	if (!stacks->has_begun)
		perf_stacks_begin(stacks, perf);
	process = stacks->unwind && sample->pid && (copy.mask & needed) == needed
			  ? ky_sample_process(&stacks->processes, (int32_t)sample->pid)
			  : NULL;
	if (!process || !process->maps) {
		stacks->n_left_out++;
		return 0;
	}
	memcpy(registers, sample->registers, copy.n_registers * sizeof(registers[0]));
	return ky_unwind(stacks->unwind, process, &copy, stacks->frames);
}
