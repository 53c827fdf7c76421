/* SPDX-License-Identifier: MIT */
/* Members: collected from the model in the pass; see members.h. */
#include "analysis/causes/members.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/causes/causes-internal.h"
#include "analysis/state/periods.h"
#include "base/error.h"
#include "base/text.h"

/* More members than that are not kept. */
#define MEMBERS_MAX (UINT64_C(1) << 23)

static const struct {
	const char *key, *text;
	bool named; /* "key:NAME" */
} ofs[] = {
	[KY_OF_THREADS] = {"thread", "thread", false},
	[KY_OF_SYSCALL] = {"syscall", "system call", true},
	[KY_OF_WAKEUP] = {"wakeup", "wake-up", false},
	[KY_OF_PREEMPTION] = {"preemption", "preemption", false},
	[KY_OF_BLOCK] = {"block", "request", true},
	[KY_OF_IRQ] = {"irq", "interrupt", true},
	[KY_OF_SOFTIRQ] = {"softirq", "softirq", true},
	[KY_OF_PERIOD] = {"period", "period", true},
};

const char *ky_of_text(enum ky_of_kind kind)
{
	return ofs[kind].text;
}

int ky_of_parse(const char *text, struct ky_of *of, struct kymo_error *err)
{
	const char *colon = text ? strchr(text, ':') : NULL;
	size_t len = colon ? (size_t)(colon - text) : text ? strlen(text) : 0;

	*of = (struct ky_of){KY_OF_THREADS, colon && colon[1] ? colon + 1 : "*"};
	if (!text)
		return 0;
	if (len == 4 && memcmp(text, "span", 4) == 0) {
		*of = (struct ky_of){KY_OF_PERIOD, "*"}; /* the only one that is defined */
		return 0;
	}
	for (size_t i = 0; i < sizeof(ofs) / sizeof(*ofs); i++) {
		if (strlen(ofs[i].key) != len || memcmp(text, ofs[i].key, len) != 0 ||
		    (colon && !ofs[i].named))
			continue;
		of->kind = (enum ky_of_kind)i;
		return 0;
	}
	ky_error_set(err, KYMO_E_INVALID, "'%s' is not known", text);
	ky_error_input(err, "members");
	ky_error_hint(err, "there are syscall:NAME, wakeup, preemption, block, irq, softirq, "
			   "period:NAME, span:NAME, thread");
	return KYMO_E_INVALID;
}

/* ---- collecting ------------------------------------------------------------------------------ */

static bool members_chooses_cpu(const struct ky_focus *focus, uint32_t cpu)
{
	ky_vec_foreach(&focus->cpus, it) {
		if (*it == cpu)
			return true;
	}
	return !focus->cpus.len;
}

static int members_add(struct ky_cause_members *members, const struct ky_cause_member *member,
		       uint32_t cpu)
{
	const struct ky_focus *focus = members->focus;

	if (member->begin_ns == INT64_MIN || member->begin_ns > member->end_ns ||
	    member->end_ns < focus->begin_ns || member->end_ns > focus->end_ns ||
	    ky_cause_member_ns(member) < focus->min_ns ||
	    ky_cause_member_ns(member) > focus->max_ns ||
	    !ky_focus_has_thread(focus, member->thread) || !members_chooses_cpu(focus, cpu))
		return 0;
	if (members->list.len >= MEMBERS_MAX) {
		members->omitted++;
		return 0;
	}
	return ky_vec_push(&members->list, *member);
}

/* Is it one of the calls that were asked for? 1, 0, or KYMO_E_MEMORY. */
static int members_has_syscall(struct ky_cause_members *members, uint32_t syscall)
{
	if (strcmp(members->of.name, "*") == 0)
		return 1;
	if (syscall == KY_NO_SYSCALL)
		return 0;
	while (members->names.len <= syscall) {
		if (ky_vec_push(&members->names, 0) < 0)
			return KYMO_E_MEMORY;
	}
	if (!members->names.data[syscall])
		members->names.data[syscall] =
			1 + ky_glob_match(members->of.name,
					  ky_model_syscall_name(members->model, syscall));
	return members->names.data[syscall] - 1;
}

static int members_on_call(void *data, const struct ky_call *call)
{
	struct ky_cause_members *members = data;
	struct ky_cause_member member = {
		call->begin_ns, call->end_ns, call->thread, {call->syscall}};
	int has = members_has_syscall(members, call->syscall);

	if (has <= 0)
		return has;
	if (call->outcome == KY_CALL_DONE)
		return members_add(members, &member, call->cpu_id);
	members->unmeasured +=
		ky_focus_has_thread(members->focus, call->thread) && call->outcome != KY_CALL_BIRTH;
	return 0;
}

static int members_on_waited(void *data, const struct ky_waited *waited)
{
	struct ky_cause_members *members = data;
	struct ky_cause_member member = {
		waited->wait.begin_ns, waited->end_ns, waited->thread, {0}};
	enum ky_wait_kind kind =
		members->of.kind == KY_OF_WAKEUP ? KY_WAIT_WOKEN : KY_WAIT_PREEMPTED;

	return waited->wait.kind == kind ? members_add(members, &member, waited->cpu->id) : 0;
}

static int members_on_request(void *data, const struct ky_request *request)
{
	struct ky_cause_members *members = data;
	struct ky_cause_member member = {
		.begin_ns = request->queue_ns != INT64_MIN ? request->queue_ns : request->issue_ns,
		.end_ns = request->end_ns,
		.thread = request->thread,
		.block = {request->disk, request->queue_ns, request->issue_ns},
	};

	if (!ky_glob_match(members->of.name, request->disk->name))
		return 0;
	return members_add(members, &member,
			   members->focus->cpus.len ? members->focus->cpus.data[0] : 0);
}

static int members_on_irq(void *data, const struct ky_irq *irq)
{
	struct ky_cause_members *members = data;
	struct ky_cause_member member = {
		.begin_ns = irq->raise_ns != INT64_MIN ? irq->raise_ns : irq->begin_ns,
		.end_ns = irq->end_ns,
		.thread = irq->thread,
		.irq = {irq->line, irq->cpu, irq->begin_ns},
	};
	bool soft = irq->line->kind == KY_IRQ_SOFT;

	if (soft != (members->of.kind == KY_OF_SOFTIRQ) || irq->begin_ns == INT64_MIN ||
	    !ky_glob_match(members->of.name, irq->line->name))
		return 0;
	return members_add(members, &member, irq->cpu->id);
}

static int members_on_period(void *data, const struct ky_period *period)
{
	struct ky_cause_members *members = data;
	struct ky_cause_member member = {.begin_ns = period->begin_ns,
					 .end_ns = period->end_ns,
					 .thread = period->thread,
					 .period = period->def};

	if (!ky_glob_match(members->of.name, period->def->name))
		return 0;
	if (period->outcome != KY_PERIOD_DONE || !period->thread) {
		members->unmeasured++;
		return 0;
	}
	return members_add(members, &member, period->cpu_id);
}

struct ky_cause_members *ky_cause_members_new(struct ky_model *model, struct ky_causes *causes,
					      const struct ky_of *of, const struct ky_focus *focus)
{
	struct ky_cause_members *members = calloc(1, sizeof(*members));
	struct ky_listener listener = {
		.data = members,
		.call = of->kind == KY_OF_SYSCALL ? members_on_call : NULL,
		.waited = of->kind == KY_OF_WAKEUP || of->kind == KY_OF_PREEMPTION
				  ? members_on_waited
				  : NULL,
		.request = of->kind == KY_OF_BLOCK ? members_on_request : NULL,
		.irq = of->kind == KY_OF_IRQ || of->kind == KY_OF_SOFTIRQ ? members_on_irq : NULL,
		.period = of->kind == KY_OF_PERIOD ? members_on_period : NULL,
	};

	if (!members)
		return NULL;
	members->model = model;
	members->of = *of;
	members->focus = focus;
	members->borrows = causes;
	members->causes = causes ? causes : ky_causes_new(model);
	if (members->causes && ky_model_listen(model, &listener) == 0)
		return members;
	ky_cause_members_free(members);
	return NULL;
}

/* The time of each thread in the range: from its first sign, or its program's begin on, and to its end. */
int ky_cause_members_end(struct ky_cause_members *members)
{
	int64_t begin = ky_model_begin_ns(members->model), end = ky_model_end_ns(members->model);

	if (members->of.kind != KY_OF_THREADS || begin == INT64_MIN)
		return 0;
	if (begin < members->focus->begin_ns)
		begin = members->focus->begin_ns;
	for (size_t i = 0; i < ky_model_n_threads(members->model); i++) {
		const struct ky_thread *thread = ky_model_thread(members->model, i);
		const struct ky_track *track = ky_causes_track(members->causes, thread);
		struct ky_cause_member member = {begin, end, thread, {0}};

		if (!track || !track->stretches.len)
			continue;
		if (track->stretches.data[0].begin_ns > begin)
			member.begin_ns = track->stretches.data[0].begin_ns;
		if (ky_track_program_ns(members->causes, track) > member.begin_ns)
			member.begin_ns = ky_track_program_ns(members->causes, track);
		if (thread->dead && ky_vec_last(&track->stretches)->end_ns < end)
			member.end_ns = ky_vec_last(&track->stretches)->end_ns;
		if (member.begin_ns < member.end_ns &&
		    members_add(members, &member,
				members->focus->cpus.len ? members->focus->cpus.data[0] : 0) < 0)
			return KYMO_E_MEMORY;
	}
	return 0;
}

void ky_cause_members_free(struct ky_cause_members *members)
{
	if (!members)
		return;
	if (!members->borrows)
		ky_causes_free(members->causes);
	ky_vec_fini(&members->names);
	ky_vec_fini(&members->list);
	free(members);
}

int ky_cause_member_explain(const struct ky_cause_members *members,
			    const struct ky_cause_member *member, ky_part_hook part, void *data)
{
	struct ky_request request;
	struct ky_irq irq;

	switch (members->of.kind) {
	case KY_OF_BLOCK:
		request = (struct ky_request){.disk = member->block.disk,
					      .queue_ns = member->block.queue_ns,
					      .issue_ns = member->block.issue_ns,
					      .end_ns = member->end_ns,
					      .thread = member->thread};
		return ky_causes_explain_request(members->causes, &request, part, data);
	case KY_OF_IRQ:
	case KY_OF_SOFTIRQ:
		irq = (struct ky_irq){.line = member->irq.line,
				      .cpu = member->irq.cpu,
				      .raise_ns = member->begin_ns,
				      .begin_ns = member->irq.handler_ns,
				      .end_ns = member->end_ns};
		return ky_causes_explain_irq(members->causes, &irq, part, data);
	default:
		return ky_causes_explain(members->causes, member->thread, member->begin_ns,
					 member->end_ns, part, data);
	}
}
