/* SPDX-License-Identifier: MIT */
/*
 * The triggers of a recording: conditions that are watched while it runs, and what fired.
 *
 *	ky_triggers_new()	an empty set
 *	ky_triggers_add()	a trigger; its sessions are set up, and started after start
 *	ky_triggers_start()
 *	ky_triggers_step()	whenever ky_triggers_fd() is readable
 *	ky_triggers_take()	what fired; the caller carries out the actions
 *	ky_triggers_free()
 *
 * docs/design/triggers.md has the reasons.
 *
 * Threads: one at a time per set.
 */
#ifndef KY_RECORD_TRIGGERS_TRIGGERS_H
#define KY_RECORD_TRIGGERS_TRIGGERS_H

#include "record/triggers/trigger-firing.h"
#include "record/triggers/trigger-source.h"

#define KY_TRIGGERS_MAX 32

struct ky_triggers;

/* What conditions about the recording compare; the counts are since its beginning. */
struct ky_triggers_amounts {
	uint64_t lost, bytes, fill_percent;
};

/* A trigger of the set. */
struct ky_trigger_info {
	uint32_t number;		    /* 1 and up; never given twice */
	const struct ky_trigger_rule *rule; /* valid until the trigger is removed */
	uint64_t n_fired, n_held, n_lost;   /* lost: events that its source could not take in */
};

/* @scope is copied; what it points to must outlive the set. KYMO_E_IO, KYMO_E_MEMORY. */
int ky_triggers_new(const struct ky_trigger_scope *scope, struct ky_triggers **triggers,
		    struct kymo_error *err);
/* NULL is allowed. */
void ky_triggers_free(struct ky_triggers *triggers);

/*
 * Add a trigger with the rule *rule, which the set takes over, on failure too. *number: its number,
 * may be NULL. Errors: those of ky_trigger_source_open(); KYMO_E_LIMIT: the set has
 * KY_TRIGGERS_MAX triggers.
 */
int ky_triggers_add(struct ky_triggers *triggers, struct ky_trigger_rule *rule, uint32_t *number,
		    struct kymo_error *err);
/* KYMO_E_NOT_FOUND: the set has no trigger of this number. */
int ky_triggers_remove(struct ky_triggers *triggers, uint32_t number, struct kymo_error *err);
/* The @i-th trigger; false: the set has not so many. */
bool ky_triggers_at(struct ky_triggers *triggers, size_t i, struct ky_trigger_info *info);

/* Before start: as ky_session_choose_child(). */
int ky_triggers_choose_child(struct ky_triggers *triggers, int32_t pid, struct kymo_error *err);
/* @own_tids: threads of the recorder; their events of the kernel do not count. */
int ky_triggers_start(struct ky_triggers *triggers, const int32_t *own_tids, size_t n_own_tids,
		      struct kymo_error *err);
/*
 * The sources end, and hand on the last events. The caller then takes what has fired. Only ky_triggers_rule(),
 * ky_triggers_take() and ky_triggers_free() may follow.
 */
void ky_triggers_stop(struct ky_triggers *triggers);
/* Becomes readable when a step is due. The set owns it. */
int ky_triggers_fd(const struct ky_triggers *triggers);
/* Handles all pending work. An error of a trigger's source ends this trigger, with a warning. */
void ky_triggers_step(struct ky_triggers *triggers);

/* Whether a condition compares amounts: the caller should report them about once per second. */
bool ky_triggers_want_amounts(const struct ky_triggers *triggers);
void ky_triggers_report(struct ky_triggers *triggers, const struct ky_triggers_amounts *amounts);

/* The oldest firing; NULL: none exists. The caller frees it with ky_trigger_firing_free(). */
struct ky_trigger_firing *ky_triggers_take(struct ky_triggers *triggers);
/* The rule of trigger @number; NULL: it was removed. */
const struct ky_trigger_rule *ky_triggers_rule(const struct ky_triggers *triggers, uint32_t number);

#endif
