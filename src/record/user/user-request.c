/* SPDX-License-Identifier: MIT */
#include "record/user/user-request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/error.h"
#include "record/user/user-context.h"

#define FILE_ALIGNMENT 8

/* ---- the session file ----------------------------------------------------------------- */

/* Where the next thing goes that wants to be aligned. */
uint32_t ky_user_file_align(struct ky_strbuf *file)
{
	while (file->len % FILE_ALIGNMENT)
		ky_strbuf_addc(file, 0);
	return (uint32_t)file->len;
}

uint32_t ky_user_file_text(struct ky_strbuf *file, const char *text)
{
	uint32_t at = (uint32_t)file->len;

	ky_strbuf_add(file, text, strlen(text) + 1);
	return at;
}

/* The operations, their texts being in the file from @texts on. */
static uint32_t add_code(struct ky_strbuf *file, const struct ky_user_filter *code, uint32_t texts)
{
	uint32_t at = ky_user_file_align(file);

	ky_vec_foreach(&code->ops, it) {
		struct ky_filter_op op = *it;

		if (ky_user_filter_has_text(op.code))
			op.arg += texts;
		ky_strbuf_add(file, (const char *)&op, sizeof(op));
	}
	return at;
}

/* All that the rule refers to; the rule itself. */
static struct ky_session_rule add_rule(struct ky_strbuf *file, const struct ky_user_rule *from)
{
	struct ky_session_rule rule = {
		.n_exclusions = (uint32_t)from->exclusions.len,
		.log_level_min = from->level_min,
		.log_level_max = from->level_max,
		.n_code = (uint32_t)from->code.ops.len,
	};
	uint32_t exclusion = (uint32_t)file->len, texts;

	for (size_t i = 0; i < from->exclusions.len; i++)
		ky_user_file_text(file, from->exclusions.data[i]);
	rule.pattern = ky_user_file_text(file, from->pattern);
	texts = (uint32_t)file->len;
	ky_strbuf_add(file, ky_strbuf_text(&from->code.texts), from->code.texts.len);
	rule.exclusions = ky_user_file_align(file);
	for (size_t i = 0; i < from->exclusions.len; i++) {
		ky_strbuf_add(file, (const char *)&exclusion, sizeof(exclusion));
		exclusion += (uint32_t)strlen(from->exclusions.data[i]) + 1;
	}
	rule.code = add_code(file, &from->code, texts);
	return rule;
}

static void add_rules(struct ky_strbuf *file, const struct ky_user_rules *rules,
		      struct ky_session_file *head)
{
	struct ky_strbuf list = KY_STRBUF_INIT;

	for (size_t i = 0; i < rules->list.len; i++) {
		struct ky_session_rule rule = add_rule(file, &rules->list.data[i]);

		ky_strbuf_add(&list, (const char *)&rule, sizeof(rule));
	}
	head->rules = ky_user_file_align(file);
	head->n_rules = (uint32_t)rules->list.len;
	ky_strbuf_add(file, ky_strbuf_text(&list), list.len);
	file->failed |= ky_strbuf_failed(&list);
	ky_strbuf_fini(&list);
}

void ky_user_clock_record(const struct ky_os_clock *clock, struct ky_clock_record *record)
{
	*record = (struct ky_clock_record){
		.kind = clock->kind == KY_OS_CLOCK_TSC ? KY_CLOCK_RECORD_TSC
						       : KY_CLOCK_RECORD_MONOTONIC,
		.frequency_hz = clock->frequency_hz,
		.offset_s = clock->offset_s,
		.offset_cycles = clock->offset_cycles,
		.precision_ns = clock->precision_ns,
	};
	memcpy(record->uuid, clock->uuid, sizeof(record->uuid));
}

static int make_file(struct ky_user_request *request, struct kymo_error *err)
{
	const struct ky_user_options *options = request->options;
	struct ky_strbuf *file = &request->file;
	struct ky_session_file head = {
		.magic = KY_SESSION_MAGIC,
		.version = KY_CONTROL_VERSION,
		.cookie = request->cookie,
		.subbuf_bytes = request->subbuf_bytes,
		.n_subbufs = request->n_subbufs,
		.n_track_pids = options->pid != 0,
		.flags = options->overwrite ? KY_SESSION_OVERWRITE : 0,
		.wait_ns = options->overwrite ? 0 : options->wait_ns,
	};
	/* Programs know themselves by what they are called in their PID namespace. */
	uint32_t inner = options->pid ? ky_program_inner_pid((pid_t)options->pid) : 0;
	int ret;

	ky_user_clock_record(options->clock, &head.clock);
	memcpy(head.uuid, request->uuid, sizeof(head.uuid));
	ky_strbuf_add(file, (const char *)&head, sizeof(head));
	ret = ky_user_contexts_add(file, options->contexts, &head, err);
	if (ret < 0)
		return ret;
	add_rules(file, &request->rules, &head);
	head.track_pids = ky_user_file_align(file);
	if (options->pid)
		ky_strbuf_add(file, (const char *)&inner, sizeof(inner));
	head.bytes = ky_user_file_align(file);
	if (ky_strbuf_failed(file))
		return ky_error_nomem(err);
	if (file->len > KY_SESSION_BYTES_MAX)
		return ky_error_set(
			err, KYMO_E_INVALID,
			"too many patterns, or too long ones: programs read up to 1 MiB");
	memcpy(file->data, &head, sizeof(head));
	return KYMO_OK;
}

/* ---- the request ---------------------------------------------------------------------- */

#define SUBBUF_BYTES_MIN 4096u
#define SUBBUFS_MAX	 1024u

/* As the ring's defaults; small buffers have small sub-buffers, large ones larger. */
static void choose_buffers(struct ky_user_request *request)
{
	uint64_t wanted = request->options->buffer_bytes;
	uint32_t subbuf = KYMO_RING_DEFAULT_SUBBUF_BYTES, n = 2;

	while (subbuf > SUBBUF_BYTES_MIN && (uint64_t)subbuf * 4 > wanted)
		subbuf /= 2;
	while ((uint64_t)subbuf * n < wanted && n < SUBBUFS_MAX)
		n *= 2;
	while ((uint64_t)subbuf * n < wanted && (uint64_t)subbuf * n < KYMO_RING_BUFFER_MAX_BYTES)
		subbuf *= 2;
	request->subbuf_bytes = subbuf;
	request->n_subbufs = n;
}

static int make_rules(struct ky_user_request *request, struct kymo_error *err)
{
	const struct ky_user_options *options = request->options;
	struct ky_user_rule_text text = {.filter = options->filter,
					 .comm = options->comm,
					 .level_min = options->level_min,
					 .level_max = options->level_max};
	int ret = KYMO_OK;

	if (options->filter)
		ret = ky_user_filter_compile(options->filter, &request->filter, err);
	for (size_t i = 0; i < options->n_patterns && !ret; i++) {
		text.pattern = options->patterns[i];
		ret = ky_user_rules_add(&request->rules, &text, err);
	}
	for (size_t i = 0; i < options->n_exclusions && !ret; i++)
		ret = ky_user_rules_exclude(&request->rules, options->exclusions[i], err);
	return ret;
}

static int new_cookie(struct ky_user_request *request, struct kymo_error *err)
{
	if (getrandom(&request->cookie, sizeof(request->cookie), 0) != sizeof(request->cookie))
		return ky_error_errno(err, errno, "no random numbers");
	request->cookie |= 1; /* not 0 */
	return KYMO_OK;
}

int ky_user_request_init(struct ky_user_request *request, const struct ky_user_options *options,
			 struct kymo_error *err)
{
	int ret;

	memset(request, 0, sizeof(*request));
	request->options = options;
	if (getrandom(request->uuid, sizeof(request->uuid), 0) != sizeof(request->uuid))
		return ky_error_errno(err, errno, "no random numbers");
	choose_buffers(request);
	ret = new_cookie(request, err);
	if (!ret)
		ret = make_rules(request, err);
	return ret < 0 ? ret : make_file(request, err);
}

static int apply(struct ky_user_request *request, const struct ky_user_change *change,
		 struct kymo_error *err)
{
	struct ky_user_rule_text text = {.pattern = change->pattern,
					 .filter = change->filter,
					 .comm = request->options->comm,
					 .level_min = change->level_min,
					 .level_max = change->level_max};

	if (!change->enables)
		return ky_user_rules_disable(&request->rules, change->pattern, err);
	ky_user_rules_forget(&request->rules, change->pattern);
	return ky_user_rules_add(&request->rules, &text, err);
}

int ky_user_request_change(struct ky_user_request *request, const struct ky_user_change *change,
			   struct kymo_error *err)
{
	struct ky_user_rules old = request->rules, copy = {0};
	struct ky_strbuf file = request->file;
	uint64_t cookie = request->cookie;
	int ret = ky_user_rules_copy(&old, &copy, err);

	request->rules = copy;
	request->file = (struct ky_strbuf)KY_STRBUF_INIT;
	if (!ret)
		ret = apply(request, change, err);
	if (!ret)
		ret = new_cookie(request, err);
	if (!ret)
		ret = make_file(request, err);
	if (ret < 0) {
		ky_user_rules_fini(&request->rules);
		ky_strbuf_fini(&request->file);
		request->rules = old;
		request->file = file;
		request->cookie = cookie;
		return ret;
	}
	ky_user_rules_fini(&old);
	ky_strbuf_fini(&file);
	return KYMO_OK;
}

void ky_user_request_fini(struct ky_user_request *request)
{
	ky_user_filter_fini(&request->filter);
	ky_user_rules_fini(&request->rules);
	ky_strbuf_fini(&request->file);
}

bool ky_user_request_wants(void *data, const struct ky_user_event *event)
{
	const struct ky_user_request *request = data;

	for (size_t i = 0; i < request->rules.list.len; i++) {
		if (ky_user_rule_takes(&request->rules.list.data[i], event))
			return true;
	}
	return false;
}

/* Names of the filter that no wanted event of these programs has; of this user's alone, or of all. */
static int check_names(struct ky_user_request *request, const struct ky_programs *programs,
		       bool all, struct kymo_error *err)
{
	struct ky_user_names names = {0};
	int ret = KYMO_OK;

	ky_vec_foreach(&programs->list, program) {
		struct ky_user_event event;

		if (!all && (*program)->uid != geteuid())
			continue;
		for (size_t at = 0; !ret && ky_program_next_event(*program, &at, &event);) {
			if (!event.is_query && ky_user_request_wants(request, &event))
				ret = ky_user_names_add(&names, &event);
		}
	}
	ret = ret < 0 ? ky_error_nomem(err) : ky_user_names_check(&names, &request->filter, err);
	ky_user_names_fini(&names);
	return ret;
}

int ky_user_request_check(struct ky_user_request *request, const struct ky_programs *programs,
			  struct kymo_error *err)
{
	struct kymo_error local;
	int ret;

	if (!request->filter.names.len)
		return KYMO_OK;
	ret = check_names(request, programs, true, &local);
	if (ret == KYMO_OK || ret == KYMO_E_MEMORY)
		return ret ? ky_error_nomem(err) : KYMO_OK;
	ret = check_names(request, programs, false, err);
	if (ret < 0)
		return ret;
	/* Whatever another user has called fields is no reason not to record. */
	ky_log_warning(request->options->log, "%s:%u:%u: %s", local.path, local.line, local.column,
		       local.message);
	return KYMO_OK;
}
