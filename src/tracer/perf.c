/* SPDX-License-Identifier: MIT */
/*
 * Perf counters of the calling thread, as contexts.
 *
 * What the kernel counts anyway (faults, switches, CPU time) is asked for with getrusage() and the
 * thread's clock: no descriptor, no permission, nothing to tidy up. The others take a perf event per thread:
 * its page tells the count without a system call where rdpmc is allowed, else the descriptor is read.
 *
 * Programs close descriptors that they do not know, and the number may be another file's then: so the
 * event behind it is asked for its id before it is read or closed. A thread's descriptors go with the
 * thread, by the destructor of a pthread key; those of a parent's threads are closed by the
 * forked child when it first counts something.
 */
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tracer/tracer.h"

#define COUNTERS_MAX 8
/* Descriptors in the process; and not more than this part of what it may have. */
#define FILES_MAX  1024u
#define FILES_PART 4u
/* Out of the way of programs that count on small numbers. */
#define FD_MIN 200
/* glibc keeps the values of these in the thread itself; for more it allocates. */
#define KEYS_INLINE 32

static struct counter {
	uint32_t type;
	uint64_t config;
	char name[KY_NAME_MAX + 1]; /* of the field */
} counters[COUNTERS_MAX];
static uint32_t n_counters;

enum state {
	CLOSED, /* or another process's, that this one was forked from */
	CHANGING, /* by an event that a handler interrupts, of a signal that its instructions raise: 0 there */
	OPEN,
	REFUSED, /* not tried again */
	ENDED,	 /* the thread ends: @last stands, since nobody would close another descriptor */
};

struct event {
	uint64_t state; /* whose process, and enum state */
	int fd;
	uint32_t file; /* its index in files */
	uint32_t
		n_readers; /* of the page: an event, and those of handlers that have interrupted it */
	uint64_t id;
	uint64_t last;			   /* ENDED: what it had counted */
	struct perf_event_mmap_page *page; /* or NULL */
};

static __thread struct event events[COUNTERS_MAX] __attribute__((tls_model("initial-exec")));

/* All descriptors that are open, for forked children: FILES_MAX, made for the first counter. */
static struct file {
	int32_t fd; /* and 1; 0: free; below 0: taken by the process of that number, for one to come */
	uint32_t pid; /* who opened it */
	uint64_t id;
} * files;
static uint32_t files_pid; /* whose they are */
static pthread_key_t key;
static bool has_key;

/* ---- states: of one thread and its signals' handlers, so that only their order counts ---- */

static uint64_t state_word(enum state state)
{
	return (uint64_t)ky_trace_pid() << 32 | state;
}

static enum state state_in(uint64_t word)
{
	return word >> 32 == ky_trace_pid() ? (enum state)(uint32_t)word : CLOSED;
}

static enum state perf_state_of(const struct event *event)
{
	return state_in(__atomic_load_n(&event->state, __ATOMIC_RELAXED));
}

/* From @from to CHANGING; false: it is not, or no longer, in that state. */
static bool perf_take(struct event *event, enum state from)
{
	uint64_t word = __atomic_load_n(&event->state, __ATOMIC_RELAXED);

	return state_in(word) == from &&
	       __atomic_compare_exchange_n(&event->state, &word, state_word(CHANGING), false,
					   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static void set_state(struct event *event, enum state state)
{
	__atomic_store_n(&event->state, state_word(state), __ATOMIC_RELEASE);
}

/* ---- what the kernel counts anyway ---- */

static bool perf_is_free(const struct counter *counter)
{
	switch (counter->type == PERF_TYPE_SOFTWARE ? counter->config : UINT64_MAX) {
	case PERF_COUNT_SW_PAGE_FAULTS:
	case PERF_COUNT_SW_PAGE_FAULTS_MIN:
	case PERF_COUNT_SW_PAGE_FAULTS_MAJ:
	case PERF_COUNT_SW_CONTEXT_SWITCHES:
	case PERF_COUNT_SW_TASK_CLOCK:
	case PERF_COUNT_SW_CPU_CLOCK:
		return true;
	default:
		return false;
	}
}

static uint64_t read_free(uint64_t config)
{
	struct rusage usage = {0};
	struct timespec ts = {0};

	if (config == PERF_COUNT_SW_TASK_CLOCK || config == PERF_COUNT_SW_CPU_CLOCK) {
		ky_sys(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, (long)&ts, 0, 0, 0, 0);
		return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
	}
	ky_sys(SYS_getrusage, RUSAGE_THREAD, (long)&usage, 0, 0, 0, 0);
	switch (config) {
	case PERF_COUNT_SW_PAGE_FAULTS:
		return (uint64_t)(usage.ru_minflt + usage.ru_majflt);
	case PERF_COUNT_SW_PAGE_FAULTS_MIN:
		return (uint64_t)usage.ru_minflt;
	case PERF_COUNT_SW_PAGE_FAULTS_MAJ:
		return (uint64_t)usage.ru_majflt;
	default:
		return (uint64_t)(usage.ru_nvcsw + usage.ru_nivcsw);
	}
}

/* ---- descriptors ---- */

static bool perf_is_ours(int fd, uint64_t id)
{
	uint64_t found = 0;

	return ky_sys(SYS_ioctl, fd, (long)PERF_EVENT_IOC_ID, (long)&found, 0, 0, 0) == 0 &&
	       found == id;
}

static void perf_close_file(uint32_t i)
{
	int32_t fd = __atomic_exchange_n(&files[i].fd, 0, __ATOMIC_ACQ_REL) - 1;

	if (fd >= 0 && perf_is_ours(fd, files[i].id))
		ky_sys(SYS_close, fd, 0, 0, 0, 0, 0);
}

static bool is_inherited(const struct file *file, uint32_t pid)
{
	int32_t fd = __atomic_load_n(&file->fd, __ATOMIC_ACQUIRE);

	return fd < 0 ? fd != -(int32_t)pid
		      : fd && __atomic_load_n(&file->pid, __ATOMIC_RELAXED) != pid;
}

/* What this process has inherited counts other threads. */
static void close_inherited(void)
{
	uint32_t pid = ky_trace_pid(), before = __atomic_load_n(&files_pid, __ATOMIC_RELAXED);

	if (before == pid || !__atomic_compare_exchange_n(&files_pid, &before, pid, false,
							  __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	for (uint32_t i = 0; i < FILES_MAX; i++) {
		if (is_inherited(&files[i], pid))
			perf_close_file(i);
	}
}

/* So many may be open. */
static uint32_t files_limit(void)
{
	struct rlimit limit = {.rlim_cur = 1024};

	ky_sys(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, (long)&limit, 0, 0);
	return limit.rlim_cur / FILES_PART < FILES_MAX ? (uint32_t)(limit.rlim_cur / FILES_PART)
						       : FILES_MAX;
}

/* A place in the list; false: there are enough. */
static bool perf_note_file(struct event *event)
{
	uint32_t limit = files_limit(), pid = ky_trace_pid();

	for (uint32_t i = 0; i < limit; i++) {
		int32_t none = 0;

		if (!__atomic_compare_exchange_n(&files[i].fd, &none, -(int32_t)pid, false,
						 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		files[i].id = event->id;
		__atomic_store_n(&files[i].pid, pid, __ATOMIC_RELAXED);
		__atomic_store_n(&files[i].fd, event->fd + 1, __ATOMIC_RELEASE);
		event->file = i;
		return true;
	}
	return false;
}

static void close_event(struct event *event)
{
	if (event->page)
		ky_sys(SYS_munmap, (long)event->page, (long)sysconf(_SC_PAGESIZE), 0, 0, 0, 0);
	event->page = NULL;
	perf_close_file(event->file);
}

static int open_perf(const struct counter *counter)
{
	struct perf_event_attr attr = {
		.type = counter->type,
		.size = sizeof(attr),
		.config = counter->config,
		.exclude_hv = 1,
	};
	long fd = ky_sys(SYS_perf_event_open, (long)&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC, 0);
	long moved;

	/* Who may not count the kernel counts the program alone. */
	if (fd < 0) {
		attr.exclude_kernel = 1;
		fd = ky_sys(SYS_perf_event_open, (long)&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC, 0);
	}
	if (fd < 0)
		return -1;
	moved = ky_sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, FD_MIN, 0, 0, 0);
	if (moved < 0)
		return (int)fd;
	ky_sys(SYS_close, fd, 0, 0, 0, 0, 0);
	return (int)moved;
}

/* Only hardware counters can be read from their page. */
static void perf_map_page(struct event *event, const struct counter *counter)
{
	long page;

	if (counter->type == PERF_TYPE_SOFTWARE)
		return;
	page = ky_sys(SYS_mmap, 0, sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, event->fd, 0);
	if (page > 0 || page < -4095)
		event->page = (void *)page; // NOLINT(performance-no-int-to-ptr)
}

static bool open_event(struct event *event, const struct counter *counter)
{
	event->page = NULL;
	event->fd = open_perf(counter);
	if (event->fd < 0)
		return false;
	if (ky_sys(SYS_ioctl, event->fd, (long)PERF_EVENT_IOC_ID, (long)&event->id, 0, 0, 0) < 0 ||
	    !perf_note_file(event)) {
		ky_sys(SYS_close, event->fd, 0, 0, 0, 0, 0);
		return false;
	}
	perf_map_page(event, counter);
	return true;
}

/* A child of vfork() has this memory, and descriptors of its own: it changes nothing. */
static bool is_guest(void)
{
	return (uint32_t)ky_sys(SYS_getpid, 0, 0, 0, 0, 0, 0) != ky_trace_pid();
}

/*
 * Open it in this thread. Signals wait: the event that one interrupted would have the value 0 in its handler, and a
 * handler that does not come back, or forks, would leave behind what nobody knows of.
 */
static void perf_prepare(struct event *event, const struct counter *counter)
{
	uint64_t signals;
	bool is_open;

	if (is_guest())
		return;
	signals = kymo_ring_signals_block();
	if (perf_take(event, CLOSED)) {
		close_inherited();
		is_open = open_event(event, counter);
		if (is_open)
			pthread_setspecific(key, events);
		set_state(event, is_open ? OPEN : REFUSED);
	}
	kymo_ring_signals_restore(signals);
}

/* The program closed its descriptor: another one, next time. But not below an event that reads the page. */
static void reopen(struct event *event)
{
	uint64_t signals;

	if (event->n_readers || is_guest())
		return;
	signals = kymo_ring_signals_block();
	if (perf_take(event, OPEN)) {
		close_event(event);
		set_state(event, CLOSED);
	}
	kymo_ring_signals_restore(signals);
}

/* ---- reading ---- */

/* The count, from the page; false: the kernel must be asked. */
static bool read_page(const struct perf_event_mmap_page *page, uint64_t *value)
{
#if defined(__x86_64__)
	for (int tries = 0; tries < 16; tries++) {
		uint32_t lock = __atomic_load_n(&page->lock, __ATOMIC_ACQUIRE);
		uint32_t index = page->index, width = page->pmc_width, low, high;
		int64_t count = page->offset, pmc;

		if (!page->cap_user_rdpmc || !index || !width || width > 64)
			return false;
		__asm__ __volatile__("rdpmc" : "=a"(low), "=d"(high) : "c"(index - 1));
		pmc = (int64_t)(((uint64_t)high << 32 | low) << (64 - width)) >> (64 - width);
		__atomic_signal_fence(__ATOMIC_ACQ_REL);
		if (__atomic_load_n(&page->lock, __ATOMIC_RELAXED) != lock)
			continue; /* the thread was moved */
		*value = (uint64_t)(count + pmc);
		return true;
	}
#endif
	(void)page;
	(void)value;
	return false;
}

/*
 * A handler that finds the descriptor closed must not take the page away that we are reading; nor may rdpmc be
 * refused, as it is when the last page is gone. What does not come back from a handler stays a reader: then a
 * descriptor that the program closes is not opened again in this thread.
 */
static bool read_mapped(struct event *event, uint64_t *value)
{
	const struct perf_event_mmap_page *page;
	uint32_t before = event->n_readers;
	bool is_read;

	event->n_readers = before + 1;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	page = event->page;
	is_read = page && read_page(page, value);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	event->n_readers = before;
	return is_read;
}

static uint64_t perf_read_event(struct event *event)
{
	uint64_t value = 0;

	if (read_mapped(event, &value))
		return value;
	if (!perf_is_ours(event->fd, event->id)) {
		reopen(event);
		return 0;
	}
	if (ky_sys(SYS_read, event->fd, (long)&value, sizeof(value), 0, 0, 0) !=
	    (long)sizeof(value))
		return 0;
	return value;
}

/* From @from, which is OPEN or CLOSED, to ENDED; false: it has changed in the meantime. */
static bool end_event(struct event *event, enum state from)
{
	uint64_t last = from == OPEN ? perf_read_event(event) : 0;
	uint64_t signals = kymo_ring_signals_block();
	bool is_taken = perf_take(event, from);

	if (is_taken) {
		if (from == OPEN)
			close_event(event);
		event->last = last;
		set_state(event, ENDED);
	}
	kymo_ring_signals_restore(signals);
	return is_taken;
}

/* A thread ends. Its other destructors and its signals' handlers may still count. */
static void close_thread(void *data)
{
	struct event *mine = data;

	for (uint32_t i = 0; i < COUNTERS_MAX; i++) {
		enum state state;

		do {
			state = perf_state_of(&mine[i]);
		} while ((state == OPEN || state == CLOSED) && !end_event(&mine[i], state));
	}
}

uint64_t ky_perf_read(uint32_t index)
{
	const struct counter *counter = &counters[index];
	struct event *event = &events[index];

	if (perf_is_free(counter))
		return read_free(counter->config);
	if (perf_state_of(event) == CLOSED)
		perf_prepare(event, counter);
	switch (perf_state_of(event)) {
	case OPEN:
		return perf_read_event(event);
	case ENDED:
		return event->last;
	default:
		return 0;
	}
}

/* ---- which there are; the lock is held ---- */

static bool perf_make_key(void)
{
	if (has_key)
		return true;
	if (pthread_key_create(&key, close_thread) != 0)
		return false;
	if (key >= KEYS_INLINE) {
		pthread_key_delete(key);
		return false;
	}
	has_key = true;
	return true;
}

/* A library that is unloaded leaves no destructor behind. */
static __attribute__((destructor)) void forget_key(void)
{
	if (has_key)
		pthread_key_delete(key);
	has_key = false;
}

const char *ky_perf_name(uint32_t index)
{
	/* Partner: the release in ky_perf_find(). */
	return index < __atomic_load_n(&n_counters, __ATOMIC_ACQUIRE) ? counters[index].name : NULL;
}

int ky_perf_find(uint32_t type, uint64_t config, const char *name)
{
	static const char prefix[] = "perf_thread_";
	struct counter *counter = &counters[n_counters];
	size_t room = sizeof(counter->name) - sizeof(prefix);

	for (uint32_t i = 0; i < n_counters; i++) {
		if (counters[i].type == type && counters[i].config == config &&
		    !strncmp(counters[i].name + strlen(prefix), name, room))
			return (int)i;
	}
	if (n_counters == COUNTERS_MAX)
		return -1;
	*counter = (struct counter){.type = type, .config = config};
	memcpy(counter->name, prefix, strlen(prefix));
	memcpy(counter->name + strlen(prefix), name, strnlen(name, room));
	if (!perf_is_free(counter)) {
		if (!files)
			files = ky_trace_alloc(FILES_MAX * sizeof(files[0]));
		if (!files || !perf_make_key())
			return -1;
		perf_prepare(&events[n_counters], counter);
		/* It cannot be had here; nor will the next thread have it. */
		if (perf_state_of(&events[n_counters]) == REFUSED) {
			set_state(&events[n_counters], CLOSED);
			return -1;
		}
	}
	__atomic_store_n(&n_counters, n_counters + 1, __ATOMIC_RELEASE);
	return (int)n_counters - 1;
}
