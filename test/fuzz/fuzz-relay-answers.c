/* SPDX-License-Identifier: MIT */
/* What a relay answers a recorder: any bytes, in pieces whose size the first byte gives. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "net/protocol/answer-reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int take(void *data, const struct ky_answer *answer)
{
	size_t *n = data;

	++*n;
	if ((answer->type == KY_FRAME_ERROR) != (answer->text != NULL))
		abort();
	for (const char *c = answer->text ? answer->text : ""; *c; c++)
		if ((unsigned char)*c < ' ')
			abort();
	return 0;
}

static size_t count(const uint8_t *data, size_t size, size_t piece, int *ret)
{
	struct ky_answer_reader reader = {.n_head = 0};
	size_t n = 0;

	*ret = 0;
	for (size_t at = 0; at < size && !*ret; at += piece)
		*ret = ky_answer_reader_take(&reader, data + at,
					     size - at < piece ? size - at : piece, take, &n);
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int whole, pieces;

	if (!size)
		return 0;
	/* The answers do not depend on the pieces. */
	if (count(data + 1, size - 1, size, &whole) !=
		    count(data + 1, size - 1, 1 + data[0] % 50, &pieces) ||
	    whole != pieces)
		abort();
	return 0;
}
