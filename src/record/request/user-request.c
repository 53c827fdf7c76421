/* SPDX-License-Identifier: MIT */
#include "record/request/user-request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/error.h"
#include "record/request/user-context.h"

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
static struct ky_session_rule user_request_add_rule(struct ky_strbuf *file,
						    const struct ky_user_rule *from)
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
		struct ky_session_rule rule = user_request_add_rule(file, &rules->list.data[i]);

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

/* Of these processes; 0: of all. Programs know themselves by their ids in their PID namespace. */
static void add_pids(struct ky_strbuf *file, const struct ky_user_choice *choice, bool of_all,
		     struct ky_session_file *head)
{
	head->track_pids = ky_user_file_align(file);
	head->n_track_pids = of_all ? 0 : (uint32_t)choice->pids.len;
	for (size_t i = 0; i < head->n_track_pids; i++)
		ky_strbuf_add(file, (const char *)&choice->pids.data[i].inner, sizeof(uint32_t));
}

static int user_request_make_file(const struct ky_user_request *request, struct ky_strbuf *file,
				  const struct ky_user_rules *rules, bool of_all,
				  struct kymo_error *err)
{
	const struct ky_user_options *options = request->options;
	struct ky_session_file head = {
		.magic = KY_SESSION_MAGIC,
		.version = KY_CONTROL_VERSION,
		.cookie = request->cookie,
		.subbuf_bytes = request->subbuf_bytes,
		.n_subbufs = request->n_subbufs,
		.flags = (options->overwrite ? KY_SESSION_OVERWRITE : 0) |
			 (options->shares_buffers ? KY_SESSION_SHARED : 0),
		.wait_ns = options->overwrite ? 0 : options->wait_ns,
	};
	int ret;

	ky_user_clock_record(options->clock, &head.clock);
	memcpy(head.uuid, request->uuid, sizeof(head.uuid));
	ky_strbuf_add(file, (const char *)&head, sizeof(head));
	ret = ky_user_contexts_add(file, options->contexts, options->shares_buffers, &head, err);
	if (ret < 0)
		return ret;
	if (options->group)
		head.group = ky_user_file_text(file, options->group);
	add_rules(file, rules, &head);
	add_pids(file, &request->choice, of_all, &head);
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

static int make_files(struct ky_user_request *request, struct kymo_error *err)
{
	const struct ky_user_rules none = {0};
	int ret = user_request_make_file(request, &request->file, &request->rules, false, err);

	if (!ret)
		ret = user_request_make_file(request, &request->whole, &request->rules, true, err);
	return ret < 0 ? ret : user_request_make_file(request, &request->closed, &none, true, err);
}

/* ---- whose programs -------------------------------------------------------------------- */

static bool has_uid(const struct ky_user_choice *choice, uid_t uid)
{
	for (size_t i = 0; i < choice->uids.len; i++)
		if (choice->uids.data[i] == uid)
			return true;
	return false;
}

const struct ky_strbuf *ky_user_request_file(const struct ky_user_request *request, uid_t uid)
{
	const struct ky_user_choice *choice = &request->choice;

	if (request->is_paused)
		return &request->closed;
	if (has_uid(choice, uid))
		return &request->whole;
	return choice->uids.len && !choice->pids.len ? &request->closed : &request->file;
}

bool ky_user_request_chooses(const struct ky_user_request *request,
			     const struct ky_program *program)
{
	const struct ky_user_choice *choice = &request->choice;

	if (!choice->pids.len && !choice->uids.len)
		return true;
	for (size_t i = 0; i < choice->pids.len; i++)
		if (program->own_pid == choice->pids.data[i].pid ||
		    program->pid == (pid_t)choice->pids.data[i].pid)
			return true;
	return has_uid(choice, program->uid);
}

static bool add_pid(struct ky_user_choice *choice, uint32_t pid)
{
	struct ky_user_chosen_pid chosen = {pid, ky_program_inner_pid((pid_t)pid)};

	for (size_t i = 0; i < choice->pids.len; i++)
		if (choice->pids.data[i].pid == pid) {
			choice->pids.data[i] = chosen;
			return true;
		}
	return ky_vec_push(&choice->pids, chosen) == 0;
}

static void remove_pid(struct ky_user_choice *choice, uint32_t pid)
{
	for (size_t i = choice->pids.len; i-- > 0;)
		if (choice->pids.data[i].pid == pid)
			choice->pids.data[i] = choice->pids.data[--choice->pids.len];
}

static void remove_uid(struct ky_user_choice *choice, uid_t uid)
{
	for (size_t i = choice->uids.len; i-- > 0;)
		if (choice->uids.data[i] == uid)
			choice->uids.data[i] = choice->uids.data[--choice->uids.len];
}

static int user_request_choose(struct ky_user_request *request, const struct ky_user_change *change,
			       struct kymo_error *err)
{
	struct ky_user_choice *choice = &request->choice;
	bool is_pid = change->kind == KY_USER_PIDS, ok = true;

	if (!change->enables && !choice->pids.len && !choice->uids.len)
		return ky_error_set(err, KYMO_E_STATE,
				    "this recording is of all programs: choose some first");
	for (size_t i = 0; i < change->n_ids && ok; i++) {
		uint32_t id = (uint32_t)change->ids[i];

		if (!change->enables && is_pid)
			remove_pid(choice, id);
		else if (!change->enables)
			remove_uid(choice, id);
		else if (is_pid)
			ok = add_pid(choice, id);
		else
			ok = has_uid(choice, id) || ky_vec_push(&choice->uids, id) == 0;
	}
	if (!ok)
		return ky_error_nomem(err);
	if (!choice->pids.len && !choice->uids.len)
		return ky_error_set(err, KYMO_E_STATE, "the recording would have no programs left");
	return KYMO_OK;
}

static int copy_choice(const struct ky_user_choice *from, struct ky_user_choice *to,
		       struct kymo_error *err)
{
	*to = (struct ky_user_choice){0};
	for (size_t i = 0; i < from->pids.len; i++)
		if (ky_vec_push(&to->pids, from->pids.data[i]) < 0)
			return ky_error_nomem(err);
	for (size_t i = 0; i < from->uids.len; i++)
		if (ky_vec_push(&to->uids, from->uids.data[i]) < 0)
			return ky_error_nomem(err);
	return KYMO_OK;
}

static void fini_choice(struct ky_user_choice *choice)
{
	ky_vec_fini(&choice->pids);
	ky_vec_fini(&choice->uids);
}

/* What the options choose. */
static int choose_first(struct ky_user_request *request, struct kymo_error *err)
{
	const struct ky_user_options *options = request->options;

	for (size_t i = 0; i < options->n_pids; i++)
		if (!add_pid(&request->choice, (uint32_t)options->pids[i]))
			return ky_error_nomem(err);
	if (options->uid >= 0 && ky_vec_push(&request->choice.uids, (uid_t)options->uid) < 0)
		return ky_error_nomem(err);
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

/* The rules so far do not select what other recordings of the same programs take. */
static int exclude_reserved(struct ky_user_request *request, struct kymo_error *err)
{
	const struct ky_user_options *options = request->options;
	int ret = KYMO_OK;

	for (size_t i = 0; i < options->n_reserved && !ret; i++)
		ret = ky_user_rules_exclude(&request->rules, options->reserved[i], err);
	return ret;
}

static int user_request_make_rules(struct ky_user_request *request, struct kymo_error *err)
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
	return ret < 0 ? ret : exclude_reserved(request, err);
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
		ret = choose_first(request, err);
	if (!ret)
		ret = user_request_make_rules(request, err);
	return ret < 0 ? ret : make_files(request, err);
}

static int user_request_apply(struct ky_user_request *request, const struct ky_user_change *change,
			      struct kymo_error *err)
{
	struct ky_user_rule_text text = {.pattern = change->pattern,
					 .filter = change->filter,
					 .comm = request->options->comm,
					 .level_min = change->level_min,
					 .level_max = change->level_max};
	int ret;

	if (change->kind == KY_USER_PAUSE) {
		request->is_paused = change->enables;
		return KYMO_OK;
	}
	if (change->kind != KY_USER_RULES)
		return user_request_choose(request, change, err);
	if (!change->enables)
		return ky_user_rules_disable(&request->rules, change->pattern, err);
	ky_user_rules_forget(&request->rules, change->pattern);
	ret = ky_user_rules_add(&request->rules, &text, err);
	return ret < 0 ? ret : exclude_reserved(request, err);
}

/* What a change may replace. */
static void fini_state(struct ky_user_request *request)
{
	ky_user_rules_fini(&request->rules);
	fini_choice(&request->choice);
	ky_strbuf_fini(&request->file);
	ky_strbuf_fini(&request->whole);
	ky_strbuf_fini(&request->closed);
}

int ky_user_request_change(struct ky_user_request *request, const struct ky_user_change *change,
			   struct kymo_error *err)
{
	struct ky_user_request old = *request;
	int ret;

	request->rules = (struct ky_user_rules){0};
	request->choice = (struct ky_user_choice){0};
	request->file = request->whole = request->closed = (struct ky_strbuf)KY_STRBUF_INIT;
	ret = ky_user_rules_copy(&old.rules, &request->rules, err);
	if (!ret)
		ret = copy_choice(&old.choice, &request->choice, err);
	if (!ret)
		ret = user_request_apply(request, change, err);
	if (!ret)
		ret = new_cookie(request, err);
	if (!ret)
		ret = make_files(request, err);
	if (ret < 0) {
		fini_state(request);
		*request = old;
		return ret;
	}
	fini_state(&old);
	return KYMO_OK;
}

void ky_user_request_fini(struct ky_user_request *request)
{
	ky_user_filter_fini(&request->filter);
	fini_state(request);
}

bool ky_user_request_wants(void *data, const struct ky_user_event *event)
{
	const struct ky_user_request *request = data;

	if (request->is_paused)
		return false;
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
