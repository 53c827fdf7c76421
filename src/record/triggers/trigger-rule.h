/* SPDX-License-Identifier: MIT */
/*
 * A trigger as its user writes it: a condition and actions. docs/triggers.md has the grammar.
 *
 *	syscall_exit_fsync with duration > 100ms		 snapshot
 *	irq_handler_entry if irq == 19 1000 times within 1s	 notify
 *	shop:request -> shop:reply by id with duration > 1s	 run:./look
 *	shop:beat without shop:beat within 5s			 report
 *	loss > 100   fill > 80%   size > 1G   at 03:00   every 10min
 *
 * Threads: a rule is immutable once parsed.
 */
#ifndef KY_RECORD_TRIGGERS_TRIGGER_RULE_H
#define KY_RECORD_TRIGGERS_TRIGGER_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kymo/error.h>

#include "base/vec.h"

#define KY_TRIGGER_TEXT_MAX    4096 /* bytes of a condition or an action */
#define KY_TRIGGER_KEYS_MAX    4
#define KY_TRIGGER_ACTIONS_MAX 16

enum ky_trigger_kind {
	KY_TRIGGER_EVENT,    /* `first`, `count` times within `within_ns` */
	KY_TRIGGER_WITHOUT,  /* `first`, and no `second` within `within_ns` after it */
	KY_TRIGGER_DURATION, /* `first` to `second` with the same key */
	KY_TRIGGER_LOSS,     /* more than `number` events were lost since the last time */
	KY_TRIGGER_FILL,     /* a buffer is filled by more than `number` per cent */
	KY_TRIGGER_SIZE,     /* more than `number` bytes were written since the last time */
	KY_TRIGGER_AT,	     /* at `number` seconds after midnight, local time */
	KY_TRIGGER_EVERY,    /* every `within_ns` */
};

enum ky_trigger_compare { KY_TRIGGER_GT, KY_TRIGGER_GE, KY_TRIGGER_LT, KY_TRIGGER_LE };

/* Events of the kernel or of programs. */
struct ky_trigger_events {
	bool of_programs;
	char *pattern;	  /* NULL: the condition has no such events */
	char *filter;	  /* NULL: none */
	size_t filter_at; /* offset of the filter in the condition's text */
};

/* An expression of the begin and one of the end, which must have the same value. */
struct ky_trigger_key {
	char *begin, *end;
};

struct ky_trigger_condition {
	char *text;
	enum ky_trigger_kind kind;
	struct ky_trigger_events first, second;
	struct ky_trigger_key keys[KY_TRIGGER_KEYS_MAX];
	size_t n_keys;
	enum ky_trigger_compare compare;
	uint64_t duration_ns; /* of DURATION */
	uint64_t count, within_ns, number;
	/* Limits. */
	uint64_t once_per_ns; /* fires at most once in this time; 0: no limit */
	uint64_t first_n;     /* fires so many times only; 0: no limit */
};

enum ky_trigger_action_kind {
	KY_TRIGGER_SNAPSHOT,
	KY_TRIGGER_ROTATE,
	KY_TRIGGER_START,
	KY_TRIGGER_STOP,
	KY_TRIGGER_RUN,
	KY_TRIGGER_MARK,
	KY_TRIGGER_NOTIFY,
	KY_TRIGGER_REPORT,
	KY_TRIGGER_ACTION_KINDS,
};

struct ky_trigger_action {
	enum ky_trigger_action_kind kind;
	char *text;	/* as it was written */
	char *argument; /* NULL: none */
};

struct ky_trigger_rule {
	struct ky_trigger_condition condition;
	KY_VEC(struct ky_trigger_action) actions;
};

/*
 * Parse @text. KYMO_E_INVALID with the column; KYMO_E_MEMORY. The caller must call
 * ky_trigger_rule_fini() in any case. @rule is zeroed first.
 */
int ky_trigger_rule_parse(struct ky_trigger_rule *rule, const char *text, struct kymo_error *err);
/* Add the action @text: "snapshot", "run:COMMAND". Errors as above. */
int ky_trigger_rule_add_action(struct ky_trigger_rule *rule, const char *text,
			       struct kymo_error *err);
void ky_trigger_rule_fini(struct ky_trigger_rule *rule);

/* "snapshot", "run". */
const char *ky_trigger_action_name(enum ky_trigger_action_kind kind);
/* Whether the condition is about events. */
static inline bool ky_trigger_has_events(const struct ky_trigger_condition *condition)
{
	return condition->kind <= KY_TRIGGER_DURATION;
}

/*
 * trigger-pairs.c: the begin of an end whose pair is known, such as syscall_exit_read, with the
 * keys of the pair. 0; KYMO_E_NOT_FOUND: there is no known pair; KYMO_E_MEMORY.
 */
int ky_trigger_find_begin(struct ky_trigger_condition *condition);

#endif
