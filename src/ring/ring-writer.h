/* SPDX-License-Identifier: MIT */
/*
 * What the slow paths of writing share. All of src/ring/ring-{map,write,lock,memory}.c runs in
 * traced programs: libc only, no allocation, system calls that are safe in signal handlers and are
 * no cancellation points, errno kept.
 */
#ifndef KY_RING_RING_WRITER_H
#define KY_RING_RING_WRITER_H

#include <kymo/ring.h>

/* A page that is zeroed in forked children: who this process is. */
struct kymo_ring_process {
	uint32_t pid; /* 0: not known yet, or not any more */
	uint32_t pid_namespace;
};

/* A system call without cancellation and without errno: its result, or a negative errno. */
long ky_rb_syscall(long number, long a, long b, long c, long d, long e, long f);

/* mmap() for reading and writing; NULL: it failed. errno is kept. */
void *ky_rb_map(uint64_t bytes, int flags, int fd);

/*
 * Copy what others may change, or read, meanwhile: what comes of that is thrown away, or is of no
 * account. Both sides are aligned to 8 bytes, and are copied in such words, with up to 7 bytes
 * more behind the end. The thread sanitizer would call it a race, and does not see it.
 */
void ky_rb_copy_racing(void *to, const void *from, uint64_t bytes);

/*
 * Give memory to [@start, @start + @bytes) of a shared mapping, changing nothing in it. What is full
 * shows as -ENOSPC here, and not as SIGBUS later. 0 or -ENOSPC. Any thread.
 */
int ky_rb_populate(const void *start, uint64_t bytes);

/* Where the parts of a file go, from its numbers and sizes. */
void ky_rb_lay_out(struct kymo_ring_file *file);

/* Whether a file's head, in this machine's byte order, can be; the magic number is the caller's. */
bool ky_rb_head_ok(const struct kymo_ring_file *head);

/* Where glibc has put each thread's struct rseq, from the thread pointer. False: there is none. */
bool ky_rb_find_rseq(ptrdiff_t *area);

/* The page for writer->process; NULL without memory. */
struct kymo_ring_process *ky_rb_process_new(void);
void ky_rb_process_free(struct kymo_ring_process *process);

/* Who the calling thread is, as locks have it; never 0. */
uint64_t ky_rb_self(struct kymo_ring_process *process);

/* Take the lock of a buffer, for @self. Never waits. */
bool ky_rb_trylock(struct kymo_ring_control *control, uint64_t self);
void ky_rb_unlock(struct kymo_ring_control *control);

/* Take the lock over from an owner that does not live any more. */
bool ky_rb_steal(struct kymo_ring_control *control, uint64_t self);

/*
 * Plan the step from the sub-buffer that is full at @spot to the next one. Fills @commit (and the
 * moves and images in @plan that it points to).
 * Returns 0, or 1 + enum kymo_ring_loss: there is no next one now.
 */
struct ky_rb_switch {
	struct kymo_ring_commit commit;
	struct kymo_ring_move moves[4];
	struct kymo_ring_slot old_slot, new_slot;
	uint64_t old_header[KYMO_RING_SUBBUF_HEADER_MAX_BYTES / 8];
	uint64_t new_header[KYMO_RING_SUBBUF_HEADER_MAX_BYTES / 8];
};
int ky_rb_plan_switch(const struct kymo_ring_config *config, struct kymo_ring_writer *writer,
		      const struct kymo_ring_spot *spot, struct ky_rb_switch *plan);

/* After a switch: wake a reader that asked for it. */
void ky_rb_wake(struct kymo_ring_file *file);

#endif
