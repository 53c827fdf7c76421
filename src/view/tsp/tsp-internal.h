/* SPDX-License-Identifier: MIT */
/* What the answers of the Trace Server Protocol share. */
#ifndef KY_VIEW_TSP_INTERNAL_H
#define KY_VIEW_TSP_INTERNAL_H

#include "ctf/json/json.h"
#include "view/session/notes.h"
#include "view/tsp/tsp.h"
#include "view/answers/answer-internal.h"
#include "view/answers/columns-read.h"

#define KY_TSP_TRACES_MAX      64
#define KY_TSP_EXPERIMENTS_MAX 32
#define KY_TSP_ANSWER_BYTES    ((size_t)64 << 20)

/* Ids of outputs. */
#define KY_TSP_REPORT	 "kymo.report."
#define KY_TSP_CPU_USAGE "kymo.cpu-usage"
#define KY_TSP_COUNTERS	 "kymo.counters"
#define KY_TSP_DURATIONS "kymo.durations"
/* Clients make outputs from it: "kymo.critical-path.1234". */
#define KY_TSP_PATH "kymo.critical-path"
#define KY_TSP_HISTOGRAM \
	"org.eclipse.tracecompass.internal.tmf.core.histogram.HistogramDataProvider"
#define KY_TSP_EVENTS_TABLE \
	"org.eclipse.tracecompass.internal.provisional.tmf.core.model.events.TmfEventTableDataProvider"

/* ---- objects ----------------------------------------------------------------------------- */

/* Opened traces, which experiments of the same traces share. */
struct ky_tsp_engine {
	struct ky_trace_set set; /* empty: ->view is borrowed */
	struct ky_view *view;	 /* NULL: of ->live */
	struct ky_view_live *live;
	struct ky_tsp_following *following; /* NULL: ->live is borrowed */
	struct ky_view_notes *notes;	    /* bookmarks */
	bool is_borrowed;
	/* The state history of complete traces was there once. Relaxed: only so that nobody waits for its lock to ask again. */
	atomic_bool has_history;
	unsigned int n_users;
};

struct ky_tsp_path;

struct ky_tsp_trace {
	char uuid[KY_TSP_UUID_BYTES];
	char *name, *path; /* without symbolic links, if it is a file */
	/* On the command line: it may be no trace of CTF, so it stays when a client removes it, but hidden. */
	bool is_given, is_hidden;
	int64_t begin_ns, end_ns;
	char *properties; /* a JSON object */
};

struct ky_tsp_experiment {
	char uuid[KY_TSP_UUID_BYTES];
	char *name;
	KY_VEC(struct ky_tsp_trace *) traces; /* valid while it is in the list */
	struct ky_tsp_engine *engine;
	unsigned int n_users;		    /* the list, and answers in progress */
	KY_VEC(struct ky_tsp_path *) paths; /* outputs that clients made */
};

struct ky_tsp {
	/* Immutable: */
	char **roots; /* below which traces may be opened */
	size_t n_roots;
	bool is_limited; /* to them */
	bool (*is_recorded)(const char *const *paths, size_t n_paths);
	pthread_mutex_t lock; /* for what follows; no answer reads a trace under it */
	KY_VEC(struct ky_tsp_trace *) traces;
	KY_VEC(struct ky_tsp_experiment *) experiments;
	struct ky_tsp_engine *given; /* of the command line's traces; or NULL */
	size_t n_given;
};

/* One answer. */
struct ky_tsp_answer {
	struct ky_tsp *tsp;
	const struct ky_tsp_request *request;
	const struct ky_view_stop *stop;
	struct ky_strbuf *out;
	struct ky_tsp_experiment *experiment; /* or NULL */
	struct ky_view *view;		      /* the experiment's; of a recording, as it is now */
	unsigned int status;		      /* 0: as the error says */
};

/*
 * Traces, experiments and bookmarks. 0 or a negative status; ->status is 409 with the answer in ->out on
 * a clash.
 */
int ky_tsp_traces(struct ky_tsp_answer *answer, struct kymo_error *err);
int ky_tsp_experiments(struct ky_tsp_answer *answer, struct kymo_error *err);
int ky_tsp_bookmarks(struct ky_tsp_answer *answer, struct kymo_error *err);

/* A UUID from texts: the same for the same texts. */
void ky_tsp_make_uuid(char out[KY_TSP_UUID_BYTES], const char *kind, const char *a, const char *b);
/* The caller has the lock. NULL: no such one. */
struct ky_tsp_trace *ky_tsp_find_trace(struct ky_tsp *tsp, const char *uuid);
struct ky_tsp_experiment *ky_tsp_find_experiment(struct ky_tsp *tsp, const char *uuid);
/* The experiment of @uuid stays until it is put back. NULL: no such one. */
struct ky_tsp_experiment *ky_tsp_take_experiment(struct ky_tsp *tsp, const char *uuid);
/* The caller has the lock. Returns an experiment that nobody uses any more, to free without the lock; or NULL. */
struct ky_tsp_experiment *ky_tsp_put_experiment(struct ky_tsp_experiment *experiment);
void ky_tsp_free_experiment(struct ky_tsp *tsp, struct ky_tsp_experiment *experiment);
/* The view of @engine as it is now; the caller puts it back. */
struct ky_view *ky_tsp_take_view(struct ky_tsp_engine *engine);
void ky_tsp_put_view(struct ky_tsp_engine *engine, struct ky_view *view);
/* Do the traces of @view still grow? */
static inline bool ky_tsp_is_growing(const struct ky_view *view)
{
	return view->recording && view->recording->is_running &&
	       !atomic_load_explicit(&view->recording->error, memory_order_acquire);
}

/*
 * Follow the recording at @paths: engine->live and ->following, which ky_tsp_unfollow() frees. Errors: those of ky_tsp_open().
 */
int ky_tsp_follow(const struct ky_tsp *tsp, const char *const *paths, size_t n_paths,
		  struct ky_tsp_engine *engine, struct kymo_error *err);
void ky_tsp_unfollow(struct ky_tsp_engine *engine);

/* The caller has no lock. NULL is allowed. */
void ky_tsp_put_engine(struct ky_tsp *tsp, struct ky_tsp_engine *engine);
void ky_tsp_free_trace(struct ky_tsp_trace *trace);
/* An array, without hidden ones. The caller has the lock. */
void ky_tsp_put_traces(struct ky_tsp *tsp, struct ky_tsp_trace *const *traces, size_t n,
		       struct ky_strbuf *out);
/* Make the traces of the command line, which @set has now. 0 or KYMO_E_MEMORY. */
int ky_tsp_give_list(struct ky_tsp *tsp, const char *const *paths, size_t n_paths,
		     const struct ky_trace_set *set);
/* The same, and their experiment. */
int ky_tsp_give_traces(struct ky_tsp *tsp, const struct ky_tsp_source *source,
		       struct kymo_error *err);

/*
 * Open the traces at @paths, if this server may; @follows: they may be incomplete. Returns 0; KYMO_E_PERMISSION; KYMO_E_NOT_FOUND; or the
 * error of the reader.
 */
int ky_tsp_open(const struct ky_tsp *tsp, const char *const *paths, size_t n_paths, bool follows,
		struct ky_trace_set *set, struct kymo_error *err);
/* @path without symbolic links, if this server may open it; the caller frees it. NULL and *err. */
char *ky_tsp_allowed_path(const struct ky_tsp *tsp, const char *path, struct kymo_error *err);

/* ---- outputs ----------------------------------------------------------------------------- */

/* The answers about outputs: all of them {"status", "statusMessage", "model"}, but the first two. */
int ky_tsp_outputs(struct ky_tsp_answer *answer, struct kymo_error *err);
int ky_tsp_graph(struct ky_tsp_answer *answer, struct kymo_error *err);
/* Of outputs that clients made: all answers of a time graph. */
int ky_tsp_path_graph(struct ky_tsp_answer *answer, struct kymo_error *err);
/* Types of configurations, making and removing an output. */
int ky_tsp_derive(struct ky_tsp_answer *answer, struct kymo_error *err);
void ky_tsp_path_free(struct ky_tsp_path *path);
/* Is it the id of a path? */
bool ky_tsp_is_path(const char *id);
int ky_tsp_xy(struct ky_tsp_answer *answer, struct kymo_error *err);
int ky_tsp_generic(struct ky_tsp_answer *answer, struct kymo_error *err);
int ky_tsp_table(struct ky_tsp_answer *answer, struct kymo_error *err);
int ky_tsp_data_tree(struct ky_tsp_answer *answer, struct kymo_error *err);
int ky_tsp_styles(struct ky_tsp_answer *answer, struct kymo_error *err);
int ky_tsp_annotations(struct ky_tsp_answer *answer, struct kymo_error *err);

/* The report of an output; NULL: the output has another type. */
/* *@of: what a report on causes is about, as --of. */
const struct ky_report *ky_tsp_report(const char *output, const char **of);
/* 0, or KYMO_E_NOT_FOUND if there is no output @id of type @type (NULL: any). */
int ky_tsp_check_output(const char *id, const char *type, struct kymo_error *err);
/* The rows with data of an output: bits of enum ky_row_kind; 0: the output has others. */
unsigned int ky_tsp_row_kinds(const char *output);

/*
 * The experiment's state history with its lock, for ky_view_put_history(). NULL and no error: it is not there
 * yet, and the answer's status is RUNNING.
 */
struct ky_history *ky_tsp_begin_history(struct ky_tsp_answer *answer, struct kymo_error *err);
/* Is that of @view, the engine's, complete, or has building failed? Begins to build it. */
bool ky_tsp_history_is_over(struct ky_tsp_engine *engine, struct ky_view *view);

/* The tree of the output's rows with data, and all rows above them. 0 or KYMO_E_MEMORY. */
int ky_tsp_put_tree(struct ky_tsp_answer *answer, struct ky_history *history,
		    struct kymo_error *err);
/* tsp-arrows.c: the whole answer with the arrows of the output; @history: NULL: none yet. 0 or a negative status. */
int ky_tsp_put_arrows(struct ky_tsp_answer *answer, struct ky_history *history,
		      struct kymo_error *err);
/* {"status": ..., "statusMessage": ..., "model": */
void ky_tsp_put_head(struct ky_strbuf *out, bool is_running);
/* The style key of states of @kind, such as "wait-cpu"; static. */
const char *ky_tsp_style(enum ky_state_kind kind);
/* "CPU 0", "postgres (4711)": foreign text. */
void ky_tsp_label(const struct ky_history_row *row, struct ky_strbuf *label);
/* The name, thread or number of a state; "" for none. The text is foreign, and in @text. */
const char *ky_tsp_state_name(struct ky_history *history, uint64_t state, struct ky_strbuf *text);
/* Add @ns as a local date and time. */
void ky_tsp_time(struct ky_strbuf *out, int64_t ns);
/*
 * Does a state with these @n texts match all @expressions? An expression is a part of a text, in large or small
 * letters, or a comparison such as "duration > 10ms".
 */
bool ky_tsp_matches(const struct ky_tsp_texts *expressions, const char *const *texts, size_t n,
		    uint64_t duration_ns);
/*
 * Ask the engine as the page would; the JSON tree lives in @arena. 0 or as ky_view_answer().
 */
int ky_tsp_ask(struct ky_tsp_answer *answer, const struct ky_view_request *request,
	       struct ky_arena *arena, const struct ky_json **root, struct kymo_error *err);
/* The same for an answer in columns, which lives in @arena. */
int ky_tsp_ask_columns(struct ky_tsp_answer *answer, const struct ky_view_request *request,
		       struct ky_arena *arena, struct ky_view_columns *columns,
		       struct kymo_error *err);
/*
 * The number of the first event at @ns or later, of those that the filter of @request selects; the function changes the rest
 * of @request. *@is_exact: false: it is not counted yet.
 */
int ky_tsp_ask_rank(struct ky_tsp_answer *answer, struct ky_view_request *request, int64_t ns,
		    uint64_t *row, bool *is_exact, struct kymo_error *err);
/* Of an answer: the values of a column of numbers, if there are @n; else NULL. */
const int64_t *ky_tsp_numbers(const struct ky_view_columns *columns, const char *name, size_t n);
/* A member of an answer's head: is it true? */
bool ky_tsp_flag(const struct ky_view_columns *columns, const char *name);
/* Is counting over, as far as the answer tells? */
bool ky_tsp_is_counted(const struct ky_view_columns *columns);

/* Events of an answer. A time can be INT64_MIN: none. CPUs: a number and one; 0: none. */
struct ky_tsp_rows {
	struct ky_view_columns columns;
	size_t n;
	const int64_t *times, *traces, *cpus;
	const struct ky_view_value_text *texts;
	const struct ky_view_values *names; /* of ->name_numbers */
	const int64_t *name_numbers;	    /* from 1 on */
};

/* Ask for events; @request->what is set. As ky_tsp_ask_columns(). */
int ky_tsp_ask_rows(struct ky_tsp_answer *answer, struct ky_view_request *request,
		    struct ky_arena *arena, struct ky_tsp_rows *rows, struct kymo_error *err);
/* The name of an event, foreign text. */
static inline const struct ky_view_value_text *ky_tsp_name(const struct ky_tsp_rows *rows, size_t i)
{
	return &rows->names->texts[rows->name_numbers[i] - 1];
}

/* The JSON tree of @text lives in @arena. 0, KYMO_E_FORMAT or KYMO_E_MEMORY. */
int ky_tsp_parse(const struct ky_strbuf *text, struct ky_arena *arena, const struct ky_json **root,
		 struct kymo_error *err);

#endif
