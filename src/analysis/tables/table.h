/* SPDX-License-Identifier: MIT */
/*
 * Typed tables: what reports produce and renderers show. A table knows its columns (name, class,
 * unit, meaning) and holds rows of cells; it knows nothing of the model, and copies what it is
 * given. Text in cells is foreign (base/foreign.h): the bytes that the trace has.
 *
 * Threads: one at a time per table.
 */
#ifndef KY_ANALYSIS_TABLES_TABLE_H
#define KY_ANALYSIS_TABLES_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/vec.h"

/* What a column's values are; the names are part of the JSON output. X(name, text) */
#define KY_CELL_CLASS_LIST(X)                                      \
	X(TEXT, "text")                                            \
	X(COUNT, "count")                                          \
	X(NUMBER, "number")                                        \
	X(DURATION, "duration")	  /* ns; real numbers for means */ \
	X(RATIO, "ratio")	  /* 1 is the whole */             \
	X(TIMESTAMP, "timestamp") /* ns from the clock's origin */ \
	X(CPU, "cpu")                                              \
	X(PROCESS, "process") /* a thread: tid, pid, name */       \
	X(SYSCALL, "syscall")                                      \
	X(TALLY, "tally")     /* names, each with a count */       \
	X(SIZE, "size")	      /* bytes */                          \
	X(RATE, "rate")	      /* per second */                     \
	X(ADDRESS, "address") /* in memory */                      \
	X(IRQ, "irq")	      /* an interrupt: kind, nr, name */   \
	X(PATH, "path")	      /* or another name of a file */      \
	X(DISK, "disk")                                            \
	X(NETIF, "netif")                                          \
	X(HEAT, "heat") /* a line of a heat map: counts */

enum ky_cell_class {
#define KY_CELL_CLASS_ENUM(name, text) KY_CELL_##name,
	KY_CELL_CLASS_LIST(KY_CELL_CLASS_ENUM)
#undef KY_CELL_CLASS_ENUM
};

/* "duration", ...; static. */
const char *ky_cell_class_text(enum ky_cell_class cls);

enum ky_bar {
	KY_BAR_NONE,
	KY_BAR_WHOLE, /* full length is 1 */
	KY_BAR_MOST,  /* full length is the largest of the table */
	KY_BAR_ROOM,  /* the same, on terminals that have room beside all columns */
};

struct ky_column {
	const char *name;  /* the key in JSON: "cpu_time" */
	const char *title; /* the heading: "CPU time" */
	enum ky_cell_class cls;
	const char *help;   /* what it means, with its unit; a sentence or two */
	enum ky_bar bar;    /* a bar at the end of the line shows this column */
	bool whole_process; /* of a process: text shows no thread id */
	bool second;	    /* a thread beside the row's own: text shows no process id */
	bool group;	    /* rows with the same value stand under one heading; the first column */
	bool command;	    /* commands without their trace: text appends it, for pasting */
	uint8_t spare;	    /* a narrow terminal leaves out the highest numbers first; 0 never */
	const char *called; /* what text calls it where it is left out; NULL: its heading */
};

enum ky_table_kind {
	KY_TABLE_RANK,	/* the first rows matter most */
	KY_TABLE_FIXED, /* all rows belong there */
	KY_TABLE_TOP,	/* single occurrences, the longest first */
	KY_TABLE_LOG,	/* single occurrences in their order; shown when asked for by name */
	KY_TABLE_FREQ,	/* how many lasted how long */
	KY_TABLE_PROSE, /* sentences: each row is a paragraph for people */
};

struct ky_table_def {
	const char *name;  /* "threads" */
	const char *title; /* "CPU time by thread" */
	const char *help;  /* what one row is, and the order of the rows */
	const struct ky_column *columns;
	size_t n_columns;
	enum ky_table_kind kind;
	bool is_detail;	     /* people see it when they ask for it by name */
	bool is_one_of_many; /* people see only its first rows unless they ask for it by name */
};

/* An initialiser; @columns is an array. */
#define KY_TABLE_DEF(name, title, help, columns, kind)                                 \
	{                                                                              \
		name, title, help, columns, sizeof(columns) / sizeof(*(columns)), kind \
	}

/* The same of a table that people see when they ask for it. */
#define KY_DETAIL_TABLE_DEF(name, title, help, columns, kind)                                \
	{                                                                                    \
		name, title, help, columns, sizeof(columns) / sizeof(*(columns)), kind, true \
	}

/* The same of a report that has many tables. */
#define KY_SHORT_TABLE_DEF(name, title, help, columns, kind)                                   \
	{                                                                                      \
		name, title, help, columns, sizeof(columns) / sizeof(*(columns)), kind, false, \
			true                                                                   \
	}

enum ky_cell_type {
	KY_VALUE_NONE, /* not known, or does not apply */
	KY_VALUE_U64,
	KY_VALUE_I64,
	KY_VALUE_F64,
	KY_VALUE_TEXT,
	KY_VALUE_PROCESS,
	KY_VALUE_TALLY,
	KY_VALUE_IRQ,
	KY_VALUE_HEAT,
};

struct ky_irq_id {
	const char *kind; /* "hard", "soft", "vector"; static */
	int32_t nr;	  /* < 0: it has none */
	const char *name; /* "" when unknown */
};

struct ky_process {
	int32_t tid, pid; /* < 0: unknown, or several */
	const char *comm; /* "" when unknown */
	const char *host; /* NULL where there is only one */
};

struct ky_tally_item {
	const char *name;
	uint64_t count;
};

struct ky_tally {
	size_t n_items;
	struct ky_tally_item *items;
};

/* A line of a heat map. */
struct ky_heat {
	size_t n;
	const uint64_t *counts;
	uint64_t most; /* of all lines: the darkest */
};

/* Levels of heat, from 0: nothing. */
#define KY_HEAT_LEVELS 6
/* The level of a count, by its logarithm. */
unsigned int ky_heat_level(const struct ky_heat *heat, size_t i);

struct ky_cell {
	enum ky_cell_type type;
	union {
		uint64_t u;
		int64_t s;
		double f;
		const char *text;
		const struct ky_process *process;
		const struct ky_tally *tally;
		const struct ky_irq_id *irq;
		const struct ky_heat *heat;
	};
};

struct ky_table {
	const struct ky_table_def *def;
	const char *title; /* the definition's, or what fits its order better */
	struct ky_arena arena;
	KY_VEC(struct ky_cell) cells; /* row after row */
	size_t n_omitted;	      /* rows that a limit took away */
	uint64_t
		max_groups; /* of a distribution: keep so many groups, once they are sorted; 0: all */
	uint64_t max_kept; /* rows that come in their last order, or groups of them; 0: all */
	size_t n_groups, n_counted; /* ky_table_is_full(): how many there are in so many rows */
	bool hidden;		    /* not asked for: renderers leave it out */
	bool failed;		    /* out of memory at some row; ky_table_status() */
};

void ky_table_init(struct ky_table *table, const struct ky_table_def *def);
void ky_table_fini(struct ky_table *table);

/*
 * A new last row, all cells empty, for the setters below; valid until the next row.
 * When out of memory: a scratch row, and the table is marked failed.
 */
struct ky_cell *ky_table_row(struct ky_table *table);
/* 0, or KYMO_E_MEMORY when some row or text could not be stored. */
int ky_table_status(const struct ky_table *table);

size_t ky_table_n_rows(const struct ky_table *table);
/* A row's cells, by column. */
const struct ky_cell *ky_table_cells(const struct ky_table *table, size_t row);

static inline void ky_cell_u64(struct ky_cell *cell, uint64_t value)
{
	*cell = (struct ky_cell){.type = KY_VALUE_U64, .u = value};
}

static inline void ky_cell_i64(struct ky_cell *cell, int64_t value)
{
	*cell = (struct ky_cell){.type = KY_VALUE_I64, .s = value};
}

static inline void ky_cell_f64(struct ky_cell *cell, double value)
{
	*cell = (struct ky_cell){.type = KY_VALUE_F64, .f = value};
}

/* @text is copied. */
void ky_cell_text(struct ky_table *table, struct ky_cell *cell, const char *text);
/* @comm and @host (may be NULL) are copied. */
void ky_cell_process(struct ky_table *table, struct ky_cell *cell, int32_t tid, int32_t pid,
		     const char *comm, const char *host);
/* @items and their names are copied. */
void ky_cell_tally(struct ky_table *table, struct ky_cell *cell, const struct ky_tally_item *items,
		   size_t n_items);

/* @kind is borrowed, @name is copied. */
void ky_cell_irq(struct ky_table *table, struct ky_cell *cell, const char *kind, int32_t nr,
		 const char *name);

/* @counts are copied. */
void ky_cell_heat(struct ky_table *table, struct ky_cell *cell, const uint64_t *counts, size_t n,
		  uint64_t most);

/* The index of the column called @name, or -1. */
int ky_table_column(const struct ky_table_def *def, const char *name);

/* Is every cell of @column empty? People are not shown such columns. */
bool ky_table_is_empty(const struct ky_table *table, size_t column);

/* A cell as a real number; a process' is its tid; other cells' is 0. */
double ky_cell_number(const struct ky_cell *cell);
/* Are the two the same value? For grouping. */
bool ky_cell_equal(const struct ky_cell *a, const struct ky_cell *b);

/*
 * Sort the rows, stable: larger values of @column first (or smaller ones: @ascending); empty
 * cells last. Text sorts by bytes, processes by tid.
 */
void ky_table_sort(struct ky_table *table, size_t column, bool ascending);
/* The same, and rows that are equal in @column by column @then. */
void ky_table_sort_then(struct ky_table *table, size_t column, bool ascending, size_t then,
			bool then_ascending);
/* The same for a table of groups: within each group, and the groups by their first rows then. */
void ky_table_sort_groups(struct ky_table *table, size_t column, bool ascending);

/*
 * Are there more rows, or groups of them, than will be kept? Who makes rows in their last order need not
 * go on then, and adds those that are left to n_omitted.
 */
bool ky_table_is_full(struct ky_table *table);
/* Keep the first @max rows, or of groups the first @max with as many rows each; 0: all. */
void ky_table_limit(struct ky_table *table, uint64_t max);
/* Keep the first @max groups, with all their rows; 0: all. */
void ky_table_limit_groups(struct ky_table *table, uint64_t max);
/* Keep the first @max rows, of each group where there are some; 0: all. */
void ky_table_limit_rows(struct ky_table *table, uint64_t max);

#endif
