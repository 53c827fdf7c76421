/* SPDX-License-Identifier: MIT */
/* The options of kymo record, and what they mean for a recording. */
#ifndef KY_CLI_RECORDING_RECORD_OPTIONS_H
#define KY_CLI_RECORDING_RECORD_OPTIONS_H

#include "cli/terminal/command.h"
#include "cli/recording/record-run.h"

struct ky_record_options {
	const char *output, *name;
	bool background;
	const char *policy;
	uint64_t ready_fd;
	const char *save;
	struct ky_text_list kernel, user, exclude;
	uint64_t duration_ns;
	uint64_t buffer_bytes;
	struct ky_text_list pid, tid, cgroups, containers;
	bool follow;
	struct ky_text_list groups;
	bool symbols, no_symbols;
	struct ky_text_list symbol_dirs;
	bool overwrite, raw, maps;
	const char *statedump;
	uint64_t keep_bytes;
	const char *log_level, *filter, *comm, *uid, *shm_path;
	const char *context;
	struct ky_text_list kernel_stacks, user_stacks;
	const char *identity;
	struct ky_text_list samples;
	const char *stacks;
	const char *calls; /* calls-options.h */
	struct ky_text_list probes, sdt, kprobes;
	const char *syscall_content;
	const char *clock;
	uint64_t rotate_bytes, rotate_ns, keep, keep_chunk_bytes, keep_ns, relay_wait_ns;
	const char *on_rotate, *relay_key, *spill;
	bool insecure;
	struct ky_text_list triggers; /* --when and --do */
	const char *reader;
	const char *when_full, *buffers;
};

/* @data: struct ky_record_options. */
void ky_record_defaults(void *data);

/* Fill in what @run is to do; it borrows from @options. Returns an exit code: of a mistake, or KY_EXIT_OK. */
int ky_record_check_options(const struct ky_command *command,
			    const struct ky_record_options *options, struct ky_record_run *run);

#endif
