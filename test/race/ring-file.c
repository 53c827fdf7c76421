/* SPDX-License-Identifier: MIT */
/*
 * ring-file write PATH: a ring file with 1000 records; ring-file check PATH: are they there?
 * The one may run on another kind of machine than the other.
 */
#include <fcntl.h>
#include <unistd.h>

#include "ring-client.h"

#define RECORDS 1000

static int fail(const char *what)
{
	fprintf(stderr, "ring-file: %s\n", what);
	return 1;
}

static int write_file(int fd)
{
	struct kymo_ring_options options = {.size_bytes = sizeof(options),
					    .subbuf_bytes = 4096,
					    .n_subbufs = 64,
					    .n_buffers = 4};
	struct kymo_ring_writer writer;

	if (kymo_ring_create(&writer, fd, &client_config, NULL, &options) < 0)
		return fail("cannot make a ring");
	for (uint64_t i = 0; i < RECORDS; i++)
		if (i % 2 ? client_write(&writer, i) : client_write_text(&writer, i, i % 200))
			return fail("cannot write");
	return 0; /* as a program that just ends */
}

static int check_file(int fd)
{
	static struct client_check check;
	struct kymo_ring_reader *reader;
	struct kymo_error err;

	if (kymo_ring_reader_open(&reader, fd, client_reader_options(KYMO_RING_READ_ONLY), &err) <
	    0)
		return fail(err.message);
	if (!client_check_all(&check, reader, KYMO_RING_PARTIAL))
		return fail(check.why);
	printf("%llu records, %s\n", (unsigned long long)check.records,
	       kymo_ring_reader_info(reader)->is_foreign ? "foreign" : "own");
	kymo_ring_reader_close(reader);
	return check.records != RECORDS;
}

int main(int argc, char **argv)
{
	bool writes = argc == 3 && strcmp(argv[1], "write") == 0;
	int fd = argc == 3 ? open(argv[2], O_RDWR | O_CREAT, 0600) : -1;

	if (fd < 0)
		return fail("usage: ring-file write|check PATH");
	return writes ? write_file(fd) : check_file(fd);
}
