/* SPDX-License-Identifier: MIT */
/*
 * vfork(), before libc's. Its child uses the parent's memory, and so the parent's struct rseq, which has a
 * CPU. But the kernel has removed the registration: it does not restart sequences of the child, which would
 * write beside other writers of that CPU. Here the child's struct has no CPU, so the child takes the spare
 * buffer, under its lock. The parent sleeps meanwhile.
 *
 * The kernel tells the parent its CPU when it wakes up; newer kernels only when it is another one than
 * before, so the parent puts back what was there if the kernel did not.
 *
 * The child returns first, and uses the stack from where we return to: so the address of that goes
 * through a register, which the kernel keeps for each of the two.
 *
 * clone(CLONE_VM) without CLONE_THREAD is the same, but that the child has a stack of its own. Without
 * CLONE_VFORK parent and child run side by side, with one struct rseq that the kernel keeps writing for the
 * parent; so the parent gives its registration back, for good: both write to the spare buffer from then
 * on. With CLONE_SETTLS the child's struct is wherever its maker put it, or nowhere: not touched.
 */
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <sys/types.h>

#include "ring/ring-writer.h"

/* In static TLS: looking it up allocates nothing. */
static __thread struct {
	uint32_t cpu;
	bool is_child;
	bool is_shared; /* with a child of clone(), from now on */
} vforked __attribute__((tls_model("initial-exec")));

bool kymo_ring_is_shared_thread(void)
{
	return vforked.is_child || vforked.is_shared;
}

#if KYMO_RING_HAS_RSEQ

pid_t vfork(void);

/* struct rseq's cpu_id, when the kernel has none to tell. */
#define CPU_NONE ((uint32_t)-1)

static uint32_t *cpu_of(void)
{
	ptrdiff_t area;

	if (!ky_rb_find_rseq(&area))
		return NULL;
	return (uint32_t *)((char *)__builtin_thread_pointer() + area + 4);
}

void ky_rb_vfork_child(void) __attribute__((visibility("hidden"), used));
void ky_rb_vfork_child(void)
{
	uint32_t *cpu = cpu_of();

	/* A child of a child finds it done. */
	if (vforked.is_child)
		return;
	vforked.is_child = true;
	if (!cpu)
		return;
	vforked.cpu = __atomic_load_n(cpu, __ATOMIC_RELAXED);
	__atomic_store_n(cpu, CPU_NONE, __ATOMIC_RELAXED);
}

/* @was_child: this process was one itself, before: then it stays as it is. */
void ky_rb_vfork_parent(uint32_t was_child) __attribute__((visibility("hidden"), used));
void ky_rb_vfork_parent(uint32_t was_child)
{
	uint32_t *cpu = cpu_of(), none = CPU_NONE;

	if (was_child || !vforked.is_child)
		return;
	vforked.is_child = false;
	if (!cpu)
		return;
	/* One instruction: the kernel writes before it, or after it. */
	__atomic_compare_exchange_n(cpu, &none, vforked.cpu, false, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
}

uint32_t ky_rb_vfork_begin(void) __attribute__((visibility("hidden"), used));
uint32_t ky_rb_vfork_begin(void)
{
	return vforked.is_child;
}

pid_t ky_rb_vfork_failed(long result) __attribute__((visibility("hidden"), used));
pid_t ky_rb_vfork_failed(long result)
{
	errno = (int)-result;
	return -1;
}

#if defined(__x86_64__)
/* vfork is system call 58. It changes rax, rcx and r11; rdi: where to return to, rsi: was_child. */
__asm__(".pushsection .text\n"
	".globl vfork\n"
	".type vfork, @function\n"
	"vfork:\n\t"
	".cfi_startproc\n\t"
	"endbr64\n\t"
	"subq $8, %rsp\n\t"
	".cfi_adjust_cfa_offset 8\n\t"
	"call ky_rb_vfork_begin\n\t"
	"addq $8, %rsp\n\t"
	".cfi_adjust_cfa_offset -8\n\t"
	"movl %eax, %esi\n\t"
	"popq %rdi\n\t"
	".cfi_adjust_cfa_offset -8\n\t"
	".cfi_register %rip, %rdi\n\t"
	"movl $58, %eax\n\t"
	"syscall\n\t"
	"pushq %rdi\n\t"
	".cfi_adjust_cfa_offset 8\n\t"
	".cfi_offset %rip, -8\n\t"
	"testq %rax, %rax\n\t"
	"jz 1f\n\t"
	"js 2f\n\t"
	"pushq %rax\n\t"
	".cfi_adjust_cfa_offset 8\n\t"
	"movl %esi, %edi\n\t"
	"call ky_rb_vfork_parent\n\t"
	"popq %rax\n\t"
	".cfi_adjust_cfa_offset -8\n\t"
	"ret\n"
	"1:\n\t"
	"pushq %rax\n\t"
	".cfi_adjust_cfa_offset 8\n\t"
	"call ky_rb_vfork_child\n\t"
	"popq %rax\n\t"
	".cfi_adjust_cfa_offset -8\n\t"
	"ret\n"
	"2:\n\t"
	"movq %rax, %rdi\n\t"
	"jmp ky_rb_vfork_failed\n\t"
	".cfi_endproc\n"
	".size vfork, . - vfork\n"
	".popsection\n");
#else
/* clone(CLONE_VM | CLONE_VFORK | SIGCHLD), system call 220. Registers are kept, but for x0. */
__asm__(".pushsection .text\n"
	".globl vfork\n"
	".type vfork, %function\n"
	"vfork:\n\t"
	".cfi_startproc\n\t"
	"hint #34\n\t"
	"stp x29, x30, [sp, #-16]!\n\t"
	".cfi_adjust_cfa_offset 16\n\t"
	"bl ky_rb_vfork_begin\n\t"
	"ldp x29, x30, [sp], #16\n\t"
	".cfi_adjust_cfa_offset -16\n\t"
	"mov w9, w0\n\t"
	"mov x0, #0x4111\n\t"
	"mov x1, #0\n\t"
	"mov x2, #0\n\t"
	"mov x3, #0\n\t"
	"mov x4, #0\n\t"
	"mov x8, #220\n\t"
	"svc #0\n\t"
	"stp x29, x30, [sp, #-32]!\n\t"
	".cfi_adjust_cfa_offset 32\n\t"
	"str x0, [sp, #16]\n\t"
	"cbz x0, 1f\n\t"
	"tbnz x0, #63, 2f\n\t"
	"mov w0, w9\n\t"
	"bl ky_rb_vfork_parent\n\t"
	"b 3f\n"
	"1:\n\t"
	"bl ky_rb_vfork_child\n"
	"3:\n\t"
	"ldr x0, [sp, #16]\n\t"
	"b 4f\n"
	"2:\n\t"
	"bl ky_rb_vfork_failed\n"
	"4:\n\t"
	"ldp x29, x30, [sp], #32\n\t"
	".cfi_adjust_cfa_offset -32\n\t"
	"ret\n\t"
	".cfi_endproc\n"
	".size vfork, . - vfork\n"
	".popsection\n");
#endif

/* ---- clone() ---- */

#ifdef __GLIBC__

/* Its other name, which no other library interposes. */
int __clone(int (*run)(void *), void *stack, int flags, void *arg, ...);

#if defined(__x86_64__)
#define RSEQ_SIGNATURE 0x53053053
#else
#define RSEQ_SIGNATURE 0xd428bc00
#endif
#define RSEQ_UNREGISTER 1
/* What glibc registers at least; newer ones as much as the kernel knows. */
#define RSEQ_BYTES	32
#define RSEQ_BYTES_STEP 32
#define RSEQ_BYTES_MAX	256

/* The kernel says by itself, in the struct, that the thread has no registered CPU. */
static void give_rseq_back(void)
{
	ptrdiff_t area;
	long at;

	if (vforked.is_shared)
		return;
	vforked.is_shared = true;
	if (!ky_rb_find_rseq(&area))
		return;
	at = (long)((char *)__builtin_thread_pointer() + area);
	for (long bytes = RSEQ_BYTES; bytes <= RSEQ_BYTES_MAX; bytes += RSEQ_BYTES_STEP) {
		if (ky_rb_syscall(SYS_rseq, at, bytes, RSEQ_UNREGISTER, RSEQ_SIGNATURE, 0, 0) == 0)
			return;
	}
}

struct start {
	int (*run)(void *);
	void *arg;
};

static int run_child(void *data)
{
	const struct start *start = data;

	ky_rb_vfork_child();
	return start->run(start->arg);
}

__attribute__((visibility("default"))) int clone(int (*run)(void *), void *stack, int flags,
						 void *arg, ...)
{
	bool is_process = (flags & CLONE_VM) && !(flags & (CLONE_THREAD | CLONE_SETTLS));
	struct start start = {run, arg};
	uint32_t was_child;
	void *parent_tid, *tls, *child_tid;
	va_list args;
	int result;

	va_start(args, arg);
	parent_tid = va_arg(args, void *);
	tls = va_arg(args, void *);
	child_tid = va_arg(args, void *);
	va_end(args);
	if (!is_process || !(flags & CLONE_VFORK) || !run || !stack) {
		if (is_process && run && stack && !vforked.is_child)
			give_rseq_back();
		return __clone(run, stack, flags, arg, parent_tid, tls, child_tid);
	}
	/* The parent sleeps meanwhile, and its stack stays. */
	was_child = vforked.is_child;
	result = __clone(run_child, stack, flags, &start, parent_tid, tls, child_tid);
	ky_rb_vfork_parent(was_child);
	return result;
}

#endif

#endif
