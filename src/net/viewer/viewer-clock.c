/* SPDX-License-Identifier: MIT */
#include "net/viewer/viewer-clock.h"

#include <stdbool.h>
#include <string.h>

/* A part of the metadata. */
struct span {
	const char *at;
	size_t bytes;
};

/* The whole lines from @first to @last, which comes later. */
static bool find_lines(struct span in, const char *first, const char *last, struct span *out)
{
	const char *end = in.at + in.bytes, *begin, *line, *eol = NULL;

	begin = memmem(in.at, in.bytes, first, strlen(first));
	line = begin ? memmem(begin, (size_t)(end - begin), last, strlen(last)) : NULL;
	if (line)
		eol = memchr(line, '\n', (size_t)(end - line));
	if (!eol)
		return false;
	*out = (struct span){begin, (size_t)(eol - begin)};
	return true;
}

/* As Kymo's recorders write it, in CTF 1.8; or as kymo convert does, in CTF 2. Other metadata stays as it is. */
static bool viewer_clock_find_clock(struct span text, struct span *name, struct span *values)
{
	struct span block;
	bool is_found = (find_lines(text, "clock {", "};", &block) &&
			 find_lines(block, "\tname = ", "\tuuid = ", name) &&
			 find_lines(block, "\tfreq = ", "\toffset = ", values)) ||
			(find_lines(text, "\"type\": \"clock-class\"", "\n}", &block) &&
			 find_lines(block, "\"id\": ", "\"uid\": ", name) &&
			 find_lines(block, "\"frequency\": ", "\"cycles\": ", values));

	return is_found && name->bytes <= KY_VIEWER_CLOCK_NAME_BYTES &&
	       values->bytes <= KY_VIEWER_PATCH_BYTES;
}

static size_t without_blanks(const char *text, size_t bytes)
{
	while (bytes && text[bytes - 1] == ' ')
		bytes--;
	return bytes;
}

/* The text without what is there for the eye. Returns its size. */
static size_t squeeze(const char *text, size_t bytes, char *to)
{
	size_t used = 0;

	for (size_t i = 0; i < bytes; i++)
		if (text[i] != '\t' && text[i] != ' ' && text[i] != '\n')
			to[used++] = text[i];
	return used;
}

/* The values of @clock instead of what is at @room, as far as they fit. */
static void viewer_clock_replace(const struct ky_viewer_clock *clock, struct span room,
				 uint64_t at_bytes, struct ky_viewer_reply *reply)
{
	size_t used = clock->values_bytes;

	memcpy(reply->patch, clock->values, used);
	if (used > room.bytes)
		used = squeeze(clock->values, clock->values_bytes, reply->patch);
	if (used > room.bytes)
		return;
	memset(reply->patch + used, ' ', room.bytes - used);
	reply->patch_bytes = room.bytes;
	reply->patch_at_bytes = at_bytes;
}

void ky_viewer_clock_apply(struct ky_viewer_clock *clock, const char *text, size_t bytes,
			   struct ky_viewer_reply *reply)
{
	struct span name, values;
	size_t used;

	if (!viewer_clock_find_clock((struct span){text, bytes}, &name, &values))
		return;
	used = without_blanks(values.at, values.bytes);
	if (!clock->values_bytes) {
		memcpy(clock->name, name.at, clock->name_bytes = name.bytes);
		memcpy(clock->values, values.at, clock->values_bytes = used);
		return;
	}
	if (name.bytes == clock->name_bytes && memcmp(name.at, clock->name, name.bytes) == 0 &&
	    (used != clock->values_bytes || memcmp(values.at, clock->values, used) != 0))
		viewer_clock_replace(clock, values, (uint64_t)(values.at - text), reply);
}
