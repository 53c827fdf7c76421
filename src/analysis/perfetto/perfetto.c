/* SPDX-License-Identifier: MIT */
/*
 * The Perfetto sink: its packets, its life, and the pass over the events.
 *
 * Packets need not come in the order of their times, trace_processor sorts them. So the ftrace
 * events of a CPU are gathered into bundles, while what goes on tracks is written at once.
 */
#include "analysis/perfetto/perfetto-internal.h"

#include "base/error.h"
#include "os/file.h"

#define WRITE_BYTES  ((size_t)256 << 10)
#define BUNDLE_BYTES ((size_t)16 << 10)
#define CPU_IDS	     1024 /* trace_processor refuses a trace that has higher ones */
#define NAME_BYTES   256

/* Values of the field sequence_flags. */
enum {
	SEQUENCE_BEGINS = 1,
	SEQUENCE_NEEDED = 2,
};

/* Perfetto's numbers of clocks. */
enum {
	CLOCK_REAL = 1,
	CLOCK_BOOT = 6,
};

/* ---- packets ------------------------------------------------------------------------------ */

uint64_t ky_pf_time(const struct ky_pf *pf, int64_t ns)
{
	int64_t shifted;

	if (__builtin_add_overflow(ns, pf->shift_ns, &shifted))
		shifted = INT64_MAX;
	return shifted < 0 ? 0 : (uint64_t)shifted;
}

static size_t bare_packet(struct ky_pf *pf, const struct ky_pf_machine *machine)
{
	size_t begun = ky_pb_begin(&pf->out, KY_PF_TRACE_PACKET);

	ky_pb_uint(&pf->out, KY_PF_PACKET_SEQUENCE_ID, machine->id + 1);
	if (machine->id)
		ky_pb_uint(&pf->out, KY_PF_PACKET_MACHINE_ID, machine->id);
	return begun;
}

size_t ky_pf_packet(struct ky_pf *pf, const struct ky_pf_machine *machine, int64_t ns)
{
	size_t begun = bare_packet(pf, machine);

	ky_pb_uint(&pf->out, KY_PF_PACKET_TIMESTAMP, ky_pf_time(pf, ns));
	return begun;
}

void ky_pf_packet_end(struct ky_pf *pf, size_t begun)
{
	if (pf->interned.len)
		ky_pb_bytes(&pf->out, KY_PF_PACKET_INTERNED, pf->interned.data, pf->interned.len);
	pf->out.failed |= pf->interned.failed;
	ky_strbuf_clear(&pf->interned);
	ky_pb_end(&pf->out, begun);
}

uint64_t ky_pf_intern(struct ky_pf *pf, struct ky_pf_machine *machine, enum ky_pf_names table,
		      const char *text)
{
	struct ky_names *names = &machine->names[table];
	uintptr_t iid = (uintptr_t)ky_names_get(names, text);
	size_t begun;
	char *copy;

	if (iid)
		return iid;
	iid = names->len + 1;
	copy = ky_arena_strdup(&pf->arena, text);
	if (!copy || ky_names_set(names, copy, (void *)iid) < 0)
		pf->out.failed = true;
	begun = ky_pb_begin(&pf->interned, (uint32_t)table);
	ky_pb_uint(&pf->interned, 1, iid);
	ky_pb_text(&pf->interned, 2, text, strlen(text), NAME_BYTES);
	ky_pb_end(&pf->interned, begun);
	return iid;
}

uint64_t ky_pf_track_named(struct ky_pf *pf, const struct ky_pf_machine *machine, uint64_t parent,
			   const char *name)
{
	size_t packet = bare_packet(pf, machine);
	size_t track = ky_pb_begin(&pf->out, KY_PF_PACKET_TRACK_DESCRIPTOR);
	uint64_t uuid = ++pf->next_uuid;

	ky_pb_uint(&pf->out, KY_PF_TRACK_UUID, uuid);
	if (parent)
		ky_pb_uint(&pf->out, KY_PF_TRACK_PARENT, parent);
	ky_pb_text(&pf->out, KY_PF_TRACK_NAME, name, strlen(name), NAME_BYTES);
	ky_pb_end(&pf->out, track);
	ky_pf_packet_end(pf, packet);
	return uuid;
}

struct ky_pf_event ky_pf_event_begin(struct ky_pf *pf, struct ky_pf_machine *machine, int64_t ns,
				     int type, uint64_t track, const char *category,
				     const char *name)
{
	struct ky_pf_event event = {.packet = ky_pf_packet(pf, machine, ns)};

	ky_pb_uint(&pf->out, KY_PF_PACKET_SEQUENCE_FLAGS, SEQUENCE_NEEDED);
	event.event = ky_pb_begin(&pf->out, KY_PF_PACKET_TRACK_EVENT);
	ky_pb_uint(&pf->out, KY_PF_EVENT_TYPE, (uint64_t)type);
	ky_pb_uint(&pf->out, KY_PF_EVENT_TRACK, track);
	ky_pb_uint(&pf->out, KY_PF_EVENT_CATEGORY_IID,
		   ky_pf_intern(pf, machine, KY_PF_CATEGORIES, category));
	if (name)
		ky_pb_uint(&pf->out, KY_PF_EVENT_NAME_IID,
			   ky_pf_intern(pf, machine, KY_PF_EVENT_NAMES, name));
	return event;
}

void ky_pf_event_end(struct ky_pf *pf, struct ky_pf_event event)
{
	ky_pb_end(&pf->out, event.event);
	ky_pf_packet_end(pf, event.packet);
}

/* ---- CPUs --------------------------------------------------------------------------------- */

struct ky_pf_cpu *ky_pf_cpu_get(struct ky_pf *pf, struct ky_pf_machine *machine, uint32_t id)
{
	struct ky_pf_cpu *cpu = ky_map_get(&machine->cpus, id);

	if (cpu || id >= CPU_IDS)
		return cpu;
	cpu = ky_arena_new(&pf->arena, struct ky_pf_cpu);
	if (!cpu || ky_map_set(&machine->cpus, id, cpu) < 0) {
		pf->out.failed = true;
		return NULL;
	}
	cpu->id = id;
	ky_strbuf_init(&cpu->events);
	return cpu;
}

void ky_pf_cpu_flush(struct ky_pf *pf, const struct ky_pf_machine *machine, struct ky_pf_cpu *cpu)
{
	size_t packet, bundle;

	if (!cpu->events.len && !cpu->lost)
		return;
	packet = bare_packet(pf, machine);
	bundle = ky_pb_begin(&pf->out, KY_PF_PACKET_FTRACE);
	ky_pb_uint(&pf->out, KY_PF_BUNDLE_CPU, cpu->id);
	if (cpu->lost)
		ky_pb_uint(&pf->out, KY_PF_BUNDLE_LOST, 1);
	ky_strbuf_add(&pf->out, cpu->events.data, cpu->events.len);
	ky_pb_end(&pf->out, bundle);
	ky_pf_packet_end(pf, packet);
	pf->out.failed |= cpu->events.failed;
	ky_strbuf_clear(&cpu->events);
	cpu->lost = false;
}

static void flush_cpus(struct ky_pf *pf)
{
	for (size_t i = 0; i < pf->n_machines; i++) {
		struct ky_pf_machine *machine = &pf->machines[i];
		uint64_t id;
		size_t pos = 0;
		void *cpu;

		while (ky_map_next(&machine->cpus, &pos, &id, &cpu))
			ky_pf_cpu_flush(pf, machine, cpu);
	}
}

size_t ky_pf_ftrace(struct ky_strbuf *out, uint64_t time, int32_t pid)
{
	size_t begun = ky_pb_begin(out, KY_PF_BUNDLE_EVENT);

	ky_pb_uint(out, KY_PF_FTRACE_TIMESTAMP, time);
	ky_pb_uint(out, KY_PF_FTRACE_PID, (uint32_t)pid);
	return begun;
}

/* ---- machines ----------------------------------------------------------------------------- */

static void perfetto_put_clock(struct ky_pf *pf, int clock, uint64_t time)
{
	size_t begun = ky_pb_begin(&pf->out, 1);

	ky_pb_uint(&pf->out, 1, (uint64_t)clock);
	ky_pb_uint(&pf->out, 2, time);
	ky_pb_end(&pf->out, begun);
}

static bool is_unix_time(const struct ky_trace_class *trace)
{
	ky_vec_foreach(&trace->clocks, clock) {
		if (!(*clock)->is_unix_epoch)
			return false;
	}
	return true;
}

/*
 * Perfetto's own time line counts from boot. Ours counts from the clock's origin, and says of it
 * that it is the Unix epoch, where it is: so times are shown as they were, and equal to ours.
 */
static void put_clocks(struct ky_pf *pf, const struct ky_pf_machine *machine, int64_t ns)
{
	size_t packet = bare_packet(pf, machine);
	size_t snapshot;

	ky_pb_uint(&pf->out, KY_PF_PACKET_SEQUENCE_FLAGS, SEQUENCE_BEGINS);
	ky_pb_uint(&pf->out, KY_PF_PACKET_FIRST_ON_SEQUENCE, 1);
	snapshot = ky_pb_begin(&pf->out, KY_PF_PACKET_CLOCK_SNAPSHOT);
	perfetto_put_clock(pf, CLOCK_BOOT, ky_pf_time(pf, ns));
	if (is_unix_time(machine->kernel) && !pf->shift_ns)
		perfetto_put_clock(pf, CLOCK_REAL, ky_pf_time(pf, ns));
	ky_pb_uint(&pf->out, 2, CLOCK_BOOT);
	ky_pb_end(&pf->out, snapshot);
	ky_pf_packet_end(pf, packet);
}

static void perfetto_put_env(struct ky_pf *pf, uint32_t field, const struct ky_trace_class *trace,
			     const char *name)
{
	const struct ky_env *env = ky_env_find(trace, name);

	if (env && env->is_text)
		ky_pb_text(&pf->out, field, env->text, strlen(env->text), NAME_BYTES);
}

/* The kernel's release tells trace_processor what the states of threads mean. */
static void put_system(struct ky_pf *pf, const struct ky_pf_machine *machine, int64_t ns)
{
	size_t packet = ky_pf_packet(pf, machine, ns);
	size_t system = ky_pb_begin(&pf->out, KY_PF_PACKET_SYSTEM_INFO);
	size_t utsname = ky_pb_begin(&pf->out, 1);

	perfetto_put_env(pf, 1, machine->kernel, "sysname");
	perfetto_put_env(pf, 2, machine->kernel, "kernel_version");
	perfetto_put_env(pf, 3, machine->kernel, "kernel_release");
	ky_pb_end(&pf->out, utsname);
	perfetto_put_env(pf, 17, machine->kernel, "hostname");
	ky_pb_end(&pf->out, system);
	ky_pf_packet_end(pf, packet);
}

/* The threads that were there before, each named by a rename: later ones replace that. */
static void put_dump(struct ky_pf *pf, struct ky_pf_machine *machine, int64_t ns)
{
	struct ky_pf_cpu *cpu = ky_pf_cpu_get(pf, machine, 0);
	uint64_t tid, time = ky_pf_time(pf, ns);
	size_t pos = 0, packet, tree;
	void *value;

	if (!machine->dump.len || !cpu)
		return;
	packet = ky_pf_packet(pf, machine, ns);
	tree = ky_pb_begin(&pf->out, KY_PF_PACKET_PROCESS_TREE);
	while (ky_map_next(&machine->dump, &pos, &tid, &value)) {
		if (ky_pf_was_there(value))
			ky_pf_dump_tree(&pf->out, value);
	}
	ky_pb_end(&pf->out, tree);
	ky_pf_packet_end(pf, packet);
	for (pos = 0; ky_map_next(&machine->dump, &pos, &tid, &value);) {
		const struct ky_pf_dumped *dumped = value;

		if (ky_pf_was_there(dumped))
			ky_pf_rename(&cpu->events, time, dumped->tid, dumped->comm);
	}
	ky_pf_cpu_flush(pf, machine, cpu);
}

static void begin_machine(struct ky_pf *pf, struct ky_pf_machine *machine, int64_t ns)
{
	machine->begun = true;
	put_clocks(pf, machine, ns);
	put_system(pf, machine, ns);
	put_dump(pf, machine, ns);
}

/* ---- events ------------------------------------------------------------------------------- */

static int perfetto_write_out(struct ky_pf *pf, struct kymo_error *err)
{
	int ret;

	if (ky_strbuf_failed(&pf->out))
		return ky_error_nomem(err);
	ret = ky_write_all(pf->fd, pf->out.data, pf->out.len);
	ky_strbuf_clear(&pf->out);
	return ret < 0 ? ky_error_errno(err, -ret, "cannot write the Perfetto trace") : KYMO_OK;
}

static int one_event(struct ky_pf *pf, struct ky_pf_at *at, const struct ky_loss *loss)
{
	const struct ky_batch one = {
		.stream = at->stream, .events = at->event, .n_events = 1, .loss = loss};
	int ret;

	if (pf->n_timed++ == 0 && at->event->ns < 0)
		pf->shift_ns = -at->event->ns;
	if (!at->machine->begun)
		begin_machine(pf, at->machine, at->event->ns);
	at->cls = &pf->hosts[at->host->index].classes[at->event->cls->index];
	at->cpu = ky_pf_cpu_get(pf, at->machine,
				ky_event_cpu(at->event, &at->host->classes[at->event->cls->index]));
	if (loss && at->cpu)
		at->cpu->lost = true;
	pf->now = at;
	ret = ky_model_feed(pf->model, &one, at->err);
	pf->now = NULL;
	if (ret == KYMO_OK && pf->hosts[at->host->index].is_kernel)
		ky_pf_note_current(pf, at);
	if (ret == KYMO_OK && at->cls->handle)
		ret = at->cls->handle(pf, at);
	if (at->cpu && at->cpu->events.len >= BUNDLE_BYTES)
		ky_pf_cpu_flush(pf, at->machine, at->cpu);
	return ret;
}

/* No half packets: what an event that cannot be read has begun is taken back. */
static int safe_event(struct ky_pf *pf, struct ky_pf_at *at, const struct ky_loss *loss)
{
	size_t whole = pf->out.len;
	int ret = one_event(pf, at, loss);

	if (ret >= 0)
		return ret;
	pf->out.len = whole;
	ky_strbuf_clear(&pf->interned);
	if (ret == KYMO_E_FORMAT)
		ky_error_path(at->err, at->stream->file.path);
	return ret;
}

int ky_pf_batch(struct ky_sink *sink, const struct ky_batch *batch, struct kymo_error *err)
{
	struct ky_pf *pf = (struct ky_pf *)sink;
	struct ky_host *host = pf->model->streams[batch->stream->index].host;
	const struct ky_loss *loss = batch->loss;
	struct ky_pf_at at = {
		.stream = batch->stream,
		.host = host,
		.machine = pf->hosts[host->index].machine,
		.err = err,
	};
	int ret = KYMO_OK;

	if (loss && !batch->n_events)
		return ky_model_feed(pf->model, batch, err);
	for (size_t i = 0; i < batch->n_events && ret >= 0; i++) {
		at.event = &batch->events[i];
		if (at.event->ns == INT64_MIN) {
			pf->n_untimed++;
			continue;
		}
		if (ky_model_is_before(pf->model, host, at.event)) {
			const struct ky_batch one = {
				.stream = at.stream, .events = at.event, .n_events = 1};

			ret = ky_model_feed(pf->model, &one, err);
			continue;
		}
		ret = safe_event(pf, &at, loss);
		loss = NULL;
		if (ret >= 0 && pf->out.len >= WRITE_BYTES)
			ret = perfetto_write_out(pf, err);
	}
	return ret;
}

int ky_pf_finish(struct ky_sink *sink, struct kymo_error *err)
{
	struct ky_pf *pf = (struct ky_pf *)sink;
	int ret;

	if (!pf->n_timed && pf->n_untimed)
		return ky_error_set(err, KYMO_E_UNSUPPORTED,
				    "no event has a time, so there is no time line");
	ret = ky_model_end(pf->model, err);
	flush_cpus(pf);
	return ret < 0 ? ret : perfetto_write_out(pf, err);
}
