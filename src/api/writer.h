/* SPDX-License-Identifier: MIT */
/*
 * What the parts of the trace writer share: define.c makes a model of the trace and, for each
 * event definition, a program; output.c runs the program, which tells it what every value
 * becomes.
 */
#ifndef KY_API_WRITER_H
#define KY_API_WRITER_H

#include <pthread.h>

#include <kymo/writer.h>

#include "base/vec.h"
#include "ctf/model.h"
#include "ctf/packet-writer.h"
#include "store/writer.h"

/* Deeper structures than this nobody needs; recursion stays bounded. */
#define KY_DEFINE_MAX_DEPTH 16

enum ky_put {
	KY_PUT_INT,
	KY_PUT_FLOAT,
	KY_PUT_STRING,
	KY_PUT_CHARS,
	KY_PUT_ARRAY,	 /* n times the steps up to its KY_PUT_END */
	KY_PUT_SEQUENCE, /* likewise, as often as the event says */
	KY_PUT_END,
};

/* Values in a row; structures are their members. */
struct ky_put_step {
	enum ky_put put;
	bool is_signed;
	uint8_t size_bytes; /* of a number */
	uint32_t n;	    /* chars: bytes; array: elements */
	uint32_t end;	    /* array, sequence: its KY_PUT_END */
	const char *name;   /* for messages */
};

struct kymo_fields {
	struct kymo_writer *writer;
	struct ky_field_class *cls; /* a struct, or an array whose element it is about */
	const char *name;	    /* for messages */
	unsigned int depth;
};

struct kymo_enum_def {
	struct kymo_writer *writer;
	struct ky_field_class *cls;
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
	struct ky_packet_sink *sink; /* NULL until opened */
	pthread_mutex_t lock;	     /* of sink and outputs */
	KY_VEC(struct kymo_output *) outputs;
	bool tried; /* to open */
};

/* Compile the programs of all events. 0, KYMO_E_INVALID (an array without element) or no memory. */
int ky_put_compile(struct kymo_writer *writer, struct kymo_error *err);

/* Write what @output still has, and free it. 0 or the first failure. */
int ky_output_close(struct kymo_output *output, struct kymo_error *err);

#endif
