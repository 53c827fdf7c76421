/* SPDX-License-Identifier: MIT */
/*
 * Whose the thread is: what struct ky_thread_ids has, read from the kernel's own structs, whose layout
 * BTF tells. What cannot be reached is 0: a helper that fails leaves zeros, of which the next one fails.
 */
#include "kernel/bpf/btf.h"
#include "kernel/content/content-writer.h"
#include "kernel/process/thread-ids.h"

#define INUM_BYTES 4
#define UPID_BYTES 16

/* Namespaces that struct nsproxy points to: the others are found by other ways. */
static const struct {
	const char *type, *member;
} kinds[KY_NS_KINDS] = {
	[KY_NS_CGROUP] = {"cgroup_namespace", "cgroup_ns"},
	[KY_NS_IPC] = {"ipc_namespace", "ipc_ns"},
	[KY_NS_MNT] = {"mnt_namespace", "mnt_ns"},
	[KY_NS_NET] = {"net", "net_ns"},
	[KY_NS_PID] = {"pid_namespace", NULL},
	[KY_NS_TIME] = {"time_namespace", "time_ns"},
	[KY_NS_USER] = {"user_namespace", NULL},
	[KY_NS_UTS] = {"uts_namespace", "uts_ns"},
};

static bool find(struct ky_btf *btf, const char *type, const char *member, int32_t *offset)
{
	*offset = ky_btf_member(btf, type, member);
	return *offset >= 0;
}

bool ky_content_task_layout(struct ky_btf *btf, struct ky_content_task *task)
{
	bool ok = find(btf, "task_struct", "cred", &task->cred) &&
		  find(btf, "cred", "uid", &task->uid) &&
		  find(btf, "cred", "user_ns", &task->user_ns) &&
		  find(btf, "task_struct", "nsproxy", &task->nsproxy) &&
		  find(btf, "task_struct", "thread_pid", &task->thread_pid) &&
		  find(btf, "task_struct", "group_leader", &task->group_leader) &&
		  find(btf, "task_struct", "real_parent", &task->real_parent) &&
		  find(btf, "pid", "level", &task->level) &&
		  find(btf, "pid", "numbers", &task->numbers) &&
		  find(btf, "upid", "nr", &task->upid_nr) &&
		  find(btf, "upid", "ns", &task->upid_ns);
	int32_t inum, ns;

	ok = ok && find(btf, "ns_common", "inum", &inum);
	for (int i = 0; ok && i < KY_NS_KINDS; i++) {
		ok = find(btf, kinds[i].type, "ns", &ns);
		task->inum[i] = ns + inum;
		/* A kernel may lack some: then it is 0. */
		task->of_nsproxy[i] = -1;
		if (ok && kinds[i].member)
			ok = find(btf, "nsproxy", kinds[i].member, &task->of_nsproxy[i]);
	}
	return ok;
}

/* r3 = the word at r3 + @offset. */
static void follow(struct ky_content_writer *w, int32_t offset)
{
	ky_bpf_alu_imm(&w->a, BPF_ADD, R3, offset);
	read_to_stack(w, S_MSG, 8, BPF_FUNC_probe_read_kernel);
	ky_bpf_load(&w->a, BPF_DW, R3, FP, S_MSG);
}

/* The 32-bit number at r3 + @offset goes to byte @to of the content. */
static void take_number(struct ky_content_writer *w, const struct ky_content_place *place,
			int32_t offset, size_t to)
{
	ky_bpf_alu_imm(&w->a, BPF_ADD, R3, offset);
	read_to_stack(w, S_MSG, INUM_BYTES, BPF_FUNC_probe_read_kernel);
	ky_bpf_load(&w->a, BPF_W, R2, FP, S_MSG);
	content_address(w, place);
	ky_bpf_store(&w->a, BPF_W, R1, (int16_t)to, R2);
}

static size_t ns_at(int kind)
{
	return offsetof(struct ky_thread_ids, ns) + (size_t)kind * INUM_BYTES;
}

/* r3 = numbers[S_VALUE] of the struct pid at S_LEN. */
static void number_address(struct ky_content_writer *w)
{
	struct ky_bpf_asm *a = &w->a;

	ky_bpf_load(a, BPF_DW, R2, FP, S_VALUE);
	ky_bpf_alu_imm(a, BPF_MUL, R2, UPID_BYTES);
	ky_bpf_load(a, BPF_DW, R3, FP, S_LEN);
	ky_bpf_alu(a, BPF_ADD, R3, R2);
	ky_bpf_alu_imm(a, BPF_ADD, R3, w->p->task.numbers);
}

/* S_LEN = the struct pid of the task at r3, r2 = its level. */
static void load_pid(struct ky_content_writer *w)
{
	struct ky_bpf_asm *a = &w->a;

	follow(w, w->p->task.thread_pid);
	ky_bpf_store(a, BPF_DW, FP, S_LEN, R3);
	ky_bpf_alu_imm(a, BPF_ADD, R3, w->p->task.level);
	read_to_stack(w, S_MSG, 4, BPF_FUNC_probe_read_kernel);
	ky_bpf_load(a, BPF_W, R2, FP, S_MSG);
	ky_bpf_alu_imm(a, BPF_AND, R2, 63);
}

/*
 * task->thread_pid->numbers[level], with the namespace of that level; and what it calls the process and the parent, of
 * whom it knows nothing when that one's level is less.
 */
static void take_pids(struct ky_content_writer *w, const struct ky_content_place *place)
{
	const struct ky_content_task *task = &w->p->task;
	struct ky_bpf_asm *a = &w->a;
	int outside = ky_bpf_label(a);

	ky_bpf_load(a, BPF_DW, R3, FP, S_POINTER);
	load_pid(w);
	ky_bpf_store(a, BPF_DW, FP, S_VALUE, R2);
	number_address(w);
	take_number(w, place, task->upid_nr, offsetof(struct ky_thread_ids, vtid));
	number_address(w);
	follow(w, task->upid_ns);
	take_number(w, place, task->inum[KY_NS_PID], ns_at(KY_NS_PID));
	ky_bpf_load(a, BPF_DW, R3, FP, S_POINTER);
	follow(w, task->group_leader);
	load_pid(w);
	number_address(w);
	take_number(w, place, task->upid_nr, offsetof(struct ky_thread_ids, vpid));
	content_address(w, place);
	ky_bpf_store_imm(a, BPF_W, R1, offsetof(struct ky_thread_ids, vppid), 0);
	ky_bpf_store_imm(a, BPF_W, R1, offsetof(struct ky_thread_ids, reserved), 0);
	ky_bpf_load(a, BPF_DW, R3, FP, S_POINTER);
	follow(w, task->real_parent);
	follow(w, task->group_leader);
	load_pid(w);
	ky_bpf_load(a, BPF_DW, R1, FP, S_VALUE);
	ky_bpf_jump_reg(a, BPF_JLT, R2, R1, outside);
	number_address(w);
	take_number(w, place, task->upid_nr, offsetof(struct ky_thread_ids, vppid));
	ky_bpf_place(a, outside);
}

void ky_content_write_ids(struct ky_content_writer *w, const struct ky_content_place *place)
{
	const struct ky_content_task *task = &w->p->task;
	struct ky_bpf_asm *a = &w->a;

	/* S_POINTER: the task. S_VALUE: its credentials, then nsproxy. */
	ky_bpf_call(a, BPF_FUNC_get_current_task);
	ky_bpf_store(a, BPF_DW, FP, S_POINTER, R0);
	ky_bpf_move(a, R3, R0);
	follow(w, task->cred);
	ky_bpf_store(a, BPF_DW, FP, S_VALUE, R3);
	ky_bpf_alu_imm(a, BPF_ADD, R3, task->uid);
	content_address(w, place);
	ky_bpf_move_imm(a, R2, offsetof(struct ky_thread_ids, ns));
	ky_bpf_call(a, BPF_FUNC_probe_read_kernel);
	ky_bpf_load(a, BPF_DW, R3, FP, S_VALUE);
	follow(w, task->user_ns);
	take_number(w, place, task->inum[KY_NS_USER], ns_at(KY_NS_USER));
	take_pids(w, place);
	ky_bpf_load(a, BPF_DW, R3, FP, S_POINTER);
	follow(w, task->nsproxy);
	ky_bpf_store(a, BPF_DW, FP, S_VALUE, R3);
	for (int i = 0; i < KY_NS_KINDS; i++) {
		if (task->of_nsproxy[i] < 0)
			continue;
		ky_bpf_load(a, BPF_DW, R3, FP, S_VALUE);
		follow(w, task->of_nsproxy[i]);
		take_number(w, place, task->inum[i], ns_at(i));
	}
	ky_bpf_call(a, BPF_FUNC_get_current_cgroup_id);
	content_address(w, place);
	ky_bpf_store(a, BPF_DW, R1, offsetof(struct ky_thread_ids, cgroup), R0);
	ky_bpf_move_imm(a, R5, sizeof(struct ky_thread_ids));
}
