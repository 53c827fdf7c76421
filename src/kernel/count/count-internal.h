/* SPDX-License-Identifier: MIT */
/* The parts of count.h: which events with which config (count-plan.c), and the programs (count.c). */
#ifndef KY_KERNEL_COUNT_COUNT_INTERNAL_H
#define KY_KERNEL_COUNT_COUNT_INTERNAL_H

#include "base/arena.h"
#include "base/vec.h"
#include "kernel/condition/condition.h"
#include "kernel/count/count-layout.h"
#include "kernel/count/count.h"
#include "kernel/events/catalogue.h"
#include "query/ast.h"

/* An event that counts. */
struct ky_count_event {
	const char *system, *event, *name; /* of tracefs, and in a trace */
	const struct ky_event_field *fields;
	size_t n_fields;
	int call; /* the number of the system call that it is of; negative: of none, or unknown */
	bool is_never; /* its filter is true of none */
	struct ky_count_config config;
};

struct ky_count_plan {
	struct ky_arena arena;
	struct ky_catalogue catalogue;
	KY_VEC(struct ky_count_event) events;
	struct ky_count_column columns[KY_COUNT_FIELDS_MAX];
	size_t n_columns;
	uint32_t key_bytes;
	bool has_missing;
};

/* Everything in the plan but own_tgid and follows. After an error ky_count_plan_fini() follows, too. */
int ky_count_plan_init(struct ky_count_plan *plan, const struct ky_count_options *options,
		       struct kymo_error *err);
void ky_count_plan_fini(struct ky_count_plan *plan);

/* The field @name of an event, without its place in a key. As ky_condition_find_field(), and the stacks and the event itself. */
bool ky_count_find_field(const struct ky_count_event *event, enum ky_name_kind kind,
			 const char *name, struct ky_condition_field *field,
			 const struct ky_event_field **source);

#endif
