/* SPDX-License-Identifier: MIT */
/*
 * A sample of a program with any bytes as its file, its registers and its stack: the unwinder finds frames by the file's tables, or
 * none. The first byte says what the unwinder knows of the file, and whether the file is truncated between two samples.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernel/samples/unwind.h"
#include "os/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__lsan_default_suppressions(void);

/* elfutils 0.188 does not free the stack of an expression with an operation that it does not know; the unwinder limits that. */
const char *__lsan_default_suppressions(void)
{
	return "leak:expr_eval\nleak:dwfl_getthread_frames\n";
}

/* Where the file and the stack are mapped. */
#define TEXT_BASE   UINT64_C(0x555555554000)
#define TEXT_BYTES  UINT64_C(0x100000)
#define STACK_BASE  UINT64_C(0x7ffc00000000)
#define N_REGISTERS 33 /* at least */

enum {
	IS_FOREIGN = 1,
	TRUSTS_PATHS = 2,
	IS_TRUNCATED = 4,
	IS_CUT_TO_A_PAGE = 8,
};

struct input {
	uint8_t flags, stack_words, stack_at, reserved;
	uint32_t counter; /* the program counter, in the mapping */
	uint64_t registers[N_REGISTERS];
};

static void set_registers(struct input *input, uint64_t mask)
{
	unsigned int n = (unsigned int)__builtin_popcountll(mask);

	/* perf's order: on x86-64 the stack pointer and the program counter are the 8th and 9th register, else the last two. */
#if defined(__x86_64__)
	input->registers[7] = STACK_BASE + input->stack_at;
	input->registers[8] = TEXT_BASE + input->counter;
	(void)n;
#else
	input->registers[n - 2] = STACK_BASE + input->stack_at;
	input->registers[n - 1] = TEXT_BASE + input->counter;
#endif
}

static uint32_t unwind(struct ky_unwind *unwinder, const struct ky_sample_process *process,
		       struct input *input, const uint8_t *stack)
{
	static uint64_t frames[KY_UNWIND_FRAMES_MAX];
	const uint64_t mask = ky_unwind_registers();
	const struct ky_unwind_copy copy = {
		.mask = mask,
		.registers = input->registers,
		.n_registers = (uint32_t)__builtin_popcountll(mask),
		.stack = stack,
		.stack_bytes = input->stack_words * UINT64_C(8),
	};
	uint32_t n;

	set_registers(input, mask);
	n = ky_unwind(unwinder, process, &copy, frames);
	if (n > KY_UNWIND_FRAMES_MAX)
		abort();
	return n;
}

static void sample(struct input *input, const uint8_t *stack, int fd, char *path)
{
	struct ky_sample_map maps[] = {
		{.begin = TEXT_BASE, .end = TEXT_BASE + TEXT_BYTES, .protection = 5, .path = path},
	};
	struct ky_sample_maps all = {.maps = {.data = maps, .len = 1, .cap = 1}};
	const struct ky_sample_process process = {.pid = getpid(), .maps = &all, .version = 1};
	struct ky_unwind *unwinder;

	if (ky_unwind_new(&unwinder, input->flags & IS_FOREIGN, input->flags & TRUSTS_PATHS, NULL) <
	    0)
		abort();
	(void)unwind(unwinder, &process, input, stack);
	if (input->flags & IS_TRUNCATED &&
	    ftruncate(fd, input->flags & IS_CUT_TO_A_PAGE ? 4096 : 0) < 0)
		abort();
	/* Where the first frame was, there may be a caller's address. */
	input->counter = (uint32_t)input->registers[0];
	(void)unwind(unwinder, &process, input, stack);
	ky_unwind_free(unwinder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input;
	uint8_t *stack;
	char path[64];
	size_t bytes;
	int fd;

	if (size < sizeof(input))
		return 0;
	memcpy(&input, data, sizeof(input));
	data += sizeof(input);
	size -= sizeof(input);
	bytes = (size_t)input.stack_words * 8;
	if (size < bytes)
		return 0;
	/* A copy of its own, so that a byte behind it is noticed. */
	stack = malloc(bytes + 1);
	fd = memfd_create("fuzz-unwind", MFD_CLOEXEC);
	if (!stack || fd < 0 || ky_write_all(fd, data + bytes, size - bytes) < 0)
		abort();
	memcpy(stack, data, bytes);
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), fd);
	sample(&input, stack, fd, path);
	close(fd);
	free(stack);
	return 0;
}
