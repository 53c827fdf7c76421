/* SPDX-License-Identifier: MIT */
/*
 * Prints the system calls that took longer than some milliseconds, by a statement of SQL.
 *
 *	cc slow-calls.c $(pkg-config --cflags --libs kymo-query) -o slow-calls
 *	./slow-calls my-trace 10
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <kymo/query.h>

static const char text[] = "SELECT time_text(time), name, comm, duration FROM syscall "
			   "WHERE duration >= :least ORDER BY duration DESC";

static int fail(const struct kymo_error *err)
{
	fprintf(stderr, "%s%s%s\n", err->path, err->path[0] ? ": " : "", err->message);
	return 1;
}

/* Texts of a row are the statement's, until the next row. */
static int print_rows(struct kymo_statement *statement)
{
	struct kymo_error err;
	int ret;

	while ((ret = kymo_statement_step(statement, &err)) > 0)
		printf("%s  %-20s %-16s %8.3f ms\n", kymo_statement_text(statement, 0, NULL),
		       kymo_statement_text(statement, 1, NULL),
		       kymo_statement_text(statement, 2, NULL),
		       (double)kymo_statement_int64(statement, 3) / 1e6);
	return ret < 0 ? fail(&err) : 0;
}

int main(int argc, char **argv)
{
	const char *paths[] = {argc > 1 ? argv[1] : NULL};
	struct kymo_statement *statement = NULL;
	struct kymo_query *query;
	struct kymo_error err;
	int ret;

	if (argc != 3) {
		fprintf(stderr, "usage: %s TRACE MILLISECONDS\n", argv[0]);
		return 2;
	}
	ret = kymo_query_open(paths, 1, &query, &err);
	if (ret < 0)
		return fail(&err);
	ret = kymo_query_prepare(query, text, &statement, &err);
	if (!ret)
		ret = kymo_statement_bind_int64(statement, "least", atoll(argv[2]) * 1000000, &err);
	ret = ret < 0 ? fail(&err) : print_rows(statement);
	kymo_statement_free(statement);
	kymo_query_close(query);
	return ret;
}
