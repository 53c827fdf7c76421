/* SPDX-License-Identifier: MIT */
/*
 * What the homes of users say about their containers. A home may be on a network and hang, as may who knows where it is
 * (getpwuid()), and so may a process' command line, which is memory that a user maps as he likes. A thread that
 * hangs cannot be ended, so a process looks.
 */
#include "cli/containers/container-names.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "os/file.h"

#define WAIT_MS	   5000
#define MS_PER_S   1000
#define NS_PER_MS  1000000
#define PIPE_FD	   3
#define END_TRIES  20
#define END_TRY_MS 5

/* What the process says of each that it found, in one write. */
struct answer {
	uint32_t number;
	char name[KY_CONTAINER_NAME_BYTES];
};

_Static_assert(sizeof(struct answer) <= PIPE_BUF, "answers come whole");

/* ---- who looks --------------------------------------------------------------------------- */

/*
 * Nothing of the caller's stays open: if the file system never answers, this goes on, whereas who reads what the caller
 * writes waits for its end.
 */
static void let_go(int answer_fd, pid_t parent)
{
	int null;

	if (answer_fd != PIPE_FD && dup2(answer_fd, PIPE_FD) < 0)
		_exit(1);
	(void)close_range(PIPE_FD + 1, UINT_MAX, 0);
	null = open("/dev/null", O_RDWR);
	for (int fd = 0; fd < PIPE_FD; fd++)
		(void)(null < 0 ? close(fd) : dup2(null, fd));
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
}

static void look(uint32_t uid, struct ky_container *const *containers, size_t n)
{
	const struct passwd *user = getpwuid((uid_t)uid);
	struct ky_container_namer namer;
	int home;

	/* Whose home is not known has no files; the system's are not about his. */
	home = user ? open(user->pw_dir, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	if (home < 0)
		return;
	ky_container_namer_init_user(&namer, uid, home);
	for (size_t i = 0; i < n; i++) {
		struct answer answer = {.number = (uint32_t)i};

		ky_container_name(&namer, containers[i]);
		if (!containers[i]->name[0])
			continue;
		memcpy(answer.name, containers[i]->name, sizeof(answer.name));
		if (ky_write_all(PIPE_FD, &answer, sizeof(answer)) < 0)
			break;
	}
	ky_container_namer_fini(&namer);
	close(home);
}

/* ---- who waits --------------------------------------------------------------------------- */

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * MS_PER_S + now.tv_nsec / NS_PER_MS;
}

/* True: all answers came. */
static bool take_answers(int fd, struct ky_container *const *containers, size_t n, int64_t end_ms)
{
	struct answer answer;

	for (;;) {
		struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
		int64_t left_ms = end_ms - now_ms();
		ssize_t len;
		int ready = poll(&poll_fd, 1, left_ms > 0 ? (int)left_ms : 0);

		if (ready < 0 && errno == EINTR)
			continue;
		if (ready <= 0)
			return false;
		len = read(fd, &answer, sizeof(answer));
		if (len < 0 && errno == EINTR)
			continue;
		if (len != sizeof(answer))
			return len == 0;
		if (answer.number >= n)
			return false;
		memcpy(containers[answer.number]->name, answer.name, sizeof(answer.name));
		containers[answer.number]->name[sizeof(answer.name) - 1] = '\0';
	}
}

/* It may not end before its file system answers: then it is left to init. */
static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	for (int i = 0; i < END_TRIES; i++) {
		if (waitpid(pid, NULL, WNOHANG) != 0)
			return;
		(void)poll(NULL, 0, END_TRY_MS);
	}
}

bool ky_container_ask_home(uint32_t uid, struct ky_container *const *containers, size_t n,
			   int *left_ms)
{
	int64_t begin_ms = now_ms(), took_ms;
	pid_t parent = getpid(), pid;
	bool is_whole;
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return false;
	pid = fork();
	if (pid == 0) {
		let_go(fds[1], parent);
		look(uid, containers, n);
		_exit(0);
	}
	close(fds[1]);
	is_whole = pid > 0 && take_answers(fds[0], containers, n,
					   begin_ms + (*left_ms < WAIT_MS ? *left_ms : WAIT_MS));
	close(fds[0]);
	if (pid > 0)
		end(pid);
	took_ms = now_ms() - begin_ms;
	*left_ms -= took_ms < *left_ms ? (int)took_ms : *left_ms;
	return is_whole;
}
