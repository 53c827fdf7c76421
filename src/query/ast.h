/* SPDX-License-Identifier: MIT */
/* The tree of a filter expression. parse.c builds it; filter-bind.c binds it to event classes. */
#ifndef KY_QUERY_AST_H
#define KY_QUERY_AST_H

#include "base/arena.h"
#include "ctf/decode/decode.h"

enum ky_op {
	KY_OP_NUMBER,
	KY_OP_REAL,
	KY_OP_TEXT,
	KY_OP_NAME,
	KY_OP_HAS, /* left: a name */
	KY_OP_NOT,
	KY_OP_NEGATE,
	KY_OP_INVERT,
	KY_OP_OR,
	KY_OP_AND,
	KY_OP_EQ,
	KY_OP_NE,
	KY_OP_LT,
	KY_OP_LE,
	KY_OP_GT,
	KY_OP_GE,
	KY_OP_MATCH,
	KY_OP_IN, /* left in the list that begins at right, linked by next */
	KY_OP_BIT_OR,
	KY_OP_BIT_XOR,
	KY_OP_BIT_AND,
	KY_OP_SHIFT_LEFT,
	KY_OP_SHIFT_RIGHT,
	KY_OP_ADD,
	KY_OP_SUB,
	KY_OP_MUL,
	KY_OP_DIV,
	KY_OP_MOD,
};

/* The operator of a comparison whose sides change places: 5 < x is x > 5. */
static inline enum ky_op ky_op_mirrored(enum ky_op op)
{
	switch (op) {
	case KY_OP_LT:
		return KY_OP_GT;
	case KY_OP_LE:
		return KY_OP_GE;
	case KY_OP_GT:
		return KY_OP_LT;
	case KY_OP_GE:
		return KY_OP_LE;
	default:
		return op;
	}
}

enum ky_name_kind {
	KY_NAME_FIELD, /* any scope */
	KY_NAME_PAYLOAD,
	KY_NAME_CONTEXT,
	KY_NAME_PACKET,
	KY_NAME_EVENT,
	KY_NAME_TIME,
	KY_NAME_CPU,
	KY_NAME_STREAM,
};

struct ky_node {
	enum ky_op op;
	uint32_t column; /* in the text, from 1 */
	struct ky_node *left, *right, *next;
	/*
	 * The number of event classes in which the node is valid, and of those in which it is not
	 * (filter-bind.c).
	 */
	uint32_t n_good, n_bad;
	const char *bad_left,
		*bad_right; /* the types in the first class in which the node is not valid */
	union {
		struct {
			uint64_t u;
			bool negative; /* u is two's complement */
		} number;
		double real;
		const char *text; /* TEXT */
		struct {
			enum ky_name_kind kind;
			const char *name;
		} name;
	};
};

/*
 * Returns NULL on failure: KYMO_E_INVALID with the column, KYMO_E_LIMIT (nesting), KYMO_E_MEMORY.
 */
struct ky_node *ky_query_parse(const char *text, struct ky_arena *arena, struct kymo_error *err);

/* Record KYMO_E_INVALID at @column of the expression. Returns KYMO_E_INVALID. */
int ky_query_error(struct kymo_error *err, uint32_t column, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* The value of a number with signs before it, - or ~; false: it is something else. */
bool ky_node_constant(const struct ky_node *node, __int128 *value);

/* The operator as it is written: "==". */
const char *ky_op_text(enum ky_op op);

#endif
