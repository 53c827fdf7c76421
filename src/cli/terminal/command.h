/* SPDX-License-Identifier: MIT */
/*
 * A command is one const struct beside its code. From it come the parser, --help, the man
 * page and the shell completion, so that they cannot disagree.
 */
#ifndef KY_CLI_TERMINAL_COMMAND_H
#define KY_CLI_TERMINAL_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <kymo/error.h>

#include "base/log.h"
#include "base/strbuf.h"

enum ky_option_kind {
	KY_OPTION_FLAG, /* bool */
	KY_OPTION_TEXT, /* const char * */
	KY_OPTION_LIST, /* struct ky_text_list: may be given again */
	KY_OPTION_RULES, /* struct ky_text_list of pairs: option name, value. Options of one list share it, in their order */
	KY_OPTION_U64,	    /* uint64_t */
	KY_OPTION_SIZE,	    /* uint64_t, bytes: 64k, 8M */
	KY_OPTION_DURATION, /* uint64_t, ns: 5s, 100ms */
	KY_OPTION_PROFILE, /* a file of options, which count where the option stands; nothing of its own */
	KY_OPTION_SAVE, /* const char *: the file that gets the options as a profile */
};

struct ky_text_list {
	const char **items;
	size_t len;
};

/* One option: a row of the command's table, ended by a row without a name. */
struct ky_option_def {
	const char *name; /* without "--" */
	char letter;	  /* 0: none */
	enum ky_option_kind kind;
	const char *arg;     /* what the help calls its value: "DIR"; NULL for flags */
	const char *help;    /* one sentence or two, with unit and default; no line breaks */
	size_t at;	     /* offsetof() in the command's options */
	const char *choices; /* for completion: "mono boot x86-tsc"; NULL: files or free text */
};

#define KY_EXIT_OK    0
#define KY_EXIT_FAIL  1
#define KY_EXIT_USAGE 2

struct ky_command {
	const char *name;
	const char *summary; /* half a line, lower case, no full stop */
	const char *usage;   /* "[OPTIONS] TRACE..." */
	/* Paragraphs separated by blank lines; a line that begins with two blanks stays as it is. */
	const char *description;
	const char *examples; /* "# what for\nkymo print my-trace\n\n# ..." */
	const char *see_also; /* "print report info" */
	const struct ky_option_def *options;
	size_t options_size; /* of the struct that the rows point into; zeroed before defaults() */
	void (*defaults)(void *options); /* may be NULL */
	int min_args, max_args;		 /* operands; max -1: any number */
	const char *operands; /* for completion: words for the first operand; NULL: files */
	bool names_recording; /* its operand is a recording that runs */
	int first_trace; /* which operand is the first trace, from 1 on; 0: none. The name of a recording stands for its directory */
	bool is_rare;	 /* the overview has only its name */
	/* Of commands that run another one: where in the options a char ** gets what stands behind "--"; else 0. NULL there: nothing does. */
	size_t command_at;
	bool raw_args; /* the first operand ends the options (kymo record ... COMMAND ARGS) */
	/* Returns an exit code. @args are the operands, @args[n_args] is NULL. */
	int (*run)(const struct ky_command *command, void *options, int n_args, char **args);
	/*
	 * The help of the first operand: `kymo report cpu --help`, `kymo help report cpu`. May be
	 * NULL; may write into @topic. Returns an exit code.
	 */
	int (*topic_help)(const struct ky_command *command, FILE *out, char *topic);
};

extern const struct ky_command *const ky_commands[]; /* ends with NULL; kymo.c */

/* The commands; each in its cmd-NAME.c. A new one also gets its row in ky_commands[]. */
extern const struct ky_command ky_command_record;
extern const struct ky_command ky_command_sessions;
extern const struct ky_command ky_command_stop;
extern const struct ky_command ky_command_daemon;
extern const struct ky_command ky_command_relay;
extern const struct ky_command ky_command_mark;
extern const struct ky_command ky_command_rotate;
extern const struct ky_command ky_command_watch;
extern const struct ky_command ky_command_snapshot;
extern const struct ky_command ky_command_ctl;
extern const struct ky_command ky_command_print;
extern const struct ky_command ky_command_convert;
extern const struct ky_command ky_command_report;
extern const struct ky_command ky_command_timeline;
extern const struct ky_command ky_command_view;
extern const struct ky_command ky_command_lami;
extern const struct ky_command ky_command_info;
extern const struct ky_command ky_command_latency;
extern const struct ky_command ky_command_count;
extern const struct ky_command ky_command_query;
extern const struct ky_command ky_command_sync;
extern const struct ky_command ky_command_fleet;
extern const struct ky_command ky_command_list;
extern const struct ky_command ky_command_recover;
extern const struct ky_command ky_command_doctor;
extern const struct ky_command ky_command_debug_info;
extern const struct ky_command ky_command_symbols;
extern const struct ky_command ky_command_help;
extern const struct ky_command ky_command_completion;

/* The command called @name, or NULL. */
const struct ky_command *ky_command_find(const char *name);
/* "kymo: 'pirnt' is no command" and the nearest one, to stderr. Returns KY_EXIT_USAGE. */
int ky_command_unknown(const char *name);

/* ---- what commands share ------------------------------------------------------------- */

/* "kymo: PATH:LINE:COL: message; hint" on one line, to stderr. Returns KY_EXIT_FAIL. */
int ky_cli_error(const struct kymo_error *err);
/* What of it comes behind "kymo: ", without a line feed. */
void ky_cli_put_error(FILE *out, const struct kymo_error *err);
#define KY_CLI_PLACE_BYTES 96
/* " (at byte 9, packet 1, event 4)", as far as @err knows, into @buf. Returns @buf. */
const char *ky_cli_place(const struct kymo_error *err, char *buf, size_t size);
/* "kymo COMMAND: message" and where the help is, to stderr. Returns KY_EXIT_USAGE. */
int ky_cli_usage(const struct ky_command *command, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Writes "kymo: warning: ..." to stderr; what commands hand to the library. */
extern const struct ky_log ky_cli_log;

/* Foreign text for people, as base/foreign.h says. */
void ky_cli_put_text(FILE *out, const char *text);
/* The same with blanks behind it, up to @width characters. */
void ky_cli_put_padded(FILE *out, const char *text, int width);

/* Colour only on a terminal, and not with NO_COLOR or TERM=dumb. */
bool ky_cli_colour(FILE *out);
/* Does the user's locale have UTF-8, for blocks and other signs? */
bool ky_cli_locale_is_utf8(void);
/* Columns of the terminal; 80 when @out is no terminal. */
int ky_cli_columns(FILE *out);
/*
 * Make SIGPIPE an ordinary EPIPE, remembered by ky_cli_pipe_closed(). A handler, not
 * SIG_IGN: an ignored signal would be inherited by the command that `kymo record` runs.
 */
void ky_cli_catch_sigpipe(void);
/* A limit on the size of files (ulimit -f) is an error of write() from now on, like a full disk. */
void ky_cli_catch_sigxfsz(void);
/* True after a write to a pipe without a reader: stop. */
bool ky_cli_pipe_closed(void);
/* All of @text to the standard output, behind what stdio has. ky_cli_finish() tells of failures. */
void ky_cli_write(const struct ky_strbuf *text);
/*
 * Flush and check stdout: a full disk or a closed pipe must not look like success.
 * Returns @code, or KY_EXIT_FAIL with a message; a closed pipe (head) is silent and counts
 * as success. The dispatcher calls it after run(), so commands need not.
 */
int ky_cli_finish(int code);

/* A progress line on stderr, on a terminal only, at most ten times a second. @total 0: unknown. */
void ky_cli_progress(const char *what, uint64_t done, uint64_t total);
void ky_cli_progress_end(void);

#endif
