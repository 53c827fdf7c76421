/* SPDX-License-Identifier: MIT */
/*
 * Whose events are recorded. Threads are chosen through the instance's set_event_pid, so that the
 * kernel does not even record the others'; with its option event-fork, what they start is too. Names
 * become a part of the events' filters.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "kernel/proc.h"
#include "os/file.h"
#include "record/session-internal.h"

#define CGROUP_MAX_BYTES (16u << 20) /* of a list of threads */

static int write_tid(struct ky_session *session, int32_t tid, struct kymo_error *err)
{
	char text[16];

	snprintf(text, sizeof(text), "%" PRId32, tid);
	return ky_instance_write(&session->instance, "set_event_pid", text, err);
}

/* The kernel's list is for its own events; the recorder keeps one for 32-bit calls. */
static int choose_tid(struct ky_session *session, int32_t tid, struct kymo_error *err)
{
	if (session->collects)
		return ky_vec_push(&session->collected, tid) < 0 ? ky_error_nomem(err) : KYMO_OK;
	if (session->has_compat) {
		session->convert.chosen = &session->chosen_tids;
		if (ky_map_set(&session->chosen_tids, (uint32_t)tid, session) < 0)
			return ky_error_nomem(err);
	}
	return write_tid(session, tid, err);
}

int ky_session_choose_child(struct ky_session *session, int32_t pid, struct kymo_error *err)
{
	return session->options.follow && !session->has_chosen ? choose_tid(session, pid, err)
							       : KYMO_OK;
}

/* All threads of a process. How many; 0: there is none. */
static int choose_process(struct ky_session *session, const char *pid, struct kymo_error *err)
{
	char path[64];
	struct dirent *entry;
	int ret = KYMO_OK, n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%s/task", pid);
	dir = opendir(path);
	if (!dir)
		return 0;
	while (ret >= 0 && (entry = readdir(dir))) {
		if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
			continue;
		ret = choose_tid(session, (int32_t)strtol(entry->d_name, NULL, 10), err);
		n++;
	}
	closedir(dir);
	return ret < 0 ? ret : n;
}

static int choose_pid(struct ky_session *session, int32_t pid, struct kymo_error *err)
{
	char text[16];
	int ret;

	snprintf(text, sizeof(text), "%" PRId32, pid);
	ret = choose_process(session, text, err);
	if (ret)
		return ret < 0 ? ret : KYMO_OK;
	ret = ky_error_set(err, KYMO_E_NOT_FOUND, "there is no process %s", text);
	ky_error_hint(err, "--pid wants the ids of running processes");
	return ret;
}

static int choose_thread(struct ky_session *session, int32_t tid, struct kymo_error *err)
{
	char path[64];
	int ret;

	snprintf(path, sizeof(path), "/proc/%" PRId32, tid);
	if (access(path, F_OK) == 0)
		return choose_tid(session, tid, err);
	ret = ky_error_set(err, KYMO_E_NOT_FOUND, "there is no thread %" PRId32, tid);
	ky_error_hint(err, "--tid wants the ids of running threads");
	return ret;
}

/* All processes of a user, by the real uid. How many threads. */
static int choose_user(struct ky_session *session, uint32_t uid, struct kymo_error *err)
{
	struct ky_proc proc;
	struct ky_proc_ids ids;
	struct dirent *entry;
	int ret = ky_proc_open(&proc, err), n = 0;
	DIR *dir;

	if (ret < 0)
		return ret;
	dir = opendir("/proc");
	while (dir && ret >= 0 && (entry = readdir(dir))) {
		int32_t pid = (int32_t)strtol(entry->d_name, NULL, 10);

		/* Those that end meanwhile are none. */
		if (pid <= 0 || ky_proc_read_ids(&proc, pid, pid, &ids) < 0 || ids.uid != uid)
			continue;
		ret = choose_process(session, entry->d_name, err);
		n += ret > 0 ? ret : 0;
	}
	if (dir)
		closedir(dir);
	ky_proc_close(&proc);
	return ret < 0 ? ret : n;
}

/* ---- control groups ------------------------------------------------------------------- */

/* The list of threads in @dir: of version 2, of version 1. */
static int choose_group_dir(struct ky_session *session, const char *dir, struct kymo_error *err)
{
	static const char *const names[] = {"cgroup.threads", "tasks"};
	struct ky_strbuf text = KY_STRBUF_INIT;
	char path[4400];
	int ret = -ENOENT, n = 0;

	for (size_t i = 0; i < 2 && ret == -ENOENT; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		ret = ky_read_file(AT_FDCWD, path, CGROUP_MAX_BYTES, &text);
	}
	if (ret < 0) {
		ky_strbuf_fini(&text);
		ret = ky_error_errno(err, -ret, "cannot read the threads of a control group");
		ky_error_path(err, dir);
		return ret;
	}
	ret = KYMO_OK;
	for (const char *at = ky_strbuf_text(&text); at && *at && ret >= 0; n++) {
		ret = choose_tid(session, (int32_t)strtol(at, NULL, 10), err);
		at = strchr(at, '\n');
		at = at ? at + 1 : NULL;
	}
	ky_strbuf_fini(&text);
	return ret < 0 ? ret : n;
}

/* The group and those in it. */
static int choose_group_tree(struct ky_session *session, const char *dir, int depth,
			     struct kymo_error *err)
{
	int ret = choose_group_dir(session, dir, err);
	struct dirent *entry;
	char path[4096];
	DIR *list = ret >= 0 ? opendir(dir) : NULL;

	while (list && ret >= 0 && depth < 32 && (entry = readdir(list))) {
		if (entry->d_type != DT_DIR || entry->d_name[0] == '.' ||
		    snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name) >= (int)sizeof(path))
			continue;
		ret = choose_group_tree(session, path, depth + 1, err);
	}
	if (list)
		closedir(list);
	return ret < 0 ? ret : KYMO_OK;
}

static int choose_cgroup(struct ky_session *session, struct kymo_error *err)
{
	static const char *const roots[] = {"", "/sys/fs/cgroup/", "/sys/fs/cgroup/unified/"};
	const char *name = session->options.cgroup;
	char path[4096];
	int ret;

	for (size_t i = name[0] == '/' ? 0 : 1; i < 3; i++) {
		snprintf(path, sizeof(path), "%s%s", roots[i], name);
		if (access(path, F_OK) == 0)
			return choose_group_tree(session, path, 0, err);
		if (name[0] == '/')
			break;
	}
	ret = ky_error_set(err, KYMO_E_NOT_FOUND, "there is no control group '%s'", name);
	ky_error_hint(err, "--cgroup wants a directory of /sys/fs/cgroup, as in /proc/PID/cgroup");
	return ret;
}

static int choose_all(struct ky_session *session,
		      int (*choose)(struct ky_session *session, int32_t id, struct kymo_error *err),
		      const int32_t *ids, size_t n, struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (size_t i = 0; i < n && !ret; i++)
		ret = choose(session, ids[i], err);
	return ret;
}

static int follow_children(struct ky_session *session, struct kymo_error *err)
{
	session->convert.chosen_follow = true;
	return ky_instance_write(&session->instance, "options/event-fork", "1", err);
}

int ky_session_choose_threads(struct ky_session *session, struct kymo_error *err)
{
	const struct ky_session_options *options = &session->options;
	bool groups = options->n_pids || options->uid >= 0 || options->cgroup;
	int ret = KYMO_OK;

	session->has_chosen = groups || options->n_tids;
	if (!session->has_chosen && !options->follow)
		return KYMO_OK;
	if (groups || options->follow)
		ret = follow_children(session, err);
	if (!ret)
		ret = choose_all(session, choose_pid, options->pids, options->n_pids, err);
	if (!ret)
		ret = choose_all(session, choose_thread, options->tids, options->n_tids, err);
	if (!ret && options->uid >= 0) {
		ret = choose_user(session, (uint32_t)options->uid, err);
		ret = ret > 0 ? KYMO_OK : ret;
	}
	if (!ret && options->cgroup)
		ret = choose_cgroup(session, err);
	return ret;
}

/* ---- while recording ------------------------------------------------------------------ */

static int choose_uid(struct ky_session *session, int32_t uid, struct kymo_error *err)
{
	int ret = choose_user(session, (uint32_t)uid, err);

	if (ret)
		return ret < 0 ? ret : KYMO_OK;
	return ky_error_set(err, KYMO_E_NOT_FOUND, "user %" PRId32 " has no processes", uid);
}

static bool is_collected(const struct ky_session *session, int32_t tid)
{
	for (size_t i = 0; i < session->collected.len; i++)
		if (session->collected.data[i] == tid)
			return true;
	return false;
}

/*
 * The kernel's list can be added to, or begun anew; between the two it would record everybody, so then it
 * records nobody.
 */
static int write_list(struct ky_session *session, const struct ky_strbuf *text,
		      struct kymo_error *err)
{
	int ret = ky_instance_write(&session->instance, "tracing_on", "0", err), fd, on;
	const char *at = ky_strbuf_text(text), *end = at + text->len;

	if (ret < 0)
		return ret;
	fd = openat(session->instance.fd, "set_event_pid", O_WRONLY | O_TRUNC | O_CLOEXEC);
	while (fd >= 0 && at < end) {
		ssize_t n = write(fd, at, (size_t)(end - at));

		if (n <= 0)
			break;
		at += n;
	}
	if (fd < 0 || at < end)
		ret = ky_error_errno(err, errno, "cannot write whose events are recorded");
	if (fd >= 0)
		close(fd);
	on = ky_instance_write(&session->instance, "tracing_on", "1", ret < 0 ? NULL : err);
	return ret < 0 ? ret : on;
}

static int remove_collected(struct ky_session *session, struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT, rest = KY_STRBUF_INIT;
	int ret = ky_tracefs_read(session->instance.fd, session->instance.path, "set_event_pid",
				  &text, err);

	for (const char *at = ky_strbuf_text(&text); !ret && at && *at;) {
		int32_t tid = (int32_t)strtol(at, NULL, 10);

		if (tid > 0 && !is_collected(session, tid))
			ky_strbuf_addf(&rest, "%" PRId32 "\n", tid);
		at = strchr(at, '\n');
		at = at ? at + 1 : NULL;
	}
	if (!ret && (ky_strbuf_failed(&rest) || !rest.len))
		ret = rest.len ? ky_error_nomem(err)
			       : ky_error_set(err, KYMO_E_STATE,
					      "nobody would be left whose events are recorded");
	if (!ret)
		ret = write_list(session, &rest, err);
	ky_vec_foreach(&session->collected, tid)
		if (!ret)
			(void)ky_map_del(&session->chosen_tids, (uint32_t)*tid);
	ky_strbuf_fini(&text);
	ky_strbuf_fini(&rest);
	return ret;
}

/* Threads go away meanwhile: that one of them is not taken is no mistake. */
static int add_collected(struct ky_session *session, bool follows, struct kymo_error *err)
{
	int ret = follows ? follow_children(session, err) : KYMO_OK;

	ky_vec_foreach(&session->collected, tid)
		if (!ret)
			ret = choose_tid(session, *tid, err);
	if (!ret)
		session->has_chosen = true;
	return ret;
}

int ky_session_choose(struct ky_session *session, enum ky_session_choice what, const int32_t *ids,
		      size_t n, bool adds, struct kymo_error *err)
{
	int (*const choose[])(struct ky_session *, int32_t, struct kymo_error *) = {
		[KY_SESSION_PIDS] = choose_pid,
		[KY_SESSION_TIDS] = choose_thread,
		[KY_SESSION_UIDS] = choose_uid,
	};
	int ret;

	if (!adds && !session->has_chosen && !session->options.follow)
		return ky_error_set(err, KYMO_E_STATE,
				    "this recording is of all processes: choose some first");
	ky_vec_clear(&session->collected);
	session->collects = true;
	ret = choose_all(session, choose[what], ids, n, err);
	session->collects = false;
	if (ret < 0)
		return ret;
	return adds ? add_collected(session, what != KY_SESSION_TIDS, err)
		    : remove_collected(session, err);
}

/* ---- names ---------------------------------------------------------------------------- */

/* The names of threads that events speak of, besides the one that they happen in. */
static bool is_name(const char *field)
{
	static const char *const names[] = {"comm", "prev_comm", "next_comm", "parent_comm",
					    "child_comm"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(field, names[i]) == 0)
			return true;
	return false;
}

static bool is_text(const struct ky_event_field *field)
{
	return field->how == KY_HOW_TEXT || field->how == KY_HOW_COMM ||
	       field->how == KY_HOW_STRING;
}

static void add_condition(struct ky_strbuf *text, const char *field, const char *comm)
{
	ky_strbuf_addf(text, "%s%s == \"%s\"", text->len ? " || " : "", field, comm);
}

/*
 * In the kernel: the name of who runs, or one that the event speaks of. Of events that are recorded to
 * learn from, all are needed: there the recorder looks at what they say.
 */
int ky_session_filter_comm(struct ky_session *session, struct ky_event_source *source,
			   struct kymo_error *err)
{
	const char *comm = session->options.comm;
	struct ky_arena *arena = &session->catalogue.arena;
	struct ky_strbuf text = KY_STRBUF_INIT;
	const struct ky_event_field *fields;
	/* 32-bit calls are not the kernel's to filter. */
	bool by_recorder = source->hidden || source->is_compat;
	const char *copy;
	size_t n;

	if (!comm || !source->selected)
		return KYMO_OK;
	if (source->is_compat && !(session->options.context & KY_CONTEXT_PROCNAME))
		return ky_error_set(
			err, KYMO_E_INVALID,
			"--comm: names are known of 32-bit calls with --context procname");
	if (!by_recorder)
		add_condition(&text, "COMM", comm);
	else if (session->options.context & KY_CONTEXT_PROCNAME)
		add_condition(&text, "$ctx.procname", comm);
	fields = ky_convert_fields(&session->convert, source->id, &n);
	for (size_t i = 0; i < n; i++)
		if (is_name(fields[i].name) && is_text(&fields[i]))
			add_condition(&text, by_recorder ? fields[i].name : fields[i].kernel_name,
				      comm);
	copy = ky_strbuf_failed(&text) ? NULL : ky_arena_strdup(arena, ky_strbuf_text(&text));
	ky_strbuf_fini(&text);
	if (!copy)
		return ky_error_nomem(err);
	if (!*copy)
		return KYMO_OK;
	if (!by_recorder)
		source->kernel_filter = copy;
	else if (source->filter)
		source->filter = ky_arena_printf(arena, "(%s) && (%s)", source->filter, copy);
	else
		source->filter = copy;
	return by_recorder && !source->filter ? ky_error_nomem(err) : KYMO_OK;
}
