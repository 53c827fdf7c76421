/* SPDX-License-Identifier: MIT */
/*
 * The TSDL parser's state and the functions that its files share:
 *	tsdl-parse.c	statements of the text: blocks, clocks, streams, events
 *	tsdl-attr.c	NAME = VALUE; NAME := TYPE;
 *	tsdl-types.c	struct, variant, and what enum has in common with them
 *	tsdl-numbers.c	integer, floating_point, string
 *	tsdl-enum.c	enum
 *	tsdl-decl.c	names of types: scopes, typedef, typealias
 *	tsdl-declarator.c	NAME[LENGTH]: arrays and sequences
 *	tsdl-copy.c	each use of a named type is a copy of its own
 *	tsdl-bind.c	what lengths and tags refer to
 *	tsdl-bits.c	bit fields in C's notation
 *
 * Recursive descent over the list of tokens; types are built directly as field classes of the
 * model. The byte order of the trace is looked up in the tokens beforehand, so `native` is
 * known from the first type on; clocks are read beforehand, too.
 *
 * All functions return 0 or a negative status with the error set, unless they say otherwise.
 */
#ifndef KY_CTF_TSDL_TSDL_PARSER_H
#define KY_CTF_TSDL_TSDL_PARSER_H

#include "base/strbuf.h"
#include "ctf/model/child-tables.h"
#include "ctf/model/model.h"
#include "ctf/tsdl/tsdl-lex.h"

/*
 * Field classes that the copies of one trace may need beyond one per token of its text; the
 * largest real ones need tens of thousands.
 */
#define KY_TSDL_NODES_MAX (UINT64_C(1) << 20)

/* A region of the text with type names of its own. */
struct ky_tsdl_scope {
	struct ky_tsdl_scope *parent;
	struct ky_names types; /* "uint32_t", "unsigned long", "struct foo", "struct foo *" */
};

/* The struct or variant whose fields are being read. */
struct ky_tsdl_struct {
	struct ky_field_class *cls; /* NULL: a variant */
	size_t n_laid_out;	    /* members that these two count: */
	uint32_t align_bits;
	int64_t end_bits; /* -1: varies */
	bool new_unit;	  /* an empty bit field came last */
};

/*
 * An event block that was read; it joins its stream at the end, when all of them are known.
 */
struct ky_tsdl_event {
	const struct ky_token *at;
	const char *name, *emf_uri;
	uint64_t id, stream_id;
	int64_t loglevel;
	bool has_id, has_stream_id, has_loglevel;
	struct ky_field_class *context, *payload;
};

struct ky_tsdl_parser {
	struct ky_trace_class *trace;
	struct ky_arena arena; /* tokens, scopes: gone when the parser is */
	struct ky_tokens tokens;
	const struct ky_token *at; /* the next token */
	struct ky_tsdl_scope *scope;
	KY_VEC(struct ky_field_class *) open; /* structs being parsed, the innermost last */
	struct ky_tsdl_struct *body;	      /* the innermost struct or variant */
	KY_VEC(struct ky_tsdl_event) events;
	bool has_trace;
	uint64_t n_nodes;
	size_t n_paddings; /* bit fields without a name */
	uint64_t variant_budget;
	struct ky_map copies; /* while copying: referred field -> its copy */
	struct ky_child_tables tables;
	struct ky_names env, clocks; /* name -> number in the trace's list, from 1 on */
	struct kymo_error *err;	     /* never NULL here */
};

/*
 * A type that was named or spelled out. @shared: it is registered under a name, so whoever puts
 * it into a place takes a copy (ky_tsdl_take()).
 */
struct ky_tsdl_type {
	struct ky_field_class *cls; /* NULL: @key is not the name of a type */
	bool shared;
	const char *key; /* its name in the scopes' tables, or NULL */
	const struct ky_token *token;
};

/* One NAME = VALUE or NAME := TYPE. */
struct ky_tsdl_attr {
	const char *name; /* dotted path */
	const struct ky_token *name_at, *value_at;
	enum { KY_ATTR_NUMBER, KY_ATTR_TEXT, KY_ATTR_WORD, KY_ATTR_TYPE } kind;
	bool negative;
	uint64_t number;	     /* its magnitude */
	const char *text;	     /* TEXT, or WORD: dotted path */
	struct ky_field_class *type; /* its own copy */
};

/*
 * Parse TSDL text into a finished model, the caller's to free. @err may be NULL here.
 * Returns 0, KYMO_E_FORMAT, KYMO_E_UNSUPPORTED, KYMO_E_LIMIT (line and column) or KYMO_E_MEMORY.
 */
int ky_tsdl_parse(const char *text, size_t len_bytes, struct ky_trace_class **trace,
		  struct kymo_error *err);

/* ---- tokens (tsdl-attr.c) ---------------------------------------------------------------- */

/* Set a KYMO_E_FORMAT error at @token, and return it. */
int ky_tsdl_fail(struct ky_tsdl_parser *p, const struct ky_token *token, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The same for what is right, but beyond this reader: KYMO_E_UNSUPPORTED. */
int ky_tsdl_unsupported(struct ky_tsdl_parser *p, const struct ky_token *token, const char *what);
/* "expected @what, found ...", at the next token. */
int ky_tsdl_expected(struct ky_tsdl_parser *p, const char *what);

static inline bool ky_tsdl_is(const struct ky_tsdl_parser *p, uint8_t punct)
{
	return p->at->kind == KY_TOKEN_PUNCT && p->at->punct == punct;
}

static inline bool ky_tsdl_is_keyword(const struct ky_tsdl_parser *p, enum ky_keyword keyword)
{
	return p->at->kind == KY_TOKEN_WORD && p->at->keyword == keyword;
}

static inline bool ky_tsdl_is_identifier(const struct ky_tsdl_parser *p)
{
	return p->at->kind == KY_TOKEN_WORD && p->at->keyword == KY_KEYWORD_NONE;
}

/* Take the punctuator if it comes next. */
static inline bool ky_tsdl_accept(struct ky_tsdl_parser *p, uint8_t punct)
{
	if (!ky_tsdl_is(p, punct))
		return false;
	p->at++;
	return true;
}

int ky_tsdl_expect(struct ky_tsdl_parser *p, uint8_t punct, const char *what);

/* ---- attributes (tsdl-attr.c) ------------------------------------------------------------ */

/* A word, or words with dots in between; lives in the parser's arena. */
int ky_tsdl_path(struct ky_tsdl_parser *p, const char **path);
/* A constant, string or path with signs and parentheses as wanted. */
int ky_tsdl_value(struct ky_tsdl_parser *p, struct ky_tsdl_attr *attr);

typedef int (*ky_tsdl_attr_fn)(struct ky_tsdl_parser *p, void *data,
			       const struct ky_tsdl_attr *attr);
/*
 * A block from '{' to '}', each attribute handed to @handle. @types: typedef, typealias and
 * declarations of structs may stand in between, in a scope of the block's own.
 */
int ky_tsdl_block(struct ky_tsdl_parser *p, bool types, ky_tsdl_attr_fn handle, void *data);

/* Is its value this word? A string of it is not. */
bool ky_tsdl_attr_says(const struct ky_tsdl_attr *attr, const char *word);
int ky_tsdl_attr_u64(struct ky_tsdl_parser *p, const struct ky_tsdl_attr *attr, uint64_t *value);
int ky_tsdl_attr_i64(struct ky_tsdl_parser *p, const struct ky_tsdl_attr *attr, int64_t *value);
int ky_tsdl_attr_bool(struct ky_tsdl_parser *p, const struct ky_tsdl_attr *attr, bool *value);
/* A string or a word, copied into the model. */
int ky_tsdl_attr_text(struct ky_tsdl_parser *p, const struct ky_tsdl_attr *attr, const char **text);
int ky_tsdl_attr_uuid(struct ky_tsdl_parser *p, const struct ky_tsdl_attr *attr, uint8_t uuid[16]);
/* A struct by ':='. */
int ky_tsdl_attr_struct(struct ky_tsdl_parser *p, const struct ky_tsdl_attr *attr,
			struct ky_field_class **cls);
/* be, le, network, native. */
int ky_tsdl_attr_byte_order(struct ky_tsdl_parser *p, const struct ky_tsdl_attr *attr,
			    bool *big_endian);
/* A power of two that fits. */
int ky_tsdl_attr_align(struct ky_tsdl_parser *p, const struct ky_tsdl_attr *attr,
		       uint32_t *align_bits);

/* ---- types (tsdl-types.c) ---------------------------------------------------------------- */

/* A field class that counts towards the limit; NULL when out of memory or over it. */
struct ky_field_class *ky_tsdl_node(struct ky_tsdl_parser *p, enum ky_field_kind kind);
/* What follows these keywords; type->cls is new and not shared. */
int ky_tsdl_integer(struct ky_tsdl_parser *p, struct ky_tsdl_type *type);
int ky_tsdl_float(struct ky_tsdl_parser *p, struct ky_tsdl_type *type);
int ky_tsdl_string(struct ky_tsdl_parser *p, struct ky_tsdl_type *type);
/* ": TYPE { LABELS }", the name was read before. */
int ky_tsdl_enum(struct ky_tsdl_parser *p, struct ky_tsdl_type *type);
/* integer {...}, floating_point {...}, string, enum, struct, variant: the keyword comes next. */
int ky_tsdl_type_keyword(struct ky_tsdl_parser *p, struct ky_tsdl_type *type);

/* ---- declarations (tsdl-decl.c) ----------------------------------------------------------- */

int ky_tsdl_scope_push(struct ky_tsdl_parser *p);
void ky_tsdl_scope_pop(struct ky_tsdl_parser *p);
struct ky_field_class *ky_tsdl_look_up(const struct ky_tsdl_parser *p, const char *key);
/* Register @cls as @key in the innermost scope; twice is an error at @token. */
int ky_tsdl_register(struct ky_tsdl_parser *p, const struct ky_token *token, const char *key,
		     struct ky_field_class *cls);
/* Type specifiers, without declarators: "const unsigned long", "struct foo {...}". */
int ky_tsdl_specifiers(struct ky_tsdl_parser *p, struct ky_tsdl_type *type);
/* A whole type without a name: specifiers and pointers. *cls is the caller's own. */
int ky_tsdl_type_name(struct ky_tsdl_parser *p, struct ky_field_class **cls);
/* Can a declaration begin with the next token, seen from inside a block of attributes? */
bool ky_tsdl_is_declaration(const struct ky_tsdl_parser *p);
/* typedef, typealias, or a struct, variant or enum to be known by its name, with its ';'. */
int ky_tsdl_declaration(struct ky_tsdl_parser *p);

/* What to do with each declared name of "TYPE a, b[2];". @cls is the callee's own. */
typedef int (*ky_tsdl_field_fn)(struct ky_tsdl_parser *p, void *data, const struct ky_token *name,
				struct ky_field_class *cls);
/* The body of a struct or variant after its '{', up to and with its '}'. */
int ky_tsdl_fields(struct ky_tsdl_parser *p, ky_tsdl_field_fn field, void *data);

/* ---- bit fields (tsdl-bits.c) -------------------------------------------------------------- */

/*
 * The size of a bit field comes next: make @cls, its type, the field at its place in p->body.
 * @name: NULL for a field without a name. cls->num.length_bits is 0 then for what is no field, but
 * makes the next one begin a unit.
 */
int ky_tsdl_bit_field(struct ky_tsdl_parser *p, const struct ky_token *name,
		      struct ky_field_class *cls);

/* ---- copies (tsdl-copy.c) ----------------------------------------------------------------- */

/* The class of @type for a place of its own: copied when it is shared. */
int ky_tsdl_take(struct ky_tsdl_parser *p, const struct ky_tsdl_type *type,
		 struct ky_field_class **cls);
int ky_tsdl_copy(struct ky_tsdl_parser *p, const struct ky_field_class *src,
		 struct ky_field_class **cls);

/* ---- references (tsdl-bind.c) -------------------------------------------------------------- */

/* A reference written at @token; not bound yet. */
int ky_tsdl_ref(struct ky_tsdl_parser *p, const struct ky_token *token, const char *path,
		struct ky_field_ref **ref);
/*
 * Bind the length or tag of @cls to a field of the structs being parsed, if it is there.
 * @must: outside of all structs a relative path can lead nowhere: an error.
 */
int ky_tsdl_bind(struct ky_tsdl_parser *p, struct ky_field_class *cls, bool must);
/* At the end: bind what refers to other dynamic scopes. */
int ky_tsdl_bind_scopes(struct ky_tsdl_parser *p);

/* ---- declarators (tsdl-declarator.c) -------------------------------------------------------- */

/* One [LENGTH]. */
struct ky_tsdl_dimension {
	const struct ky_token *token;
	const char *path; /* dynamic length, or NULL */
	uint64_t length;
};

struct ky_tsdl_declarator {
	const struct ky_token *name;		     /* NULL: abstract */
	KY_VEC(struct ky_tsdl_dimension) dimensions; /* the outermost array first */
};

/* NAME, (DECLARATOR), and lengths behind either; @abstract: the name may be missing. */
int ky_tsdl_declarator(struct ky_tsdl_parser *p, struct ky_tsdl_declarator *d, bool abstract);
/* The type that @d makes of *cls; its lengths are bound to what is in sight here. */
int ky_tsdl_declare(struct ky_tsdl_parser *p, const struct ky_tsdl_declarator *d,
		    struct ky_field_class **cls);

#endif
