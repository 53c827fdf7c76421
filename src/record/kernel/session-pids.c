/* SPDX-License-Identifier: MIT */
/*
 * The kernel's lists of threads. The kernel records the threads in set_event_pid, except those in
 * set_event_notrace_pid. With the instance's option event-fork, a child of a listed thread enters the list, and a
 * thread that ends leaves it.
 *
 * Each write takes about 50 ms, since the kernel waits until no CPU uses the old list; so one write has all ids. A
 * write can add to a list or replace it, but not remove an id: so a thread that the recording no longer selects
 * enters the other list. Linux before 5.7 has no other list: the recorder replaces the first list, and the kernel
 * records no thread meanwhile.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "record/kernel/session-internal.h"

#define CHOSEN	  "set_event_pid"
#define LEFT_OUT  "set_event_notrace_pid"
#define PID_LIMIT 4194304 /* no id is that large */

/* The ids in a list. */
static int session_pids_read_list(const struct ky_session *session, const char *name,
				  struct ky_map *ids, struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	int ret = ky_tracefs_read(session->instance.fd, session->instance.path, name, &text, err);

	for (const char *at = ky_strbuf_text(&text); !ret && at && *at;) {
		int32_t tid = (int32_t)strtol(at, NULL, 10);

		if (tid > 0 && tid < PID_LIMIT && ky_map_set(ids, (uint32_t)tid, ids) < 0)
			ret = ky_error_nomem(err);
		at = strchr(at, '\n');
		at = at ? at + 1 : NULL;
	}
	ky_strbuf_fini(&text);
	return ret;
}

/* Add @text to a list; @anew: instead of what is in it. */
static int write_one(const struct ky_instance *instance, const char *name,
		     const struct ky_strbuf *text, bool anew, struct kymo_error *err)
{
	const char *at = ky_strbuf_text(text), *end = at + text->len;
	int fd = openat(instance->fd, name, O_WRONLY | O_CLOEXEC | (anew ? O_TRUNC : 0));
	int ret = KYMO_OK;

	while (fd >= 0 && at < end) {
		ssize_t n = write(fd, at, (size_t)(end - at));

		if (n <= 0)
			break;
		at += n;
	}
	if (fd < 0 || at < end)
		ret = ky_error_errno(err, errno, "cannot write the IDs of the recorded threads");
	if (fd >= 0)
		close(fd);
	return ret;
}

/* The same for all instances. */
static int write_list(const struct ky_session *session, const char *name,
		      const struct ky_strbuf *text, bool anew, struct kymo_error *err)
{
	const struct ky_instance *instance;
	int ret = KYMO_OK;

	for (size_t i = 0; !ret && (instance = ky_session_instance_at(session, i)); i++)
		ret = write_one(instance, name, text, anew, err);
	return ret;
}

/* What is in @ids, but not in @except. */
static int list_ids(const struct ky_map *ids, const struct ky_map *except, struct ky_strbuf *text,
		    struct kymo_error *err)
{
	size_t pos = 0;
	uint64_t tid;
	void *value;

	while (ky_map_next(ids, &pos, &tid, &value))
		if (!ky_map_get(except, tid))
			ky_strbuf_addf(text, "%" PRIu64 "\n", tid);
	return ky_strbuf_failed(text) ? ky_error_nomem(err) : KYMO_OK;
}

static int map_of(const struct ky_tids *tids, struct ky_map *map, struct kymo_error *err)
{
	ky_map_init(map);
	ky_vec_foreach(tids, tid)
		if (ky_map_set(map, (uint32_t)*tid, map) < 0)
			return ky_error_nomem(err);
	return KYMO_OK;
}

int ky_session_pids_read(const struct ky_session *session, struct ky_map *chosen,
			 struct ky_map *left_out, struct kymo_error *err)
{
	int ret;

	ky_map_init(chosen);
	ky_map_init(left_out);
	ret = session_pids_read_list(session, CHOSEN, chosen, err);
	if (!ret && faccessat(session->instance.fd, LEFT_OUT, F_OK, 0) == 0)
		ret = session_pids_read_list(session, LEFT_OUT, left_out, err);
	return ret;
}

/* The kernel records only listed threads. */
static int choose_nobody(const struct ky_session *session, struct kymo_error *err)
{
	char text[24] = "";
	FILE *file;

	/* An empty list would mean all threads. Before Linux 5.16, ids must be less than the machine's limit. */
	snprintf(text, sizeof(text), "%d", PID_LIMIT);
	if (ky_session_write_all(session, CHOSEN, text, NULL) == 0)
		return KYMO_OK;
	file = fopen("/proc/sys/kernel/pid_max", "re");
	if (file && fgets(text, sizeof(text), file))
		snprintf(text, sizeof(text), "%ld", strtol(text, NULL, 10) - 1);
	if (file)
		fclose(file);
	return ky_session_write_all(session, CHOSEN, text, err);
}

/* Those of @wanted that were left out until now are no more. */
static int let_in(struct ky_session *session, const struct ky_map *left_out,
		  const struct ky_map *wanted, struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	size_t pos = 0, n = 0;
	uint64_t tid;
	void *value;
	int ret;

	while (ky_map_next(left_out, &pos, &tid, &value))
		n += ky_map_get(wanted, tid) != NULL;
	if (!n)
		return KYMO_OK;
	ret = list_ids(left_out, wanted, &text, err);
	if (!ret)
		ret = write_list(session, LEFT_OUT, &text, true, err);
	ky_strbuf_fini(&text);
	return ret;
}

/* The kernel's lists are for its own events; the recorder keeps one for calls that it has no events for. */
static int add_for_calls(struct ky_session *session, const struct ky_tids *tids,
			 struct kymo_error *err)
{
	if (!ky_session_has_calls(session))
		return KYMO_OK;
	session->kernel.convert.chosen = &session->chosen_tids;
	ky_vec_foreach(tids, tid)
		if (ky_map_set(&session->chosen_tids, (uint32_t)*tid, session) < 0)
			return ky_error_nomem(err);
	return KYMO_OK;
}

int ky_session_pids_add(struct ky_session *session, const struct ky_tids *tids, size_t *n_new,
			struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	struct ky_map chosen, left_out, wanted;
	size_t pos = 0;
	uint64_t tid;
	void *value;
	int ret = map_of(tids, &wanted, err), read;

	*n_new = 0;
	read = ky_session_pids_read(session, &chosen, &left_out, ret < 0 ? NULL : err);
	ret = ret < 0 ? ret : read;
	while (!ret && ky_map_next(&wanted, &pos, &tid, &value)) {
		if (ky_map_get(&chosen, tid) && !ky_map_get(&left_out, tid))
			continue;
		++*n_new;
		ret = ky_session_dump_add(session, (int32_t)tid, err);
	}
	if (!ret)
		ret = list_ids(&wanted, &chosen, &text, err);
	if (!ret && text.len)
		ret = write_list(session, CHOSEN, &text, false, err);
	else if (!ret && !session->has_list)
		ret = choose_nobody(session, err);
	if (!ret)
		session->has_list = true;
	if (!ret)
		ret = let_in(session, &left_out, &wanted, err);
	if (!ret)
		ret = add_for_calls(session, tids, err);
	ky_map_fini(&wanted);
	ky_map_fini(&chosen);
	ky_map_fini(&left_out);
	ky_strbuf_fini(&text);
	return ret;
}

/* Between the old and the new list the kernel would record all threads, so recording is off meanwhile. */
static int begin_anew(struct ky_session *session, const struct ky_strbuf *text,
		      struct kymo_error *err)
{
	int ret = ky_session_write_all(session, "tracing_on", "0", err), on;

	if (ret < 0)
		return ret;
	ret = write_list(session, CHOSEN, text, true, err);
	if (!ret && !text->len)
		ret = choose_nobody(session, err);
	on = session->pauses.is_on
		     ? KYMO_OK
		     : ky_session_write_all(session, "tracing_on", "1", ret < 0 ? NULL : err);
	return ret < 0 ? ret : on;
}

int ky_session_pids_remove(struct ky_session *session, const struct ky_tids *tids, size_t *n_new,
			   struct kymo_error *err)
{
	struct ky_strbuf rest = KY_STRBUF_INIT, text = KY_STRBUF_INIT;
	struct ky_map chosen, left_out, unwanted;
	int ret = map_of(tids, &unwanted, err), read;

	read = ky_session_pids_read(session, &chosen, &left_out, ret < 0 ? NULL : err);
	ret = ret < 0 ? ret : read;
	if (!ret)
		ret = list_ids(&unwanted, &left_out, &text, err);
	*n_new = 0;
	ky_vec_foreach(tids, tid)
		*n_new += ky_map_del(&chosen, (uint32_t)*tid) &&
			  !ky_map_get(&left_out, (uint32_t)*tid);
	if (!ret)
		ret = list_ids(&chosen, &left_out, &rest, err);
	if (!ret && *n_new && !rest.len && !session->watch.instance.path[0])
		ret = ky_error_set(err, KYMO_E_STATE, "the recording would have no threads left");
	if (!ret && text.len)
		ret = faccessat(session->instance.fd, LEFT_OUT, F_OK, 0) == 0
			      ? write_list(session, LEFT_OUT, &text, false, err)
			      : begin_anew(session, &rest, err);
	ky_vec_foreach(tids, tid)
		if (!ret)
			(void)ky_map_del(&session->chosen_tids, (uint32_t)*tid);
	ky_map_fini(&unwanted);
	ky_map_fini(&chosen);
	ky_map_fini(&left_out);
	ky_strbuf_fini(&rest);
	ky_strbuf_fini(&text);
	return ret;
}
