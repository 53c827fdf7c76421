/* SPDX-License-Identifier: MIT */
/* Reading test/data/ok/ring: pages and formats of a real kernel. */
#ifndef KY_TEST_RING_DATA_H
#define KY_TEST_RING_DATA_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

#include "kernel/tracefs/format.h"

/* The whole file, malloc()ed at its exact size, so that a sanitizer sees reads beyond it. */
static inline uint8_t *ring_data(const char *name, size_t *len)
{
	char path[1024];
	uint8_t *data = NULL;
	FILE *file;
	long size;

	snprintf(path, sizeof(path), "%s/ok/ring/%s", KY_TEST_DATA, name);
	file = fopen(path, "rb");
	assert_non_null(file);
	assert_int_equal(fseek(file, 0, SEEK_END), 0);
	size = ftell(file);
	rewind(file);
	data = malloc((size_t)size);
	assert_non_null(data);
	*len = fread(data, 1, (size_t)size, file);
	assert_int_equal(*len, size);
	fclose(file);
	return data;
}

static inline void ring_format(struct ky_arena *arena, const char *event, struct ky_format *format)
{
	char name[128];
	uint8_t *text;
	size_t len;

	snprintf(name, sizeof(name), "%s.format", event);
	text = ring_data(name, &len);
	assert_int_equal(ky_format_parse(arena, (const char *)text, len, format, NULL), 0);
	assert_string_equal(format->name, event);
	free(text);
}

#endif
