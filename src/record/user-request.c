/* SPDX-License-Identifier: MIT */
#include "record/user-request.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/error.h"
#include "base/text.h"

/* ---- log levels ----------------------------------------------------------------------- */

int ky_user_levels_parse(const char *text, uint8_t *min, uint8_t *max)
{
	const char *dots = strstr(text, "..");
	size_t first = dots ? (size_t)(dots - text) : strlen(text);
	int a = first ? ky_log_level_parse(text, first) : 14;
	int b = !dots ? a : dots[2] ? ky_log_level_parse(dots + 2, strlen(dots + 2)) : 0;

	if (a < 0 || b < 0 || (!first && dots && !dots[2]))
		return KYMO_E_INVALID;
	*min = (uint8_t)(a < b ? a : b);
	*max = (uint8_t)(a < b ? b : a);
	return KYMO_OK;
}

/* ---- contexts ------------------------------------------------------------------------- */

static const struct {
	const char *name;
	enum ky_context_kind kind;
} contexts[] = {
	{"vpid", KY_CONTEXT_VPID},
	{"vtid", KY_CONTEXT_VTID},
	{"procname", KY_CONTEXT_PROCNAME},
	{"ip", KY_CONTEXT_IP},
	{"cpu_id", KY_CONTEXT_CPU_ID},
	{"pthread_id", KY_CONTEXT_PTHREAD_ID},
	{"vuid", KY_CONTEXT_VUID},
	{"veuid", KY_CONTEXT_VEUID},
	{"vsuid", KY_CONTEXT_VSUID},
	{"vgid", KY_CONTEXT_VGID},
	{"vegid", KY_CONTEXT_VEGID},
	{"vsgid", KY_CONTEXT_VSGID},
	{"cgroup_ns", KY_CONTEXT_CGROUP_NS},
	{"ipc_ns", KY_CONTEXT_IPC_NS},
	{"mnt_ns", KY_CONTEXT_MNT_NS},
	{"net_ns", KY_CONTEXT_NET_NS},
	{"pid_ns", KY_CONTEXT_PID_NS},
	{"time_ns", KY_CONTEXT_TIME_NS},
	{"user_ns", KY_CONTEXT_USER_NS},
	{"uts_ns", KY_CONTEXT_UTS_NS},
	{"callstack-user", KY_CONTEXT_CALLSTACK_USER},
};

/* "perf:thread:NAME" */
static const struct {
	const char *name;
	uint32_t type;
	uint64_t config;
} counters[] = {
	{"cpu-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
	{"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
	{"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
	{"cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES},
	{"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
	{"branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
	{"branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
	{"bus-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES},
	{"cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK},
	{"task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
	{"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
	{"context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
	{"cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
	{"minor-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN},
	{"major-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ},
};

#define COUNT(array)   (sizeof(array) / sizeof((array)[0]))
#define PERF_PREFIX    "perf:thread:"
#define APP_PREFIX     "$app."
#define CONTEXT_CHARS  KY_NAME_MAX
#define FILE_ALIGNMENT 8

static bool is_word(const char *word, size_t len, const char *text)
{
	return strlen(text) == len && strncmp(word, text, len) == 0;
}

static bool has_prefix(const char *word, size_t len, const char *prefix)
{
	return len > strlen(prefix) && strncmp(word, prefix, strlen(prefix)) == 0;
}

/* Fill @context; *name_at: where in the word the name begins that goes along, 0: none. */
static bool find_context(const char *word, size_t len, struct ky_session_context *context,
			 size_t *name_at)
{
	*name_at = 0;
	for (size_t i = 0; i < COUNT(contexts); i++) {
		if (is_word(word, len, contexts[i].name)) {
			context->kind = contexts[i].kind;
			return true;
		}
	}
	if (has_prefix(word, len, APP_PREFIX) && memchr(word, ':', len)) {
		context->kind = KY_CONTEXT_APP;
		*name_at = strlen(APP_PREFIX);
		return len - *name_at <= CONTEXT_CHARS;
	}
	for (size_t i = 0; has_prefix(word, len, PERF_PREFIX) && i < COUNT(counters); i++) {
		size_t at = strlen(PERF_PREFIX);

		if (!is_word(word + at, len - at, counters[i].name))
			continue;
		*name_at = at;
		context->kind = KY_CONTEXT_PERF;
		context->config_type = counters[i].type;
		context->config = counters[i].config;
		return true;
	}
	return false;
}

bool ky_user_context_known(const char *name, size_t len)
{
	struct ky_session_context context;
	size_t at;

	return find_context(name, len, &context, &at);
}

/* ---- the session file ----------------------------------------------------------------- */

/* Where the next thing goes that wants to be aligned. */
static uint32_t align(struct ky_strbuf *file)
{
	while (file->len % FILE_ALIGNMENT)
		ky_strbuf_addc(file, 0);
	return (uint32_t)file->len;
}

static uint32_t add_text(struct ky_strbuf *file, const char *text)
{
	uint32_t at = (uint32_t)file->len;

	ky_strbuf_add(file, text, strlen(text) + 1);
	return at;
}

/* Field names have no '-' in metadata: "perf_thread_cpu_cycles". */
static uint32_t add_context_name(struct ky_strbuf *file, const char *name, size_t len, bool is_perf)
{
	char text[KY_NAME_MAX + 1];

	snprintf(text, sizeof(text), "%.*s", (int)len, name);
	for (char *c = text; is_perf && *c; c++)
		*c = *c == '-' ? '_' : *c;
	return add_text(file, text);
}

static int add_contexts(struct ky_strbuf *file, const char *list, struct ky_session_file *head,
			struct kymo_error *err)
{
	struct ky_session_context found[KY_CONTEXT_FIELDS_MAX];
	size_t len, name_at;

	for (; list && *list; list += len + (list[len] == ',')) {
		struct ky_session_context context = {0};

		len = strcspn(list, ",");
		if (!find_context(list, len, &context, &name_at))
			continue; /* the kernel's; who knows neither was refused before */
		if (head->n_contexts == KY_CONTEXT_FIELDS_MAX)
			return ky_error_set(err, KYMO_E_INVALID, "--context: too many fields");
		if (name_at)
			context.name = add_context_name(file, list + name_at, len - name_at,
							context.kind == KY_CONTEXT_PERF);
		found[head->n_contexts++] = context;
	}
	head->contexts = align(file);
	ky_strbuf_add(file, (const char *)found, head->n_contexts * sizeof(found[0]));
	return KYMO_OK;
}

/* The operations, their texts being in the file from @texts on. */
static uint32_t add_code(struct ky_strbuf *file, const struct ky_user_filter *code, uint32_t texts)
{
	uint32_t at = align(file);

	ky_vec_foreach(&code->ops, it) {
		struct ky_filter_op op = *it;

		if (ky_user_filter_has_text(op.code))
			op.arg += texts;
		ky_strbuf_add(file, (const char *)&op, sizeof(op));
	}
	return at;
}

static void add_rules(struct ky_strbuf *file, const struct ky_user_request *request,
		      struct ky_session_file *head)
{
	const struct ky_user_options *options = request->options;
	struct ky_session_rule rule = {
		.n_exclusions = (uint32_t)options->n_exclusions,
		.log_level_min = options->level_min,
		.log_level_max = options->level_max,
		.n_code = (uint32_t)request->code.ops.len,
	};
	uint32_t names = (uint32_t)file->len, exclusion = names, pattern, texts;

	for (size_t i = 0; i < options->n_exclusions; i++)
		add_text(file, options->exclusions[i]);
	pattern = (uint32_t)file->len;
	for (size_t i = 0; i < options->n_patterns; i++)
		add_text(file, options->patterns[i]);
	texts = (uint32_t)file->len;
	ky_strbuf_add(file, ky_strbuf_text(&request->code.texts), request->code.texts.len);
	rule.exclusions = align(file);
	for (size_t i = 0; i < options->n_exclusions; i++) {
		ky_strbuf_add(file, (const char *)&exclusion, sizeof(exclusion));
		exclusion += (uint32_t)strlen(options->exclusions[i]) + 1;
	}
	rule.code = add_code(file, &request->code, texts);
	head->rules = align(file);
	head->n_rules = (uint32_t)options->n_patterns;
	for (size_t i = 0; i < options->n_patterns; i++) {
		rule.pattern = pattern;
		pattern += (uint32_t)strlen(options->patterns[i]) + 1;
		ky_strbuf_add(file, (const char *)&rule, sizeof(rule));
	}
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
	};
	int ret;

	ky_user_clock_record(options->clock, &head.clock);
	memcpy(head.uuid, request->uuid, sizeof(head.uuid));
	ky_strbuf_add(file, (const char *)&head, sizeof(head));
	ret = add_contexts(file, options->contexts, &head, err);
	if (ret < 0)
		return ret;
	add_rules(file, request, &head);
	head.track_pids = align(file);
	if (options->pid)
		ky_strbuf_add(file, (const char *)&options->pid, sizeof(options->pid));
	head.bytes = align(file);
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

/* $ctx.procname == "COMM", and the user's filter. */
static char *full_filter(const struct ky_user_options *options)
{
	struct ky_strbuf text = KY_STRBUF_INIT;

	ky_strbuf_adds(&text, "$ctx.procname == \"");
	for (const char *c = options->comm; *c; c++) {
		if (*c == '"' || *c == '\\')
			ky_strbuf_addc(&text, '\\');
		ky_strbuf_addc(&text, *c);
	}
	ky_strbuf_addc(&text, '"');
	if (options->filter)
		ky_strbuf_addf(&text, " && (%s)", options->filter);
	return ky_strbuf_take(&text);
}

static int compile_filters(struct ky_user_request *request, struct kymo_error *err)
{
	const struct ky_user_options *options = request->options;
	int ret = KYMO_OK;
	char *full;

	if (options->filter) {
		ret = ky_user_filter_compile(options->filter, &request->filter, err);
		if (ret < 0)
			return ret;
	}
	if (!options->comm)
		return options->filter
			       ? ky_user_filter_compile(options->filter, &request->code, err)
			       : KYMO_OK;
	full = full_filter(options);
	ret = full ? ky_user_filter_compile(full, &request->code, err) : ky_error_nomem(err);
	free(full);
	return ret;
}

int ky_user_request_init(struct ky_user_request *request, const struct ky_user_options *options,
			 struct kymo_error *err)
{
	int ret;

	memset(request, 0, sizeof(*request));
	request->options = options;
	if (getrandom(&request->cookie, sizeof(request->cookie), 0) != sizeof(request->cookie) ||
	    getrandom(request->uuid, sizeof(request->uuid), 0) != sizeof(request->uuid))
		return ky_error_errno(err, errno, "no random numbers");
	request->cookie |= 1; /* not 0 */
	for (size_t i = 0; i < options->n_patterns; i++) {
		if (!strchr(options->patterns[i], ':') && !strchr(options->patterns[i], '*'))
			return ky_error_set(err, KYMO_E_INVALID,
					    "--user: '%s' matches no event: they are called "
					    "PROVIDER:NAME; '%s:*' is all of a provider",
					    options->patterns[i], options->patterns[i]);
	}
	choose_buffers(request);
	ret = compile_filters(request, err);
	return ret < 0 ? ret : make_file(request, err);
}

void ky_user_request_fini(struct ky_user_request *request)
{
	ky_user_filter_fini(&request->filter);
	ky_user_filter_fini(&request->code);
	ky_strbuf_fini(&request->file);
}

bool ky_user_request_wants(void *data, const struct ky_user_event *event)
{
	const struct ky_user_request *request = data;
	const struct ky_user_options *options = request->options;
	char name[KY_USER_EVENT_NAME_BYTES];
	bool takes = false;

	if (!event->is_query && (event->record->log_level < options->level_min ||
				 event->record->log_level > options->level_max))
		return false;
	ky_user_event_name(event, name);
	for (size_t i = 0; i < options->n_patterns && !takes; i++)
		takes = ky_user_glob(options->patterns[i], name);
	for (size_t i = 0; i < options->n_exclusions && takes; i++)
		takes = !ky_user_glob(options->exclusions[i], name);
	return takes;
}

/* ---- the names of a filter ------------------------------------------------------------ */

/* A hostile program's table has room for millions. */
#define NAMES_MAX 10000

static bool has_name(const struct ky_user_names *names, const char *name)
{
	return ky_names_get(&names->known, name) != NULL;
}

static int add_name(struct ky_user_names *names, const char *name)
{
	char *copy = strdup(name);

	if (!copy || ky_vec_push(&names->names, copy) < 0) {
		free(copy);
		return KYMO_E_MEMORY;
	}
	return ky_names_set(&names->known, copy, copy);
}

int ky_user_names_add(struct ky_user_names *names, const struct ky_user_event *event)
{
	int ret = KYMO_OK;

	names->any_event = true;
	for (unsigned int i = 0; !ret && i < event->record->n_fields; i++) {
		const char *name = ky_user_field_name(event, i);

		names->is_full |= names->names.len == NAMES_MAX;
		if (!names->is_full && !has_name(names, name))
			ret = add_name(names, name);
	}
	return ret;
}

void ky_user_names_fini(struct ky_user_names *names)
{
	ky_vec_foreach(&names->names, it)
		free(*it);
	ky_vec_fini(&names->names);
	ky_names_fini(&names->known);
}

static bool is_context(const char *name)
{
	for (size_t i = 0; i < COUNT(contexts); i++) {
		if (strcmp(contexts[i].name, name) == 0)
			return true;
	}
	return strncmp(name, "perf_", 5) == 0 || strncmp(name, "app_", 4) == 0 || strchr(name, ':');
}

/* The three nearest names, the best first. */
static void nearest(const struct ky_user_names *names, const char *word, char *text, size_t size)
{
	size_t used[3] = {SIZE_MAX, SIZE_MAX, SIZE_MAX}, len = 0;

	text[0] = 0;
	for (int n = 0; n < 3; n++) {
		size_t best = SIZE_MAX, distance = SIZE_MAX;

		for (size_t i = 0; i < names->names.len; i++) {
			size_t d = ky_edit_distance(word, names->names.data[i]);

			if (d < distance && i != used[0] && i != used[1]) {
				best = i;
				distance = d;
			}
		}
		if (best == SIZE_MAX)
			break;
		used[n] = best;
		len += (size_t)snprintf(text + len, size - len, "%s%s", n ? ", " : "",
					names->names.data[best]);
		if (len >= size)
			break;
	}
}

int ky_user_names_check(const struct ky_user_names *names, const struct ky_user_filter *filter,
			struct kymo_error *err)
{
	char near[300];

	if (!names->any_event || names->is_full)
		return KYMO_OK;
	ky_vec_foreach(&filter->names, name) {
		if (name->is_asked || is_context(name->text) ||
		    (!name->is_context && has_name(names, name->text)))
			continue;
		if (name->is_context) {
			ky_error_set(err, KYMO_E_INVALID, "there is no context field '%s'",
				     name->text);
		} else {
			nearest(names, name->text, near, sizeof(near));
			ky_error_set(err, KYMO_E_INVALID,
				     "none of these events has a field '%s'%s%s", name->text,
				     near[0] ? "; the nearest names are: " : "", near);
		}
		ky_error_path(err, "--filter");
		ky_error_line(err, 1, name->column);
		return KYMO_E_INVALID;
	}
	return KYMO_OK;
}

int ky_user_request_check(struct ky_user_request *request, const struct ky_programs *programs,
			  struct kymo_error *err)
{
	struct ky_user_names names = {0};
	int ret = KYMO_OK;

	if (!request->filter.names.len)
		return KYMO_OK;
	ky_vec_foreach(&programs->list, program) {
		struct ky_user_event event;

		for (size_t at = 0; !ret && ky_program_next_event(*program, &at, &event);) {
			if (!event.is_query && ky_user_request_wants(request, &event))
				ret = ky_user_names_add(&names, &event);
		}
	}
	ret = ret < 0 ? ky_error_nomem(err) : ky_user_names_check(&names, &request->filter, err);
	ky_user_names_fini(&names);
	return ret;
}
