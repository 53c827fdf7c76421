/* SPDX-License-Identifier: MIT */
/* What the writers of CTF 2's fragments and of its field classes share. */
#ifndef KY_CTF_CTF2_CTF2_WRITER_H
#define KY_CTF_CTF2_CTF2_WRITER_H

#include "base/strbuf.h"
#include "ctf/model/child-tables.h"
#include "ctf/model/model.h"

struct ky_ctf2_writer {
	struct ky_strbuf out;
	const struct ky_trace_class *trace;
	const struct ky_stream_class *stream; /* being written */
	const struct ky_event_class *event;
	struct kymo_error *err;
	int indent;
	struct ky_child_tables tables;
};

/* ---- JSON, indented ------------------------------------------------------------------------- */

/* A line's end, and the blanks that the next begins with. */
void ky_ctf2_put_line(struct ky_ctf2_writer *w);
void ky_ctf2_put_string(struct ky_ctf2_writer *w, const char *text);
void ky_ctf2_open_with(struct ky_ctf2_writer *w, char bracket);
void ky_ctf2_close_with(struct ky_ctf2_writer *w, char bracket);
/* Begin a property; the first of its object when the text ends with '{'. */
void ky_ctf2_put_key(struct ky_ctf2_writer *w, const char *name);
/* Begin an element of an array; the first when the text ends with '['. */
void ky_ctf2_put_element(struct ky_ctf2_writer *w);
/* Whole properties. */
void ky_ctf2_put_text(struct ky_ctf2_writer *w, const char *name, const char *text);
void ky_ctf2_put_uint(struct ky_ctf2_writer *w, const char *name, uint64_t value);
/* @attributes: JSON; NULL: none. */
void ky_ctf2_put_attributes(struct ky_ctf2_writer *w, const char *attributes);

/* ---- ctf2-write-ranges.c -------------------------------------------------------------------- */

bool ky_ctf2_is_signed(const struct ky_field_class *cls);
/* Elements of an array that was begun. */
void ky_ctf2_put_ranges(struct ky_ctf2_writer *w, const struct ky_range *ranges, size_t n,
			bool is_signed);
/*
 * Property @name: the labels of @cls, each once, in the order in which they first occur, with all
 * that they stand for; nothing when it has none. 0 or KYMO_E_MEMORY.
 */
int ky_ctf2_put_mappings(struct ky_ctf2_writer *w, const char *name,
			 const struct ky_field_class *cls);

/* ---- ctf2-write-fields.c -------------------------------------------------------------------- */

/* Property @name: the field class @root, when there is one. 0 or KYMO_E_UNSUPPORTED, KYMO_E_MEMORY. */
int ky_ctf2_put_scope(struct ky_ctf2_writer *w, const char *name,
		      const struct ky_field_class *root);

#endif
