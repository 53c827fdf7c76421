/* SPDX-License-Identifier: MIT */
/* CPUs of this machine. */
#ifndef KY_OS_CPU_H
#define KY_OS_CPU_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the machine has @cpu, and it is online now. Any thread. */
bool ky_os_cpu_is_online(uint32_t cpu);

#endif
