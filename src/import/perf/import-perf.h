/* SPDX-License-Identifier: MIT */
/* The traces of a perf.data file: import-perf.c reads the records in order, import-perf-trace.c writes them. */
#ifndef KY_IMPORT_IMPORT_PERF_H
#define KY_IMPORT_IMPORT_PERF_H

#include "import/ftrace/foreign-kernel.h"
#include "import/common/import.h"
#include "import/perf/perf-file.h"
#include "import/perf/perf-sample.h"
#include "import/perf/perf-stacks.h"
#include "import/common/trace-maker.h"

/* Kinds of events beside samples. */
enum ky_import_perf_event {
	KY_IMPORT_PERF_SAMPLE,
	KY_IMPORT_PERF_COMM,
	KY_IMPORT_PERF_EXEC,
	KY_IMPORT_PERF_FORK,
	KY_IMPORT_PERF_EXIT,
	KY_IMPORT_PERF_MMAP,
	KY_IMPORT_PERF_THROTTLE,
	KY_IMPORT_PERF_SWITCH,
	KY_IMPORT_PERF_AUX,
	KY_IMPORT_PERF_AUXTRACE,
	KY_IMPORT_PERF_AUXTRACE_DATA,
	KY_IMPORT_PERF_EVENTS,
};

struct ky_import_perf_trace {
	struct ky_foreign_kernel kernel;
	bool has_kernel; /* the file has tracepoints */
	bool has_begun, has_init;
	struct ky_import *imports;
	struct ky_scratch_trace *kernel_scratch, *perf_scratch; /* of imports */
	struct ky_packet_store *kernel_store, *perf_store;
	struct ky_maker *maker;
	int events[KY_IMPORT_PERF_EVENTS];
	uint64_t begin_ns;
	uint64_t n_lost, n_lost_samples;
	uint64_t n_empty;    /* samples of tracepoints without the tracepoint's record */
	struct ky_map names; /* tid -> name, in the arena; of threads */
	struct ky_arena arena;
	KY_VEC(uint64_t) kernel_chain, user_chain;
	struct ky_perf_stacks stacks;
};

int ky_import_perf_init(struct ky_import_perf_trace *trace, struct ky_import *imports,
			const char *path, struct kymo_error *err);
/* Attributes and descriptions are known: begins both traces. @first_ns: of the first record; 0: the file has no record. */
int ky_import_perf_begin(struct ky_import_perf_trace *trace, struct ky_perf_file *perf,
			 uint64_t first_ns, struct kymo_error *err);
/* A record of the kernel, in the order of time on its CPU. */
int ky_import_perf_record(struct ky_import_perf_trace *trace, struct ky_perf_file *perf,
			  const struct ky_perf_head *head, const struct ky_perf_sample *sample,
			  struct kymo_error *err);
/* What the tracing hardware has written: events at @ns, at the end. */
int ky_import_perf_aux(struct ky_import_perf_trace *trace, struct ky_perf_file *perf, uint64_t ns,
		       struct kymo_error *err);
int ky_import_perf_end(struct ky_import_perf_trace *trace, struct kymo_error *err);
void ky_import_perf_fini(struct ky_import_perf_trace *trace);

#endif
