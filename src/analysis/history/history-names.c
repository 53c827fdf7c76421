/* SPDX-License-Identifier: MIT */
/* The state history: what kinds of states and rows are called, and the order of rows. */
#include "analysis/history/history-internal.h"

/* ---- texts ----------------------------------------------------------------------------------------- */

bool ky_state_has_name(enum ky_state_kind kind)
{
	switch (kind) {
	case KY_STATE_SYSCALL:
	case KY_STATE_IRQ:
	case KY_STATE_SOFTIRQ:
	case KY_STATE_BLOCKED:
	case KY_STATE_DISK:
	case KY_STATE_LOCK:
	case KY_STATE_NETWORK:
	case KY_STATE_TIMER:
	case KY_STATE_STOPPED:
	case KY_STATE_SPAN:
		return true;
	default:
		return false;
	}
}

const char *ky_state_text(enum ky_state_kind kind)
{
	static const char *const texts[KY_STATE_KINDS] = {
		[KY_STATE_NONE] = "unknown",	[KY_STATE_IDLE] = "idle",
		[KY_STATE_RUNS] = "runs",	[KY_STATE_USER] = "user",
		[KY_STATE_SYSCALL] = "syscall", [KY_STATE_IRQ] = "irq",
		[KY_STATE_SOFTIRQ] = "softirq", [KY_STATE_WAIT_CPU] = "wait-cpu",
		[KY_STATE_BLOCKED] = "blocked", [KY_STATE_DISK] = "disk",
		[KY_STATE_LOCK] = "lock",	[KY_STATE_NETWORK] = "network",
		[KY_STATE_TIMER] = "timer",	[KY_STATE_STOPPED] = "stopped",
		[KY_STATE_ACTIVE] = "active",	[KY_STATE_SPAN] = "span",
		[KY_STATE_READ] = "read",	[KY_STATE_WRITE] = "write",
		[KY_STATE_OTHER] = "other",	[KY_STATE_VALUE] = "value",
		[KY_STATE_EVENTS] = "events",	[KY_STATE_RUNNING] = "running",
	};

	return kind < KY_STATE_KINDS ? texts[kind] : "unknown";
}

const char *ky_row_kind_text(enum ky_row_kind kind)
{
	static const char *const texts[KY_ROW_KINDS] = {
		[KY_ROW_MACHINE] = "machine", [KY_ROW_CPU] = "cpu",
		[KY_ROW_IRQ] = "irq",	      [KY_ROW_QUEUE] = "queue",
		[KY_ROW_PROCESS] = "process", [KY_ROW_THREAD] = "thread",
		[KY_ROW_DISK] = "disk",	      [KY_ROW_REQUESTS] = "requests",
		[KY_ROW_STREAM] = "stream",   [KY_ROW_SPANS] = "spans",
		[KY_ROW_COUNTER] = "counter",
	};

	return kind < KY_ROW_KINDS ? texts[kind] : "unknown";
}

/* ---- the order of rows --------------------------------------------------------------------- */

static int history_query_by_parent(const void *left, const void *right, void *data)
{
	const struct ky_history_row *a = ky_history_row(data, *(const uint32_t *)left);
	const struct ky_history_row *b = ky_history_row(data, *(const uint32_t *)right);

	if (a->parent != b->parent)
		return a->parent < b->parent ? -1 : 1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->number != b->number)
		return a->number < b->number ? -1 : 1;
	return a->id < b->id ? -1 : a->id > b->id;
}

void ky_history_sort_rows(struct ky_history *history, uint32_t *rows, size_t n)
{
	qsort_r(rows, n, sizeof(*rows), history_query_by_parent, history);
}
