/* SPDX-License-Identifier: MIT */
/* The state dump of a foreign kernel: the threads that were there when the recording began. */
#include <string.h>

#include "base/error.h"
#include "import/ftrace/foreign-kernel-internal.h"
#include "kernel/statedump/statedump.h"

/* No CPU has this number. */
#define DUMP_STREAM_ID 0x10000u

int ky_foreign_send_dump(struct ky_foreign_kernel *foreign, struct kymo_error *err)
{
	if (foreign->dump_stream < 0)
		foreign->dump_stream = ky_store_stream(foreign->kernel.packets, "statedump_0", err);
	if (foreign->dump_stream < 0)
		return foreign->dump_stream;
	return ky_kernel_trace_send(&foreign->kernel, &foreign->dump, foreign->dump_stream, NULL,
				    foreign->kernel.start_cycles, 0, err);
}

/* Bytes of lttng_statedump_process_state, with LTTng's numbers. */
struct foreign_thread {
	int32_t tid, pid, ppid;
	char comm[16];
	int32_t type, mode, submode, status;
	uint32_t cpu;
	uint64_t file_table;
	int32_t prio;
} __attribute__((packed));

#define MODE_UNKNOWN 5
#define STATUS_WAIT  5

int ky_foreign_kernel_thread(struct ky_foreign_kernel *foreign, int32_t tid, int32_t pid,
			     const char *comm, struct kymo_error *err)
{
	struct ky_kernel_trace *kernel = &foreign->kernel;
	uint32_t id = kernel->first_dump_id + KY_STATEDUMP_PROCESS_STATE;
	/* Thread 0, and no call stacks: all zeros. */
	uint32_t context = kernel->convert.context_bytes,
		 len = context + sizeof(struct foreign_thread);
	struct foreign_thread thread = {
		.tid = tid,
		.pid = pid,
		.mode = MODE_UNKNOWN,
		.status = STATUS_WAIT,
		.prio = 20,
	};
	uint8_t *at;
	int ret = KYMO_OK;

	memcpy(thread.comm, comm, sizeof(thread.comm));
	if (!foreign->dump.data) {
		if (ky_packet_writer_init(&foreign->dump, KY_KERNEL_TRACE_PACKET_BYTES,
					  kernel->uuid, 0, DUMP_STREAM_ID, 0,
					  kernel->compact_header) < 0)
			return ky_error_nomem(err);
		ky_packet_writer_begin(&foreign->dump, kernel->start_cycles);
	}
	at = ky_packet_writer_event(&foreign->dump, id, kernel->start_cycles, len);
	if (!at) {
		ret = ky_foreign_send_dump(foreign, err);
		ky_packet_writer_begin(&foreign->dump, kernel->start_cycles);
		at = ky_packet_writer_event(&foreign->dump, id, kernel->start_cycles, len);
	}
	if (at) {
		memset(at, 0, context);
		memcpy(at + context, &thread, sizeof(thread));
	}
	return ret;
}
