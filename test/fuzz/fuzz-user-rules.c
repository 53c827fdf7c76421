/* SPDX-License-Identifier: MIT */
/*
 * What people say about which events of programs they want, at the command line and, while a recording
 * runs, over its socket. The input is lines: a letter for what is done, then words between tabs:
 *
 *	aPATTERN [FILTER [COMM [LEVELS]]]	a rule
 *	xPATTERN	all rules exclude it	dPATTERN	disable	fPATTERN	forget
 *	rPATTERN [FILTER [LEVELS]]		a change of a recording that runs
 *
 * Whatever it is: it is taken or refused with a message; what was refused changed nothing; a copy has
 * the same opinion of each event; every offset of the session file that is made lies within it.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "record/request/user-request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define WORDS_MAX 4
#define LINES_MAX 64

/* ---- events to ask about ---- */

static const char *const names[][2] = {
	{"shop", "order_placed"},     {"shop", "a"}, {"*", "*"}, {"s\\", "x:"},
	{"lttng_ust_libc", "malloc"},
};
#define N_EVENTS (2 * sizeof(names) / sizeof(names[0]))

/* The last ones are places that ask, which have no level. */
static struct ky_user_event event_of(size_t i, struct ky_event_record *record)
{
	size_t n = N_EVENTS / 2;

	*record = (struct ky_event_record){.log_level = (uint8_t)(3 * (i % n))};
	return (struct ky_user_event){
		.record = record,
		.provider = names[i % n][0],
		.name = names[i % n][1],
		.is_query = i >= n,
	};
}

static unsigned int opinion(struct ky_user_request *request)
{
	struct ky_event_record record;
	unsigned int bits = 0;

	for (size_t i = 0; i < N_EVENTS; i++) {
		struct ky_user_event event = event_of(i, &record);

		bits |= (unsigned int)ky_user_request_wants(request, &event) << i;
	}
	return bits;
}

/* ---- the file ---- */

static void check_text(const struct ky_strbuf *file, uint64_t at)
{
	if (at >= file->len || !memchr(file->data + at, 0, file->len - at))
		abort();
}

static void check_array(const struct ky_strbuf *file, uint64_t at, uint64_t n, uint64_t bytes)
{
	if (n && (at % (bytes % 8 ? 4 : 8) || at > file->len || n * bytes > file->len - at))
		abort();
}

static void check_rule(const struct ky_strbuf *file, const struct ky_session_rule *rule)
{
	const uint32_t *exclusions = (const void *)(file->data + rule->exclusions);
	const struct ky_filter_op *op = (const void *)(file->data + rule->code);

	check_text(file, rule->pattern);
	check_array(file, rule->exclusions, rule->n_exclusions, sizeof(*exclusions));
	check_array(file, rule->code, rule->n_code, sizeof(*op));
	if (rule->n_code > KY_FILTER_OPS_MAX)
		abort();
	for (uint32_t i = 0; i < rule->n_exclusions; i++)
		check_text(file, exclusions[i]);
	for (uint32_t i = 0; i < rule->n_code; i++) {
		if (ky_user_filter_has_text(op[i].code))
			check_text(file, op[i].arg);
		else if ((op[i].code == KY_FILTER_AND || op[i].code == KY_FILTER_OR) &&
			 (op[i].arg <= i || op[i].arg > rule->n_code))
			abort();
	}
}

static void check_file(const struct ky_strbuf *file)
{
	const struct ky_session_file *head = (const void *)file->data;
	const struct ky_session_rule *rules = (const void *)(file->data + head->rules);

	if (head->bytes != file->len || file->len > KY_SESSION_BYTES_MAX)
		abort();
	check_array(file, head->rules, head->n_rules, sizeof(*rules));
	check_array(file, head->contexts, head->n_contexts, sizeof(struct ky_session_context));
	for (uint32_t i = 0; i < head->n_rules; i++)
		check_rule(file, &rules[i]);
}

/* ---- what is done ---- */

/* Words of @line, which ends with NUL; those that are not there are NULL. */
static void split(char *line, const char *words[WORDS_MAX])
{
	memset(words, 0, WORDS_MAX * sizeof(words[0]));
	for (int i = 0; i < WORDS_MAX && line; i++) {
		char *tab = strchr(line, '\t');

		if (tab)
			*tab++ = 0;
		words[i] = *line ? line : NULL;
		line = tab;
	}
}

static bool has_levels(const char *text, uint8_t *min, uint8_t *max)
{
	*min = 0;
	*max = 14;
	if (!text)
		return true;
	if (ky_user_levels_parse(text, min, max) < 0)
		return false;
	if (*min > *max || *max > 14)
		abort();
	return true;
}

static void refused(int ret, const struct kymo_error *err)
{
	if (ret < 0 && (!err->message[0] || err->code != ret))
		abort();
}

static void change(struct ky_user_request *request, bool enables, const char *pattern,
		   const char *filter, const char *levels)
{
	struct ky_user_change change = {.enables = enables, .pattern = pattern, .filter = filter};
	unsigned int before = opinion(request);
	uint64_t cookie = request->cookie;
	struct kymo_error err = {0};
	int ret;

	if (!has_levels(levels, &change.level_min, &change.level_max))
		return;
	ret = ky_user_request_change(request, &change, &err);
	refused(ret, &err);
	if (ret < 0 && (opinion(request) != before || request->cookie != cookie))
		abort();
	if (!ret && request->cookie == cookie)
		abort();
}

static void obey(struct ky_user_request *request, char *line)
{
	const char *words[WORDS_MAX];
	struct ky_user_rule_text text;
	struct kymo_error err = {0};
	int ret = 0;

	split(line + 1, words);
	if (!words[0])
		return;
	switch (*line) {
	case 'a':
		text = (struct ky_user_rule_text){
			.pattern = words[0], .filter = words[1], .comm = words[2]};
		if (has_levels(words[3], &text.level_min, &text.level_max))
			ret = ky_user_rules_add(&request->rules, &text, &err);
		break;
	case 'x':
		ret = ky_user_rules_exclude(&request->rules, words[0], &err);
		break;
	case 'd':
		change(request, false, words[0], NULL, NULL);
		break;
	case 'f':
		ky_user_rules_forget(&request->rules, words[0]);
		break;
	case 'r':
		change(request, true, words[0], words[1], words[2]);
		break;
	default:
		break;
	}
	refused(ret, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ky_os_clock clock = {.kind = KY_OS_CLOCK_MONOTONIC, .frequency_hz = 1000000000};
	struct ky_user_options options = {
		.buffer_bytes = 1 << 20, .level_max = 14, .clock = &clock};
	struct ky_user_request request, copy;
	struct kymo_error err = {0};
	char *text = malloc(size + 1), *next = text;

	if (!text || ky_user_request_init(&request, &options, &err) < 0)
		abort();
	memcpy(text, data, size);
	text[size] = 0;
	for (int i = 0; i < LINES_MAX && next && next < text + size; i++) {
		char *line = next, *end = strchr(line, '\n');

		if (end)
			*end = 0;
		next = end ? end + 1 : NULL;
		obey(&request, line);
	}
	memset(&copy, 0, sizeof(copy));
	if (ky_user_rules_copy(&request.rules, &copy.rules, &err) < 0 ||
	    opinion(&copy) != opinion(&request))
		abort();
	ky_user_rules_fini(&copy.rules);
	/* One more change, so that there is a file of these very rules. */
	change(&request, false, "never:never", NULL, NULL);
	check_file(&request.file);
	ky_user_request_fini(&request);
	free(text);
	return 0;
}
