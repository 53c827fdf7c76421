/* SPDX-License-Identifier: MIT */
/* The recorder's side of user-space tracing, against rings and descriptions that are made here. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "abi/user-packet.h"
#include "failing-store.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/elf-file.h"
#include "record/request/user-request.h"
#include "record/rings/user-ring.h"
#include "store/directory/directory-store.h"

/* ---- filters ---- */

static void assert_codes(const char *text, const uint32_t *codes, size_t n)
{
	struct ky_user_filter filter = {0};
	struct kymo_error err;

	assert_int_equal(ky_user_filter_compile(text, &filter, &err), 0);
	assert_int_equal(filter.ops.len, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(filter.ops.data[i].code, codes[i]);
	ky_user_filter_fini(&filter);
}

static void test_filter_code(void **state)
{
	static const uint32_t compare[] = {KY_FILTER_FIELD, KY_FILTER_INTEGER, KY_FILTER_GT};
	static const uint32_t logic[] = {KY_FILTER_FIELD, KY_FILTER_AND, KY_FILTER_CONTEXT,
					 KY_FILTER_TEXT, KY_FILTER_MATCH};
	static const uint32_t in[] = {KY_FILTER_FIELD, KY_FILTER_INTEGER, KY_FILTER_EQ,
				      KY_FILTER_OR,    KY_FILTER_FIELD,	  KY_FILTER_INTEGER,
				      KY_FILTER_EQ};
	static const uint32_t others[] = {KY_FILTER_HAS, KY_FILTER_NOT};
	struct ky_user_filter filter = {0};

	(void)state;
	assert_codes("total > 1000", compare, 3);
	assert_codes("a && $ctx.procname =~ 'x*'", logic, 5);
	assert_codes("a in (1, 2)", in, 7);
	assert_codes("!has(a)", others, 2);
	assert_int_equal(ky_user_filter_compile("a in (1, 2) && b", &filter, NULL), 0);
	assert_int_equal(filter.ops.data[3].arg, 7);
	assert_int_equal(filter.ops.data[7].arg, 9);
	ky_user_filter_fini(&filter);
}

static void test_filter_mistakes(void **state)
{
	static const struct {
		const char *text;
		uint32_t column;
	} mistakes[] = {{"a >", 4}, {"$event == 'x'", 1}, {"a == 1 && $time > 2", 11}, {"", 1}};
	char deep[400] = "";
	struct kymo_error err;

	(void)state;
	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
		struct ky_user_filter filter = {0};

		assert_int_equal(ky_user_filter_compile(mistakes[i].text, &filter, &err),
				 KYMO_E_INVALID);
		assert_int_equal(err.column, mistakes[i].column);
		ky_user_filter_fini(&filter);
	}
	/* 1 + (1 + (1 + ...: more values at a time than programs have room for. */
	for (int i = 0; i < 20; i++)
		strncat(deep, "1+(", sizeof(deep) - strlen(deep) - 1);
	strncat(deep, "1", sizeof(deep) - strlen(deep) - 1);
	for (int i = 0; i < 20; i++)
		strncat(deep, ")", sizeof(deep) - strlen(deep) - 1);
	struct ky_user_filter filter = {0};

	assert_int_equal(ky_user_filter_compile(deep, &filter, &err), KYMO_E_INVALID);
	ky_user_filter_fini(&filter);
}

static void test_levels_and_globs(void **state)
{
	uint8_t min, max;

	(void)state;
	assert_int_equal(ky_user_levels_parse("INFO..", &min, &max), 0);
	assert_true(min == 0 && max == 6);
	assert_int_equal(ky_user_levels_parse("warning", &min, &max), 0);
	assert_true(min == 4 && max == 4);
	assert_int_equal(ky_user_levels_parse("DEBUG_LINE..ERR", &min, &max), 0);
	assert_true(min == 3 && max == 13);
	assert_int_equal(ky_user_levels_parse("..NOTICE", &min, &max), 0);
	assert_true(min == 5 && max == 14);
	assert_int_equal(ky_user_levels_parse("LOUD", &min, &max), KYMO_E_INVALID);
	assert_int_equal(ky_user_levels_parse("..", &min, &max), KYMO_E_INVALID);
	assert_true(ky_user_glob("shop:*", "shop:a"));
	assert_true(ky_user_glob("*p:*b*", "shop:abc"));
	assert_false(ky_user_glob("shop:?", "shop:a"));
	assert_false(ky_user_glob("shop:a", "shop:ab"));
	assert_true(ky_user_glob("a\\*b", "a*b"));
	assert_false(ky_user_glob("a\\*b", "axb"));
	assert_true(ky_user_glob("**", ""));
	assert_false(ky_user_glob("*a", "b"));
}

/* ---- descriptions of events ---- */

struct description {
	struct ky_event_record record;
	struct ky_field_record field;
	char text[32]; /* "shop", "tick", "n", "a.c" */
};

static void describe(struct description *to, uint32_t number)
{
	uint32_t text = offsetof(struct description, text);

	*to = (struct description){
		.record = {.bytes = sizeof(*to),
			   .number = number,
			   .provider = text,
			   .name = text + 5,
			   .file = text + 12,
			   .log_level = 6,
			   .n_fields = 1},
		.field = {.name = text + 10, .kind = KY_KIND_INTEGER, .element_bytes = 8},
		.text = "shop\0tick\0n\0a.c",
	};
}

static bool is_good(const struct description *description)
{
	struct ky_user_event event;
	bool good;

	(void)ky_user_event_next(description, description + 1, &event, &good);
	return good;
}

#define REFUSED(change)                      \
	do {                                 \
		struct description bad;      \
		describe(&bad, 0);           \
		assert_true(is_good(&bad));  \
		change;                      \
		assert_false(is_good(&bad)); \
	} while (0)

static void test_descriptions(void **state)
{
	(void)state;
	REFUSED(bad.record.bytes = 0);
	REFUSED(bad.record.bytes = sizeof(bad) + 8);
	REFUSED(bad.record.bytes = sizeof(bad) - 1);
	REFUSED(bad.record.provider = sizeof(bad));
	REFUSED(bad.record.name = UINT32_MAX);
	REFUSED(bad.text[0] = '/');
	REFUSED(bad.text[5] = 0);
	REFUSED(bad.record.log_level = 15);
	REFUSED(bad.record.kind = 99);
	REFUSED(bad.record.n_fields = 3);
	REFUSED(bad.record.page = KY_CONTROL_PAGES);
	REFUSED(bad.record.enable_byte = KY_ENABLE_BYTES);
	REFUSED(bad.field.kind = 0);
	REFUSED(bad.field.element_bytes = 3);
	REFUSED(bad.field.kind = KY_KIND_FLOAT; bad.field.element_bytes = 2);
	REFUSED(bad.field.kind = KY_KIND_ARRAY; bad.field.length = 65537);
	REFUSED(bad.field.kind = KY_KIND_ENUM; bad.field.n_labels = 2; bad.field.labels = 8000);
	REFUSED(memset(bad.text, 'x', sizeof(bad.text)));
}

/* Two enumerations of 20 labels, each with bytes of its own; @share: the second has those of the first. */
static bool is_good_with_labels(bool share)
{
	struct {
		struct ky_event_record record;
		struct ky_field_record fields[2];
		struct ky_label_record labels[40];
		char texts[40][8];
		char names[32];
	} *big = calloc(1, sizeof(*big));
	uint32_t names = (uint32_t)((char *)big->names - (char *)big);
	struct ky_user_event event;
	bool good;

	memcpy(big->names, "shop\0tick\0a.c\0a\0b", 18);
	big->record = (struct ky_event_record){.bytes = sizeof(*big),
					       .provider = names,
					       .name = names + 5,
					       .file = names + 10,
					       .n_fields = 2};
	for (uint32_t i = 0; i < 40; i++) {
		snprintf(big->texts[i], sizeof(big->texts[i]), "lab%03u", i);
		big->labels[i] = (struct ky_label_record){
			.first = i,
			.last = i,
			.name = (uint32_t)((char *)big->texts[i] - (char *)big)};
	}
	for (uint32_t i = 0; i < 2; i++) {
		struct ky_label_record *labels = &big->labels[share ? 0 : 20 * i];

		big->fields[i] =
			(struct ky_field_record){.name = names + 14 + 2 * i,
						 .kind = KY_KIND_ENUM,
						 .element_bytes = 4,
						 .labels = (uint32_t)((char *)labels - (char *)big),
						 .n_labels = share ? 40 : 20};
	}
	(void)ky_user_event_next(big, big + 1, &event, &good);
	free(big);
	return good;
}

/* A small record does not say the same labels over and over. */
static void test_labels_are_no_fields_in_common(void **state)
{
	(void)state;
	assert_true(is_good_with_labels(false));
	assert_false(is_good_with_labels(true));
}

/* ---- rings ---- */

static const uint8_t uuid[16] = "0123456789abcde";

static uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static uint32_t header(const void *record, const struct kymo_ring_spot *spot,
		       union kymo_ring_header *to)
{
	(void)record;
	to->word32 = (uint32_t)spot->now << 5;
	return KY_HEADER_COMPACT_BYTES;
}

static void open_packet(const void *client, const struct kymo_ring_packet *packet, void *to)
{
	ky_user_packet_open(client, packet, to);
}

static void close_packet(const void *client, const struct kymo_ring_packet *packet, void *to)
{
	(void)client;
	ky_user_packet_close(packet, to);
}

static const struct kymo_ring_config config = {KY_PACKET_PROLOG_BYTES, clock_ns, header,
					       open_packet, close_packet};

static void fill_blob(struct ky_blob *blob)
{
	struct ky_event_record *context = (struct ky_event_record *)(blob + 1);

	blob->version = KY_CONTROL_VERSION;
	blob->head_bytes = sizeof(*blob);
	memcpy(blob->trace_uuid, uuid, sizeof(uuid));
	blob->clock = (struct ky_clock_record){.kind = KY_CLOCK_RECORD_MONOTONIC,
					       .frequency_hz = 1000000000};
	blob->pid = 4711;
	blob->lost_joining = 3;
	memcpy(blob->procname, "../../x", 8);
	*context = (struct ky_event_record){.bytes = sizeof(*context), .kind = KY_EVENT_CONTEXT};
	describe((struct description *)(context + 1), 0);
	blob->bytes = sizeof(*blob) + sizeof(*context) + sizeof(struct description);
	blob->magic = KY_BLOB_MAGIC;
}

/* A ring with @n events in it. */
static void make_ring_in(int fd, struct kymo_ring_writer *writer, uint64_t n)
{
	struct kymo_ring_options options = {.size_bytes = sizeof(options),
					    .subbuf_bytes = 4096,
					    .n_subbufs = 4,
					    .client_bytes = KY_BLOB_BYTES};

	assert_true(fd >= 0);
	assert_int_equal(kymo_ring_create(writer, fd, &config, uuid, &options), 0);
	assert_int_equal(kymo_ring_populate(writer->client_region, 4096), 0);
	fill_blob(writer->client_region);
	for (uint64_t i = 0; i < n; i++)
		(void)kymo_ring_write(&config, writer, NULL, &i, sizeof(i));
}

static int make_ring(struct kymo_ring_writer *writer, uint64_t n)
{
	int fd = memfd_create("ring", MFD_CLOEXEC);

	make_ring_in(fd, writer, n);
	return fd;
}

static int remove_tree(const char *path)
{
	char command[300];

	snprintf(command, sizeof(command), "rm -r -- '%s'", path);
	return system(command); // NOLINT(cert-env33-c): a test, and its own directory
}

static void test_ring_becomes_a_trace(void **state)
{
	char out[] = "/tmp/test-user-XXXXXX", path[300];
	struct ky_user_ring_options options = {0};
	struct kymo_ring_writer writer;
	struct ky_user_ring *ring;
	struct kymo_error err;
	struct stat st;
	int fd = make_ring(&writer, 5000);

	(void)state;
	assert_non_null(mkdtemp(out));
	assert_int_equal(ky_directory_store_open(out, &options.store, NULL), 0);
	assert_int_equal(ky_user_ring_open(fd, "r", &options, &ring, &err), 0);
	assert_int_equal(ky_user_ring_read(ring, false, &err), 1);
	assert_int_equal(ky_user_ring_finish(ring, &err), 0);
	/* Written or lost: nothing else; and 3 while joining. */
	assert_int_equal(ring->events + ring->stats.lost_total, 5000);
	assert_true(ring->stats.lost[KYMO_RING_LOST_FULL] > 0);
	assert_int_equal(ky_user_ring_lost(ring), ring->stats.lost_total + 3);
	assert_null(strstr(ring->trace.name, "/"));
	snprintf(path, sizeof(path), "%s/metadata", ring->trace.path);
	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_size > 1000);
	ky_user_ring_free(ring);
	kymo_ring_unmap(&writer);
	ky_store_free(options.store);
	assert_int_equal(remove_tree(out), 0);
}

/* Each call of the store fails in turn: the error is the recording's, and what was written can be read. */
static void test_store_that_fails(void **state)
{
	uint64_t fail_at = 0;
	bool failed = true;

	(void)state;
	for (; failed; fail_at++) {
		char out[] = "/tmp/test-user-XXXXXX";
		struct ky_user_ring_options options = {0};
		struct ky_packet_store *directory;
		struct ky_os_clock clock;
		struct ky_clock_record record;
		struct kymo_ring_writer writer;
		struct ky_user_ring *ring;
		struct kymo_error err = {0};
		int fd = make_ring(&writer, 500), ret;

		assert_non_null(mkdtemp(out));
		assert_int_equal(ky_directory_store_open(out, &directory, NULL), 0);
		options.store = failing_store_new(directory, fail_at, false);
		assert_int_equal(ky_os_clock_init(&clock, KY_OS_CLOCK_MONOTONIC, NULL), 0);
		ky_user_clock_record(&clock, &record);
		ret = ky_user_ring_open(fd, "r", &options, &ring, &err);
		if (!ret)
			ret = ky_user_ring_read(ring, false, &err);
		if (ret >= 0)
			ret = ky_user_ring_finish(ring, &err);
		if (ret >= 0)
			ret = ky_user_ring_set_clock(ring, &record, &err);
		failed = ret < 0;
		if (failed) {
			assert_int_equal(ret, KYMO_E_IO);
			assert_non_null(strstr(err.message, FAILING_STORE_MESSAGE));
		}
		ky_user_ring_free(ring);
		kymo_ring_unmap(&writer);
		ky_store_free(options.store);
		if (failed)
			(void)readable_packets(out);
		else
			assert_true(readable_packets(out) > 0);
		assert_int_equal(remove_tree(out), 0);
	}
	assert_true(fail_at > 4);
}

/* By the boot id; by the clock only where one of the two is not known. */
static void test_earlier_boots(void **state)
{
	static const uint8_t unknown[16];
	struct ky_blob then = {0}, now = {0};
	uint8_t id[16];

	(void)state;
	now.start_realtime_ns = (int64_t)time(NULL) * 1000000000;
	assert_true(ky_user_blob_is_of_earlier_boot(&then, unknown));
	assert_false(ky_user_blob_is_of_earlier_boot(&now, unknown));
	if (!ky_os_boot_id(id))
		memset(id, 7, sizeof(id));
	assert_true(ky_user_blob_is_of_earlier_boot(&then, id));
	assert_false(ky_user_blob_is_of_earlier_boot(&now, id));
	memcpy(then.clock.uuid, id, sizeof(id));
	memcpy(now.clock.uuid, id, sizeof(id));
	assert_false(ky_user_blob_is_of_earlier_boot(&then, id));
	assert_false(ky_user_blob_is_of_earlier_boot(&now, id));
	assert_true(ky_user_blob_is_of_earlier_boot(&then, unknown));
	assert_false(ky_user_blob_is_of_earlier_boot(&now, unknown));
	for (size_t i = 0; i < sizeof(id); i++) {
		id[i] ^= 1;
		assert_true(ky_user_blob_is_of_earlier_boot(&then, id));
		assert_true(ky_user_blob_is_of_earlier_boot(&now, id));
		id[i] ^= 1;
	}
}

/* What is wrong with the blob is an error, before anything is written. */
static void test_hostile_blobs(void **state)
{
	static const uint64_t sizes[] = {0, 8, KY_BLOB_BYTES + 8, UINT64_MAX};
	char out[] = "/tmp/test-user-XXXXXX";
	struct ky_user_ring_options options = {0};
	struct kymo_ring_writer writer;
	struct ky_user_ring *ring;

	(void)state;
	assert_non_null(mkdtemp(out));
	assert_int_equal(ky_directory_store_open(out, &options.store, NULL), 0);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		int fd = make_ring(&writer, 1);

		((struct ky_blob *)writer.client_region)->bytes = sizes[i];
		assert_int_equal(ky_user_ring_open(fd, "r", &options, &ring, NULL), KYMO_E_FORMAT);
		kymo_ring_unmap(&writer);
	}
	ky_store_free(options.store);
	assert_int_equal(rmdir(out), 0);
}

static void test_file_that_is_cut(void **state)
{
	char out[] = "/tmp/test-user-XXXXXX";
	struct ky_user_ring_options options = {0};
	struct kymo_ring_writer writer;
	struct ky_user_ring *ring;
	struct kymo_error err;
	int fd = make_ring(&writer, 2000), same = dup(fd);

	(void)state;
	assert_non_null(mkdtemp(out));
	assert_int_equal(ky_directory_store_open(out, &options.store, NULL), 0);
	assert_int_equal(ky_user_ring_open(fd, "r", &options, &ring, &err), 0);
	kymo_ring_unmap(&writer);
	assert_int_equal(ftruncate(same, 8192), 0);
	assert_true(ky_user_ring_read(ring, false, &err) >= 0);
	assert_true(ring->is_broken);
	assert_int_equal(ky_user_ring_finish(ring, &err), 0);
	ky_user_ring_free(ring);
	close(same);
	ky_store_free(options.store);
	assert_int_equal(remove_tree(out), 0);
}

/* Whoever opens the file just when we hold the lease must not kill us. */
static void test_lease_that_is_broken(void **state)
{
	char out[] = "/tmp/test-user-XXXXXX", path[40];
	struct ky_user_ring_options options = {0};
	struct kymo_ring_writer writer;
	struct ky_user_ring *ring;
	struct kymo_error err;
	int made, fd, status;
	pid_t pid;

	(void)state;
	assert_non_null(mkdtemp(out));
	assert_int_equal(ky_directory_store_open(out, &options.store, NULL), 0);
	snprintf(path, sizeof(path), "%s/ring", out);
	made = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	make_ring_in(made, &writer, 10);
	/* The program has it mapped only; the recorder has opened it for itself. */
	close(made);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(ky_user_ring_open(fd, "r", &options, &ring, &err), 0);
	assert_false(ky_user_ring_is_left(ring));
	kymo_ring_unmap(&writer);
	assert_true(ky_user_ring_is_left(ring));
	/* In the middle of the check: an open of the file breaks the lease, and a signal reports that. */
	assert_int_equal(ky_file_lease(fd), 0);
	pid = fork();
	if (pid == 0) {
		close(fd);
		_exit(open(path, O_RDONLY | O_NONBLOCK) >= 0 || errno != EWOULDBLOCK);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	ky_file_unlease(fd);
	assert_true(ky_user_ring_is_left(ring));
	ky_user_ring_free(ring);
	ky_store_free(options.store);
	assert_int_equal(remove_tree(out), 0);
}

/* ---- ELF ---- */

static void test_elf(void **state)
{
	struct ky_elf_info info;
	int fd = open("/proc/self/exe", O_RDONLY);

	(void)state;
	assert_true(ky_elf_read(fd, &info));
	assert_true(info.memory_bytes >= 4096);
	assert_int_equal(info.build_id_bytes, 20);
	close(fd);
	fd = open("/dev/null", O_RDONLY);
	assert_false(ky_elf_read(fd, &info));
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_filter_code),
		cmocka_unit_test(test_filter_mistakes),
		cmocka_unit_test(test_levels_and_globs),
		cmocka_unit_test(test_descriptions),
		cmocka_unit_test(test_labels_are_no_fields_in_common),
		cmocka_unit_test(test_ring_becomes_a_trace),
		cmocka_unit_test(test_store_that_fails),
		cmocka_unit_test(test_earlier_boots),
		cmocka_unit_test(test_hostile_blobs),
		cmocka_unit_test(test_lease_that_is_broken),
		cmocka_unit_test(test_file_that_is_cut),
		cmocka_unit_test(test_elf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
