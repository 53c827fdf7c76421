/* SPDX-License-Identifier: MIT */
#include "kernel/process/pid-view.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "kernel/bpf/bpf.h"
#include "kernel/bpf/btf.h"
#include "kernel/process/thread-ids.h"

#define UPID_BYTES 16

/* Of one thread. */
struct record {
	int32_t kernel, own;
	uint32_t level, reserved;
};

/* Where the kernel's structs have what is wanted: bytes. */
struct layout {
	int pid, thread_pid, level, numbers;
};

/* ---- the program ------------------------------------------------------------------------ */

enum { R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, FP };

/* The stack. */
enum {
	S_RECORD = -16,
	S_LEVEL = S_RECORD + 8,
	S_WORD = -24,
};

/* @len bytes at @base + @offset go to @slot. */
static void read_kernel(struct ky_bpf_asm *a, int16_t slot, int32_t len, uint8_t base, int offset)
{
	ky_bpf_move(a, R1, FP);
	ky_bpf_alu_imm(a, BPF_ADD, R1, slot);
	ky_bpf_move_imm(a, R2, len);
	ky_bpf_move(a, R3, base);
	ky_bpf_alu_imm(a, BPF_ADD, R3, offset);
	ky_bpf_call(a, BPF_FUNC_probe_read_kernel);
}

/*
 * For each task of the reader's namespace: task->pid, and task->thread_pid->numbers[level].nr, the level being that of
 * the reader.
 */
static void write_program(struct ky_bpf_asm *a, const struct layout *layout)
{
	int out = ky_bpf_label(a);

	ky_bpf_move(a, R6, R1);
	ky_bpf_load(a, BPF_DW, R7, R6, 8);
	ky_bpf_jump(a, BPF_JEQ, R7, 0, out);
	ky_bpf_store_imm(a, BPF_DW, FP, S_RECORD, 0);
	ky_bpf_store_imm(a, BPF_DW, FP, S_LEVEL, 0);
	ky_bpf_store_imm(a, BPF_DW, FP, S_WORD, 0);
	ky_bpf_call(a, BPF_FUNC_get_current_task);
	ky_bpf_move(a, R8, R0);
	read_kernel(a, S_WORD, 8, R8, layout->thread_pid);
	ky_bpf_load(a, BPF_DW, R8, FP, S_WORD);
	read_kernel(a, S_LEVEL, 4, R8, layout->level);
	read_kernel(a, S_RECORD, 4, R7, layout->pid);
	read_kernel(a, S_WORD, 8, R7, layout->thread_pid);
	ky_bpf_load(a, BPF_DW, R8, FP, S_WORD);
	ky_bpf_load(a, BPF_W, R1, FP, S_LEVEL);
	ky_bpf_alu_imm(a, BPF_AND, R1, 63);
	ky_bpf_alu_imm(a, BPF_MUL, R1, UPID_BYTES);
	ky_bpf_alu(a, BPF_ADD, R8, R1);
	read_kernel(a, S_RECORD + 4, 4, R8, layout->numbers);
	ky_bpf_load(a, BPF_DW, R1, R6, 0);
	ky_bpf_load(a, BPF_DW, R1, R1, 0);
	ky_bpf_move(a, R2, FP);
	ky_bpf_alu_imm(a, BPF_ADD, R2, S_RECORD);
	ky_bpf_move_imm(a, R3, sizeof(struct record));
	ky_bpf_call(a, BPF_FUNC_seq_write);
	ky_bpf_place(a, out);
	ky_bpf_move_imm(a, R0, 0);
	ky_bpf_exit(a);
}

static int load_program(struct kymo_error *err)
{
	struct ky_bpf_asm a = {0};
	struct layout layout;
	struct ky_btf btf;
	uint32_t function;
	int nr, fd;

	ky_btf_init(&btf, NULL);
	function = ky_btf_function(&btf, "bpf_iter_task");
	layout.pid = ky_btf_member(&btf, "task_struct", "pid");
	layout.thread_pid = ky_btf_member(&btf, "task_struct", "thread_pid");
	layout.level = ky_btf_member(&btf, "pid", "level");
	layout.numbers = ky_btf_member(&btf, "pid", "numbers");
	nr = ky_btf_member(&btf, "upid", "nr");
	ky_btf_fini(&btf);
	if (!function || layout.pid < 0 || layout.thread_pid < 0 || layout.level < 0 ||
	    layout.numbers < 0 || nr < 0)
		return ky_error_set(
			err, KYMO_E_UNSUPPORTED,
			"this kernel does not tell the ids of its threads (BTF, Linux 5.8)");
	layout.numbers += nr;
	write_program(&a, &layout);
	fd = ky_bpf_load_iterator(&a, function, "kymo_pids", err);
	ky_bpf_asm_fini(&a);
	return fd;
}

/* ---- both kinds ------------------------------------------------------------------------- */

static void *value_of(int32_t id)
{
	return (void *)(uintptr_t)(uint32_t)id;
}

static int take(struct ky_pid_view *view, const struct record *record)
{
	/* Never another one: others read it without the lock. */
	if (view->level != record->level)
		view->level = record->level;
	/* Threads that have just ended have none here. */
	if (record->own <= 0 || record->kernel <= 0)
		return KYMO_OK;
	if (ky_map_set(&view->kernel_of, (uint32_t)record->own, value_of(record->kernel)) < 0 ||
	    ky_map_set(&view->own_of, (uint32_t)record->kernel, value_of(record->own)) < 0)
		return KYMO_E_MEMORY;
	return KYMO_OK;
}

static int read_all(struct ky_pid_view *view, int fd, struct kymo_error *err)
{
	struct record records[256];
	size_t have = 0;
	ssize_t n;
	int ret = KYMO_OK;

	while (!ret && (n = read(fd, (char *)records + have, sizeof(records) - have)) != 0) {
		size_t i = 0;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return ky_error_errno(err, errno, "cannot read the ids of threads");
		have += (size_t)n;
		for (; !ret && (i + 1) * sizeof(*records) <= have; i++)
			ret = take(view, &records[i]);
		have -= i * sizeof(*records);
		memmove(records, &records[i], have);
	}
	return ret < 0 ? ky_error_nomem(err) : KYMO_OK;
}

static int refresh_locked(struct ky_pid_view *view, struct kymo_error *err)
{
	int fd = ky_bpf_iterate(view->program, err), ret;

	if (fd < 0)
		return fd;
	ky_map_fini(&view->kernel_of);
	ky_map_fini(&view->own_of);
	ky_map_init(&view->kernel_of);
	ky_map_init(&view->own_of);
	ret = read_all(view, fd, err);
	close(fd);
	return ret;
}

int ky_pid_view_refresh(struct ky_pid_view *view, struct kymo_error *err)
{
	int ret;

	if (!view->is_foreign)
		return KYMO_OK;
	pthread_mutex_lock(&view->lock);
	ret = refresh_locked(view, err);
	pthread_mutex_unlock(&view->lock);
	return ret;
}

int32_t ky_pid_to_kernel(struct ky_pid_view *view, int32_t own)
{
	void *kernel;

	if (!view->is_foreign)
		return own;
	pthread_mutex_lock(&view->lock);
	kernel = ky_map_get(&view->kernel_of, (uint32_t)own);
	if (!kernel && own > 0 && refresh_locked(view, NULL) == 0)
		kernel = ky_map_get(&view->kernel_of, (uint32_t)own);
	pthread_mutex_unlock(&view->lock);
	return (int32_t)(uintptr_t)kernel;
}

int32_t ky_pid_to_own(struct ky_pid_view *view, int32_t kernel)
{
	void *own;

	if (!view->is_foreign)
		return kernel;
	pthread_mutex_lock(&view->lock);
	own = ky_map_get(&view->own_of, (uint32_t)kernel);
	pthread_mutex_unlock(&view->lock);
	return (int32_t)(uintptr_t)own;
}

/* Is /proc that of this namespace? Another's has other ids again. */
static int check_proc(struct kymo_error *err)
{
	char text[32] = "";
	ssize_t n = readlink("/proc/self", text, sizeof(text) - 1);
	int ret;

	if (n > 0 && strtol(text, NULL, 10) == getpid())
		return KYMO_OK;
	ret = ky_error_set(err, KYMO_E_UNSUPPORTED, "/proc is of another pid namespace");
	ky_error_hint(err, "mount this one's: mount -t proc proc /proc");
	return ret;
}

int ky_pid_view_open(struct ky_pid_view *view, struct kymo_error *err)
{
	struct stat st;
	int ret;

	memset(view, 0, sizeof(*view));
	if (stat("/proc/self/ns/pid", &st) < 0 || st.st_ino == KY_NS_FIRST_PID)
		return KYMO_OK;
	view->program = -1;
	pthread_mutex_init(&view->lock, NULL);
	ky_map_init(&view->kernel_of);
	ky_map_init(&view->own_of);
	ret = check_proc(err);
	if (!ret)
		ret = view->program = load_program(err);
	if (ret >= 0)
		ret = refresh_locked(view, err);
	view->is_foreign = ret >= 0;
	view->is_blind = ret < 0;
	return ret;
}

void ky_pid_view_close(struct ky_pid_view *view)
{
	if (!view->is_foreign && !view->is_blind)
		return;
	if (view->program >= 0)
		close(view->program);
	ky_map_fini(&view->kernel_of);
	ky_map_fini(&view->own_of);
	pthread_mutex_destroy(&view->lock);
	memset(view, 0, sizeof(*view));
}
