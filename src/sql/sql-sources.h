/* SPDX-License-Identifier: MIT */
/* The tables that a pass makes, in the order of the schema. */
#ifndef KY_SQL_SQL_SOURCES_H
#define KY_SQL_SQL_SOURCES_H

#include "sql/sql-pass.h"

/* clang-format off */
#define KY_SQL_SOURCES(X)                                                                       \
	X(syscall) X(cpu_slice)                         /* sql-source-calls.c */                \
	X(thread) X(process)                            /* sql-source-threads.c */              \
	X(thread_state) X(cpu_state)                    /* sql-source-states.c */               \
	X(irq) X(block_request) X(network) X(lock_wait) /* sql-source-devices.c */              \
	X(histogram)                                    /* sql-source-histogram.c */            \
	X(vcpu) X(vcpu_off)                             /* sql-source-guests.c */               \
	X(sample) X(stack)                              /* sql-source-stacks.c */               \
	X(span) X(counter)                              /* sql-source-spans.c */                \
	X(log) X(loss) X(host) X(clock)                 /* sql-source-streams.c */
/* clang-format on */

#define KY_SQL_SOURCE_EXTERN(name) extern const struct ky_sql_source ky_sql_source_##name;
KY_SQL_SOURCES(KY_SQL_SOURCE_EXTERN)
#undef KY_SQL_SOURCE_EXTERN

#endif
