/* SPDX-License-Identifier: MIT */
/*
 * Samples of what CPUs run: read from their rings in the order of time, and written to data streams of their own, one for each
 * CPU. Of a recording of chosen threads, the rings have all threads, and the recorder leaves out the others.
 */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "os/now.h"
#include "record/kernel/session-internal.h"

#define PACKET_BYTES	    (256u * 1024)
#define RING_BYTES	    (1u << 20)
#define RING_MIN_BYTES	    (1u << 16)
#define READ_NS		    (KY_SESSION_SAMPLES_MS * INT64_C(1000000))
#define CONTEXT_FIXED_BYTES (4 + 4 + KY_SAMPLE_COMM_BYTES + 4 + 4 + 4 + 4)
#define PAYLOAD_BYTES	    (1 + 8)
#define PATH_MAX_BYTES	    4096
/* How often a live recording has each stack anew. */
#define TELL_AGAIN_NS UINT64_C(10000000000)

/* ---- opening ------------------------------------------------------------------------------ */

int ky_session_find_samples(struct ky_session *session, struct kymo_error *err)
{
	const struct ky_session_options *options = &session->options;
	struct ky_session_samples *samples = &session->samples;
	int ret = KYMO_OK;

	if (options->n_samples > KY_SAMPLE_SOURCES_MAX)
		return ky_error_set(err, KYMO_E_LIMIT,
				    "at most %d counters and events can be sampled",
				    KY_SAMPLE_SOURCES_MAX);
	for (size_t i = 0; i < options->n_samples && !ret; i++) {
		samples->sources[i] = options->samples[i];
		ret = ky_sample_source_find(&samples->sources[i], &session->fs, err);
	}
	session->kernel.sources = samples->sources;
	session->kernel.n_sources = options->n_samples;
	return ret;
}

static int session_samples_open_cpu(struct ky_session *session, uint32_t number,
				    struct kymo_error *err)
{
	struct ky_session_sampled cpu = {.stream = -1, .part = 1};
	/* Behind those of all groups. */
	uint64_t id = (uint64_t)(KY_SESSION_GROUPS_MAX + 1) << 32 | number;

	if (ky_packet_writer_init(&cpu.writer, PACKET_BYTES, session->kernel.uuid,
				  KY_KERNEL_SAMPLES_STREAM, id, number, true) < 0)
		return ky_error_nomem(err);
	if (ky_vec_push(&session->samples.cpus, cpu) < 0) {
		ky_packet_writer_fini(&cpu.writer);
		return ky_error_nomem(err);
	}
	return KYMO_OK;
}

/* So many a second need little room; of events there may be many at once. */
static uint64_t session_samples_ring_bytes(const struct ky_session *session)
{
	uint64_t bytes = RING_MIN_BYTES;
	bool has_events = false;

	for (size_t i = 0; i < session->kernel.n_sources; i++)
		has_events |= !session->samples.sources[i].frequency_hz;
	if (!has_events && !session->options.sample_stack_bytes)
		return RING_BYTES;
	while (bytes * 2 <= session->options.buffer_bytes)
		bytes *= 2;
	return bytes;
}

int ky_session_open_samples(struct ky_session *session, struct kymo_error *err)
{
	struct ky_session_samples *samples = &session->samples;
	const struct ky_samples_options options = {
		.sources = samples->sources,
		.n_sources = session->kernel.n_sources,
		.clock = &session->kernel.clock,
		.ring_bytes = session_samples_ring_bytes(session),
		.stack_bytes = session->options.sample_stack_bytes,
	};
	int ret;

	if (!options.n_sources)
		return KYMO_OK;
	ret = ky_samples_open(&options, &samples->rings, err);
	for (size_t i = 0; !ret && i < ky_samples_n_cpus(samples->rings); i++)
		ret = session_samples_open_cpu(session, ky_samples_cpu(samples->rings, i), err);
	return ret < 0 ? ret : ky_samples_watch(samples->rings, session->epoll_fd, samples, err);
}

void ky_session_close_samples(struct ky_session *session)
{
	struct ky_session_samples *samples = &session->samples;

	ky_samples_close(samples->rings);
	samples->rings = NULL;
	ky_vec_foreach(&samples->cpus, cpu)
		ky_packet_writer_fini(&cpu->writer);
	ky_vec_fini(&samples->cpus);
	ky_map_fini(&samples->left_out);
}

/* ---- chosen threads ----------------------------------------------------------------------- */

/* The kernel's list as it is now; children are chosen as their forks are read. */
static int session_samples_choose(struct ky_session *session, struct kymo_error *err)
{
	struct ky_session_samples *samples = &session->samples;
	struct ky_map chosen;
	size_t pos = 0;
	uint64_t tid;
	void *value;
	int ret;

	if (!session->has_list)
		return KYMO_OK;
	ky_map_fini(&samples->left_out);
	ret = ky_session_pids_read(session, &chosen, &samples->left_out, err);
	while (!ret && ky_map_next(&chosen, &pos, &tid, &value))
		if (ky_samples_choose(samples->rings, ky_pid_to_own(&session->view, (int32_t)tid)) <
		    0)
			ret = ky_error_nomem(err);
	ky_map_fini(&chosen);
	return ret;
}

static bool session_samples_wants(void *data, const struct ky_sample_thread *thread)
{
	struct ky_session *session = data;
	const char *comm = session->options.threads.comm;

	if (comm && strcmp(comm, thread->comm) != 0)
		return false;
	if (!session->has_list)
		return true;
	return thread->is_chosen &&
	       !ky_map_get(&session->samples.left_out,
			   (uint32_t)ky_pid_to_kernel(&session->view, thread->tid));
}

/* ---- writing ------------------------------------------------------------------------------ */

static size_t session_samples_index(const struct ky_session *session, uint32_t cpu)
{
	size_t i = 0;

	while (i + 1 < session->samples.cpus.len &&
	       ky_samples_cpu(session->samples.rings, i) != cpu)
		i++;
	return i;
}

static int session_samples_send(struct ky_session *session, size_t index, uint64_t end_cycles,
				struct kymo_error *err)
{
	struct ky_session_sampled *cpu = &session->samples.cpus.data[index];
	int ret;

	if (cpu->stream < 0) {
		char name[32];

		snprintf(name, sizeof(name), "samples_%u", cpu->writer.cpu_id);
		pthread_mutex_lock(&session->kernel.sink_lock);
		cpu->stream = ky_store_stream(session->kernel.packets, name, err);
		pthread_mutex_unlock(&session->kernel.sink_lock);
		if (cpu->stream < 0)
			return cpu->stream;
	}
	if (end_cycles < cpu->writer.last_cycles)
		end_cycles = cpu->writer.last_cycles;
	ret = ky_kernel_trace_send(&session->kernel, &cpu->writer, cpu->stream, NULL, end_cycles,
				   ky_samples_lost(session->samples.rings, index), err);
	ky_packet_writer_begin(&cpu->writer, end_cycles);
	cpu->packets++;
	/* A flight recorder may drop the packet, and the mappings and stacks in it. */
	if (session->options.overwrite) {
		ky_samples_renew(session->samples.rings);
		cpu->part++;
	}
	return ret;
}

/* Room for an event of this size, in the next packet if need be. NULL: @err says why. */
static uint8_t *session_samples_reserve(struct ky_session *session, uint32_t number, uint32_t id,
					uint64_t cycles, uint32_t bytes, struct kymo_error *err)
{
	size_t index = session_samples_index(session, number);
	struct ky_packet_writer *writer = &session->samples.cpus.data[index].writer;
	uint8_t *at;

	/* The clocks of both sources are compared by measuring: a neighbour may seem some ns younger. */
	if (cycles < writer->last_cycles)
		cycles = writer->last_cycles;
	at = ky_packet_writer_event(writer, id, cycles, bytes);
	if (at || session_samples_send(session, index, writer->last_cycles, err) < 0)
		return at;
	at = ky_packet_writer_event(writer, id, cycles, bytes);
	if (!at)
		ky_error_set(err, KYMO_E_LIMIT, "a sample does not fit into a packet");
	return at;
}

static uint8_t *session_samples_put(uint8_t *at, const void *data, size_t bytes)
{
	if (bytes)
		memcpy(at, data, bytes);
	return at + bytes;
}

/* A stack as an event has it: with its addresses the first time in the part of the output at hand. */
struct session_stack {
	uint32_t id, n;
	const uint64_t *addresses;
};

static const struct session_stack no_stacks[2];

static uint8_t *session_samples_put_context(struct ky_session *session, uint8_t *at,
					    const struct ky_sample_thread *thread,
					    const struct session_stack stacks[2])
{
	int32_t tid = ky_pid_to_kernel(&session->view, thread->tid);
	int32_t pid = ky_pid_to_kernel(&session->view, thread->pid);

	at = session_samples_put(at, &tid, sizeof(tid));
	at = session_samples_put(at, &pid, sizeof(pid));
	at = session_samples_put(at, thread->comm, sizeof(thread->comm));
	for (int i = 0; i < 2; i++)
		at = session_samples_put(at, &stacks[i].id, sizeof(stacks[i].id));
	for (int i = 0; i < 2; i++) {
		at = session_samples_put(at, &stacks[i].n, sizeof(stacks[i].n));
		at = session_samples_put(at, stacks[i].addresses, stacks[i].n * sizeof(uint64_t));
	}
	return at;
}

/*
 * A flight recorder keeps some packets of each CPU: each packet has its stacks, so that all of the sample must fit into one. Other
 * recordings have each stack once; again where another CPU has it before that packet is written.
 */
static int session_samples_settle(struct ky_session *session, size_t index,
				  const struct ky_sample *sample, struct kymo_error *err)
{
	const struct ky_packet_writer *writer = &session->samples.cpus.data[index].writer;
	uint32_t bytes = KY_EVENT_HEADER_MAX_BYTES + CONTEXT_FIXED_BYTES + PAYLOAD_BYTES +
			 (sample->n_kernel + sample->n_user) * (uint32_t)sizeof(uint64_t);

	return session->options.overwrite && writer->size_bytes - writer->used_bytes < bytes
		       ? session_samples_send(session, index, writer->last_cycles, err)
		       : KYMO_OK;
}

/* Readers of what is written now have the addresses, too, also after a kill of the recorder before it writes the other CPUs' packets. */
static bool session_samples_has(const struct ky_session *session, size_t index,
				const struct ky_sample_stack *stack)
{
	const struct ky_session_sampled *cpus = session->samples.cpus.data;

	if (stack->told[index] == cpus[index].part)
		return true;
	return !session->options.overwrite && stack->first_part == cpus[index].part &&
	       stack->first_packet < cpus[stack->first_writer].packets;
}

static struct session_stack session_samples_stack(struct ky_session *session, size_t index,
						  struct ky_sample_stack *stack,
						  const uint64_t *addresses, uint32_t n)
{
	const struct ky_session_sampled *cpu = &session->samples.cpus.data[index];

	if (!stack)
		return (struct session_stack){.n = n, .addresses = addresses};
	if (session_samples_has(session, index, stack))
		return (struct session_stack){.id = stack->id};
	if (stack->first_part != cpu->part) {
		stack->first_writer = (uint32_t)index;
		stack->first_part = cpu->part;
		stack->first_packet = cpu->packets;
	}
	stack->told[index] = cpu->part;
	return (struct session_stack){.id = stack->id, .n = n, .addresses = addresses};
}

static int session_samples_write(void *data, const struct ky_sample *sample, struct kymo_error *err)
{
	struct ky_session *session = data;
	size_t index = session_samples_index(session, sample->cpu);
	struct session_stack stacks[2];
	uint8_t source = (uint8_t)sample->source;
	uint8_t *at;

	if (session_samples_settle(session, index, sample, err) < 0)
		return KYMO_E_IO;
	stacks[0] = session_samples_stack(session, index, sample->kernel_stack, sample->kernel,
					  sample->n_kernel);
	stacks[1] = session_samples_stack(session, index, sample->user_stack, sample->user,
					  sample->n_user);
	at = session_samples_reserve(session, sample->cpu, KY_KERNEL_SAMPLE_EVENT, sample->cycles,
				     CONTEXT_FIXED_BYTES + PAYLOAD_BYTES +
					     (stacks[0].n + stacks[1].n) *
						     (uint32_t)sizeof(uint64_t),
				     err);
	if (!at)
		return KYMO_E_IO;
	at = session_samples_put_context(session, at, sample->thread, stacks);
	at = session_samples_put(at, &source, sizeof(source));
	(void)session_samples_put(at, &sample->period, sizeof(sample->period));
	session->samples.cpus.data[index].samples++;
	return KYMO_OK;
}

static int session_samples_begin_maps(struct ky_session *session,
				      const struct ky_sample_mapping *mapping,
				      struct kymo_error *err)
{
	int32_t pid = ky_pid_to_kernel(&session->view, mapping->thread->pid);
	uint8_t *at =
		session_samples_reserve(session, mapping->cpu, KY_KERNEL_SAMPLE_BEGIN,
					mapping->cycles, CONTEXT_FIXED_BYTES + sizeof(pid), err);

	if (!at)
		return KYMO_E_IO;
	at = session_samples_put_context(session, at, mapping->thread, no_stacks);
	(void)session_samples_put(at, &pid, sizeof(pid));
	return KYMO_OK;
}

/* In the order of the state dump's fields. */
static int session_samples_map(void *data, const struct ky_sample_mapping *mapping,
			       struct kymo_error *err)
{
	struct ky_session *session = data;
	const struct ky_sample_map *map = mapping->map;
	int32_t pid = ky_pid_to_kernel(&session->view, mapping->thread->pid);
	char id[2 * KY_SAMPLE_BUILD_ID_BYTES + 1] = "", path[PATH_MAX_BYTES];
	size_t path_bytes;
	uint8_t *at;

	if (!map)
		return session_samples_begin_maps(session, mapping, err);
	for (uint32_t i = 0; i < map->build_id_bytes; i++)
		snprintf(id + 2 * i, 3, "%02x", map->build_id[i]);
	path_bytes = (size_t)snprintf(path, sizeof(path), "%s", map->path) + 1;
	path_bytes = path_bytes < sizeof(path) ? path_bytes : sizeof(path);
	at = session_samples_reserve(session, mapping->cpu, KY_KERNEL_SAMPLE_MAP, mapping->cycles,
				     (uint32_t)(CONTEXT_FIXED_BYTES + 4 + 8 + 8 + 1 + 8 + 4 + 8 +
						strlen(id) + 1 + path_bytes),
				     err);
	if (!at)
		return KYMO_E_IO;
	at = session_samples_put_context(session, at, mapping->thread, no_stacks);
	at = session_samples_put(at, &pid, sizeof(pid));
	at = session_samples_put(at, &map->begin, sizeof(map->begin));
	at = session_samples_put(at, &map->end, sizeof(map->end));
	at = session_samples_put(at, &map->protection, sizeof(map->protection));
	at = session_samples_put(at, &map->offset, sizeof(map->offset));
	at = session_samples_put(at, &map->device, sizeof(map->device));
	at = session_samples_put(at, &map->inode, sizeof(map->inode));
	at = session_samples_put(at, id, strlen(id) + 1);
	(void)session_samples_put(at, path, path_bytes);
	return KYMO_OK;
}

/* ---- the recording ------------------------------------------------------------------------ */

int ky_session_begin_samples(struct ky_session *session, struct kymo_error *err)
{
	struct ky_session_samples *samples = &session->samples;
	uint64_t now = ky_os_clock_now(&session->kernel.clock);

	if (!samples->rings)
		return KYMO_OK;
	ky_vec_foreach(&samples->cpus, cpu)
		ky_packet_writer_begin(&cpu->writer, now);
	return ky_samples_begin(samples->rings, err);
}

static int session_samples_read(struct ky_session *session, bool final, struct kymo_error *err)
{
	const struct ky_samples_listener listener = {
		.data = session,
		.wants = session_samples_wants,
		.sample = session_samples_write,
		.mapping = session_samples_map,
	};
	int ret = session_samples_choose(session, err);

	session->samples.read_ns = (uint64_t)ky_os_now_ns();
	session->samples.is_woken = false;
	return ret < 0 ? ret : ky_samples_read(session->samples.rings, final, &listener, err);
}

int ky_session_step_samples(struct ky_session *session, struct kymo_error *err)
{
	struct ky_session_samples *samples = &session->samples;

	if (!samples->rings || !session->started || session->pauses.is_on)
		return KYMO_OK;
	if (!samples->is_woken && ky_os_now_ns() - (int64_t)samples->read_ns < READ_NS)
		return KYMO_OK;
	return session_samples_read(session, false, err);
}

/* A reader that comes later knows nothing of packets before. */
static void session_samples_tell_again(struct ky_session_samples *samples)
{
	uint64_t now = ky_os_now_ns();

	if (now - samples->told_ns < TELL_AGAIN_NS)
		return;
	samples->told_ns = now;
	ky_vec_foreach(&samples->cpus, cpu)
		cpu->part++;
}

int ky_session_flush_samples(struct ky_session *session, uint64_t *until, struct kymo_error *err)
{
	struct ky_session_samples *samples = &session->samples;
	int ret = KYMO_OK;

	if (!samples->rings || !session->started || session->pauses.is_on)
		return KYMO_OK;
	ret = session_samples_read(session, false, err);
	for (size_t i = 0; i < samples->cpus.len && !ret; i++)
		if (samples->cpus.data[i].writer.events)
			ret = session_samples_send(session, i, 0, err);
	session_samples_tell_again(samples);
	if (ky_samples_known_until(samples->rings) < *until)
		*until = ky_samples_known_until(samples->rings);
	return ret;
}

int ky_session_pause_samples(struct ky_session *session, uint64_t end_cycles,
			     struct kymo_error *err)
{
	struct ky_session_samples *samples = &session->samples;
	int ret = KYMO_OK;

	if (!samples->rings)
		return KYMO_OK;
	ky_samples_pause(samples->rings);
	if (!session->pauses.is_on || !session->stopped)
		ret = session_samples_read(session, true, err);
	for (size_t i = 0; i < samples->cpus.len && !ret; i++)
		ret = session_samples_send(session, i, end_cycles, err);
	return ret;
}

int ky_session_split_samples(struct ky_session *session, uint64_t end_cycles,
			     struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (size_t i = 0; i < session->samples.cpus.len && !ret; i++) {
		struct ky_packet_writer *writer = &session->samples.cpus.data[i].writer;
		uint64_t least = writer->last_cycles + ky_kernel_trace_step(&session->kernel);

		ret = session_samples_send(session, i, end_cycles < least ? least : end_cycles,
					   err);
		session->samples.cpus.data[i].part++;
	}
	return ret;
}

int ky_session_continue_samples(struct ky_session *session, struct kymo_error *err)
{
	int ret = KYMO_OK;

	if (!session->samples.rings)
		return KYMO_OK;
	ky_samples_renew(session->samples.rings);
	for (size_t i = 0; i < session->samples.cpus.len && !ret; i++) {
		struct ky_packet_writer *writer = &session->samples.cpus.data[i].writer;

		ret = session_samples_send(session, i, writer->last_cycles, err);
		writer->begin_cycles += ky_kernel_trace_step(&session->kernel);
		writer->last_cycles = writer->begin_cycles;
	}
	return ret;
}

uint64_t ky_session_count_samples(const struct ky_session *session, uint64_t *lost)
{
	uint64_t n = 0;

	*lost = 0;
	for (size_t i = 0; i < session->samples.cpus.len; i++) {
		n += session->samples.cpus.data[i].samples;
		*lost += session->samples.rings ? ky_samples_lost(session->samples.rings, i) : 0;
	}
	return n;
}
