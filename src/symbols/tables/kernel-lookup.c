/* SPDX-License-Identifier: MIT */
#include "symbols/tables/kernel-lookup.h"

#include <linux/bpf.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <kymo/error.h>

#define TEXT_BYTES 1024

/* What the program reads and writes. */
struct ky_kernel_text {
	uint64_t address;
	char text[TEXT_BYTES]; /* "vfs_read+0x1a/0x2c0 [module]" */
	char rest[4096 - 8 - TEXT_BYTES];
};

static int bpf(int command, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, command, attr, sizeof(*attr));
}

static int create_map(uint32_t bytes, uint32_t flags)
{
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_ARRAY,
		.key_size = sizeof(uint32_t),
		.value_size = bytes,
		.max_entries = 1,
		.map_flags = flags,
	};

	return bpf(BPF_MAP_CREATE, &attr);
}

/* A map that nobody can change any more, as the kernel asks of texts of formats. */
static int create_format(void)
{
	static const char format[8] = "%pS";
	const uint32_t key = 0;
	int fd = create_map(sizeof(format), BPF_F_RDONLY_PROG);
	union bpf_attr update = {
		.map_fd = (uint32_t)fd,
		.key = (uintptr_t)&key,
		.value = (uintptr_t)format,
	};
	union bpf_attr freeze = {.map_fd = (uint32_t)fd};

	if (fd >= 0 &&
	    (bpf(BPF_MAP_UPDATE_ELEM, &update) < 0 || bpf(BPF_MAP_FREEZE, &freeze) < 0)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

#define LOAD_VALUE(reg, fd, offset)         \
	{.code = BPF_LD | BPF_DW | BPF_IMM, \
	 .dst_reg = (reg),                  \
	 .src_reg = BPF_PSEUDO_MAP_VALUE,   \
	 .imm = (fd)},                      \
	{                                   \
		.imm = (offset)             \
	}
#define LOAD_NUMBER(reg, number)                                                       \
	{                                                                              \
		.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = (reg), .imm = (number) \
	}

static int load_program(int data, int format)
{
	const struct bpf_insn code[] = {
		LOAD_VALUE(BPF_REG_1, data, offsetof(struct ky_kernel_text, text)),
		LOAD_NUMBER(BPF_REG_2, TEXT_BYTES),
		LOAD_VALUE(BPF_REG_3, format, 0),
		LOAD_VALUE(BPF_REG_4, data, offsetof(struct ky_kernel_text, address)),
		LOAD_NUMBER(BPF_REG_5, sizeof(uint64_t)),
		{.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_snprintf},
		LOAD_NUMBER(BPF_REG_0, 0),
		{.code = BPF_JMP | BPF_EXIT},
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT,
		.insn_cnt = sizeof(code) / sizeof(code[0]),
		.insns = (uintptr_t)code,
		.license = (uintptr_t) "Dual MIT/GPL",
	};

	return bpf(BPF_PROG_LOAD, &attr);
}

bool ky_kernel_lookup_open(struct ky_kernel_lookup *lookup)
{
	*lookup = (struct ky_kernel_lookup){.program = -1, .format = -1};
	ky_arena_init(&lookup->texts);
	lookup->data = create_map(sizeof(*lookup->text), BPF_F_MMAPABLE);
	if (lookup->data >= 0)
		lookup->format = create_format();
	if (lookup->format >= 0)
		lookup->program = load_program(lookup->data, lookup->format);
	if (lookup->program >= 0)
		lookup->text = mmap(NULL, sizeof(*lookup->text), PROT_READ | PROT_WRITE, MAP_SHARED,
				    lookup->data, 0);
	if (lookup->text == MAP_FAILED)
		lookup->text = NULL;
	return lookup->text != NULL;
}

static void kernel_lookup_close(int fd)
{
	if (fd >= 0)
		close(fd);
}

void ky_kernel_lookup_fini(struct ky_kernel_lookup *lookup)
{
	if (lookup->text)
		munmap(lookup->text, sizeof(*lookup->text));
	lookup->text = NULL;
	kernel_lookup_close(lookup->program);
	kernel_lookup_close(lookup->format);
	kernel_lookup_close(lookup->data);
	ky_vec_fini(&lookup->functions);
	ky_arena_fini(&lookup->texts);
}

/* The number of functions that begin at or before @address. */
static size_t kernel_lookup_behind(const struct ky_kernel_lookup *lookup, uint64_t address)
{
	size_t low = 0, high = lookup->functions.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (lookup->functions.data[middle].begin <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* "name+0x10/0x200 [module]"; a number where there is no function. */
static bool kernel_lookup_parse(struct ky_kernel_lookup *lookup, uint64_t address,
				struct ky_kernel_function *function)
{
	char *text = lookup->text->text, *plus, *slash, *end;
	uint64_t offset, bytes;

	text[TEXT_BYTES - 1] = '\0';
	plus = strchr(text, '+');
	slash = plus ? strchr(plus, '/') : NULL;
	if (!slash || plus == text)
		return false;
	offset = strtoull(plus + 1, &end, 16);
	bytes = strtoull(slash + 1, &end, 16);
	*plus = '\0';
	function->begin = address - offset;
	function->end = function->begin + bytes > address ? function->begin + bytes : address + 1;
	function->name = ky_arena_strdup(&lookup->texts, text);
	function->module = *end == ' ' ? ky_arena_strdup(&lookup->texts, end + 1) : "[kernel]";
	return true;
}

int ky_kernel_lookup_find(struct ky_kernel_lookup *lookup, uint64_t address,
			  const struct ky_kernel_function **found)
{
	union bpf_attr attr = {.test.prog_fd = (uint32_t)lookup->program};
	struct ky_kernel_function function;
	size_t at = kernel_lookup_behind(lookup, address);

	*found = at ? &lookup->functions.data[at - 1] : NULL;
	if (*found && address < (*found)->end)
		return 1;
	if (lookup->functions.len >= KY_KERNEL_LOOKUP_MAX)
		return KYMO_E_LIMIT;
	lookup->text->address = address;
	lookup->text->text[0] = '\0';
	if (bpf(BPF_PROG_TEST_RUN, &attr) < 0 || !kernel_lookup_parse(lookup, address, &function))
		return 0;
	if (!function.name || !function.module || ky_vec_reserve(&lookup->functions, 1) < 0)
		return KYMO_E_MEMORY;
	at = kernel_lookup_behind(lookup, function.begin);
	memmove(lookup->functions.data + at + 1, lookup->functions.data + at,
		(lookup->functions.len - at) * sizeof(function));
	lookup->functions.data[at] = function;
	lookup->functions.len++;
	*found = &lookup->functions.data[at];
	return 1;
}
