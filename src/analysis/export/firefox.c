/* SPDX-License-Identifier: MIT */
#include "analysis/export/firefox.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "flow/sinks/json-value.h"

#define BYTES_MAX ((uint64_t)1 << 30)
/* Of the names in texts. */
#define FUNCTION_MAX_BYTES 4096u
#define NO_STACK	   UINT32_MAX

/* The version of the format in which each thread has its own strings; the profiler takes older versions up to its own. */
#define FORMAT_VERSION 48

/* A table of columns: the texts of their values, separated by commas. */
enum {
	SAMPLE_STACK,
	SAMPLE_TIME,
	SAMPLE_WEIGHT,
	MARKER_NAME,
	MARKER_BEGIN,
	MARKER_END,
	MARKER_PHASE,
	MARKER_CATEGORY,
	MARKER_DATA,
	STACK_FRAME,
	STACK_PREFIX,
	STACK_CATEGORY,
	FRAME_FUNC,
	FRAME_CATEGORY,
	FRAME_LINE,
	FUNC_NAME,
	FUNC_RESOURCE,
	RESOURCE_NAME,
	STRINGS,
	COLUMNS,
};

enum { CATEGORY_OTHER, CATEGORY_USER, CATEGORY_KERNEL, CATEGORY_SYSCALL, CATEGORY_CPU };

struct firefox_thread {
	struct ky_strbuf columns[COLUMNS];
	uint32_t n_samples, n_markers, n_stacks, n_frames, n_resources, n_strings;
	struct ky_names strings; /* text -> index + 1 */
	struct ky_map resources; /* string -> index + 1 */
	struct ky_map frames;	 /* hash of function, resource and line -> index + 1 */
	struct ky_map stacks;	 /* prefix and frame -> index + 1 */
	int64_t first_ns, last_ns;
};

struct firefox_own {
	struct ky_trace_symbols *symbols;
	uint64_t n_bytes;
};

/* ---- columns ------------------------------------------------------------------------------ */

static void firefox_next(struct ky_strbuf *column)
{
	if (column->len)
		ky_strbuf_addc(column, ',');
}

static void firefox_number(struct ky_strbuf *column, uint64_t value)
{
	firefox_next(column);
	ky_strbuf_addu(column, value);
}

static void firefox_null(struct ky_strbuf *column)
{
	firefox_next(column);
	ky_strbuf_adds(column, "null");
}

/* Milliseconds, exact to the nanosecond. */
static void firefox_time(struct ky_strbuf *column, int64_t ns)
{
	uint64_t value = ns < 0 ? 0 : (uint64_t)ns;

	firefox_next(column);
	ky_strbuf_addf(column, "%" PRIu64 ".%06" PRIu64, value / 1000000, value % 1000000);
}

static uint32_t firefox_string(struct ky_tracks *tracks, struct firefox_thread *thread,
			       const char *text)
{
	uintptr_t index = (uintptr_t)ky_names_get(&thread->strings, text);
	char *copy;

	if (index)
		return (uint32_t)index - 1;
	copy = ky_arena_strdup(&tracks->arena, text);
	if (!copy ||
	    ky_names_set(&thread->strings, copy, (void *)(uintptr_t)++thread->n_strings) < 0)
		tracks->out.failed = true;
	firefox_next(&thread->columns[STRINGS]);
	ky_json_text(&thread->columns[STRINGS], text, strlen(text));
	return thread->n_strings - 1;
}

static struct firefox_thread *firefox_thread(struct ky_tracks *tracks, struct ky_track *track)
{
	struct firefox_thread *thread = track->own;

	if (thread)
		return thread;
	thread = ky_arena_new(&tracks->arena, struct firefox_thread);
	track->own = thread;
	if (!thread)
		return NULL;
	for (int i = 0; i < COLUMNS; i++)
		ky_strbuf_init(&thread->columns[i]);
	thread->first_ns = INT64_MAX;
	return thread;
}

/* ---- stacks ------------------------------------------------------------------------------- */

static uint32_t firefox_resource(struct ky_tracks *tracks, struct firefox_thread *thread,
				 const char *object)
{
	const char *slash = strrchr(object, '/');
	uint32_t string = firefox_string(tracks, thread, slash && slash[1] ? slash + 1 : object);
	uintptr_t index = (uintptr_t)ky_map_get(&thread->resources, string);

	if (index)
		return (uint32_t)index - 1;
	if (ky_map_set(&thread->resources, string, (void *)(uintptr_t)++thread->n_resources) < 0)
		tracks->out.failed = true;
	firefox_number(&thread->columns[RESOURCE_NAME], string);
	return thread->n_resources - 1;
}

/* A frame, whose function is one of its own. */
static uint32_t firefox_frame(struct ky_tracks *tracks, struct firefox_thread *thread,
			      const char *function, const char *object, uint32_t line,
			      bool is_kernel)
{
	uint32_t name = firefox_string(tracks, thread, function);
	uint32_t resource =
		object && object[0] ? firefox_resource(tracks, thread, object) : UINT32_MAX;
	uint64_t key = ky_hash_u64((uint64_t)name << 32 | resource) ^ ky_hash_u64(line + 1u);
	uintptr_t index = (uintptr_t)ky_map_get(&thread->frames, key);

	if (index)
		return (uint32_t)index - 1;
	if (ky_map_set(&thread->frames, key, (void *)(uintptr_t)++thread->n_frames) < 0)
		tracks->out.failed = true;
	firefox_number(&thread->columns[FRAME_FUNC], thread->n_frames - 1);
	firefox_number(&thread->columns[FRAME_CATEGORY],
		       is_kernel ? CATEGORY_KERNEL : CATEGORY_USER);
	if (line)
		firefox_number(&thread->columns[FRAME_LINE], line);
	else
		firefox_null(&thread->columns[FRAME_LINE]);
	firefox_number(&thread->columns[FUNC_NAME], name);
	firefox_next(&thread->columns[FUNC_RESOURCE]);
	ky_strbuf_addi(&thread->columns[FUNC_RESOURCE],
		       resource == UINT32_MAX ? -1 : (int64_t)resource);
	return thread->n_frames - 1;
}

static uint32_t firefox_stack(struct ky_tracks *tracks, struct firefox_thread *thread,
			      uint32_t prefix, uint32_t frame, bool is_kernel)
{
	uint64_t key = (uint64_t)(prefix + 1u) << 32 | frame;
	uintptr_t index = (uintptr_t)ky_map_get(&thread->stacks, key);

	if (index)
		return (uint32_t)index - 1;
	if (ky_map_set(&thread->stacks, key, (void *)(uintptr_t)++thread->n_stacks) < 0)
		tracks->out.failed = true;
	firefox_number(&thread->columns[STACK_FRAME], frame);
	if (prefix == NO_STACK)
		firefox_null(&thread->columns[STACK_PREFIX]);
	else
		firefox_number(&thread->columns[STACK_PREFIX], prefix);
	firefox_number(&thread->columns[STACK_CATEGORY],
		       is_kernel ? CATEGORY_KERNEL : CATEGORY_USER);
	return thread->n_stacks - 1;
}

/* The frames of one address, which may be inlined ones. */
static uint32_t firefox_address(struct ky_tracks *tracks, struct firefox_thread *thread,
				const struct ky_event *event, uint64_t address, bool is_return,
				bool is_kernel, uint32_t prefix)
{
	const struct firefox_own *own = tracks->own;
	const struct ky_symbols_frame *frames = NULL;
	size_t n = own->symbols ? ky_trace_symbols_resolve(own->symbols, event, address, is_return,
							   &frames)
				: 0;
	char hex[32];

	snprintf(hex, sizeof(hex), "0x%" PRIx64, address);
	if (!n)
		return firefox_stack(tracks, thread, prefix,
				     firefox_frame(tracks, thread, hex, is_kernel ? "[kernel]" : "",
						   0, is_kernel),
				     is_kernel);
	while (n-- > 0) {
		const char *function = frames[n].function ? frames[n].function : hex;
		uint32_t frame = firefox_frame(tracks, thread, function, frames[n].object,
					       frames[n].line, is_kernel);

		prefix = firefox_stack(tracks, thread, prefix, frame, is_kernel);
	}
	return prefix;
}

/* The same of a function that has only a name. */
static uint32_t firefox_named(struct ky_tracks *tracks, struct firefox_thread *thread,
			      const struct ky_stack_name *name, uint32_t prefix)
{
	char text[FUNCTION_MAX_BYTES];

	snprintf(text, sizeof(text), "%.*s",
		 (int)(name->len < sizeof(text) ? name->len : sizeof(text)), name->text);
	return firefox_stack(tracks, thread, prefix,
			     firefox_frame(tracks, thread, text, name->is_kernel ? "[kernel]" : "",
					   0, name->is_kernel),
			     name->is_kernel);
}

static void firefox_sample(struct ky_tracks *tracks, struct firefox_thread *thread,
			   const struct ky_track_item *item)
{
	const struct ky_stack_seen *seen = item->stack;
	uint32_t stack = NO_STACK;

	for (uint32_t i = seen->n_names; i-- > 0;)
		stack = firefox_named(tracks, thread, &seen->names[i], stack);
	for (uint32_t i = seen->n_user; i-- > 0;)
		stack = firefox_address(tracks, thread, seen->event, seen->user[i], i > 0, false,
					stack);
	for (uint32_t i = seen->n_kernel; i-- > 0;)
		stack = firefox_address(tracks, thread, seen->event, seen->kernel[i], i > 0, true,
					stack);
	if (stack == NO_STACK)
		firefox_null(&thread->columns[SAMPLE_STACK]);
	else
		firefox_number(&thread->columns[SAMPLE_STACK], stack);
	firefox_time(&thread->columns[SAMPLE_TIME], item->ns - tracks->origin_ns);
	firefox_number(&thread->columns[SAMPLE_WEIGHT], 1);
	thread->n_samples++;
}

/* ---- markers ------------------------------------------------------------------------------ */

static void firefox_data(struct ky_tracks *tracks, struct firefox_thread *thread,
			 const struct ky_track_item *item)
{
	struct ky_strbuf *column = &thread->columns[MARKER_DATA];
	struct ky_strbuf fields = KY_STRBUF_INIT;

	ky_tracks_json_fields(&fields, item->fields);
	firefox_next(column);
	ky_strbuf_adds(column, "{\"type\":\"kymo\",\"fields\":");
	ky_json_text(column, fields.data ? fields.data : "", fields.len);
	if (item->error) {
		ky_strbuf_adds(column, ",\"error\":");
		ky_json_text(column, item->error, strlen(item->error));
	}
	if (item->outcome) {
		ky_strbuf_adds(column, ",\"outcome\":");
		ky_json_text(column, item->outcome, strlen(item->outcome));
	}
	if (item->ran)
		ky_strbuf_addf(column, ",\"thread\":%d", item->ran->tid);
	ky_strbuf_addc(column, '}');
	tracks->out.failed |= fields.failed;
	ky_strbuf_fini(&fields);
}

static unsigned int firefox_category(const struct ky_track_item *item)
{
	return strcmp(item->category, "syscall") == 0  ? CATEGORY_SYSCALL
	       : strcmp(item->category, "sched") == 0  ? CATEGORY_CPU
	       : strcmp(item->category, "user") == 0   ? CATEGORY_USER
	       : strcmp(item->category, "kernel") == 0 ? CATEGORY_KERNEL
						       : CATEGORY_OTHER;
}

static void firefox_marker(struct ky_tracks *tracks, struct firefox_thread *thread,
			   const struct ky_track_item *item)
{
	/* Instant, interval, begin and end of an interval. */
	static const unsigned int phases[] = {
		[KY_TRACK_INSTANT] = 0,
		[KY_TRACK_WHOLE] = 1,
		[KY_TRACK_BEGIN] = 2,
		[KY_TRACK_END] = 3,
	};
	struct ky_strbuf *columns = thread->columns;

	firefox_number(&columns[MARKER_NAME], firefox_string(tracks, thread, item->name));
	firefox_number(&columns[MARKER_PHASE], phases[item->what]);
	firefox_number(&columns[MARKER_CATEGORY], firefox_category(item));
	if (item->what == KY_TRACK_END) {
		firefox_null(&columns[MARKER_BEGIN]);
		firefox_time(&columns[MARKER_END], item->ns - tracks->origin_ns);
	} else {
		firefox_time(&columns[MARKER_BEGIN], item->ns - tracks->origin_ns);
		if (item->what == KY_TRACK_WHOLE)
			firefox_time(&columns[MARKER_END], item->end_ns - tracks->origin_ns);
		else
			firefox_null(&columns[MARKER_END]);
	}
	firefox_data(tracks, thread, item);
	thread->n_markers++;
}

static uint64_t firefox_bytes(const struct firefox_thread *thread)
{
	uint64_t sum = 0;

	for (int i = 0; i < COLUMNS; i++)
		sum += thread->columns[i].len;
	return sum;
}

static int firefox_item(struct ky_tracks *tracks, const struct ky_track_item *item,
			struct kymo_error *err)
{
	struct firefox_own *own = tracks->own;
	struct firefox_thread *thread = firefox_thread(tracks, item->track);
	int64_t end_ns = item->what == KY_TRACK_WHOLE ? item->end_ns : item->ns;

	if (!thread)
		return ky_error_nomem(err);
	own->n_bytes -= firefox_bytes(thread);
	if (item->ns < thread->first_ns)
		thread->first_ns = item->ns;
	if (end_ns > thread->last_ns)
		thread->last_ns = end_ns;
	if (item->stack)
		firefox_sample(tracks, thread, item);
	else
		firefox_marker(tracks, thread, item);
	own->n_bytes += firefox_bytes(thread);
	if (own->n_bytes <= BYTES_MAX)
		return 0;
	ky_error_set(err, KYMO_E_UNSUPPORTED,
		     "the Firefox profiler's format would take more than 1 GiB of memory");
	ky_error_hint(
		err,
		"choose a shorter range or fewer events, or another format, such as Perfetto's");
	return KYMO_E_UNSUPPORTED;
}

/* ---- the profile -------------------------------------------------------------------------- */

static void firefox_column(struct ky_strbuf *out, const char *name, const struct ky_strbuf *column)
{
	ky_strbuf_addf(out, "\"%s\":[", name);
	ky_strbuf_add(out, column->data, column->len);
	ky_strbuf_adds(out, "],");
	out->failed |= column->failed;
}

/* A column of the same value. */
static void firefox_same(struct ky_strbuf *out, const char *name, uint32_t n, const char *value)
{
	ky_strbuf_addf(out, "\"%s\":[", name);
	for (uint32_t i = 0; i < n; i++)
		ky_strbuf_addf(out, "%s%s", i ? "," : "", value);
	ky_strbuf_adds(out, "],");
}

static void firefox_length(struct ky_strbuf *out, uint32_t n, const char *after)
{
	ky_strbuf_addf(out, "\"length\":%u}%s", n, after);
}

static void firefox_put_samples(struct ky_strbuf *out, struct firefox_thread *thread)
{
	ky_strbuf_adds(out, "\"samples\":{\"weightType\":\"samples\",");
	firefox_column(out, "stack", &thread->columns[SAMPLE_STACK]);
	firefox_column(out, "time", &thread->columns[SAMPLE_TIME]);
	firefox_column(out, "weight", &thread->columns[SAMPLE_WEIGHT]);
	firefox_length(out, thread->n_samples, ",\n\"markers\":{");
	firefox_column(out, "name", &thread->columns[MARKER_NAME]);
	firefox_column(out, "startTime", &thread->columns[MARKER_BEGIN]);
	firefox_column(out, "endTime", &thread->columns[MARKER_END]);
	firefox_column(out, "phase", &thread->columns[MARKER_PHASE]);
	firefox_column(out, "category", &thread->columns[MARKER_CATEGORY]);
	firefox_column(out, "data", &thread->columns[MARKER_DATA]);
	firefox_length(out, thread->n_markers, ",\n");
}

static void firefox_put_stacks(struct ky_strbuf *out, struct firefox_thread *thread)
{
	uint32_t n = thread->n_frames;

	ky_strbuf_adds(out, "\"stackTable\":{");
	firefox_column(out, "frame", &thread->columns[STACK_FRAME]);
	firefox_column(out, "prefix", &thread->columns[STACK_PREFIX]);
	firefox_column(out, "category", &thread->columns[STACK_CATEGORY]);
	firefox_same(out, "subcategory", thread->n_stacks, "0");
	firefox_length(out, thread->n_stacks, ",\n\"frameTable\":{");
	firefox_same(out, "address", n, "-1");
	firefox_same(out, "inlineDepth", n, "0");
	firefox_column(out, "category", &thread->columns[FRAME_CATEGORY]);
	firefox_same(out, "subcategory", n, "0");
	firefox_column(out, "func", &thread->columns[FRAME_FUNC]);
	firefox_same(out, "nativeSymbol", n, "null");
	firefox_same(out, "innerWindowID", n, "0");
	firefox_same(out, "implementation", n, "null");
	firefox_column(out, "line", &thread->columns[FRAME_LINE]);
	firefox_same(out, "column", n, "null");
	firefox_length(out, n, ",\n\"funcTable\":{");
	firefox_same(out, "isJS", n, "false");
	firefox_same(out, "relevantForJS", n, "false");
	firefox_column(out, "name", &thread->columns[FUNC_NAME]);
	firefox_column(out, "resource", &thread->columns[FUNC_RESOURCE]);
	firefox_same(out, "fileName", n, "null");
	firefox_same(out, "lineNumber", n, "null");
	firefox_same(out, "columnNumber", n, "null");
	firefox_length(out, n, ",\n");
}

static void firefox_put_rest(struct ky_strbuf *out, struct firefox_thread *thread)
{
	ky_strbuf_adds(out, "\"resourceTable\":{");
	firefox_same(out, "lib", thread->n_resources, "null");
	firefox_column(out, "name", &thread->columns[RESOURCE_NAME]);
	firefox_same(out, "host", thread->n_resources, "null");
	firefox_same(out, "type", thread->n_resources, "1");
	firefox_length(out, thread->n_resources,
		       ",\n\"nativeSymbols\":{\"libIndex\":[],"
		       "\"address\":[],\"name\":[],\"functionSize\":[],");
	firefox_length(out, 0, ",\n\"stringArray\":[");
	ky_strbuf_add(out, thread->columns[STRINGS].data, thread->columns[STRINGS].len);
	ky_strbuf_adds(out, "]}");
}

static void firefox_put_thread(struct ky_tracks *tracks, const struct ky_track *track,
			       struct firefox_thread *thread)
{
	static const char *const groups[KY_TRACK_KINDS] = {
		[KY_TRACK_CPU] = "CPUs",
		[KY_TRACK_INTERRUPTS] = "interrupts",
		[KY_TRACK_DEVICE] = "disks",
		[KY_TRACK_STREAM] = "streams",
	};
	struct ky_strbuf *out = &tracks->out;
	const char *group = groups[track->kind];
	bool is_thread = track->kind == KY_TRACK_THREAD;
	const char *process = !is_thread ? group : track->process[0] ? track->process : track->name;

	ky_strbuf_adds(out, "{\"processType\":\"default\",\"processName\":");
	ky_json_text(out, process, strlen(process));
	ky_strbuf_adds(out, ",\"name\":");
	ky_json_text(out, track->name, strlen(track->name));
	if (is_thread)
		ky_strbuf_addf(out, ",\"pid\":\"%d\"", track->pid);
	else
		ky_strbuf_addf(out, ",\"pid\":\"%s\"", group);
	ky_strbuf_addf(out, ",\"tid\":%d,\"isMainThread\":%s,\"processStartupTime\":0,", track->tid,
		       is_thread && track->tid != track->pid ? "false" : "true");
	ky_strbuf_adds(out, "\"processShutdownTime\":null,\"registerTime\":0,"
			    "\"unregisterTime\":null,\"pausedRanges\":[],\"showMarkersInTimeline\":"
			    "true,\n");
	firefox_put_samples(out, thread);
	firefox_put_stacks(out, thread);
	firefox_put_rest(out, thread);
	for (int i = 0; i < COLUMNS; i++)
		ky_strbuf_fini(&thread->columns[i]);
}

static const char firefox_meta[] =
	"\"interval\":1,\"processType\":0,\"product\":\"kymo\",\"stackwalk\":1,"
	"\"symbolicated\":true,\"debug\":false,\"categories\":["
	"{\"name\":\"Other\",\"color\":\"grey\",\"subcategories\":[\"Other\"]},"
	"{\"name\":\"User\",\"color\":\"yellow\",\"subcategories\":[\"Other\"]},"
	"{\"name\":\"Kernel\",\"color\":\"orange\",\"subcategories\":[\"Other\"]},"
	"{\"name\":\"System call\",\"color\":\"blue\",\"subcategories\":[\"Other\"]},"
	"{\"name\":\"CPU\",\"color\":\"green\",\"subcategories\":[\"Other\"]}],"
	"\"markerSchema\":[{\"name\":\"kymo\",\"display\":[\"marker-chart\",\"marker-table\","
	"\"timeline-overview\"],\"tableLabel\":\"{marker.data.fields}\",\"data\":["
	"{\"key\":\"fields\",\"label\":\"Fields\",\"format\":\"string\",\"searchable\":true},"
	"{\"key\":\"error\",\"label\":\"Error\",\"format\":\"string\",\"searchable\":true},"
	"{\"key\":\"outcome\",\"label\":\"Outcome\",\"format\":\"string\"},"
	"{\"key\":\"thread\",\"label\":\"Thread\",\"format\":\"integer\"}]}]";

static int firefox_end(struct ky_tracks *tracks, struct kymo_error *err)
{
	struct ky_strbuf *out = &tracks->out;
	int64_t origin_ns = tracks->origin_ns == INT64_MIN ? 0 : tracks->origin_ns;
	const char *between = "\n";

	(void)err;
	ky_strbuf_addf(out, "{\"meta\":{\"preprocessedProfileVersion\":%d,\"version\":29,",
		       FORMAT_VERSION);
	ky_strbuf_addf(out, "\"startTime\":%" PRId64 ".%06d,", origin_ns / 1000000,
		       (int)(origin_ns < 0 ? 0 : origin_ns % 1000000));
	ky_strbuf_adds(out, firefox_meta);
	ky_strbuf_adds(out, "},\"libs\":[],\"threads\":[");
	ky_vec_foreach(&tracks->list, track) {
		if (!(*track)->own)
			continue;
		ky_strbuf_adds(out, between);
		firefox_put_thread(tracks, *track, (*track)->own);
		between = ",\n";
	}
	ky_strbuf_adds(out, "]}\n");
	return 0;
}

static int firefox_begin(struct ky_tracks *tracks, struct kymo_error *err)
{
	struct firefox_own *own = tracks->own;

	(void)err;
	/* Resolving changes what the symbols remember. */
	own->symbols = (struct ky_trace_symbols *)(uintptr_t)tracks->options;
	return 0;
}

static void firefox_free(struct ky_tracks *tracks)
{
	ky_vec_foreach(&tracks->list, track) {
		struct firefox_thread *thread = (*track)->own;

		if (!thread)
			continue;
		for (int i = 0; i < COLUMNS; i++)
			ky_strbuf_fini(&thread->columns[i]);
		ky_names_fini(&thread->strings);
		ky_map_fini(&thread->resources);
		ky_map_fini(&thread->frames);
		ky_map_fini(&thread->stacks);
	}
}

static const struct ky_tracks_form firefox_form = {
	.what = "the profile",
	.wants_model = true,
	.wants_calls = true,
	.wants_stacks = true,
	.own_bytes = sizeof(struct firefox_own),
	.begin = firefox_begin,
	.item = firefox_item,
	.end = firefox_end,
	.free = firefox_free,
};

int ky_firefox_open(const struct ky_trace_set *set, int fd, struct ky_trace_symbols *symbols,
		    struct ky_sink **sink, struct kymo_error *err)
{
	return ky_tracks_open(set, fd, &firefox_form, symbols, sink, err);
}
