/* SPDX-License-Identifier: MIT */
#include "analysis/export/stacks.h"

#include <inttypes.h>
#include <string.h>

#include "analysis/export/stacks-internal.h"
#include "analysis/stacks/stack-json.h"
#include "base/error.h"
#include "base/utf8.h"

static const char *const names[KY_STACKS_FORMS] = {
	[KY_STACKS_FOLDED] = "folded",
	[KY_STACKS_SPEEDSCOPE] = "speedscope",
	[KY_STACKS_PPROF] = "pprof",
	[KY_STACKS_CHROME] = "chrome",
};

enum ky_stacks_form ky_stacks_form_find(const char *name)
{
	size_t form = 0;

	while (form < KY_STACKS_FORMS && (!name || strcmp(names[form], name) != 0))
		form++;
	return (enum ky_stacks_form)form;
}

size_t ky_stacks_path(const struct ky_stack_tree *tree, uint32_t at, uint32_t *path, size_t max)
{
	size_t n = 0;

	/* Of a longer one, the outermost frames are left out. */
	for (; at != KY_STACK_TREE_ROOT && n < max; at = tree->nodes.data[at].parent)
		path[n++] = tree->nodes.data[at].frame;
	return n;
}

/* ---- folded -------------------------------------------------------------------------------- */

/* A semicolon separates frames, and a line ends a stack. */
static void stacks_folded_text(struct ky_strbuf *out, const char *text)
{
	for (const char *at = text; *at; at++)
		ky_strbuf_addc(out, *at == ';' ? ':'
				    : (unsigned char)*at < ' ' || *at == 127 ||
						    (at > text && ky_utf8_is_control(at - 1))
					    ? '?'
					    : *at);
}

static void stacks_folded(struct ky_strbuf *out, const struct ky_stack_tree *tree)
{
	uint32_t path[KY_STACKS_DEPTH_MAX];

	for (uint32_t i = 1; i < tree->nodes.len; i++) {
		const struct ky_stack_node *node = &tree->nodes.data[i];

		if (!node->self[0] && !node->self[1])
			continue;
		for (size_t n = ky_stacks_path(tree, i, path, KY_STACKS_DEPTH_MAX); n-- > 0;) {
			const struct ky_stack_frame *frame = &tree->frames.data[path[n]];

			stacks_folded_text(out, frame->function);
			ky_strbuf_adds(out, frame->kind == KY_STACK_FRAME_KERNEL ? "_[k]" : "");
			ky_strbuf_addc(out, n ? ';' : ' ');
		}
		ky_strbuf_addu(out, node->self[0]);
		if (tree->has_two) {
			ky_strbuf_addc(out, ' ');
			ky_strbuf_addu(out, node->self[1]);
		}
		ky_strbuf_addc(out, '\n');
	}
}

/* ---- speedscope ---------------------------------------------------------------------------- */

static void stacks_speedscope_frame(struct ky_strbuf *out, const struct ky_stack_tree *tree,
				    struct ky_stack_frame *frame)
{
	ky_strbuf_adds(out, frame == tree->frames.data ? "\n" : ",\n");
	ky_strbuf_adds(out, "{\"name\":");
	ky_stacks_json_text(out, frame->function);
	if (frame->object[0]) {
		ky_strbuf_adds(out, ",\"file\":");
		ky_stacks_json_text(out, frame->object);
	}
	ky_strbuf_addc(out, '}');
}

static void stacks_speedscope_frames(struct ky_strbuf *out, const struct ky_stack_tree *tree)
{
	ky_vec_foreach(&tree->frames, frame)
		stacks_speedscope_frame(out, tree, frame);
}

static void stacks_speedscope_stack(struct ky_strbuf *out, const struct ky_stack_tree *tree,
				    uint32_t at)
{
	uint32_t path[KY_STACKS_DEPTH_MAX];

	ky_strbuf_addc(out, '[');
	for (size_t n = ky_stacks_path(tree, at, path, KY_STACKS_DEPTH_MAX); n-- > 0;) {
		ky_strbuf_addu(out, path[n]);
		ky_strbuf_adds(out, n ? "," : "");
	}
	ky_strbuf_addc(out, ']');
}

static void stacks_speedscope_profile(struct ky_strbuf *out, const struct ky_stack_tree *tree,
				      const char *name, int side)
{
	const char *between = "\n";

	ky_strbuf_adds(out, "{\"type\":\"sampled\",\"name\":");
	ky_stacks_json_text(out, name);
	ky_strbuf_addf(out,
		       ",\"unit\":\"%s\",\"startValue\":0,\"endValue\":%" PRIu64 ",\"samples\":[",
		       tree->is_time ? "nanoseconds" : "none",
		       tree->nodes.data[KY_STACK_TREE_ROOT].total[side]);
	for (uint32_t i = 1; i < tree->nodes.len; i++) {
		if (!tree->nodes.data[i].self[side])
			continue;
		ky_strbuf_adds(out, between);
		stacks_speedscope_stack(out, tree, i);
		between = ",\n";
	}
	ky_strbuf_adds(out, "],\"weights\":[");
	between = "";
	for (uint32_t i = 1; i < tree->nodes.len; i++) {
		if (!tree->nodes.data[i].self[side])
			continue;
		ky_strbuf_adds(out, between);
		ky_strbuf_addu(out, tree->nodes.data[i].self[side]);
		between = ",";
	}
	ky_strbuf_adds(out, "]}");
}

void ky_stacks_speedscope_begin(struct ky_strbuf *out, const struct ky_stack_tree *tree,
				const char *name)
{
	ky_strbuf_adds(out, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
			    "\"exporter\":\"kymo\",\"name\":");
	ky_stacks_json_text(out, name);
	ky_strbuf_adds(out, ",\"activeProfileIndex\":0,\"shared\":{\"frames\":[");
	stacks_speedscope_frames(out, tree);
	ky_strbuf_adds(out, "]},\n\"profiles\":[");
}

static void stacks_speedscope(struct ky_strbuf *out, const struct ky_stack_tree *tree,
			      const char *name)
{
	ky_stacks_speedscope_begin(out, tree, name);
	stacks_speedscope_profile(out, tree, tree->has_two ? "before" : name, 0);
	if (tree->has_two) {
		ky_strbuf_adds(out, ",\n");
		stacks_speedscope_profile(out, tree, "after", 1);
	}
	ky_strbuf_adds(out, "]}\n");
}

int ky_stacks_export(struct ky_strbuf *out, const struct ky_stack_tree *tree, const char *name,
		     enum ky_stacks_form form, struct kymo_error *err)
{
	if (form == KY_STACKS_PPROF && tree->has_two)
		return ky_error_set(
			err, KYMO_E_UNSUPPORTED,
			"pprof: one trace at a time, please; compare with: go tool pprof "
			"-base");
	if (form == KY_STACKS_CHROME)
		return ky_error_set(
			err, KYMO_E_UNSUPPORTED,
			"chrome: stacks have no such form; it is for single calls: kymo report calls");
	switch (form) {
	case KY_STACKS_FOLDED:
		stacks_folded(out, tree);
		break;
	case KY_STACKS_SPEEDSCOPE:
		stacks_speedscope(out, tree, name);
		break;
	default:
		ky_stacks_pprof(out, tree);
		break;
	}
	return ky_strbuf_failed(out) ? ky_error_nomem(err) : KYMO_OK;
}
