/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include "ctf/resolve/lttng-layout.h"
#include "kernel/convert/convert.h"
#include "kernel/events/kernel-filter.h"
#include "kernel/events/print-fmt.h"
#include "ring-data.h"

enum { SWITCH, OPENAT, ISSUE, ENTRY, EXEC, N_EVENTS };

struct fixture {
	struct ky_arena arena;
	struct ky_trace_class *trace;
	struct ky_convert convert;
	uint16_t ids[N_EVENTS];
};

/* Fields of all sizes, an enumeration, flags. */
static const char typed[] = "name: typed\nID: 9\nformat:\n"
			    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
			    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
			    "\tfield:u8 tiny;\toffset:8;\tsize:1;\tsigned:0;\n"
			    "\tfield:s16 small;\toffset:10;\tsize:2;\tsigned:1;\n"
			    "\tfield:int state;\toffset:12;\tsize:4;\tsigned:1;\n"
			    "\tfield:u64 flags;\toffset:16;\tsize:8;\tsigned:0;\n"
			    "\tfield:const char * where;\toffset:24;\tsize:8;\tsigned:0;\n"
			    "\tfield:__data_loc char[] name;\toffset:32;\tsize:4;\tsigned:0;\n\n"
			    "print fmt: \"%s\", __print_symbolic(REC->state, { -1, \"off\" }, "
			    "{ 3, \"on\" }, { 4, \"on\" })\n";

static void add(struct fixture *f, struct ky_stream_class *stream, int i, const char *system,
		const char *name)
{
	struct ky_event_class *event = ky_event_class_new(stream, (uint64_t)i, name);
	struct ky_format format;

	if (i == ENTRY) {
		assert_int_equal(
			ky_format_parse(&f->arena, typed, sizeof(typed) - 1, &format, NULL), 0);
		assert_int_equal(ky_print_fmt_apply(&f->arena, typed, sizeof(typed) - 1, NULL,
						    &format, NULL),
				 0);
	} else {
		ring_format(&f->arena, name, &format);
	}
	f->ids[i] = format.id;
	assert_int_equal(ky_convert_add(&f->convert, system, &format, event, NULL), 0);
}

static void set_up(struct fixture *f)
{
	struct ky_stream_class *stream;

	ky_arena_init(&f->arena);
	f->trace = ky_trace_class_new();
	ky_lttng_layout_trace(f->trace);
	stream = ky_lttng_layout_stream(f->trace, 0, ky_clock_class_new(f->trace, "tsc"), false);
	assert_int_equal(ky_convert_init(&f->convert, KY_CONTEXT_PROCNAME, NULL), 0);
	stream->event_context = ky_convert_context_class(&f->convert, f->trace);
	add(f, stream, SWITCH, "sched", "sched_switch");
	add(f, stream, OPENAT, "syscalls", "sys_enter_openat");
	add(f, stream, ISSUE, "block", "block_rq_issue");
	add(f, stream, ENTRY, "other", "typed");
	add(f, stream, EXEC, "sched", "sched_process_exec");
	assert_int_equal(ky_trace_class_finish(f->trace, true, NULL), 0);
}

static void tear_down(struct fixture *f)
{
	ky_convert_fini(&f->convert);
	ky_trace_class_free(f->trace);
	ky_arena_fini(&f->arena);
}

static const struct {
	int event;
	const char *filter;
	enum ky_kernel_filter how;
	const char *text;
} cases[] = {
	{SWITCH, "next_prio < 0", KY_KERNEL_FILTER_ALL, "(next_prio < 100)"},
	{SWITCH, "-5 <= prev_prio", KY_KERNEL_FILTER_ALL, "(prev_prio >= 95)"},
	{SWITCH, "next_tid == 5 || prev_tid == 5", KY_KERNEL_FILTER_ALL,
	 "((next_pid == 5) || (prev_pid == 5))"},
	{SWITCH, "!(next_tid == 5 && prev_tid > 6)", KY_KERNEL_FILTER_ALL,
	 "((next_pid != 5) || (prev_pid <= 6))"},
	{SWITCH, "next_tid in (1, 2)", KY_KERNEL_FILTER_ALL,
	 "((next_pid == 1) || (next_pid == 2))"},
	{SWITCH, "!(next_tid in (1, 2))", KY_KERNEL_FILTER_ALL,
	 "((next_pid != 1) && (next_pid != 2))"},
	{SWITCH, "next_comm == \"a b*\"", KY_KERNEL_FILTER_ALL, "(next_comm == \"a b*\")"},
	{SWITCH, "!(next_comm =~ \"k?\")", KY_KERNEL_FILTER_ALL, "!(next_comm ~ \"k?\")"},
	{SWITCH, "$ctx.tid != 7 && $cpu == 1", KY_KERNEL_FILTER_ALL,
	 "((common_pid != 7) && (CPU == 1))"},
	{SWITCH, "$ctx.procname == \"x\"", KY_KERNEL_FILTER_ALL, "(COMM == \"x\")"},
	{SWITCH, "$event =~ \"sched_*\" && next_tid", KY_KERNEL_FILTER_ALL, "(next_pid != 0)"},
	{SWITCH, "(prev_state & 3) != 0", KY_KERNEL_FILTER_ALL, "(prev_state & 3)"},
	{SWITCH, "(prev_state & 3) == 0", KY_KERNEL_FILTER_ALL, "!(prev_state & 3)"},
	{SWITCH, "prev_state & 3", KY_KERNEL_FILTER_ALL, "(prev_state & 3)"},
	/* The kernel does some of it. */
	{SWITCH, "next_tid > 5 && next_tid % 2 == 0", KY_KERNEL_FILTER_PART, "((next_pid > 5))"},
	{SWITCH, "next_tid % 2 == 0 && next_tid > 5", KY_KERNEL_FILTER_PART, "(next_pid > 5)"},
	{SWITCH, "!(next_tid % 2 == 0 || next_tid > 5)", KY_KERNEL_FILTER_PART, "(next_pid <= 5)"},
	/* Or nothing. */
	{SWITCH, "next_tid > 5 || next_tid % 2 == 0", KY_KERNEL_FILTER_NONE, ""},
	{SWITCH, "next_tid == prev_tid", KY_KERNEL_FILTER_NONE, ""},
	{SWITCH, "next_prio > 2147483600", KY_KERNEL_FILTER_NONE, ""},
	{SWITCH, "next_tid == 1.5", KY_KERNEL_FILTER_NONE, ""},
	{SWITCH, "next_comm < \"m\"", KY_KERNEL_FILTER_NONE, ""},
	{SWITCH, "next_comm == \"\"", KY_KERNEL_FILTER_NONE, ""},
	{SWITCH, "next_comm == 'a\"b'", KY_KERNEL_FILTER_NONE, ""},
	{SWITCH, "next_comm =~ \"[a]\"", KY_KERNEL_FILTER_NONE, ""},
	{SWITCH, "next_comm =~ \"!a\"", KY_KERNEL_FILTER_NONE, ""},
	{SWITCH, "next_comm =~ \"0*\"", KY_KERNEL_FILTER_NONE, ""},
	{SWITCH, "$time > 5", KY_KERNEL_FILTER_NONE, ""},
	/* The register's upper half means nothing; a text's address is a text in the trace. */
	{OPENAT, "dfd == 3", KY_KERNEL_FILTER_NONE, ""},
	{OPENAT, "filename == \"0x1\"", KY_KERNEL_FILTER_NONE, ""},
	{ISSUE, "rwbs & 4", KY_KERNEL_FILTER_NONE, ""},
	{ISSUE, "tid == 4 && comm == \"dd\"", KY_KERNEL_FILTER_ALL,
	 "((common_pid == 4) && (comm == \"dd\"))"},
	{ENTRY, "tiny == 255", KY_KERNEL_FILTER_ALL, "(tiny == 255)"},
	{ENTRY, "tiny < 256", KY_KERNEL_FILTER_NONE, ""},
	{ENTRY, "small >= -32768", KY_KERNEL_FILTER_ALL, "(small >= -32768)"},
	{ENTRY, "flags > 9223372036854775808", KY_KERNEL_FILTER_ALL,
	 "(flags > 9223372036854775808)"},
	{ENTRY, "flags != -1", KY_KERNEL_FILTER_NONE, ""},
	{ENTRY, "state == \"off\"", KY_KERNEL_FILTER_ALL, "(state == -1)"},
	{ENTRY, "state == \"on\"", KY_KERNEL_FILTER_NONE, ""},
	{ENTRY, "where == 5", KY_KERNEL_FILTER_NONE, ""},
	{ENTRY, "name == \"x\"", KY_KERNEL_FILTER_ALL, "(name == \"x\")"},
	{EXEC, "filename =~ \"/bin/*\" && tid == old_tid", KY_KERNEL_FILTER_PART,
	 "((filename ~ \"/bin/*\"))"},
};

static void test_translations(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct ky_trace_class *trace = f.trace;
		struct ky_strbuf text = KY_STRBUF_INIT;
		const struct ky_event_field *fields;
		struct ky_filter *filter;
		size_t n;

		fields = ky_convert_fields(&f.convert, f.ids[cases[i].event], &n);
		assert_int_equal(ky_filter_compile(cases[i].filter, &trace, 1, &filter, NULL), 0);
		assert_int_equal(ky_kernel_filter(filter, trace->events.data[cases[i].event],
						  fields, n, &text),
				 cases[i].how);
		assert_string_equal(ky_strbuf_text(&text), cases[i].text);
		ky_strbuf_fini(&text);
		ky_filter_free(filter);
	}
	tear_down(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_translations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
