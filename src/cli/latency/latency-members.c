/* SPDX-License-Identifier: MIT */
#include "cli/latency/latency-members.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/tables/render-cell.h"
#include "base/error.h"
#include "base/foreign.h"
#include "cli/latency/latency-output.h"
#include "cli/terminal/command.h"
#include "cli/terminal/json-output.h"

struct telling {
	struct ky_members *members;
	struct ky_latency *latency;
	struct ky_strbuf out;
};

static size_t frames_of(int32_t bytes)
{
	return bytes > 0 ? (size_t)bytes / sizeof(uint64_t) : 0;
}

/* The first frames are those of the BPF program that took the stack. */
static size_t latency_members_skip(struct ky_members *members,
				   const struct ky_latency_member *member)
{
	size_t n = frames_of(member->kernel_bytes), i = 0;
	uint64_t offset;

	for (; i < n; i++) {
		const char *name = ky_frames_name(&members->frames, member->kernel[i], &offset);

		if (!name ||
		    (strncmp(name, "bpf_prog_", 9) != 0 && strncmp(name, "bpf_trace_run", 13) != 0))
			break;
	}
	return i;
}

static void latency_members_put_comm(struct ky_strbuf *out, const char *comm)
{
	ky_foreign_add(out, comm, strnlen(comm, KY_LATENCY_COMM_BYTES));
}

/* "read", "vda write". Foreign text. */
static void latency_members_name(struct ky_strbuf *out, struct ky_latency *latency,
				 const struct ky_latency_member *member)
{
	const struct ky_latency_key key = {.layer = member->layer, .sub = member->sub};

	ky_latency_put_name(out, latency, &key);
}

void ky_members_put(struct ky_members *members, struct ky_strbuf *out, struct ky_latency *latency,
		    const struct ky_latency_member *member, bool stacks)
{
	struct ky_strbuf name = KY_STRBUF_INIT;
	size_t skip;

	latency_members_name(&name, latency, member);
	ky_render_time(out, ky_latency_wall_ns(member->end_ns), false);
	ky_strbuf_addf(out, " %s ", ky_latency_layer_name(member->layer));
	ky_foreign_adds(out, ky_strbuf_text(&name));
	ky_strbuf_addc(out, ' ');
	ky_render_duration(out, (double)member->ns);
	ky_strbuf_adds(out, "  ");
	latency_members_put_comm(out, member->comm);
	ky_strbuf_addf(out, " (tid %d, pid %d)", member->tid, member->pid);
	if (member->prev_tid >= 0) {
		ky_strbuf_adds(out, " after ");
		latency_members_put_comm(out, member->prev_comm);
		ky_strbuf_addf(out, " (tid %d)", member->prev_tid);
	}
	ky_strbuf_addc(out, '\n');
	ky_strbuf_fini(&name);
	if (!stacks)
		return;
	skip = latency_members_skip(members, member);
	ky_frames_put_kernel(&members->frames, out, "    ", member->kernel + skip,
			     frames_of(member->kernel_bytes) - skip);
	ky_frames_put_user(out, "    ", member->user, frames_of(member->user_bytes), member->pid);
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static json_t *latency_members_comm(const char *comm)
{
	char text[KY_LATENCY_COMM_BYTES + 1] = "";

	memcpy(text, comm, KY_LATENCY_COMM_BYTES);
	return ky_jansson_text(text);
}

static void add_stacks(json_t *root, struct ky_members *members,
		       const struct ky_latency_member *member)
{
	json_t *kernel = json_array(), *user = json_array();
	uint64_t offset;
	char text[20];

	for (size_t i = latency_members_skip(members, member); i < frames_of(member->kernel_bytes);
	     i++) {
		const char *name = ky_frames_name(&members->frames, member->kernel[i], &offset);

		json_array_append_new(kernel, ky_jansson_text(name ? name : "?"));
	}
	for (size_t i = 0; i < frames_of(member->user_bytes); i++) {
		snprintf(text, sizeof(text), "0x%" PRIx64, member->user[i]);
		json_array_append_new(user, json_string(text));
	}
	json_object_set_new(root, "kernel_stack", kernel);
	json_object_set_new(root, "user_stack", user);
}

static void latency_members_json(struct telling *telling, const struct ky_latency_member *member)
{
	struct ky_strbuf name = KY_STRBUF_INIT;
	struct kymo_error ignored;
	json_t *root;

	latency_members_name(&name, telling->latency, member);
	root = json_pack("{s:s, s:o, s:I, s:I, s:i, s:i, s:o}", "member",
			 ky_latency_layer_name(member->layer), "name",
			 ky_jansson_text(ky_strbuf_text(&name)), "duration_ns",
			 (json_int_t)member->ns, "time_ns",
			 (json_int_t)ky_latency_wall_ns(member->end_ns), "tid", member->tid, "pid",
			 member->pid, "comm", latency_members_comm(member->comm));
	if (member->prev_tid >= 0) {
		json_object_set_new(root, "prev_tid", json_integer(member->prev_tid));
		json_object_set_new(root, "prev_comm", latency_members_comm(member->prev_comm));
	}
	add_stacks(root, telling->members, member);
	(void)ky_jansson_add(&telling->out, root, JSON_COMPACT, &ignored);
	ky_strbuf_fini(&name);
}

/* ---- keeping them --------------------------------------------------------------------------- */

static struct ky_members_kept *latency_members_kept(const struct ky_members *members,
						    uint32_t layer, uint64_t sub)
{
	ky_vec_foreach(&members->kept, kept)
		if ((*kept)->layer == layer && (*kept)->sub == sub)
			return *kept;
	return NULL;
}

const struct ky_members_kept *ky_members_of(const struct ky_members *members, uint32_t layer,
					    uint64_t sub)
{
	return latency_members_kept(members, layer, sub);
}

static struct ky_members_kept *new_kept(struct ky_members *members, uint32_t layer, uint64_t sub)
{
	struct ky_members_kept *kept = calloc(1, sizeof(*kept));

	if (!kept || ky_vec_push(&members->kept, kept) < 0) {
		free(kept);
		return NULL;
	}
	kept->layer = layer;
	kept->sub = sub;
	return kept;
}

static void keep_member(struct ky_members *members, const struct ky_latency_member *member)
{
	struct ky_members_kept *kept = latency_members_kept(members, member->layer, member->sub);

	if (!kept && members->kept.len < KY_MEMBERS_SERIES)
		kept = new_kept(members, member->layer, member->sub);
	if (kept)
		kept->last[kept->n++ % KY_MEMBERS_KEPT] = *member;
}

/* ---- taking them ---------------------------------------------------------------------------- */

static void latency_members_take(void *data, const struct ky_latency_member *member)
{
	struct telling *telling = data;
	struct ky_members *members = telling->members;

	if (members->is_kept)
		keep_member(members, member);
	else if (members->json)
		latency_members_json(telling, member);
	else
		ky_members_put(members, &telling->out, telling->latency, member, true);
}

int ky_members_step(struct ky_members *members, struct ky_latency *latency, struct kymo_error *err)
{
	struct telling telling = {.members = members, .latency = latency};
	int ret = ky_latency_members(latency, latency_members_take, &telling, err);

	ky_cli_write(&telling.out);
	ky_strbuf_fini(&telling.out);
	return ret;
}

void ky_members_fini(struct ky_members *members)
{
	ky_frames_fini(&members->frames);
	ky_vec_foreach(&members->kept, kept)
		free(*kept);
	ky_vec_fini(&members->kept);
}
