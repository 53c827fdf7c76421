/* SPDX-License-Identifier: MIT */
/*
 * Growable arrays, typed by the caller:
 *
 *	KY_VEC(struct ky_packet) packets = KY_VEC_INIT;
 *	if (ky_vec_push(&packets, packet) < 0)	-> KYMO_E_MEMORY
 *	ky_vec_foreach(&packets, p) use(p);	p points at each element
 *	ky_vec_fini(&packets);
 *
 * Elements move when the vector grows, so a pointer to an element is invalid after a push.
 */
#ifndef KY_BASE_VEC_H
#define KY_BASE_VEC_H

#include <stddef.h>
#include <stdlib.h>

#include <kymo/error.h>

#define KY_VEC(type)        \
	struct {            \
		type *data; \
		size_t len; \
		size_t cap; \
	}

/* The same with a tag, for passing to functions: struct @tag. */
#define KY_VEC_TYPE(tag, type) \
	struct tag {           \
		type *data;    \
		size_t len;    \
		size_t cap;    \
	}

#define KY_VEC_INIT        \
	{                  \
		NULL, 0, 0 \
	}

/* Make room for @extra more elements of @size bytes; 0 or KYMO_E_MEMORY. */
int ky_vec_grow(void **data, size_t *cap, size_t len, size_t extra, size_t size);

#define ky_vec_reserve(v, extra)                                                          \
	((v)->cap - (v)->len >= (size_t)(extra)                                           \
		 ? 0                                                                      \
		 : ky_vec_grow((void **)&(v)->data, &(v)->cap, (v)->len, (size_t)(extra), \
			       sizeof(*(v)->data)))

#define ky_vec_push(v, ...)                         \
	(ky_vec_reserve((v), 1) < 0 ? KYMO_E_MEMORY \
				    : ((v)->data[(v)->len++] = (__VA_ARGS__), KYMO_OK))

#define ky_vec_last(v)	(&(v)->data[(v)->len - 1])
#define ky_vec_clear(v) ((void)((v)->len = 0))
#define ky_vec_fini(v)                   \
	do {                             \
		free((v)->data);         \
		(v)->data = NULL;        \
		(v)->len = (v)->cap = 0; \
	} while (0)

#define ky_vec_foreach(v, it) \
	for (__typeof__((v)->data + 0) it = (v)->data; it && it < (v)->data + (v)->len; it++)

#endif
