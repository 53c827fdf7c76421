/* SPDX-License-Identifier: MIT */
/*
 * trace.dat: each buffer becomes a kernel trace. A first pass over the pages finds the events that are there, out of the thousands
 * that the file describes; a second one converts.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/error.h"
#include "import/ftrace/dat-turn.h"
#include "import/ftrace/foreign-kernel.h"
#include "import/common/import-internal.h"
#include "import/common/import.h"
#include "import/ftrace/trace-dat.h"
#include "kernel/tracefs/page.h"

/*
 * Each buffer has the descriptions of its events for itself: thousands of buffers would take minutes. Usual
 * files have a few buffers and 1 MiB.
 */
#define DESCRIBED_MAX_BYTES (256u << 20)

struct dat_import {
	struct ky_dat dat;
	struct ky_import *imports;
	struct ky_page_layout layout;
	const struct ky_log *log;
	uint8_t clock_uuid[16];
	uint64_t described; /* bytes of the descriptions that buffers use, each for itself */
};

struct dat_buffer {
	struct dat_import *import;
	const struct ky_dat_buffer *buffer;
	struct ky_foreign_kernel foreign;
	struct ky_scratch_trace *scratch;
	struct ky_packet_store *store;
	uint8_t used[(UINT16_MAX + 1) / 8]; /* events, by common_type */
	uint64_t first;			    /* the first time; UINT64_MAX: no event */
	uint32_t cpu;			    /* at hand */
	bool by_records, is_first;
	uint8_t *turned; /* a page of the other byte order, in this machine's */
	uint32_t turned_bytes;
	uint64_t n_bad_pages;
	char *host, *release, *machine; /* of uname; NULL: unknown */
};

/* ---- the first pass ------------------------------------------------------------------- */

/* 1: it is open; 0: it makes no sense; KYMO_E_MEMORY. */
static int import_dat_page(struct dat_buffer *buffer, const uint8_t *bytes, uint32_t len,
			   struct ky_page *page, struct kymo_error *err)
{
	const struct ky_dat *dat = &buffer->import->dat;

	if (dat->file.swap) {
		if (len > buffer->turned_bytes) {
			free(buffer->turned);
			buffer->turned_bytes = len;
			buffer->turned = malloc(len);
		}
		if (!buffer->turned) {
			buffer->turned_bytes = 0;
			return ky_error_nomem(err);
		}
		ky_dat_turn_page(&buffer->import->layout, dat->tracing.big_endian, bytes, len,
				 buffer->turned);
		bytes = buffer->turned;
	}
	return ky_page_open(&buffer->import->layout, bytes, len, page, NULL) == 0;
}

static uint64_t import_dat_ns(const struct ky_dat *dat, uint32_t cpu, uint64_t time)
{
	if (dat->shift.n_cpus)
		time = ky_dat_shift_time(&dat->shift, cpu, time);
	return dat->tsc_mult ? (uint64_t)((unsigned __int128)time * dat->tsc_mult >>
					  (dat->tsc_shift & 63))
			     : time;
}

static uint16_t import_dat_type(const struct ky_dat *dat, const uint8_t *record)
{
	return ky_foreign_u16(record, dat->file.swap);
}

static int import_dat_scan(void *data, const uint8_t *bytes, uint32_t len, struct kymo_error *err)
{
	struct dat_buffer *buffer = data;
	const struct ky_dat *dat = &buffer->import->dat;
	struct ky_page page;
	struct ky_record record;
	enum ky_record_kind kind;
	uint64_t cycles, ns;
	int ret = import_dat_page(buffer, bytes, len, &page, err);

	if (ret <= 0) {
		buffer->n_bad_pages += !ret;
		return ret;
	}
	cycles = page.cycles;
	for (uint32_t at = page.at;; at = record.next) {
		uint16_t type;

		kind = ky_record_parse(page.records, at, page.end, &cycles, &record);
		if (kind == KY_RECORD_TIME)
			continue;
		if (kind != KY_RECORD_EVENT)
			break;
		cycles += record.delta;
		if (record.len < 2)
			continue;
		ns = import_dat_ns(dat, buffer->cpu, cycles);
		buffer->first = ns < buffer->first ? ns : buffer->first;
		type = import_dat_type(dat, page.records + record.data);
		buffer->used[type / 8] |= (uint8_t)(1u << type % 8);
	}
	return KYMO_OK;
}

/* ---- the second pass ------------------------------------------------------------------ */

/* Each record on its own: where times are no ns, or calls get names of their own. */
static int import_dat_records(struct dat_buffer *buffer, const struct ky_page *page,
			      struct kymo_error *err)
{
	const struct ky_dat *dat = &buffer->import->dat;
	uint64_t cycles = page->cycles;
	struct ky_record record;
	int ret = KYMO_OK;

	if (page->missed)
		ret = ky_foreign_kernel_lost(&buffer->foreign, buffer->cpu,
					     page->lost ? page->lost : 1, err);
	for (uint32_t at = page->at; !ret; at = record.next) {
		enum ky_record_kind kind =
			ky_record_parse(page->records, at, page->end, &cycles, &record);
		uint16_t type;

		if (kind == KY_RECORD_TIME)
			continue;
		if (kind != KY_RECORD_EVENT)
			break;
		cycles += record.delta;
		if (record.len < 8)
			continue;
		type = import_dat_type(dat, page->records + record.data);
		ret = ky_foreign_kernel_record(&buffer->foreign, buffer->cpu, type,
					       import_dat_ns(dat, buffer->cpu, cycles),
					       page->records + record.data, record.len, NULL, err);
	}
	return ret;
}

static int import_dat_convert(void *data, const uint8_t *bytes, uint32_t len,
			      struct kymo_error *err)
{
	struct dat_buffer *buffer = data;
	struct ky_page page;
	int ret = import_dat_page(buffer, bytes, len, &page, err);

	if (ret <= 0)
		return ret;
	/* A CPU without events needs no packet in memory. */
	if (page.at >= page.end && !page.missed)
		return KYMO_OK;
	return buffer->by_records
		       ? import_dat_records(buffer, &page, err)
		       : ky_foreign_kernel_page(&buffer->foreign, buffer->cpu, &page, err);
}

/* Pages of a CPU of which there is one too many. */
static int import_dat_check_cpu(const struct dat_buffer *buffer, const struct ky_dat_cpu *cpu,
				struct kymo_error *why)
{
	const struct ky_dat *dat = &buffer->import->dat;

	if (cpu->number < KY_FOREIGN_CPUS_MAX || !cpu->size_bytes)
		return KYMO_OK;
	ky_error_set(why, KYMO_E_LIMIT, "CPU %u is above the limit of %u CPUs", cpu->number,
		     KY_FOREIGN_CPUS_MAX);
	ky_error_path(why, dat->file.path);
	ky_error_offset(why, cpu->at);
	return KYMO_E_LIMIT;
}

static int import_dat_pages(struct dat_buffer *buffer,
			    int (*page)(void *, const uint8_t *, uint32_t, struct kymo_error *),
			    struct kymo_error *broken, struct kymo_error *err)
{
	struct dat_import *import = buffer->import;
	int ret = KYMO_OK;

	ky_vec_foreach(&buffer->buffer->cpus, cpu) {
		struct kymo_error why = {0};
		int above = import_dat_check_cpu(buffer, cpu, &why);

		buffer->cpu = cpu->number;
		ret = above ? above
			    : ky_dat_pages(&import->dat, buffer->buffer, cpu, page, buffer, &why);
		if (ret == KYMO_E_FORMAT || above) {
			/* The other CPUs have pages of their own. */
			if (!broken->code)
				*broken = why;
			ret = KYMO_OK;
		}
		if (ret < 0) {
			if (err)
				*err = why;
			break;
		}
	}
	return ret;
}

/* ---- a buffer ------------------------------------------------------------------------- */

/* "Linux HOST RELEASE ... MACHINE" */
static void import_dat_uname(struct dat_buffer *buffer)
{
	char *text = buffer->import->dat.uname ? strdup(buffer->import->dat.uname) : NULL;
	char *save = NULL, *word = text ? strtok_r(text, " ", &save) : NULL;

	word = word ? strtok_r(NULL, " ", &save) : NULL;
	buffer->host = word ? strdup(word) : NULL;
	word = word ? strtok_r(NULL, " ", &save) : NULL;
	buffer->release = word ? strdup(word) : NULL;
	while (word) {
		free(buffer->machine);
		buffer->machine = strdup(word);
		word = strtok_r(NULL, " \n", &save);
	}
	free(text);
}

static int import_dat_describe(struct dat_buffer *buffer, size_t len, struct kymo_error *err)
{
	struct dat_import *import = buffer->import;

	import->described += len;
	/* One buffer alone has no more than the file. */
	if (import->described <= DESCRIBED_MAX_BYTES || buffer->is_first)
		return KYMO_OK;
	ky_error_set(err, KYMO_E_LIMIT,
		     "the descriptions of events of all buffers are above the limit of %u MiB",
		     DESCRIBED_MAX_BYTES >> 20);
	ky_error_path(err, import->dat.file.path);
	if (buffer->buffer->cpus.len)
		ky_error_offset(err, buffer->buffer->cpus.data[0].at);
	return KYMO_E_LIMIT;
}

static int import_dat_events(struct dat_buffer *buffer, struct kymo_error *err)
{
	const struct ky_tracing_data *tracing = &buffer->import->dat.tracing;
	int ret = KYMO_OK;

	/* A file that does not say so is taken for one of x86-64, if it can be. */
	buffer->foreign.is_x86_64 =
		buffer->machine ? strcmp(buffer->machine, "x86_64") == 0 : tracing->long_bytes == 8;
	ky_vec_foreach(&tracing->events, event) {
		if (event->id == KY_TRACING_NO_ID ||
		    !(buffer->used[event->id / 8] >> event->id % 8 & 1))
			continue;
		if (!ret)
			ret = import_dat_describe(buffer, event->len, err);
		if (!ret)
			ret = ky_foreign_kernel_add(&buffer->foreign, event->system, event->text,
						    event->len, err);
	}
	return ret;
}

static int import_dat_begin(struct dat_buffer *buffer, struct kymo_error *err)
{
	struct ky_dat *dat = &buffer->import->dat;
	struct ky_kernel_trace *kernel = &buffer->foreign.kernel;
	struct ky_os_clock *clock = &kernel->clock;
	int64_t second = 1000000000;
	int ret;

	import_dat_uname(buffer);
	kernel->name = dat->file.path;
	kernel->hostname = buffer->host ? buffer->host : "";
	kernel->kernel_release = buffer->release ? buffer->release : "";
	clock->name = "ftrace";
	clock->description = "the clock of ftrace's buffers: since the machine was started";
	clock->offset_s = dat->offset_ns / second - (dat->offset_ns % second < 0);
	clock->offset_cycles = dat->offset_ns - clock->offset_s * second;
	memcpy(clock->uuid, buffer->import->clock_uuid, sizeof(clock->uuid));
	buffer->foreign.swap = dat->file.swap;
	ret = import_dat_events(buffer, err);
	buffer->by_records = dat->file.swap || dat->shift.n_cpus || dat->tsc_mult ||
			     buffer->foreign.raw_entry_id || buffer->foreign.raw_exit_id;
	if (!ret)
		ret = ky_foreign_kernel_begin(&buffer->foreign, buffer->store, buffer->first, err);
	return ret;
}

static int import_dat_place(struct dat_buffer *buffer, struct kymo_error *err)
{
	const char *name = buffer->buffer->name;
	char place[256] = "kernel";

	if (*name) {
		/* No name in a file becomes the name of a place elsewhere. */
		snprintf(place, sizeof(place), "kernel-%.200s", name);
		for (char *at = place; *at; at++)
			if (*at == '/')
				*at = '_';
	}
	return ky_import_add_place(buffer->import->imports, buffer->import->dat.file.path, place,
				   buffer->scratch, err);
}

static int import_dat_run(struct dat_buffer *buffer, struct kymo_error *broken,
			  struct kymo_error *err)
{
	uint64_t n_events, n_bad;
	int ret = import_dat_pages(buffer, import_dat_scan, broken, err);

	/* A buffer without events, as the top one is where an instance was recorded. */
	if (!ret && buffer->first == UINT64_MAX && buffer->import->dat.buffers.len > 1)
		return KYMO_OK;
	if (buffer->first == UINT64_MAX)
		buffer->first = 0;
	if (!ret)
		ret = import_dat_begin(buffer, err);
	if (!ret)
		ret = import_dat_pages(buffer, import_dat_convert, broken, err);
	if (!ret)
		ret = ky_foreign_kernel_end(&buffer->foreign, &n_events, &n_bad, err);
	if (!ret && (n_bad || buffer->n_bad_pages))
		ky_log_warning(buffer->import->log,
			       "%s: %llu records and %llu pages make no sense; they are left out",
			       buffer->import->dat.file.path, (unsigned long long)n_bad,
			       (unsigned long long)buffer->n_bad_pages);
	return ret ? ret : import_dat_place(buffer, err);
}

static int import_dat_buffer(struct dat_import *import, const struct ky_dat_buffer *from,
			     struct kymo_error *broken, struct kymo_error *err)
{
	struct dat_buffer *buffer = calloc(1, sizeof(*buffer));
	int ret;

	if (!buffer)
		return ky_error_nomem(err);
	buffer->import = import;
	buffer->buffer = from;
	buffer->first = UINT64_MAX;
	buffer->is_first = !import->described;
	ky_foreign_kernel_init(&buffer->foreign);
	buffer->scratch = ky_import_new_trace(import->imports);
	ret = buffer->scratch ? ky_scratch_store_open(buffer->scratch, &buffer->store, err)
			      : ky_error_nomem(err);
	if (!ret)
		ret = import_dat_run(buffer, broken, err);
	ky_foreign_kernel_fini(&buffer->foreign);
	ky_store_free(buffer->store);
	free(buffer->host);
	free(buffer->release);
	free(buffer->machine);
	free(buffer->turned);
	free(buffer);
	return ret;
}

/* ---- the file ------------------------------------------------------------------------- */

static int import_dat_prepare(struct dat_import *import, struct kymo_error *err)
{
	struct ky_dat *dat = &import->dat;
	int ret;

	if (!dat->tracing.header_page)
		return ky_foreign_bad(&dat->file, 0, "the format of pages is missing", err);
	if (!dat->buffers.len && dat->has_text)
		return ky_foreign_bad(&dat->file, 0,
				      "the file has only text of a latency tracer; try: "
				      "trace-cmd report",
				      err);
	ret = ky_page_layout_parse(dat->tracing.header_page, dat->tracing.header_page_len,
				   &import->layout, err);
	if (ret < 0)
		ky_error_path(err, dat->file.path);
	if (!ret && getrandom(import->clock_uuid, sizeof(import->clock_uuid), 0) !=
			    (ssize_t)sizeof(import->clock_uuid))
		ret = ky_error_set(err, KYMO_E_IO, "no random numbers");
	return ret;
}

static int import_dat_open(struct ky_import *imports, const char *path, const struct ky_log *log,
			   struct kymo_error *err)
{
	struct dat_import import = {.imports = imports, .log = log};
	struct kymo_error broken = {0};
	size_t n_places = imports->places.len;
	int ret = ky_dat_open(&import.dat, path, imports->unpacked_fd, err);

	if (!ret)
		ret = import_dat_prepare(&import, err);
	ky_vec_foreach(&import.dat.buffers, buffer)
		if (!ret)
			ret = import_dat_buffer(&import, buffer, &broken, err);
	/* The buffers before the limit are whole. */
	if (ret == KYMO_E_LIMIT && imports->places.len > n_places) {
		broken = *err;
		ky_error_clear(err);
		ret = KYMO_OK;
	}
	if (!ret && import.dat.has_text)
		ky_log_warning(log, "%s: text of a latency tracer is left out", path);
	if (!ret && broken.code)
		ky_import_broken(imports, &broken);
	ky_dat_close(&import.dat);
	return ret;
}

const struct ky_import_format ky_import_dat = {
	.name = "trace.dat",
	.probe = ky_dat_is,
	.open = import_dat_open,
};
