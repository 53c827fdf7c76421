/* SPDX-License-Identifier: MIT */
/*
 * What the parts of the trace writer share: define.c makes the trace model and, for each
 * event definition, a program; output.c runs the program, which tells it what every value
 * becomes.
 */
#ifndef KY_API_WRITER_H
#define KY_API_WRITER_H

#include <pthread.h>

#include <kymo/writer.h>

#include "base/vec.h"
#include "ctf/model/model.h"
#include "ctf/encode/packet-writer.h"
#include "store/packets/packet-store.h"

/* No trace needs deeper structures; recursion stays bounded. */
#define KY_DEFINE_MAX_DEPTH 16

/*
 * A program has a step for each value that an event wants, and for what values lie in. Lengths,
 * tags and the like, which are not given one by one, have none: they come with what needs them.
 */
enum ky_put {
	KY_PUT_NUMBER,
	KY_PUT_REAL,
	KY_PUT_TEXT,  /* STRING, TEXT */
	KY_PUT_BYTES, /* BLOB */
	/* From here on, other steps belong to it. */
	KY_PUT_STRUCT,
	KY_PUT_ARRAY,	 /* n times the steps up to its KY_PUT_END */
	KY_PUT_SEQUENCE, /* likewise, as often as the event says */
	KY_PUT_VARIANT,	 /* one of its options, each of which has a KY_PUT_END */
	KY_PUT_OPTIONAL, /* its steps or none */
	KY_PUT_END,
};

struct ky_put_step {
	enum ky_put put;
	uint32_t n;   /* array: elements; variant: options */
	uint32_t end; /* the step behind all that belongs to it */
	const struct ky_field_class *cls;
	const struct ky_field_class *before; /* what is written before it: length, tag; or NULL */
	const char *name;		     /* for messages, and the values' */
	uint32_t *options;		     /* variant: where each begins */
};

struct kymo_fields {
	struct kymo_writer *writer;
	/* A struct; or an array, variant or optional: it is about the element, an option. */
	struct ky_field_class *cls;
	size_t option;
	const char *name; /* for messages */
	unsigned int depth;
};

struct kymo_enum_def {
	struct kymo_writer *writer;
	struct ky_field_class *cls;
};

struct kymo_variant_def {
	struct kymo_writer *writer;
	struct ky_field_class *cls, *tag;
	const char *name;
	unsigned int depth;
};

struct kymo_clock_def {
	struct kymo_writer *writer;
	struct ky_clock_class *cls;
};

struct kymo_stream_def {
	struct kymo_writer *writer;
	struct ky_stream_class *cls;
	struct ky_clock_class *clock;
	struct kymo_fields *context; /* NULL: none yet */
	bool compact_header;	     /* decided on opening */
};

struct kymo_event_def {
	struct kymo_stream_def *stream;
	struct ky_event_class *cls;
	struct kymo_fields *context, *fields;
	KY_VEC(struct ky_put_step) steps;
};

struct kymo_writer {
	struct kymo_writer_options options;
	struct ky_trace_class *trace; /* its arena holds the definitions too */
	int code;		      /* the first mistake of a definition */
	struct kymo_error first;
	KY_VEC(struct kymo_stream_def *) streams;
	KY_VEC(struct kymo_event_def *) events;
	struct ky_store_trace *packets; /* NULL until opened */
	pthread_mutex_t lock;		/* of sink and outputs */
	KY_VEC(struct kymo_output *) outputs;
	bool tried; /* to open */
};

/* ---- what the files that define share (define.c) ---- */

/* Note a mistake; the first one counts. @code: KYMO_E_INVALID or KYMO_E_UNSUPPORTED. */
void ky_define_mistake(struct kymo_writer *writer, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void ky_define_no_memory(struct kymo_writer *writer);
/* Definitions end with the opening: is @writer beyond it? Then that is a mistake. */
bool ky_define_is_closed(struct kymo_writer *writer, const char *what);
/* @name of a @what ("field"); false, and a mistake, when the name is not valid. */
bool ky_define_name(struct kymo_writer *writer, const char *what, const char *name);
/* From the writer's arena; NULL, and a mistake, when there is no memory. */
void *ky_define_allocate(struct kymo_writer *writer, size_t size);

/* ---- (define-fields.c) ---- */

/* What messages call the field @name: an element or option has no name, so that of its field. */
const char *ky_define_shown_name(const struct kymo_fields *fields, const char *name);
/* May a field named @name be added to @fields (NULL is fine)? */
bool ky_define_may_add(struct kymo_fields *fields, const char *name);
/* Add @cls (NULL: there was no memory). What it is called in messages. */
void ky_define_add(struct kymo_fields *fields, const char *name, struct ky_field_class *cls);
/* In the metadata of CTF 1.8 there is no word for @what: false, and a mistake. */
bool ky_define_ctf2(struct kymo_fields *fields, const char *name, const char *what);
/*
 * Add the field "_NAME_SUFFIX" of class @cls, a length or a selector, and a reference to it. NULL,
 * and a mistake, when the place cannot have one: an array, for example.
 */
struct ky_field_ref *ky_define_companion(struct kymo_fields *fields, const char *name,
					 const char *suffix, struct ky_field_class *cls);
/* An integer class in the machine's byte order. */
struct ky_field_class *ky_define_uint(struct kymo_writer *writer, unsigned int bits);
/* Where fields are added to @cls; NULL when @cls is, or when there is no memory. */
struct kymo_fields *ky_define_fields(struct kymo_writer *writer, struct ky_field_class *cls,
				     const char *name, unsigned int depth);

/* Compile the programs of all events. 0, KYMO_E_INVALID (an array without element) or no memory. */
int ky_put_compile(struct kymo_writer *writer, struct kymo_error *err);

/* Write what @output still has, and free it. 0 or the first failure. */
int ky_output_close(struct kymo_output *output, struct kymo_error *err);
/* Free it only. NULL is fine. */
void ky_output_free(struct kymo_output *output);

#endif
