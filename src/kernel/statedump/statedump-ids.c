/* SPDX-License-Identifier: MIT */
/* The state dump: ids and namespaces of a thread. */
#include "kernel/statedump/statedump.h"

#include <linux/kcmp.h>
#include <sys/syscall.h>

#include "kernel/statedump/statedump-run.h"

/* The parent's pid as the thread's own namespace numbers it; 0 when it lives outside. */
static int32_t ppid_inside(struct ky_dump_run *run, int32_t ppid, unsigned int level)
{
	struct ky_proc_ids parent;

	if (!level || !ppid)
		return ppid;
	if (ky_proc_read_ids(&run->proc, ppid, ppid, &parent) < 0 || parent.n_levels <= level)
		return 0;
	return parent.nstgid[level];
}

static int dump_pid_ns(struct ky_dump_run *run, const struct ky_proc_thread *thread,
		       const struct ky_proc_ids *ids)
{
	unsigned int level = ids->n_levels ? ids->n_levels - 1 : 0;
	struct ky_dump_body *body = &run->body;

	ky_dump_put_id(run, thread->tid);
	ky_dump_put32(body, (uint32_t)(ids->n_levels ? ids->nspid[level] : thread->tid));
	ky_dump_put32(body, (uint32_t)(ids->n_levels ? ids->nstgid[level] : thread->pid));
	ky_dump_put32(body, (uint32_t)ppid_inside(run, thread->ppid, level));
	ky_dump_put32(body, level + (run->dump->view ? run->dump->view->level : 0));
	ky_dump_put32(body, ky_proc_ns(&run->proc, thread->pid, thread->tid, "pid"));
	return ky_dump_emit(run, KY_STATEDUMP_PROCESS_PID_NS);
}

static int dump_user_ns(struct ky_dump_run *run, const struct ky_proc_thread *thread,
			const struct ky_proc_ids *ids)
{
	struct ky_dump_body *body = &run->body;

	ky_dump_put_id(run, thread->tid);
	/* As seen from here: /proc does not say how the inner namespace numbers them. */
	ky_dump_put32(body, ids->uid);
	ky_dump_put32(body, ids->gid);
	ky_dump_put32(body, 0);
	ky_dump_put32(body, ky_proc_ns(&run->proc, thread->pid, thread->tid, "user"));
	return ky_dump_emit(run, KY_STATEDUMP_PROCESS_USER_NS);
}

/* Has the thread ids that its kernel events do not tell? */
static bool statedump_is_nested(struct ky_dump_run *run, const struct ky_proc_thread *thread)
{
	uint32_t ns;

	if (run->dump->view && run->dump->view->level)
		return true;
	ns = ky_proc_ns(&run->proc, thread->pid, thread->tid, "pid");
	return ns && ns != run->pid_ns;
}

static int dump_ids(struct ky_dump_run *run, const struct ky_proc_thread *thread)
{
	bool pid_ns = ky_dump_wants(run, KY_STATEDUMP_BIT(KY_STATEDUMP_PROCESS_PID_NS)) &&
		      (!run->dump->only_nested || statedump_is_nested(run, thread));
	bool user_ns = ky_dump_wants(run, KY_STATEDUMP_BIT(KY_STATEDUMP_PROCESS_USER_NS));
	struct ky_proc_ids ids;
	int ret = KYMO_OK;

	if ((!pid_ns && !user_ns) ||
	    ky_proc_read_ids(&run->proc, thread->pid, thread->tid, &ids) < 0)
		return KYMO_OK;
	if (pid_ns)
		ret = dump_pid_ns(run, thread, &ids);
	return ret == KYMO_OK && user_ns ? dump_user_ns(run, thread, &ids) : ret;
}

int ky_dump_namespaces(struct ky_dump_run *run, const struct ky_proc_thread *thread)
{
	static const struct {
		enum ky_statedump_event event;
		const char *kind;
	} others[] = {
		{KY_STATEDUMP_PROCESS_CGROUP_NS, "cgroup"}, {KY_STATEDUMP_PROCESS_IPC_NS, "ipc"},
		{KY_STATEDUMP_PROCESS_NET_NS, "net"},	    {KY_STATEDUMP_PROCESS_UTS_NS, "uts"},
		{KY_STATEDUMP_PROCESS_TIME_NS, "time"},
	};
	int ret = dump_ids(run, thread);

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]) && ret == KYMO_OK; i++) {
		uint32_t inode;

		if (!ky_dump_wants(run, KY_STATEDUMP_BIT(others[i].event)))
			continue;
		inode = ky_proc_ns(&run->proc, thread->pid, thread->tid, others[i].kind);
		if (!inode)
			continue;
		ky_dump_put_id(run, thread->tid);
		ky_dump_put32(&run->body, inode);
		ret = ky_dump_emit(run, others[i].event);
	}
	return ret;
}
