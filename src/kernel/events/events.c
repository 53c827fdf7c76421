/* SPDX-License-Identifier: MIT */
#include "kernel/events/events-internal.h"

#include <stdio.h>
#include <string.h>

#include <kymo/error.h>

#include "base/text.h"
#include "kernel/events/compat-calls.h"

/* ---- names ---------------------------------------------------------------------------- */

/* "SYSTEM/PREFIX" -> what stands instead; the rest of the event's name follows. */
static const struct name_rule {
	const char *system, *prefix, *instead;
} name_rules[] = {
	{"syscalls", "sys_enter_", "syscall_entry_"},
	{"syscalls", "sys_exit_", "syscall_exit_"},
	{KY_COMPAT_SYSTEM, "sys_enter_", "compat_syscall_entry_"},
	{KY_COMPAT_SYSTEM, "sys_exit_", "compat_syscall_exit_"},
	{KY_UNKNOWN_SYSTEM, "sys_enter_", "syscall_entry_"},
	{KY_UNKNOWN_SYSTEM, "sys_exit_", "syscall_exit_"},
	{"net", "netif_", "net_if_"},
	{"irq_vectors", "", "x86_irq_vectors_"},
	{"exceptions", "", "x86_exceptions_"},
	{"skb", "kfree_skb", "skb_kfree"},
	{"skb", "consume_skb", "skb_consume"},
	{"vmscan", "mm_vmscan_", "mm_vmscan_"},
	{"compaction", "mm_compaction_", "compaction_"},
	{"kvm", "kvm_entry", "kvm_x86_entry"},
	{"kvm", "kvm_exit", "kvm_x86_exit"},
};

void ky_event_name(const char *system, const char *event, char *name)
{
	size_t len = strlen(system);

	for (size_t i = 0; i < sizeof(name_rules) / sizeof(name_rules[0]); i++) {
		const struct name_rule *rule = &name_rules[i];
		size_t skip = strlen(rule->prefix);

		if (strcmp(rule->system, system) != 0 || strncmp(event, rule->prefix, skip) != 0)
			continue;
		snprintf(name, KY_EVENT_NAME_BYTES, "%s%s", rule->instead, event + skip);
		return;
	}
	if (strncmp(event, system, len) == 0 && (event[len] == '_' || event[len] == '\0'))
		snprintf(name, KY_EVENT_NAME_BYTES, "%s", event);
	else
		snprintf(name, KY_EVENT_NAME_BYTES, "%s_%s", system, event);
}

bool ky_event_is_syscall(const char *system)
{
	return strcmp(system, "syscalls") == 0 || ky_compat_is_system(system) ||
	       ky_unknown_is_system(system);
}

enum ky_event_role ky_event_role(const char *system, const char *event)
{
	static const struct {
		const char *system, *event;
		enum ky_event_role role;
	} roles[] = {
		{"sched", "sched_switch", KY_EVENT_SWITCH},
		{"sched", "sched_process_fork", KY_EVENT_FORK},
		{"sched", "sched_process_exec", KY_EVENT_EXEC},
		{"sched", "sched_process_exit", KY_EVENT_EXIT},
		{"sched", "sched_pi_setprio", KY_EVENT_SETPRIO},
		{"task", "task_newtask", KY_EVENT_NEWTASK},
		{"task", "task_rename", KY_EVENT_RENAME},
		{"cgroup", "cgroup_attach_task", KY_EVENT_CGROUP},
		{"ftrace", "kernel_stack", KY_EVENT_KERNEL_STACK},
		{"ftrace", "user_stack", KY_EVENT_USER_STACK},
	};

	if (ky_event_is_syscall(system))
		return KY_EVENT_SYSCALL;
	for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++)
		if (!strcmp(roles[i].system, system) && !strcmp(roles[i].event, event))
			return roles[i].role;
	return KY_EVENT_PLAIN;
}

/* ---- fields --------------------------------------------------------------------------- */

enum rule_kind {
	AS_IS, /* what the format says */
	PRIO,
	COMM,
	RWBS,
	TID,	    /* added where the format has field @from */
	PARENT_PID, /* likewise */
	CHILD_PID,
	DROP,
};

/* The fields that a rule lists come first, in its order; those it does not know follow. */
struct field_rule {
	const char *from, *to;
	enum rule_kind kind;
};

static const struct field_rule fork_fields[] = {
	{"parent_comm", "parent_comm", COMM},
	{"parent_pid", "parent_tid", AS_IS},
	{"parent_pid", "parent_pid", PARENT_PID},
	{"child_comm", "child_comm", COMM},
	{"child_pid", "child_tid", AS_IS},
	{"child_pid", "child_pid", CHILD_PID},
	{0},
};

static const struct field_rule exec_fields[] = {
	{"filename", "filename", AS_IS},
	{"pid", "tid", AS_IS},
	{"old_pid", "old_tid", AS_IS},
	{0},
};

static const struct field_rule sched_fields[] = {
	{"prev_comm", "prev_comm", COMM},
	{"prev_pid", "prev_tid", AS_IS},
	{"prev_prio", "prev_prio", PRIO},
	{"prev_state", "prev_state", AS_IS},
	{"next_comm", "next_comm", COMM},
	{"next_pid", "next_tid", AS_IS},
	{"next_prio", "next_prio", PRIO},
	{"comm", "comm", COMM},
	{"pid", "tid", AS_IS},
	{"prio", "prio", PRIO},
	{"oldprio", "oldprio", PRIO},
	{"newprio", "newprio", PRIO},
	{0},
};

static const struct field_rule block_fields[] = {
	{"dev", "dev", AS_IS},	   {"sector", "sector", AS_IS}, {"nr_sector", "nr_sector", AS_IS},
	{"bytes", "bytes", AS_IS}, {"error", "error", AS_IS},	{"comm", "tid", TID},
	{"rwbs", "rwbs", RWBS},	   {"comm", "comm", AS_IS},	{0},
};

static const struct field_rule xmit_fields[] = {
	{"skbaddr", "skbaddr", AS_IS},
	{"rc", "rc", AS_IS},
	{"len", "len", AS_IS},
	{"name", "name", AS_IS},
	{0},
};

static const struct field_rule signal_fields[] = {
	{"sig", "sig", AS_IS},	 {"errno", "errno", AS_IS}, {"code", "code", AS_IS},
	{"comm", "comm", AS_IS}, {"pid", "tid", AS_IS},	    {0},
};

static const struct field_rule softirq_fields[] = {
	{"vec", "vec", AS_IS},
	{0},
};

static const struct field_rule kmem_fields[] = {
	{"call_site", "call_site", AS_IS},
	{"ptr", "ptr", AS_IS},
	{"name", "name", AS_IS},
	{"bytes_req", "bytes_req", AS_IS},
	{"bytes_alloc", "bytes_alloc", AS_IS},
	{"pfn", "pfn", AS_IS},
	{"order", "order", AS_IS},
	{"gfp_flags", "gfp_flags", AS_IS},
	{0},
};

static const struct field_rule syscall_fields[] = {
	{"__syscall_nr", "", DROP},
	{"nr", "", DROP}, /* its name in older kernels, whose events have no such argument first */
	{0},
};

/* Of probes: of entry, and of return. */
static const struct field_rule probe_fields[] = {
	{"__probe_ip", "ip", AS_IS},
	{"__probe_func", "func", AS_IS},
	{"__probe_ret_ip", "ret_ip", AS_IS},
	{0},
};

/* First match. Both are globs. */
static const struct event_rule {
	const char *system, *event;
	const struct field_rule *fields;
} event_rules[] = {
	{"sched", "sched_process_fork", fork_fields},
	{"sched", "sched_process_exec", exec_fields},
	{"sched", "*", sched_fields},
	{"block", "*", block_fields},
	{"net", "net_dev_xmit", xmit_fields},
	{"signal", "signal_generate", signal_fields},
	{"irq", "softirq_*", softirq_fields},
	{"kmem", "*", kmem_fields},
	{"syscalls", "*", syscall_fields},
	{KY_COMPAT_SYSTEM, "*", syscall_fields},
	{KY_UNKNOWN_SYSTEM, "*", syscall_fields},
	{"kymo_*", "*", probe_fields},
};

static const struct field_rule *find_rules(const char *system, const char *event)
{
	static const struct field_rule none[] = {{0}};

	for (size_t i = 0; i < sizeof(event_rules) / sizeof(event_rules[0]); i++)
		if (ky_glob_match(event_rules[i].system, system) &&
		    ky_glob_match(event_rules[i].event, event))
			return event_rules[i].fields;
	return none;
}

const struct ky_format_field *ky_event_source(const struct ky_format *format, const char *name)
{
	for (size_t i = 0; i < format->n_fields; i++)
		if (strcmp(format->fields[i].name, name) == 0)
			return &format->fields[i];
	return NULL;
}

void ky_event_as_format_says(const struct ky_format_field *from, struct ky_event_field *to)
{
	to->kernel_name = from->name;
	to->is_kernel_text = from->kind == KY_FORMAT_POINTER && strstr(from->type, "char");
	to->offset = from->offset;
	to->size = from->size;
	to->is_signed = from->is_signed;
	to->is_kernel_signed = from->is_signed;
	to->is_relative = from->is_relative;
	to->is_device = from->kind == KY_FORMAT_INT && strcmp(from->type, "dev_t") == 0;
	to->base = 10;
	to->bytes = (uint8_t)from->size;
	switch (from->kind) {
	case KY_FORMAT_POINTER:
		to->base = 16;
		break;
	case KY_FORMAT_INT:
		break;
	case KY_FORMAT_TEXT:
		to->how = KY_HOW_TEXT;
		to->elements = from->size;
		break;
	case KY_FORMAT_ARRAY:
		to->how = KY_HOW_ARRAY;
		to->elements = from->elements;
		to->bytes = from->element_bytes;
		break;
	case KY_FORMAT_LOC_TEXT:
	case KY_FORMAT_REST_TEXT:
		to->how = KY_HOW_STRING;
		to->is_rest = from->kind == KY_FORMAT_REST_TEXT;
		break;
	case KY_FORMAT_LOC_ARRAY:
		to->how = KY_HOW_SEQUENCE;
		to->bytes = from->element_bytes;
		/* Of a bit mask, such as a set of CPUs, the bits tell more than the number. */
		if (strcmp(from->type, "cpumask_t") == 0)
			to->base = 16;
		break;
	}
}

static void base_as_printed(const struct ky_format_field *from, struct ky_event_field *to)
{
	if (from->base)
		to->base = from->base;
}

/*
 * How the kernel's developers show it. What LTTng has, which the rules list, gets no labels: its
 * readers know these fields as numbers.
 */
static void as_printed(const struct ky_format_field *from, struct ky_event_field *to)
{
	base_as_printed(from, to);
	to->labels = from->labels;
	to->n_labels = from->n_labels;
}

static void added_int(const struct ky_format_field *from, enum ky_field_how how,
		      struct ky_event_field *to)
{
	to->how = how;
	to->offset = from->offset;
	to->size = from->size;
	to->bytes = 4;
	to->base = 10;
	to->is_signed = how != KY_HOW_RWBS;
}

static bool is_int(const struct ky_format_field *field, uint16_t size)
{
	return field->kind == KY_FORMAT_INT && field->size == size;
}

/* Apply one rule. A field whose type is not what the rule expects stays as the format says. */
static void events_apply(const struct field_rule *rule, const struct ky_format_field *from,
			 struct ky_event_field *to)
{
	ky_event_as_format_says(from, to);
	switch (rule->kind) {
	case PRIO:
		if (is_int(from, 4))
			added_int(from, KY_HOW_PRIO, to);
		break;
	case COMM:
		if (from->kind == KY_FORMAT_LOC_TEXT) {
			to->how = KY_HOW_COMM;
			to->elements = KY_EVENT_COMM_BYTES;
		}
		break;
	case RWBS:
		if (from->kind == KY_FORMAT_TEXT)
			added_int(from, KY_HOW_RWBS, to);
		break;
	case TID:
		added_int(from, KY_HOW_TID, to);
		break;
	case PARENT_PID:
	case CHILD_PID:
		if (is_int(from, 4))
			added_int(from,
				  rule->kind == PARENT_PID ? KY_HOW_PARENT_PID : KY_HOW_CHILD_PID,
				  to);
		break;
	case AS_IS:
		base_as_printed(from, to);
		break;
	case DROP:
		break;
	}
}

/* ---- the whole event ------------------------------------------------------------------ */

/* Little-endian machines find an integer's low bytes first. */
static void low_bytes(struct ky_event_field *field)
{
	if (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ && field->how == KY_HOW_COPY &&
	    field->bytes < field->size)
		field->offset = (uint16_t)(field->offset + field->size - field->bytes);
}

static bool events_is_taken(const struct ky_event_field *fields, int n, const char *name)
{
	for (int i = 0; i < n; i++)
		if (strcmp(fields[i].name, name) == 0)
			return true;
	return false;
}

static bool events_is_listed(const struct field_rule *rules, const char *name)
{
	for (; rules->from; rules++)
		if (strcmp(rules->from, name) == 0)
			return true;
	return false;
}

int ky_event_fields(struct ky_arena *arena, const char *system, const struct ky_format *format,
		    struct ky_event_field **out)
{
	const struct field_rule *rules = find_rules(system, format->name);
	bool syscall = ky_event_is_syscall(system);
	struct ky_event_field *fields;
	size_t n_rules = 0;
	int n = 0;

	while (rules[n_rules].from)
		n_rules++;
	fields = ky_arena_array(arena, format->n_fields + n_rules + 1, sizeof(*fields));
	*out = fields;
	if (!fields)
		return KYMO_E_MEMORY;
	for (const struct field_rule *rule = rules; rule->from; rule++) {
		const struct ky_format_field *from = ky_event_source(format, rule->from);

		if (!from || rule->kind == DROP || events_is_taken(fields, n, rule->to))
			continue;
		fields[n].name = rule->to;
		events_apply(rule, from, &fields[n++]);
	}
	for (size_t i = 0; i < format->n_fields; i++) {
		const struct ky_format_field *from = &format->fields[i];
		/* `nr` is the call's number only where it stands first; io_submit has an `nr` too. */
		bool drop = events_is_listed(rules, from->name) && !(syscall && i > 0);

		if (drop || events_is_taken(fields, n, from->name) ||
		    (syscall && ky_event_is_text_of_another(format, from)))
			continue;
		fields[n].name = from->name;
		ky_event_as_format_says(from, &fields[n]);
		if (syscall)
			ky_event_argument(format, from, &fields[n]);
		else
			as_printed(from, &fields[n]);
		low_bytes(&fields[n++]);
	}
	return n;
}
