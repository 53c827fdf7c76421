/* SPDX-License-Identifier: MIT */
/*
 * The shared part of the slow paths of writing. All of src/ring/ring-{map,write,lock,memory}.c runs
 * in traced programs: it uses libc only, allocates no memory, uses system calls that are safe in
 * signal handlers and are no cancellation points, and leaves errno unchanged.
 */
#ifndef KY_RING_RING_WRITER_H
#define KY_RING_RING_WRITER_H

#include <kymo/ring.h>

/* The identity of this process, in a page that the kernel zeroes in forked children. */
struct kymo_ring_process {
	uint32_t pid; /* 0: unknown */
	uint32_t pid_namespace;
};

/* A system call without cancellation and without errno. Returns its result, or a negative errno. */
long ky_rb_syscall(long number, long a, long b, long c, long d, long e, long f);

/* mmap() for reading and writing. Returns NULL on failure. Leaves errno unchanged. */
void *ky_rb_map(uint64_t bytes, int flags, int fd);

/*
 * Copies memory that other threads may change or read meanwhile. The caller drops a result with
 * torn words, or does not depend on it. Both sides are aligned to 8 bytes; the function copies such
 * words, with up to 7 bytes more after the end. The thread sanitizer would report a race, so the
 * function is hidden from it.
 */
void ky_rb_copy_racing(void *to, const void *from, uint64_t bytes);

/*
 * Allocates memory for [@start, @start + @bytes) of a shared mapping without changing its contents.
 * A full file system gives -ENOSPC here instead of SIGBUS later. Returns 0 or -ENOSPC. Any thread.
 */
int ky_rb_populate(const void *start, uint64_t bytes);

/* Computes the offsets of a file's parts from its numbers and sizes. */
void ky_rb_lay_out(struct kymo_ring_file *file);

/*
 * Whether a file's head, in this machine's byte order, is plausible. The caller checks the magic
 * number.
 */
bool ky_rb_head_ok(const struct kymo_ring_file *head);

/* The offset of glibc's struct rseq from the thread pointer. Returns false when none exists. */
bool ky_rb_find_rseq(ptrdiff_t *area);

/* The page for writer->process; NULL when memory is out. */
struct kymo_ring_process *ky_rb_process_new(void);
void ky_rb_process_free(struct kymo_ring_process *process);

/* The calling thread's identity in locks; never 0. */
uint64_t ky_rb_self(struct kymo_ring_process *process);

/* Takes the lock of a buffer, for @self. Never waits. */
bool ky_rb_trylock(struct kymo_ring_control *control, uint64_t self);
void ky_rb_unlock(struct kymo_ring_control *control);

/* Takes the lock over from a dead owner. */
bool ky_rb_steal(struct kymo_ring_control *control, uint64_t self);

/*
 * Plans the switch from the sub-buffer that is full at @spot to the next one. Fills @commit (and
 * the moves and images in @plan to which it points). Returns 0, or 1 + enum kymo_ring_loss: no next
 * sub-buffer is available now.
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

/*
 * The wait of a record whose buffer is full; zeroed at first. Each call sleeps a little, except for
 * the first. Returns whether the caller should try again; if not, the record is lost.
 */
struct ky_rb_stall {
	struct kymo_ring_wait wait;
	uint64_t began_ns; /* 0: it has not begun */
	uint32_t releases; /* file->releases before the last look at the buffer */
};
bool ky_rb_wait(struct kymo_ring_writer *writer, struct ky_rb_stall *stall);

/* In the reader: wakes writers that wait. */
void ky_rb_wake_writers(struct kymo_ring_file *file);

#endif
