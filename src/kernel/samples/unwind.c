/* SPDX-License-Identifier: MIT */
#include "kernel/samples/unwind.h"

#include <asm/perf_regs.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "os/elf-file.h"
#include "os/file.h"
#include "os/memory-limit.h"
#include "symbols/dwarf/elf-guard.h"
#include "symbols/dwarf/libdw.h"

/* ---- registers ---------------------------------------------------------------------------- */

/* DWARF's numbers in their order, as perf calls them; then the program counter. */
#if defined(__x86_64__)
static const uint8_t registers[] = {
	PERF_REG_X86_AX,  PERF_REG_X86_DX,  PERF_REG_X86_CX,  PERF_REG_X86_BX,	PERF_REG_X86_SI,
	PERF_REG_X86_DI,  PERF_REG_X86_BP,  PERF_REG_X86_SP,  PERF_REG_X86_R8,	PERF_REG_X86_R9,
	PERF_REG_X86_R10, PERF_REG_X86_R11, PERF_REG_X86_R12, PERF_REG_X86_R13, PERF_REG_X86_R14,
	PERF_REG_X86_R15, PERF_REG_X86_IP,
};
#define STACK_POINTER	PERF_REG_X86_SP
#define PROGRAM_COUNTER PERF_REG_X86_IP
#define N_REGISTERS	(sizeof(registers) / sizeof(registers[0]))
#elif defined(__aarch64__)
static const uint8_t registers[] = {
	0,  1,	2,  3,	4,  5,	6,  7,	8,  9,	10, 11, 12, 13, 14, 15,
	16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, PERF_REG_ARM64_SP,
};
#define STACK_POINTER	PERF_REG_ARM64_SP
#define PROGRAM_COUNTER PERF_REG_ARM64_PC
#define N_REGISTERS	(sizeof(registers) / sizeof(registers[0]))
#else
static const uint8_t registers[1];
#define STACK_POINTER	0
#define PROGRAM_COUNTER 0
#define N_REGISTERS	0
#endif

uint64_t ky_unwind_registers(void)
{
	uint64_t mask = 0;

	for (size_t i = 0; i < N_REGISTERS; i++)
		mask |= UINT64_C(1) << registers[i];
	return mask ? mask | UINT64_C(1) << PROGRAM_COUNTER : 0;
}

/* Register @number of the copy, which has those of the mask alone. */
static uint64_t unwind_register(const struct ky_unwind_copy *copy, unsigned int number)
{
	uint64_t below = copy->mask & ((UINT64_C(1) << number) - 1);
	unsigned int at = (unsigned int)__builtin_popcountll(below);

	return at < copy->n_registers ? copy->registers[at] : 0;
}

/* ---- processes ---------------------------------------------------------------------------- */

struct unwind_process {
	int32_t pid; /* 0: free */
	struct ky_unwind *owner;
	uint64_t version, used;
	int64_t kept_bytes; /* of memory that its stacks have left behind, as far as other threads let this be seen */
	uint32_t n_slow;
	Dwfl *dwfl;
	struct ky_elf_guards guards; /* of its files */
	/* Of the stack in hand: */
	const struct ky_unwind_copy *copy;
	uint64_t *frames;
	uint32_t n;
	uint64_t begin_ns;
};

struct ky_unwind {
	struct unwind_process processes[KY_UNWIND_PROCESSES];
	uint64_t n_used;
	int64_t kept_bytes; /* of all processes, also of those that are closed */
	bool is_foreign, trusts_paths;
};

int ky_unwind_new(struct ky_unwind **unwind, bool is_foreign, bool trusts_paths,
		  struct kymo_error *err)
{
	int ret = ky_libdw_load(err);

	if (ret < 0)
		return ret;
	*unwind = calloc(1, sizeof(**unwind));
	if (!*unwind)
		return ky_error_nomem(err);
	(*unwind)->is_foreign = is_foreign;
	(*unwind)->trusts_paths = trusts_paths;
	return KYMO_OK;
}

/* The memory in use was @before_bytes. */
static void unwind_count_bytes(struct unwind_process *process, size_t before_bytes)
{
	int64_t more = (int64_t)mallinfo2().uordblks - (int64_t)before_bytes;

	process->kept_bytes += more;
	process->owner->kept_bytes += more;
}

static void unwind_close(struct unwind_process *process)
{
	size_t before = mallinfo2().uordblks;

	ky_elf_guards_fini(&process->guards);
	if (process->dwfl)
		dwfl_end(process->dwfl);
	process->dwfl = NULL;
	if (process->owner)
		unwind_count_bytes(process, before);
}

static void unwind_end(struct unwind_process *process)
{
	unwind_close(process);
	*process = (struct unwind_process){0};
}

void ky_unwind_free(struct ky_unwind *unwind)
{
	for (size_t i = 0; unwind && i < KY_UNWIND_PROCESSES; i++)
		unwind_end(&unwind->processes[i]);
	free(unwind);
}

/* ---- what libdwfl asks -------------------------------------------------------------------- */

static pid_t unwind_next_thread(Dwfl *dwfl, void *data, void **thread)
{
	struct unwind_process *process = data;

	(void)dwfl;
	if (*thread)
		return 0;
	*thread = process;
	return process->pid;
}

static bool unwind_get_thread(Dwfl *dwfl, pid_t tid, void *data, void **thread)
{
	(void)dwfl;
	(void)tid;
	*thread = data;
	return true;
}

/* Only the copy of the stack: what else unwinding needs is in the files. */
static bool unwind_read(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *word, void *data)
{
	const struct unwind_process *process = data;
	const struct ky_unwind_copy *copy = process->copy;
	uint64_t begin = unwind_register(copy, STACK_POINTER);

	(void)dwfl;
	if (address < begin || copy->stack_bytes < sizeof(*word) ||
	    address - begin > copy->stack_bytes - sizeof(*word))
		return false;
	memcpy(word, copy->stack + (address - begin), sizeof(*word));
	return true;
}

static bool unwind_set_registers(Dwfl_Thread *thread, void *data)
{
	const struct unwind_process *process = data;
	Dwarf_Word words[N_REGISTERS + 1];

	for (size_t i = 0; i < N_REGISTERS; i++)
		words[i] = unwind_register(process->copy, registers[i]);
	dwfl_thread_state_register_pc(thread, unwind_register(process->copy, PROGRAM_COUNTER));
	return dwfl_thread_state_registers(thread, 0, N_REGISTERS, words);
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = unwind_next_thread,
	.get_thread = unwind_get_thread,
	.memory_read = unwind_read,
	.set_initial_registers = unwind_set_registers,
};

static int unwind_no_debug(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
			   const char *file, const char *link, GElf_Word crc, char **found)
{
	(void)module, (void)data, (void)name, (void)base, (void)file, (void)link, (void)crc;
	(void)found;
	return -1;
}

/* As the process sees it, while it runs. */
static int unwind_open_file(const struct unwind_process *process, const char *path)
{
	int32_t pid = process->pid;
	char place[4200];
	int fd;

	if (process->owner->is_foreign)
		return ky_file_open_regular(AT_FDCWD, path, O_RDONLY);
	snprintf(place, sizeof(place), "/proc/%" PRId32 "/root%s", pid, path);
	fd = ky_file_open_regular(AT_FDCWD, place, O_RDONLY);
	return fd >= 0 ? fd : ky_file_open_regular(AT_FDCWD, path, O_RDONLY);
}

/* The vdso is the same in all programs of 64 bits; two pages are what every kernel has there. */
static int unwind_find_vdso(Elf **elf)
{
	unsigned long vdso = getauxval(AT_SYSINFO_EHDR);

	*elf = vdso ? elf_memory((char *)vdso, 8192) : NULL;
	return -1;
}

/* A file is opened when a frame of it is looked at. */
static int unwind_find_elf(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
			   char **file, Elf **elf)
{
	struct unwind_process *process = *data;
	int fd;

	(void)module, (void)base;
	if (strcmp(name, "[vdso]") == 0)
		return unwind_find_vdso(elf);
	fd = process ? unwind_open_file(process, name) : -1;
	if (fd < 0)
		return -1;
	*elf = ky_elf_guards_open(&process->guards, fd);
	*file = *elf ? strdup(name) : NULL;
	if (*elf)
		return fd;
	close(fd);
	return -1;
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = unwind_find_elf,
	.find_debuginfo = unwind_no_debug,
	.section_address = dwfl_offline_section_address,
};

/* ---- files -------------------------------------------------------------------------------- */

#define SEGMENTS_MAX 64

/* Where the file's first segment lies, if what is at @map->offset of it lies at @map->begin. 0: unknown. */
static uint64_t unwind_base(int fd, const struct ky_sample_map *map)
{
	Elf64_Ehdr head;
	Elf64_Phdr segments[SEGMENTS_MAX];
	uint64_t first = UINT64_MAX, bias = 0;
	bool found = false;
	size_t n;

	if (pread(fd, &head, sizeof(head), 0) != sizeof(head) ||
	    memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 ||
	    head.e_phentsize != sizeof(segments[0]))
		return 0;
	n = head.e_phnum < SEGMENTS_MAX ? head.e_phnum : SEGMENTS_MAX;
	if (pread(fd, segments, n * sizeof(segments[0]), (off_t)head.e_phoff) !=
	    (ssize_t)(n * sizeof(segments[0])))
		return 0;
	for (size_t i = 0; i < n; i++) {
		const Elf64_Phdr *at = &segments[i];

		if (at->p_type != PT_LOAD)
			continue;
		first = at->p_vaddr < first ? at->p_vaddr : first;
		/* Mappings begin with a page. */
		if (found || map->offset + 4096 <= at->p_offset ||
		    map->offset >= at->p_offset + at->p_filesz || !(at->p_flags & PF_X))
			continue;
		found = true;
		bias = map->begin - (at->p_vaddr - at->p_offset + map->offset);
	}
	return found ? bias + (first & ~UINT64_C(4095)) : 0;
}

/* Is the file at the path the one that was mapped? */
static bool unwind_is_file(const struct unwind_process *process, int fd,
			   const struct ky_sample_map *map)
{
	struct ky_elf_info info;

	if (!process->owner->is_foreign || (!map->build_id_bytes && process->owner->trusts_paths))
		return true;
	return map->build_id_bytes && ky_elf_read(fd, &info) &&
	       info.build_id_bytes == map->build_id_bytes &&
	       memcmp(info.build_id, map->build_id, map->build_id_bytes) == 0;
}

static void unwind_report(struct unwind_process *process, const struct ky_sample_map *map)
{
	uint64_t base = map->begin;
	Dwfl_Module *module;
	void **data;
	int fd;

	if (map->path[0] == '/') {
		fd = unwind_open_file(process, map->path);
		base = fd >= 0 && unwind_is_file(process, fd, map) ? unwind_base(fd, map) : 0;
		if (fd >= 0)
			close(fd);
	} else if (strcmp(map->path, "[vdso]") != 0 || !process->owner->trusts_paths) {
		return;
	}
	module = base && base < map->end
			 ? dwfl_report_module(process->dwfl, map->path, base, map->end)
			 : NULL;
	if (!module)
		return;
	dwfl_module_info(module, &data, NULL, NULL, NULL, NULL, NULL, NULL);
	*data = process;
}

static bool unwind_begin(struct unwind_process *to, const struct ky_sample_process *process)
{
	to->pid = process->pid;
	to->version = process->version;
	to->dwfl = dwfl_begin(&callbacks);
	if (!to->dwfl)
		return false;
	dwfl_report_begin(to->dwfl);
	ky_vec_foreach(&process->maps->maps, map)
		unwind_report(to, map);
	return dwfl_report_end(to->dwfl, NULL, NULL) == 0 &&
	       dwfl_attach_state(to->dwfl, NULL, process->pid, &thread_callbacks, to);
}

/* NULL: none of its files can be read. */
static struct unwind_process *unwind_process(struct ky_unwind *unwind,
					     const struct ky_sample_process *process)
{
	struct unwind_process *found = &unwind->processes[0];
	size_t before;
	bool begins;

	for (size_t i = 0; i < KY_UNWIND_PROCESSES; i++) {
		struct unwind_process *at = &unwind->processes[i];

		if (at->pid == process->pid) {
			found = at;
			break;
		}
		if (at->used < found->used)
			found = at;
	}
	if (found->pid != process->pid || found->version != process->version) {
		unwind_end(found);
		found->owner = unwind;
		before = mallinfo2().uordblks;
		begins = unwind_begin(found, process);
		unwind_count_bytes(found, before);
		if (!begins)
			unwind_close(found);
	}
	found->used = ++unwind->n_used;
	return found->dwfl ? found : NULL;
}

/* ---- the stack ---------------------------------------------------------------------------- */

/*
 * Tables can be made so that each frame evaluates expressions of thousands of steps. elfutils 0.188 does not free the stack of an
 * expression with an operation that it does not know, and takes 32 bytes for each register up to the number that a table
 * names. So a stack has a limit of time and of memory, and processes that go beyond it, or whose stacks leave memory behind
 * again and again, lose their tables. All this is far beyond what compilers write.
 */
#define STACK_BYTES	  (256u << 20)
#define STACK_NS	  20000000u
#define SLOW_MAX	  16
#define FRAMES_PER_LOOK	  8 /* at the clock */
#define KEPT_BYTES_MAX	  (INT64_C(16) << 20)
#define KEPT_BYTES_OF_ALL (INT64_C(256) << 20)

static uint64_t unwind_now_ns(void)
{
	struct timespec now = {0};

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool unwind_is_slow(struct unwind_process *process)
{
	if (process->n % FRAMES_PER_LOOK != FRAMES_PER_LOOK - 1 ||
	    unwind_now_ns() - process->begin_ns < STACK_NS)
		return false;
	process->n_slow++;
	return true;
}

static int unwind_frame(Dwfl_Frame *frame, void *data)
{
	struct unwind_process *process = data;
	Dwarf_Addr pc;

	if (!dwfl_frame_pc(frame, &pc, NULL) || !pc || process->n == KY_UNWIND_FRAMES_MAX)
		return DWARF_CB_ABORT;
	process->frames[process->n++] = pc;
	return unwind_is_slow(process) ? DWARF_CB_ABORT : DWARF_CB_OK;
}

static bool unwind_may_go_on(const struct ky_unwind *unwind, const struct unwind_process *process)
{
	return process->n_slow < SLOW_MAX && process->kept_bytes < KEPT_BYTES_MAX &&
	       unwind->kept_bytes < KEPT_BYTES_OF_ALL;
}

static void unwind_stack(struct unwind_process *process)
{
	size_t before = mallinfo2().uordblks;

	process->begin_ns = unwind_now_ns();
	ky_memory_limit_begin(STACK_BYTES);
	(void)dwfl_getthread_frames(process->dwfl, process->pid, unwind_frame, process);
	ky_memory_limit_end();
	unwind_count_bytes(process, before);
}

uint32_t ky_unwind(struct ky_unwind *unwind, const struct ky_sample_process *process,
		   const struct ky_unwind_copy *copy, uint64_t *frames)
{
	struct unwind_process *of = unwind_process(unwind, process);

	if (of && unwind_may_go_on(unwind, of)) {
		of->copy = copy;
		of->frames = frames;
		of->n = 0;
		unwind_stack(of);
		if (of->n)
			return of->n;
	}
	frames[0] = unwind_register(copy, PROGRAM_COUNTER);
	return frames[0] ? 1 : 0;
}
