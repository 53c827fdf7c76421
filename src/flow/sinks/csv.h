/* SPDX-License-Identifier: MIT */
/*
 * Sinks that write comma separated values (RFC 4180, UTF-8, lines end in a line feed).
 *
 * Numbers are decimal, an enumeration is its label (its number when it has none), text has the form
 * of base/csv.h (@raw: also text that a spreadsheet treats as a formula), a BLOB is hexadecimal;
 * arrays, and structures inside of others, are one cell of JSON. A field that the event does not
 * have is an empty cell.
 */
#ifndef KY_FLOW_SINKS_CSV_H
#define KY_FLOW_SINKS_CSV_H

#include "flow/graph/sink.h"

struct ky_value;
struct ky_strbuf;

/*
 * One file per event name in directory @path, which must exist: NAME.csv. Columns: timestamp_ns
 * (empty without a clock), stream (its file's name), cpu, the contexts' fields ("ctx.tid"), the
 * payload's fields; members of a structure have columns of their own ("point.x"). Events of the
 * same name with other columns (of another trace) get a file NAME-2.csv.
 */
int ky_csv_directory_sink_open(const char *path, bool raw, struct ky_sink **sink,
			       struct kymo_error *err);

/*
 * A sink that holds such lines (slices.h), of any files, for another sink that writes them. NULL:
 * memory is out.
 */
struct ky_sink *ky_csv_directory_part_new(bool raw);
/*
 * Writes the contents of @part, which then drops them, after the earlier lines. @sink: from
 * ky_csv_directory_sink_open().
 */
int ky_csv_directory_sink_add(void *sink, struct ky_sink *part, struct kymo_error *err);

/*
 * One table of all events, written to @fd (the caller's). @fields are its columns, separated by
 * commas: $time, $event, $stream, $cpu, or a field in the form of filters (query/filter.h), where
 * "a.b" is member b of structure a.
 *
 * The function checks them and writes the first line, the columns' names. Sinks write the other
 * lines. KYMO_E_INVALID for a field that no event of @set has; KYMO_E_MEMORY; KYMO_E_IO.
 */
int ky_csv_table_begin(const struct ky_trace_set *set, const char *fields, bool raw, int fd,
		       struct kymo_error *err);
/* @fields were checked before and must outlive the sink. NULL: memory is out. */
struct ky_sink *ky_csv_table_sink_new(const char *fields, bool raw, int fd);

/*
 * ---- cells: the shared part
 * -----------------------------------------------------------------------
 */

/* A value as one cell. @scratch: any buffer, cleared. */
void ky_csv_value(struct ky_strbuf *out, const struct ky_value *value, bool raw,
		  struct ky_strbuf *scratch);

#endif
