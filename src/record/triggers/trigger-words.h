/* SPDX-License-Identifier: MIT */
/*
 * The words of a condition's text: what trigger-parse.c takes from it, step by step.
 *
 * Threads: one per text.
 */
#ifndef KY_RECORD_TRIGGERS_TRIGGER_WORDS_H
#define KY_RECORD_TRIGGERS_TRIGGER_WORDS_H

#include "record/triggers/trigger-rule.h"

struct ky_trigger_parser {
	const char *text, *at;
	struct ky_trigger_condition *condition;
	struct kymo_error *err;
};

/* A mistake at @at. Returns KYMO_E_INVALID. */
__attribute__((format(printf, 3, 4))) int ky_trigger_bad(const struct ky_trigger_parser *p,
							 const char *at, const char *fmt, ...);

const char *ky_trigger_skip_blanks(const char *at);
/* Whether @word, a whole word, is at @at. */
bool ky_trigger_is_at(const char *at, const char *word);
/* "with duration", "within", "5 times" and so on, at @at: the words behind the events. */
bool ky_trigger_begins_clause(const char *at);
/* Behind the text in quotes at @at; NULL: it does not end. */
const char *ky_trigger_behind_quotes(const char *at);
/* A copy of @from up to @to, without blanks at its end; the caller frees it. NULL: no memory. */
char *ky_trigger_copy(const char *from, const char *to);

/* Takes @word, if it is the next one. */
bool ky_trigger_take(struct ky_trigger_parser *p, const char *word);
/* A word without blanks, such as a number; "" at the end. KYMO_E_INVALID: it is too long. */
int ky_trigger_take_word(struct ky_trigger_parser *p, char *word, size_t size);
/* A time, a number from 1 to @max, "within TIME". KYMO_E_INVALID. */
int ky_trigger_take_time(struct ky_trigger_parser *p, uint64_t *ns);
int ky_trigger_take_number(struct ky_trigger_parser *p, uint64_t *number, uint64_t max);
int ky_trigger_take_within(struct ky_trigger_parser *p, uint64_t *ns);
/* The end of the expression at p->at: the next clause that is in no quotes and parentheses. KYMO_E_INVALID. */
int ky_trigger_find_end(const struct ky_trigger_parser *p, const char **end);

#endif
