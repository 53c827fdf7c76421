/* SPDX-License-Identifier: MIT */
/*
 * Makes a trace of events whose fields are known only while a file is read: a class for each kind of event, with
 * numbers, texts, and arrays as fields; streams that hold the events in the order of time.
 *
 *	ky_maker_open(&maker, store, &about, err)
 *	event = ky_maker_event(maker, "packet", fields, n, err)		once for each kind
 *	ky_maker_begin(maker, stream, event, ns)
 *	ky_maker_number(maker, 42); ky_maker_text(maker, "x", 1);	context fields first, in order
 *	ky_maker_commit(maker, err)
 *	ky_maker_close(maker, err)
 *
 * Threads: one at a time per maker.
 */
#ifndef KY_IMPORT_TRACE_MAKER_H
#define KY_IMPORT_TRACE_MAKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kymo/error.h>

#include "store/packets/packet-store.h"

enum ky_maker_kind {
	KY_MAKER_U8,
	KY_MAKER_U16,
	KY_MAKER_U32,
	KY_MAKER_U64,
	KY_MAKER_S32,
	KY_MAKER_S64,
	KY_MAKER_HEX,	 /* 64 bits */
	KY_MAKER_ENUM,	 /* 8 bits, with labels from 0 on */
	KY_MAKER_DOUBLE, /* ky_maker_double() */
	KY_MAKER_TEXT,	 /* of any length, cut at a NUL */
	KY_MAKER_COMM,	 /* the name of a thread: 16 characters */
	KY_MAKER_HEXES,	 /* an array of 64-bit addresses; the field NAME_length precedes it */
	KY_MAKER_BYTES,	 /* an array of bytes; likewise */
};

struct ky_maker_field {
	/* As people see it; copied. What is no letter or digit of ASCII becomes '_'; a name that is taken gets a number. */
	const char *name;
	enum ky_maker_kind kind;
	const char *const *labels; /* ENUM; copied */
	size_t n_labels;
};

/* What the metadata says; the maker copies the texts, except ->clock and ->description. */
struct ky_maker_about {
	const char *path;     /* in the store: "perf" */
	const char *name;     /* env trace_name */
	const char *domain;   /* env domain: "perf", "network", "log" */
	const char *tracer;   /* env tracer_name */
	const char *hostname; /* NULL: unknown */
	const char *release;  /* of the kernel; NULL: unknown */
	const char
		*boot_id; /* of this machine, if its kernel is here as it was then; NULL: unknown */
	const char *clock;	   /* the clock's name */
	const char *description;   /* of the clock */
	const uint8_t *clock_uuid; /* 16 bytes; NULL: none */
	int64_t offset_ns;	   /* Unix time of the clock's 0 */
	const struct ky_maker_field *context;
	size_t n_context;
	/*
	 * Times in the file may go back: an event that is earlier than the one before it goes to another stream, in which it is
	 * not. All events are then of stream 0.
	 */
	bool reorders;
	bool has_cpus; /* the number of a stream is that of a CPU */
};

/* With ->reorders, at most so many streams. */
#define KY_MAKER_ORDERS 64

struct ky_maker;

/* 0, KYMO_E_MEMORY, or the store's error. */
int ky_maker_open(struct ky_maker **maker, struct ky_packet_store *store,
		  const struct ky_maker_about *about, struct kymo_error *err);
/* Its number (>= 0); KYMO_E_LIMIT: there are too many kinds. */
int ky_maker_event(struct ky_maker *maker, const char *name, const struct ky_maker_field *fields,
		   size_t n_fields, struct kymo_error *err);

/* Begin an event in stream @stream (a CPU's number, or any small number) at @ns of the clock. */
void ky_maker_begin(struct ky_maker *maker, uint32_t stream, int event, uint64_t ns);
/* The next field: any kind of number; a field that expects another kind becomes 0 or empty. */
void ky_maker_number(struct ky_maker *maker, uint64_t value);
void ky_maker_double(struct ky_maker *maker, double value);
void ky_maker_text(struct ky_maker *maker, const char *text, size_t len);
void ky_maker_numbers(struct ky_maker *maker, const uint64_t *values, size_t n);
void ky_maker_bytes(struct ky_maker *maker, const uint8_t *bytes, size_t n);
/*
 * Writes the event; missing fields become 0 or empty. An event that is earlier than the one before in its stream gets that one's
 * time; with ->reorders only where it is earlier than the last ones of KY_MAKER_ORDERS streams. KYMO_E_LIMIT: the stream's number
 * is too high.
 */
int ky_maker_commit(struct ky_maker *maker, struct kymo_error *err);
/* @n events of @stream were lost before the next one. */
int ky_maker_lost(struct ky_maker *maker, uint32_t stream, uint64_t n, struct kymo_error *err);
uint64_t ky_maker_events(const struct ky_maker *maker);
/* How many events got another time than their own. */
uint64_t ky_maker_moved(const struct ky_maker *maker);

/* Completes the trace and frees the maker, on failure too. NULL is allowed. */
int ky_maker_close(struct ky_maker *maker, struct kymo_error *err);

#endif
