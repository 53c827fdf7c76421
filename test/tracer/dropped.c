/* SPDX-License-Identifier: MIT */
/*
 * dropped MODE SEED MS PLUGIN: a program that root runs, and its child, which has given up its privileges for
 * good and then attacks its parent through the memory that tracing makes them share, as
 * a server's worker would that somebody has taken over.
 *
 *	procname	the parent's name becomes a long one, and the parent is asked to make a ring file
 *	blob		the ring's descriptions are said to end in the parent's own memory
 *	table		the control file's descriptions are
 *	records		the descriptions' offsets lead anywhere
 *	joins		the parent is asked to join, and to leave, all the time; until it has had enough of that
 *	all		random bytes, everywhere
 *
 * The parent goes on to record, loads and unloads PLUGIN, and looks at memory that nobody may have changed, for
 * MS milliseconds. It prints "whole", and exits with 0.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <kymo/ring-layout.h>
#include <kymo/trace.h>

#include "abi/control.h"
#include "program.h"

#define NOBODY	     65534
#define CANARY_BYTES (1u << 20)
#define CANARY	     0x5a

/* ---- what is shared ---- */

struct shared {
	uint8_t *start, *end;
};

static struct ky_control *control;
static struct shared rings[8], pages[8];
static int n_rings, n_pages;
static uint8_t *canary;

/* What of the tracer's is mapped. */
static void find_shared(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[4400];

	n_rings = n_pages = 0;
	while (maps && fgets(line, sizeof(line), maps)) {
		unsigned long start, end;
		struct shared found;

		if (sscanf(line, "%lx-%lx", &start, &end) != 2)
			continue;
		found = (struct shared){(uint8_t *)start, (uint8_t *)end};
		if (strstr(line, "kymo-control") && end - start >= KY_CONTROL_BYTES)
			control = (struct ky_control *)found.start;
		else if (strstr(line, "kymo-control") && n_pages < 8)
			pages[n_pages++] = found;
		else if (strstr(line, ".ring") && n_rings < 8)
			rings[n_rings++] = found;
	}
	if (maps)
		fclose(maps);
}

static struct ky_blob *blob_of(const struct shared *ring)
{
	const struct kymo_ring_file *file = (const struct kymo_ring_file *)ring->start;

	return (struct ky_blob *)(ring->start + file->client_offset);
}

/* ---- the child ---- */

static uint64_t state;

static uint64_t any(uint64_t below)
{
	/* xorshift64 */
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % below;
}

static struct ky_control_slot *slot_in_use(void)
{
	for (int i = 0; i < KY_CONTROL_SLOTS; i++) {
		if (__atomic_load_n(&control->slots[i].cookie, __ATOMIC_ACQUIRE))
			return &control->slots[i];
	}
	check(0, "no slot is in use");
	return NULL;
}

/* So that each event of the parent's enters the library. */
static void enable_all(uint32_t n)
{
	for (uint32_t page = 0; page < n && page < KY_CONTROL_PAGES; page++)
		memset((uint8_t *)control + KY_ENABLE_OFFSET(page, 0), 0xff, KY_ENABLE_BYTES);
}

/* The session ends, and begins once more, so that the parent makes a ring file; its name has no end by then. */
static void attack_procname(void)
{
	struct ky_control_slot *slot = slot_in_use();
	uint64_t cookie = slot->cookie;
	uint32_t n = control->n_pages;

	__atomic_store_n(&slot->cookie, 0, __ATOMIC_RELEASE);
	enable_all(n);
	for (int i = 0; i < 20000 && __atomic_load_n(&slot->joined, __ATOMIC_ACQUIRE); i++)
		usleep(100);
	memset(control->procname, 'A',
	       (size_t)((uint8_t *)&slot->flags - (uint8_t *)control->procname));
	slot->flags = 0x41414140;
	memset(&slot->joined, 'A', (size_t)((uint8_t *)slot->directory - (uint8_t *)&slot->joined));
	__atomic_store_n(&slot->cookie, cookie, __ATOMIC_RELEASE);
	enable_all(n);
}

static void attack_blob(void)
{
	for (int i = 0; i < n_rings; i++)
		blob_of(&rings[i])->bytes = (uint64_t)(canary - (uint8_t *)blob_of(&rings[i]));
}

static void attack_table(void)
{
	control->table_bytes = (uint64_t)(canary - ((uint8_t *)control + KY_CONTROL_TABLE));
	control->n_events = control->n_pages = 3;
}

static void attack_records(void)
{
	uint32_t *words = (uint32_t *)((uint8_t *)control + KY_CONTROL_TABLE);

	for (uint64_t i = 0; i < control->table_bytes / 4; i++)
		words[i] = 0x7fffff00u;
}

/* For good: each is a session that ends, and one that begins. */
static void attack_joins(void)
{
	struct ky_control_slot *slot = slot_in_use();
	uint64_t cookie = slot->cookie;

	for (;;) {
		__atomic_store_n(&slot->cookie, any(3) ? cookie : any(3), __ATOMIC_RELEASE);
		for (int i = 0; i < n_pages; i++)
			memset(pages[i].start, 0xff, KY_ENABLE_BYTES);
		for (uint64_t i = any(2000); i; i--)
			__asm__ __volatile__("");
	}
}

static void scribble(uint8_t *start, uint64_t bytes)
{
	static const uint64_t interesting[] = {0,	   1,	     UINT64_MAX, INT64_MAX,
					       UINT32_MAX, 1u << 20, 4096,	 0x4141414141414141,
					       1ull << 40};
	uint64_t *words = (uint64_t *)start;

	for (uint64_t n = 1 + any(64), at = any(bytes / 8); n && at < bytes / 8; n--, at++) {
		uint64_t how = any(4);

		words[at] = how == 0   ? interesting[any(sizeof(interesting) / 8)]
			    : how == 1 ? any(UINT64_MAX)
			    : how == 2 ? (uint64_t)(canary - start)
				       : words[at] + any(64) - 32;
	}
}

/* Mostly where something stands. */
static void attack_all(void)
{
	for (;;) {
		const struct shared *ring = n_rings ? &rings[any((uint64_t)n_rings)] : NULL;

		switch (any(8)) {
		case 0:
			scribble((uint8_t *)control, sizeof(*control));
			break;
		case 1:
			scribble((uint8_t *)control + KY_CONTROL_TABLE, 8192);
			break;
		case 2:
			scribble((uint8_t *)control, KY_CONTROL_BYTES);
			break;
		case 3:
			if (n_pages)
				scribble(pages[any((uint64_t)n_pages)].start, KY_ENABLE_BYTES);
			break;
		case 4:
			if (any(1000) == 0)
				(void)!madvise(control, KY_CONTROL_ENABLE, MADV_REMOVE);
			break;
		default:
			if (!ring)
				break;
			/* The head may say anything by now. */
			scribble(ring->start, any(2) ? 65536 : (uint64_t)(ring->end - ring->start));
		}
	}
}

static const struct attack {
	const char *name;
	void (*run)(void);
	bool is_endless;
	const char *until; /* what the library says is wrong */
} attacks[] = {
	{"procname", attack_procname, false, NULL}, {"blob", attack_blob, false, NULL},
	{"table", attack_table, false, NULL},	    {"records", attack_records, false, NULL},
	{"joins", attack_joins, true, "too often"}, {"all", attack_all, true, NULL},
};

static void run_child(const struct attack *attack, int done)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	check(setgroups(0, NULL) == 0 && setresgid(NOBODY, NOBODY, NOBODY) == 0 &&
		      setresuid(NOBODY, NOBODY, NOBODY) == 0,
	      "cannot become nobody");
	if (attack->is_endless)
		(void)!write(done, "", 1);
	attack->run();
	(void)!write(done, "", 1);
	for (;;)
		pause();
}

/* ---- the parent ---- */

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void work(int n)
{
	KYMO_EVENT(dropped, step, n);
	KYMO_EVENT(dropped, text, (const char *)"so it goes on", n);
}

static void use_plugin(const char *path)
{
	void *plugin = dlopen(path, RTLD_NOW);
	void (*run)(int);

	check(plugin != NULL, "cannot load the plugin");
	*(void **)&run = dlsym(plugin, "plugin_work");
	check(run != NULL, "the plugin has no work");
	run(1);
	dlclose(plugin);
}

/* Kibibytes of the parent's own memory. */
static long anonymous_kib(void)
{
	FILE *status = fopen("/proc/self/status", "r");
	char line[256];
	long kib = 0;

	while (status && fgets(line, sizeof(line), status))
		sscanf(line, "RssAnon: %ld", &kib);
	if (status)
		fclose(status);
	return kib;
}

static void check_canary(void)
{
	for (uint32_t i = 0; i < CANARY_BYTES; i++) {
		if (canary[i] == CANARY)
			continue;
		fprintf(stderr, "the parent's memory has changed, at byte %" PRIu32 "\n", i);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	const struct attack *attack = NULL;
	int64_t end_ms;
	long before_kib;
	bool is_done;
	int done[2];
	pid_t child;
	char byte;

	check(argc == 5, "usage");
	for (size_t i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++)
		attack = strcmp(attacks[i].name, argv[1]) == 0 ? &attacks[i] : attack;
	check(attack != NULL, "no such mode");
	state = strtoull(argv[2], NULL, 10) * 2 + 1;
	canary = mmap(NULL, CANARY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	check(canary != MAP_FAILED && pipe2(done, O_NONBLOCK) == 0, "memory");
	memset(canary, CANARY, CANARY_BYTES);
	for (int n = 0; !n_rings; n++) {
		work(n);
		usleep(1000);
		find_shared();
	}
	before_kib = anonymous_kib();
	child = fork();
	if (child == 0)
		run_child(attack, done[1]);
	for (int n = 0; read(done[0], &byte, 1) != 1; n++) {
		work(n);
		check(waitpid(child, NULL, WNOHANG) == 0, "the child has ended");
		usleep(10);
	}
	end_ms = now_ms() + strtol(argv[3], NULL, 10);
	do {
		for (int n = 0; n < 100; n++)
			work(n);
		use_plugin(argv[4]);
		check_canary();
		is_done = !attack->until ||
			  (kymo_trace_off() && strstr(kymo_trace_off(), attack->until));
	} while (now_ms() < end_ms || !is_done);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	check_canary();
	printf("%ld KiB more\n", anonymous_kib() - before_kib);
	puts("whole");
	return 0;
}
