/* SPDX-License-Identifier: MIT */
/* The TSDL writer's state, shared by tsdl-write.c (blocks) and tsdl-write-types.c (types). */
#ifndef KY_CTF_TSDL_TSDL_WRITE_H
#define KY_CTF_TSDL_TSDL_WRITE_H

#include "base/strbuf.h"
#include "ctf/model/child-tables.h"
#include "ctf/model/model.h"

/* A struct whose members are being written: what relative paths can reach. */
struct ky_tsdl_open {
	const struct ky_field_class *st;
	size_t n_written;
};

struct ky_tsdl_writer {
	const struct ky_trace_class *trace;
	const struct ky_stream_class *stream; /* whose block, or whose event's, is written */
	const struct ky_event_class *event;
	struct ky_strbuf *out;
	enum ky_scope scope;
	int indent;
	KY_VEC(struct ky_tsdl_open) open;
	struct ky_names named; /* structs that were written by name */
	struct ky_child_tables tables;
	struct kymo_error *err;
	bool is_naming; /* a struct by name, before it is known whose scopes it will be */
};

/* KYMO_E_UNSUPPORTED: there is no word for @what. */
int ky_tsdl_cannot_say(struct ky_tsdl_writer *w, const char *what);
/* The path of what @ref refers to, as it is found from here. */
int ky_tsdl_put_ref(struct ky_tsdl_writer *w, const struct ky_field_ref *ref, bool is_length);
void ky_tsdl_writer_fini(struct ky_tsdl_writer *w);
/* Write "struct NAME {...}", without a name where @name is NULL. 0, KYMO_E_UNSUPPORTED or KYMO_E_MEMORY. */
int ky_tsdl_put_struct(struct ky_tsdl_writer *w, const struct ky_field_class *cls,
		       const char *name);

/*
 * Write "struct NAME {...};" for the root of a scope that bears a name (LTTng's packet_context
 * and event headers), so that later streams can refer to it. Does nothing for the nameless.
 */
int ky_tsdl_name_scope(struct ky_tsdl_writer *w, enum ky_scope scope,
		       const struct ky_field_class *root);

/* Write "@name := TYPE;" for the root of a scope. 0, KYMO_E_UNSUPPORTED or KYMO_E_MEMORY. */
int ky_tsdl_put_scope(struct ky_tsdl_writer *w, enum ky_scope scope,
		      const struct ky_field_class *root, const char *name);

/* A quoted string with escapes. */
void ky_tsdl_put_text(struct ky_strbuf *out, const char *text);

#endif
