/* SPDX-License-Identifier: MIT */
#include "cli/latency/latency-chain.h"

#include <inttypes.h>
#include <string.h>

#include "analysis/tables/render-cell.h"
#include "base/foreign.h"
#include "cli/latency/latency-output.h"
#include "cli/terminal/command.h"
#include "cli/terminal/json-output.h"

struct telling {
	struct ky_strbuf out;
	bool json;
};

/* "irq 24 virtio0-input.0", "timer", "softirq net_rx". Foreign text. */
static void latency_chain_origin(struct ky_strbuf *out, const struct ky_chain_report *report)
{
	const char *name;

	switch (report->origin) {
	case KY_CHAIN_OF_IRQ:
		ky_strbuf_adds(out, "irq ");
		ky_latency_put_irq(out, report->id);
		break;
	case KY_CHAIN_OF_TIMER:
		ky_strbuf_adds(out, "timer");
		break;
	default:
		name = ky_softirq_name(report->id);
		ky_strbuf_addf(out, "softirq %s", name ? name : "?");
	}
}

static int64_t chain_end_ns(const struct ky_chain_report *report)
{
	return ky_latency_wall_ns(report->begin_ns + report->parts_ns[KY_CHAIN_WHOLE]);
}

static void put_chain(struct ky_strbuf *out, const struct ky_chain_report *report)
{
	struct ky_strbuf origin = KY_STRBUF_INIT;
	const char *separator = ":";

	latency_chain_origin(&origin, report);
	ky_render_time(out, chain_end_ns(report), false);
	ky_strbuf_adds(out, " chain ");
	ky_render_duration(out, (double)report->parts_ns[KY_CHAIN_WHOLE]);
	ky_strbuf_adds(out, "  ");
	ky_foreign_add(out, report->comm, strnlen(report->comm, sizeof(report->comm)));
	ky_strbuf_addf(out, " (tid %d, pid %d) on CPU %u after ", report->tid, report->pid,
		       report->cpu);
	ky_foreign_add(out, report->prev_comm,
		       strnlen(report->prev_comm, sizeof(report->prev_comm)));
	ky_strbuf_addf(out, " (tid %d), by ", report->prev_tid);
	ky_foreign_adds(out, ky_strbuf_text(&origin));
	ky_strbuf_addf(out, " on CPU %u", report->irq_cpu);
	for (int part = KY_CHAIN_WHOLE + 1; part < KY_CHAIN_PARTS; part++) {
		if (!report->parts_ns[part])
			continue;
		ky_strbuf_addf(out, "%s %s %" PRIu64 " ns", separator, ky_chain_part_name(part),
			       report->parts_ns[part]);
		separator = " +";
	}
	ky_strbuf_addc(out, '\n');
	ky_strbuf_fini(&origin);
}

static json_t *latency_chain_text(const char *comm)
{
	char text[KY_LATENCY_COMM_BYTES + 1] = "";

	memcpy(text, comm, KY_LATENCY_COMM_BYTES);
	return ky_jansson_text(text);
}

static void put_chain_json(struct ky_strbuf *out, const struct ky_chain_report *report)
{
	struct ky_strbuf origin = KY_STRBUF_INIT;
	json_t *parts = json_object(), *root;
	struct kymo_error ignored;

	latency_chain_origin(&origin, report);
	for (int part = 0; part < KY_CHAIN_PARTS; part++)
		json_object_set_new(parts, ky_chain_part_name(part),
				    json_integer((json_int_t)report->parts_ns[part]));
	root = json_pack(
		"{s:o, s:I, s:I, s:o, s:i, s:i, s:o, s:I, s:i, s:o, s:I}", "chain",
		ky_jansson_text(ky_strbuf_text(&origin)), "begin_ns", (json_int_t)report->begin_ns,
		"time_ns", (json_int_t)chain_end_ns(report), "parts_ns", parts, "tid", report->tid,
		"pid", report->pid, "comm", latency_chain_text(report->comm), "cpu",
		(json_int_t)report->cpu, "prev_tid", report->prev_tid, "prev_comm",
		latency_chain_text(report->prev_comm), "irq_cpu", (json_int_t)report->irq_cpu);
	(void)ky_jansson_add(out, root, JSON_COMPACT, &ignored);
	ky_strbuf_fini(&origin);
}

static void latency_chain_tell(void *data, const struct ky_chain_report *report)
{
	struct telling *telling = data;

	if (telling->json)
		put_chain_json(&telling->out, report);
	else
		put_chain(&telling->out, report);
}

int ky_chain_print(struct ky_chain *chain, bool json, struct kymo_error *err)
{
	struct telling telling = {.json = json};
	int ret = ky_chain_step(chain, latency_chain_tell, &telling, err);

	ky_cli_write(&telling.out);
	ky_strbuf_fini(&telling.out);
	return ret;
}
