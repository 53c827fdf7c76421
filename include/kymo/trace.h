/* SPDX-License-Identifier: MIT */
/*
 * Instrumentation: events of your own program, for 'kymo record --user'. C11 and C++17.
 *
 *	#include <kymo/trace.h>			cc program.c -lkymo-trace
 *
 *	KYMO_EVENT(shop, order_placed, id, total_cents, customer_name);
 *
 * This one line defines the event shop:order_placed with three fields, and records it while a
 * recording enables it. When no recording enables it, the line costs a load, a test and a branch
 * that is not taken. The names of the fields come from the expressions, and the compiler gives the
 * types. The program evaluates the expressions only when it records the event, so they must not
 * have side effects.
 *
 * Fields (at most 10)
 *
 *	expression		integers, bool, enumerations, floating point; char * (a string, recorded up
 *				to its NUL; of a longer string, the first KYMO_STRING_MAX bytes, which then
 *				end with "..."); other pointers: the address.
 *				The name is that of the last variable or member in it: order->id is "id".
 *				C++: also objects with c_str().
 *	KYMO_AS(name, field)	another name; field is an expression or one of these:
 *	KYMO_HEX(x) KYMO_OCT(x) KYMO_BIN(x)	an integer, shown in that base
 *	KYMO_NET(x) KYMO_NET_HEX(x)	an integer that is in network byte order already
 *	KYMO_ENUM(x, labels)	an integer with names for values; labels from KYMO_LABELS()
 *	KYMO_ARRAY(a, n)	n numbers from a; n is constant, at most 65535
 *	KYMO_ARRAY_HEX(a, n)
 *	KYMO_SEQUENCE(p, n)	n numbers from p; n varies
 *	KYMO_SEQUENCE_HEX(p, n)
 *	KYMO_TEXT(p, n)		n bytes of UTF-8
 *	KYMO_BLOB(p, n)		n bytes of anything
 *	KYMO_FILTER_ONLY(x)	filters can use this field; the trace does not have it
 *
 * The tracer records NULL as an empty string, sequence, text or blob, and as an array of zeros.
 *
 * An expression with a comma follows the usual rule of macros: in C, f(a, b) needs no parentheses
 * around it; in C++, a template's f<a, b>() needs them.
 *
 * Threads, signals: events may stand anywhere, in signal handlers and constructors too, in any
 * number of threads. (kymo_printf() must not stand in signal handlers: it formats with the C
 * library.) An event takes no lock, allocates no memory and leaves errno unchanged. Shared
 * libraries and dlopen()ed modules may have events, too.
 */
#ifndef KYMO_TRACE_H
#define KYMO_TRACE_H

#include <stddef.h>
#include <stdint.h>

/* The maximum length of a recorded string in bytes, without the NUL. KYMO_TEXT() has no limit. */
#define KYMO_STRING_MAX 1023

/*
 * Log levels: those of syslog, with several levels for debugging. The default is KYMO_DEBUG_LINE.
 */
#define KYMO_EMERGENCY	    0
#define KYMO_ALERT	    1
#define KYMO_CRITICAL	    2
#define KYMO_ERROR	    3
#define KYMO_WARNING	    4
#define KYMO_NOTICE	    5
#define KYMO_INFO	    6
#define KYMO_DEBUG_SYSTEM   7
#define KYMO_DEBUG_PROGRAM  8
#define KYMO_DEBUG_PROCESS  9
#define KYMO_DEBUG_MODULE   10
#define KYMO_DEBUG_UNIT	    11
#define KYMO_DEBUG_FUNCTION 12
#define KYMO_DEBUG_LINE	    13
#define KYMO_DEBUG	    14

#include <kymo/trace-site.h>

/*
 * KYMO_EVENT(provider, name, fields...): record an event. A statement. Provider and name are plain
 * words: letters, digits, '_'.
 */
#define KYMO_EVENT(...) KYMO_EVENT_(KYMO_DEBUG_LINE, PLAIN, #__VA_ARGS__, __VA_ARGS__)

/* KYMO_EVENT_LEVEL(level, provider, name, fields...): the same with a log level. */
#define KYMO_EVENT_LEVEL(level, ...) KYMO_EVENT_(level, PLAIN, #__VA_ARGS__, __VA_ARGS__)

/*
 * KYMO_SPAN(provider, name, fields...): record a span of a thread's work, from here to the end of
 * the enclosing block: event name_begin, with the fields, and event name_end. A declaration. The
 * program records name_end exactly when it recorded name_begin.
 */
#define KYMO_SPAN(...) KYMO_SPAN_(KYMO_DEBUG_LINE, #__VA_ARGS__, __VA_ARGS__)

/* KYMO_COUNTER(provider, name, value): record a quantity that changes over time. A statement. */
#define KYMO_COUNTER(...) KYMO_COUNTER_(#__VA_ARGS__, __VA_ARGS__)

/*
 * kymo_printf("format", ...): record event kymo:printf with the formatted text in field msg (a
 * string of at most KYMO_STRING_MAX bytes). Formatting is slow: this is for debugging.
 * kymo_log(level, ...) has a log level.
 */
#define kymo_printf(...)     kymo_log(KYMO_DEBUG_LINE, __VA_ARGS__)
#define kymo_log(level, ...) KYMO_LOG_(level, __VA_ARGS__)

/*
 * kymo_enabled(provider, name): whether the program would record such an event here and now,
 * without regard to filters and log levels. With it, a program can skip the computation of values
 * that only the event needs.
 */
#define kymo_enabled(provider, name) KYMO_ENABLED_(provider, name)

/*
 * Names for values. Stands outside of functions:
 *
 *	KYMO_LABELS(order_state, KYMO_LABEL(NEW), KYMO_LABEL(PAID), KYMO_LABEL_RANGE("odd", 3, 9));
 *	KYMO_EVENT(shop, order_changed, id, KYMO_ENUM(order->state, order_state));
 */
#define KYMO_LABELS(labels, ...) \
	static const struct kymo_label labels[] __attribute__((unused)) = {__VA_ARGS__, {0, 0, 0}}
#define KYMO_LABEL(value)	   KYMO_LABEL_RANGE(#value, value, value)
#define KYMO_LABEL_AS(text, value) KYMO_LABEL_RANGE(text, value, value)
#define KYMO_LABEL_RANGE(text, first, last)             \
	{                                               \
		text, (int64_t)(first), (int64_t)(last) \
	}

#define KYMO_AS(name, field) field
#define KYMO_HEX(x)	     KYMO_FORM_INTEGER_(x, KYMO_BASE_HEX)
#define KYMO_OCT(x)	     KYMO_FORM_INTEGER_(x, KYMO_BASE_OCT)
#define KYMO_BIN(x)	     KYMO_FORM_INTEGER_(x, KYMO_BASE_BIN)
#define KYMO_NET(x)	     KYMO_FORM_INTEGER_(x, KYMO_FLAG_NET)
#define KYMO_NET_HEX(x)	     KYMO_FORM_INTEGER_(x, KYMO_FLAG_NET | KYMO_BASE_HEX)
#define KYMO_ENUM(x, labels) \
	KYMO_FORM_(x, KYMO_AS_ENUM(KYMO_TYPE_PLAIN(x)), labels, 1, KYMO_VALUE_PLAIN(x))
#define KYMO_ARRAY(a, n)	KYMO_FORM_ARRAY_(a, 0u, n)
#define KYMO_ARRAY_HEX(a, n)	KYMO_FORM_ARRAY_(a, KYMO_BASE_HEX, n)
#define KYMO_SEQUENCE(p, n)	KYMO_FORM_SEQUENCE_(p, 0u, n)
#define KYMO_SEQUENCE_HEX(p, n) KYMO_FORM_SEQUENCE_(p, KYMO_BASE_HEX, n)
#define KYMO_TEXT(p, n)		KYMO_FORM_BYTES_(p, KYMO_KIND_TEXT, n)
#define KYMO_BLOB(p, n)		KYMO_FORM_BYTES_(p, KYMO_KIND_BLOB, n)
#define KYMO_FILTER_ONLY(x) \
	KYMO_FORM_(x, KYMO_FILTERED(KYMO_TYPE_PLAIN(x)), kymo_page, 1, KYMO_VALUE_PLAIN(x))

/*
 * KYMO_LATENCY_BEGIN(tracker, key), KYMO_LATENCY_END(tracker, key): measure the time from one to the other, for 'kymo
 * latency'. Statements. The tracker is a plain word; its histogram always counts, and needs no recording. The key is an
 * integer or a pointer that says which BEGIN and END belong together, such as a request's number. They may be in different
 * functions, files and threads. A BEGIN whose key is open begins anew; an END without a BEGIN does nothing.
 *
 *	KYMO_LATENCY_BEGIN(request, request->id);
 *	...
 *	KYMO_LATENCY_END(request, request->id);
 *
 * A process has at most 64 trackers and about 16000 open pairs; further ones are counted as lost. The first BEGIN of a process
 * makes a file in memory. All others make no system call (but each clock_gettime() where the kernel does not keep time
 * by the processor's time stamp counter), take no lock and allocate no memory, also in signal handlers.
 */
#define KYMO_LATENCY_BEGIN(tracker, key) KYMO_LATENCY_(kymo_latency_begin, tracker, key)
#define KYMO_LATENCY_END(tracker, key)	 KYMO_LATENCY_(kymo_latency_end, tracker, key)

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Define a context field of the application: a number or text that recordings can add to every
 * event, as "$app.PROVIDER:NAME".
 *
 * @get: returns the value. For text, the value is a pointer to a string that must stay valid until
 *	the thread's next call; the tracer cuts it at 63 bytes. Each event of a recording with this
 *	context field calls @get, in the thread of the event. @get must not record events, and must
 *	be safe in signal handlers when the program has events there.
 * Returns 0, or -1 when there are more than 16 context fields, or a name has other characters than
 * letters, digits and '_'. Recordings that the program joins after the call have the context field.
 * For recordings that run already at the program's start, the call must stand in a constructor of
 * priority 101 to 109. Threads: any.
 */
enum kymo_app_type { KYMO_APP_NUMBER, KYMO_APP_TEXT };
typedef uint64_t (*kymo_app_get)(void *data); // NOLINT: a function's type
KYMO_TRACE_API int kymo_app_context(const char *provider, const char *name, enum kymo_app_type type,
				    kymo_app_get get, void *data);

/*
 * The reason why this program records no events: a static text. NULL when the program records, or
 * could record.
 */
KYMO_TRACE_API const char *kymo_trace_off(void);

#ifdef __cplusplus
}
#endif

#endif
