/* SPDX-License-Identifier: MIT */
/* kymo/reader.h: opening, and going through the events. */
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/arena.h"
#include "base/error.h"
#include "flow/graph/parallel.h"
#include "flow/graph/range.h"
#include "flow/graph/select.h"
#include "store/read/clocks.h"

_Static_assert(offsetof(struct kymo_event, event_class) == offsetof(struct ky_event, cls), "cls");
_Static_assert(offsetof(struct kymo_event, time_ns) == offsetof(struct ky_event, ns), "ns");
_Static_assert(offsetof(struct kymo_event, cycles) == offsetof(struct ky_event, cycles), "cycles");
_Static_assert(offsetof(struct kymo_event, cpu) == offsetof(struct ky_event, cpu_id), "cpu");
_Static_assert((int)KYMO_LOG_INFO == (int)KY_LOG_INFO, "log levels");
_Static_assert((int)KYMO_LOG_WARNING == (int)KY_LOG_WARNING, "log levels");

/* The size of the first version's options. */
#define OPTIONS_MIN offsetof(struct kymo_reader_options, recover)

struct kymo_reader {
	struct ky_arena arena; /* what the options say: stages borrow it */
	struct kymo_reader_options options;
	struct ky_log log;
	struct ky_trace_set set;
	struct ky_thread_pool *pool;
	struct ky_flow *flow;
	struct ky_batch rest; /* of what the graph gave last: it is handed out by runs */
	struct kymo_loss loss;
	bool ended;
};

/* ---- options ----------------------------------------------------------------------------- */

static int copy_text(struct ky_arena *arena, const char **text)
{
	if (!*text)
		return KYMO_OK;
	*text = ky_arena_strdup(arena, *text);
	return *text ? KYMO_OK : KYMO_E_MEMORY;
}

static int copy_list(struct ky_arena *arena, const char *const **list, size_t n,
		     struct kymo_error *err)
{
	const char **copy;

	if (!n)
		return KYMO_OK;
	if (!*list)
		return ky_error_set(err, KYMO_E_INVALID, "%zu names, but no list of them", n);
	copy = ky_arena_array(arena, n, sizeof(*copy));
	if (!copy)
		return ky_error_nomem(err);
	for (size_t i = 0; i < n; i++) {
		copy[i] = (*list)[i];
		if (!copy[i])
			return ky_error_set(err, KYMO_E_INVALID, "a name in a list is NULL");
		if (copy_text(arena, &copy[i]) < 0)
			return ky_error_nomem(err);
	}
	*list = copy;
	return KYMO_OK;
}

static int reader_take_options(struct kymo_reader *reader,
			       const struct kymo_reader_options *options, struct kymo_error *err)
{
	struct kymo_reader_options *own = &reader->options;
	int ret = KYMO_OK;

	*own = kymo_reader_options_init();
	if (options)
		ret = ky_api_options(own, sizeof(*own), OPTIONS_MIN, options, err);
	if (ret == KYMO_OK && own->begin_ns > own->end_ns)
		ret = ky_error_set(err, KYMO_E_INVALID, "the end is before the begin");
	if (ret == KYMO_OK && copy_text(&reader->arena, &own->filter) < 0)
		ret = ky_error_nomem(err);
	if (ret == KYMO_OK)
		ret = copy_list(&reader->arena, &own->events, own->n_events, err);
	if (ret == KYMO_OK)
		ret = copy_list(&reader->arena, &own->streams, own->n_streams, err);
	if (ret == KYMO_OK)
		ret = copy_list(&reader->arena, &own->clock_offsets, own->n_clock_offsets, err);
	return ret;
}

static void reader_write_log(void *data, enum ky_log_level level, const char *text)
{
	const struct kymo_reader *reader = data;

	reader->options.log(reader->options.log_data, (enum kymo_log_level)level, text);
}

/* ---- opening ---------------------------------------------------------------------------- */

static int check_paths(const char *const *paths, size_t n_paths, struct kymo_error *err)
{
	if (!paths || !n_paths)
		return ky_error_set(err, KYMO_E_INVALID, "no path of a trace");
	for (size_t i = 0; i < n_paths; i++) {
		if (!paths[i])
			return ky_error_set(err, KYMO_E_INVALID, "a path is NULL");
	}
	return KYMO_OK;
}

static void reader_select_events(const struct kymo_reader *reader, struct ky_selection *selection)
{
	ky_selection_init(selection);
	selection->filter = reader->options.filter;
	selection->events = reader->options.events;
	selection->n_events = reader->options.n_events;
	selection->streams = reader->options.streams;
	selection->n_streams = reader->options.n_streams;
	selection->begin_ns = reader->options.begin_ns;
	selection->end_ns = reader->options.end_ns;
}

static int reader_open_set(struct kymo_reader *reader, const char *const *paths, size_t n_paths,
			   struct kymo_error *err)
{
	const struct ky_trace_options options = {
		.recover = reader->options.recover,
		.clock_offsets = reader->options.clock_offsets,
		.n_clock_offsets = reader->options.n_clock_offsets,
	};

	int ret = ky_trace_set_open_with(&reader->set, paths, n_paths, &options,
					 reader->options.log ? &reader->log : NULL, err);

	if (ret == KYMO_OK && !reader->options.force_correlate)
		ret = ky_clocks_correlate(&reader->set, err);
	return ret;
}

static int reader_open_flow(struct kymo_reader *reader, struct kymo_error *err)
{
	unsigned int jobs = reader->options.jobs;
	struct ky_selection selection;
	int ret = ky_thread_pool_new(jobs ? jobs : ky_cpus_usable(), &reader->pool, err);

	if (ret < 0)
		return ret;
	reader_select_events(reader, &selection);
	if (ky_thread_pool_jobs(reader->pool) > 1)
		selection.pool = reader->pool;
	return ky_flow_open_selected(&reader->set, &selection, &reader->flow, err);
}

int kymo_reader_open(const char *const *paths, size_t n_paths,
		     const struct kymo_reader_options *options, struct kymo_reader **out,
		     struct kymo_error *err)
{
	struct kymo_reader *reader;
	int ret;

	if (!out)
		return ky_error_set(err, KYMO_E_INVALID, "no place for the reader");
	*out = NULL;
	ret = check_paths(paths, n_paths, err);
	if (ret < 0)
		return ret;
	reader = calloc(1, sizeof(*reader));
	if (!reader)
		return ky_error_nomem(err);
	ky_arena_init(&reader->arena);
	ret = reader_take_options(reader, options, err);
	reader->log = (struct ky_log){.write = reader_write_log, .data = reader};
	if (ret == KYMO_OK)
		ret = reader_open_set(reader, paths, n_paths, err);
	if (ret == KYMO_OK)
		ret = reader_open_flow(reader, err);
	if (ret < 0) {
		kymo_reader_close(reader);
		return ret;
	}
	*out = reader;
	return KYMO_OK;
}

void kymo_reader_close(struct kymo_reader *reader)
{
	if (!reader)
		return;
	ky_flow_close(reader->flow);
	ky_thread_pool_free(reader->pool);
	ky_trace_set_close(&reader->set);
	ky_arena_fini(&reader->arena);
	free(reader);
}

size_t kymo_reader_n_traces(const struct kymo_reader *reader)
{
	return reader ? reader->set.traces.len : 0;
}

const struct kymo_trace *kymo_reader_trace(const struct kymo_reader *reader, size_t i)
{
	return i < kymo_reader_n_traces(reader) ? trace_out(reader->set.traces.data[i]) : NULL;
}

size_t kymo_reader_n_streams(const struct kymo_reader *reader)
{
	return reader ? reader->set.streams.len : 0;
}

const struct kymo_stream *kymo_reader_stream(const struct kymo_reader *reader, size_t i)
{
	return i < kymo_reader_n_streams(reader) ? stream_out(reader->set.streams.data[i]) : NULL;
}

int kymo_reader_range(const struct kymo_reader *reader, int64_t *begin_ns, int64_t *end_ns,
		      struct kymo_error *err)
{
	if (!reader || !begin_ns || !end_ns)
		return ky_error_set(err, KYMO_E_INVALID,
				    "kymo_reader_range() wants a reader, a begin and an end");
	return ky_set_range(&reader->set, begin_ns, end_ns, err);
}

int kymo_reader_count(struct kymo_reader *reader, uint64_t *n_events, struct kymo_error *err)
{
	struct ky_selection selection;
	struct ky_pass pass = {0};
	int ret;

	if (!reader || !n_events)
		return ky_error_set(err, KYMO_E_INVALID,
				    "kymo_reader_count() wants a reader and a number");
	reader_select_events(reader, &selection);
	ret = ky_count_run(&pass, reader->pool, &reader->set, &selection, err);
	*n_events = pass.n_events;
	return ret;
}

/* ---- events ----------------------------------------------------------------------------- */

static const struct kymo_loss *loss_out(struct kymo_reader *reader, const struct ky_loss *loss)
{
	reader->loss = (struct kymo_loss){
		.events = loss->events,
		.packets = loss->packets,
		.begin_ns = loss->begin_ns,
		.end_ns = loss->end_ns,
		.stream = stream_out(loss->stream),
		.damage = loss->damage,
		.skipped_bytes = loss->skipped_bytes,
	};
	return &reader->loss;
}

int kymo_reader_next(struct kymo_reader *reader, struct kymo_batch *batch, struct kymo_error *err)
{
	struct ky_batch in;
	int ret;

	if (__builtin_expect(!reader || !batch, 0))
		return ky_error_set(err, KYMO_E_INVALID,
				    "kymo_reader_next() wants a reader and a batch");
	if (reader->ended)
		return 0;
	while (!ky_batch_run(&reader->rest, &in)) {
		ret = ky_flow_next(reader->flow, &reader->rest, err);
		if (ret <= 0) {
			reader->rest = (struct ky_batch){.n_events = 0};
			reader->ended = true;
			ky_flow_selected_tell(reader->flow);
			return ret;
		}
	}
	batch->streams = in.stream;
	batch->n_events = in.n_events;
	batch->loss = in.loss ? loss_out(reader, in.loss) : NULL;
	batch->first_event = in.events;
	batch->event_bytes = sizeof(*in.events);
	return 1;
}

int kymo_reader_seek(struct kymo_reader *reader, int64_t time_ns, struct kymo_error *err)
{
	int ret;

	if (!reader)
		return ky_error_set(err, KYMO_E_INVALID, "kymo_reader_seek() wants a reader");
	if (time_ns < reader->options.begin_ns)
		time_ns = reader->options.begin_ns;
	reader->rest = (struct ky_batch){.n_events = 0};
	ret = ky_flow_seek(reader->flow, time_ns, err);
	reader->ended = ret < 0;
	return ret;
}

int kymo_reader_seek_end(struct kymo_reader *reader, int64_t before_ns, struct kymo_error *err)
{
	int64_t begin_ns, end_ns;
	int ret;

	if (!reader || before_ns < 0)
		return ky_error_set(err, KYMO_E_INVALID,
				    "kymo_reader_seek_end() wants a reader, and a time that is "
				    "not negative");
	ret = ky_set_range(&reader->set, &begin_ns, &end_ns, err);
	if (ret < 0)
		return ret;
	if (reader->options.end_ns < end_ns)
		end_ns = reader->options.end_ns;
	if (__builtin_sub_overflow(end_ns, before_ns, &begin_ns))
		begin_ns = INT64_MIN;
	return kymo_reader_seek(reader, begin_ns, err);
}

const struct kymo_stream *kymo_batch_stream(const struct kymo_batch *batch,
					    const struct kymo_event *event)
{
	if (!batch || !event)
		return NULL;
	return batch->streams ? batch->streams : stream_out(event_in(event)->packet->stream);
}

const char *kymo_batch_place(const struct kymo_batch *batch, const struct kymo_event *event,
			     uint64_t *offset_bytes)
{
	const struct ky_stream *stream = stream_in(kymo_batch_stream(batch, event));
	const struct ky_stream_part *part;
	uint64_t offset;

	if (!stream || !offset_bytes)
		return NULL;
	offset = event_in(event)->packet->file_offset_bytes + event_in(event)->begin_bits / 8;
	part = ky_stream_part_at(stream, offset);
	*offset_bytes = offset - (part ? part->at_bytes : 0);
	return part ? part->path : stream->file.path;
}
