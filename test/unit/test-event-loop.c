/* SPDX-License-Identifier: MIT */
/* Event loop: descriptors, timers, signals, children; sources that calls add and remove. */
#include "unit.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/event-loop.h"
#include "os/now.h"

struct seen {
	struct ky_loop *loop;
	struct ky_loop_source *source, *other;
	int fd;
	pid_t child;
	char order[32]; /* a letter for each call */
};

static void note(struct seen *seen, char what)
{
	seen->order[strlen(seen->order)] = what;
}

static int end(void *data, struct kymo_error *err)
{
	(void)err;
	note(data, 'e');
	return KY_LOOP_END;
}

static int take_byte(void *data, struct kymo_error *err)
{
	struct seen *seen = data;
	char byte;

	(void)err;
	assert_int_equal(read(seen->fd, &byte, 1), 1);
	note(seen, byte);
	return byte == 'z' ? KY_LOOP_END : KYMO_OK;
}

static void descriptor(void **state)
{
	struct seen seen = {.order = ""};
	int pipe_fds[2];

	(void)state;
	assert_int_equal(pipe(pipe_fds), 0);
	seen.fd = pipe_fds[0];
	assert_int_equal(ky_loop_new(&seen.loop, NULL), 0);
	assert_int_equal(ky_loop_add(seen.loop, seen.fd, take_byte, &seen, NULL, NULL), 0);
	assert_int_equal(write(pipe_fds[1], "abz", 3), 3);
	assert_int_equal(ky_loop_run(seen.loop, NULL), 0);
	assert_string_equal(seen.order, "abz");
	ky_loop_free(seen.loop);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}

/* Set again before it is due, a timer calls once. */
static int set_again(void *data, struct kymo_error *err)
{
	struct seen *seen = data;

	(void)err;
	note(seen, 't');
	ky_loop_set_timer(seen->other, 1);
	return KYMO_OK;
}

static void timer(void **state)
{
	struct seen seen = {.order = ""};

	(void)state;
	assert_int_equal(ky_loop_new(&seen.loop, NULL), 0);
	assert_int_equal(ky_loop_add_timer(seen.loop, set_again, &seen, &seen.source, NULL), 0);
	assert_int_equal(ky_loop_add_timer(seen.loop, end, &seen, &seen.other, NULL), 0);
	ky_loop_set_timer(seen.other, 3600 * UINT64_C(1000000000));
	ky_loop_set_timer(seen.source, UINT64_C(1000000000) * 3600);
	ky_loop_set_timer(seen.source, 1000);
	assert_int_equal(ky_loop_run(seen.loop, NULL), 0);
	assert_string_equal(seen.order, "te");
	ky_loop_free(seen.loop);
}

#define MS UINT64_C(1000000)

/* The first expiry puts the other timer off, the second brings it forward. */
static int set_others(void *data, struct kymo_error *err)
{
	struct seen *seen = data;

	(void)err;
	note(seen, 't');
	ky_loop_set_timer(seen->other, seen->order[1] ? 2 * MS : 3600000 * MS);
	if (!seen->order[1])
		ky_loop_set_timer(seen->source, 30 * MS);
	return KYMO_OK;
}

/* The loop sleeps until each expiry, again and again. A timer that was put off does not expire at its first time. */
static void timers_wait(void **state)
{
	struct seen seen = {.order = ""};
	int64_t begin_ms;

	(void)state;
	assert_int_equal(ky_loop_new(&seen.loop, NULL), 0);
	assert_int_equal(ky_loop_add_timer(seen.loop, set_others, &seen, &seen.source, NULL), 0);
	assert_int_equal(ky_loop_add_timer(seen.loop, end, &seen, &seen.other, NULL), 0);
	begin_ms = ky_os_now_ms();
	ky_loop_set_timer(seen.source, 5 * MS);
	ky_loop_set_timer(seen.other, 25 * MS);
	assert_int_equal(ky_loop_run(seen.loop, NULL), 0);
	assert_string_equal(seen.order, "tte");
	assert_true(ky_os_now_ms() - begin_ms >= 36);
	ky_loop_free(seen.loop);
}

static int take_signal(void *data, const struct signalfd_siginfo *info, struct kymo_error *err)
{
	(void)err;
	note(data, info->ssi_signo == SIGUSR1 ? '1' : '2');
	return info->ssi_signo == SIGUSR2 ? KY_LOOP_END : KYMO_OK;
}

static void signals(void **state)
{
	struct seen seen = {.order = ""};
	sigset_t set, old;

	(void)state;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, &old);
	assert_int_equal(ky_loop_new(&seen.loop, NULL), 0);
	assert_int_equal(ky_loop_add_signals(seen.loop, &set, take_signal, &seen, NULL, NULL), 0);
	assert_int_equal(kill(getpid(), SIGUSR1), 0);
	assert_int_equal(kill(getpid(), SIGUSR2), 0);
	assert_int_equal(ky_loop_run(seen.loop, NULL), 0);
	assert_string_equal(seen.order, "12");
	ky_loop_free(seen.loop);
	sigprocmask(SIG_SETMASK, &old, NULL);
}

static int take_child(void *data, struct kymo_error *err)
{
	struct seen *seen = data;
	int status;

	(void)err;
	note(seen, 'c');
	assert_int_equal(waitpid(seen->child, &status, WNOHANG), seen->child);
	assert_int_equal(WEXITSTATUS(status), 7);
	/* A call that comes again would come before the timer's. */
	ky_loop_set_timer(seen->source, 1000000);
	return KYMO_OK;
}

static void child(void **state)
{
	struct seen seen = {.order = ""};

	(void)state;
	seen.child = fork();
	if (seen.child == 0)
		_exit(7);
	assert_int_equal(ky_loop_new(&seen.loop, NULL), 0);
	assert_int_equal(ky_loop_add_timer(seen.loop, end, &seen, &seen.source, NULL), 0);
	assert_int_equal(ky_loop_add_child(seen.loop, seen.child, take_child, &seen, NULL, NULL),
			 0);
	assert_int_equal(ky_loop_run(seen.loop, NULL), 0);
	assert_string_equal(seen.order, "ce");
	ky_loop_free(seen.loop);
}

/* Whichever of the two is called first removes both, and has the loop end. */
static int remove_both(void *data, struct kymo_error *err)
{
	struct seen *seen = data;

	note(seen, 'r');
	ky_loop_remove(seen->source);
	ky_loop_remove(seen->other);
	assert_int_equal(ky_loop_add_timer(seen->loop, end, seen, &seen->source, err), 0);
	ky_loop_set_timer(seen->source, 1);
	return KYMO_OK;
}

static void removal(void **state)
{
	struct seen seen = {.order = ""};
	int pipe_fds[2], others[2];

	(void)state;
	assert_int_equal(pipe(pipe_fds), 0);
	assert_int_equal(pipe(others), 0);
	assert_int_equal(ky_loop_new(&seen.loop, NULL), 0);
	assert_int_equal(
		ky_loop_add(seen.loop, pipe_fds[0], remove_both, &seen, &seen.source, NULL), 0);
	assert_int_equal(ky_loop_add(seen.loop, others[0], remove_both, &seen, &seen.other, NULL),
			 0);
	assert_int_equal(write(pipe_fds[1], "a", 1), 1);
	assert_int_equal(write(others[1], "a", 1), 1);
	assert_int_equal(ky_loop_run(seen.loop, NULL), 0);
	assert_string_equal(seen.order, "re");
	ky_loop_free(seen.loop);
	for (int i = 0; i < 2; i++) {
		close(pipe_fds[i]);
		close(others[i]);
	}
}

static int refuse(void *data, struct kymo_error *err)
{
	(void)data;
	(void)err;
	return KYMO_E_IO;
}

static void error(void **state)
{
	struct ky_loop *loop;
	struct ky_loop_source *timer;
	struct kymo_error err;

	(void)state;
	assert_int_equal(ky_loop_new(&loop, &err), 0);
	assert_int_equal(ky_loop_add_timer(loop, refuse, NULL, &timer, &err), 0);
	ky_loop_set_timer(timer, 1);
	assert_int_equal(ky_loop_run(loop, &err), KYMO_E_IO);
	assert_int_equal(ky_loop_add(loop, 99999, refuse, NULL, NULL, &err), KYMO_E_IO);
	ky_loop_remove(NULL);
	ky_loop_free(loop);
	ky_loop_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(descriptor),  cmocka_unit_test(timer),
		cmocka_unit_test(timers_wait), cmocka_unit_test(signals),
		cmocka_unit_test(child),       cmocka_unit_test(removal),
		cmocka_unit_test(error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
