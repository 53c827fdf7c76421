/* SPDX-License-Identifier: MIT */
/* A real state dump of this machine, decoded again: it must know this very process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/vec.h"
#include "ctf/decode/decode.h"
#include "ctf/resolve/lttng-layout.h"
#include "kernel/statedump/statedump.h"
#include "kernel/statedump/statedump-run.h"

#define FIRST_ID     100
#define PACKET_BYTES 16384

static struct ky_trace_class *trace;
static struct ky_packet_writer writer;
static struct ky_os_clock os_clock;
static KY_VEC(uint8_t) bytes;

static int flush(void *data, uint64_t end_cycles, struct kymo_error *err)
{
	uint32_t size = ky_packet_writer_close(&writer, end_cycles, 0, 8);
	int *stop_after = data;

	if (stop_after && !--*stop_after)
		return KYMO_E_INTERRUPTED;
	if (ky_vec_reserve(&bytes, size) < 0)
		return KYMO_E_MEMORY;
	memcpy(bytes.data + bytes.len, writer.data, size);
	bytes.len += size;
	return KYMO_OK;
}

static void make_model(void)
{
	struct ky_stream_class *stream;
	struct ky_clock_class *clock;
	struct kymo_error err;

	trace = ky_trace_class_new();
	trace->has_uuid = true;
	clock = ky_clock_class_new(trace, os_clock.name);
	clock->frequency_hz = os_clock.frequency_hz;
	clock->offset_s = os_clock.offset_s;
	clock->offset_cycles = os_clock.offset_cycles;
	assert_int_equal(ky_lttng_layout_trace(trace), 0);
	stream = ky_lttng_layout_stream(trace, 0, clock, false);
	stream->event_context = ky_struct_new(trace);
	assert_non_null(ky_struct_add_int(trace, stream->event_context, "_tid", 32, true, 10));
	assert_int_equal(ky_statedump_define(stream, FIRST_ID, &err), 0);
	if (ky_trace_class_finish(trace, true, &err) < 0)
		fail_msg("%s", err.message);
}

static int setup(void **state)
{
	static const uint8_t uuid[16];

	if (ky_os_clock_init(&os_clock, KY_OS_CLOCK_AUTO, NULL) < 0)
		return -1;
	make_model();
	return ky_packet_writer_init(&writer, PACKET_BYTES, uuid, 0, 9, 0, false);
}

static int teardown(void **state)
{
	ky_packet_writer_fini(&writer);
	ky_trace_class_free(trace);
	ky_vec_fini(&bytes);
	memset(&bytes, 0, sizeof(bytes));
	return 0;
}

static void run_for(struct ky_statedump *dump, uint32_t wanted, const int32_t *tids, size_t n_tids)
{
	int32_t tid = gettid();
	struct kymo_error err;

	*dump = (struct ky_statedump){.writer = &writer,
				      .wanted = wanted,
				      .tids = tids,
				      .n_tids = n_tids,
				      .first_id = FIRST_ID,
				      .clock = &os_clock,
				      .context = &tid,
				      .context_bytes = sizeof(tid),
				      .flush = flush};
	if (ky_statedump_run(dump, &err) < 0)
		fail_msg("%s: %s", err.path, err.message);
}

static void run(struct ky_statedump *dump)
{
	run_for(dump, KY_STATEDUMP_ALL, NULL, 0);
}

/* Call @each for all events of all packets; returns their number. */
static uint64_t each_event(void (*each)(const struct ky_event *event, void *data), void *data)
{
	struct ky_decoder *decoder = ky_decoder_new(trace);
	const struct ky_packet *packet;
	struct ky_event events[16];
	struct kymo_error err;
	uint64_t total = 0, sequence = 0;
	int n;

	for (size_t at = 0; at < bytes.len; at += packet->packet_bits / 8) {
		assert_int_equal(ky_decoder_packet(decoder, bytes.data + at, bytes.len - at, at,
						   &packet, &err),
				 0);
		assert_int_equal(packet->sequence, sequence++);
		while ((n = ky_decoder_next(decoder, events, 16, &err)) > 0)
			for (int i = 0; i < n; i++, total++)
				each(&events[i], data);
		assert_int_equal(n, 0);
	}
	ky_decoder_free(decoder);
	return total;
}

static int64_t number(const struct ky_event *event, const char *name)
{
	struct ky_handle handle;

	assert_true(ky_handle_find(&handle, event->cls, KY_SCOPE_PAYLOAD, name));
	return ky_get_i64(event, &handle, INT64_MIN);
}

static bool text_is(const struct ky_event *event, const char *name, const char *want)
{
	struct ky_handle handle;
	size_t len;
	const char *text;

	assert_true(ky_handle_find(&handle, event->cls, KY_SCOPE_PAYLOAD, name));
	text = ky_get_text(event, &handle, &len);
	return text && len == strlen(want) && !memcmp(text, want, len);
}

static bool is(const struct ky_event *event, const char *name)
{
	return !strcmp(event->cls->name, name);
}

struct seen {
	uint64_t last_cycles;
	unsigned int starts, ends, selves, inits, pid_ns, files, loopbacks, cpus, blocks;
	int64_t file_table;
	int fd;
};

static void see_process(const struct ky_event *event, struct seen *seen)
{
	if (number(event, "tid") == 1) {
		seen->inits++;
		assert_int_equal(number(event, "ppid"), 0);
	}
	if (number(event, "tid") != gettid())
		return;
	seen->selves++;
	assert_int_equal(number(event, "pid"), getpid());
	assert_int_equal(number(event, "ppid"), getppid());
	assert_int_equal(number(event, "type"), 0);
	assert_int_equal(number(event, "status"), 6);
	assert_true(text_is(event, "name", "dump me"));
	seen->file_table = number(event, "file_table_address");
}

static void see(const struct ky_event *event, void *data)
{
	struct seen *seen = data;
	struct ky_handle tid;

	assert_true(event->cycles >= seen->last_cycles);
	seen->last_cycles = event->cycles;
	assert_true(ky_handle_find(&tid, event->cls, KY_SCOPE_STREAM_CONTEXT, "tid"));
	assert_int_equal(ky_get_i64(event, &tid, 0), gettid());
	seen->starts += is(event, "lttng_statedump_start");
	seen->ends += is(event, "lttng_statedump_end");
	seen->cpus += is(event, "lttng_statedump_cpu_topology");
	seen->blocks += is(event, "lttng_statedump_block_device");
	if (is(event, "lttng_statedump_process_state"))
		see_process(event, seen);
	if (is(event, "lttng_statedump_process_pid_ns") && number(event, "tid") == gettid()) {
		seen->pid_ns++;
		assert_int_not_equal(number(event, "ns_inum"), 0);
	}
	if (is(event, "lttng_statedump_file_descriptor") && number(event, "fd") == seen->fd &&
	    number(event, "pid") == getpid()) {
		seen->files++;
		assert_true(text_is(event, "filename", "/etc/passwd"));
		assert_int_equal(number(event, "flags") & O_CLOEXEC, O_CLOEXEC);
		assert_int_equal(number(event, "fmode"), 1);
		assert_int_equal(number(event, "file_table_address"), seen->file_table);
	}
	if (is(event, "lttng_statedump_network_interface") && text_is(event, "name", "lo"))
		seen->loopbacks += number(event, "address_ipv4") == 0x7f000001;
}

static void this_machine(void **state)
{
	struct seen seen = {.fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC)};
	struct ky_statedump dump;

	prctl(PR_SET_NAME, "dump me");
	run(&dump);
	assert_int_equal(each_event(see, &seen), dump.events);
	assert_int_equal(seen.starts, 1);
	assert_int_equal(seen.ends, 1);
	assert_int_equal(seen.selves, 1);
	assert_int_equal(seen.inits, 1);
	assert_int_equal(seen.pid_ns, 1);
	assert_int_equal(seen.files, 1);
	assert_true(seen.loopbacks <= 1);
	assert_int_equal(seen.cpus, sysconf(_SC_NPROCESSORS_ONLN));
	assert_true(dump.threads >= dump.processes && dump.files > 0);
	assert_true(bytes.len > PACKET_BYTES);
	close(seen.fd);
}

/* ---- a thread with a file table of its own ---------------------------------------------- */

struct loner {
	pthread_barrier_t ready, done;
	int32_t tid;
	int fd;
};

static void *loner_thread(void *data)
{
	struct loner *loner = data;

	loner->tid = gettid();
	loner->fd = unshare(CLONE_FILES) == 0 ? open("/etc/hostname", O_RDONLY) : -1;
	pthread_barrier_wait(&loner->ready);
	pthread_barrier_wait(&loner->done);
	return NULL;
}

struct tables {
	int32_t loner_tid;
	int loner_fd;
	int64_t mine, loners;
	unsigned int found;
};

static void see_tables(const struct ky_event *event, void *data)
{
	struct tables *tables = data;

	if (is(event, "lttng_statedump_process_state")) {
		if (number(event, "tid") == gettid())
			tables->mine = number(event, "file_table_address");
		if (number(event, "tid") == tables->loner_tid)
			tables->loners = number(event, "file_table_address");
	}
	if (is(event, "lttng_statedump_file_descriptor") &&
	    number(event, "file_table_address") == tables->loners &&
	    number(event, "fd") == tables->loner_fd)
		tables->found += text_is(event, "filename", "/etc/hostname");
}

static void unshared_files(void **state)
{
	struct ky_statedump dump;
	struct tables tables = {0};
	struct loner loner;
	pthread_t thread;

	if (syscall(SYS_kcmp, getpid(), getpid(), 2, 0UL, 0UL) < 0) {
		print_message("the kernel has no kcmp()\n");
		skip();
	}
	pthread_barrier_init(&loner.ready, NULL, 2);
	pthread_barrier_init(&loner.done, NULL, 2);
	assert_int_equal(pthread_create(&thread, NULL, loner_thread, &loner), 0);
	pthread_barrier_wait(&loner.ready);
	run(&dump);
	pthread_barrier_wait(&loner.done);
	pthread_join(thread, NULL);
	assert_true(loner.fd >= 0);
	tables.loner_tid = loner.tid;
	tables.loner_fd = loner.fd;
	each_event(see_tables, &tables);
	assert_int_not_equal(tables.mine, 0);
	assert_int_not_equal(tables.loners, tables.mine);
	assert_int_equal(tables.found, 1);
}

/* ---- processes that come and go --------------------------------------------------------- */

static void ignore(const struct ky_event *event, void *data)
{
}

static void vanishing(void **state)
{
	pid_t child = fork();

	if (!child)
		for (;;) {
			pid_t inner = fork();

			if (!inner)
				_exit(0);
			waitpid(inner, NULL, 0);
		}
	for (int i = 0; i < 5; i++) {
		struct ky_statedump dump;

		bytes.len = 0;
		writer.sequence = UINT64_MAX;
		run(&dump);
		assert_int_equal(each_event(ignore, NULL), dump.events);
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static void stopped(void **state)
{
	int after = 2;
	struct ky_statedump dump = {.writer = &writer,
				    .wanted = KY_STATEDUMP_ALL,
				    .first_id = FIRST_ID,
				    .clock = &os_clock,
				    .flush = flush,
				    .data = &after};

	assert_int_equal(ky_statedump_run(&dump, NULL), KYMO_E_INTERRUPTED);
}

/* ---- only what is wanted ---------------------------------------------------------------- */

#define BIT(event) KY_STATEDUMP_BIT(KY_STATEDUMP_##event)

struct kinds {
	uint64_t by_kind[KY_STATEDUMP_EVENTS], others;
	int64_t pid;
};

static void see_kinds(const struct ky_event *event, void *data)
{
	struct kinds *kinds = data;
	bool is_state = is(event, "lttng_statedump_process_state");

	kinds->by_kind[event->cls->id - FIRST_ID]++;
	kinds->others += is_state && number(event, "pid") != kinds->pid;
}

static void chosen(void **state)
{
	/* A thread of this process, itself, and one that there cannot be. */
	int32_t tids[] = {gettid(), getpid(), INT32_MAX};
	struct kinds kinds = {.pid = getpid()};
	struct ky_statedump dump;

	run_for(&dump, KY_STATEDUMP_FRAME | BIT(PROCESS_STATE) | BIT(FILE_DESCRIPTOR), tids, 3);
	assert_int_equal(each_event(see_kinds, &kinds), dump.events);
	assert_int_equal(dump.processes, 1);
	assert_int_equal(kinds.others, 0);
	assert_int_equal(kinds.by_kind[KY_STATEDUMP_PROCESS_STATE], dump.threads);
	assert_int_equal(kinds.by_kind[KY_STATEDUMP_FILE_DESCRIPTOR], dump.files);
	assert_true(dump.threads >= 1 && dump.files >= 1);
	assert_int_equal(dump.events, 2 + dump.threads + dump.files);
}

/* Nobody is not everybody. */
static void nobody(void **state)
{
	struct ky_statedump dump;
	int32_t none = 0;

	run_for(&dump, KY_STATEDUMP_ALL & ~BIT(FILE_DESCRIPTOR), &none, 0);
	assert_int_equal(dump.processes, 0);
	assert_true(dump.events > 2);
}

static void each_alone(void **state)
{
	for (uint32_t i = 0; i < KY_STATEDUMP_EVENTS; i++) {
		struct kinds kinds = {.pid = -1};
		struct ky_statedump dump;

		bytes.len = 0;
		writer.sequence = UINT64_MAX;
		run_for(&dump, KY_STATEDUMP_BIT(i), &(int32_t){getpid()}, 1);
		assert_int_equal(each_event(see_kinds, &kinds), dump.events);
		assert_int_equal(kinds.by_kind[i], dump.events);
	}
}

static uint64_t see_times;

static void see_time(const struct ky_event *event, void *data)
{
	see_times += event->cycles == *(uint64_t *)data;
}

/* A snapshot's state dump has the time of its events. */
static void one_moment(void **state)
{
	uint64_t at = ky_os_clock_now(&os_clock);
	struct ky_statedump dump = {.writer = &writer,
				    .wanted = KY_STATEDUMP_ALL,
				    .at_cycles = at,
				    .first_id = FIRST_ID,
				    .context = &(int32_t){0},
				    .context_bytes = 4,
				    .clock = &os_clock,
				    .flush = flush};
	struct kymo_error err;

	see_times = 0;
	assert_int_equal(ky_statedump_run(&dump, &err), 0);
	assert_int_equal(each_event(see_time, &at), dump.events);
	assert_int_equal(see_times, dump.events);
}

static uint32_t needs(const char *system, const char *field_type, const char *field)
{
	struct ky_format_field fields[] = {
		{.name = "flags", .type = "int", .kind = KY_FORMAT_INT},
		{.name = field,
		 .type = field_type,
		 .kind = strchr(field_type, '*') ? KY_FORMAT_POINTER : KY_FORMAT_INT},
	};

	return ky_statedump_needs(system, &(struct ky_format){.fields = fields, .n_fields = 2}) &
	       ~KY_STATEDUMP_ALWAYS;
}

/* Of each event what says what it means. */
static void needed(void **state)
{
	assert_int_equal(needs("syscalls", "unsigned int", "fd"), BIT(FILE_DESCRIPTOR));
	assert_int_equal(needs("syscalls", "int", "dfd"), BIT(FILE_DESCRIPTOR));
	assert_int_equal(needs("syscalls", "unsigned int", "fildes"), BIT(FILE_DESCRIPTOR));
	assert_int_equal(needs("compat_syscalls", "int", "epfd"), BIT(FILE_DESCRIPTOR));
	assert_int_equal(needs("syscalls", "u32 *", "uaddr"), 0);
	assert_int_equal(needs("syscalls", "const char *", "filename"), 0);
	assert_int_equal(needs("sched", "int", "fd"), BIT(CPU_TOPOLOGY));
	assert_int_equal(needs("block", "sector_t", "sector"), BIT(BLOCK_DEVICE));
	assert_int_equal(needs("ext4", "dev_t", "dev"), BIT(BLOCK_DEVICE));
	assert_int_equal(needs("ext4", "ino_t", "ino"), 0);
	assert_int_equal(needs("net", "unsigned int", "len"), BIT(NETWORK_INTERFACE));
	assert_int_equal(needs("netlink", "unsigned int", "len"), 0);
	assert_int_equal(needs("xdp", "int", "ifindex"), BIT(NETWORK_INTERFACE));
	assert_int_equal(needs("irq", "int", "x"), BIT(INTERRUPT));
	assert_int_equal(needs("my_driver", "int", "irq"), BIT(INTERRUPT));
	assert_int_equal(needs("kmem", "const void *", "call_site"),
			 BIT(MEMORY) | BIT(PROCESS_MEMORY) | BIT(MODULE));
	assert_int_equal(needs("workqueue", "void *", "function"), BIT(MODULE));
	assert_int_equal(needs("", "int", "x"), 0);
}

static void patterns(void **state)
{
	assert_int_equal(ky_statedump_match("lttng_statedump_file_descriptor"),
			 BIT(FILE_DESCRIPTOR));
	assert_int_equal(ky_statedump_match("lttng_statedump_*"),
			 KY_STATEDUMP_ALL | BIT(PROCESS_MAP));
	assert_int_equal(ky_statedump_match("*_map"), BIT(PROCESS_MAP));
	assert_int_equal(ky_statedump_match("sched_switch"), 0);
}

static void lines(void **state)
{
	struct ky_dump_map map;
	uint64_t size, address;
	char name[64];

	(void)state;
	assert_true(ky_dump_parse_map("7f00-7f0000001000 r-xs 00002000 fe:12 77    /a b (deleted)",
				      &map));
	assert_int_equal(map.begin, 0x7f00);
	assert_int_equal(map.end, 0x7f0000001000);
	assert_int_equal(map.protection, 1 | 4 | 8);
	assert_int_equal(map.offset, 0x2000);
	assert_int_equal(map.major, 0xfe);
	assert_int_equal(map.minor, 0x12);
	assert_int_equal(map.inode, 77);
	assert_string_equal(map.path, "/a b (deleted)");
	assert_true(ky_dump_parse_map("0-1 ---p 0 0:0 0", &map));
	assert_int_equal(map.protection, 0);
	assert_string_equal(map.path, "");
	assert_false(ky_dump_parse_map("0-1 rw 0 0:0 0", &map));
	assert_false(ky_dump_parse_map("", &map));
	assert_false(ky_dump_parse_map("garbage", &map));

	assert_true(ky_dump_parse_module("ext4 983040 1 mbcache,jbd2, Live 0xffffffffc0a00000",
					 name, &size, &address));
	assert_string_equal(name, "ext4");
	assert_int_equal(size, 983040);
	assert_int_equal(address, 0xffffffffc0a00000);
	assert_false(ky_dump_parse_module("../x 1 1 - Live 0x1", name, &size, &address));
	assert_false(ky_dump_parse_module("x 1", name, &size, &address));
}

static void notes(void **state)
{
	/* Another note first, then GNU's build id. */
	static const uint32_t words[] = {5, 2, 1, 0x61626364, 0x65,	 0x1122,
					 4, 3, 3, 0x00554e47, 0x00c0ffee};
	char id[2 * KY_ELF_BUILD_ID_MAX + 1];
	uint8_t *exact;

	(void)state;
	for (size_t len = 0; len <= sizeof(words); len++) {
		exact = malloc(len ? len : 1);
		memcpy(exact, words, len);
		ky_dump_note_build_id(exact, len, id);
		assert_string_equal(id, len >= sizeof(words) - 1 ? "eeffc0" : "");
		free(exact);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(this_machine, setup, teardown),
		cmocka_unit_test_setup_teardown(unshared_files, setup, teardown),
		cmocka_unit_test_setup_teardown(vanishing, setup, teardown),
		cmocka_unit_test_setup_teardown(stopped, setup, teardown),
		cmocka_unit_test_setup_teardown(chosen, setup, teardown),
		cmocka_unit_test_setup_teardown(nobody, setup, teardown),
		cmocka_unit_test_setup_teardown(each_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(one_moment, setup, teardown),
		cmocka_unit_test(needed),
		cmocka_unit_test(patterns),
		cmocka_unit_test(lines),
		cmocka_unit_test(notes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
