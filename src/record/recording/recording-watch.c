/* SPDX-License-Identifier: MIT */
/*
 * Watchers: processes that follow what happens to the recording, line by line (kymo watch). The queue of
 * each one is its socket's buffer. What does not fit is counted, and the recorder never waits.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "ctf/json/json.h"
#include "os/now.h"
#include "record/recording/recording-internal.h"

/* Between two looks at losses, sizes and fills. */
#define TICK_S 1

int ky_recording_open_watch(struct ky_recording *recording, struct kymo_error *err)
{
	recording->watch.timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (recording->watch.timer_fd < 0)
		return ky_error_errno(err, errno, "cannot make a timer");
	return KYMO_OK;
}

static void recording_watch_drop(struct ky_recording_watch *watch, unsigned int i)
{
	close(watch->watchers[i].fd);
	watch->watchers[i] = watch->watchers[--watch->n];
}

void ky_recording_close_watch(struct ky_recording *recording)
{
	struct ky_recording_watch *watch = &recording->watch;

	while (watch->n)
		recording_watch_drop(watch, 0);
	if (watch->timer_fd >= 0)
		close(watch->timer_fd);
	watch->timer_fd = -1;
}

/* Those that have gone leave their places. */
static void drop_gone(struct ky_recording_watch *watch)
{
	for (unsigned int i = watch->n; i-- > 0;) {
		struct pollfd poll_fd = {.fd = watch->watchers[i].fd, .events = POLLIN};

		if (poll(&poll_fd, 1, 0) > 0)
			recording_watch_drop(watch, i);
	}
}

void ky_recording_add_watcher(struct ky_recording *recording, int fd)
{
	struct ky_control_socket_message answer = {.len = 0};
	struct ky_recording_watch *watch = &recording->watch;

	drop_gone(watch);
	if (watch->n == KY_RECORDING_WATCHERS_MAX) {
		ky_control_socket_add(&answer, "error");
		ky_control_socket_add(&answer, "too many processes watch this recording");
		ky_control_socket_answer_kept(fd, &answer);
		return;
	}
	ky_control_socket_add(&answer, "ok");
	if (send(fd, answer.text, answer.len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
		close(fd);
		return;
	}
	watch->watchers[watch->n++] = (struct ky_recording_watcher){.fd = fd};
	ky_recording_set_tick(recording);
}

static bool send_line(struct ky_recording_watcher *watcher,
		      const struct ky_control_socket_message *line)
{
	struct ky_control_socket_message missed = {.len = 0};
	char text[24];

	if (watcher->n_missed) {
		snprintf(text, sizeof(text), "%" PRIu64, watcher->n_missed);
		ky_control_socket_add(&missed, "missed");
		ky_control_socket_add(&missed, text);
		if (send(watcher->fd, missed.text, missed.len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			return errno == EAGAIN;
		watcher->n_missed = 0;
	}
	if (send(watcher->fd, line->text, line->len, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
		return true;
	watcher->n_missed++;
	return errno == EAGAIN;
}

void ky_recording_tell(struct ky_recording *recording, const char *kind, const char *text,
		       const char *json)
{
	struct ky_recording_watch *watch = &recording->watch;
	struct ky_control_socket_message line = {.len = 0};
	char ns[24];

	if (!watch->n)
		return;
	snprintf(ns, sizeof(ns), "%" PRId64, ky_os_time_ns(CLOCK_REALTIME));
	ky_control_socket_add(&line, kind);
	ky_control_socket_add(&line, text);
	ky_control_socket_add(&line, json ? json : "");
	ky_control_socket_add(&line, ns);
	for (unsigned int i = watch->n; i-- > 0;)
		if (!send_line(&watch->watchers[i], &line))
			recording_watch_drop(watch, i);
}

void ky_recording_tell_trace(struct ky_recording *recording, const char *kind, const char *path,
			     uint64_t events, uint64_t bytes)
{
	struct ky_strbuf json = KY_STRBUF_INIT;

	ky_strbuf_adds(&json, "\"path\": ");
	ky_json_put_text(&json, path, strlen(path));
	ky_strbuf_addf(&json, ", \"events\": %" PRIu64 ", \"bytes\": %" PRIu64, events, bytes);
	ky_recording_tell(recording, kind, path, ky_strbuf_text(&json));
	ky_strbuf_fini(&json);
}

/* ---- amounts --------------------------------------------------------------------------- */

void ky_recording_amounts(const struct ky_recording *recording, struct ky_triggers_amounts *amounts)
{
	struct ky_session_progress kernel = {0};
	struct ky_user_progress user = {0};

	if (recording->session)
		ky_session_progress(recording->session, &kernel);
	ky_recording_program_progress(recording, &user);
	*amounts = (struct ky_triggers_amounts){.lost = kernel.lost + user.lost,
						.bytes = kernel.bytes + user.bytes,
						.fill_percent = (uint64_t)(kernel.fill * 100)};
}

void ky_recording_set_tick(struct ky_recording *recording)
{
	struct ky_recording_watch *watch = &recording->watch;
	bool needed = recording->is_started &&
		      (watch->n ||
		       (recording->triggers && ky_triggers_want_amounts(recording->triggers)));
	struct itimerspec spec = {{0}};

	if (needed == watch->is_ticking)
		return;
	watch->is_ticking = needed;
	if (needed)
		spec.it_value.tv_sec = spec.it_interval.tv_sec = TICK_S;
	(void)timerfd_settime(watch->timer_fd, 0, &spec, NULL);
}

static void recording_watch_tell_losses(struct ky_recording *recording, uint64_t n_lost)
{
	uint64_t more = n_lost - recording->watch.n_lost;
	char text[96], json[96];

	if (n_lost <= recording->watch.n_lost)
		return;
	recording->watch.n_lost = n_lost;
	snprintf(text, sizeof(text), "%" PRIu64 " events lost, %" PRIu64 " in all", more, n_lost);
	snprintf(json, sizeof(json), "\"lost\": %" PRIu64 ", \"lost_in_all\": %" PRIu64, more,
		 n_lost);
	ky_recording_tell(recording, "loss", text, json);
}

void ky_recording_tick(struct ky_recording *recording)
{
	struct ky_recording_watch *watch = &recording->watch;
	struct ky_triggers_amounts amounts;
	uint64_t count;

	(void)!read(watch->timer_fd, &count, sizeof(count));
	drop_gone(watch);
	ky_recording_set_tick(recording);
	if (!watch->is_ticking)
		return;
	ky_recording_amounts(recording, &amounts);
	recording_watch_tell_losses(recording, amounts.lost);
	if (recording->triggers)
		ky_triggers_report(recording->triggers, &amounts);
}
