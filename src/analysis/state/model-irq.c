/* SPDX-License-Identifier: MIT */
/*
 * The state model's interrupts. They nest, so each CPU has a stack of those that run. An exit
 * takes the topmost entry of its own off, and those above it, whose exits are missing.
 */
#include "analysis/state/model-internal.h"

#include <string.h>

static const char *const softirq_names[] = {"HI",	"TIMER",   "NET_TX", "NET_RX",	"BLOCK",
					    "IRQ_POLL", "TASKLET", "SCHED",  "HRTIMER", "RCU"};

static struct ky_irq_line *line_new(struct ky_model *model, struct ky_host *host,
				    enum ky_irq_kind kind, int32_t nr, const char *name, size_t len)
{
	struct ky_irq_line *line = ky_arena_new(&model->arena, struct ky_irq_line);

	if (!line)
		return NULL;
	*line = (struct ky_irq_line){
		.index = (uint32_t)model->lines.len,
		.kind = kind,
		.nr = nr,
		.name = ky_arena_strndup(&model->arena, name, len),
		.host = host,
	};
	if (!line->name || ky_vec_push(&model->lines, line) < 0)
		return NULL;
	return line;
}

/* A vector is one line by its name; there are a dozen at most. */
static struct ky_irq_line *find_vector(struct ky_model *model, const struct ky_host *host,
				       const char *name, size_t len)
{
	ky_vec_foreach(&model->lines, line) {
		if ((*line)->host == host && (*line)->kind == KY_IRQ_VECTOR &&
		    strlen((*line)->name) == len && memcmp((*line)->name, name, len) == 0)
			return *line;
	}
	return NULL;
}

struct ky_irq_line *ky_irq_line_get(struct ky_model *model, struct ky_host *host,
				    enum ky_irq_kind kind, int32_t nr, const char *name, size_t len)
{
	struct ky_map *map = &host->state->lines[kind];
	uint64_t key = (uint32_t)nr;
	struct ky_irq_line *line;

	line = kind == KY_IRQ_VECTOR ? find_vector(model, host, name, len) : ky_map_get(map, key);
	if (line) {
		/* Its name may come later than its first event. */
		if (!line->name[0] && len)
			line->name = ky_arena_strndup(&model->arena, name, len);
		return line->name ? line : NULL;
	}
	line = line_new(model, host, kind, nr, name, len);
	if (line && kind != KY_IRQ_VECTOR && ky_map_set(map, key, line) < 0)
		return NULL;
	return line;
}

const struct ky_irq_line *ky_irq_current(const struct ky_cpu *cpu)
{
	return cpu->irqs && cpu->irqs->depth ? cpu->irqs->stack[cpu->irqs->depth - 1].line : NULL;
}

void ky_irq_lose(struct ky_cpu *cpu)
{
	if (!cpu->irqs)
		return;
	cpu->irqs->depth = 0;
	for (int i = 0; i < KY_SOFTIRQS; i++)
		cpu->irqs->raise_ns[i] = INT64_MIN;
}

static struct ky_cpu_irqs *irqs_of(struct ky_feed *feed)
{
	struct ky_cpu *cpu = feed->cpu;

	if (!cpu->irqs) {
		cpu->irqs = ky_arena_new(&feed->model->arena, struct ky_cpu_irqs);
		ky_irq_lose(cpu);
	}
	return cpu->irqs;
}

static int model_irq_enter(struct ky_feed *feed, const struct ky_irq_line *line, int64_t raise_ns,
			   int64_t ns)
{
	struct ky_cpu_irqs *irqs = irqs_of(feed);

	if (!irqs || !line)
		return KYMO_E_MEMORY;
	/* So deep only because exits are missing: what is lowest is gone. */
	if (irqs->depth == KY_IRQ_DEPTH)
		memmove(irqs->stack, irqs->stack + 1, --irqs->depth * sizeof(*irqs->stack));
	irqs->stack[irqs->depth++] = (struct ky_running_irq){line, ns, raise_ns};
	return 0;
}

/* The event tells best what the interrupt was on top of: not every kernel tells of every switch. */
static int model_irq_leave(struct ky_feed *feed, const struct ky_event *event,
			   const struct ky_class_info *info, const struct ky_irq_line *line)
{
	struct ky_model *model = feed->model;
	const struct ky_cpu *cpu = feed->cpu;
	struct ky_irq irq = {
		.line = line,
		.cpu = cpu,
		.raise_ns = INT64_MIN,
		.begin_ns = INT64_MIN,
		.end_ns = event->ns,
		.thread = ky_feed_thread(feed, event, info),
	};
	struct ky_cpu_irqs *irqs = irqs_of(feed);

	if (!irqs || !line)
		return KYMO_E_MEMORY;
	for (unsigned int i = irqs->depth; i-- > 0;) {
		if (irqs->stack[i].line != line)
			continue;
		irq.begin_ns = irqs->stack[i].begin_ns;
		irq.raise_ns = irqs->stack[i].raise_ns;
		irqs->depth = i;
		break;
	}
	for (unsigned int i = 0; i < irqs->depth; i++)
		irq.nested |=
			(irqs->stack[i].line->kind == KY_IRQ_SOFT) == (line->kind == KY_IRQ_SOFT);
	if (!ky_model_tells(model, irq.thread, cpu->id) ||
	    (irq.begin_ns != INT64_MIN && !ky_model_tells_long(model, event->ns - irq.begin_ns)))
		return 0;
	return ky_model_notify(model, irq, &irq);
}

static struct ky_irq_line *hard_line(struct ky_feed *feed, const struct ky_event *event,
				     const struct ky_class_info *info)
{
	int32_t nr = (int32_t)ky_get_i64(event, &info->fields[KY_IRQ_NR], -1);
	size_t len;
	const char *name = ky_get_text(event, &info->fields[KY_IRQ_NAME], &len);

	return ky_irq_line_get(feed->model, feed->host, KY_IRQ_HARD, nr, name, len);
}

int ky_on_irq_entry(struct ky_feed *feed, const struct ky_event *event,
		    const struct ky_class_info *info)
{
	return feed->cpu ? model_irq_enter(feed, hard_line(feed, event, info), INT64_MIN, event->ns)
			 : 0;
}

int ky_on_irq_exit(struct ky_feed *feed, const struct ky_event *event,
		   const struct ky_class_info *info)
{
	return feed->cpu ? model_irq_leave(feed, event, info, hard_line(feed, event, info)) : 0;
}

int ky_on_dump_irq(struct ky_feed *feed, const struct ky_event *event,
		   const struct ky_class_info *info)
{
	return hard_line(feed, event, info) ? 0 : KYMO_E_MEMORY;
}

int ky_on_vector_entry(struct ky_feed *feed, const struct ky_event *event,
		       const struct ky_class_info *info)
{
	return feed->cpu ? model_irq_enter(feed, info->line, INT64_MIN, event->ns) : 0;
}

int ky_on_vector_exit(struct ky_feed *feed, const struct ky_event *event,
		      const struct ky_class_info *info)
{
	return feed->cpu ? model_irq_leave(feed, event, info, info->line) : 0;
}

/* ---- softirqs ---------------------------------------------------------------------------- */

static struct ky_irq_line *soft_line(struct ky_feed *feed, uint64_t vec)
{
	const char *name =
		vec < sizeof(softirq_names) / sizeof(*softirq_names) ? softirq_names[vec] : "";

	return ky_irq_line_get(feed->model, feed->host, KY_IRQ_SOFT, (int32_t)vec, name,
			       strlen(name));
}

/* The vector field of an event; false: the event has none. */
static bool get_vec(struct ky_feed *feed, const struct ky_event *event,
		    const struct ky_class_info *info, uint64_t *vec)
{
	*vec = ky_get_u64(event, &info->fields[KY_IRQ_NR], UINT64_MAX);
	return feed->cpu && *vec < KY_SOFTIRQS;
}

/* The same, and its CPU's interrupts. 1, 0 (none), or KYMO_E_MEMORY. */
static int get_soft(struct ky_feed *feed, const struct ky_event *event,
		    const struct ky_class_info *info, uint64_t *vec, struct ky_cpu_irqs **irqs)
{
	if (!get_vec(feed, event, info, vec))
		return 0;
	*irqs = irqs_of(feed);
	return *irqs ? 1 : KYMO_E_MEMORY;
}

int ky_on_softirq_raise(struct ky_feed *feed, const struct ky_event *event,
			const struct ky_class_info *info)
{
	struct ky_cpu_irqs *irqs;
	uint64_t vec;
	int status = get_soft(feed, event, info, &vec, &irqs);

	if (status <= 0)
		return status;
	if (irqs->raise_ns[vec] == INT64_MIN)
		irqs->raise_ns[vec] = event->ns;
	return 0;
}

int ky_on_softirq_entry(struct ky_feed *feed, const struct ky_event *event,
			const struct ky_class_info *info)
{
	struct ky_cpu_irqs *irqs;
	int64_t raise_ns;
	uint64_t vec;
	int status = get_soft(feed, event, info, &vec, &irqs);

	if (status <= 0)
		return status;
	raise_ns = irqs->raise_ns[vec];
	irqs->raise_ns[vec] = INT64_MIN;
	return model_irq_enter(feed, soft_line(feed, vec), raise_ns, event->ns);
}

int ky_on_softirq_exit(struct ky_feed *feed, const struct ky_event *event,
		       const struct ky_class_info *info)
{
	uint64_t vec;

	return get_vec(feed, event, info, &vec)
		       ? model_irq_leave(feed, event, info, soft_line(feed, vec))
		       : 0;
}
