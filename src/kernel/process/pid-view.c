/* SPDX-License-Identifier: MIT */
#include "kernel/process/pid-view.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "kernel/bpf/pids.h"
#include "kernel/process/thread-ids.h"

static void *pid_view_value_of(int32_t id)
{
	return (void *)(uintptr_t)(uint32_t)id;
}

static int pid_view_take(struct ky_pid_view *view, const struct ky_pids_record *record)
{
	/* Never another one: others read it without the lock. */
	if (view->level != record->level)
		view->level = record->level;
	/* Threads that have just ended have none here. */
	if (record->own <= 0 || record->kernel <= 0)
		return KYMO_OK;
	if (ky_map_set(&view->kernel_of, (uint32_t)record->own, pid_view_value_of(record->kernel)) <
		    0 ||
	    ky_map_set(&view->own_of, (uint32_t)record->kernel, pid_view_value_of(record->own)) < 0)
		return KYMO_E_MEMORY;
	return KYMO_OK;
}

static int pid_view_read_all(struct ky_pid_view *view, int fd, struct kymo_error *err)
{
	struct ky_pids_record records[256];
	size_t have = 0;
	ssize_t n;
	int ret = KYMO_OK;

	while (!ret && (n = read(fd, (char *)records + have, sizeof(records) - have)) != 0) {
		size_t i = 0;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return ky_error_errno(err, errno, "cannot read the ids of threads");
		have += (size_t)n;
		for (; !ret && (i + 1) * sizeof(*records) <= have; i++)
			ret = pid_view_take(view, &records[i]);
		have -= i * sizeof(*records);
		memmove(records, &records[i], have);
	}
	return ret < 0 ? ky_error_nomem(err) : KYMO_OK;
}

static int refresh_locked(struct ky_pid_view *view, struct kymo_error *err)
{
	int fd = ky_bpf_pids_read(view->program, err), ret;

	if (fd < 0)
		return fd;
	ky_map_fini(&view->kernel_of);
	ky_map_fini(&view->own_of);
	ky_map_init(&view->kernel_of);
	ky_map_init(&view->own_of);
	ret = pid_view_read_all(view, fd, err);
	close(fd);
	return ret;
}

int ky_pid_view_refresh(struct ky_pid_view *view, struct kymo_error *err)
{
	int ret;

	if (!view->is_foreign)
		return KYMO_OK;
	pthread_mutex_lock(&view->lock);
	ret = refresh_locked(view, err);
	pthread_mutex_unlock(&view->lock);
	return ret;
}

int32_t ky_pid_to_kernel(struct ky_pid_view *view, int32_t own)
{
	void *kernel;

	if (!view->is_foreign)
		return own;
	pthread_mutex_lock(&view->lock);
	kernel = ky_map_get(&view->kernel_of, (uint32_t)own);
	if (!kernel && own > 0 && refresh_locked(view, NULL) == 0)
		kernel = ky_map_get(&view->kernel_of, (uint32_t)own);
	pthread_mutex_unlock(&view->lock);
	return (int32_t)(uintptr_t)kernel;
}

int32_t ky_pid_to_own(struct ky_pid_view *view, int32_t kernel)
{
	void *own;

	if (!view->is_foreign)
		return kernel;
	pthread_mutex_lock(&view->lock);
	own = ky_map_get(&view->own_of, (uint32_t)kernel);
	pthread_mutex_unlock(&view->lock);
	return (int32_t)(uintptr_t)own;
}

/* Is /proc that of this namespace? Another's has other ids again. */
static int check_proc(struct kymo_error *err)
{
	char text[32] = "";
	ssize_t n = readlink("/proc/self", text, sizeof(text) - 1);
	int ret;

	if (n > 0 && strtol(text, NULL, 10) == getpid())
		return KYMO_OK;
	ret = ky_error_set(err, KYMO_E_UNSUPPORTED, "/proc is of another pid namespace");
	ky_error_hint(err, "mount this one's: mount -t proc proc /proc");
	return ret;
}

int ky_pid_view_open(struct ky_pid_view *view, struct kymo_error *err)
{
	struct stat st;
	int ret;

	memset(view, 0, sizeof(*view));
	if (stat("/proc/self/ns/pid", &st) < 0 || st.st_ino == KY_NS_FIRST_PID)
		return KYMO_OK;
	pthread_mutex_init(&view->lock, NULL);
	ky_map_init(&view->kernel_of);
	ky_map_init(&view->own_of);
	ret = check_proc(err);
	if (!ret)
		ret = ky_bpf_pids_load(&view->program, err);
	if (!ret)
		ret = refresh_locked(view, err);
	view->is_foreign = ret == 0;
	view->is_blind = ret < 0;
	return ret;
}

void ky_pid_view_close(struct ky_pid_view *view)
{
	if (!view->is_foreign && !view->is_blind)
		return;
	ky_bpf_pids_unload(view->program);
	ky_map_fini(&view->kernel_of);
	ky_map_fini(&view->own_of);
	pthread_mutex_destroy(&view->lock);
	memset(view, 0, sizeof(*view));
}

int32_t ky_pid_this_process(void)
{
	struct ky_pid_view view;
	int32_t id = -1;

	if (ky_pid_view_open(&view, NULL) == KYMO_OK)
		id = ky_pid_to_kernel(&view, getpid());
	ky_pid_view_close(&view);
	return id ? id : -1;
}
