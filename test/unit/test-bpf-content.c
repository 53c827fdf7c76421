/* SPDX-License-Identifier: MIT */
/*
 * The BPF programs that read what system calls' arguments point at: the kernel takes each variant of them, and those
 * for kernels without bpf_loop() write the same records as the others.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "kernel/bpf/content.h"
#include "kernel/bpf/content.skel.h"
#include "one-cpu.h"

/* Instructions that the verifier looks at, of all programs. It ends at a million of one. */
#define VERIFIED_MAX	 60000
#define OLD_VERIFIED_MAX 1000000

#define RECORDS_MAX 64

struct records {
	size_t n;
	uint32_t bytes[RECORDS_MAX];
	uint8_t *data[RECORDS_MAX];
};

static bool may_load(void)
{
	struct ky_bpf_content_options options = {.fields = true, .own_pid = (uint32_t)getpid()};
	struct ky_bpf_content content;
	struct kymo_error err;
	int ret = ky_bpf_content_load(&content, &options, &err);

	ky_bpf_content_unload(&content);
	return ret != KYMO_E_PERMISSION;
}

/* ---- loading ---------------------------------------------------------------------------- */

static uint32_t verified(const struct bpf_program *program)
{
	struct bpf_prog_info info = {0};
	uint32_t size = sizeof(info);

	assert_int_equal(bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size), 0);
	return info.verified_insns;
}

static void load(const struct ky_bpf_content_options *options)
{
	struct ky_bpf_content content;
	struct bpf_program *program;
	struct kymo_error err;
	uint32_t n = 0;
	int ret = ky_bpf_content_load(&content, options, &err);

	if (ret < 0)
		fail_msg("%s: %s", err.message, err.hint);
	bpf_object__for_each_program(program, content.skeleton->obj) if (bpf_program__fd(program) >=
									 0) n += verified(program);
	assert_in_range(n, 0, options->old_loops ? OLD_VERIFIED_MAX : VERIFIED_MAX);
	ky_bpf_content_unload(&content);
}

static void every_variant(void **state)
{
	static const uint32_t limits[] = {0, 1, 4096, KY_CONTENT_LIMIT_MAX};

	if (!may_load())
		skip();
	for (unsigned int bits = 0; bits < 1 << 4; bits++) {
		struct ky_bpf_content_options options = {
			.fields = bits & 1,
			.compat = bits & 2,
			.unknown = bits & 4,
			.ids = bits & 8,
			.own_pid = (uint32_t)getpid(),
		};

		for (size_t i = 0; i < (options.fields ? 4 : 1); i++) {
			options.limit = limits[i];
			load(&options);
		}
	}
}

static void old_loops(void **state)
{
	struct ky_bpf_content_options options = {.fields = true, .old_loops = true};

	if (!may_load())
		skip();
	for (int compat = 0; compat < 2; compat++) {
		options.compat = options.ids = compat;
		options.limit = 0;
		load(&options);
		options.limit = KY_CONTENT_LIMIT_MAX;
		load(&options);
	}
}

/* ---- what they write -------------------------------------------------------------------- */

/* Buffers are static: their addresses are in the records, and are the same in each run. */

static void describe(struct ky_bpf_content *content, long number, int place, uint8_t kind,
		     uint8_t arg, uint8_t len_arg)
{
	struct ky_content_descriptor *call = &content->calls[number];

	call->items[place].kind = kind;
	call->items[place].arg = arg;
	call->items[place].len_arg = len_arg;
}

static void write_vectors(int fd, size_t n, char *text)
{
	static struct iovec vectors[1024];

	for (size_t i = 0; i < n; i++)
		vectors[i] = (struct iovec){text + i % 50, i % 40};
	assert_true(writev(fd, vectors, (int)n) >= 0);
}

static void send_messages(int fd, size_t n, size_t n_vectors, char *text)
{
	static struct mmsghdr messages[1024];
	static struct iovec vectors[1024];

	for (size_t i = 0; i < n_vectors; i++)
		vectors[i] = (struct iovec){text + i % 50, i % 7};
	for (size_t i = 0; i < n; i++)
		messages[i] = (struct mmsghdr){
			.msg_hdr = {.msg_iov = vectors, .msg_iovlen = (i % n_vectors) + 1},
		};
	/* The socket's buffer may have no room for all of them. */
	(void)syscall(SYS_sendmmsg, fd, messages, (unsigned int)n, MSG_DONTWAIT);
}

static void execute(size_t n, char *text)
{
	static char *list[300];

	for (size_t i = 0; i < n; i++)
		list[i] = text + i % 50;
	list[n] = NULL;
	assert_int_equal(execve("/nowhere/at/all", list, list), -1);
	assert_int_equal(syscall(SYS_execve, "/nowhere/at/all", NULL, list), -1);
	/* Behind the first text, an address of nothing. */
	list[1] = (char *)8;
	assert_int_equal(execve("/nowhere/at/all", list, list), -1);
}

static void make_calls(void)
{
	static const size_t numbers[] = {1, 2, 8, 9, 100, 1024};
	static char text[101];
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC), sockets[2];

	test_on_one_cpu();
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_true(null >= 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, sockets), 0);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		write_vectors(null, numbers[i], text);
		send_messages(sockets[0], numbers[i], 3, text);
		send_messages(sockets[0], numbers[i], KY_CONTENT_MESSAGE_IOVECS_OLD, text);
	}
	execute(3, text);
	execute(KY_CONTENT_TEXTS_MAX, text);
	execute(KY_CONTENT_TEXTS_MAX + 1, text);
	execute(299, text);
	assert_true(syscall(SYS_writev, null, (void *)8, 3) < 0);
	assert_true(syscall(SYS_sendmmsg, sockets[0], (void *)8, 3, 0) < 0);
	close(null);
	close(sockets[0]);
	close(sockets[1]);
}

/* This process's records, but for what may differ; all are of one CPU. */
static void take_records(const struct ky_bpf_content *content, struct records *records)
{
	for (uint32_t cpu = 0; cpu < content->regions.n; cpu++) {
		struct ky_content_ring *ring = ky_bpf_region(&content->regions, cpu);
		const uint8_t *data = (const uint8_t *)ring + KY_CONTENT_DATA_OFFSET;

		assert_int_equal(ring->lost, 0);
		while (ring->tail < ring->head) {
			const uint8_t *at = data + (ring->tail & (content->regions.data_bytes - 1));
			struct ky_content_record *copy;
			uint32_t bytes =
				((const struct ky_content_record *)(const void *)at)->bytes;

			assert_in_range(bytes, sizeof(*copy), content->record_max);
			ring->tail += bytes;
			copy = malloc(bytes);
			assert_non_null(copy);
			memcpy(copy, at, bytes);
			copy->time_ns = 0;
			/* Of calls that take three arguments: what else there was in registers. */
			memset(&copy->args[3], 0, 3 * sizeof(copy->args[0]));
			if (copy->pid != (uint32_t)getpid()) {
				free(copy);
				continue;
			}
			assert_true(records->n < RECORDS_MAX);
			records->bytes[records->n] = bytes;
			records->data[records->n++] = (uint8_t *)copy;
		}
	}
}

static void record(bool old_loops, uint32_t limit, struct records *records)
{
	struct ky_bpf_content_options options = {
		.fields = true,
		.limit = limit,
		.old_loops = old_loops,
		.ring_bytes = 64 << 20,
	};
	struct ky_bpf_content content;
	struct kymo_error err;

	memset(records, 0, sizeof(*records));
	assert_int_equal(ky_bpf_content_load(&content, &options, &err), 0);
	describe(&content, SYS_writev, KY_CONTENT_IN_B, KY_CONTENT_IOVEC, 1, 2);
	describe(&content, SYS_sendmmsg, KY_CONTENT_IN_B, KY_CONTENT_MESSAGES, 1, 2);
	describe(&content, SYS_execve, KY_CONTENT_IN_A, KY_CONTENT_TEXT, 0, 0);
	describe(&content, SYS_execve, KY_CONTENT_IN_B, KY_CONTENT_TEXTS, 1, 0);
	describe(&content, SYS_execve, KY_CONTENT_IN_C, KY_CONTENT_ENVIRON, 2, 0);
	assert_int_equal(ky_bpf_content_attach(&content, &err), 0);
	make_calls();
	ky_bpf_content_detach(&content);
	take_records(&content, records);
	ky_bpf_content_unload(&content);
}

static void release(struct records *records)
{
	for (size_t i = 0; i < records->n; i++)
		free(records->data[i]);
}

static void old_and_new_alike(void **state)
{
	static const uint32_t limits[] = {0, 100, 4096};
	struct records new, old;

	if (!may_load())
		skip();
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		record(false, limits[i], &new);
		record(true, limits[i], &old);
		assert_true(new.n > 30);
		assert_int_equal(new.n, old.n);
		for (size_t r = 0; r < new.n; r++) {
			assert_int_equal(new.bytes[r], old.bytes[r]);
			assert_memory_equal(new.data[r], old.data[r], new.bytes[r]);
		}
		release(&new);
		release(&old);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_variant),
		cmocka_unit_test(old_loops),
		cmocka_unit_test(old_and_new_alike),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
