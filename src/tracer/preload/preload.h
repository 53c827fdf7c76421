/* SPDX-License-Identifier: MIT */
/*
 * Ready-made instrumentation, each a library for LD_PRELOAD:
 *
 *	libc.c		libkymo-libc: malloc(), free() and their relatives
 *	pthread.c	libkymo-pthread: mutexes
 *	cyg-profile.c	libkymo-cyg-profile, -fast: functions compiled with -finstrument-functions
 *	mcount.c	libkymo-mcount: functions compiled with -pg, -mfentry, or patchable entries (mcount.h)
 *	fd.c		libkymo-fd: the tracer's descriptor is kept from programs that close all
 *
 * Providers, events and fields are LTTng-UST's, so that what analyses its traces analyses these.
 *
 * They stand between a program and its libraries, in every thread, signal handler, forked child and
 * destructor. What they have in common: the next library's functions are looked up once; libkymo-trace
 * calls none of what is wrapped here, so that nothing recurs, except by an application's contexts (see
 * ask_app() in context.c).
 */
#ifndef KY_TRACER_PRELOAD_PRELOAD_H
#define KY_TRACER_PRELOAD_PRELOAD_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kymo/trace.h>

#define KY_PRELOAD_API KYMO_TRACE_API

/* Who called the function that this stands in: the context ip of its events. */
#define KY_PRELOAD_CALLER ((uintptr_t)__builtin_return_address(0))

/* KYMO_EVENT_LEVEL(), on behalf of @ip; the fields are variables, whose names are the fields'. */
#define KY_PRELOAD_EVENT(ip, level, ...)                                               \
	do {                                                                           \
		KYMO_CHECK_(__VA_ARGS__)                                               \
		enum { kymo_byte_ = KYMO_BYTE_(#__VA_ARGS__) };                        \
		if (KYMO_IS_ON_(kymo_byte_)) {                                         \
			struct kymo_site *kymo_site_;                                  \
			KYMO_SITE_(kymo_site_, kymo_byte_, level, PLAIN, #__VA_ARGS__, \
				   __VA_ARGS__);                                       \
			kymo_hit_from(kymo_site_, KYMO_VALUES_(__VA_ARGS__), ip);      \
		}                                                                      \
	} while (0)

/* Functions of the next library that has them. */
struct ky_preload {
	bool is_ready;
	uint32_t n;
	const char *const *names;
	void **found; /* NULL: nobody has it */
};

/*
 * Look them up. Returns false inside of the look-up itself, which may call what is wrapped.
 * Threads: any; a second thread stores the same value.
 */
static __attribute__((noinline)) bool ky_preload_resolve(struct ky_preload *next)
{
	/* In the thread's static block: does not allocate. */
	static __thread bool is_resolving __attribute__((tls_model("initial-exec")));

	if (is_resolving)
		return false;
	is_resolving = true;
	for (uint32_t i = 0; i < next->n; i++)
		__atomic_store_n(&next->found[i], dlsym(RTLD_NEXT, next->names[i]),
				 __ATOMIC_RELAXED);
	/* Partner: the load in ky_preload_ready(). */
	__atomic_store_n(&next->is_ready, true, __ATOMIC_RELEASE);
	is_resolving = false;
	return true;
}

/* May @next->found be used? */
static inline bool ky_preload_ready(struct ky_preload *next)
{
	return __builtin_expect(__atomic_load_n(&next->is_ready, __ATOMIC_ACQUIRE), 1) ||
	       ky_preload_resolve(next);
}

#endif
