/* SPDX-License-Identifier: MIT */
/* One run of kymo record: a recording, the traced command, the signals and the time that end it. */
#ifndef KY_CLI_RECORDING_RECORD_RUN_H
#define KY_CLI_RECORDING_RECORD_RUN_H

#include "base/vec.h"
#include "cli/recording/record-background.h"
#include "cli/recording/record-child.h"
#include "cli/recording/group-options.h"
#include "cli/recording/record-hook.h"
#include "cli/recording/record-network.h"
#include "cli/recording/record-symbols.h"
#include "cli/recording/record-tasks.h"
#include "cli/recording/trigger-options.h"
#include "record/common/choice.h"
#include "record/recording/recording.h"

struct ky_record_run {
	struct ky_recording_options options;
	uint64_t duration_ns; /* 0: until a signal, or until the command ends */
	struct ky_child command;
	struct ky_background background;
	struct ky_hook hook;		/* runs after each rotation */
	struct ky_tasks tasks;		/* of triggers */
	struct ky_group_options groups; /* what options.kernel.groups and .user_groups point to */
	struct ky_trigger_rules triggers;
	bool stores_symbols;		  /* when the recording has ended */
	struct ky_record_symbols symbols; /* of a recording at a relay */
	struct ky_text_list symbol_dirs;  /* where to look for them first */
	struct ky_record_network network;
	struct ky_sample_source
		samples[KY_SAMPLE_SOURCES_MAX]; /* what options.kernel.samples points to */
	/* What options.kernel.threads.pids and .tids point to. */
	int32_t pids[KY_CHOICE_IDS_MAX], tids[KY_CHOICE_IDS_MAX];
};

#define KY_RECORD_RUN_INIT                                                                 \
	{                                                                                  \
		.command = {.go_fd = -1, .fail_fd = -1}, .background = KY_BACKGROUND_INIT, \
		.symbols = KY_RECORD_SYMBOLS_INIT                                          \
	}

/* Record, and print at the end what was recorded. Returns an exit code. */
int ky_record_run(struct ky_record_run *run);

#endif
