/* SPDX-License-Identifier: MIT */
/* Filter expressions: what they mean, what is decided without an event, what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "ctf/resolve/lttng-layout.h"
#include "ctf/encode/packet-writer.h"
#include "query/filter.h"

struct fixture {
	struct ky_trace_class *trace;
	struct ky_event_class *a, *b;
	struct ky_packet_writer writer;
	struct ky_decoder *decoder;
	struct ky_event event; /* of class a */
};

/* a: x = -3, big = 2^64-1, state = 2 ("run", "any"), name = "nginx worker"; b has y and text x. */
static int open_fixture(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	const struct ky_packet *packet;
	struct ky_field_class *st;
	struct ky_stream_class *stream;
	struct ky_clock_class *clock;
	struct kymo_error err;
	uint8_t *body;

	f->trace = ky_trace_class_new();
	clock = ky_clock_class_new(f->trace, "monotonic");
	clock->frequency_hz = 1000000000;
	f->trace->has_uuid = true;
	ky_lttng_layout_trace(f->trace);
	stream = ky_lttng_layout_stream(f->trace, 0, clock, false);
	f->a = ky_event_class_new(stream, 0, "sched_switch");
	f->a->payload = ky_struct_new(f->trace);
	ky_struct_add_int(f->trace, f->a->payload, "_x", 32, true, 10);
	ky_struct_add_int(f->trace, f->a->payload, "_big", 64, false, 10);
	st = ky_struct_add_enum(f->trace, f->a->payload, "_state", 8, false);
	ky_enum_add(f->trace, st, "idle", 0, 1);
	ky_enum_add(f->trace, st, "run", 2, 2);
	ky_enum_add(f->trace, st, "any", 0, 255);
	ky_struct_add_string(f->trace, f->a->payload, "_name");
	f->b = ky_event_class_new(stream, 1, "other");
	f->b->payload = ky_struct_new(f->trace);
	ky_struct_add_string(f->trace, f->b->payload, "_x");
	ky_struct_add_int(f->trace, f->b->payload, "_y", 32, true, 10);
	if (ky_trace_class_finish(f->trace, true, &err) < 0)
		fail_msg("%s", err.message);
	ky_packet_writer_init(&f->writer, 4096, f->trace->uuid, 0, 0, 1, false);
	ky_packet_writer_begin(&f->writer, 0);
	body = ky_packet_writer_event(&f->writer, 0, 500, 4 + 8 + 1 + 13);
	memcpy(body, "\375\377\377\377\377\377\377\377\377\377\377\377\2nginx worker", 26);
	f->decoder = ky_decoder_new(f->trace);
	ky_decoder_packet(f->decoder, f->writer.data, ky_packet_writer_close(&f->writer, 500, 0, 8),
			  0, &packet, &err);
	assert_int_equal(ky_decoder_next(f->decoder, &f->event, 1, &err), 1);
	*state = f;
	return 0;
}

static int close_fixture(void **state)
{
	struct fixture *f = *state;

	ky_decoder_free(f->decoder);
	ky_packet_writer_fini(&f->writer);
	ky_trace_class_free(f->trace);
	free(f);
	return 0;
}

static void meaning(void **state)
{
	static const struct {
		const char *text;
		bool match;
	} cases[] = {
		{"x == -3", true},
		{"x < 0 && x > -4", true},
		{"x == 4294967293", false},
		{"big == 18446744073709551615", true},
		{"big > x", true},
		{"x < big", true},
		{"x * 2 == -6", true},
		{"x + 1.5 == -1.5", true},
		{"-x == 3", true},
		{"~x == 2", true},
		{"(big & 0xff) == 255", true},
		{"big >> 63", true},
		{"1 << 3 == 8", true},
		{"x % 2 == -1", true},
		{"x / 0 == 0", false},
		{"2 + 3 * 4 == 14", true},
		{"name == \"nginx worker\"", true},
		{"name == 'nginx'", false},
		{"name =~ \"ngin*\"", true},
		{"name =~ 'ng?nx w*r'", true},
		{"name > 'nginx'", true},
		{"state == 2", true},
		{"state == 'run'", true},
		{"state == 'any'", true},
		{"state != 'idle'", true},
		{"state =~ 'r*'", true},
		{"state in ('idle', 'run')", true},
		{"x in (1, 2, -3)", true},
		{"x in (1, 2)", false},
		{"$event == 'sched_switch'", true},
		{"$event in ('a', 'b')", false},
		{"$time == 500", true},
		{"$cpu == 1", true},
		{"$stream == 0", true},
		{"$payload.x == -3", true},
		{"$packet.cpu_id == 1", true},
		{"y == 0", false},
		{"!(y == 0)", true},
		{"has(x) && !has(y)", true},
		{"has(nothing)", false},
		{"y == 0 || x == -3", true},
		{"!x", false},
		{"`x` == -3", true},
		{"_x == -3", true},
	};
	struct fixture *f = *state;
	const struct ky_trace_class *traces[] = {f->trace};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ky_filter *filter;
		struct kymo_error err;

		if (ky_filter_compile(cases[i].text, traces, 1, &filter, &err) < 0)
			fail_msg("%s: %s", cases[i].text, err.message);
		if (ky_filter_match(filter, 0, &f->event) != cases[i].match)
			fail_msg("%s: is not %d", cases[i].text, cases[i].match);
		ky_filter_free(filter);
	}
}

static void verdicts(void **state)
{
	static const struct {
		const char *text;
		enum ky_verdict a, b;
	} cases[] = {
		{"x == -3", KY_DEPENDS, KY_NEVER},
		{"y == 0", KY_NEVER, KY_DEPENDS},
		{"$event == 'other'", KY_NEVER, KY_ALWAYS},
		{"$event =~ 'sched_*' && big > 5", KY_DEPENDS, KY_NEVER},
		{"$event == 'other' || x == 1", KY_DEPENDS, KY_ALWAYS},
		{"has(y)", KY_NEVER, KY_ALWAYS},
		{"1 == 1", KY_ALWAYS, KY_ALWAYS},
	};
	struct fixture *f = *state;
	const struct ky_trace_class *traces[] = {f->trace};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ky_filter *filter;

		assert_int_equal(ky_filter_compile(cases[i].text, traces, 1, &filter, NULL), 0);
		if (ky_filter_verdict(filter, 0, f->a) != cases[i].a ||
		    ky_filter_verdict(filter, 0, f->b) != cases[i].b)
			fail_msg("%s", cases[i].text);
		ky_filter_free(filter);
	}
}

static void refused(void **state)
{
	static const struct {
		const char *text;
		uint32_t column;
		const char *says;
	} cases[] = {
		{"", 1, "too early"},
		{"x ==", 5, "too early"},
		{"x = 3", 3, "'=='"},
		{"x == 3 y", 8, "operator"},
		{"(x == 3", 8, "')'"},
		{"stat == 3", 1, "no event has a field 'stat'"},
		{"big == 'a'", 5, "does not go"},
		{"name =~ 5", 6, "pattern"},
		{"name & 1", 6, "does not go"},
		{"$evnt == 1", 1, "unknown name"},
		{"x == 99999999999999999999", 6, "64 bits"},
		{"x == 'abc", 6, "does not end"},
		{"x in 3", 6, "list"},
		{"x == 0x", 6, "malformed"},
		{"x == 12ab", 6, "malformed"},
	};
	struct fixture *f = *state;
	const struct ky_trace_class *traces[] = {f->trace};
	char deep[1000];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ky_filter *filter;
		struct kymo_error err;

		assert_int_equal(ky_filter_compile(cases[i].text, traces, 1, &filter, &err),
				 KYMO_E_INVALID);
		assert_null(filter);
		if (err.column != cases[i].column || !strstr(err.message, cases[i].says))
			fail_msg("%s: %u: %s", cases[i].text, err.column, err.message);
	}
	memset(deep, '(', sizeof(deep));
	deep[sizeof(deep) - 1] = '\0';
	for (int i = 0; i < 2; i++) {
		struct ky_filter *filter;

		assert_int_equal(ky_filter_compile(deep, traces, 1, &filter, NULL), KYMO_E_INVALID);
		memset(deep, '!', sizeof(deep) - 1);
	}
}

/* A name that no event has: what is near it, or how a recording gets it. */
static void hints(void **state)
{
	struct fixture *f = *state;
	const struct ky_trace_class *traces[] = {f->trace};
	struct ky_filter *filter;
	struct kymo_error err;

	assert_int_equal(ky_filter_compile("stat == 3", traces, 1, &filter, &err), KYMO_E_INVALID);
	assert_non_null(strstr(err.hint, "nearest names are: "));
	assert_int_equal(ky_filter_compile("procname == 'a'", traces, 1, &filter, &err),
			 KYMO_E_INVALID);
	assert_string_equal(err.hint, "a recording with the context field procname has it");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(meaning),
		cmocka_unit_test(verdicts),
		cmocka_unit_test(refused),
		cmocka_unit_test(hints),
	};

	return cmocka_run_group_tests(tests, open_fixture, close_fixture);
}
