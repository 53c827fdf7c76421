/* SPDX-License-Identifier: MIT */
/*
 * An output of the writer: output.c has its packets, output-values.c takes an event's values.
 *
 * Values are collected as ctf/encode/encode.h wants them, and encoded where the event goes when it is
 * committed: so a mistake leaves nothing behind, and alignment is that of the place.
 */
#ifndef KY_API_OUTPUT_H
#define KY_API_OUTPUT_H

#include "api/writer.h"
#include "ctf/decode/decode.h"

/* Something that contains values, which are being given. */
struct ky_output_level {
	uint32_t begin; /* step of the first value inside, */
	uint32_t after; /* and of what comes when it is complete */
	uint32_t left;	/* times, the present one included */
	uint32_t value; /* its number in the list */
};

/* Each depth of definition adds two at most (an option, a structure in it), each scope one. */
#define KY_OUTPUT_LEVELS (2 * KY_DEFINE_MAX_DEPTH + 2)

struct kymo_output {
	struct kymo_writer *writer;
	struct kymo_stream_def *stream;
	struct ky_packet_writer packet;
	int number; /* of the stream in the sink */
	uint64_t last_cycles;
	uint64_t told_lost, lost; /* events, cumulative; the part that readers do not have yet */
	uint64_t *slots;	  /* for the encoder */
	/* The event at hand; NULL: none was begun. */
	const struct kymo_event_def *event;
	uint64_t cycles;
	uint32_t at; /* step */
	uint32_t n_levels;
	struct ky_output_level levels[KY_OUTPUT_LEVELS];
	const char *problem; /* the first mistake with a value, and with which */
	const char *problem_name;
	int problem_code;
	KY_VEC(struct ky_value) values;
	uint32_t len_bytes; /* of the texts that the values refer to */
	uint8_t *texts;	    /* packet_bytes of room */
};

/* Note a mistake with the value of @name (NULL: of the event); the first one counts. */
void ky_output_problem(struct kymo_output *output, int code, const char *text, const char *name);

/* Begin the values of output->event, if there is one. */
void ky_output_restart(struct kymo_output *output);

#endif
