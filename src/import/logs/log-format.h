/* SPDX-License-Identifier: MIT */
/*
 * Logs: text whose lines are events. Each format takes a line, or a few, and gives events to the trace with the functions here. All
 * text is foreign.
 *
 * Threads: one at a time per log.
 */
#ifndef KY_IMPORT_LOG_FORMAT_H
#define KY_IMPORT_LOG_FORMAT_H

#include "base/arena.h"
#include "base/hash.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "import/common/foreign-file.h"
#include "import/common/trace-maker.h"
#include "import/logs/log-late.h"
#include "import/logs/log-time.h"

/* A longer line is cut. */
#define KY_LOG_LINE_MAX (1u << 20)
/* An event has at most so many fields of its own. */
#define KY_LOG_FIELDS_MAX 256
/* What the trace maker has for the values of an event; it cuts texts beyond. */
#define KY_LOG_EVENT_MAX (255u << 10)

struct ky_log_value {
	const char *name;
	size_t name_len;
	enum ky_maker_kind kind; /* TEXT, S64, U64 or DOUBLE */
	const char *text;
	size_t len;
	bool is_escaped; /* TEXT: with backslashes, which the trace does not get */
	int64_t number;	 /* of U64: its bits */
	double real;
};

struct ky_log_format;

/* An event's name and the fields of its own: a class of the trace. */
struct ky_log_shape {
	const char *event;
	int number; /* of the class */
	size_t n;
	struct ky_log_shape_field {
		const char *name;
		size_t name_len;
		enum ky_maker_kind kind;
	} fields[];
};

struct ky_log_file {
	struct ky_foreign_file file;
	const char *name; /* of the file; of one in an archive, its name there */
	uint64_t at;	  /* the next line */
	uint64_t line_at; /* the line at hand */
	uint64_t line_number;
	uint64_t n_cut, n_strange; /* lines that were cut; that the format does not know */
	uint64_t n_shortened;	   /* events that lack some of their fields or texts */
	uint64_t n_early;	   /* events before 1970, which are at its begin */
	uint64_t n_timeless;	   /* events in whose line no time is known */
	uint64_t n_unmeasured;	   /* calls of which the log has no duration */
	uint64_t hole_bytes;	   /* bytes of holes, which are no lines */
	struct ky_log_clock clock;
	struct ky_maker *maker;
	struct ky_arena arena;
	struct ky_map classes; /* hash of an event's name and fields -> its shape */
	const struct ky_log_shape
		*shape; /* of the last event: mostly also of the next; may be NULL */
	size_t n_shape_fields, shape_names_bytes; /* of all shapes */
	struct ky_log_value
		replaced[2]; /* instead of the fields of an event without a shape of its own */
	size_t n_replaced;   /* 0: the event has a shape */
	size_t event_bytes;  /* of the event at hand */
	struct ky_log_late late;
	bool is_other_machine; /* the file says that it is of another architecture than x86-64 */
	bool is_late;	       /* the event at hand goes there */
	bool has_event;	       /* one that is no stray line, or more of those than are kept */
	bool is_untimed;       /* the file's lines have no times */
	bool is_graph;	       /* the file says that it is of ftrace's tracer function_graph */
	struct ky_strbuf
		early; /* stray lines before the first event, which get its time; a line feed ends each */
	bool is_log; /* false: of an importer of another format, which makes its events here, too */
	const struct ky_log_format *format;
	void *state;	 /* the format's */
	uint32_t stream; /* of the next event: its CPU, where the format has CPUs */
	struct ky_strbuf unescaped;
	struct ky_strbuf
		joined; /* all fields of an event with a shape of its own, where there are too many */
	int64_t origin_ns;	 /* of a format whose times count from a time that it tells */
	int64_t last_ns;	 /* of the last event: that of a line without a time */
	int64_t newest_ns;	 /* of all events so far */
	const char *time_format; /* of the user; NULL: none */
	struct kymo_error *err;
};

struct ky_log_format {
	const char *name, *description;
	const char *domain; /* env domain of the trace; NULL: "log" */
	const struct ky_maker_field *context;
	size_t n_context;
	bool has_cpus;		/* each CPU has a stream */
	bool takes_time_format; /* of the user, log->time_format */
	/* Is @line, the first or second that is not empty, of this format, plainly? NULL: only where the user says so. */
	bool (*probe)(const char *line, size_t len);
	/* Likewise of a format without lines: @head is the file's beginning. */
	bool (*probe_head)(const char *head, size_t len);
	int (*begin)(struct ky_log_file *log); /* may be NULL */
	/* Instead of lines: all of the file, which the format reads. */
	int (*file)(struct ky_log_file *log);
	/* 1: it was one of its lines; 0: it was not; negative. */
	int (*line)(struct ky_log_file *log, const char *line, size_t len);
	void (*end)(struct ky_log_file *log); /* may be NULL: frees ->state */
};

/* The next line without its line feed. 1, 0 at the end, negative. Valid until the next call. */
int ky_log_next_line(struct ky_log_file *log, const char **line, size_t *len);
/* @len bytes after the line at hand, as some formats have; moves on. NULL: log->err. */
const char *ky_log_bytes(struct ky_log_file *log, uint64_t len);

/*
 * Begin event @name at @ns with these fields of its own, which are put into the order in which they first came. The format then adds the
 * context's values, and calls ky_log_put(). 0 or negative. (log-shape.c)
 */
int ky_log_begin(struct ky_log_file *log, const char *name, int64_t ns, struct ky_log_value *values,
		 size_t n);
void ky_log_context_number(struct ky_log_file *log, int64_t value);
void ky_log_context_text(struct ky_log_file *log, const char *text, size_t len);
int ky_log_put(struct ky_log_file *log, const struct ky_log_value *values, size_t n);

/* Both, for formats without a context. 0 or negative. */
int ky_log_event(struct ky_log_file *log, const char *name, int64_t ns, struct ky_log_value *values,
		 size_t n);

static inline struct ky_log_value ky_log_text(const char *name, const char *text, size_t len)
{
	return (struct ky_log_value){.name = name,
				     .name_len = strlen(name),
				     .kind = KY_MAKER_TEXT,
				     .text = text,
				     .len = len};
}

static inline struct ky_log_value ky_log_number(const char *name, int64_t number)
{
	return (struct ky_log_value){
		.name = name, .name_len = strlen(name), .kind = KY_MAKER_S64, .number = number};
}

/* "value" as a number where it is one, else as text. */
struct ky_log_value ky_log_guess(const char *name, size_t name_len, const char *text, size_t len);
/* The number that @text is: at most 18 digits, without a zero in front. */
bool ky_log_is_number(const char *text, size_t len, int64_t *number);
/* Whether one of the first words of @text is a level of a message, such as INFO or [error]. (log-program.c) */
bool ky_log_has_level(const char *text, size_t len);
/* A line that the format does not know becomes an event "line". (log-stray.c) */
int ky_log_stray(struct ky_log_file *log, const char *line, size_t len);
/* The first event is at @ns, or the file has no event: the lines that wait become events. 0 or negative. (log-stray.c) */
int ky_log_stray_flush(struct ky_log_file *log, int64_t ns);
/* What the window has of the file, from log->at on, without reading; *len: how much. */
const char *ky_log_window(const struct ky_log_file *log, size_t *len);
/* Words key=value, key="some words" and key alone (the number 1), from *@text on: the next one. False: none is left. */
bool ky_log_pair(const char **text, const char *end, struct ky_log_value *value);
/* Adds @text to @to with what its escapes stand for: \n, \", \xHH, \uHHHH, and pairs of these. */
void ky_log_unescape(struct ky_strbuf *to, const char *text, size_t len);

/*
 * The JSON text as a json_t of the caller's; NULL: the text is not JSON. Numbers that JSON allows and 64 bits do not hold are texts in it, likewise
 * NaN and Infinity, which JSON does not allow: then *is_repaired. With @texts, bytes in texts that JSON does not allow are replaced. (log-json-repair.c)
 */
void *ky_log_json_load(const char *text, size_t len, bool texts, bool *is_repaired);
/*
 * The members of a line that is one JSON object without others in it, as fields; an escaped text is kept in @texts. The number of
 * fields; negative: the line is not that simple, or no JSON at all. (log-json-flat.c)
 */
int ky_log_json_flat(const char *line, size_t len, struct ky_strbuf *texts,
		     struct ky_log_value values[KY_LOG_FIELDS_MAX]);
/* The decimal number @text, if it is one of 64 bits, with or without a sign: its kind, S64 or U64. Else TEXT. (log-json-flat.c) */
enum ky_maker_kind ky_log_json_integer(const char *text, size_t len, int64_t *number);
/*
 * A JSON value as a field; *@made gets a text that had to be made, for free(). @is_repaired: numbers above 2^63 are texts in it. False: it is
 * null. (log-json.c; void *: a json_t)
 */
bool ky_log_json_value(const char *name, void *json, bool is_repaired, struct ky_log_value *field,
		       char **made);

extern const struct ky_log_format ky_log_chrome, ky_log_syslog, ky_log_syslog_5424, ky_log_dmesg,
	ky_log_json, ky_log_logfmt, ky_log_journal, ky_log_strace, ky_log_ftrace, ky_log_systrace,
	ky_log_regex, ky_log_program, ky_log_access, ky_log_audit;

/* Whether a file begins with the byte order mark of UTF-8. */
#define KY_LOG_BOM_BYTES 3
static inline bool ky_log_has_bom(const void *bytes, size_t len)
{
	return len >= KY_LOG_BOM_BYTES && memcmp(bytes, "\xef\xbb\xbf", KY_LOG_BOM_BYTES) == 0;
}

/* By the name that users give; NULL: unknown. */
const struct ky_log_format *ky_log_format_find(const char *name, size_t len);
/* The @i-th; NULL: there are no more. */
const struct ky_log_format *ky_log_format_at(size_t i);
/* The format of the file @path, by its first lines; NULL: none is plain. */
const struct ky_log_format *ky_log_format_of(const char *path);

#endif
