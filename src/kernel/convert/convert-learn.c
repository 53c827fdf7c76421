/* SPDX-License-Identifier: MIT */
/* What events tell of threads: who begins and ends, and what they are called from then on. */
#include "kernel/convert/convert-record.h"

void ky_convert_learn(const struct ky_convert_cpu *cpu, const struct ky_convert_plan *plan,
		      const struct ky_convert_record *record)
{
	struct ky_threads *threads = cpu->convert->threads;
	const uint8_t *data = record->data;
	const char *text = (const char *)data;
	uint64_t flags;
	int32_t tid;

	if (!threads)
		return;
	tid = (int32_t)ky_record_word(data + plan->at[0]);
	switch ((enum ky_event_role)plan->role) {
	case KY_EVENT_SWITCH:
		if (tid == 0)
			break;
		ky_threads_set_prio(threads, tid,
				    (int32_t)ky_record_word(data + plan->at[1]) - 100);
		ky_threads_rename(threads, tid, text + plan->at[2], KY_COMM_BYTES);
		break;
	case KY_EVENT_NEWTASK:
		memcpy(&flags, data + plan->at[1], 8);
		(void)ky_threads_newtask(threads, (int32_t)record->tid, tid, text + plan->at[2],
					 flags);
		ky_convert_choose_child(cpu->convert, record->tid, (uint32_t)tid);
		break;
	case KY_EVENT_RENAME:
		ky_threads_rename(threads, tid, text + plan->at[1], KY_COMM_BYTES);
		break;
	case KY_EVENT_EXEC:
		ky_threads_exec(threads, tid, (int32_t)ky_record_word(data + plan->at[1]));
		break;
	case KY_EVENT_EXIT:
		ky_threads_exit(threads, tid);
		ky_convert_choose_no_more(cpu->convert, (uint32_t)tid);
		break;
	case KY_EVENT_SETPRIO:
		ky_threads_set_prio(threads, tid,
				    (int32_t)ky_record_word(data + plan->at[1]) - 100);
		break;
	case KY_EVENT_CGROUP:
		memcpy(&flags, data + plan->at[2], 8);
		/* Version 2's hierarchy is number 0. */
		if (ky_record_word(data + plan->at[1]) == 0)
			ky_threads_set_cgroup(threads, tid, flags);
		break;
	case KY_EVENT_KERNEL_STACK:
	case KY_EVENT_USER_STACK:
	case KY_EVENT_FORK:
	case KY_EVENT_SYSCALL:
	case KY_EVENT_PLAIN:
		break;
	}
}

void ky_convert_learn_ids(const struct ky_convert_cpu *cpu, const struct ky_convert_record *record)
{
	const struct ky_thread_ids *ids = ky_content_ids(record->content);
	struct ky_threads *threads = cpu->convert->threads;

	if (!threads || (record->len >= 24 && (int64_t)ky_record_long(record->data + 16) < 0))
		return;
	if (ids)
		ky_threads_set_ids(threads, (int32_t)record->tid, ids);
	else
		ky_threads_refresh_ids(threads, (int32_t)record->tid);
}
