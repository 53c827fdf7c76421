/* SPDX-License-Identifier: MIT */
/* What the files of foreign-kernel.h share: foreign-kernel.c has the CPUs, foreign-events.c descriptions, foreign-records.c records. */
#ifndef KY_IMPORT_FOREIGN_KERNEL_INTERNAL_H
#define KY_IMPORT_FOREIGN_KERNEL_INTERNAL_H

#include "import/ftrace/foreign-kernel.h"

/* ftrace's records of call stacks, as they are made here. */
#define KY_FOREIGN_KERNEL_STACK_ID 0xbffeu
#define KY_FOREIGN_USER_STACK_ID   0xbfffu
#define KY_FOREIGN_STACK_FRAMES	   512u
#define KY_FOREIGN_STACK_BYTES	   (16u + 8 * KY_FOREIGN_STACK_FRAMES)

struct ky_foreign_cpu {
	struct ky_kernel_cpu cpu;
	uint64_t last_ns; /* of the last record */
	uint64_t lost;	  /* before the next page, and not told yet */
};

/* The fields of a record, whose bytes have to be turned round. */
struct ky_foreign_swap {
	const struct ky_format *format;
};

/* CPU @number, a new one if need be. NULL: @err. */
struct ky_foreign_cpu *ky_foreign_add_cpu(struct ky_foreign_kernel *foreign, uint32_t number,
					  struct kymo_error *err);
static inline struct ky_foreign_cpu *ky_foreign_cpu(struct ky_foreign_kernel *foreign,
						    uint32_t number, struct kymo_error *err)
{
	if (__builtin_expect(number < foreign->cpus.len && foreign->cpus.data[number], 1))
		return foreign->cpus.data[number];
	return ky_foreign_add_cpu(foreign, number, err);
}

/* Tells what was lost before the next record. */
int ky_foreign_tell_lost(struct ky_foreign_cpu *cpu, struct kymo_error *err);

/* Adds the descriptions of call stacks; every event may have some. */
int ky_foreign_add_stacks(struct ky_foreign_kernel *foreign, struct kymo_error *err);
/* Adds the event of system call @number, after the begin, if this number has a name. */
int ky_foreign_add_call(struct ky_foreign_kernel *foreign, uint32_t number, bool is_exit,
			struct kymo_error *err);

/* foreign-turn.c: turns the fields of a record round. */
void ky_foreign_turn(const struct ky_format *format, uint8_t *record, uint32_t len);

/* foreign-dump.c: sends the threads of the state dump. */
int ky_foreign_send_dump(struct ky_foreign_kernel *foreign, struct kymo_error *err);

#endif
