/* SPDX-License-Identifier: MIT */
/* The call stacks of a trigger's event, with names where the machine knows them. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "cli/commands/report-stacks.h"

#define FRAMES_MAX 128
#define NAME_BYTES 128

struct frame {
	uint64_t address, begin;
	char name[NAME_BYTES];
};

struct stack {
	struct frame frames[FRAMES_MAX];
	size_t n;
};

/* /proc/kallsyms, once for all frames: the last symbol at or before the address. */
static void name_kernel(struct stack *stack)
{
	FILE *file = fopen("/proc/kallsyms", "re");
	char line[512], name[NAME_BYTES], type;
	uint64_t at;

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%" SCNx64 " %c %127s", &at, &type, name) != 3 || !at ||
		    !strchr("tTwW", type))
			continue;
		for (size_t i = 0; i < stack->n; i++) {
			struct frame *frame = &stack->frames[i];

			if (at <= frame->address && at >= frame->begin) {
				frame->begin = at;
				memcpy(frame->name, name, sizeof(name));
			}
		}
	}
	if (file)
		fclose(file);
}

/* The files that the process has mapped, if it still runs. Offsets are those in the files. */
static void name_user(struct stack *stack, int64_t pid)
{
	uint64_t begin, end, offset;
	char path[64], line[4352];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%" PRId64 "/maps", pid);
	file = pid > 0 ? fopen(path, "re") : NULL;
	while (file && fgets(line, sizeof(line), file)) {
		int name_at = 0;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %*s %n", &begin, &end,
			   &offset, &name_at) < 3 ||
		    !name_at)
			continue;
		line[strcspn(line, "\n")] = '\0';
		for (size_t i = 0; i < stack->n; i++) {
			struct frame *frame = &stack->frames[i];

			if (frame->address < begin || frame->address >= end)
				continue;
			frame->begin = begin - offset;
			snprintf(frame->name, sizeof(frame->name), "%.120s", line + name_at);
		}
	}
	if (file)
		fclose(file);
}

static void read_stack(struct stack *stack, const json_t *array)
{
	size_t i;
	json_t *item;

	stack->n = 0;
	json_array_foreach(array, i, item)
	{
		if (stack->n < FRAMES_MAX && json_is_integer(item))
			stack->frames[stack->n++] =
				(struct frame){.address = (uint64_t)json_integer_value(item)};
	}
}

static void put_stack(struct ky_strbuf *out, const char *field, const struct stack *stack)
{
	ky_strbuf_addf(out, "%s\n", field);
	for (size_t i = 0; i < stack->n; i++) {
		const struct frame *frame = &stack->frames[i];

		ky_strbuf_addf(out, "  %016" PRIx64, frame->address);
		if (frame->name[0])
			ky_strbuf_addf(out, "  %s+0x%" PRIx64, frame->name,
				       frame->address - frame->begin);
		ky_strbuf_addc(out, '\n');
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
	const char *name;

	if (stack && json_is_object(fields)) {
		int64_t pid = json_integer_value(json_object_get(fields, "pid"));

		json_object_foreach(fields, name, value)
		{
			if (!strstr(name, "callstack") || !json_is_array(value))
				continue;
			read_stack(stack, value);
			if (strstr(name, "user"))
				name_user(stack, pid);
			else
				name_kernel(stack);
			put_stack(out, name, stack);
		}
	}
	free(stack);
	json_decref(root);
	free(text);
}
