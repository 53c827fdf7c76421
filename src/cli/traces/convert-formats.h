/* SPDX-License-Identifier: MIT */
/* kymo convert: its formats, and what its files share. */
#ifndef KY_CLI_TRACES_CONVERT_FORMATS_H
#define KY_CLI_TRACES_CONVERT_FORMATS_H

#include "analysis/export/otlp.h"
#include "cli/reading/input-options.h"
#include "cli/reading/follow-run.h"
#include "cli/reading/run-flow.h"
#include "cli/reading/select-options.h"
#include "cli/reading/symbol-options.h"
#include "cli/reading/text-options.h"
#include "cli/terminal/output.h"
#include "os/thread-pool.h"

struct convert_options {
	struct ky_text_options text;
	struct ky_text_words words;
	struct ky_select_options select;
	struct ky_input_options input;
	struct ky_live_options live;
	struct ky_symbol_options symbols;
	const char *output, *to;
	uint64_t jobs;
	bool csv_raw;
	struct ky_otlp_options otlp;
	struct ky_trace_symbols
		*trace_symbols; /* while a format with call stacks is written; else NULL */
};

/* The names in formats[]. */
#define FORMAT_CHOICES \
	"text json csv ctf1.8 ctf2 perfetto chrome-json perf-script folded speedscope pprof firefox otlp dot pcap trace.dat details"
#define FORMAT_NAMES \
	"text, json, csv, ctf1.8, ctf2, perfetto, chrome-json, perf-script, folded, speedscope, pprof, firefox, otlp, dot, pcap, trace.dat or details"

/* What a format is, and which options say something about it. */
enum {
	FORMAT_IS_DIRECTORY = 1 << 0,
	FORMAT_IS_TABLE = 1 << 1, /* this entry is for the case that columns are named */
	FORMAT_HAS_FIELDS = 1 << 2,
	FORMAT_HAS_STYLE = 1 << 3, /* names, colours, times as people read them */
	FORMAT_IS_CSV = 1 << 4,
	FORMAT_HAS_SYMBOLS = 1 << 5,
	FORMAT_NAMES_STACKS = 1 << 6, /* symbols are wanted unless the user says otherwise */
};

struct convert_format {
	const char *name;
	unsigned int flags;
	/* Lines, one after the other: several sinks may make them at once (cli/reading/lines.h). NULL: see open. */
	struct ky_sink *(*lines)(const struct convert_options *options, int fd);
	/* What stands before the lines; NULL: nothing. */
	int (*begin)(const struct ky_trace_set *set, const struct convert_options *options, int fd,
		     struct kymo_error *err);
	/* One sink for all, and how events get to it. */
	int (*open)(const struct ky_trace_set *set, const struct convert_options *options,
		    const struct ky_cli_output *output, struct ky_sink **sink,
		    struct kymo_error *err);
	int (*write)(const struct ky_trace_set *set, const struct convert_options *options,
		     struct ky_thread_pool *pool, struct ky_sink *sink, struct kymo_error *err);
};

/* What makes sinks of lines. */
struct convert_maker {
	const struct convert_format *format;
	const struct convert_options *options;
	int fd;
};

/* For ky_lines_run() and others: a sink of the maker @data; NULL: out of memory. */
struct ky_sink *ky_convert_make_sink(void *data);

/* How the events of @set are read, with progress unless they go to the standard output. */
struct ky_flow_run ky_convert_flow_run(const struct ky_trace_set *set,
				       const struct convert_options *options);

/* NULL: no format has the name that the options have. */
const struct convert_format *ky_convert_find_format(const struct convert_options *options);
bool ky_convert_is_stdout(const struct convert_options *options);
/* Damage: everything before it was converted, and is kept. */
bool ky_convert_keeps_output(int ret);

/* convert-live.c: lines are written as events come. 0 or a negative status. */
int ky_convert_live(const struct convert_format *format, const struct convert_options *options,
		    int n_args, char **args, struct kymo_error *err);
/* Output that appears only when it is complete: the end of the recordings comes first. */
int ky_convert_wait_for_end(const struct convert_format *format,
			    const struct convert_options *options, int n_args, char **args,
			    struct kymo_error *err);

#endif
