/* SPDX-License-Identifier: MIT */
/*
 * Raw pages go to the disk without a copy: splice() moves a whole page out of the ring into a pipe, and from there past the
 * page cache into the file. It is back in the ring before the next one is taken, since the kernel had to clear another
 * page in its place otherwise, which costs what copying does. So the thread that reads the rings waits for
 * the disk.
 *
 * A disk may make it wait for longer than the rings last. So a second thread, the guard, is woken by a timer if a round
 * takes long, and if a write is late then, it copies what is in the rings into blocks, for the thread that writes
 * those. In this way they are read for a while, when the next page is tried directly.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "os/now.h"
#include "record/kernel/session-internal.h"

/* A write for each page: smaller ones cost more than to copy them. */
#define PAGE_BYTES_MIN (128u * 1024)
/* What is late: one write; all of a round. */
#define WRITE_LATE_NS 2000000
#define ROUND_LATE_NS 20000000
/* For so long pages are copied then; for longer each time, if these are no further apart than this says. */
#define COPY_NS_MIN 100000000
#define COPY_NS_MAX 10000000000
#define COPY_APART  4

struct ky_raw_direct {
	struct ky_session *session;
	pthread_t guard;
	int32_t tid;
	pthread_cond_t started;
	int timer_fd;	      /* wakes the guard */
	pthread_mutex_t lock; /* its owner reads the rings */
	/* What follows is under the lock, but a page on its way to the disk is its reader's alone. */
	int pipe[2];
	bool stop, timer_is_set, unsupported;
	uint64_t writing_since_ns;	   /* CLOCK_MONOTONIC; 0: no thread writes */
	uint64_t copy_until_ns;		   /* 0: no need to copy */
	uint64_t copy_ns, copied_until_ns; /* the last time */
	uint64_t round_began_ns;
	int failed; /* the guard could not read */
	struct kymo_error failure;
};

/* The disk is late, or this thread had no CPU when the disk was done: which is as bad. */
static void copy_for_now(struct ky_raw_direct *direct, uint64_t now)
{
	if (!direct->copy_until_ns) {
		if (now - direct->copied_until_ns >= COPY_APART * direct->copy_ns)
			direct->copy_ns = COPY_NS_MIN;
		else if (direct->copy_ns < COPY_NS_MAX)
			direct->copy_ns *= 2;
	}
	direct->copy_until_ns = direct->copied_until_ns = now + direct->copy_ns;
}

/* ---- the guard ------------------------------------------------------------------------ */

static void raw_direct_take_over(struct ky_raw_direct *direct, uint64_t now)
{
	copy_for_now(direct, now);
	ky_vec_foreach(&direct->session->cpus, it)
		if (!direct->failed)
			direct->failed = ky_raw_copy(*it, false, &direct->failure);
}

static void raw_direct_set_timer(const struct ky_raw_direct *direct, uint64_t in_ns)
{
	struct itimerspec when = {
		.it_value = {(time_t)(in_ns / 1000000000), (long)(in_ns % 1000000000)},
	};

	(void)timerfd_settime(direct->timer_fd, 0, &when, NULL);
}

static void raw_direct_look(struct ky_raw_direct *direct)
{
	uint64_t now = ky_os_now_ns(), since = direct->writing_since_ns;

	if (!since)
		return;
	if (now - since >= WRITE_LATE_NS) {
		raw_direct_take_over(direct, now);
		raw_direct_set_timer(direct, WRITE_LATE_NS);
	} else {
		raw_direct_set_timer(direct, since + WRITE_LATE_NS - now);
	}
}

static void *guard(void *data)
{
	struct ky_raw_direct *direct = data;
	uint64_t expired;
	bool stop = false;

	pthread_mutex_lock(&direct->lock);
	direct->tid = gettid();
	pthread_cond_signal(&direct->started);
	pthread_mutex_unlock(&direct->lock);
	while (!stop) {
		(void)!read(direct->timer_fd, &expired, sizeof(expired));
		pthread_mutex_lock(&direct->lock);
		stop = direct->stop;
		if (!stop)
			raw_direct_look(direct);
		pthread_mutex_unlock(&direct->lock);
	}
	return NULL;
}

/* ---- pages ---------------------------------------------------------------------------- */

/* The CPU's file, once more: where the disk is written directly. */
static bool raw_direct_open_direct(struct ky_session_cpu *cpu)
{
	char path[48];

	if (cpu->direct_fd < 0) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", cpu->raw_fd);
		cpu->direct_fd = open(path, O_WRONLY | O_DIRECT | O_CLOEXEC);
	}
	return cpu->direct_fd >= 0;
}

/* @left bytes of what is in the pipe, to @at of a file that takes them only from memory. 0 or -errno. */
static int write_copy(struct ky_raw_direct *direct, struct ky_session_cpu *cpu, int64_t at,
		      size_t left)
{
	uint8_t *bytes = malloc(left);
	ssize_t n = 1;
	int error;

	if (!bytes)
		return -ENOMEM;
	for (size_t got = 0; got < left && n > 0; got += n > 0 ? (size_t)n : 0)
		n = read(direct->pipe[0], bytes + got, left - got);
	for (size_t put = 0; put < left && n > 0; put += n > 0 ? (size_t)n : 0)
		n = pwrite(cpu->direct_fd, bytes + put, left - put, (off_t)at + (off_t)put);
	error = n < 0 ? -errno : n == 0 ? -EIO : 0;
	free(bytes);
	return error;
}

/* What is in the pipe, to @at of the file. 0 or -errno. */
static int write_pipe(struct ky_raw_direct *direct, struct ky_session_cpu *cpu, int64_t at)
{
	size_t left = cpu->kernel.ring.page_bytes;
	ssize_t n;

	while (left) {
		n = splice(direct->pipe[0], NULL, cpu->direct_fd, &at, left, 0);
		if (n > 0) {
			left -= (size_t)n;
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		/* A file system that does not write past the page cache, or out of a pipe, says so with its first page. */
		if (n < 0 && errno == EINVAL && fcntl(cpu->direct_fd, F_SETFL, 0) == 0) {
			direct->unsupported = true;
			return write_copy(direct, cpu, at, left);
		}
		return n < 0 ? -errno : -EIO;
	}
	return 0;
}

/* With the lock, which others may have while the disk is waited for. */
static int raw_direct_write_page(struct ky_raw_direct *direct, struct ky_session_cpu *cpu,
				 struct kymo_error *err)
{
	uint64_t at = ky_block_file_reserve(cpu->raw_file, cpu->kernel.ring.page_bytes),
		 began = ky_os_now_ns(), now;
	int error;

	cpu->raw_bytes += cpu->kernel.ring.page_bytes;
	direct->writing_since_ns = began;
	if (!direct->timer_is_set)
		raw_direct_set_timer(direct, WRITE_LATE_NS);
	direct->timer_is_set = true;
	pthread_mutex_unlock(&direct->lock);
	error = write_pipe(direct, cpu, (int64_t)at);
	pthread_mutex_lock(&direct->lock);
	direct->writing_since_ns = 0;
	if (error) {
		/* No page may follow the rest in the pipe. */
		direct->unsupported = true;
		ky_block_file_cut(cpu->raw_file, at, error);
		return ky_raw_failed(cpu, -error, "write", err);
	}
	now = ky_os_now_ns();
	if (now - began >= WRITE_LATE_NS)
		copy_for_now(direct, now);
	return KYMO_OK;
}

/* Is there nothing that speaks against the next page's going this way? */
static bool may_write(struct ky_raw_direct *direct, struct ky_session_cpu *cpu)
{
	/* What was copied before it is to be in the file first; that of the first page makes the file. */
	if (direct->unsupported || direct->copy_until_ns || !cpu->raw_file ||
	    !ky_block_file_is_idle(cpu->raw_file))
		return false;
	direct->unsupported = !raw_direct_open_direct(cpu);
	return !direct->unsupported;
}

int ky_raw_direct_read(struct ky_session_cpu *cpu, struct kymo_error *err)
{
	struct ky_raw_direct *direct = cpu->session->direct;
	/* Others are to have their turn before their rings are full. */
	uint64_t left = cpu->session->options.buffer_bytes / cpu->kernel.ring.page_bytes / 2;
	int ret = 1;

	if (!direct)
		return 1;
	while (ret > 0 && left-- && may_write(direct, cpu)) {
		ret = ky_cpu_ring_move(&cpu->kernel.ring, direct->pipe[1], err);
		if (ret <= 0)
			break;
		ret = raw_direct_write_page(direct, cpu, err);
		ret = ret < 0 ? ret : 1;
	}
	if (ret == KYMO_E_UNSUPPORTED) {
		direct->unsupported = true;
		ret = 1;
	}
	return ret > 0 ? !may_write(direct, cpu) : ret;
}

int ky_raw_direct_begin(struct ky_session *session, struct kymo_error *err)
{
	struct ky_raw_direct *direct = session->direct;

	if (!direct)
		return KYMO_OK;
	pthread_mutex_lock(&direct->lock);
	/* The thread that reads instead of this one needs the same priority, which may have changed. */
	if (!direct->round_began_ns)
		(void)setpriority(PRIO_PROCESS, (id_t)direct->tid, getpriority(PRIO_PROCESS, 0));
	direct->round_began_ns = ky_os_now_ns();
	if (direct->copy_until_ns && direct->round_began_ns >= direct->copy_until_ns)
		direct->copy_until_ns = 0;
	if (direct->failed && err)
		*err = direct->failure;
	return direct->failed;
}

void ky_raw_direct_took(struct ky_session *session, uint64_t bytes)
{
	/*
	 * When a ring is half full, or fills as fast as the disk writes, the reader is late. Then it must
	 * not wait for the disk, too.
	 */
	if (session->direct && bytes >= session->options.buffer_bytes / 2)
		copy_for_now(session->direct, session->direct->round_began_ns);
}

void ky_raw_direct_end(struct ky_session *session)
{
	struct ky_raw_direct *direct = session->direct;
	uint64_t now;

	if (!direct)
		return;
	if (direct->timer_is_set)
		raw_direct_set_timer(direct, 0);
	direct->timer_is_set = false;
	now = ky_os_now_ns();
	if (now - direct->round_began_ns >= ROUND_LATE_NS)
		copy_for_now(direct, now);
	pthread_mutex_unlock(&direct->lock);
	/* Pages can go directly again once those that were copied are in their files. */
	if (!direct->copy_until_ns && !direct->unsupported)
		ky_block_writer_kick(session->blocks);
}

/* ---- its life ------------------------------------------------------------------------- */

static int start_guard(struct ky_raw_direct *direct, struct kymo_error *err)
{
	int ret = pthread_create(&direct->guard, NULL, guard, direct);

	if (ret)
		return ky_error_errno(err, ret,
				      "cannot start the thread that looks for late writes");
	pthread_mutex_lock(&direct->lock);
	while (!direct->tid)
		pthread_cond_wait(&direct->started, &direct->lock);
	pthread_mutex_unlock(&direct->lock);
	direct->session->kernel.convert.own_tids[KY_OWN_GUARD] =
		ky_pid_to_kernel(&direct->session->view, direct->tid);
	return KYMO_OK;
}

static void free_direct(struct ky_raw_direct *direct)
{
	pthread_cond_destroy(&direct->started);
	pthread_mutex_destroy(&direct->lock);
	for (int i = 0; i < 2; i++)
		if (direct->pipe[i] >= 0)
			close(direct->pipe[i]);
	if (direct->timer_fd >= 0)
		close(direct->timer_fd);
	free(direct);
}

int ky_raw_direct_open(struct ky_session *session, struct kymo_error *err)
{
	enum ky_cpu_ring_way way = session->options.reader;
	struct ky_raw_direct *direct;
	int ret;

	if (session->kernel.page_bytes < PAGE_BYTES_MIN ||
	    (way != KY_CPU_RING_AUTO && way != KY_CPU_RING_SPLICE))
		return KYMO_OK;
	direct = calloc(1, sizeof(*direct));
	if (!direct)
		return ky_error_nomem(err);
	direct->session = session;
	direct->pipe[0] = direct->pipe[1] = -1;
	pthread_mutex_init(&direct->lock, NULL);
	pthread_cond_init(&direct->started, NULL);
	direct->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	if (direct->timer_fd < 0 || pipe2(direct->pipe, O_CLOEXEC) < 0)
		ret = ky_error_errno(err, errno, "cannot make a pipe or a timer");
	else
		ret = start_guard(direct, err);
	if (ret < 0) {
		free_direct(direct);
		return ret;
	}
	/* As many slots as splice() counts for a sub-buffer. */
	(void)fcntl(direct->pipe[1], F_SETPIPE_SZ, (int)session->kernel.page_bytes);
	/* A recording that begins has enough to do. */
	copy_for_now(direct, ky_os_now_ns());
	session->direct = direct;
	return KYMO_OK;
}

void ky_raw_direct_close(struct ky_session *session)
{
	struct ky_raw_direct *direct = session->direct;

	if (!direct)
		return;
	session->direct = NULL;
	pthread_mutex_lock(&direct->lock);
	direct->stop = true;
	pthread_mutex_unlock(&direct->lock);
	raw_direct_set_timer(direct, 1);
	pthread_join(direct->guard, NULL);
	free_direct(direct);
}
