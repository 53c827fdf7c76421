/* SPDX-License-Identifier: MIT */
/* What gcc and clang call from functions that are compiled with -finstrument-functions. */
#include "tracer/preload/call-filter.h"
#include "tracer/preload/preload.h"

KY_PRELOAD_API void __cyg_profile_func_enter(void *addr, void *call_site);
KY_PRELOAD_API void __cyg_profile_func_exit(void *addr, void *call_site);

#define EVENT(...) \
	KY_PRELOAD_EVENT(KY_PRELOAD_CALLER, KYMO_DEBUG_FUNCTION, lttng_ust_cyg_profile, __VA_ARGS__)

void __cyg_profile_func_enter(void *addr, void *call_site) // NOLINT: the compilers' name
{
	if (ky_call_filter_chooses((uintptr_t)addr))
		EVENT(func_entry, addr, call_site);
}

void __cyg_profile_func_exit(void *addr, void *call_site) // NOLINT
{
	if (ky_call_filter_chooses((uintptr_t)addr))
		EVENT(func_exit, addr, call_site);
}

static __attribute__((constructor)) void cyg_profile_load(void)
{
	ky_call_filter_init();
}
