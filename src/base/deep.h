/* SPDX-License-Identifier: MIT */
/*
 * Recursion over what input nests: bounded by memory, not by the stack of the thread that happens
 * to be running.
 *
 *	KY_DEEP2(int, bind_tree, struct ky_tsdl_parser *, struct ky_field_class *)
 *
 * declares static int bind_tree(p, cls) and defines bind_tree_deep(failed, p, cls), which calls it;
 * when little of the stack is left, on a new one, while the caller waits. One call of each cycle
 * of calls goes that way. @failed is returned when there is no memory for a stack.
 *
 * A new stack belongs to a thread (sanitizers and debuggers know what that is), is reserved as a
 * whole, and takes memory as it is used. Depth costs nothing until the first stack is used up.
 */
#ifndef KY_BASE_DEEP_H
#define KY_BASE_DEEP_H

#include <stdbool.h>
#include <stdint.h>

/* Below this address of a frame the stack counts as used up; 0: not asked for yet. */
extern __thread uintptr_t ky_stack_limit __attribute__((tls_model("initial-exec")));

/* Find the limit of this thread's stack, and say whether @frame is below it. */
bool ky_stack_measure(uintptr_t frame);

/*
 * Call run(@data) on a stack of its own and wait for it.
 * Returns 0, or KYMO_E_MEMORY: it was not called.
 */
int ky_stack_run(void (*run)(void *data), void *data);

/* Is it time for a new stack? */
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
