/* SPDX-License-Identifier: MIT */
/* Flame graphs: the page has the tree as JSON, and a script draws it. */
#include "analysis/render/render-html.h"

#include <inttypes.h>
#include <stdlib.h>

#include "analysis/render/render-html-flame-page.h"
#include "analysis/stacks/stack-json.h"

/* What is too small to be seen is left out, so that the page stays small. */
#define SMALLEST_PART 20000

const char *ky_html_flame_style(void)
{
	return flame_style;
}

const char *ky_html_flame_script(void)
{
	return flame_script;
}

const char *ky_html_flame_hash(void)
{
	return FLAME_SCRIPT_HASH;
}

static const char *flame_kind(enum ky_stack_frame_kind kind)
{
	static const char *const names[] = {
		[KY_STACK_FRAME_GROUP] = "group",
		[KY_STACK_FRAME_USER] = "user",
		[KY_STACK_FRAME_KERNEL] = "kernel",
		[KY_STACK_FRAME_STATE] = "state",
	};

	return names[kind];
}

static void flame_frames(struct ky_strbuf *out, const struct ky_stack_tree *tree)
{
	ky_strbuf_adds(out, "\"frames\":[");
	ky_vec_foreach(&tree->frames, frame) {
		ky_strbuf_adds(out, frame == tree->frames.data ? "[" : ",\n[");
		ky_stacks_json_text(out, frame->function);
		ky_strbuf_addc(out, ',');
		ky_stacks_json_text(out, frame->object);
		ky_strbuf_addf(out, ",\"%s\"]", flame_kind(frame->kind));
	}
	ky_strbuf_adds(out, "],\n");
}

static bool flame_is_small(const struct ky_stack_tree *tree, const struct ky_stack_node *node)
{
	const uint64_t *all = tree->nodes.data[KY_STACK_TREE_ROOT].total;

	return node->total[0] < all[0] / SMALLEST_PART && node->total[1] <= all[1] / SMALLEST_PART;
}

/* Numbers of nodes change, as small ones are left out: @places has the new ones. */
static void flame_nodes(struct ky_strbuf *out, const struct ky_stack_tree *tree, uint32_t *places)
{
	uint32_t n = 0;

	ky_strbuf_adds(out, "\"nodes\":[");
	for (uint32_t i = 0; i < tree->nodes.len; i++) {
		const struct ky_stack_node *node = &tree->nodes.data[i];

		places[i] = KY_STACK_TREE_NONE;
		if (i && (places[node->parent] == KY_STACK_TREE_NONE || flame_is_small(tree, node)))
			continue;
		places[i] = n++;
		ky_strbuf_addf(out, "%s[%" PRIu32 ",%" PRIu32 ",%" PRIu64, i ? ",\n" : "",
			       node->frame, i ? places[node->parent] : 0, node->total[0]);
		if (tree->has_two)
			ky_strbuf_addf(out, ",%" PRIu64, node->total[1]);
		ky_strbuf_addc(out, ']');
	}
	ky_strbuf_addc(out, ']');
}

void ky_html_flame(struct ky_strbuf *out, const struct ky_stack_tree *tree)
{
	uint32_t *places = malloc((tree->nodes.len + 1) * sizeof(*places));

	if (!places) {
		out->failed = true;
		return;
	}
	ky_strbuf_addf(out,
		       "<div class=\"flame\"><script type=\"application/json\">{\"time\":%s,"
		       "\"two\":%s,\n",
		       tree->is_time ? "true" : "false", tree->has_two ? "true" : "false");
	flame_frames(out, tree);
	flame_nodes(out, tree, places);
	ky_strbuf_adds(out, "}</script></div>\n");
	free(places);
}
