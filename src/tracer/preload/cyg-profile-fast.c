/* SPDX-License-Identifier: MIT */
/*
 * As cyg-profile.c, with half of the bytes or less: who called, and what returns, follows from the
 * order of the events of a thread, as long as none is lost.
 */
#include "tracer/preload/call-filter.h"
#include "tracer/preload/preload.h"

KY_PRELOAD_API void __cyg_profile_func_enter(void *addr, void *call_site);
KY_PRELOAD_API void __cyg_profile_func_exit(void *addr, void *call_site);

#define EVENT(...)                                                                           \
	KY_PRELOAD_EVENT(KY_PRELOAD_CALLER, KYMO_DEBUG_FUNCTION, lttng_ust_cyg_profile_fast, \
			 __VA_ARGS__)

void __cyg_profile_func_enter(void *addr, void *call_site) // NOLINT: the compilers' name
{
	(void)call_site;
	if (ky_call_filter_chooses((uintptr_t)addr))
		EVENT(func_entry, addr);
}

void __cyg_profile_func_exit(void *addr, void *call_site) // NOLINT
{
	(void)call_site;
	if (ky_call_filter_chooses((uintptr_t)addr))
		EVENT(func_exit);
}

static __attribute__((constructor)) void cyg_profile_fast_load(void)
{
	ky_call_filter_init();
}
