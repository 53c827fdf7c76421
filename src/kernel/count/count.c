/* SPDX-License-Identifier: MIT */
/* The programs of kymo count: one for each kind of event, all with the same maps. */
#include "kernel/count/count.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/error.h"
#include "kernel/bpf/object.h"
#include "kernel/count/count-internal.h"
#include "kernel/count/count.skel.h"
#include "kernel/process/pid-view.h"
#include "os/file.h"

#define STACKS_MAX   16384u /* of 1 KiB each */
#define KEYS_DEFAULT 16384u
#define PROGRAMS_MAX 256
#define MAPS	     5

/* The totals of all keys at a time, sorted by key. */
struct totals {
	struct ky_count_row *rows;
	size_t n;
	uint8_t *keys;
};

struct ky_count {
	struct ky_count_plan plan;
	KY_VEC(struct count_bpf *) programs; /* the first has the maps */
	KY_VEC(struct bpf_link *) links;
	bool sums;
	uint32_t n_cpus, max_keys;
	struct totals totals;		  /* until the last read */
	KY_VEC(struct ky_count_row) rows; /* of the period */
	struct ky_count_value *values;
};

static void totals_fini(struct totals *totals)
{
	free(totals->rows);
	free(totals->keys);
	*totals = (struct totals){0};
}

/* ---- loading ---------------------------------------------------------------------------- */

/* What all programs share. Scratch is each one's own: one may interrupt another one. */
static void find_maps(const struct count_bpf *program, struct bpf_map *maps[MAPS])
{
	maps[0] = program->maps.kymo_counts;
	maps[1] = program->maps.kymo_shared;
	maps[2] = program->maps.kymo_followed;
	maps[3] = program->maps.kymo_stacks;
	maps[4] = program->maps.kymo_calls;
}

static bool count_has_stacks(const struct ky_count *count)
{
	for (size_t i = 0; i < count->plan.n_columns; i++)
		if (count->plan.columns[i].is_kernel_stack || count->plan.columns[i].is_user_stack)
			return true;
	return false;
}

static int count_share_maps(const struct ky_count *count, const struct count_bpf *program,
			    struct kymo_error *err)
{
	struct bpf_map *maps[MAPS], *first[MAPS];

	bpf_map__set_key_size(program->maps.kymo_counts, count->plan.key_bytes);
	bpf_map__set_max_entries(program->maps.kymo_counts, count->max_keys);
	if (count_has_stacks(count))
		bpf_map__set_max_entries(program->maps.kymo_stacks, STACKS_MAX);
	if (!count->programs.len)
		return KYMO_OK;
	find_maps(program, maps);
	find_maps(count->programs.data[0], first);
	for (size_t i = 0; i < MAPS; i++) {
		int ret = bpf_map__reuse_fd(maps[i], bpf_map__fd(first[i]));

		if (ret < 0)
			return ky_bpf_refused(err, -ret, "cannot share a BPF map");
	}
	return KYMO_OK;
}

/* Which of the programs counts. */
static struct bpf_program *count_program(const struct count_bpf *program, enum ky_count_calls calls)
{
	if (calls == KY_COUNT_OWN)
		return program->progs.kymo_count;
	return calls == KY_COUNT_EXITS ? program->progs.kymo_count_exit
				       : program->progs.kymo_count_entry;
}

static void count_choose_program(const struct count_bpf *program,
				 const struct ky_count_config *config)
{
	bpf_program__set_autoload(program->progs.kymo_count, false);
	bpf_program__set_autoload(program->progs.kymo_count_entry, false);
	bpf_program__set_autoload(program->progs.kymo_count_exit, false);
	bpf_program__set_autoload(count_program(program, config->calls), true);
}

static int count_load(struct ky_count *count, const struct ky_count_config *config,
		      struct kymo_error *err)
{
	struct count_bpf *program = NULL;
	struct ky_bpf_opening opening;
	int ret = ky_bpf_begin(&opening, err);

	if (!ret)
		program = count_bpf__open_opts(&opening.options);
	if (!ret && program) {
		*program->rodata = (struct count_bpf__rodata){.config = *config};
		count_choose_program(program, config);
		bpf_program__set_autoload(program->progs.kymo_fork,
					  config->follows && !count->programs.len);
		bpf_program__set_autoload(program->progs.kymo_free,
					  config->follows && !count->programs.len);
		ret = count_share_maps(count, program, err);
	}
	if (!ret)
		ret = ky_bpf_load(&opening, program ? program->skeleton : NULL, err);
	ky_bpf_end(&opening);
	if (!ret && ky_vec_push(&count->programs, program) < 0)
		ret = ky_error_nomem(err);
	if (ret < 0)
		count_bpf__destroy(program);
	return ret;
}

static int count_keep(struct ky_count *count, struct bpf_link *link, struct kymo_error *err)
{
	if (!link)
		return ky_bpf_refused(err, errno, "cannot attach a BPF program");
	if (ky_vec_push(&count->links, link) == KYMO_OK)
		return KYMO_OK;
	bpf_link__destroy(link);
	return ky_error_nomem(err);
}

static int count_attach(struct ky_count *count, const struct count_bpf *program, const char *system,
			const char *event, size_t cookie, struct kymo_error *err)
{
	LIBBPF_OPTS(bpf_tracepoint_opts, options, .bpf_cookie = cookie);

	return count_keep(count,
			  bpf_program__attach_tracepoint_opts(program->progs.kymo_count, system,
							      event, &options),
			  err);
}

/* Event @i is a system call: program @number counts it. */
static int count_set_call(const struct ky_count *count, size_t i, size_t number,
			  struct kymo_error *err)
{
	const struct ky_count_event *event = &count->plan.events.data[i];
	int map = bpf_map__fd(count->programs.data[0]->maps.kymo_calls), ret;
	uint32_t at = (uint32_t)event->call, value = KY_COUNT_CALL(number, i);

	if (event->config.calls == KY_COUNT_EXITS)
		at += KY_COUNT_CALLS;
	ret = bpf_map_update_elem(map, &at, &value, BPF_ANY);
	return ret < 0 ? ky_bpf_refused(err, -ret, "cannot fill a BPF map") : KYMO_OK;
}

/* The program of event @i, from 0 on, that an earlier event has, too; else the next one. */
static size_t count_find_program(const struct ky_count *count, size_t i, const size_t *program_of)
{
	const struct ky_count_event *events = count->plan.events.data;

	for (size_t k = 0; k < i; k++)
		if (!events[k].is_never &&
		    memcmp(&events[k].config, &events[i].config, sizeof(events[k].config)) == 0)
			return program_of[k];
	return count->programs.len;
}

/* Events with the same config share a program; a cookie, or the call's number, tells it which event it is. */
static int count_load_event(struct ky_count *count, size_t i, size_t *program_of,
			    struct kymo_error *err)
{
	const struct ky_count_event *event = &count->plan.events.data[i];
	struct ky_count_config config = event->config;
	bool is_new;
	int ret = KYMO_OK;

	program_of[i] = count_find_program(count, i, program_of);
	is_new = program_of[i] == count->programs.len;
	config.program = (uint32_t)program_of[i] + 1;
	if (program_of[i] == PROGRAMS_MAX)
		return ky_error_set(err, KYMO_E_LIMIT,
				    "these events have more than %d different layouts",
				    PROGRAMS_MAX);
	if (is_new)
		ret = count_load(count, &config, err);
	if (ret == KYMO_OK && config.calls)
		ret = count_set_call(count, i, config.program, err);
	if (ret < 0 || (config.calls && !is_new))
		return ret;
	if (config.calls)
		return count_keep(count,
				  bpf_program__attach(count_program(
					  count->programs.data[program_of[i]], config.calls)),
				  err);
	return count_attach(count, count->programs.data[program_of[i]], event->system, event->event,
			    i, err);
}

/* Behind the programs that count: the last event of a process counts before the process is forgotten. */
static int count_attach_following(struct ky_count *count, struct kymo_error *err)
{
	struct count_bpf *first = count->programs.data[0];
	int ret;

	if (!bpf_program__autoload(first->progs.kymo_fork))
		return KYMO_OK;
	ret = count_keep(count, bpf_program__attach(first->progs.kymo_fork), err);
	return ret < 0 ? ret : count_keep(count, bpf_program__attach(first->progs.kymo_free), err);
}

static int count_load_all(struct ky_count *count, struct kymo_error *err)
{
	size_t *program_of = calloc(count->plan.events.len, sizeof(*program_of));
	int ret = program_of ? KYMO_OK : ky_error_nomem(err);

	for (size_t i = 0; i < count->plan.events.len && ret == KYMO_OK; i++)
		if (!count->plan.events.data[i].is_never)
			ret = count_load_event(count, i, program_of, err);
	free(program_of);
	return ret < 0 ? ret : count_attach_following(count, err);
}

static int count_prepare(struct ky_count *count, const struct ky_count_options *options,
			 struct kymo_error *err)
{
	uint32_t own = (uint32_t)ky_pid_this_process();
	int ret = ky_count_plan_init(&count->plan, options, err);

	if (!ret)
		ret = ky_bpf_values_of_key(&count->n_cpus, err);
	if (ret < 0)
		return ret;
	ky_vec_foreach(&count->plan.events, event) {
		event->config.own_tgid = own;
		event->config.follows = options->follows;
	}
	count->sums = options->sum != NULL;
	count->max_keys = options->max_keys ? options->max_keys : KEYS_DEFAULT;
	count->values = calloc(count->n_cpus, sizeof(*count->values));
	/* Each event has a descriptor or two. */
	ky_file_raise_limit();
	return count->values ? KYMO_OK : ky_error_nomem(err);
}

int ky_count_open(const struct ky_count_options *options, struct ky_count **made,
		  struct kymo_error *err)
{
	struct ky_count *count = calloc(1, sizeof(*count));
	int ret;

	*made = NULL;
	if (!count)
		return ky_error_nomem(err);
	ret = count_prepare(count, options, err);
	if (ret == KYMO_OK)
		ret = count_load_all(count, err);
	if (ret < 0)
		ky_count_close(count);
	else
		*made = count;
	return ret;
}

void ky_count_close(struct ky_count *count)
{
	if (!count)
		return;
	ky_vec_foreach(&count->links, link)
		bpf_link__destroy(*link);
	ky_vec_foreach(&count->programs, program)
		count_bpf__destroy(*program);
	ky_vec_fini(&count->links);
	ky_vec_fini(&count->programs);
	totals_fini(&count->totals);
	ky_vec_fini(&count->rows);
	free(count->values);
	ky_count_plan_fini(&count->plan);
	free(count);
}

/* ---- control ---------------------------------------------------------------------------- */

int ky_count_follow(struct ky_count *count, pid_t pid, struct kymo_error *err)
{
	int map = bpf_map__fd(count->programs.data[0]->maps.kymo_followed), ret;
	struct ky_pid_view view;
	uint32_t tgid = (uint32_t)pid;
	uint8_t one = 1;

	if (ky_pid_view_open(&view, NULL) == KYMO_OK)
		tgid = (uint32_t)ky_pid_to_kernel(&view, pid);
	ky_pid_view_close(&view);
	ret = bpf_map_update_elem(map, &tgid, &one, BPF_ANY);
	return ret < 0 ? ky_bpf_refused(err, -ret, "cannot fill a BPF map") : KYMO_OK;
}

static int count_switch(struct ky_count *count, uint64_t is_on)
{
	int map = bpf_map__fd(count->programs.data[0]->maps.kymo_shared);
	uint32_t at = KY_COUNT_IS_ON;

	return bpf_map_update_elem(map, &at, &is_on, BPF_ANY);
}

int ky_count_start(struct ky_count *count, struct kymo_error *err)
{
	int ret = count_switch(count, 1);

	return ret < 0 ? ky_bpf_refused(err, -ret, "cannot fill a BPF map") : KYMO_OK;
}

void ky_count_stop(struct ky_count *count)
{
	(void)count_switch(count, 0);
}

void ky_count_losses(const struct ky_count *count, uint64_t *lost, uint64_t *missed)
{
	int map = bpf_map__fd(count->programs.data[0]->maps.kymo_shared);
	uint32_t at = KY_COUNT_LOST;

	*lost = *missed = 0;
	(void)bpf_map_lookup_elem(map, &at, lost);
	ky_vec_foreach(&count->programs, program) {
		struct bpf_prog_info info = {0};
		uint32_t size = sizeof(info);

		if (bpf_obj_get_info_by_fd(bpf_program__fd((*program)->progs.kymo_count), &info,
					   &size) == 0)
			*missed += info.recursion_misses;
	}
}

/* ---- reading ---------------------------------------------------------------------------- */

static int count_by_key(const void *left, const void *right, void *data)
{
	const struct ky_count_row *a = left, *b = right;

	return memcmp(a->key, b->key, *(const uint32_t *)data);
}

static void count_sum_up(struct ky_count *count, int map, struct ky_count_row *row)
{
	*row = (struct ky_count_row){.key = row->key};
	if (bpf_map_lookup_elem(map, row->key, count->values) < 0)
		return;
	for (uint32_t cpu = 0; cpu < count->n_cpus; cpu++) {
		row->count += count->values[cpu].count;
		row->sum = (int64_t)((uint64_t)row->sum + (uint64_t)count->values[cpu].sum);
	}
}

static int count_read_totals(struct ky_count *count, struct totals *totals, struct kymo_error *err)
{
	int map = bpf_map__fd(count->programs.data[0]->maps.kymo_counts);
	uint32_t key_bytes = count->plan.key_bytes;
	const uint8_t *last = NULL;

	totals->rows = calloc(count->max_keys, sizeof(*totals->rows));
	totals->keys = calloc(count->max_keys, key_bytes);
	if (!totals->rows || !totals->keys)
		return ky_error_nomem(err);
	/* Keys only come, and none goes: the walk does not begin again. */
	for (; totals->n < count->max_keys; totals->n++) {
		uint8_t *key = totals->keys + totals->n * key_bytes;

		if (bpf_map_get_next_key(map, last, key) < 0)
			break;
		totals->rows[totals->n].key = last = key;
		count_sum_up(count, map, &totals->rows[totals->n]);
	}
	qsort_r(totals->rows, totals->n, sizeof(*totals->rows), count_by_key, &key_bytes);
	return KYMO_OK;
}

/* What was added since @before. */
static int count_subtract(struct ky_count *count, const struct totals *before,
			  struct kymo_error *err)
{
	size_t k = 0;

	ky_vec_clear(&count->rows);
	for (size_t i = 0; i < count->totals.n; i++) {
		struct ky_count_row row = count->totals.rows[i];

		while (k < before->n &&
		       memcmp(before->rows[k].key, row.key, count->plan.key_bytes) < 0)
			k++;
		if (k < before->n &&
		    memcmp(before->rows[k].key, row.key, count->plan.key_bytes) == 0) {
			row.count -= before->rows[k].count;
			row.sum -= before->rows[k].sum;
		}
		if (row.count && ky_vec_push(&count->rows, row) < 0)
			return ky_error_nomem(err);
	}
	return KYMO_OK;
}

/* The greatest first; rows of the same size by key, so that the order is always the same. */
static int count_by_size(const void *left, const void *right, void *data)
{
	const struct ky_count_row *a = left, *b = right;
	const struct ky_count *count = data;

	if (count->sums && a->sum != b->sum)
		return a->sum > b->sum ? -1 : 1;
	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	return memcmp(a->key, b->key, count->plan.key_bytes);
}

int ky_count_read(struct ky_count *count, struct kymo_error *err)
{
	struct totals before = count->totals;
	int ret;

	count->totals = (struct totals){0};
	ret = count_read_totals(count, &count->totals, err);
	if (ret == KYMO_OK)
		ret = count_subtract(count, &before, err);
	totals_fini(&before);
	if (ret == KYMO_OK && count->rows.len)
		qsort_r(count->rows.data, count->rows.len, sizeof(*count->rows.data), count_by_size,
			count);
	return ret;
}

const struct ky_count_row *ky_count_rows(const struct ky_count *count, size_t *n)
{
	*n = count->rows.len;
	return count->rows.data;
}

const struct ky_count_column *ky_count_columns(const struct ky_count *count, size_t *n)
{
	*n = count->plan.n_columns;
	return count->plan.columns;
}

bool ky_count_has(const struct ky_count *count, const struct ky_count_row *row, size_t column)
{
	uint64_t missing = 0;

	if (count->plan.has_missing)
		memcpy(&missing, row->key, sizeof(missing));
	return !(missing >> column & 1);
}

uint64_t ky_count_number(const struct ky_count *count, const struct ky_count_row *row,
			 size_t column)
{
	uint64_t number;

	memcpy(&number, row->key + count->plan.columns[column].at, sizeof(number));
	return number;
}

const char *ky_count_text(const struct ky_count *count, const struct ky_count_row *row,
			  size_t column)
{
	return (const char *)row->key + count->plan.columns[column].at;
}

size_t ky_count_stack(const struct ky_count *count, const struct ky_count_row *row, size_t column,
		      uint64_t *addresses, size_t max)
{
	int map = bpf_map__fd(count->programs.data[0]->maps.kymo_stacks);
	int64_t number = (int64_t)ky_count_number(count, row, column);
	uint64_t frames[KY_COUNT_FRAMES_MAX] = {0};
	uint32_t id = (uint32_t)number;
	size_t n = 0;

	if (number < 0 || bpf_map_lookup_elem(map, &id, frames) < 0)
		return 0;
	while (n < KY_COUNT_FRAMES_MAX && n < max && frames[n]) {
		addresses[n] = frames[n];
		n++;
	}
	return n;
}

const char *ky_count_event(const struct ky_count *count, uint64_t i)
{
	return i < count->plan.events.len ? count->plan.events.data[i].name : "?";
}

size_t ky_count_n_events(const struct ky_count *count)
{
	return count->plan.events.len;
}
