/* SPDX-License-Identifier: MIT */
/* A recording of user space: setting it up, telling programs, ending it. user-consumer.c reads. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/error.h"
#include "os/file.h"
#include "os/now.h"
#include "record/request/user-context.h"
#include "record/user/user-internal.h"
#include "store/directory/directory-store.h"

/* ---- setting up ----------------------------------------------------------------------- */

static int user_session_make_fds(struct ky_user *user, struct kymo_error *err)
{
	user->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (user->inotify_fd < 0 && errno == EMFILE)
		return ky_error_set(err, KYMO_E_LIMIT,
				    "the kernel gives no inotify descriptor; try to raise "
				    "/proc/sys/fs/inotify/max_user_instances or 'ulimit -n'");
	user->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	user->failed_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	user->order_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	user->answered_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	user->active_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (user->inotify_fd < 0 || user->stop_fd < 0 || user->failed_fd < 0 ||
	    user->order_fd < 0 || user->answered_fd < 0 || user->active_fd < 0)
		return ky_error_errno(err, errno, "cannot set up the event loop");
	return KYMO_OK;
}

static int user_session_check_options(const struct ky_user_options *options, struct kymo_error *err)
{
	if (options->uid >= 0 && geteuid() != 0 && options->uid != (int64_t)geteuid()) {
		ky_error_set(err, KYMO_E_PERMISSION,
			     "no permission to trace the programs of user "
			     "%lld",
			     (long long)options->uid);
		ky_error_hint(err, "run kymo with sudo");
		return KYMO_E_PERMISSION;
	}
	for (size_t i = 0; i < options->n_pids; i++)
		if (kill((pid_t)options->pids[i], 0) < 0 && errno == ESRCH)
			return ky_error_set(err, KYMO_E_NOT_FOUND, "there is no process %d",
					    options->pids[i]);
	return KYMO_OK;
}

static int add_owner(struct ky_user *user, uid_t uid, struct kymo_error *err)
{
	struct ky_user_owner *owner;
	int ret;

	if (ky_user_owner_of(user, uid))
		return KYMO_OK;
	ret = ky_user_owner_new(user, uid, &owner, err);
	return ret < 0 ? ret : ky_user_owner_add(user, owner, err);
}

/* A failure with another user's files does not prevent the recording of the rest. */
static int add_other(struct ky_user *user, uid_t uid, struct kymo_error *err)
{
	struct kymo_error local;
	int ret = add_owner(user, uid, &local);

	if (ret == KYMO_E_MEMORY && err)
		*err = local;
	if (ret < 0 && ret != KYMO_E_MEMORY)
		ky_log_warning(user->options.log, "programs of user %u are left out: %s: %s", uid,
			       local.path, local.message);
	return ret == KYMO_E_MEMORY ? ret : KYMO_OK;
}

/* For the recorder's user; root's recorder also for all other users with processes. */
static int add_owners(struct ky_user *user, struct kymo_error *err)
{
	int64_t only = user->options.uid;
	int ret = add_owner(user, only >= 0 ? (uid_t)only : geteuid(), err);

	if (geteuid() != 0 || only >= 0)
		return ret;
	if (!ret && getenv("SUDO_UID"))
		ret = add_other(user, (uid_t)strtoul(getenv("SUDO_UID"), NULL, 10), err);
	for (size_t i = 0; i < user->programs.uids.len && !ret; i++)
		ret = add_other(user, user->programs.uids.data[i], err);
	return ret;
}

/* ---- what is there already ------------------------------------------------------------ */

/* What the ring files' place is worth, where that is not as on any disk. */
static void tell_place(const struct ky_user *user)
{
	const struct ky_log *log = user->options.log;

	if (ky_user_place_copies(user->place))
		ky_log_warning(log, "%s: on this file system a full disk would end traced programs",
			       user->place);
	if (user->owners.len && ky_user_dir_is_synced(&user->owners.data[0]->dir))
		ky_log_info(log,
			    "%s: persistent memory (DAX); ring files survive a power failure%s",
			    user->place,
			    ky_user_place_keeps_caches(user->place)
				    ? ""
				    : ", except data in the caches of CPUs");
}

/* The state dump's events are no program's: they are excluded here. */
static uint32_t excluded_of_dump(const struct ky_user_options *options)
{
	uint32_t excluded = 0;

	for (unsigned int id = 0; id < KY_USER_DUMP_EVENTS; id++) {
		const char *name = ky_user_dump_event_name(id);

		for (size_t i = 0; i < options->n_exclusions; i++)
			excluded |= (uint32_t)ky_user_glob(options->exclusions[i], name) << id;
	}
	return excluded;
}

static int user_session_open_all(struct ky_user *user, struct kymo_error *err)
{
	int ret = user_session_check_options(&user->options, err);

	if (!ret && user->options.place)
		ret = ky_user_place_check(user->options.place, user->place, err);
	if (!ret)
		ret = ky_user_contexts_check(user->options.contexts, err);
	if (!ret)
		ret = user_session_make_fds(user, err);
	if (!ret)
		ret = ky_user_request_init(&user->request, &user->options, err);
	if (!ret)
		ret = ky_user_scan_first(user, err);
	if (!ret)
		ret = ky_user_request_check(&user->request, &user->programs, err);
	if (ret < 0)
		return ret;
	/* Groups come after the main recording, which tells the rest. */
	if (!user->options.group)
		ky_user_look_for_leftovers(user);
	ret = add_owners(user, err);
	if (!ret && user->place[0] && !user->options.group)
		tell_place(user);
	return ret;
}

int ky_user_open(const struct ky_user_options *options, struct ky_user **out,
		 struct kymo_error *err)
{
	struct ky_user *user = calloc(1, sizeof(*user));
	int ret;

	*out = NULL;
	if (!user)
		return ky_error_nomem(err);
	user->options = *options;
	if (!options->store &&
	    ky_directory_store_open(options->output, &user->own_store, err) < 0) {
		free(user);
		return KYMO_E_MEMORY;
	}
	if (user->own_store)
		user->options.store = user->own_store;
	user->clock = *options->clock;
	user->options.clock = &user->clock;
	user->dump_excluded = excluded_of_dump(options);
	user->follows_uids = geteuid() == 0 && (options->uid < 0 || options->n_pids);
	ky_user_clock_record(options->clock, &user->clock_record);
	user->inotify_fd = user->stop_fd = user->failed_fd = user->order_fd = -1;
	user->answered_fd = user->active_fd = user->readers_fd = -1;
	user->newcomers.events_fd = user->sentry.fired_fd = -1;
	pthread_mutex_init(&user->lock, NULL);
	pthread_mutex_init(&user->turn, NULL);
	pthread_mutex_init(&user->notes_lock, NULL);
	pthread_cond_init(&user->answered, NULL);
	user->since_ns = (uint64_t)ky_os_now_ns();
	/* Each program takes a handful of files. */
	ky_file_raise_limit();
	ret = ky_user_beat_init(user, err);
	if (!ret)
		ret = user_session_open_all(user, err);
	if (ret < 0) {
		ky_user_close(user);
		return ret;
	}
	*out = user;
	return KYMO_OK;
}

/* ---- programs that run already -------------------------------------------------------- */

static bool user_session_is_meant(const struct ky_user *user, const struct ky_program *program)
{
	const struct ky_user_options *options = &user->options;

	if (!ky_user_request_chooses(&user->request, program))
		return false;
	return !options->comm ||
	       strncmp(options->comm, program->procname, sizeof(program->procname) - 1) == 0;
}

static bool has_wanted_event(struct ky_user *user, const struct ky_program *program)
{
	struct ky_user_event event;

	for (size_t at = 0; ky_program_next_event(program, &at, &event);) {
		if (ky_user_request_wants(&user->request, &event))
			return true;
	}
	return false;
}

void ky_user_ask_program(struct ky_user *user, struct ky_program *program)
{
	const struct ky_user_owner *owner = ky_user_owner_of(user, program->uid);
	struct kymo_error err;

	if (!owner || !owner->dir.is_published || !user_session_is_meant(user, program))
		return;
	if (program->blocked) {
		ky_log_warning(user->options.log, "%s (%d) is left alone: %s", program->procname,
			       (int)program->pid, program->blocked);
		return;
	}
	if (!has_wanted_event(user, program))
		return;
	if (ky_program_join(program, user->request.cookie, owner->dir.path, ky_user_request_wants,
			    &user->request, &err) < 0)
		ky_log_warning(user->options.log, "%s (%d) is left out: %s", program->procname,
			       (int)program->pid, err.message);
}
