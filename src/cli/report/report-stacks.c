/* SPDX-License-Identifier: MIT */
/* The call stacks of a trigger's event, with names where the machine knows them. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "cli/reading/frames.h"
#include "cli/report/report-stacks.h"

#define FRAMES_MAX 128

struct stack {
	uint64_t addresses[FRAMES_MAX];
	size_t n;
};

static void read_stack(struct stack *stack, const json_t *array)
{
	size_t i;
	json_t *item;

	stack->n = 0;
	json_array_foreach(array, i, item)
	{
		if (stack->n < FRAMES_MAX && json_is_integer(item))
			stack->addresses[stack->n++] = (uint64_t)json_integer_value(item);
	}
}

/* Addresses above 2^63 are no integers for jansson: they are texts in the copy that is parsed. */
static char *quote_large(const char *json)
{
	struct ky_strbuf out = KY_STRBUF_INIT;
	bool in_text = false;

	for (const char *at = json; *at;) {
		size_t digits = in_text ? 0 : strspn(at, "0123456789");

		if (digits >= 19) {
			/* As a negative number, which has the same bits. */
			ky_strbuf_addi(&out, (int64_t)strtoull(at, NULL, 10));
			at += digits;
			continue;
		}
		if (digits) {
			ky_strbuf_add(&out, at, digits);
			at += digits;
			continue;
		}
		if (*at == '\\' && at[1])
			ky_strbuf_addc(&out, *at++);
		else if (*at == '"')
			in_text = !in_text;
		ky_strbuf_addc(&out, *at++);
	}
	return ky_strbuf_take(&out);
}

void ky_report_stacks(struct ky_strbuf *out, const char *event)
{
	char *text = quote_large(event);
	json_t *root = text ? json_loads(text, 0, NULL) : NULL;
	json_t *fields = json_object_get(root, "fields"), *value;
	struct stack *stack = malloc(sizeof(*stack));
	struct ky_frames frames = {0};
	const char *name;

	if (stack && json_is_object(fields)) {
		int64_t pid = json_integer_value(json_object_get(fields, "pid"));

		json_object_foreach(fields, name, value)
		{
			if (!strstr(name, "callstack") || !json_is_array(value))
				continue;
			read_stack(stack, value);
			ky_strbuf_addf(out, "%s\n", name);
			if (strstr(name, "user"))
				ky_frames_put_user(out, "  ", stack->addresses, stack->n, pid);
			else
				ky_frames_put_kernel(&frames, out, "  ", stack->addresses,
						     stack->n);
		}
	}
	ky_frames_fini(&frames);
	free(stack);
	json_decref(root);
	free(text);
}
