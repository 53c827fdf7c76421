// SPDX-License-Identifier: MIT
// What test/cli/test_calls.py records the calls of, compiled in several ways: exceptions that leave functions, destructors that
// run meanwhile, exceptions that are thrown again, a thread that ends in a function, and stacks that are switched.
#include <cstdio>
#include <cstdlib>
#include <pthread.h>
#include <stdexcept>
#include <ucontext.h>

#define NOINLINE __attribute__((noinline))

namespace shop
{
volatile long destroyed, caught;

struct guard {
	NOINLINE ~guard()
	{
		destroyed = destroyed + 1;
	}
};

NOINLINE void thrower(int depth)
{
	guard guarded;

	if (depth == 0)
		throw std::runtime_error("empty");
	thrower(depth - 1);
}

NOINLINE void again()
{
	try {
		thrower(2);
	} catch (const std::exception &) {
		guard guarded;

		throw;
	}
}

NOINLINE void order(int i)
{
	try {
		again();
	} catch (const std::exception &) {
		caught = caught + i;
	}
}
} // namespace shop

NOINLINE static void leave()
{
	shop::guard guarded;

	pthread_exit(nullptr);
}

NOINLINE static void *ends(void *)
{
	shop::guard guarded;

	leave();
	return nullptr;
}

static ucontext_t here, there;
static char stack[1 << 16];

NOINLINE static void inner(int n)
{
	if (n)
		inner(n - 1);
	else
		swapcontext(&there, &here);
}

NOINLINE static void switched()
{
	for (int i = 0; i < 3; i++)
		inner(2);
}

NOINLINE static void switches(int n)
{
	if (n)
		switches(n - 1);
	else
		swapcontext(&here, &there);
}

int main()
{
	pthread_t thread;

	for (int i = 0; i < 10; i++)
		shop::order(1);
	if (pthread_create(&thread, nullptr, ends, nullptr))
		return 1;
	pthread_join(thread, nullptr);
	getcontext(&there);
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = sizeof(stack);
	there.uc_link = &here;
	makecontext(&there, switched, 0);
	for (int i = 0; i < 4; i++)
		switches(i);
	std::printf("%ld %ld\n", (long)shop::destroyed, (long)shop::caught);
	return 0;
}
