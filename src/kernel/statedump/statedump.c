/* SPDX-License-Identifier: MIT */
#include "kernel/statedump/statedump.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "kernel/process/thread-ids.h"
#include "kernel/statedump/statedump-run.h"
#include "os/file.h"

/* LTTng's numbers for process_state. */
#define TYPE_USER_THREAD   0
#define TYPE_KERNEL_THREAD 1
#define MODE_UNKNOWN	   5
#define SUBMODE_NONE	   0

enum process_status {
	STATUS_WAIT_CPU = 2,
	STATUS_ZOMBIE = 4,
	STATUS_WAIT = 5,
	STATUS_RUN = 6,
	STATUS_DEAD = 7,
};

/* Looks like a kernel address, so that it equals no other number. */
#define FILE_TABLE_BASE UINT64_C(0xffff000000000000)

#define FMODE_READ  1u
#define FMODE_WRITE 2u

/* ---- events ----------------------------------------------------------------------------- */

static uint64_t now(struct ky_statedump *dump)
{
	uint64_t cycles = dump->at_cycles ? dump->at_cycles : ky_os_clock_now(dump->clock);

	if (cycles > dump->last_cycles)
		dump->last_cycles = cycles;
	return dump->last_cycles;
}

int ky_dump_emit(struct ky_dump_run *run, enum ky_statedump_event event)
{
	struct ky_statedump *dump = run->dump;
	uint32_t id = dump->first_id + event, len = dump->context_bytes + run->body.len;
	uint64_t cycles;
	uint8_t *at;

	if (!ky_dump_wants(run, KY_STATEDUMP_BIT(event))) {
		run->body.len = 0;
		return KYMO_OK;
	}
	cycles = now(dump);
	at = ky_packet_writer_event(dump->writer, id, cycles, len);
	if (!at) {
		int ret = dump->flush(dump->data, cycles, run->err);

		if (ret < 0)
			return ret;
		ky_packet_writer_begin(dump->writer, cycles);
		at = ky_packet_writer_event(dump->writer, id, cycles, len);
	}
	if (!at)
		return ky_error_set(run->err, KYMO_E_LIMIT,
				    "the state dump's packets are too small for its events");
	if (dump->context_bytes)
		memcpy(at, dump->context, dump->context_bytes);
	memcpy(at + dump->context_bytes, run->body.data, run->body.len);
	run->body.len = 0;
	dump->events++;
	return KYMO_OK;
}

/* ---- threads ---------------------------------------------------------------------------- */

static enum process_status statedump_status_of(const struct ky_dump_run *run,
					       const struct ky_proc_thread *thread)
{
	switch (thread->state) {
	case 'R':
		return thread->tid == run->self_tid ? STATUS_RUN : STATUS_WAIT_CPU;
	case 'Z':
		return STATUS_ZOMBIE;
	case 'X':
	case 'x':
		return STATUS_DEAD;
	default:
		return STATUS_WAIT;
	}
}

static int dump_state(struct ky_dump_run *run, const struct ky_proc_thread *thread,
		      uint64_t file_table)
{
	struct ky_dump_body *body = &run->body;
	bool kernel = thread->flags & KY_PROC_KTHREAD;

	ky_dump_put_id(run, thread->tid);
	ky_dump_put_id(run, thread->pid);
	ky_dump_put_id(run, thread->ppid);
	ky_dump_put(body, thread->comm, KY_COMM_BYTES);
	ky_dump_put32(body, kernel ? TYPE_KERNEL_THREAD : TYPE_USER_THREAD);
	ky_dump_put32(body, MODE_UNKNOWN);
	ky_dump_put32(body, SUBMODE_NONE);
	ky_dump_put32(body, statedump_status_of(run, thread));
	ky_dump_put32(body, thread->cpu);
	ky_dump_put64(body, file_table);
	ky_dump_put32(body, (uint32_t)thread->prio);
	return ky_dump_emit(run, KY_STATEDUMP_PROCESS_STATE);
}

/* Control groups of version 2; without them there are no events. */
static int dump_cgroup(struct ky_dump_run *run, const struct ky_proc_thread *thread)
{
	struct ky_dump_body *body = &run->body;
	const char *path;
	uint64_t cgroup;

	if (!ky_dump_wants(run, KY_STATEDUMP_BIT(KY_STATEDUMP_PROCESS_CGROUP)))
		return KYMO_OK;
	cgroup = ky_thread_cgroup(&run->proc, thread->pid, thread->tid, &path);
	if (!cgroup)
		return KYMO_OK;
	ky_dump_put_id(run, thread->tid);
	ky_dump_put64(body, cgroup);
	ky_dump_put_text(body, path);
	return ky_dump_emit(run, KY_STATEDUMP_PROCESS_CGROUP);
}

/* ---- files ------------------------------------------------------------------------------ */

static int dump_file(struct ky_dump_run *run, int32_t pid, uint64_t file_table)
{
	const struct ky_proc_fd *file = &run->file;
	struct ky_dump_body *body = &run->body;
	uint32_t fmode = 0;

	if ((file->flags & O_ACCMODE) != O_WRONLY)
		fmode |= FMODE_READ;
	if ((file->flags & O_ACCMODE) != O_RDONLY)
		fmode |= FMODE_WRITE;
	if (file->flags & O_PATH)
		fmode = 0;
	ky_dump_put_id(run, pid);
	ky_dump_put64(body, file_table);
	ky_dump_put32(body, (uint32_t)file->fd);
	ky_dump_put32(body, file->flags);
	ky_dump_put32(body, fmode);
	ky_dump_put_text(body, file->path);
	run->dump->files++;
	return ky_dump_emit(run, KY_STATEDUMP_FILE_DESCRIPTOR);
}

static int dump_files(struct ky_dump_run *run, const struct ky_proc_thread *owner,
		      uint64_t file_table)
{
	struct ky_proc_numbers fds;
	int32_t fd;
	char path[64];
	int ret = KYMO_OK;

	if (!ky_dump_wants(run, KY_STATEDUMP_BIT(KY_STATEDUMP_FILE_DESCRIPTOR)))
		return KYMO_OK;
	snprintf(path, sizeof(path), "%d/task/%d/fd", owner->pid, owner->tid);
	/* Vanished, or not ours to look into. */
	if (ky_proc_numbers_open(&run->proc, path, &fds) < 0)
		return KYMO_OK;
	while (ret == KYMO_OK && (fd = ky_proc_numbers_next(&fds)) >= 0)
		if (ky_proc_read_fd(&run->proc, owner->pid, owner->tid, fd, &run->file) == KYMO_OK)
			ret = dump_file(run, owner->pid, file_table);
	ky_proc_numbers_close(&fds);
	return ret;
}

/* Where the kernel has no kcmp() or does not let us, threads are taken to share, as nearly all do. */
static bool shares_files(int32_t a, int32_t b)
{
	return syscall(SYS_kcmp, a, b, KCMP_FILES, 0UL, 0UL) <= 0;
}

/* The owner of the process' file table so far; tid 0: none yet. */
struct table_owner {
	int32_t tid;
};

static bool is_gone(const struct ky_proc_thread *thread)
{
	return thread->state == 'Z' || thread->state == 'X' || thread->state == 'x';
}

static int statedump_dump_thread(struct ky_dump_run *run, const struct ky_proc_thread *thread,
				 struct table_owner *owner)
{
	bool kernel = thread->flags & KY_PROC_KTHREAD, is_new = false;
	uint64_t file_table = FILE_TABLE_BASE;
	int ret;

	/* It ended just now: no process has its id. */
	if (!ky_dump_id(run, thread->tid))
		return KYMO_OK;
	/* Kernel threads share init's table, and zombies have none left. */
	if (!kernel && !is_gone(thread)) {
		is_new = !owner->tid || !shares_files(owner->tid, thread->tid);
		if (!owner->tid)
			owner->tid = thread->tid;
		file_table |= (uint32_t)(is_new ? thread->tid : owner->tid);
	}
	run->dump->threads++;
	ret = dump_state(run, thread, file_table);
	if (ret == KYMO_OK)
		ret = ky_dump_namespaces(run, thread);
	if (ret == KYMO_OK)
		ret = dump_cgroup(run, thread);
	if (ret == KYMO_OK && is_new)
		ret = dump_files(run, thread, file_table);
	return ret;
}

static int dump_process(struct ky_dump_run *run, int32_t pid)
{
	struct table_owner owner = {0};
	struct ky_proc_numbers tids;
	struct ky_proc_thread thread;
	char path[32];
	int32_t tid;
	int ret = KYMO_OK;

	snprintf(path, sizeof(path), "%d/task", pid);
	if (ky_proc_numbers_open(&run->proc, path, &tids) < 0)
		return KYMO_OK;
	run->dump->processes++;
	while (ret == KYMO_OK && (tid = ky_proc_numbers_next(&tids)) >= 0)
		if (ky_proc_read_thread(&run->proc, pid, tid, &thread) == KYMO_OK)
			ret = statedump_dump_thread(run, &thread, &owner);
	ky_proc_numbers_close(&tids);
	return ret < 0 ? ret : ky_dump_process_memory(run, pid);
}

static int dump_everybody(struct ky_dump_run *run)
{
	struct ky_proc_numbers pids;
	int32_t pid;
	int ret = ky_proc_numbers_open(&run->proc, ".", &pids);

	if (ret < 0)
		return ky_error_errno(run->err, errno, "cannot list the processes in /proc");
	while (ret == KYMO_OK && (pid = ky_proc_numbers_next(&pids)) >= 0)
		ret = dump_process(run, pid);
	ky_proc_numbers_close(&pids);
	return ret;
}

/* The process of a thread, as /proc has it. 0: it has ended, or is another namespace's. */
static int32_t process_of(struct ky_dump_run *run, int32_t kernel_tid)
{
	int32_t tid = run->dump->view ? ky_pid_to_own(run->dump->view, kernel_tid) : kernel_tid;
	struct ky_proc_ids ids;

	/* /proc/TID exists for every thread, though it is listed for leaders only. */
	if (!tid || ky_proc_read_ids(&run->proc, tid, tid, &ids) < 0)
		return 0;
	return ids.n_levels ? ids.nstgid[0] : tid;
}

static int dump_chosen(struct ky_dump_run *run)
{
	struct ky_map done;
	int ret = KYMO_OK;

	ky_map_init(&done);
	for (size_t i = 0; i < run->dump->n_tids && ret == KYMO_OK; i++) {
		int32_t pid = process_of(run, run->dump->tids[i]);

		if (!pid || ky_map_get(&done, (uint32_t)pid))
			continue;
		ret = ky_map_set(&done, (uint32_t)pid, run) < 0 ? ky_error_nomem(run->err)
								: dump_process(run, pid);
	}
	ky_map_fini(&done);
	return ret;
}

/* ---- the run ---------------------------------------------------------------------------- */

#define OF_PROCESSES                                                                             \
	(~(KY_STATEDUMP_FRAME | KY_STATEDUMP_BIT(KY_STATEDUMP_BLOCK_DEVICE) |                    \
	   KY_STATEDUMP_BIT(KY_STATEDUMP_NETWORK_INTERFACE) |                                    \
	   KY_STATEDUMP_BIT(KY_STATEDUMP_INTERRUPT) |                                            \
	   KY_STATEDUMP_BIT(KY_STATEDUMP_CPU_TOPOLOGY) | KY_STATEDUMP_BIT(KY_STATEDUMP_MEMORY) | \
	   KY_STATEDUMP_BIT(KY_STATEDUMP_MODULE) | KY_STATEDUMP_BIT(KY_STATEDUMP_KVM_VCPU)))

static int dump_processes(struct ky_dump_run *run)
{
	if (!ky_dump_wants(run, OF_PROCESSES))
		return KYMO_OK;
	return run->dump->tids ? dump_chosen(run) : dump_everybody(run);
}

static int dump_all(struct ky_dump_run *run)
{
	struct ky_statedump *dump = run->dump;
	int ret;

	ky_packet_writer_begin(dump->writer, now(dump));
	ret = ky_dump_emit(run, KY_STATEDUMP_START);
	if (ret == KYMO_OK)
		ret = dump_processes(run);
	if (ret == KYMO_OK)
		ret = ky_dump_devices(run);
	if (ret == KYMO_OK)
		ret = ky_dump_memory(run);
	if (ret == KYMO_OK)
		ret = ky_dump_kvm(run);
	if (ret == KYMO_OK)
		ret = ky_dump_emit(run, KY_STATEDUMP_END);
	if (ret == KYMO_OK)
		ret = dump->flush(dump->data, now(dump), run->err);
	return ret;
}

int ky_statedump_run(struct ky_statedump *dump, struct kymo_error *err)
{
	struct ky_dump_run run = {.dump = dump, .err = err, .self_tid = gettid()};
	uint64_t refusals = ky_file_refusals();
	int ret;

	dump->events = dump->processes = dump->threads = dump->files = dump->missing = 0;
	ret = ky_proc_open(&run.proc, err);
	if (ret < 0)
		return ret;
	run.pid_ns = ky_proc_ns(&run.proc, getpid(), run.self_tid, "pid");
	ret = dump_all(&run);
	ky_proc_close(&run.proc);
	dump->missing += ky_file_refusals() - refusals;
	return ret;
}
