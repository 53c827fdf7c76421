/* SPDX-License-Identifier: MIT */
/*
 * The consumer, which is the thread of a recording of programs: it reads their rings, user by user in turn, and hears of files that come and
 * go. It does nothing that takes long, whatever programs do: that is for tasks (user-file-tasks.c).
 */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/error.h"
#include "os/file.h"
#include "os/now.h"
#include "record/user/user-internal.h"

/*
 * Rings are looked at in time for one that is written at this rate; looking at one in which
 * there is nothing new costs less than waking up.
 */
#define FAST_BYTES_PER_MS 240000
#define PERIOD_MIN_MS	  1
#define PERIOD_MAX_MS	  20

/* So long one user's programs are read when others' may be waiting. */
#define TURN_NS 2000000

/* Of the events of files, which anybody can make in masses, so many bytes between two rounds of reading. */
#define EVENTS_BYTES 4096
/* A directory may be full of anything. */
#define FILES_MAX 65536

/* ---- files come and go ---------------------------------------------------------------- */

static struct ky_user_owner *owner_of_watch(const struct ky_user *user, int watch)
{
	for (size_t i = 0; i < user->owners.len; i++) {
		if (user->owners.data[i]->dir.watch == watch)
			return user->owners.data[i];
	}
	return NULL;
}

static int user_consumer_take_event(struct ky_user *user, const struct inotify_event *event,
				    struct kymo_error *err)
{
	struct ky_user_owner *owner = owner_of_watch(user, event->wd);

	if (event->mask & IN_Q_OVERFLOW)
		user->has_missed = true;
	if (!owner || !event->len)
		return KYMO_OK;
	if (event->mask & IN_MOVED_TO)
		return ky_user_file_comes(user, owner, event->name, err);
	return ky_user_file_closed(user, owner, event->name, err);
}

/* *got: the number of bytes that were read. */
static int user_consumer_take_events(struct ky_user *user, ssize_t *got, struct kymo_error *err)
{
	_Alignas(struct inotify_event) char buffer[EVENTS_BYTES];
	int ret = KYMO_OK;

	*got = read(user->inotify_fd, buffer, sizeof(buffer));

	for (ssize_t at = 0; at < *got && !ret;) {
		const struct inotify_event *event = (const void *)(buffer + at);

		ret = user_consumer_take_event(user, event, err);
		at += (ssize_t)(sizeof(*event) + event->len);
	}
	return ret;
}

int ky_user_find_rings(struct ky_user *user, struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (size_t i = 0; i < user->owners.len && !ret; i++) {
		struct ky_user_owner *owner = user->owners.data[i];
		DIR *stream = ky_dir_open(owner->dir.fd, ".");
		struct dirent *entry;

		for (int n = 0; !ret && n < FILES_MAX && stream && (entry = readdir(stream)); n++)
			ret = ky_user_file_comes(user, owner, entry->d_name, err);
		if (stream)
			closedir(stream);
	}
	return ret;
}

/* Events of files were too many: the directories are looked through, so often at the most. */
#define SEARCH_NS 200000000

static int user_consumer_search(struct ky_user *user, struct kymo_error *err)
{
	if (!user->has_missed || ky_os_now_ns() - user->searched_ns < SEARCH_NS)
		return KYMO_OK;
	user->has_missed = false;
	user->searched_ns = ky_os_now_ns();
	return ky_user_find_rings(user, err);
}

int ky_user_take_files(struct ky_user *user, struct kymo_error *err)
{
	ssize_t got = 1;
	int ret = KYMO_OK, left;

	if (ioctl(user->inotify_fd, FIONREAD, &left) < 0)
		return KYMO_OK;
	for (; left > 0 && got > 0 && !ret; left -= (int)got)
		ret = user_consumer_take_events(user, &got, err);
	if (ret < 0 || !user->has_missed)
		return ret;
	user->has_missed = false;
	return ky_user_find_rings(user, err);
}

/* ---- reading -------------------------------------------------------------------------- */

/*
 * One user's rings, until @until_ns at most, beginning with whose turn it is.
 * As ky_user_ring_read(): 1, 2 when there is more, 0, negative.
 */
static int read_owner(struct ky_user_owner *owner, uint64_t until_ns, struct kymo_error *err)
{
	int found = 0, ret;

	for (size_t n = owner->reading.len; n && owner->reading.len; n--) {
		struct ky_user_ring_file *file;

		owner->turn = owner->turn < owner->reading.len ? owner->turn : 0;
		file = owner->reading.data[owner->turn];
		/* First it is written what its events are; another one is in its place meanwhile. */
		if (ky_user_ring_is_behind(file->ring)) {
			ky_user_file_follow(file);
			continue;
		}
		owner->turn++;
		ret = ky_user_ring_read(file->ring, false, err);
		if (ret < 0)
			return ret;
		found = ret > found ? ret : found;
		if (ret && (uint64_t)ky_os_now_ns() > until_ns)
			return 2;
	}
	return found;
}

/* As read_owner(), of all users. */
static int read_rings(struct ky_user *user, struct kymo_error *err)
{
	size_t n_owners = 0;
	int found = 0, ret;

	for (size_t i = 0; i < user->owners.len; i++)
		n_owners += user->owners.data[i]->reading.len != 0;
	for (size_t i = 0; i < user->owners.len; i++) {
		ret = read_owner(user->owners.data[i],
				 n_owners > 1 ? (uint64_t)ky_os_now_ns() + TURN_NS : UINT64_MAX,
				 err);
		if (ret < 0)
			return ret;
		found = ret > found ? ret : found;
	}
	return found;
}

/* While programs write. -1: until a notification. */
static int period_ms(const struct ky_user *user)
{
	uint64_t bytes = (uint64_t)user->request.subbuf_bytes * user->request.n_subbufs;
	uint64_t ms = bytes / 2 / FAST_BYTES_PER_MS;

	if (user->options.overwrite)
		return ky_user_has_deferred(user) ? PERIOD_MAX_MS : -1;
	if (user->options.period_ms)
		return (int)user->options.period_ms;
	return ms < PERIOD_MIN_MS ? PERIOD_MIN_MS : ms > PERIOD_MAX_MS ? PERIOD_MAX_MS : (int)ms;
}

/* How long to sleep after a round that found so much. */
static int pause_ms(int period, int found)
{
	if (found > 1)
		return PERIOD_MIN_MS;
	return found && period > 1 ? period / 2 : period;
}

/* The sooner of two times in ms, of which -1 is never. */
static int sooner(int a, int b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

static int wait_ms(const struct ky_user *user, int found)
{
	int ms = ky_user_sleeps(user) ? ky_user_live_wait_ms(user)
				      : pause_ms(period_ms(user), found);

	return sooner(ms, ky_user_uids_wait_ms(user));
}

/* ---- the loop ------------------------------------------------------------------------- */

enum source {
	OF_STOP,
	OF_FILES,   /* files have come or gone */
	OF_ORDER,   /* another thread wants something */
	OF_TASKS,   /* tasks are finished */
	OF_SENTRY,  /* a program has woken us */
	OF_READERS, /* a live reader may have come */
	OF_UIDS,    /* a process has changed its user */
	SOURCES,
};

/* Sleeps. Returns a negative errno, or how many of @fds are readable. */
static int sleep_for(struct ky_user *user, struct pollfd *fds, int found)
{
	const int sources[SOURCES] = {
		[OF_STOP] = user->stop_fd,
		[OF_FILES] = user->inotify_fd,
		[OF_ORDER] = user->order_fd,
		[OF_TASKS] = user->work.done_fd,
		[OF_SENTRY] = user->sentry.fired_fd,
		[OF_READERS] = user->readers_fd,
		[OF_UIDS] = user->newcomers.events_fd,
	};
	int ms = wait_ms(user, found), n;

	for (int i = 0; i < SOURCES; i++)
		fds[i] = (struct pollfd){sources[i], POLLIN, 0};
	pthread_mutex_unlock(&user->turn);
	n = poll(fds, SOURCES, ms);
	n = n < 0 ? -errno : n;
	pthread_mutex_lock(&user->turn);
	return n;
}

/* What wakes the thread, apart from the time. */
static void take_signs(struct ky_user *user, const struct pollfd *fds)
{
	ky_user_idle_end(user, fds[OF_SENTRY].revents != 0);
	if (fds[OF_READERS].revents ||
	    __atomic_exchange_n(&user->live_is_asked, false, __ATOMIC_RELAXED))
		ky_user_live_look(user);
	if (fds[OF_UIDS].revents)
		ky_user_uids_told(user);
}

static int look_at_rings(struct ky_user *user, int *found, struct kymo_error *err)
{
	*found = ky_store_is_full(user->options.store) ? 0 : read_rings(user, err);
	if (*found > 0)
		ky_user_idle_found(user);
	return *found < 0 ? *found : KYMO_OK;
}

static int user_consumer_step(struct ky_user *user, const struct pollfd *fds, int *found,
			      struct kymo_error *err)
{
	/* Rings first: programs that end are finished after that. */
	int ret = look_at_rings(user, found, err);
	ssize_t got;

	if (!ret)
		ret = ky_user_live_step(user, err);
	if (!ret && fds[OF_FILES].revents)
		ret = user_consumer_take_events(user, &got, err);
	if (!ret)
		ret = user_consumer_search(user, err);
	if (!ret)
		ret = ky_user_look_at_closing(user, err);
	if (!ret && fds[OF_TASKS].revents)
		ret = ky_user_take_tasks(user, err);
	if (!ret && fds[OF_ORDER].revents)
		ret = ky_user_obey(user, err);
	if (!ret)
		ret = ky_user_rotate_step(user, err);
	ky_user_look_for_uids(user);
	if (!ret)
		ky_user_idle_try(user);
	return ret;
}

static int user_consumer_run(struct ky_user *user, struct kymo_error *err)
{
	struct pollfd fds[SOURCES];
	int found = 0, ret = KYMO_OK;

	ky_user_look_for_uids(user);
	while (!ret) {
		int n = sleep_for(user, fds, found);

		if (n < 0 && n != -EINTR)
			return ky_error_errno(err, -n, "cannot wait for programs");
		if (n < 0)
			continue;
		if (fds[OF_STOP].revents)
			break;
		if (n > 0)
			take_signs(user, fds);
		ret = user_consumer_step(user, fds, &found, err);
	}
	return ret;
}

/*
 * On a busy machine a few milliseconds without a CPU are enough to lose events. Where we may, we
 * go before others: it is little that is done in a round, and between rounds we sleep, whatever
 * programs write.
 */
static void go_first(void)
{
	const struct sched_param param = {.sched_priority = 1};

	(void)pthread_setschedparam(pthread_self(), SCHED_RR, &param);
}

void *ky_user_consume(void *data)
{
	struct ky_user *user = data;
	uint64_t one = 1;

	pthread_mutex_lock(&user->lock);
	user->tid = gettid();
	pthread_cond_broadcast(&user->answered);
	pthread_mutex_unlock(&user->lock);
	go_first();
	pthread_mutex_lock(&user->turn);
	user->result = user_consumer_run(user, &user->err);
	ky_user_idle_end(user, false);
	pthread_mutex_unlock(&user->turn);
	pthread_mutex_lock(&user->lock);
	user->is_over = true;
	pthread_cond_broadcast(&user->answered);
	pthread_mutex_unlock(&user->lock);
	(void)eventfd_write(user->answered_fd, 1);
	if (user->result < 0 && write(user->failed_fd, &one, sizeof(one)) < 0)
		return NULL;
	return NULL;
}
