/* SPDX-License-Identifier: MIT */
/* The trace model: constructors, look-ups, and what finishing a model makes of it. */
#include "unit.h"

#include "ctf/resolve/lttng-layout.h"
#include "ctf/model/model.h"

#define ASSERT_OK(call) assert_int_equal((call), 0)

struct fixture {
	struct ky_trace_class *trace;
	struct ky_clock_class *clock;
	struct ky_stream_class *stream;
	struct ky_event_class *event;
	struct ky_field_class *payload;
	struct kymo_error err;
};

static int setup(void **state)
{
	static struct fixture f;

	f.trace = ky_trace_class_new();
	f.clock = ky_clock_class_new(f.trace, "monotonic");
	if (ky_lttng_layout_trace(f.trace) < 0)
		return -1;
	f.stream = ky_lttng_layout_stream(f.trace, 0, f.clock, true);
	f.event = ky_event_class_new(f.stream, 1, "e");
	f.payload = ky_struct_new(f.trace);
	f.event->payload = f.payload;
	*state = &f;
	return f.payload ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	ky_trace_class_free(f->trace);
	return 0;
}

static int finish(struct fixture *f)
{
	return ky_trace_class_finish(f->trace, true, &f->err);
}

/* ---- look-ups ---------------------------------------------------------------------------- */

static void test_registered(void **state)
{
	struct fixture *f = *state;

	assert_ptr_equal(ky_map_get(&f->trace->streams_by_id, 0), f->stream);
	assert_ptr_equal(ky_map_get(&f->stream->events_by_id, 1), f->event);
	assert_ptr_equal(f->trace->events.data[f->event->index], f->event);
	assert_string_equal(ky_event_class_new(f->stream, 2, NULL)->name, "");
	assert_ptr_equal(ky_scope_root(f->event, KY_SCOPE_PAYLOAD), f->payload);
	assert_ptr_equal(ky_scope_root(f->event, KY_SCOPE_PACKET_HEADER), f->trace->packet_header);
	assert_null(ky_scope_root(f->event, KY_SCOPE_EVENT_CONTEXT));
	assert_string_equal(ky_scope_name(KY_SCOPE_PAYLOAD), "event.fields");
}

static void test_env(void **state)
{
	struct fixture *f = *state;

	ASSERT_OK(ky_env_add_text(f->trace, "host", "here"));
	ASSERT_OK(ky_env_add_number(f->trace, "n", -3));
	assert_string_equal(ky_env_find(f->trace, "host")->text, "here");
	assert_int_equal(ky_env_find(f->trace, "n")->number, -3);
	assert_false(ky_env_find(f->trace, "n")->is_text);
	assert_null(ky_env_find(f->trace, "nobody"));
}

static void test_member_names(void **state)
{
	struct fixture *f = *state;

	assert_non_null(ky_struct_add_string(f->trace, f->payload, "_str"));
	assert_non_null(ky_struct_add_string(f->trace, f->payload, "str"));
	assert_non_null(ky_struct_add_string(f->trace, f->payload, "__deep"));
	/* A name as written goes before a name as displayed. */
	assert_ptr_equal(ky_struct_member(f->payload, "str"), &f->payload->st.members[1]);
	assert_ptr_equal(ky_struct_member(f->payload, "_str"), &f->payload->st.members[0]);
	assert_ptr_equal(ky_struct_member(f->payload, "_deep"), &f->payload->st.members[2]);
	assert_null(ky_struct_member(f->payload, "deep"));
	assert_null(ky_struct_member(f->payload->st.members[0].cls, "x"));
}

static void test_labels(void **state)
{
	struct fixture *f = *state;
	struct ky_field_class *e = ky_struct_add_enum(f->trace, f->payload, "e", 8, true);
	const char *labels[2];

	ASSERT_OK(ky_enum_add(f->trace, e, "low", -128, -1));
	ASSERT_OK(ky_enum_add(f->trace, e, "all", -128, 127));
	ASSERT_OK(ky_enum_add(f->trace, e, "one", 1, 1));
	assert_string_equal(ky_enum_label(e, (uint64_t)-5), "low");
	assert_string_equal(ky_enum_label(e, 1), "all");
	assert_null(ky_enum_label(e, 128));
	assert_int_equal(ky_enum_labels(e, 1, labels, 1), 2);
	assert_string_equal(labels[0], "all");
	assert_int_equal(ky_enum_labels(e, 1, labels, 2), 2);
	assert_string_equal(labels[1], "one");
}

/* ---- layout ------------------------------------------------------------------------------ */

static void test_fixed_sizes(void **state)
{
	struct fixture *f = *state;
	struct ky_field_class *inner, *array, *gap;

	ky_struct_add_int(f->trace, f->payload, "a", 5, false, 10);
	ky_struct_add_int(f->trace, f->payload, "b", 16, false, 10);
	inner = ky_struct_add_struct(f->trace, f->payload, "s");
	ky_struct_add_int(f->trace, inner, "x", 32, true, 10)->align_bits = 32;
	ky_struct_add_int(f->trace, inner, "y", 3, false, 10);
	gap = ky_struct_new(f->trace);
	gap->st.min_align_bits = 64;
	array = ky_struct_add_array(f->trace, f->payload, "r", gap, 1000000);
	ky_struct_add_text(f->trace, f->payload, "t", 16);
	ASSERT_OK(finish(f));
	assert_int_equal(inner->align_bits, 32);
	assert_int_equal(inner->fixed_bits, 35);
	assert_int_equal(array->align_bits, 64);
	assert_int_equal(array->fixed_bits, 0);
	assert_int_equal(f->payload->align_bits, 64);
	/* a at 0, b at 8, s at 32, r at 128, t at 128 */
	assert_int_equal(f->payload->fixed_bits, 128 + 16 * 8);
}

static void test_array_stride(void **state)
{
	struct fixture *f = *state;
	struct ky_field_class *element = ky_struct_new(f->trace), *some, *none, *giant;

	element->st.min_align_bits = 8;
	ky_struct_add_int(f->trace, element, "x", 3, false, 10);
	some = ky_struct_add_array(f->trace, f->payload, "some", element, 4);
	none = ky_struct_add_array(f->trace, f->payload, "none",
				   ky_int_new(f->trace, 16, false, 10), 0);
	giant = ky_struct_add_array(f->trace, f->payload, "giant",
				    ky_int_new(f->trace, 64, false, 10), UINT64_MAX);
	ASSERT_OK(finish(f));
	assert_int_equal(some->fixed_bits, 3 * 8 + 3);
	assert_int_equal(none->fixed_bits, 0);
	assert_int_equal(none->align_bits, 8);
	assert_int_equal(giant->fixed_bits, -1);
	assert_int_equal(f->payload->fixed_bits, -1);
}

static void test_variable_sizes(void **state)
{
	struct fixture *f = *state;
	struct ky_field_class *tag, *variant, *wide;

	tag = ky_struct_add_enum(f->trace, f->payload, "tag", 8, false);
	ASSERT_OK(ky_enum_add(f->trace, tag, "a", 0, 0));
	variant = ky_struct_add_variant(f->trace, f->payload, "v", tag);
	wide = ky_int_new(f->trace, 64, false, 10);
	wide->align_bits = 64;
	ASSERT_OK(ky_variant_add(f->trace, variant, "a", wide));
	ASSERT_OK(finish(f));
	assert_int_equal(variant->align_bits, 1);
	assert_int_equal(variant->fixed_bits, -1);
	/* The option's alignment is no business of the struct around it. */
	assert_int_equal(f->payload->align_bits, 8);
	assert_int_equal(f->payload->fixed_bits, -1);
}

/* ---- references -------------------------------------------------------------------------- */

static void test_slots_are_unique_per_event(void **state)
{
	struct fixture *f = *state;
	struct ky_event_class *other = ky_event_class_new(f->stream, 2, "f");
	struct ky_field_class *n1, *n2, *s1;

	n1 = ky_struct_add_int(f->trace, f->payload, "n", 8, false, 10);
	s1 = ky_struct_add_sequence(f->trace, f->payload, "s", ky_int_new(f->trace, 8, false, 10),
				    n1);
	ky_struct_add_dynamic_text(f->trace, f->payload, "t", n1);
	other->payload = ky_struct_new(f->trace);
	n2 = ky_struct_add_int(f->trace, other->payload, "n", 8, false, 10);
	ky_struct_add_dynamic_text(f->trace, other->payload, "t", n2);
	ASSERT_OK(finish(f));
	/* Slot 0 is the event header's id, which its variant refers to. */
	assert_int_equal(f->stream->event_header->st.members[0].cls->slot, 0);
	assert_int_equal(n1->slot, 1);
	assert_int_equal(n2->slot, 1);
	assert_int_equal(f->trace->n_slots, 2);
	assert_int_equal(s1->slot, KY_NO_SLOT);
	assert_int_equal(s1->array.length_ref->scope, KY_SCOPE_PAYLOAD);
}

static void test_outer_scope(void **state)
{
	struct fixture *f = *state;
	struct ky_field_class *context = ky_struct_new(f->trace), *n, *s;

	f->stream->event_context = context;
	n = ky_struct_add_int(f->trace, context, "n", 8, false, 10);
	s = ky_struct_add_dynamic_text(f->trace, f->payload, "t", n);
	ASSERT_OK(finish(f));
	assert_int_equal(s->text.length_ref->scope, KY_SCOPE_STREAM_CONTEXT);
}

static void test_target_must_come_first(void **state)
{
	struct fixture *f = *state;
	struct ky_field_class *n = ky_int_new(f->trace, 8, false, 10);

	ky_struct_add_dynamic_text(f->trace, f->payload, "t", n);
	ASSERT_OK(ky_struct_add(f->trace, f->payload, "n", n));
	assert_int_equal(finish(f), KYMO_E_FORMAT);
}

static void test_bad_targets(void **state)
{
	struct fixture *f = *state;
	struct ky_field_class *st = ky_struct_add_struct(f->trace, f->payload, "st"), *variant;

	variant = ky_struct_add_variant(f->trace, f->payload, "v", st);
	ASSERT_OK(ky_variant_add(f->trace, variant, "a", ky_struct_new(f->trace)));
	assert_int_equal(finish(f), KYMO_E_FORMAT);
}

static void test_option_ranges(void **state)
{
	struct fixture *f = *state;
	struct ky_field_class *tag, *variant;
	const struct ky_option *options;

	tag = ky_struct_add_enum(f->trace, f->payload, "tag", 16, true);
	ASSERT_OK(ky_enum_add(f->trace, tag, "a", -1, 3));
	ASSERT_OK(ky_enum_add(f->trace, tag, "b", 4, 4));
	ASSERT_OK(ky_enum_add(f->trace, tag, "unused", 5, 5));
	ASSERT_OK(ky_enum_add(f->trace, tag, "a", 100, 200));
	variant = ky_struct_add_variant(f->trace, f->payload, "v", tag);
	ASSERT_OK(ky_variant_add(f->trace, variant, "a", ky_struct_new(f->trace)));
	ASSERT_OK(ky_variant_add(f->trace, variant, "_b", ky_struct_new(f->trace)));
	ASSERT_OK(ky_variant_add(f->trace, variant, "c", ky_struct_new(f->trace)));
	ASSERT_OK(finish(f));
	options = variant->var.options;
	assert_int_equal(options[0].n_ranges, 2);
	assert_int_equal(options[0].ranges[0].begin.s, -1);
	assert_int_equal(options[0].ranges[1].end.s, 200);
	assert_int_equal(options[1].n_ranges, 1);
	assert_int_equal(options[1].ranges[0].begin.s, 4);
	assert_int_equal(options[2].n_ranges, 0);
}

/* ---- roles and clocks ---------------------------------------------------------------------- */

static enum ky_role role_of(const struct ky_field_class *st, const char *name)
{
	return ky_struct_member(st, name)->cls->role;
}

static void test_roles(void **state)
{
	struct fixture *f = *state;
	const struct ky_field_class *header = f->trace->packet_header, *variant, *full;
	const struct ky_field_class *context = f->stream->packet_context;

	ASSERT_OK(finish(f));
	assert_int_equal(role_of(header, "magic"), KY_ROLE_MAGIC);
	assert_int_equal(role_of(header, "uuid"), KY_ROLE_TRACE_UUID);
	assert_int_equal(role_of(header, "stream_id"), KY_ROLE_STREAM_CLASS_ID);
	assert_int_equal(role_of(header, "stream_instance_id"), KY_ROLE_STREAM_ID);
	assert_int_equal(role_of(context, "packet_size"), KY_ROLE_PACKET_SIZE);
	assert_int_equal(role_of(context, "content_size"), KY_ROLE_CONTENT_SIZE);
	assert_int_equal(role_of(context, "timestamp_begin"), KY_ROLE_CLOCK_BEGIN);
	assert_int_equal(role_of(context, "timestamp_end"), KY_ROLE_CLOCK_END);
	assert_int_equal(role_of(context, "events_discarded"), KY_ROLE_DISCARDED);
	assert_int_equal(role_of(context, "packet_seq_num"), KY_ROLE_SEQUENCE);
	assert_int_equal(role_of(context, "cpu_id"), KY_ROLE_CPU_ID);
	variant = ky_struct_member(f->stream->event_header, "v")->cls;
	full = variant->var.options[1].cls;
	assert_int_equal(role_of(f->stream->event_header, "id"), KY_ROLE_EVENT_ID);
	assert_int_equal(role_of(full, "id"), KY_ROLE_EVENT_ID);
	assert_int_equal(role_of(full, "timestamp"), KY_ROLE_CLOCK_BEGIN);
	assert_ptr_equal(f->stream->clock, f->clock);
}

static void test_lone_clock_is_mapped(void **state)
{
	struct fixture *f = *state;
	struct ky_field_class *header = ky_struct_new(f->trace), *stamp;

	stamp = ky_struct_add_int(f->trace, header, "timestamp", 32, false, 10);
	f->stream->event_header = header;
	ASSERT_OK(finish(f));
	assert_ptr_equal(stamp->num.clock, f->clock);
	assert_ptr_equal(f->stream->clock, f->clock);
}

static void test_implicit_clock(void **state)
{
	struct ky_trace_class *trace = ky_trace_class_new();
	struct ky_stream_class *stream = ky_stream_class_new(trace, 0);

	stream->event_header = ky_struct_new(trace);
	ky_struct_add_int(trace, stream->event_header, "timestamp", 32, false, 10);
	ASSERT_OK(ky_trace_class_finish(trace, true, NULL));
	assert_non_null(stream->clock);
	assert_int_equal(stream->clock->frequency_hz, 1000000000);
	ky_trace_class_free(trace);
}

static void test_two_clocks(void **state)
{
	struct fixture *f = *state;
	struct ky_clock_class *second = ky_clock_class_new(f->trace, "second");

	ky_struct_add_int(f->trace, f->payload, "x", 64, false, 10)->num.clock = second;
	assert_int_equal(finish(f), KYMO_E_FORMAT);
	assert_string_equal(f->err.message,
			    "stream 0 uses two clocks, \"monotonic\" and \"second\"");
}

static void test_one_more_event(void **state)
{
	struct fixture *f = *state;
	struct ky_event_class *late;
	struct ky_field_class *n;

	ASSERT_OK(finish(f));
	late = ky_event_class_new(f->stream, 77, "late");
	late->payload = ky_struct_new(f->trace);
	n = ky_struct_add_int(f->trace, late->payload, "n", 8, false, 10);
	ky_struct_add_dynamic_text(f->trace, late->payload, "t", n);
	ASSERT_OK(ky_event_class_finish(late, &f->err));
	assert_int_equal(n->slot, 1);
	assert_int_equal(f->trace->n_slots, 2);
	assert_non_null(late->plan);
}

int main(void)
{
#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(test_registered),
		WITH_FIXTURE(test_env),
		WITH_FIXTURE(test_member_names),
		WITH_FIXTURE(test_labels),
		WITH_FIXTURE(test_fixed_sizes),
		WITH_FIXTURE(test_array_stride),
		WITH_FIXTURE(test_variable_sizes),
		WITH_FIXTURE(test_slots_are_unique_per_event),
		WITH_FIXTURE(test_outer_scope),
		WITH_FIXTURE(test_target_must_come_first),
		WITH_FIXTURE(test_bad_targets),
		WITH_FIXTURE(test_option_ranges),
		WITH_FIXTURE(test_roles),
		WITH_FIXTURE(test_lone_clock_is_mapped),
		cmocka_unit_test(test_implicit_clock),
		WITH_FIXTURE(test_two_clocks),
		WITH_FIXTURE(test_one_more_event),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
