/* SPDX-License-Identifier: MIT */
#include "one-cpu.h"

#include <sched.h>
#include <stdlib.h>

void test_on_one_cpu(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	if (sched_setaffinity(0, sizeof(one), &one) < 0)
		abort();
}
