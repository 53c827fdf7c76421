/* SPDX-License-Identifier: MIT */
/*
 * Pages of the ring, any bytes, for events with every kind of field: no read outside the page, no
 * write outside the packet, and an end.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ctf/resolve/lttng-layout.h"
#include "kernel/convert/convert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HEAD                                                              \
	"field:unsigned short common_type; offset:0; size:2; signed:0;\n" \
	"field:int common_pid; offset:4; size:4; signed:1;\n"

static const struct {
	const char *system, *format;
} events[] = {
	{"sched",
	 "name: sched_switch\nID: 372\n" HEAD
	 "field:char prev_comm[16]; offset:8; size:16;\nfield:pid_t prev_pid; offset:24; size:4;\n"
	 "field:int prev_prio; offset:28; size:4;\nfield:long prev_state; offset:32; size:8;\n"
	 "field:char next_comm[16]; offset:40; size:16;\nfield:pid_t next_pid; offset:56; size:4;\n"
	 "field:int next_prio; offset:60; size:4;\n"},
	{"sched", "name: sched_process_exec\nID: 365\n" HEAD
		  "field:__data_loc char[] filename; offset:8; size:4;\n"
		  "field:pid_t pid; offset:12; size:4;\nfield:pid_t old_pid; offset:16; size:4;\n"},
	{"sched", "name: sched_migrate_task\nID: 371\n" HEAD
		  "field:__data_loc char[] comm; offset:8; size:4;\n"
		  "field:pid_t pid; offset:12; size:4;\nfield:int prio; offset:16; size:4;\n"},
	{"sched", "name: sched_process_exit\nID: 370\n" HEAD
		  "field:char comm[16]; offset:8; size:16;\nfield:pid_t pid; offset:24; size:4;\n"},
	{"task", "name: task_newtask\nID: 205\n" HEAD
		 "field:pid_t pid; offset:8; size:4;\nfield:char comm[16]; offset:12; size:16;\n"
		 "field:u64 clone_flags; offset:32; size:8;\n"},
	{"syscalls",
	 "name: sys_enter_openat\nID: 782\n" HEAD
	 "field:int __syscall_nr; offset:8; size:4;\nfield:int dfd; offset:16; size:8;\n"
	 "field:const char * filename; offset:24; size:8;\n"
	 "field:umode_t mode; offset:32; size:8;\n"},
	{"block",
	 "name: block_rq_issue\nID: 2104\n" HEAD
	 "field:char rwbs[10]; offset:8; size:10;\nfield:char comm[16]; offset:18; size:16;\n"
	 "field:__data_loc char[] cmd; offset:36; size:4;\n"},
	{"other",
	 "name: sequences\nID: 100\n" HEAD "field:__rel_loc u64[] stack; offset:8; size:4;\n"
	 "field:__data_loc u8[] bytes; offset:12; size:4;\nfield:u8 mac[6]; offset:16; size:6;\n"},
};

static int send_packet(struct ky_convert_cpu *cpu, uint64_t end_cycles, struct kymo_error *err)
{
	(void)err;
	ky_packet_writer_close(&cpu->writer, end_cycles, cpu->lost, 8);
	return 0;
}

static void add_events(struct ky_convert *convert, struct ky_stream_class *stream)
{
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		const char *text = events[i].format;
		struct ky_format format;

		if (ky_format_parse(&convert->arena, text, strlen(text), &format, NULL) < 0 ||
		    ky_convert_add(convert, events[i].system, &format,
				   ky_event_class_new(stream, i, format.name), NULL) < 0)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct ky_page_layout layout = {0, 8, 8, 16};
	static const uint8_t uuid[16] = {0};
	struct ky_trace_class *trace = ky_trace_class_new();
	struct ky_stream_class *stream = ky_stream_class_new(trace, 0);
	struct ky_convert convert;
	struct ky_convert_cpu cpu = {.convert = &convert};
	uint8_t *page = malloc(size ? size : 1);
	struct ky_page in;
	uint64_t until = 0;

	if (!page || ky_convert_init(&convert, 0, NULL) < 0)
		abort();
	memcpy(page, data, size);
	convert.packet = send_packet;
	add_events(&convert, stream);
	/* A packet that is soon full. */
	if (ky_packet_writer_init(&cpu.writer, 1024, uuid, 0, 0, 0, false) < 0)
		abort();
	ky_packet_writer_begin(&cpu.writer, 0);
	if (ky_page_open(&layout, page, (uint32_t)size, &in, NULL) == 0 &&
	    ky_convert_page(&cpu, &in, NULL) == 0)
		while (ky_convert_run(&cpu, until, NULL) == 1)
			until = cpu.next_cycles;
	ky_packet_writer_fini(&cpu.writer);
	ky_convert_fini(&convert);
	ky_trace_class_free(trace);
	free(page);
	return 0;
}
