/* SPDX-License-Identifier: MIT */
#include "kernel/bpf/bpf.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"

#define LOG_BYTES (1u << 16)

/* ---- the assembler -------------------------------------------------------------------- */

void ky_bpf_asm_fini(struct ky_bpf_asm *a)
{
	ky_vec_fini(&a->insns);
	ky_vec_fini(&a->labels);
	ky_vec_fini(&a->fixups);
}

static void emit(struct ky_bpf_asm *a, struct bpf_insn insn)
{
	if (ky_vec_push(&a->insns, insn) < 0)
		a->failed = true;
}

int ky_bpf_label(struct ky_bpf_asm *a)
{
	if (ky_vec_push(&a->labels, -1) < 0) {
		a->failed = true;
		return -1;
	}
	return (int)a->labels.len - 1;
}

void ky_bpf_place(struct ky_bpf_asm *a, int label)
{
	if (label >= 0)
		a->labels.data[label] = (int32_t)a->insns.len;
}

void ky_bpf_move(struct ky_bpf_asm *a, uint8_t dst, uint8_t src)
{
	emit(a, (struct bpf_insn){
			.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = dst, .src_reg = src});
}

void ky_bpf_move_imm(struct ky_bpf_asm *a, uint8_t dst, int32_t imm)
{
	emit(a, (struct bpf_insn){.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = dst, .imm = imm});
}

void ky_bpf_alu(struct ky_bpf_asm *a, uint8_t op, uint8_t dst, uint8_t src)
{
	emit(a, (struct bpf_insn){
			.code = (uint8_t)(BPF_ALU64 | op | BPF_X), .dst_reg = dst, .src_reg = src});
}

void ky_bpf_alu_imm(struct ky_bpf_asm *a, uint8_t op, uint8_t dst, int32_t imm)
{
	emit(a, (struct bpf_insn){
			.code = (uint8_t)(BPF_ALU64 | op | BPF_K), .dst_reg = dst, .imm = imm});
}

void ky_bpf_load(struct ky_bpf_asm *a, uint8_t size, uint8_t dst, uint8_t src, int16_t offset)
{
	emit(a, (struct bpf_insn){.code = (uint8_t)(BPF_LDX | BPF_MEM | size),
				  .dst_reg = dst,
				  .src_reg = src,
				  .off = offset});
}

void ky_bpf_store(struct ky_bpf_asm *a, uint8_t size, uint8_t dst, int16_t offset, uint8_t src)
{
	emit(a, (struct bpf_insn){.code = (uint8_t)(BPF_STX | BPF_MEM | size),
				  .dst_reg = dst,
				  .src_reg = src,
				  .off = offset});
}

void ky_bpf_store_imm(struct ky_bpf_asm *a, uint8_t size, uint8_t dst, int16_t offset, int32_t imm)
{
	emit(a, (struct bpf_insn){.code = (uint8_t)(BPF_ST | BPF_MEM | size),
				  .dst_reg = dst,
				  .off = offset,
				  .imm = imm});
}

void ky_bpf_atomic(struct ky_bpf_asm *a, int32_t op, uint8_t dst, int16_t offset, uint8_t src)
{
	emit(a, (struct bpf_insn){.code = BPF_STX | BPF_ATOMIC | BPF_DW,
				  .dst_reg = dst,
				  .src_reg = src,
				  .off = offset,
				  .imm = op});
}

void ky_bpf_map(struct ky_bpf_asm *a, uint8_t dst, int map_fd)
{
	emit(a, (struct bpf_insn){.code = BPF_LD | BPF_DW, /* BPF_IMM: 0 */
				  .dst_reg = dst,
				  .src_reg = BPF_PSEUDO_MAP_FD,
				  .imm = map_fd});
	emit(a, (struct bpf_insn){0});
}

void ky_bpf_call(struct ky_bpf_asm *a, int32_t helper)
{
	emit(a, (struct bpf_insn){.code = BPF_JMP | BPF_CALL, .imm = helper});
}

static void jump(struct ky_bpf_asm *a, struct bpf_insn insn, int label)
{
	struct ky_bpf_fixup fixup = {a->insns.len, label};

	if (ky_vec_push(&a->fixups, fixup) < 0)
		a->failed = true;
	emit(a, insn);
}

void ky_bpf_jump(struct ky_bpf_asm *a, uint8_t op, uint8_t dst, int32_t imm, int label)
{
	jump(a,
	     (struct bpf_insn){.code = (uint8_t)(BPF_JMP | op | BPF_K), .dst_reg = dst, .imm = imm},
	     label);
}

void ky_bpf_jump_reg(struct ky_bpf_asm *a, uint8_t op, uint8_t dst, uint8_t src, int label)
{
	jump(a,
	     (struct bpf_insn){
		     .code = (uint8_t)(BPF_JMP | op | BPF_X), .dst_reg = dst, .src_reg = src},
	     label);
}

void ky_bpf_go(struct ky_bpf_asm *a, int label)
{
	jump(a, (struct bpf_insn){.code = BPF_JMP | BPF_JA}, label);
}

void ky_bpf_exit(struct ky_bpf_asm *a)
{
	emit(a, (struct bpf_insn){.code = BPF_JMP | BPF_EXIT});
}

/* Jumps learn how far they go. */
static bool resolve(struct ky_bpf_asm *a)
{
	if (a->failed)
		return false;
	ky_vec_foreach(&a->fixups, fixup) {
		int32_t to = fixup->label < 0 ? -1 : a->labels.data[fixup->label];
		int64_t distance = (int64_t)to - (int64_t)fixup->insn - 1;

		if (to < 0 || distance < INT16_MIN || distance > INT16_MAX)
			return false;
		a->insns.data[fixup->insn].off = (int16_t)distance;
	}
	ky_vec_clear(&a->fixups);
	return true;
}

/* ---- the kernel ----------------------------------------------------------------------- */

static int bpf(enum bpf_cmd cmd, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

static int refused(struct kymo_error *err, int errnum, const char *what)
{
	int code;

	switch (errnum) {
	case EPERM:
	case EACCES:
		code = ky_error_set(err, KYMO_E_PERMISSION, "%s: the kernel does not allow BPF",
				    what);
		ky_error_hint(err, "run as root (or with CAP_BPF and CAP_PERFMON)");
		return code;
	case ENOSYS:
		return ky_error_set(err, KYMO_E_UNSUPPORTED, "%s: this kernel has no BPF", what);
	case ENOMEM:
		return ky_error_set(err, KYMO_E_MEMORY, "%s: not enough memory", what);
	default:
		return ky_error_errno(err, errnum, "%s", what);
	}
}

/* Before Linux 5.11 maps count as locked memory, of which little is allowed. */
static bool raise_memlock(void)
{
	static const struct rlimit no_limit = {RLIM_INFINITY, RLIM_INFINITY};

	return setrlimit(RLIMIT_MEMLOCK, &no_limit) == 0;
}

int ky_bpf_map_create(enum bpf_map_type type, const char *name, uint32_t key_bytes,
		      uint32_t value_bytes, uint32_t entries, uint32_t flags,
		      struct kymo_error *err)
{
	union bpf_attr attr;
	int fd;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = type;
	attr.key_size = key_bytes;
	attr.value_size = value_bytes;
	attr.max_entries = entries;
	attr.map_flags = flags;
	snprintf(attr.map_name, sizeof(attr.map_name), "%.15s", name);
	fd = bpf(BPF_MAP_CREATE, &attr);
	if (fd < 0 && errno == EPERM && raise_memlock())
		fd = bpf(BPF_MAP_CREATE, &attr);
	return fd < 0 ? refused(err, errno, "cannot create a BPF map") : fd;
}

int ky_bpf_map_update(int map_fd, const void *key, const void *value, struct kymo_error *err)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (uint32_t)map_fd;
	attr.key = (uint64_t)(uintptr_t)key;
	attr.value = (uint64_t)(uintptr_t)value;
	if (bpf(BPF_MAP_UPDATE_ELEM, &attr) < 0)
		return refused(err, errno, "cannot fill a BPF map");
	return KYMO_OK;
}

/* The verifier's last line but its statistics says what it did not like. */
static void add_verdict(struct kymo_error *err, char *log)
{
	char *end = strstr(log, "\nprocessed "), *line;

	if (end)
		*end = '\0';
	line = strrchr(log, '\n');
	if (*log)
		ky_error_hint(err, "the kernel's verifier says: %.300s", line ? line + 1 : log);
}

/* @function: of an iterator; else 0. */
static int load(struct ky_bpf_asm *a, enum bpf_prog_type type, uint32_t function, const char *name,
		struct kymo_error *err)
{
	union bpf_attr attr;
	int fd, errnum;
	char *log;

	if (!resolve(a))
		return ky_error_nomem(err);
	memset(&attr, 0, sizeof(attr));
	attr.prog_type = type;
	attr.expected_attach_type = function ? BPF_TRACE_ITER : 0;
	attr.attach_btf_id = function;
	attr.insns = (uint64_t)(uintptr_t)a->insns.data;
	attr.insn_cnt = (uint32_t)a->insns.len;
	attr.license = (uint64_t)(uintptr_t) "Dual MIT/GPL";
	snprintf(attr.prog_name, sizeof(attr.prog_name), "%.15s", name);
	fd = bpf(BPF_PROG_LOAD, &attr);
	if (fd >= 0)
		return fd;
	errnum = errno;
	refused(err, errnum, "cannot load a BPF program");
	log = errnum == EPERM ? NULL : calloc(1, LOG_BYTES);
	if (log) {
		attr.log_buf = (uint64_t)(uintptr_t)log;
		attr.log_size = LOG_BYTES;
		attr.log_level = 1;
		fd = bpf(BPF_PROG_LOAD, &attr);
		if (fd < 0)
			add_verdict(err, log);
		free(log);
	}
	return fd >= 0 ? fd : refused(NULL, errnum, "");
}

int ky_bpf_load_program(struct ky_bpf_asm *a, enum bpf_prog_type type, const char *name,
			struct kymo_error *err)
{
	return load(a, type, 0, name, err);
}

int ky_bpf_load_iterator(struct ky_bpf_asm *a, uint32_t function, const char *name,
			 struct kymo_error *err)
{
	return load(a, BPF_PROG_TYPE_TRACING, function, name, err);
}

int ky_bpf_iterate(int prog_fd, struct kymo_error *err)
{
	union bpf_attr attr;
	int link, fd, errnum;

	memset(&attr, 0, sizeof(attr));
	attr.link_create.prog_fd = (uint32_t)prog_fd;
	attr.link_create.attach_type = BPF_TRACE_ITER;
	link = bpf(BPF_LINK_CREATE, &attr);
	if (link < 0)
		return refused(err, errno, "cannot attach a BPF program");
	memset(&attr, 0, sizeof(attr));
	attr.iter_create.link_fd = (uint32_t)link;
	fd = bpf(BPF_ITER_CREATE, &attr);
	errnum = errno;
	close(link);
	return fd < 0 ? refused(err, errnum, "cannot run a BPF program") : fd;
}

int ky_bpf_attach_raw(int prog_fd, const char *name, struct kymo_error *err)
{
	union bpf_attr attr;
	int fd;

	memset(&attr, 0, sizeof(attr));
	attr.raw_tracepoint.name = (uint64_t)(uintptr_t)name;
	attr.raw_tracepoint.prog_fd = (uint32_t)prog_fd;
	fd = bpf(BPF_RAW_TRACEPOINT_OPEN, &attr);
	if (fd < 0 && errno == ENOENT)
		return ky_error_set(err, KYMO_E_NOT_FOUND, "there is no tracepoint %s", name);
	return fd < 0 ? refused(err, errno, "cannot attach a BPF program") : fd;
}
