/* SPDX-License-Identifier: MIT */
/* Tests of one CPU's buffer. */
#ifndef KY_TEST_ONE_CPU_H
#define KY_TEST_ONE_CPU_H

/* The calling thread stays on the CPU that it runs on: what follows is in one buffer. */
void test_on_one_cpu(void);

#endif
