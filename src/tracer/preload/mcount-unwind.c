/* SPDX-License-Identifier: MIT */
/*
 * The unwinder of exceptions must see the original return addresses in the stack, and so must that of threads that end by
 * pthread_exit(). glibc calls its own for pthread_cancel(): handlers of pthread_cleanup_push() run, destructors of C++ do not.
 */
#include <pthread.h>
#include <unwind.h>

#include "tracer/preload/mcount.h"
#include "tracer/preload/preload.h"

enum { RAISE, RESUME, RETHROW, FORCED, BACKTRACE, BEGIN_CATCH, EXIT, FUNCTIONS };

static const char *const names[FUNCTIONS] = {
	[RAISE] = "_Unwind_RaiseException",
	[RESUME] = "_Unwind_Resume",
	[RETHROW] = "_Unwind_Resume_or_Rethrow",
	[FORCED] = "_Unwind_ForcedUnwind",
	[BACKTRACE] = "_Unwind_Backtrace",
	[BEGIN_CATCH] = "__cxa_begin_catch",
	[EXIT] = "pthread_exit",
};
static void *found[FUNCTIONS];
static struct ky_preload next = {.n = FUNCTIONS, .names = names, .found = found};

/* The place of the return address of the function that this is in: the end of the caller's stack. */
#define PLACE ((const uintptr_t *)__builtin_frame_address(0) + 1)

/* NULL: nobody has it, so that who calls it here cannot have meant it. */
static void *mcount_unwind_next(int which)
{
	if (!ky_preload_ready(&next) || !found[which])
		__builtin_trap();
	return found[which];
}

KY_PRELOAD_API _Unwind_Reason_Code
_Unwind_RaiseException(struct _Unwind_Exception *exception) // NOLINT
{
	__typeof__(_Unwind_RaiseException) *raise = mcount_unwind_next(RAISE);
	_Unwind_Reason_Code code;

	ky_mcount_unhook();
	code = raise(exception);
	/* Nobody catches it. */
	ky_mcount_rehook(PLACE);
	return code;
}

KY_PRELOAD_API void _Unwind_Resume(struct _Unwind_Exception *exception) // NOLINT
{
	__typeof__(_Unwind_Resume) *resume = mcount_unwind_next(RESUME);

	ky_mcount_unhook();
	resume(exception);
	__builtin_trap();
}

KY_PRELOAD_API _Unwind_Reason_Code
_Unwind_Resume_or_Rethrow(struct _Unwind_Exception *exception) // NOLINT
{
	__typeof__(_Unwind_Resume_or_Rethrow) *rethrow = mcount_unwind_next(RETHROW);
	_Unwind_Reason_Code code;

	ky_mcount_unhook();
	code = rethrow(exception);
	ky_mcount_rehook(PLACE);
	return code;
}

KY_PRELOAD_API _Unwind_Reason_Code
_Unwind_ForcedUnwind(struct _Unwind_Exception *exception, // NOLINT
		     _Unwind_Stop_Fn stop, void *data)
{
	__typeof__(_Unwind_ForcedUnwind) *forced = mcount_unwind_next(FORCED);
	_Unwind_Reason_Code code;

	ky_mcount_unhook();
	code = forced(exception, stop, data);
	ky_mcount_rehook(PLACE);
	return code;
}

KY_PRELOAD_API _Unwind_Reason_Code _Unwind_Backtrace(_Unwind_Trace_Fn trace, void *data) // NOLINT
{
	__typeof__(_Unwind_Backtrace) *backtrace = mcount_unwind_next(BACKTRACE);
	_Unwind_Reason_Code code;

	ky_mcount_unhook();
	code = backtrace(trace, data);
	ky_mcount_rehook(PLACE);
	return code;
}

KY_PRELOAD_API void *__cxa_begin_catch(void *exception); // NOLINT: C++'s name

KY_PRELOAD_API void *__cxa_begin_catch(void *exception) // NOLINT
{
	__typeof__(__cxa_begin_catch) *begin = mcount_unwind_next(BEGIN_CATCH);

	ky_mcount_rehook(PLACE);
	return begin(exception);
}

KY_PRELOAD_API void pthread_exit(void *result)
{
	__typeof__(pthread_exit) *end = mcount_unwind_next(EXIT);

	ky_mcount_unhook();
	end(result);
	__builtin_trap();
}
