/* SPDX-License-Identifier: MIT */
#include "kernel/catalogue.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "kernel/compat-calls.h"
#include "kernel/events.h"
#include "kernel/print-fmt.h"
#include "kernel/probe.h"
#include "os/file.h"

/*
 * Left out on purpose: kmalloc, hrtimer and rcu floods, of which no report makes use, and
 * rss_stat, which fires for each page fault.
 */
const char ky_catalogue_default_text[] =
	"sched_switch,sched_waking,sched_wakeup,sched_wakeup_new,sched_migrate_task,"
	"sched_process_*,sched_pi_setprio,cgroup_attach_task,"
	"irq_handler_*,irq_softirq_*,"
	"block_rq_insert,block_rq_issue,block_rq_complete,block_rq_merge,block_rq_requeue,"
	"block_bio_remap,block_bio_frontmerge,block_bio_backmerge,"
	"net_dev_queue,net_dev_xmit,net_if_receive_skb,net_if_rx,"
	"kmem_mm_page_alloc,kmem_mm_page_free,"
	"signal_*,power_cpu_frequency,"
	"syscalls";

static int add_event(struct ky_catalogue *catalogue, const char *system, const char *event)
{
	char name[KY_EVENT_NAME_BYTES];
	struct ky_event_source source = {.system = system};

	ky_event_name(system, event, name);
	source.event = ky_arena_strdup(&catalogue->arena, event);
	source.name = ky_arena_strdup(&catalogue->arena, name);
	if (!source.event || !source.name)
		return KYMO_E_MEMORY;
	return ky_vec_push(&catalogue->events, source);
}

/*
 * Directories of @parent, each handed to @take. What cannot be opened is no event, but without descriptors nobody knows
 * what there is: KYMO_E_IO, errno says why.
 */
static int each_dir(int parent, const char *path,
		    int (*take)(struct ky_catalogue *, int, const char *, const char *),
		    struct ky_catalogue *catalogue, const char *system)
{
	DIR *dir = ky_dir_open(parent, path);
	struct dirent *entry;
	int ret = KYMO_OK, errnum;

	if (!dir)
		return errno == EMFILE || errno == ENFILE ? KYMO_E_IO : KYMO_E_NOT_FOUND;
	while (!ret && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' && entry->d_type == DT_DIR)
			ret = take(catalogue, dirfd(dir), system, entry->d_name);
	errnum = errno;
	closedir(dir);
	errno = errnum;
	return ret;
}

static int take_event(struct ky_catalogue *catalogue, int fd, const char *system, const char *event)
{
	(void)fd;
	return add_event(catalogue, system, event);
}

static int take_system(struct ky_catalogue *catalogue, int fd, const char *none, const char *system)
{
	const char *name;
	int ret;

	(void)none;
	/* Probes of recordings: one's own are added, others' are not ours to record. */
	if (ky_probes_is_group(system))
		return KYMO_OK;
	/* What the function tracer and trace_marker write; it has no switch of its own. */
	if (strcmp(system, "ftrace") == 0)
		return KYMO_OK;
	name = ky_arena_strdup(&catalogue->arena, system);
	if (!name)
		return KYMO_E_MEMORY;
	ret = each_dir(fd, system, take_event, catalogue, name);
	return ret == KYMO_E_NOT_FOUND ? KYMO_OK : ret;
}

static int compare(const void *a, const void *b)
{
	const struct ky_event_source *x = a, *y = b;
	int order = strcmp(x->system, y->system);

	return order ? order : strcmp(x->event, y->event);
}

int ky_catalogue_load(struct ky_catalogue *catalogue, const struct ky_tracefs *fs,
		      struct kymo_error *err)
{
	int ret;

	memset(catalogue, 0, sizeof(*catalogue));
	ky_arena_init(&catalogue->arena);
	ret = each_dir(fs->fd, "events", take_system, catalogue, NULL);
	if (ret == KYMO_E_MEMORY)
		return ky_error_nomem(err);
	if (ret < 0 || !catalogue->events.len) {
		ret = ret == KYMO_E_IO ? ky_error_errno(err, errno, "cannot list the events")
				       : ky_error_set(err, KYMO_E_IO, "tracefs lists no events");
		ky_error_path(err, fs->path);
		return ret;
	}
	qsort(catalogue->events.data, catalogue->events.len, sizeof(catalogue->events.data[0]),
	      compare);
	return KYMO_OK;
}

int ky_catalogue_add(struct ky_catalogue *catalogue, const char *system, const char *event,
		     const char *name, bool selected)
{
	struct ky_event_source source = {.system = ky_arena_strdup(&catalogue->arena, system),
					 .event = ky_arena_strdup(&catalogue->arena, event),
					 .name = ky_arena_strdup(&catalogue->arena, name),
					 .selected = selected};

	if (!source.system || !source.event || !source.name ||
	    ky_vec_push(&catalogue->events, source) < 0)
		return KYMO_E_MEMORY;
	qsort(catalogue->events.data, catalogue->events.len, sizeof(catalogue->events.data[0]),
	      compare);
	return KYMO_OK;
}

static const char *const call_prefixes[] = {"sys_enter_", "sys_exit_"};

static int add_call(struct ky_catalogue *catalogue, const char *system, const char *name)
{
	char event[KY_EVENT_NAME_BYTES];

	for (size_t i = 0; i < 2; i++) {
		snprintf(event, sizeof(event), "%s%s", call_prefixes[i], name);
		if (add_event(catalogue, system, event) < 0)
			return KYMO_E_MEMORY;
		catalogue->events.data[catalogue->events.len - 1].of_bpf = true;
	}
	return KYMO_OK;
}

int ky_catalogue_add_calls(struct ky_catalogue *catalogue)
{
	const struct ky_compat_call *call;
	size_t n = catalogue->events.len;
	char event[KY_EVENT_NAME_BYTES];

	for (size_t i = 0; (call = ky_compat_call_at(i)); i++) {
		/* What it takes, this kernel's own description of the other call tells. */
		struct ky_event_source key = {.system = "syscalls", .event = event};

		if (!call->params) {
			snprintf(event, sizeof(event), "sys_enter_%s", call->like);
			if (!n || !bsearch(&key, catalogue->events.data, n,
					   sizeof(catalogue->events.data[0]), compare))
				continue;
		}
		if (add_call(catalogue, KY_COMPAT_SYSTEM, call->name) < 0 ||
		    (call->number == KY_COMPAT_UNKNOWN &&
		     add_call(catalogue, KY_UNKNOWN_SYSTEM, call->name) < 0))
			return KYMO_E_MEMORY;
	}
	qsort(catalogue->events.data, catalogue->events.len, sizeof(catalogue->events.data[0]),
	      compare);
	return KYMO_OK;
}

/* Texts of the kernel's that events have the addresses of go before the last line, which print-fmt.c looks for them in. */
static int add_texts(const struct ky_tracefs *fs, struct ky_strbuf *format, struct kymo_error *err)
{
	struct ky_strbuf whole = KY_STRBUF_INIT, texts = KY_STRBUF_INIT;
	const char *text = ky_strbuf_text(format), *last = strstr(text, "\nprint fmt:");
	int ret = KYMO_OK;

	/* A kernel without that file has no such texts. */
	if (last && ky_tracefs_read(fs->fd, fs->path, "printk_formats", &texts, NULL) == 0) {
		ky_strbuf_add(&whole, text, (size_t)(last - text));
		ky_strbuf_adds(&whole, KY_FORMAT_TEXTS);
		ky_strbuf_add(&whole, ky_strbuf_text(&texts), texts.len);
		ky_strbuf_adds(&whole, last);
		ky_strbuf_clear(format);
		ky_strbuf_add(format, ky_strbuf_text(&whole), whole.len);
		if (ky_strbuf_failed(&whole) || ky_strbuf_failed(format))
			ret = ky_error_nomem(err);
	}
	ky_strbuf_fini(&texts);
	ky_strbuf_fini(&whole);
	return ret;
}

int ky_event_source_format(const struct ky_event_source *source, const struct ky_tracefs *fs,
			   struct ky_strbuf *text, struct kymo_error *err)
{
	char name[2 * KY_EVENT_NAME_BYTES + 32];
	int ret;

	if (source->of_bpf)
		return ky_compat_format(fs, source->system, source->event, text, err);
	if (source->format) {
		ky_strbuf_clear(text);
		ky_strbuf_add(text, source->format, source->format_len);
		return ky_strbuf_failed(text) ? ky_error_nomem(err) : KYMO_OK;
	}
	snprintf(name, sizeof(name), "events/%s/%s/format", source->system, source->event);
	ret = ky_tracefs_read(fs->fd, fs->path, name, text, err);
	if (ret < 0 || strcmp(source->system, "syscalls") == 0 ||
	    !strstr(ky_strbuf_text(text), "\tfield:const char *"))
		return ret;
	return add_texts(fs, text, err);
}

void ky_catalogue_fini(struct ky_catalogue *catalogue)
{
	ky_vec_fini(&catalogue->events);
	ky_arena_fini(&catalogue->arena);
}

struct ky_event_source *ky_catalogue_find(struct ky_catalogue *catalogue, const char *system,
					  const char *event)
{
	struct ky_event_source key = {.system = system, .event = event};

	return catalogue->events.len ? bsearch(&key, catalogue->events.data, catalogue->events.len,
					       sizeof(catalogue->events.data[0]), compare)
				     : NULL;
}

/* ---- choosing ------------------------------------------------------------------------- */

/* Is it entry or exit of a system call that @pattern matches: "open*"? */
static bool matches_syscall(const struct ky_event_source *source, const char *pattern)
{
	if (strcmp(source->system, "syscalls") != 0 && !ky_unknown_is_system(source->system))
		return false;
	for (size_t i = 0; i < 2; i++)
		if (strncmp(source->event, call_prefixes[i], strlen(call_prefixes[i])) == 0)
			return ky_glob_match(pattern, source->event + strlen(call_prefixes[i]));
	return false;
}

/* They cost each call of all programs something: who wants them says so. */
static bool asks_for(const struct ky_event_source *source, const char *pattern)
{
	return ky_compat_is_system(source->system) ? strncmp(pattern, "compat_", 7) == 0
						   : strstr(pattern, "unknown") != NULL;
}

static bool is_of_bpf(const char *pattern)
{
	static const struct ky_event_source unknown[] = {
		{.system = KY_UNKNOWN_SYSTEM,
		 .event = "sys_enter_unknown",
		 .name = "syscall_entry_unknown",
		 .of_bpf = true},
		{.system = KY_UNKNOWN_SYSTEM,
		 .event = "sys_exit_unknown",
		 .name = "syscall_exit_unknown",
		 .of_bpf = true},
	};

	return strncmp(pattern, "compat_", 7) == 0 || ky_catalogue_matches(&unknown[0], pattern) ||
	       ky_catalogue_matches(&unknown[1], pattern);
}

bool ky_catalogue_rule_is_of_bpf(const char *rule)
{
	const char *end = strstr(rule, " if "), *at = rule;
	char pattern[2 * KY_EVENT_NAME_BYTES];

	end = end ? end : rule + strlen(rule);
	while (at < end) {
		size_t len;

		at += strspn(at, " \t,");
		len = strcspn(at, " \t,");
		snprintf(pattern, sizeof(pattern), "%.*s", (int)len, at);
		if (at < end && is_of_bpf(pattern))
			return true;
		at += len;
	}
	return false;
}

bool ky_catalogue_matches(const struct ky_event_source *source, const char *pattern)
{
	char text[2 * KY_EVENT_NAME_BYTES + 2];

	if (source->of_bpf && !asks_for(source, pattern))
		return false;
	if (strncmp(pattern, "syscall:", 8) == 0)
		return matches_syscall(source, pattern + 8);
	if (strcmp(pattern, source->system) == 0 || ky_glob_match(pattern, source->name) ||
	    ky_glob_match(pattern, source->event))
		return true;
	if (!strpbrk(pattern, ":/"))
		return false;
	snprintf(text, sizeof(text), "%s:%s", source->system, source->event);
	if (ky_glob_match(pattern, text))
		return true;
	text[strlen(source->system)] = '/';
	return ky_glob_match(pattern, text);
}

struct near {
	const char *name;
	size_t distance;
};

/* The three nearest names, best first. */
static void offer(struct near near[3], const char *name, const char *pattern)
{
	size_t distance = ky_edit_distance(name, pattern);

	for (int i = 0; i < 3; i++) {
		if (near[i].name && strcmp(near[i].name, name) == 0)
			return;
		if (distance >= near[i].distance)
			continue;
		memmove(&near[i + 1], &near[i], (size_t)(2 - i) * sizeof(near[0]));
		near[i] = (struct near){name, distance};
		return;
	}
}

static int unknown(struct ky_catalogue *catalogue, const char *pattern, struct kymo_error *err)
{
	/* Before strlen(): behind it gcc's sanitizers see a NULL, and warn. */
	int code = ky_error_set(err, KYMO_E_NOT_FOUND, "this kernel has no event '%s'", pattern);
	size_t limit = strlen(pattern) / 3 + 1;
	struct near near[3] = {{NULL, limit + 1}, {NULL, limit + 1}, {NULL, limit + 1}};

	if (strpbrk(pattern, "*?")) {
		ky_error_hint(err, "kymo list shows the events");
		return code;
	}
	ky_vec_foreach(&catalogue->events, source) {
		offer(near, source->name, pattern);
		offer(near, source->event, pattern);
		offer(near, source->system, pattern);
	}
	if (!near[0].name)
		ky_error_hint(err, "kymo list shows the events");
	else
		ky_error_hint(err, "did you mean %s%s%s%s%s? kymo list shows all", near[0].name,
			      near[1].name ? ", " : "", near[1].name ? near[1].name : "",
			      near[2].name ? ", " : "", near[2].name ? near[2].name : "");
	return code;
}

/* Of an event that several rules choose, what any of them wants is recorded. */
static int choose(struct ky_catalogue *catalogue, struct ky_event_source *source,
		  const char *filter)
{
	if (!source->selected) {
		source->selected = true;
		source->filter = filter;
	} else if (!filter || !source->filter) {
		source->filter = NULL;
	} else if (strcmp(source->filter, filter) != 0) {
		source->filter =
			ky_arena_printf(&catalogue->arena, "(%s) || (%s)", source->filter, filter);
		if (!source->filter)
			return KYMO_E_MEMORY;
	}
	return KYMO_OK;
}

/* How many match, or KYMO_E_MEMORY. */
static int select_matching(struct ky_catalogue *catalogue, const char *pattern, bool on,
			   const char *filter)
{
	int n = 0, ret;

	ky_vec_foreach(&catalogue->events, source) {
		if (!ky_catalogue_matches(source, pattern))
			continue;
		n++;
		ret = on ? choose(catalogue, source, filter) : KYMO_OK;
		if (ret < 0)
			return ret;
		source->selected = on;
	}
	return n;
}

int ky_catalogue_select(struct ky_catalogue *catalogue, const char *pattern, bool on,
			struct kymo_error *err)
{
	int n = select_matching(catalogue, pattern, on, NULL);

	return n > 0 ? n : n < 0 ? ky_error_nomem(err) : unknown(catalogue, pattern, err);
}

/* The next item of a comma-separated list, without blanks around it; NULL at the end. */
static char *next_item(char **rest)
{
	char *item;

	while ((item = strsep(rest, ","))) {
		char *end;

		item += strspn(item, " \t");
		end = item + strlen(item);
		while (end > item && (end[-1] == ' ' || end[-1] == '\t'))
			*--end = '\0';
		if (*item)
			return item;
	}
	return NULL;
}

/* Events of the default set that this kernel lacks are left out. */
static int select_default(struct ky_catalogue *catalogue, const char *filter)
{
	char *copy = strdup(ky_catalogue_default_text), *rest = copy, *item;
	int ret = copy ? KYMO_OK : KYMO_E_MEMORY;

	while (ret >= 0 && (item = next_item(&rest)))
		ret = select_matching(catalogue, item, true, filter);
	free(copy);
	return ret < 0 ? ret : KYMO_OK;
}

static int select_item(struct ky_catalogue *catalogue, const char *item, const char *filter,
		       struct kymo_error *err)
{
	bool on = item[0] != '!';
	int ret;

	if (strcmp(item, "default") == 0)
		return select_default(catalogue, filter) < 0 ? ky_error_nomem(err) : KYMO_OK;
	ret = select_matching(catalogue, on ? item : item + 1, on, filter);
	if (ret < 0)
		return ky_error_nomem(err);
	return ret ? KYMO_OK : unknown(catalogue, on ? item : item + 1, err);
}

/* Cut " if EXPR" from @rule, in place. NULL: there is none. No pattern has a blank in it. */
static const char *cut_filter(char *rule)
{
	char *filter = strstr(rule, " if ");

	if (!filter)
		return NULL;
	*filter = '\0';
	return filter + 4;
}

int ky_catalogue_select_rule(struct ky_catalogue *catalogue, const char *rule,
			     struct kymo_error *err)
{
	char *copy = ky_arena_strdup(&catalogue->arena, rule), *rest = copy, *item;
	const char *filter;
	int ret = KYMO_OK;

	if (!copy)
		return ky_error_nomem(err);
	filter = cut_filter(copy);
	while (!ret && (item = next_item(&rest)))
		ret = select_item(catalogue, item, filter, err);
	return ret;
}

static size_t match_item(const struct ky_catalogue *catalogue, const char *item, bool on,
			 bool *chosen)
{
	size_t n = 0;

	for (size_t i = 0; i < catalogue->events.len; i++) {
		if (!ky_catalogue_matches(&catalogue->events.data[i], item))
			continue;
		chosen[i] = on;
		n++;
	}
	return n;
}

int ky_catalogue_match_rule(struct ky_catalogue *catalogue, const char *rule, bool *chosen,
			    const char **filter, struct kymo_error *err)
{
	char *copy = ky_arena_strdup(&catalogue->arena, rule), *rest = copy, *item;
	char *defaults = ky_arena_strdup(&catalogue->arena, ky_catalogue_default_text);

	if (!copy || !defaults)
		return ky_error_nomem(err);
	*filter = cut_filter(copy);
	while ((item = next_item(&rest))) {
		bool on = item[0] != '!';

		if (strcmp(item, "default") == 0) {
			while ((item = next_item(&defaults)))
				(void)match_item(catalogue, item, true, chosen);
		} else if (!match_item(catalogue, on ? item : item + 1, on, chosen)) {
			return unknown(catalogue, on ? item : item + 1, err);
		}
	}
	return KYMO_OK;
}

void ky_catalogue_select_default(struct ky_catalogue *catalogue)
{
	(void)select_default(catalogue, NULL);
}
