/* SPDX-License-Identifier: MIT */
/* Lexer and precedence parser of filter expressions. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "query/ast.h"

#define DEPTH_MAX 200
#define NODES_MAX 4096 /* chains of operators make deep trees too */

struct parser {
	const char *text, *at;
	struct ky_arena *arena;
	struct kymo_error *err;
	unsigned int depth, nodes;
};

/* Longer spellings first, so that "<=" is not read as "<". */
static const struct {
	const char *text;
	enum ky_op op;
	int level; /* 1 binds weakest */
} binary_ops[] = {
	{"||", KY_OP_OR, 1},	      {"&&", KY_OP_AND, 2},    {"==", KY_OP_EQ, 3},
	{"!=", KY_OP_NE, 3},	      {"=~", KY_OP_MATCH, 3},  {"<<", KY_OP_SHIFT_LEFT, 7},
	{">>", KY_OP_SHIFT_RIGHT, 7}, {"<=", KY_OP_LE, 3},     {">=", KY_OP_GE, 3},
	{"<", KY_OP_LT, 3},	      {">", KY_OP_GT, 3},      {"|", KY_OP_BIT_OR, 4},
	{"^", KY_OP_BIT_XOR, 5},      {"&", KY_OP_BIT_AND, 6}, {"+", KY_OP_ADD, 8},
	{"-", KY_OP_SUB, 8},	      {"*", KY_OP_MUL, 9},     {"/", KY_OP_DIV, 9},
	{"%", KY_OP_MOD, 9},
};

#define N_BINARY      (sizeof(binary_ops) / sizeof(binary_ops[0]))
#define LEVEL_COMPARE 3

const char *ky_op_text(enum ky_op op)
{
	for (size_t i = 0; i < N_BINARY; i++) {
		if (binary_ops[i].op == op)
			return binary_ops[i].text;
	}
	return op == KY_OP_IN ? "in" : op == KY_OP_NOT ? "!" : op == KY_OP_INVERT ? "~" : "-";
}

int ky_query_error(struct kymo_error *err, uint32_t column, const char *fmt, ...)
{
	char text[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	ky_error_set(err, KYMO_E_INVALID, "%s", text);
	ky_error_line(err, 1, column);
	return KYMO_E_INVALID;
}

static uint32_t column(const struct parser *p)
{
	return (uint32_t)(p->at - p->text) + 1;
}

static void *parse_fail(struct parser *p, const char *what)
{
	ky_query_error(p->err, column(p), "%s", what);
	return NULL;
}

static void blanks(struct parser *p)
{
	while (*p->at == ' ' || *p->at == '\t' || *p->at == '\n')
		p->at++;
}

static struct ky_node *new_node(struct parser *p, enum ky_op op)
{
	struct ky_node *node = NULL;

	if (++p->nodes > NODES_MAX) {
		ky_query_error(p->err, column(p), "the expression is too long");
		return NULL;
	}
	node = ky_arena_new(p->arena, struct ky_node);
	if (!node) {
		ky_error_nomem(p->err);
		return NULL;
	}
	node->op = op;
	node->column = column(p);
	return node;
}

static bool is_name_begin(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '`';
}

static bool is_name_char(char c)
{
	return (is_name_begin(c) && c != '`') || (c >= '0' && c <= '9');
}

/* ---- operands ------------------------------------------------------------------------------ */

static struct ky_node *parse_binary(struct parser *p, int level);

static struct ky_node *parse_parse_number(struct parser *p)
{
	struct ky_node *node = new_node(p, KY_OP_NUMBER);
	bool hex = p->at[0] == '0' && (p->at[1] == 'x' || p->at[1] == 'X');
	char *end;

	if (!node)
		return NULL;
	errno = 0;
	node->number.u = strtoull(p->at, &end, hex ? 16 : 10);
	if (!hex && (*end == '.' || *end == 'e' || *end == 'E')) {
		node->op = KY_OP_REAL;
		node->real = strtod(p->at, &end);
	} else if (errno) {
		return parse_fail(p, "the number does not fit 64 bits");
	}
	if (is_name_char(*end) || (hex && end == p->at + 1))
		return parse_fail(p, "malformed number");
	p->at = end;
	return node;
}

static struct ky_node *parse_text(struct parser *p)
{
	struct ky_node *node = new_node(p, KY_OP_TEXT);
	const char *quote = p->at;
	char *out;

	if (!node)
		return NULL;
	out = ky_arena_alloc(p->arena, strlen(quote));
	if (!out) {
		ky_error_nomem(p->err);
		return NULL;
	}
	node->text = out;
	for (p->at++; *p->at && *p->at != *quote; p->at++) {
		/* A backslash quotes the quote and itself; others are kept, for =~ patterns. */
		if (*p->at == '\\' && (p->at[1] == *quote || p->at[1] == '\\'))
			p->at++;
		*out++ = *p->at;
	}
	if (!*p->at) {
		p->at = quote;
		return parse_fail(p, "the text does not end");
	}
	p->at++;
	return node;
}

static const char *read_name(struct parser *p)
{
	const char *begin = p->at, *end;
	bool quoted = *begin == '`';

	begin += quoted;
	end = begin;
	while (*end && (quoted ? *end != '`' : is_name_char(*end)))
		end++;
	if (end == begin || (quoted && !*end))
		return parse_fail(p, "a field's name is expected");
	p->at = end + quoted;
	return ky_arena_strndup(p->arena, begin, (size_t)(end - begin));
}

static struct ky_node *parse_special(struct parser *p)
{
	static const struct {
		const char *name;
		enum ky_name_kind kind;
		bool field;
	} names[] = {
		{"payload", KY_NAME_PAYLOAD, true}, {"ctx", KY_NAME_CONTEXT, true},
		{"packet", KY_NAME_PACKET, true},   {"event", KY_NAME_EVENT, false},
		{"time", KY_NAME_TIME, false},	    {"cpu", KY_NAME_CPU, false},
		{"stream", KY_NAME_STREAM, false},
	};
	struct ky_node *node = new_node(p, KY_OP_NAME);
	const char *word;

	if (!node)
		return NULL;
	p->at++;
	word = read_name(p);
	if (!word)
		return NULL;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(names[i].name, word) != 0)
			continue;
		node->name.kind = names[i].kind;
		node->name.name = word;
		if (!names[i].field)
			return node;
		if (*p->at != '.')
			return parse_fail(p, "'.' and a field's name are expected");
		p->at++;
		node->name.name = read_name(p);
		return node->name.name ? node : NULL;
	}
	ky_query_error(p->err, node->column,
		       "unknown name '$%s': there are $event $time $cpu $stream $payload.FIELD "
		       "$ctx.FIELD $packet.FIELD",
		       word);
	return NULL;
}

static struct ky_node *parse_parse_name(struct parser *p)
{
	struct ky_node *node;

	if (*p->at == '$')
		return parse_special(p);
	node = new_node(p, KY_OP_NAME);
	if (!node)
		return NULL;
	node->name.kind = KY_NAME_FIELD;
	node->name.name = read_name(p);
	return node->name.name ? node : NULL;
}

/* has(name) */
static struct ky_node *parse_has(struct parser *p)
{
	struct ky_node *node = new_node(p, KY_OP_HAS);

	if (!node)
		return NULL;
	p->at += 3;
	blanks(p);
	p->at++;
	blanks(p);
	if (!is_name_begin(*p->at) && *p->at != '$')
		return parse_fail(p, "has() needs a field's name");
	node->left = parse_parse_name(p);
	if (!node->left)
		return NULL;
	blanks(p);
	if (*p->at != ')')
		return parse_fail(p, "')' is expected");
	p->at++;
	return node;
}

static bool is_has(const char *at)
{
	if (strncmp(at, "has", 3) != 0)
		return false;
	at += 3;
	while (*at == ' ')
		at++;
	return *at == '(';
}

static struct ky_node *parse_parse_group(struct parser *p)
{
	struct ky_node *node;

	p->at++;
	node = parse_binary(p, 1);
	if (!node)
		return NULL;
	if (*p->at != ')')
		return parse_fail(p, "')' is expected");
	p->at++;
	return node;
}

static struct ky_node *parse_operand(struct parser *p)
{
	char c = *p->at;

	if (c >= '0' && c <= '9')
		return parse_parse_number(p);
	if (c == '"' || c == '\'')
		return parse_text(p);
	if (c == '(')
		return parse_parse_group(p);
	if (is_has(p->at))
		return parse_has(p);
	if (is_name_begin(c) || c == '$')
		return parse_parse_name(p);
	return parse_fail(p, c ? "a name, a number or a text is expected here"
			       : "the expression ends too early");
}

/* A sign makes the number: so INT64_MIN can be written. */
static struct ky_node *negate(struct parser *p, struct ky_node *node)
{
	if (node->left->op == KY_OP_REAL) {
		node->left->real = -node->left->real;
		return node->left;
	}
	if (node->left->op != KY_OP_NUMBER || node->left->number.negative)
		return node;
	if (node->left->number.u > UINT64_C(1) << 63)
		return parse_fail(p, "the number does not fit 64 bits");
	node->left->number.negative = node->left->number.u != 0;
	node->left->number.u = 0 - node->left->number.u;
	return node->left;
}

static struct ky_node *parse_unary(struct parser *p)
{
	struct ky_node *node;
	enum ky_op op;

	blanks(p);
	switch (*p->at) {
	case '!':
		op = KY_OP_NOT;
		break;
	case '-':
		op = KY_OP_NEGATE;
		break;
	case '~':
		op = KY_OP_INVERT;
		break;
	default:
		node = parse_operand(p);
		blanks(p);
		return node;
	}
	if (++p->depth > DEPTH_MAX)
		return parse_fail(p, "nested too deeply");
	node = new_node(p, op);
	if (!node)
		return NULL;
	p->at++;
	node->left = parse_unary(p);
	p->depth--;
	if (!node->left)
		return NULL;
	return op == KY_OP_NEGATE ? negate(p, node) : node;
}

/* ---- operators ------------------------------------------------------------------------------ */

static bool is_in(const char *at)
{
	return at[0] == 'i' && at[1] == 'n' && !is_name_char(at[2]);
}

/* "in (a, b, c)" behind @left. */
static struct ky_node *parse_in(struct parser *p, struct ky_node *left)
{
	struct ky_node *node = new_node(p, KY_OP_IN), **tail;

	if (!node)
		return NULL;
	node->left = left;
	tail = &node->right;
	p->at += 2;
	blanks(p);
	if (*p->at != '(')
		return parse_fail(p, "'in' needs a list in parentheses");
	do {
		p->at++;
		*tail = parse_binary(p, LEVEL_COMPARE + 1);
		if (!*tail)
			return NULL;
		tail = &(*tail)->next;
	} while (*p->at == ',');
	if (*p->at != ')')
		return parse_fail(p, "',' or ')' is expected");
	p->at++;
	blanks(p);
	return node;
}

static size_t find_op(const struct parser *p)
{
	size_t i;

	for (i = 0; i < N_BINARY; i++) {
		if (strncmp(p->at, binary_ops[i].text, strlen(binary_ops[i].text)) == 0)
			break;
	}
	return i;
}

static struct ky_node *parse_rest(struct parser *p, struct ky_node *left, int level)
{
	for (;;) {
		struct ky_node *node;
		size_t op;

		if (is_in(p->at) && level <= LEVEL_COMPARE) {
			left = parse_in(p, left);
			if (!left)
				return NULL;
			continue;
		}
		op = find_op(p);
		if (op == N_BINARY && *p->at == '=')
			return parse_fail(p, "'=' is not an operator; '==' compares, '=~' matches");
		if (op == N_BINARY || binary_ops[op].level < level)
			return left;
		node = new_node(p, binary_ops[op].op);
		if (!node)
			return NULL;
		p->at += strlen(binary_ops[op].text);
		node->left = left;
		node->right = parse_binary(p, binary_ops[op].level + 1);
		if (!node->right)
			return NULL;
		left = node;
	}
}

static struct ky_node *parse_binary(struct parser *p, int level)
{
	struct ky_node *left;

	if (++p->depth > DEPTH_MAX)
		return parse_fail(p, "nested too deeply");
	left = parse_unary(p);
	if (left)
		left = parse_rest(p, left, level);
	p->depth--;
	return left;
}

struct ky_node *ky_query_parse(const char *text, struct ky_arena *arena, struct kymo_error *err)
{
	struct parser p = {.text = text, .at = text, .arena = arena, .err = err};
	struct ky_node *node = parse_binary(&p, 1);

	if (node && *p.at)
		return parse_fail(&p, "an operator is expected here");
	return node;
}

bool ky_node_constant(const struct ky_node *node, __int128 *value)
{
	if (node->op == KY_OP_NUMBER) {
		*value = node->number.negative ? (__int128)(int64_t)node->number.u
					       : (__int128)node->number.u;
		return true;
	}
	if ((node->op != KY_OP_NEGATE && node->op != KY_OP_INVERT) ||
	    !ky_node_constant(node->left, value))
		return false;
	*value = node->op == KY_OP_NEGATE ? -*value : ~*value;
	return true;
}
