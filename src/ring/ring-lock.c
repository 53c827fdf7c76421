/* SPDX-License-Identifier: MIT */
/*
 * The system calls of traced programs, and the locks of buffers that rseq does not protect.
 *
 * A lock is a word with its owner: thread id and PID namespace. The kernel knows whether the owner is
 * alive, except for threads of another namespace: so no thread takes over their locks.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ring/ring-writer.h"

long ky_rb_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	int saved = errno;
	long result = syscall(number, a, b, c, d, e, f);

	if (result == -1)
		result = -errno;
	errno = saved;
	return result;
}

/* Not by ky_rb_syscall(): s390x passes the arguments of this one in memory. */
void *ky_rb_map(uint64_t bytes, int flags, int fd)
{
	int saved = errno;
	void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);

	if (map == MAP_FAILED)
		map = NULL;
	errno = saved;
	return map;
}

__attribute__((no_sanitize_thread, noinline)) void ky_rb_copy_racing(void *to, const void *from,
								     uint64_t bytes)
{
	for (uint64_t i = 0; i < (bytes + 7) / 8; i++)
		__atomic_store_n((uint64_t *)to + i,
				 __atomic_load_n((const uint64_t *)from + i, __ATOMIC_RELAXED),
				 __ATOMIC_RELAXED);
}

/*
 * An atomic addition of 0, made by the kernel: it brings in the page for writing, changes nothing
 * whoever writes there meanwhile, and answers EFAULT where a store would get SIGBUS.
 * (MADV_POPULATE_WRITE does it in one call, but only since Linux 5.14.)
 */
static int populate_page(uintptr_t at)
{
	uint32_t unused = 0;
	long result;

	do {
		result = ky_rb_syscall(SYS_futex, (long)&unused, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG,
				       0, 0, (long)at,
				       FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 0));
	} while (result == -EINTR || result == -EAGAIN);
	return result < 0 ? -ENOSPC : 0;
}

int ky_rb_populate(const void *start, uint64_t bytes)
{
	uintptr_t at = (uintptr_t)start & ~(uintptr_t)3, end = (uintptr_t)start + bytes;

	while (at < end) {
		if (populate_page(at) < 0)
			return -ENOSPC;
		/* The smallest page size: on a larger one, the rest are cheap. */
		at = (at & ~(uintptr_t)4095) + 4096;
	}
	return 0;
}

static uint64_t ring_lock_bit_of(int signal)
{
	return UINT64_C(1) << (signal - 1);
}

/* Those that instructions raise are let through: the kernel kills who keeps them waiting. */
uint64_t kymo_ring_signals_block(void)
{
	uint64_t mask =
		~(ring_lock_bit_of(SIGSEGV) | ring_lock_bit_of(SIGBUS) | ring_lock_bit_of(SIGFPE) |
		  ring_lock_bit_of(SIGILL) | ring_lock_bit_of(SIGTRAP) | ring_lock_bit_of(SIGSYS));
	uint64_t before = 0;

	ky_rb_syscall(SYS_rt_sigprocmask, SIG_BLOCK, (long)&mask, (long)&before, sizeof(mask), 0,
		      0);
	return before;
}

void kymo_ring_signals_restore(uint64_t before)
{
	ky_rb_syscall(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, sizeof(before), 0, 0);
}

int kymo_ring_populate(const void *start, size_t bytes)
{
	return ky_rb_populate(start, bytes);
}

struct kymo_ring_process *ky_rb_process_new(void)
{
	struct kymo_ring_process *page = ky_rb_map(sizeof(*page), MAP_PRIVATE | MAP_ANONYMOUS, -1);
	long size = sysconf(_SC_PAGESIZE);

	if (!page)
		return NULL;
	/* Linux before 4.14 cannot: then every use asks the kernel, see ky_rb_self(). */
	if (ky_rb_syscall(SYS_madvise, (long)page, size, MADV_WIPEONFORK, 0, 0, 0) < 0) {
		ky_rb_syscall(SYS_munmap, (long)page, size, 0, 0, 0, 0);
		return NULL;
	}
	return page;
}

void ky_rb_process_free(struct kymo_ring_process *process)
{
	if (process)
		ky_rb_syscall(SYS_munmap, (long)process, sysconf(_SC_PAGESIZE), 0, 0, 0, 0);
}

/* The number in the link's text "pid:[4026531836]"; 0: not known. */
static uint32_t ask_pid_namespace(void)
{
	static const char path[] = "/proc/self/ns/pid";
	char text[32];
	long len =
		ky_rb_syscall(SYS_readlinkat, AT_FDCWD, (long)path, (long)text, sizeof(text), 0, 0);
	uint32_t number = 0;

	for (long i = 0; i < len; i++)
		if (text[i] >= '0' && text[i] <= '9')
			number = number * 10 + (uint32_t)(text[i] - '0');
	return number;
}

static uint32_t ask_pid(void)
{
	return (uint32_t)ky_rb_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

/* Again, where a signal's handler may have forked meanwhile: its child's page would have the parent's. */
static uint32_t ask_process(struct kymo_ring_process *process)
{
	uint32_t pid;

	do {
		pid = ask_pid();
		__atomic_store_n(&process->pid_namespace, ask_pid_namespace(), __ATOMIC_RELAXED);
		__atomic_store_n(&process->pid, pid, __ATOMIC_RELEASE);
	} while (ask_pid() != pid);
	return pid;
}

uint64_t ky_rb_self(struct kymo_ring_process *process)
{
	/* In static TLS: looking it up allocates nothing. */
	static __thread struct {
		uint32_t pid, pid_namespace, tid;
	} self __attribute__((tls_model("initial-exec")));
	uint32_t pid, pid_namespace;

	if (!process) {
		/* Without the namespace: such a lock is not taken over. */
		return (uint64_t)ky_rb_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0) << 32;
	}
	pid = __atomic_load_n(&process->pid, __ATOMIC_ACQUIRE);
	if (!pid)
		pid = ask_process(process);
	pid_namespace = __atomic_load_n(&process->pid_namespace, __ATOMIC_RELAXED);
	/* What is remembered may be the parent's. */
	if (kymo_ring_is_shared_thread())
		return (uint64_t)ky_rb_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0) << 32 | pid_namespace;
	if (self.pid != pid || self.pid_namespace != pid_namespace) {
		self.tid = (uint32_t)ky_rb_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0);
		self.pid = pid;
		self.pid_namespace = pid_namespace;
	}
	return (uint64_t)self.tid << 32 | pid_namespace;
}

bool ky_rb_trylock(struct kymo_ring_control *control, uint64_t self)
{
	uint64_t free_word = 0;

	/* Partner: ky_rb_unlock(). */
	return __atomic_load_n(&control->owner, __ATOMIC_RELAXED) == 0 &&
	       __atomic_compare_exchange_n(&control->owner, &free_word, self, false,
					   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

void ky_rb_unlock(struct kymo_ring_control *control)
{
	__atomic_store_n(&control->owner, 0, __ATOMIC_RELEASE);
}

bool ky_rb_steal(struct kymo_ring_control *control, uint64_t self)
{
	uint64_t owner = __atomic_load_n(&control->owner, __ATOMIC_RELAXED);

	if (!owner)
		return ky_rb_trylock(control, self);
	if (!(uint32_t)owner || (uint32_t)owner != (uint32_t)self)
		return false;
	if (ky_rb_syscall(SYS_tkill, (long)(owner >> 32), 0, 0, 0, 0, 0) != -ESRCH)
		return false;
	return __atomic_compare_exchange_n(&control->owner, &owner, self, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}
