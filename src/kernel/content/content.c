/* SPDX-License-Identifier: MIT */
#include "kernel/content/content.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kernel/content/content-internal.h"

struct ky_content *ky_content_new(bool fields, uint32_t limit_bytes, bool ids,
				  uint64_t buffer_bytes, uint32_t own_pid)
{
	struct ky_content *content = calloc(1, sizeof(*content));

	if (!content)
		return NULL;
	content->options.fields = fields;
	content->options.ids = ids;
	content->options.limit =
		limit_bytes > KY_CONTENT_LIMIT_MAX ? KY_CONTENT_LIMIT_MAX : limit_bytes;
	content->options.own_pid = own_pid;
	content->options.ring_bytes = buffer_bytes;
	ky_map_init(&content->threads);
	return content;
}

bool ky_content_has_fields(const struct ky_content *content)
{
	return content->options.fields;
}

bool ky_content_has_ids(const struct ky_content *content)
{
	return content->options.ids;
}

bool ky_content_has_buffers(const struct ky_content *content)
{
	return content->options.limit != 0;
}

void ky_content_free(struct ky_content *content)
{
	struct pending *newer;
	size_t pos = 0;
	uint64_t tid;
	void *queue;

	if (!content)
		return;
	ky_bpf_content_unload(&content->programs);
	for (struct pending *p = content->oldest; p; p = newer) {
		newer = p->newer;
		free(p);
	}
	while (ky_map_next(&content->threads, &pos, &tid, &queue))
		free(queue);
	ky_map_fini(&content->threads);
	ky_content_free_calls(content);
	free(content->held);
	free(content);
}

/* ---- choosing ------------------------------------------------------------------------- */

static bool is_buffer(unsigned int kind)
{
	return kind == KY_CONTENT_BUFFER || kind == KY_CONTENT_ENVIRON;
}

void ky_content_describe(const struct ky_content *content, const struct ky_content_call *call,
			 bool is_exit, struct ky_content_descriptor *to)
{
	to->replaces_memory = call->replaces_memory;
	for (unsigned int i = 0; i < KY_CONTENT_PLACES; i++) {
		const struct ky_content_item *item = &call->items[i];

		if ((i >= KY_CONTENT_IN_PLACES) != is_exit)
			continue;
		if (is_buffer(item->kind) && !content->options.limit)
			continue;
		if (item->kind == KY_CONTENT_IDS ? !content->options.ids : !content->options.fields)
			continue;
		to->items[i].kind = item->kind;
		to->items[i].arg = item->arg;
		to->items[i].len_arg = item->len_arg;
	}
}

void ky_content_tell(struct ky_content *content, uint32_t key)
{
	if (content->programs.calls)
		content->programs.calls[key] = content->descriptors[key];
}

void ky_content_select(struct ky_content *content, const char *event)
{
	bool is_exit;
	const struct ky_content_call *call = ky_content_call_find(event, &is_exit);

	if (!call)
		return;
	ky_content_describe(content, call, is_exit, &content->descriptors[call->number]);
	ky_content_tell(content, call->number);
}

/* ---- the programs ----------------------------------------------------------------------- */

struct ky_content_ring *ky_content_ring_of(const struct ky_content *content, uint32_t cpu)
{
	return ky_bpf_region(&content->programs.regions, cpu);
}

int ky_content_load(struct ky_content *content, struct kymo_error *err)
{
	int ret = ky_bpf_content_load(&content->programs, &content->options, err);

	if (ret < 0)
		return ret;
	for (uint32_t key = 0; key < KY_CONTENT_ALL_CALLS; key++)
		ky_content_tell(content, key);
	return ky_content_make_calls(content, err);
}

int ky_content_attach(struct ky_content *content, struct kymo_error *err)
{
	return ky_bpf_content_attach(&content->programs, err);
}

void ky_content_detach(struct ky_content *content)
{
	ky_bpf_content_detach(&content->programs);
}

void ky_content_stats(const struct ky_content *content, struct ky_content_stats *stats)
{
	*stats = content->stats;
	for (uint32_t cpu = 0; cpu < content->programs.regions.n; cpu++)
		stats->lost += ky_content_ring_of(content, cpu)->lost;
}
