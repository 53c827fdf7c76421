/* SPDX-License-Identifier: MIT */
#include "latency/tracker/tracker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#include "base/error.h"
#include "kernel/bpf/object.h"
#include "latency/bpf/bpf-program.h"
#include "latency/bpf/ring-turn.h"
#include "latency/tracker/tracker-internal.h"
#include "latency/tracker/tracker-told.h"
#include "latency/tracker/tracker-user.h"
#include "latency/bpf/tracker.skel.h"
#include "os/now.h"

#define OPEN_DEFAULT 10240u
#define STACKS_MAX   16384u
#define OPEN_BATCH   256u

struct ky_tracker {
	struct ky_tracker_definition definition;
	struct ky_tracker_user *user; /* NULL: the kernel's programs do the work */
	struct tracker_bpf *skeleton;
	struct bpf_link *begin[KY_TRACKER_PLACES], *end[KY_TRACKER_PLACES];
	struct ring_buffer *ring;
	uint64_t over_ns, timeout_ns;
	bool over_worst;
	uint64_t worst_told_ns;
	uint64_t n_open;
	struct ky_told_table told;
	struct ky_tracker_key *keys; /* for readings of the table */
	struct ky_tracker_open *open;
	/* During a step. */
	struct ky_ring_turn turn;
	ky_tracker_tell tell;
	void *data;
};

/* ---- loading ------------------------------------------------------------------------------ */

static int take_report(void *data, void *record, size_t size);

/* Its program for events of the kernel, or the one for probes. */
static struct bpf_program *tracker_program(const struct ky_tracker *tracker, bool is_end)
{
	const struct ky_tracker_event *event =
		is_end ? &tracker->definition.end : &tracker->definition.begin;
	struct tracker_bpf *skeleton = tracker->skeleton;

	if (is_end)
		return event->probe.n ? skeleton->progs.kymo_end_probe : skeleton->progs.kymo_end;
	return event->probe.n ? skeleton->progs.kymo_begin_probe : skeleton->progs.kymo_begin;
}

static void tracker_configure(struct ky_tracker *tracker, const struct ky_tracker_options *options)
{
	struct tracker_bpf *skeleton = tracker->skeleton;
	struct ky_tracker_config *config = (struct ky_tracker_config *)&skeleton->rodata->config;

	*config = tracker->definition.config;
	tracker->over_ns = options->over_ns;
	tracker->over_worst = options->over_worst;
	tracker->timeout_ns = options->timeout_ns;
	config->over_ns = options->over_worst ? UINT64_MAX : options->over_ns;
	/* The end of what is still open must come, too. */
	if (options->timeout_ns && options->timeout_ns < config->over_ns)
		config->over_ns = options->timeout_ns;
	config->over_worst = options->over_worst;
	config->stacks = options->stacks;
	bpf_map__set_max_entries(skeleton->maps.kymo_open,
				 options->max_open ? options->max_open : OPEN_DEFAULT);
	if (options->stacks)
		bpf_map__set_max_entries(skeleton->maps.kymo_stacks, STACKS_MAX);
	bpf_program__set_autoload(skeleton->progs.kymo_begin, false);
	bpf_program__set_autoload(skeleton->progs.kymo_begin_probe, false);
	bpf_program__set_autoload(skeleton->progs.kymo_end, false);
	bpf_program__set_autoload(skeleton->progs.kymo_end_probe, false);
	bpf_program__set_autoload(tracker_program(tracker, false), true);
	bpf_program__set_autoload(tracker_program(tracker, true), true);
}

static int tracker_load(struct ky_tracker *tracker, const struct ky_tracker_options *options,
			struct kymo_error *err)
{
	struct ky_bpf_opening opening;
	int ret = ky_bpf_begin(&opening, err);

	if (!ret) {
		tracker->skeleton = tracker_bpf__open_opts(&opening.options);
		if (tracker->skeleton)
			tracker_configure(tracker, options);
		ret = ky_bpf_load(&opening, tracker->skeleton ? tracker->skeleton->skeleton : NULL,
				  err);
	}
	ky_bpf_end(&opening);
	return ret;
}

static int attach_place(struct bpf_program *program, const struct ky_tracker_probe *probe, size_t i,
			struct bpf_link **link, struct kymo_error *err)
{
	LIBBPF_OPTS(bpf_uprobe_opts, options, .retprobe = probe->is_return, .bpf_cookie = i,
		    .ref_ctr_offset = probe->places[i].semaphore);
	int ret;

	*link = bpf_program__attach_uprobe_opts(program, -1, probe->places[i].path,
						probe->places[i].offset, &options);
	if (*link)
		return KYMO_OK;
	ret = ky_bpf_refused(err, errno, "cannot attach a BPF program");
	ky_error_path(err, probe->places[i].path);
	return ret;
}

static int tracker_attach(struct ky_tracker *tracker, bool is_end, struct kymo_error *err)
{
	const struct ky_tracker_event *event =
		is_end ? &tracker->definition.end : &tracker->definition.begin;
	struct bpf_program *program = tracker_program(tracker, is_end);
	struct bpf_link **links = is_end ? tracker->end : tracker->begin;
	int ret = KYMO_OK;

	for (size_t i = 0; i < event->probe.n && !ret; i++)
		ret = attach_place(program, &event->probe, i, &links[i], err);
	if (event->probe.n)
		return ret;
	links[0] = bpf_program__attach_tracepoint(program, event->system, event->event);
	return links[0] ? KYMO_OK : ky_bpf_refused(err, errno, "cannot attach a BPF program");
}

/* An event that is both ends something before it begins the next, so the end comes first. */
static int tracker_start(struct ky_tracker *tracker, struct kymo_error *err)
{
	int ret;

	tracker->ring = ring_buffer__new(bpf_map__fd(tracker->skeleton->maps.kymo_reports),
					 take_report, tracker, NULL);
	if (!tracker->ring)
		return ky_bpf_refused(err, errno, "cannot map a BPF ring buffer");
	ret = tracker_attach(tracker, true, err);
	return ret < 0 ? ret : tracker_attach(tracker, false, err);
}

static int tracker_open_user(struct ky_tracker *tracker, const struct ky_tracker_options *options,
			     struct kymo_error *err)
{
	int ret;

	tracker->over_ns = options->over_ns;
	tracker->over_worst = options->over_worst;
	tracker->timeout_ns = options->timeout_ns;
	ret = ky_tracker_user_open(&tracker->definition, options, &tracker->user, err);
	if (ret < 0 && err->column)
		ky_error_line(err, 1, err->column + (uint32_t)tracker->definition.rule_at);
	return ret;
}

int ky_tracker_open(const struct ky_tracker_options *options, struct ky_tracker **result,
		    struct kymo_error *err)
{
	struct ky_tracker *tracker = calloc(1, sizeof(*tracker));
	int ret =
		tracker ? ky_tracker_define(options->text, options->log, &tracker->definition, err)
			: ky_error_nomem(err);

	*result = NULL;
	if (!ret) {
		tracker->keys = calloc(OPEN_BATCH, sizeof(*tracker->keys));
		tracker->open = calloc(OPEN_BATCH, sizeof(*tracker->open));
		ret = tracker->keys && tracker->open ? KYMO_OK : ky_error_nomem(err);
	}
	if (!ret)
		ret = tracker->definition.of_programs ? tracker_open_user(tracker, options, err)
						      : tracker_load(tracker, options, err);
	if (!ret && !tracker->user)
		ret = tracker_start(tracker, err);
	if (ret < 0)
		ky_tracker_close(tracker);
	else
		*result = tracker;
	return ret;
}

void ky_tracker_close(struct ky_tracker *tracker)
{
	if (!tracker)
		return;
	for (size_t i = 0; i < KY_TRACKER_PLACES; i++) {
		bpf_link__destroy(tracker->begin[i]);
		bpf_link__destroy(tracker->end[i]);
	}
	ring_buffer__free(tracker->ring);
	tracker_bpf__destroy(tracker->skeleton);
	ky_tracker_user_close(tracker->user);
	ky_tracker_definition_fini(&tracker->definition);
	ky_told_fini(&tracker->told);
	free(tracker->keys);
	free(tracker->open);
	free(tracker);
}

/* ---- what took long ----------------------------------------------------------------------- */

static void find_frames(const struct ky_tracker *tracker, int32_t stack,
			struct ky_tracker_frames *frames)
{
	uint32_t key = (uint32_t)stack;

	frames->n = 0;
	if (stack < 0 || tracker->user ||
	    bpf_map_lookup_elem(bpf_map__fd(tracker->skeleton->maps.kymo_stacks), &key,
				frames->addresses))
		return;
	while (frames->n < KY_TRACKER_FRAMES && frames->addresses[frames->n])
		frames->n++;
}

static void tracker_tell(struct ky_tracker *tracker, enum ky_tracker_news_kind kind,
			 const struct ky_tracker_report *report, uint64_t duration_ns)
{
	struct ky_tracker_news news = {.kind = kind, .report = report, .duration_ns = duration_ns};

	find_frames(tracker, report->begin.kernel_stack, &news.begin_kernel);
	find_frames(tracker, report->begin.user_stack, &news.begin_user);
	if (kind != KY_TRACKER_STILL_OPEN) {
		find_frames(tracker, report->end.kernel_stack, &news.end_kernel);
		find_frames(tracker, report->end.user_stack, &news.end_user);
	}
	tracker->tell(tracker->data, tracker, &news);
}

static bool is_long(struct ky_tracker *tracker, uint64_t ns)
{
	if (!tracker->over_worst)
		return ns > tracker->over_ns;
	if (ns <= tracker->worst_told_ns)
		return false;
	tracker->worst_told_ns = ns;
	return true;
}

static int tell_report(void *data, const struct ky_tracker_report *report)
{
	struct ky_tracker *tracker = data;
	uint64_t ns = report->end_ns > report->begin_ns ? report->end_ns - report->begin_ns : 0;

	if (ky_told_end(&tracker->told, &report->key, report->begin_ns)) {
		(void)is_long(tracker, ns);
		tracker_tell(tracker, KY_TRACKER_ENDED, report, ns);
	} else if (is_long(tracker, ns)) {
		tracker_tell(tracker, KY_TRACKER_OVER, report, ns);
	}
	return KYMO_OK;
}

static int take_report(void *data, void *record, size_t size)
{
	struct ky_tracker *tracker = data;

	if (size >= sizeof(struct ky_tracker_report))
		(void)tell_report(tracker, record);
	return ky_ring_turn_next(&tracker->turn);
}

/* ---- what is open ------------------------------------------------------------------------- */

static int look_at_one(struct ky_tracker *tracker, const struct ky_tracker_key *key,
		       const struct ky_tracker_open *open, uint64_t now_ns)
{
	struct ky_tracker_report report = {
		.key = *key, .begin_ns = open->begin_ns, .begin = open->begin};
	int ret;

	tracker->n_open++;
	if (!tracker->timeout_ns || now_ns < open->begin_ns + tracker->timeout_ns)
		return KYMO_OK;
	ret = ky_told_see(&tracker->told, key, open->begin_ns);
	if (ret)
		return ret < 0 ? ret : KYMO_OK;
	tracker_tell(tracker, KY_TRACKER_STILL_OPEN, &report, now_ns - open->begin_ns);
	return KYMO_OK;
}

static int look_at_open(struct ky_tracker *tracker, struct kymo_error *err)
{
	int fd = bpf_map__fd(tracker->skeleton->maps.kymo_open), ret = 0;
	uint64_t now_ns = (uint64_t)ky_os_time_ns(CLOCK_MONOTONIC);
	uint32_t position = 0, n;
	bool is_first = true;

	tracker->n_open = 0;
	ky_told_begin(&tracker->told);
	while (ret != -ENOENT) {
		n = OPEN_BATCH;
		ret = bpf_map_lookup_batch(fd, is_first ? NULL : &position, &position,
					   tracker->keys, tracker->open, &n, NULL);
		if (ret < 0 && ret != -ENOENT)
			return ky_error_errno(err, -ret, "cannot read a BPF map");
		is_first = false;
		for (uint32_t i = 0; i < n; i++)
			if (look_at_one(tracker, &tracker->keys[i], &tracker->open[i], now_ns) < 0)
				return ky_error_nomem(err);
	}
	return KYMO_OK;
}

static int look_at_user_pair(void *data, const struct ky_tracker_key *key,
			     const struct ky_tracker_open *open)
{
	return look_at_one(data, key, open, (uint64_t)ky_os_time_ns(CLOCK_MONOTONIC));
}

static int step_user(struct ky_tracker *tracker, struct kymo_error *err)
{
	tracker->n_open = 0;
	ky_told_begin(&tracker->told);
	if (ky_tracker_user_each(tracker->user, look_at_user_pair, tracker) < 0)
		return ky_error_nomem(err);
	ky_tracker_user_take(tracker->user, tell_report, tracker);
	ky_told_sweep(&tracker->told);
	return KYMO_OK;
}

int ky_tracker_step(struct ky_tracker *tracker, ky_tracker_tell tell, void *data,
		    struct kymo_error *err)
{
	int ret;

	tracker->tell = tell;
	tracker->data = data;
	if (tracker->user)
		return step_user(tracker, err);
	/* The table first: what ends meanwhile is in the ring after it. */
	ret = look_at_open(tracker, err);
	if (ret >= 0)
		ret = ky_ring_turn_read(&tracker->turn, tracker->ring, err);
	/*
	 * Of those that are open no more, whose end was lost or whose key began again, nothing is to be told. The end of
	 * others may still be in the ring, unless that is empty.
	 */
	if (ret == KYMO_OK)
		ky_told_sweep(&tracker->told);
	return ret;
}

/* ---- figures ------------------------------------------------------------------------------ */

int ky_tracker_read(struct ky_tracker *tracker, struct ky_latency_cell *cells, uint64_t *period,
		    struct kymo_error *err)
{
	struct ky_tracker_shared *shared;
	uint32_t zero = 0;

	if (tracker->user) {
		memset(cells, 0, ky_bpf_possible_cpus() * sizeof(*cells));
		ky_tracker_user_read(tracker->user, cells, period);
		return KYMO_OK;
	}
	shared = &tracker->skeleton->bss->shared;
	*period = shared->period;
	__atomic_store_n(&shared->period, *period + 1, __ATOMIC_RELEASE);
	if (bpf_map_lookup_elem(bpf_map__fd(tracker->skeleton->maps.kymo_cell), &zero, cells))
		return ky_error_errno(err, errno, "cannot read a BPF map");
	return KYMO_OK;
}

/* The counts of the kernel's programs. */
static void tracker_shared(const struct ky_tracker *tracker, struct ky_tracker_shared *counts)
{
	const struct ky_tracker_shared *shared = &tracker->skeleton->bss->shared;

	*counts = (struct ky_tracker_shared){
		.n_full = __atomic_load_n(&shared->n_full, __ATOMIC_RELAXED),
		.n_again = __atomic_load_n(&shared->n_again, __ATOMIC_RELAXED),
		.n_lost = __atomic_load_n(&shared->n_lost, __ATOMIC_RELAXED),
		.n_unread = __atomic_load_n(&shared->n_unread, __ATOMIC_RELAXED),
		.worst_ns = __atomic_load_n(&shared->worst_ns, __ATOMIC_RELAXED)};
}

void ky_tracker_state(const struct ky_tracker *tracker, struct ky_tracker_state *state)
{
	struct ky_tracker_shared counts;
	uint64_t missed = 0;

	if (tracker->user) {
		ky_tracker_user_shared(tracker->user, &counts);
	} else {
		tracker_shared(tracker, &counts);
		missed = ky_latency_program_misses(tracker_program(tracker, false)) +
			 ky_latency_program_misses(tracker_program(tracker, true));
	}
	*state = (struct ky_tracker_state){.open = tracker->n_open,
					   .full = counts.n_full,
					   .again = counts.n_again,
					   .lost = counts.n_lost,
					   .missed = missed,
					   .unread = counts.n_unread,
					   .worst_ns = counts.worst_ns};
}

const char *ky_tracker_name(const struct ky_tracker *tracker)
{
	return tracker->definition.name;
}

const char *ky_tracker_key_name(const struct ky_tracker *tracker, size_t i)
{
	return i < KY_TRACKER_KEYS ? tracker->definition.key_names[i] : NULL;
}

bool ky_tracker_key_is_signed(const struct ky_tracker *tracker, size_t i)
{
	return i < KY_TRACKER_KEYS && tracker->definition.config.begin.keys[i].is_signed;
}
