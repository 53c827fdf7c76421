/* SPDX-License-Identifier: MIT */
/* A filter bound to one event class: names are handles or constants, types are settled. */
#ifndef KY_QUERY_PROGRAM_H
#define KY_QUERY_PROGRAM_H

#include "query/ast.h"

enum ky_value_type {
	KY_TYPE_NONE, /* the class has no such field */
	KY_TYPE_BOOL,
	KY_TYPE_NUMBER,
	KY_TYPE_REAL,
	KY_TYPE_TEXT,
	KY_TYPE_ENUM, /* a number with labels */
};

/* Integers are kept in 128 bits: signed and unsigned 64-bit values compare by value. */
struct ky_operand {
	enum ky_value_type type;
	union {
		bool truth;
		__int128 number;
		double real;
		struct {
			const char *data;
			size_t len;
		} text;
	};
};

struct ky_code {
	enum ky_op op;
	enum ky_value_type type;
	bool is_constant; /* value is valid */
	enum ky_name_kind name;
	struct ky_operand value;
	struct ky_handle handle;
	struct ky_code *left, *right, *next;
};

/* The value of @code for @event (NULL: constants only). */
struct ky_operand ky_code_run(const struct ky_code *code, const struct ky_event *event);

bool ky_operand_truth(const struct ky_operand *operand);

#endif
