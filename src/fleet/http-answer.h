/* SPDX-License-Identifier: MIT */
/*
 * An answer of an HTTP server, which comes in pieces of any size: by its length, in chunks, or up to the end of the connection. An answer that says how
 * long it is, and ends before, is an error.
 */
#ifndef KY_FLEET_HTTP_ANSWER_H
#define KY_FLEET_HTTP_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"

struct kymo_error;

enum ky_http_ends {
	KY_HTTP_WITH_CONNECTION,
	KY_HTTP_BY_LENGTH,
	KY_HTTP_IN_CHUNKS,
};

struct ky_http_answer {
	int (*take)(void *data, const char *bytes, size_t n, struct kymo_error *err);
	void *data;
	struct ky_strbuf head; /* up to the empty line; of a refusal, its words */
	bool has_head, is_refused;
	bool is_over; /* all of it is there */
	enum ky_http_ends ends;
	uint64_t left;	       /* bytes of the body, or of the chunk */
	struct ky_strbuf line; /* before a chunk */
	bool is_in_chunk;
};

/* @take may be NULL; it gets the body, unless the server says no, and ends it with a negative status. */
void ky_http_answer_init(struct ky_http_answer *answer,
			 int (*take)(void *data, const char *bytes, size_t n,
				     struct kymo_error *err),
			 void *data);
void ky_http_answer_fini(struct ky_http_answer *answer);
int ky_http_answer_take(struct ky_http_answer *answer, const char *bytes, size_t n,
			struct kymo_error *err);
/* The connection has ended. KYMO_E_IO: the server says no, with its words; or the answer is cut. */
int ky_http_answer_end(struct ky_http_answer *answer, struct kymo_error *err);

#endif
