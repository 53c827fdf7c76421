/* SPDX-License-Identifier: MIT */
/* The sink of trace.dat. The head has the names of threads, and so is written at the end, before the pages. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/export/trace-dat-internal.h"
#include "analysis/state/model-internal.h"
#include "base/error.h"
#include "os/file.h"

#define CPUS_MAX 4096
#define IDS_MAX	 60000

struct trace_dat {
	struct ky_sink sink;
	int fd;
	const char *directory;
	struct ky_model *model;
	struct ky_arena arena;
	struct ky_values values;
	struct ky_strbuf record;
	struct ky_dat_class **classes; /* by host, then event class */
	size_t n_classes;
	KY_VEC(struct ky_dat_cpu *) cpus; /* by number; NULL: none yet */
	uint64_t n_events, n_without_cpu;
	int64_t shift_ns; /* the format has no times before 0: the first event is then there */
};

/* ---- the machine -------------------------------------------------------------------------- */

static int trace_dat_host(struct trace_dat *dat, size_t at)
{
	const struct ky_host *host = ky_model_host(dat->model, at);
	const struct ky_trace_class *trace = host->trace->cls;

	dat->classes[at] =
		ky_arena_array(&dat->arena, trace->events.len + 1, sizeof(**dat->classes));
	if (!dat->classes[at])
		return KYMO_E_MEMORY;
	for (size_t i = 0; i < trace->events.len; i++) {
		if (dat->n_classes >= IDS_MAX)
			return KYMO_E_LIMIT;
		if (ky_dat_class_init(&dat->classes[at][i], &dat->arena, host,
				      trace->events.data[i],
				      (uint16_t)(KY_DAT_FIRST_ID + dat->n_classes)) < 0)
			return KYMO_E_MEMORY;
		dat->n_classes += dat->classes[at][i].is_used;
	}
	return KYMO_OK;
}

/* Traces of one machine, at least one of them a kernel's. */
static int trace_dat_hosts(struct trace_dat *dat, struct kymo_error *err)
{
	size_t n = ky_model_n_hosts(dat->model);
	const char *machine = NULL;
	int ret = KYMO_OK;

	dat->classes = ky_arena_array(&dat->arena, n + 1, sizeof(*dat->classes));
	if (!dat->classes)
		return ky_error_nomem(err);
	for (size_t i = 0; i < n && ret == KYMO_OK; i++) {
		const struct ky_host *host = ky_model_host(dat->model, i);

		ret = trace_dat_host(dat, i);
		if (!ky_host_is_kernel(host))
			continue;
		if (machine && strcmp(machine, host->name) != 0)
			return ky_error_set(err, KYMO_E_UNSUPPORTED,
					    "trace.dat is of one machine; these traces are of %s "
					    "and %s",
					    machine, host->name);
		machine = host->name;
	}
	if (ret == KYMO_E_LIMIT)
		return ky_error_set(err, KYMO_E_UNSUPPORTED,
				    "trace.dat has at most %d kinds of events", IDS_MAX);
	if (ret < 0)
		return ky_error_nomem(err);
	if (!machine)
		return ky_error_set(err, KYMO_E_UNSUPPORTED,
				    "trace.dat has events of the kernel, and the trace has none");
	return KYMO_OK;
}

static struct ky_dat_cpu *trace_dat_cpu(struct trace_dat *dat, uint32_t id, struct kymo_error *err)
{
	struct ky_dat_cpu *cpu;

	while (dat->cpus.len <= id) {
		if (ky_vec_push(&dat->cpus, NULL) < 0) {
			ky_error_nomem(err);
			return NULL;
		}
	}
	if (dat->cpus.data[id])
		return dat->cpus.data[id];
	cpu = calloc(1, sizeof(*cpu));
	if (!cpu) {
		ky_error_nomem(err);
		return NULL;
	}
	if (ky_dat_cpu_open(cpu, dat->directory, err) < 0) {
		free(cpu);
		return NULL;
	}
	dat->cpus.data[id] = cpu;
	return cpu;
}

/* ---- events ------------------------------------------------------------------------------- */

static int trace_dat_put(struct trace_dat *dat, const struct ky_host *host,
			 const struct ky_event *event, const struct ky_dat_class *cls,
			 const struct ky_event_who *who, bool lost, struct kymo_error *err)
{
	uint32_t id = ky_event_cpu(event, &host->classes[event->cls->index]);
	struct ky_dat_cpu *cpu;
	int n;

	if (id >= CPUS_MAX) {
		dat->n_without_cpu++;
		return KYMO_OK;
	}
	cpu = trace_dat_cpu(dat, id, err);
	if (!cpu)
		return err->code;
	n = ky_values_decode(&dat->values, event, KY_SCOPE_PAYLOAD, err);
	if (n < 0)
		return n;
	if (lost) {
		n = ky_dat_cpu_flush(cpu, err);
		cpu->lost = true;
		if (n < 0)
			return n;
	}
	ky_strbuf_clear(&dat->record);
	ky_dat_put_record(&dat->record, cls, dat->values.list.len ? dat->values.list.data : NULL,
			  (int32_t)who->tid);
	if (ky_strbuf_failed(&dat->record))
		return ky_error_nomem(err);
	if (dat->n_events++ == 0 && event->ns < 0)
		dat->shift_ns = -event->ns;
	return ky_dat_cpu_add(cpu, (uint64_t)(event->ns + dat->shift_ns), &dat->record, err);
}

static int trace_dat_batch(struct ky_sink *sink, const struct ky_batch *batch,
			   struct kymo_error *err)
{
	struct trace_dat *dat = (struct trace_dat *)sink;
	struct ky_host *host = dat->model->streams[batch->stream->index].host;
	const struct ky_loss *loss = batch->loss;
	int ret = KYMO_OK;

	if (loss && !batch->n_events)
		return ky_model_feed(dat->model, batch, err);
	for (size_t i = 0; i < batch->n_events && ret >= 0; i++) {
		const struct ky_event *event = &batch->events[i];
		const struct ky_dat_class *cls = &dat->classes[host->index][event->cls->index];
		const struct ky_batch one = {
			.stream = batch->stream, .events = event, .n_events = 1, .loss = loss};
		struct ky_event_who who;

		ky_event_who(&who, dat->model, batch->stream, event, &cls->words);
		ret = ky_model_feed(dat->model, &one, err);
		if (ret >= 0 && cls->is_used && event->ns != INT64_MIN)
			ret = trace_dat_put(dat, host, event, cls, &who, loss != NULL, err);
		if (ret == KYMO_E_FORMAT)
			ky_error_path(err, batch->stream->file.path);
		loss = NULL;
	}
	return ret < 0 ? ret : KYMO_OK;
}

/* ---- the file ----------------------------------------------------------------------------- */

static void trace_dat_u16(struct ky_strbuf *out, uint16_t value)
{
	ky_strbuf_add(out, (const char *)&value, sizeof(value));
}

static void trace_dat_u32(struct ky_strbuf *out, uint32_t value)
{
	ky_strbuf_add(out, (const char *)&value, sizeof(value));
}

static void trace_dat_u64(struct ky_strbuf *out, uint64_t value)
{
	ky_strbuf_add(out, (const char *)&value, sizeof(value));
}

/* A name or text with its NUL. */
static void trace_dat_name(struct ky_strbuf *out, const char *name)
{
	ky_strbuf_add(out, name, strlen(name) + 1);
}

static void trace_dat_counted(struct ky_strbuf *out, const char *text)
{
	trace_dat_u64(out, strlen(text));
	ky_strbuf_adds(out, text);
}

static void trace_dat_begin(struct ky_strbuf *out)
{
	static const uint8_t magic[] = {0x17, 0x08, 0x44};

	ky_strbuf_add(out, (const char *)magic, sizeof(magic));
	ky_strbuf_adds(out, "tracing");
	trace_dat_name(out, "6");
	ky_strbuf_addc(out, __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
	ky_strbuf_addc(out, 8);
	trace_dat_u32(out, KY_DAT_PAGE_BYTES);
	trace_dat_name(out, "header_page");
	trace_dat_counted(out, "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
			       "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
			       "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
			       "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n");
	trace_dat_name(out, "header_event");
	trace_dat_counted(out, "# compressed entry header\n"
			       "\ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n"
			       "\tarray       :   32 bits\n\n\tpadding     : type == 29\n"
			       "\ttime_extend : type == 30\n\ttime_stamp : type == 31\n"
			       "\tdata max type_len  == 28\n");
	trace_dat_u32(out, 0); /* ftrace's own events */
}

/* The class that is the @from-th or a later one and is used; NULL: none. */
static const struct ky_dat_class *trace_dat_used(const struct trace_dat *dat, size_t *host,
						 size_t *at)
{
	for (; *host < ky_model_n_hosts(dat->model); ++*host, *at = 0) {
		size_t n = ky_model_host(dat->model, *host)->trace->cls->events.len;

		for (; *at < n; ++*at) {
			if (dat->classes[*host][*at].is_used)
				return &dat->classes[*host][(*at)++];
		}
	}
	return NULL;
}

static bool trace_dat_is_new(const struct ky_names *systems, const char *name)
{
	return !ky_names_get(systems, name);
}

/* The formats of one system. */
static void trace_dat_system(struct ky_strbuf *out, const struct trace_dat *dat, const char *system)
{
	struct ky_strbuf format = KY_STRBUF_INIT;
	const struct ky_dat_class *cls;
	size_t host = 0, at = 0, count_at;
	uint32_t n = 0;

	trace_dat_name(out, system);
	count_at = out->len;
	trace_dat_u32(out, 0);
	while ((cls = trace_dat_used(dat, &host, &at))) {
		if (strcmp(cls->words.words.system, system) != 0)
			continue;
		ky_strbuf_clear(&format);
		ky_dat_put_format(&format, cls);
		trace_dat_u64(out, format.len);
		ky_strbuf_add(out, format.data, format.len);
		n++;
	}
	out->failed |= format.failed;
	if (!out->failed)
		memcpy(out->data + count_at, &n, sizeof(n));
	ky_strbuf_fini(&format);
}

static void trace_dat_systems(struct ky_strbuf *out, const struct trace_dat *dat)
{
	struct ky_names systems = {0};
	const struct ky_dat_class *cls;
	size_t host = 0, at = 0, count_at = out->len;
	uint32_t n = 0;

	trace_dat_u32(out, 0);
	while ((cls = trace_dat_used(dat, &host, &at))) {
		const char *system = cls->words.words.system;

		if (!trace_dat_is_new(&systems, system))
			continue;
		if (ky_names_set(&systems, system, (void *)(uintptr_t)cls) < 0)
			out->failed = true;
		trace_dat_system(out, dat, system);
		n++;
	}
	if (!out->failed)
		memcpy(out->data + count_at, &n, sizeof(n));
	ky_names_fini(&systems);
}

static void trace_dat_comms(struct ky_strbuf *out, const struct trace_dat *dat)
{
	struct ky_strbuf text = KY_STRBUF_INIT;

	for (size_t i = 0; i < ky_model_n_threads(dat->model); i++) {
		const struct ky_thread *thread = ky_model_thread(dat->model, i);

		if (!thread->comm[0] || strpbrk(thread->comm, "\n"))
			continue;
		ky_strbuf_addf(&text, "%d %s\n", thread->tid, thread->comm);
	}
	trace_dat_u64(out, text.len);
	ky_strbuf_add(out, text.data ? text.data : "", text.len);
	out->failed |= text.failed;
	ky_strbuf_fini(&text);
}

/* Where the pages of each CPU are. */
static void trace_dat_places(struct ky_strbuf *out, const struct trace_dat *dat)
{
	uint64_t head = out->len + strlen("flyrecord") + 1 + 16 * dat->cpus.len;
	uint64_t at = (head + KY_DAT_PAGE_BYTES - 1) / KY_DAT_PAGE_BYTES * KY_DAT_PAGE_BYTES;
	uint64_t begin = at;

	trace_dat_name(out, "flyrecord");
	ky_vec_foreach(&dat->cpus, cpu) {
		uint64_t bytes = *cpu ? (*cpu)->n_pages * KY_DAT_PAGE_BYTES : 0;

		trace_dat_u64(out, at);
		trace_dat_u64(out, bytes);
		at += bytes;
	}
	while (out->len < begin && !out->failed)
		ky_strbuf_addc(out, '\0');
}

static int trace_dat_copy(const struct trace_dat *dat, const struct ky_dat_cpu *cpu,
			  struct kymo_error *err)
{
	char bytes[KY_DAT_PAGE_BYTES * 16];
	ssize_t n;
	int ret;

	if (lseek(cpu->fd, 0, SEEK_SET) < 0)
		return ky_error_errno(err, errno, "cannot read a temporary file");
	while ((n = read(cpu->fd, bytes, sizeof(bytes))) > 0) {
		ret = ky_write_all(dat->fd, bytes, (size_t)n);
		if (ret < 0)
			return ky_error_errno(err, -ret, "cannot write trace.dat");
	}
	return n < 0 ? ky_error_errno(err, errno, "cannot read a temporary file") : KYMO_OK;
}

static int trace_dat_write(struct trace_dat *dat, struct kymo_error *err)
{
	struct ky_strbuf head = KY_STRBUF_INIT;
	int ret;

	trace_dat_begin(&head);
	trace_dat_systems(&head, dat);
	trace_dat_u32(&head, 0); /* symbols of the kernel */
	trace_dat_u32(&head, 0); /* formats of trace_printk() */
	trace_dat_comms(&head, dat);
	trace_dat_u32(&head, (uint32_t)dat->cpus.len);
	trace_dat_name(&head, "options  ");
	trace_dat_u16(&head, 0);
	trace_dat_places(&head, dat);
	ret = ky_strbuf_failed(&head) ? -ENOMEM : ky_write_all(dat->fd, head.data, head.len);
	ky_strbuf_fini(&head);
	if (ret < 0)
		return ky_error_errno(err, -ret, "cannot write trace.dat");
	ky_vec_foreach(&dat->cpus, cpu) {
		ret = *cpu ? trace_dat_copy(dat, *cpu, err) : KYMO_OK;
		if (ret < 0)
			return ret;
	}
	return KYMO_OK;
}

static int trace_dat_finish(struct ky_sink *sink, struct kymo_error *err)
{
	struct trace_dat *dat = (struct trace_dat *)sink;
	int ret = ky_model_end(dat->model, err);

	ky_vec_foreach(&dat->cpus, cpu) {
		if (ret >= 0 && *cpu)
			ret = ky_dat_cpu_flush(*cpu, err);
	}
	if (ret >= 0 && !dat->n_events && dat->n_without_cpu)
		ret = ky_error_set(
			err, KYMO_E_UNSUPPORTED,
			"trace.dat has events of CPUs, and no event of the trace tells its CPU");
	return ret < 0 ? ret : trace_dat_write(dat, err);
}

static void trace_dat_free(struct ky_sink *sink)
{
	struct trace_dat *dat = (struct trace_dat *)sink;

	ky_vec_foreach(&dat->cpus, cpu) {
		if (*cpu)
			ky_dat_cpu_close(*cpu);
		free(*cpu);
	}
	ky_vec_fini(&dat->cpus);
	ky_values_fini(&dat->values);
	ky_strbuf_fini(&dat->record);
	ky_model_free(dat->model);
	ky_arena_fini(&dat->arena);
	free(dat);
}

static const struct ky_sink_ops trace_dat_ops = {
	.batch = trace_dat_batch,
	.finish = trace_dat_finish,
	.free = trace_dat_free,
};

int ky_trace_dat_open(const struct ky_trace_set *set, int fd, const char *directory,
		      struct ky_sink **sink, struct kymo_error *err)
{
	struct trace_dat *dat = calloc(1, sizeof(*dat));
	int ret;

	if (!dat)
		return ky_error_nomem(err);
	dat->sink.ops = &trace_dat_ops;
	dat->fd = fd;
	dat->directory = directory;
	ky_arena_init(&dat->arena);
	ky_values_init(&dat->values);
	dat->model = ky_model_new(set, err);
	ret = dat->model ? trace_dat_hosts(dat, err) : KYMO_E_MEMORY;
	if (ret < 0)
		trace_dat_free(&dat->sink);
	else
		*sink = &dat->sink;
	return ret;
}
