/* SPDX-License-Identifier: MIT */
/*
 * Recursion over nested input: the available memory limits it, not the stack of the running thread.
 *
 *	KY_DEEP2(int, bind_tree, struct ky_tsdl_parser *, struct ky_field_class *)
 *
 * declares static int bind_tree(p, cls) and defines bind_tree_deep(failed, p, cls), which calls it.
 * When the stack is nearly used up, the call runs on a new stack while the caller waits. In each
 * cycle of calls, one call must use the _deep function. The function returns @failed when there is
 * no memory for a stack.
 *
 * A new stack belongs to a new thread, because sanitizers and debuggers understand threads. Its
 * address range is reserved as a whole and takes memory with use. Until the first stack is used up,
 * depth costs nothing.
 */
#ifndef KY_BASE_DEEP_H
#define KY_BASE_DEEP_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A frame below this address means that the stack is nearly used up; 0: the limit is not known yet.
 */
extern __thread uintptr_t ky_stack_limit __attribute__((tls_model("initial-exec")));

/* Finds the limit of this thread's stack. Returns whether @frame is below it. */
bool ky_stack_measure(uintptr_t frame);

/*
 * Call run(@data) on a new stack and wait for it.
 *
 * Returns 0, or KYMO_E_MEMORY: run was not called.
 */
int ky_stack_run(void (*run)(void *data), void *data);

/* Whether the stack is nearly used up. */
static inline bool ky_stack_is_low(void)
{
	uintptr_t frame = (uintptr_t)__builtin_frame_address(0);

	if (__builtin_expect(frame - ky_stack_limit < UINTPTR_MAX / 2 && ky_stack_limit, 1))
		return false;
	return ky_stack_measure(frame);
}

#define KY_DEEP_FN(type, fn, fields, params, call, init)     \
	struct fn##_call {                                   \
		fields type result;                          \
	};                                                   \
	static void fn##_run(void *data)                     \
	{                                                    \
		struct fn##_call *c = data;                  \
                                                             \
		c->result = fn call;                         \
	}                                                    \
	static inline type fn##_deep params                  \
	{                                                    \
		struct fn##_call deep = init;                \
		struct fn##_call *c = &deep;                 \
                                                             \
		if (__builtin_expect(!ky_stack_is_low(), 1)) \
			return fn call;                      \
		ky_stack_run(fn##_run, c);                   \
		return c->result;                            \
	}

#define KY_DEEP_INIT(...)   \
	{                   \
		__VA_ARGS__ \
	}

#define KY_DEEP1(type, fn, t1) \
	static type fn(t1);    \
	KY_DEEP_FN(type, fn, t1 a;, (type failed, t1 a), (c->a), KY_DEEP_INIT(a, failed))
#define KY_DEEP2(type, fn, t1, t2)       \
	static type fn(t1, t2);          \
	KY_DEEP_FN(type, fn, t1 a; t2 b; \
		   , (type failed, t1 a, t2 b), (c->a, c->b), KY_DEEP_INIT(a, b, failed))
#define KY_DEEP3(type, fn, t1, t2, t3)                                           \
	static type fn(t1, t2, t3);                                              \
	KY_DEEP_FN(type, fn, t1 a; t2 b; t3 d;, (type failed, t1 a, t2 b, t3 d), \
					      (c->a, c->b, c->d), KY_DEEP_INIT(a, b, d, failed))
#define KY_DEEP4(type, fn, t1, t2, t3, t4)                                                   \
	static type fn(t1, t2, t3, t4);                                                      \
	KY_DEEP_FN(type, fn, t1 a; t2 b; t3 d; t4 e;, (type failed, t1 a, t2 b, t3 d, t4 e), \
						    (c->a, c->b, c->d, c->e),                \
						    KY_DEEP_INIT(a, b, d, e, failed))
#define KY_DEEP5(type, fn, t1, t2, t3, t4, t5)                                                    \
	static type fn(t1, t2, t3, t4, t5);                                                       \
	KY_DEEP_FN(type, fn, t1 a; t2 b; t3 d; t4 e; t5 f;                                        \
		   , (type failed, t1 a, t2 b, t3 d, t4 e, t5 f), (c->a, c->b, c->d, c->e, c->f), \
		   KY_DEEP_INIT(a, b, d, e, f, failed))

#endif
