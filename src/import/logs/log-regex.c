/* SPDX-License-Identifier: MIT */
/*
 * A user's regular expression (PCRE2) with named groups: each becomes a field, but "time". The user may add strftime()'s format of the
 * time.
 */
#include <stdlib.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/error.h"
#include "import/logs/log-format.h"
#include "import/logs/log-regex.h"
#include "os/library.h"

#define PCRE2_FUNCTIONS(X)                        \
	X(pcre2_code_free_8)                      \
	X(pcre2_compile_8)                        \
	X(pcre2_get_error_message_8)              \
	X(pcre2_get_ovector_pointer_8)            \
	X(pcre2_jit_compile_8)                    \
	X(pcre2_match_8)                          \
	X(pcre2_match_context_create_8)           \
	X(pcre2_match_context_free_8)             \
	X(pcre2_match_data_create_from_pattern_8) \
	X(pcre2_match_data_free_8)                \
	X(pcre2_pattern_info_8)                   \
	X(pcre2_set_heap_limit_8)                 \
	X(pcre2_set_match_limit_8)

PCRE2_FUNCTIONS(KY_LIBRARY_TYPE)

static struct {
	PCRE2_FUNCTIONS(KY_LIBRARY_MEMBER)
} regex_library;

#define SYMBOL(name) {#name, offsetof(__typeof__(regex_library), name)},
static const struct ky_library_symbol symbols[] = {PCRE2_FUNCTIONS(SYMBOL){0}};

/* With the first expression: other commands do not wait for the library. */
static int log_regex_load(struct kymo_error *err)
{
	return regex_library.pcre2_compile_8 ? KYMO_OK
					     : ky_library_load("libpcre2-8.so.0", "libpcre2-8-0",
							       symbols, &regex_library, err);
}

/* Steps of one match: an expression that tries everything must not take for ever, nor for each of a million lines. */
#define MATCH_LIMIT 1000000u
#define LINES_MAX   20
/* Of one match. */
#define HEAP_KIB (64u << 10)

struct log_regex {
	pcre2_code *code;
	pcre2_match_data *match;
	pcre2_match_context *context;
	uint32_t n_names, name_bytes;
	unsigned int n_limits; /* lines of which the match took too many steps */
	const char *names;     /* pcre2's table: two bytes of the group's number, then the name */
};

int ky_log_regex_open(const char *expression, struct ky_log_regex **out, struct kymo_error *err)
{
	struct log_regex *regex;
	PCRE2_SIZE offset;
	PCRE2_UCHAR why[128];
	int code, ret = log_regex_load(err);

	*out = NULL;
	if (ret < 0)
		return ret;
	regex = calloc(1, sizeof(*regex));
	*out = (struct ky_log_regex *)regex;
	if (!regex)
		return ky_error_nomem(err);
	regex->code = regex_library.pcre2_compile_8((PCRE2_SPTR)expression, PCRE2_ZERO_TERMINATED,
						    0, &code, &offset, NULL);
	if (!regex->code) {
		regex_library.pcre2_get_error_message_8(code, why, sizeof(why));
		ret = ky_error_set(err, KYMO_E_INVALID, "%s", (const char *)why);
		ky_error_input(err, "log-format");
		ky_error_line(err, 1, (uint32_t)offset + 1);
		return ret;
	}
	regex_library.pcre2_pattern_info_8(regex->code, PCRE2_INFO_NAMECOUNT, &regex->n_names);
	regex_library.pcre2_pattern_info_8(regex->code, PCRE2_INFO_NAMEENTRYSIZE,
					   &regex->name_bytes);
	regex_library.pcre2_pattern_info_8(regex->code, PCRE2_INFO_NAMETABLE, &regex->names);
	if (!regex->n_names) {
		ret = ky_error_set(err, KYMO_E_INVALID,
				   "the expression has no named groups, such as (?<time>...)");
		ky_error_input(err, "log-format");
		return ret;
	}
	regex->match = regex_library.pcre2_match_data_create_from_pattern_8(regex->code, NULL);
	regex->context = regex_library.pcre2_match_context_create_8(NULL);
	if (!regex->match || !regex->context)
		return ky_error_nomem(err);
	regex_library.pcre2_set_match_limit_8(regex->context, MATCH_LIMIT);
	regex_library.pcre2_set_heap_limit_8(regex->context, HEAP_KIB);
	(void)regex_library.pcre2_jit_compile_8(regex->code, PCRE2_JIT_COMPLETE);
	return KYMO_OK;
}

void ky_log_regex_close(struct ky_log_regex *opaque)
{
	struct log_regex *regex = (struct log_regex *)opaque;

	if (!regex)
		return;
	regex_library.pcre2_match_context_free_8(regex->context);
	regex_library.pcre2_match_data_free_8(regex->match);
	regex_library.pcre2_code_free_8(regex->code);
	free(regex);
}

static bool log_regex_time(struct ky_log_file *log, const char *text, size_t len, int64_t *ns)
{
	const char *at = text, *end = text + len;

	if (log->time_format)
		return ky_log_time_format(&log->clock, log->time_format, &at, end, ns);
	return ky_log_time_iso(&log->clock, &at, end, ns) ||
	       ky_log_time_bsd(&log->clock, &at, end, ns) ||
	       (ky_log_time_count(&at, end, ns) && at == end) ||
	       (at = text, ky_log_time_of_day(&log->clock, &at, end, ns));
}

/* As pcre2_match(). Negative with log->err: the expression is too slow. */
static int log_regex_match(struct ky_log_file *log, const char *line, size_t len)
{
	struct log_regex *regex = log->state;
	PCRE2_SPTR text = (PCRE2_SPTR)line;
	int ret = regex_library.pcre2_match_8(regex->code, text, len, 0, 0, regex->match,
					      regex->context);

	/* The stack of compiled expressions is small; the interpreter has more. */
	if (ret == PCRE2_ERROR_JIT_STACKLIMIT)
		ret = regex_library.pcre2_match_8(regex->code, text, len, 0, PCRE2_NO_JIT,
						  regex->match, regex->context);
	if (ret != PCRE2_ERROR_MATCHLIMIT && ret != PCRE2_ERROR_HEAPLIMIT)
		return ret > 0 ? ret : 0;
	if (++regex->n_limits < LINES_MAX)
		return 0;
	return ky_foreign_bad(
		&log->file, log->line_at,
		"the expression of --log-format takes too many steps: it is too slow for this "
		"file; try one without repetitions in repetitions, such as (a+)+",
		log->err);
}

static int regex_line(struct ky_log_file *log, const char *line, size_t len)
{
	const struct log_regex *regex = log->state;
	struct ky_log_value values[KY_LOG_FIELDS_MAX];
	const PCRE2_SIZE *places;
	int64_t ns = log->last_ns;
	bool has_time = false;
	size_t n = 0;
	int ret = log_regex_match(log, line, len);

	if (ret <= 0)
		return ret;
	places = regex_library.pcre2_get_ovector_pointer_8(regex->match);
	for (uint32_t i = 0; i < regex->n_names && n < KY_LOG_FIELDS_MAX; i++) {
		const char *entry = regex->names + (size_t)i * regex->name_bytes;
		size_t group = (size_t)(uint8_t)entry[0] << 8 | (uint8_t)entry[1];
		const char *text = "";
		size_t text_len = 0;

		if (places[2 * group] != PCRE2_UNSET &&
		    places[2 * group + 1] >= places[2 * group]) {
			text = line + places[2 * group];
			text_len = places[2 * group + 1] - places[2 * group];
		}
		if (strcmp(entry + 2, "time") == 0) {
			if (!log_regex_time(log, text, text_len, &ns))
				return 0;
			has_time = true;
			continue;
		}
		values[n++] = ky_log_guess(entry + 2, strlen(entry + 2), text, text_len);
	}
	log->n_timeless += !has_time;
	ret = ky_log_event(log, "log", ns, values, n);
	return ret < 0 ? ret : 1;
}

const struct ky_log_format ky_log_regex = {
	.name = "regex",
	.description = "a regular expression with named groups",
	.line = regex_line,
};
