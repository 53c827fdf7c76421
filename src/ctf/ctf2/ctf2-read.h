/* SPDX-License-Identifier: MIT */
/* CTF 2 metadata (a JSON text sequence) -> trace model. What metadata.c dispatches to. */
#ifndef KY_CTF_CTF2_CTF2_READ_H
#define KY_CTF_CTF2_CTF2_READ_H

#include "base/strbuf.h"
#include "ctf/model/child-tables.h"
#include "ctf/json/json.h"
#include "ctf/model/model.h"

/*
 * Read a CTF 2 metadata stream. @text need not be NUL-terminated and is not kept.
 * On success *trace is finished and the caller's to free.
 * Returns 0, KYMO_E_FORMAT or KYMO_E_UNSUPPORTED (an extension) with line and column,
 * KYMO_E_LIMIT, KYMO_E_MEMORY.
 */
int ky_ctf2_read(const char *text, size_t len_bytes, struct ky_trace_class **trace,
		 struct kymo_error *err);

/* ---- shared by ctf2-read.c (fragments), ctf2-fields.c (classes), ctf2-locate.c (locations) and others */

/* Where a field class stands: what locations start from. */
struct ky_ctf2_place {
	struct ky_field_class *cls;
	struct ky_ctf2_place
		*parent; /* the class that contains this one, or NULL: a scope's root */
	uint32_t order;	 /* of decoding, within the scope */
};

/* A length or selector still to be found. */
struct ky_ctf2_pending {
	struct ky_ctf2_place *place; /* of the class that needs it */
	struct ky_field_ref *ref;
	const struct ky_json *node; /* that class */
	const struct ky_json *location;
	enum ky_scope scope;
	bool is_length;
};

struct ky_ctf2_reader {
	struct ky_trace_class *trace;
	struct kymo_error *err;
	struct ky_arena json;	 /* the trees; freed after reading */
	struct ky_names aliases; /* name -> struct ky_json * of the effective field class */
	struct ky_map places;	 /* field class -> struct ky_ctf2_place * */
	KY_VEC(struct ky_ctf2_pending) pending;
	enum ky_scope scope;	      /* being built */
	struct ky_clock_class *clock; /* of timestamps in it */
	uint32_t order;
	uint64_t n_classes, classes_more; /* how many the length of the text adds to the limit */
	struct ky_child_tables tables;
	struct ky_names clocks;	     /* id -> clock class */
	struct ky_map attributes;    /* their JSON -> their text, for aliases */
	uint64_t attribute_bytes;    /* of all of them, unfolded */
	struct ky_strbuf alias_text; /* the fragments of all aliases */
	bool alias_attributes;	     /* one of those has some of its own */
	bool checking;		     /* an alias is built only to see whether it can be */
};

/* Build the structure at the root of @scope from property @key of @fragment; NULL property: none. */
int ky_ctf2_scope(struct ky_ctf2_reader *reader, const struct ky_json *fragment, const char *key,
		  enum ky_scope scope, struct ky_field_class **root);
/* Build any field class (an object, or an alias' name). */
int ky_ctf2_field_class(struct ky_ctf2_reader *reader, const struct ky_json *node,
			struct ky_ctf2_place *parent, struct ky_field_class **cls);
/* Find what the pending references of scopes built since the last call mean. */
int ky_ctf2_locate(struct ky_ctf2_reader *reader,
		   struct ky_field_class *const roots[KY_SCOPE_COUNT]);

/* Put @fragment, of CTF 2.0 or of one of its last drafts, in the words of CTF 2.0. */
int ky_ctf2_from_draft(struct ky_ctf2_reader *reader, struct ky_json *fragment);

/*
 * An integer range set for values of @bits (up to 64), signed or not: sorted, without overlaps, and
 * without what no such value can be. KY_RANGE_NEVER when nothing is left.
 */
int ky_ctf2_ranges(struct ky_ctf2_reader *reader, const struct ky_json *node, bool is_signed,
		   unsigned int bits, const struct ky_range **ranges, size_t *n_ranges);
/* Sort @n >= 1 @ranges, and make one of those that overlap. Returns how many are left. */
size_t ky_ctf2_unite(struct ky_range *ranges, size_t n, bool is_signed);
/* Bits that values of integer class @cls may have, as far as ranges are concerned. */
unsigned int ky_ctf2_value_bits(const struct ky_field_class *cls);

/*
 * The attributes of @node. What is no object does not count. What is beyond a limit when aliases
 * unfold is counted in ky_trace_class.n_attributes_lost: attributes never matter for reading.
 * 0 or KYMO_E_MEMORY.
 */
int ky_ctf2_attributes(struct ky_ctf2_reader *reader, const struct ky_json *node,
		       const char **attributes);

/* Refuse extensions of @object, which is not the preamble: none is ever declared. */
int ky_ctf2_no_extensions(struct ky_ctf2_reader *reader, const struct ky_json *object);

/* Typed properties; each returns 0 (also when it is absent and not @required) or KYMO_E_FORMAT. */
int ky_ctf2_string(struct ky_ctf2_reader *reader, const struct ky_json *object, const char *key,
		   bool required, const char **value);
int ky_ctf2_uint(struct ky_ctf2_reader *reader, const struct ky_json *object, const char *key,
		 bool required, uint64_t *value);

/* ---- ctf2-properties.c: what several field classes have ------------------------------------ */

/* Zeroed memory of the trace model; NULL, and reader->err, when none exists. */
void *ky_ctf2_alloc(struct ky_ctf2_reader *r, size_t count, size_t size);
/* *value: property @key, of @kind; NULL when none exists, which is an error if it is @required. */
int ky_ctf2_property(struct ky_ctf2_reader *r, const struct ky_json *object, const char *key,
		     bool required, enum ky_json_kind kind, const struct ky_json **value);
/* 1 when none exists. */
int ky_ctf2_align(struct ky_ctf2_reader *r, const struct ky_json *node, const char *key,
		  uint32_t *align);
/* Labels or flags, of numbers of @bits. */
int ky_ctf2_mappings(struct ky_ctf2_reader *r, const struct ky_json *node, const char *key,
		     bool is_signed, unsigned int bits, struct ky_field_class *cls);
int ky_ctf2_roles(struct ky_ctf2_reader *r, const struct ky_json *node, struct ky_field_class *cls);
int ky_ctf2_encoding(struct ky_ctf2_reader *r, const struct ky_json *node,
		     struct ky_field_class *cls);
/* A location, to be found when the scope is whole (ky_ctf2_locate()). */
int ky_ctf2_location(struct ky_ctf2_reader *r, const struct ky_json *node, const char *key,
		     bool is_length, struct ky_ctf2_place *place, struct ky_field_ref **ref);

/* ---- ctf2-preamble.c ------------------------------------------------------------------------ */

/* The version, the extensions, the attributes and the UUID. 0, KYMO_E_FORMAT or KYMO_E_UNSUPPORTED. */
int ky_ctf2_preamble(struct ky_ctf2_reader *reader, const struct ky_json *fragment);

/* ---- ctf2-clock.c --------------------------------------------------------------------------- */

/* Add the clock class that @fragment describes. */
int ky_ctf2_clock(struct ky_ctf2_reader *reader, const struct ky_json *fragment);
/* The clock class with internal ID @id, or NULL. */
struct ky_clock_class *ky_ctf2_find_clock(struct ky_ctf2_reader *reader, const char *id);

/* KYMO_E_FORMAT unless @node is an object; @what names it. */
int ky_ctf2_need_object(struct ky_ctf2_reader *reader, const struct ky_json *node,
			const char *what);

#endif
