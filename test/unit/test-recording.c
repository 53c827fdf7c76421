/* SPDX-License-Identifier: MIT */
/* Two recordings in one process and one thread: each has its own events, its own socket, its own end. */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "failing-store.h"
#include "os/event-loop.h"
#include "os/file.h"
#include "record/control/control-socket.h"
#include "record/recording/recording.h"

#define N 2

struct both;

struct one {
	struct both *both;
	struct ky_recording *recording;
	struct ky_loop_source *source;
	bool has_begun, has_ended;
	char output[64];
};

struct both {
	struct ky_loop *loop;
	struct one each[N];
	pid_t child;
};

/* In a process of its own: ask each recorder of process @pid for its status and its end. Returns how many there were. */
struct asking {
	char own[16];
	int n_asked;
};

static int ask(void *data, const struct ky_control_socket_place *place)
{
	static const char *const requests[] = {"status", "stop"};
	struct asking *asking = data;

	if (strncmp(ky_control_socket_name(place->path), asking->own, strlen(asking->own)) != 0)
		return KYMO_OK;
	for (int i = 0; i < 2; i++) {
		struct ky_control_socket_message request = {.len = 0}, answer;

		ky_control_socket_add(&request, requests[i]);
		if (ky_control_socket_ask(place, &request, 60, &answer, NULL) < 0)
			_exit(100);
	}
	asking->n_asked++;
	return KYMO_OK;
}

static int fork_asking(struct both *both)
{
	struct asking asking = {.n_asked = 0};

	snprintf(asking.own, sizeof(asking.own), "%d", (int)getpid());
	both->child = fork();
	if (both->child == 0) {
		(void)ky_control_socket_each(ask, &asking);
		_exit(asking.n_asked);
	}
	return both->child > 0 ? KYMO_OK : KYMO_E_IO;
}

static int take(void *data, struct kymo_error *err)
{
	struct one *one = data;
	struct both *both = one->both;
	unsigned int found;
	int ret = ky_recording_step(one->recording, &found, err);

	if (ret < 0)
		return ret;
	if (found & KY_RECORDING_HAS_BEGUN) {
		assert_false(one->has_begun);
		one->has_begun = true;
		if (both->each[0].has_begun && both->each[1].has_begun)
			return fork_asking(both);
	}
	if (!(found & KY_RECORDING_ENDS))
		return KYMO_OK;
	/* The other one goes on. */
	one->has_ended = true;
	ky_loop_remove(one->source);
	assert_int_equal(ky_recording_stop(one->recording, err), 0);
	return both->each[0].has_ended && both->each[1].has_ended ? KY_LOOP_END : KYMO_OK;
}

static void open_one(struct both *both, int i)
{
	static const char *const events[N] = {"sched_switch", "sched_waking"};
	static const char *const programs[N] = {"test_recording:one", "test_recording:two"};
	struct ky_recording_options options = {
		.has_kernel = true,
		.has_user = true,
		.kernel = {.events = &events[i],
			   .n_events = 1,
			   .buffer_bytes = 1 << 20,
			   .threads.uid = -1,
			   .overwrite = i == 1},
		.user = {.patterns = &programs[i],
			 .n_patterns = 1,
			 .buffer_bytes = 1 << 16,
			 .level_max = 14,
			 .uid = -1,
			 .overwrite = i == 1,
			 .keep_bytes = 1 << 20},
		.output = both->each[i].output,
	};
	struct one *one = &both->each[i];
	struct kymo_error err = {0};

	one->both = both;
	snprintf(one->output, sizeof(one->output), "/tmp/test-recording-%d-%d", (int)getpid(), i);
	if (ky_recording_open(&options, &one->recording, &err) < 0)
		fail_msg("%s", err.message);
	assert_int_equal(ky_recording_start(one->recording, NULL), 0);
	assert_int_equal(ky_loop_add(both->loop, ky_recording_fd(one->recording), take, one,
				     &one->source, NULL),
			 0);
}

/* Only the events that this recording was to have are described in its trace. */
static void check_metadata(const char *output, const char *has, const char *has_not)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	char path[128];

	snprintf(path, sizeof(path), "%s/kernel/metadata", output);
	assert_int_equal(ky_read_file(AT_FDCWD, path, 1 << 24, &text), 0);
	assert_non_null(memmem(text.data, text.len, has, strlen(has)));
	assert_null(memmem(text.data, text.len, has_not, strlen(has_not)));
	ky_strbuf_fini(&text);
}

static void check_one(struct one *one, const char *has, const char *has_not)
{
	struct ky_recording_stats stats;

	ky_recording_stats(one->recording, &stats);
	assert_non_null(stats.user);
	assert_true(stats.kernel->events > 0);
	assert_int_equal(stats.kernel->lost, 0);
	assert_true(stats.duration_ns > 0);
	assert_int_equal(ky_recording_close(one->recording, NULL), 0);
	assert_true(readable_packets(one->output) > 0);
	check_metadata(one->output, has, has_not);
	ky_tree_remove(one->output);
}

static void two_recordings(void **state)
{
	struct both both = {.child = 0};
	int status;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(ky_loop_new(&both.loop, NULL), 0);
	for (int i = 0; i < N; i++)
		open_one(&both, i);
	assert_int_equal(ky_loop_run(both.loop, NULL), 0);
	assert_int_equal(waitpid(both.child, &status, 0), both.child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), N);
	check_one(&both.each[0], "sched_switch", "sched_waking");
	check_one(&both.each[1], "sched_waking", "sched_switch");
	ky_loop_free(both.loop);
}

/* One that cannot be opened leaves nothing behind. */
static void failing(void **state)
{
	static const char *const events[] = {"no_such_event"};
	struct ky_recording_options options = {
		.has_kernel = true,
		.kernel = {.events = events,
			   .n_events = 1,
			   .buffer_bytes = 1 << 20,
			   .threads.uid = -1},
		.output = "/tmp/test-recording-failing",
	};
	struct ky_recording *recording;
	struct kymo_error err;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(ky_recording_open(&options, &recording, &err), KYMO_E_NOT_FOUND);
	assert_null(recording);
	assert_int_equal(access(options.output, F_OK), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_recordings),
		cmocka_unit_test(failing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
