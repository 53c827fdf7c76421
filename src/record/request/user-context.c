/* SPDX-License-Identifier: MIT */
/* Context fields and log levels, as people write them. */
#include "record/request/user-context.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "os/counter.h"
#include "record/request/user-event.h"
#include "record/request/user-options.h"

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
	{"callstack_user", KY_CONTEXT_CALLSTACK_USER}, /* the field's name */
};

#define COUNT(array)  (sizeof(array) / sizeof((array)[0]))
#define PERF_PREFIX   "perf:"
#define PERF_THREAD   "thread:"
#define APP_PREFIX    "$app."
#define CONTEXT_CHARS KY_NAME_MAX

static bool user_context_is_word(const char *word, size_t len, const char *text)
{
	return strlen(text) == len && strncmp(word, text, len) == 0;
}

static bool has_prefix(const char *word, size_t len, const char *prefix)
{
	return len > strlen(prefix) && strncmp(word, prefix, strlen(prefix)) == 0;
}

/* "perf:thread:NAME", or "perf:NAME": counters are the threads' in any case. */
static bool user_context_find_counter(const char *word, size_t len,
				      struct ky_session_context *context, size_t *name_at)
{
	const struct ky_os_counter *counter;
	size_t at = strlen(PERF_PREFIX);

	if (has_prefix(word + at, len - at, PERF_THREAD))
		at += strlen(PERF_THREAD);
	counter = ky_os_counter_find(word + at, len - at);
	if (!counter)
		return false;
	*name_at = at;
	context->kind = KY_CONTEXT_PERF;
	context->config_type = counter->type;
	context->config = counter->config;
	return true;
}

/* Fill @context; *name_at: where in the word the name begins that goes along, 0: none. */
static bool user_context_find_context(const char *word, size_t len,
				      struct ky_session_context *context, size_t *name_at)
{
	*name_at = 0;
	for (size_t i = 0; i < COUNT(contexts); i++) {
		if (user_context_is_word(word, len, contexts[i].name)) {
			context->kind = contexts[i].kind;
			return true;
		}
	}
	if (has_prefix(word, len, APP_PREFIX) && memchr(word, ':', len)) {
		context->kind = KY_CONTEXT_APP;
		*name_at = strlen(APP_PREFIX);
		return len - *name_at <= CONTEXT_CHARS;
	}
	return has_prefix(word, len, PERF_PREFIX) &&
	       user_context_find_counter(word, len, context, name_at);
}

bool ky_user_context_known(const char *name, size_t len)
{
	struct ky_session_context context;
	size_t at;

	return user_context_find_context(name, len, &context, &at);
}

const char *ky_user_context_name(size_t i)
{
	return i < COUNT(contexts) ? contexts[i].name : NULL;
}

bool ky_user_is_context(const char *name)
{
	for (size_t i = 0; i < COUNT(contexts); i++) {
		if (strcmp(contexts[i].name, name) == 0)
			return true;
	}
	return strncmp(name, "perf_", 5) == 0 || strncmp(name, "app_", 4) == 0 || strchr(name, ':');
}

/* ---- which this machine has ------------------------------------------------------------ */

/* 0, or the errno of counting it in this thread; the kernel's part too or not. */
static int try_counter(const struct ky_session_context *context, bool exclude_kernel)
{
	const struct ky_os_counter counter = {"", context->config_type, context->config};
	int fd = ky_os_counter_open(&counter, -1, exclude_kernel);

	if (fd < 0)
		return -fd;
	close(fd);
	return 0;
}

/* Programs have these without perf (tracer/perf.c). */
static bool is_everywhere(const struct ky_session_context *context)
{
	return context->config_type == PERF_TYPE_SOFTWARE &&
	       context->config != PERF_COUNT_SW_CPU_MIGRATIONS &&
	       context->config != PERF_COUNT_SW_ALIGNMENT_FAULTS &&
	       context->config != PERF_COUNT_SW_EMULATION_FAULTS;
}

static int check_counter(const char *word, size_t len, const struct ky_session_context *context,
			 struct kymo_error *err)
{
	/* What happens in the kernel only cannot be counted without it. */
	bool needs_kernel = context->config_type == PERF_TYPE_SOFTWARE;
	int errnum = try_counter(context, false), ret;

	if ((errnum == EACCES || errnum == EPERM) && !needs_kernel)
		errnum = try_counter(context, true);
	if (!errnum)
		return KYMO_OK;
	if (errnum == EACCES || errnum == EPERM) {
		ret = ky_error_set(err, KYMO_E_PERMISSION,
				   "the kernel does not let programs count '%.*s'", (int)len, word);
		ky_error_input(err, "context");
		ky_error_hint(err, "run kymo and the programs as root, or lower the sysctl "
				   "kernel.perf_event_paranoid");
		return ret;
	}
	ret = ky_error_set(err, KYMO_E_UNSUPPORTED, "'%.*s': this machine has no such counter (%s)",
			   (int)len, word, strerror(errnum));
	ky_error_input(err, "context");
	ky_error_hint(err, "virtual machines often have no hardware counters; page-faults, "
			   "context-switches and task-clock are there everywhere");
	return ret;
}

int ky_user_contexts_check(const char *list, struct kymo_error *err)
{
	size_t len, name_at;
	int ret = KYMO_OK;

	for (; list && *list && !ret; list += len + (list[len] == ',')) {
		struct ky_session_context context = {0};

		len = strcspn(list, ",");
		if (user_context_find_context(list, len, &context, &name_at) &&
		    context.kind == KY_CONTEXT_PERF && !is_everywhere(&context))
			ret = check_counter(list, len, &context, err);
	}
	return ret;
}

/* ---- in the session file --------------------------------------------------------------- */

/* Field names have no '-' in metadata: "perf_thread_cpu_cycles". */
static uint32_t add_context_name(struct ky_strbuf *file, const char *name, size_t len, bool is_perf)
{
	char text[KY_NAME_MAX + 1];

	snprintf(text, sizeof(text), "%.*s", (int)len, name);
	for (char *c = text; is_perf && *c; c++)
		*c = *c == '-' ? '_' : *c;
	return ky_user_file_text(file, text);
}

/* A field twice would be one with two meanings. */
static bool has_kind(const struct ky_session_context *found, uint32_t n, uint32_t kind)
{
	for (uint32_t i = 0; i < n; i++) {
		if (found[i].kind == kind && kind < KY_CONTEXT_PERF)
			return true;
	}
	return false;
}

int ky_user_contexts_add(struct ky_strbuf *file, const char *list, bool is_shared,
			 struct ky_session_file *head, struct kymo_error *err)
{
	struct ky_session_context found[KY_CONTEXT_FIELDS_MAX] = {{.kind = KY_CONTEXT_VPID},
								  {.kind = KY_CONTEXT_VTID}};
	size_t len, name_at;

	head->n_contexts = is_shared ? 2 : 0;
	for (; list && *list; list += len + (list[len] == ',')) {
		struct ky_session_context context = {0};

		len = strcspn(list, ",");
		if (!user_context_find_context(list, len, &context, &name_at))
			continue; /* a kernel's field; unknown fields were refused before */
		if (is_shared && has_kind(found, head->n_contexts, context.kind))
			continue;
		if (head->n_contexts == KY_CONTEXT_FIELDS_MAX) {
			ky_error_set(err, KYMO_E_INVALID, "there are more than %d fields",
				     KY_CONTEXT_FIELDS_MAX);
			ky_error_input(err, "context");
			return KYMO_E_INVALID;
		}
		if (name_at)
			context.name = add_context_name(file, list + name_at, len - name_at,
							context.kind == KY_CONTEXT_PERF);
		found[head->n_contexts++] = context;
	}
	head->contexts = ky_user_file_align(file);
	ky_strbuf_add(file, (const char *)found, head->n_contexts * sizeof(found[0]));
	return KYMO_OK;
}
