/* SPDX-License-Identifier: MIT */
#include "kernel/content/content.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "kernel/bpf/btf.h"
#include "kernel/content/content-internal.h"

/* A region of memory per CPU, as large as older kernels allow, and less where there are many CPUs. */
#define DATA_BYTES     (2u << 20) /* at least, of a CPU */
#define DATA_MAX_BYTES (64u << 20)
#define DATA_ALL_BYTES (256u << 20)
/* Threads whose calls could not be read at entry and have not returned. */
#define MAX_FAULTS 16384

struct ky_content *ky_content_new(bool fields, uint32_t limit_bytes, bool ids,
				  uint64_t buffer_bytes, uint32_t own_pid)
{
	struct ky_content *content = calloc(1, sizeof(*content));

	if (!content)
		return NULL;
	content->programs.fields = fields;
	content->programs.ids = ids;
	content->programs.limit =
		limit_bytes > KY_CONTENT_LIMIT_MAX ? KY_CONTENT_LIMIT_MAX : limit_bytes;
	content->programs.own_pid = own_pid;
	content->buffer_bytes = buffer_bytes;
	content->programs.calls_map = content->programs.rings_map = -1;
	content->programs.faults_map = content->programs.next_map = -1;
	content->messages_fd = -1;
	content->enter_fd = content->exit_fd = content->enter_link = content->exit_link = -1;
	ky_map_init(&content->threads);
	return content;
}

bool ky_content_has_fields(const struct ky_content *content)
{
	return content->programs.fields;
}

bool ky_content_has_ids(const struct ky_content *content)
{
	return content->programs.ids;
}

bool ky_content_has_buffers(const struct ky_content *content)
{
	return content->programs.limit != 0;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void ky_content_detach(struct ky_content *content)
{
	close_fd(&content->enter_link);
	close_fd(&content->exit_link);
}

void ky_content_free(struct ky_content *content)
{
	struct pending *newer;
	size_t pos = 0;
	uint64_t tid;
	void *queue;

	if (!content)
		return;
	ky_content_detach(content);
	if (content->regions)
		munmap(content->regions, content->region_bytes * content->n_cpus);
	close_fd(&content->enter_fd);
	close_fd(&content->exit_fd);
	close_fd(&content->messages_fd);
	close_fd(&content->programs.calls_map);
	close_fd(&content->programs.rings_map);
	close_fd(&content->programs.faults_map);
	close_fd(&content->programs.next_map);
	for (struct pending *p = content->oldest; p; p = newer) {
		newer = p->newer;
		free(p);
	}
	while (ky_map_next(&content->threads, &pos, &tid, &queue))
		free(queue);
	ky_map_fini(&content->threads);
	ky_content_free_calls(content);
	free(content->held);
	free(content);
}

/* ---- choosing ------------------------------------------------------------------------- */

static bool is_buffer(unsigned int kind)
{
	return kind == KY_CONTENT_BUFFER || kind == KY_CONTENT_ENVIRON;
}

void ky_content_describe(const struct ky_content *content, const struct ky_content_call *call,
			 bool is_exit, struct ky_content_descriptor *to)
{
	to->replaces_memory = call->replaces_memory;
	for (unsigned int i = 0; i < KY_CONTENT_PLACES; i++) {
		const struct ky_content_item *item = &call->items[i];

		if ((i >= KY_CONTENT_IN_PLACES) != is_exit)
			continue;
		if (is_buffer(item->kind) && !content->programs.limit)
			continue;
		if (item->kind == KY_CONTENT_IDS ? !content->programs.ids
						 : !content->programs.fields)
			continue;
		to->items[i].kind = item->kind;
		to->items[i].arg = item->arg;
		to->items[i].len_arg = item->len_arg;
	}
}

void ky_content_select(struct ky_content *content, const char *event)
{
	bool is_exit;
	const struct ky_content_call *call = ky_content_call_find(event, &is_exit);

	if (call)
		ky_content_describe(content, call, is_exit, &content->descriptors[call->number]);
}

int ky_content_select_now(struct ky_content *content, const char *event, struct kymo_error *err)
{
	bool is_exit;
	const struct ky_content_call *call = ky_content_call_find(event, &is_exit);
	uint32_t number = call ? call->number : 0;

	if (!call)
		return KYMO_OK;
	ky_content_select(content, event);
	return ky_bpf_map_update(content->programs.calls_map, &number,
				 &content->descriptors[number], err);
}

/* ---- loading -------------------------------------------------------------------------- */

static uint32_t possible_cpus(void)
{
	long n = sysconf(_SC_NPROCESSORS_CONF);

	return n > 0 ? (uint32_t)n : 1;
}

/* With @data bytes for each CPU; fewer, where the kernel has no such memory, or takes no values of that size. */
static int make_regions(struct ky_content *content, uint32_t data, struct kymo_error *err)
{
	struct ky_content_programs *p = &content->programs;

	for (;; data /= 2) {
		bool is_last = data <= DATA_BYTES;

		p->data_bytes = data;
		content->region_bytes = ky_content_region_bytes(data, p->limit);
		p->rings_map = ky_bpf_map_create(BPF_MAP_TYPE_ARRAY, "kymo_content", 4,
						 (uint32_t)content->region_bytes, content->n_cpus,
						 BPF_F_MMAPABLE, is_last ? err : NULL);
		if (p->rings_map >= 0 || is_last)
			return p->rings_map < 0 ? p->rings_map : KYMO_OK;
	}
}

static int make_maps(struct ky_content *content, struct kymo_error *err)
{
	struct ky_content_programs *p = &content->programs;
	uint32_t data = DATA_BYTES, least = 2 * ky_content_record_max(p->limit);
	int ret = KYMO_OK;

	content->n_cpus = possible_cpus();
	while (data < content->buffer_bytes / 2 && data < DATA_MAX_BYTES)
		data *= 2;
	if (p->compat || p->unknown) {
		content->calls = calloc(content->n_cpus, sizeof(*content->calls));
		if (!content->calls)
			return ky_error_nomem(err);
	}
	while ((uint64_t)data * content->n_cpus > DATA_ALL_BYTES && data / 2 >= least)
		data /= 2;
	ret = make_regions(content, data, err);
	if (ret < 0)
		return ret;
	p->calls_map = ky_bpf_map_create(BPF_MAP_TYPE_ARRAY, "kymo_calls", 4,
					 sizeof(struct ky_content_descriptor), KY_CONTENT_ALL_CALLS,
					 0, err);
	if (p->calls_map < 0)
		return p->calls_map;
	p->faults_map =
		ky_bpf_map_create(BPF_MAP_TYPE_LRU_HASH, "kymo_faults", 4, 8, MAX_FAULTS, 0, err);
	if (p->faults_map < 0)
		return p->faults_map;
	p->next_map = ky_bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, "kymo_next", 4, 4, 1, 0, err);
	if (p->next_map < 0)
		return p->next_map;
	for (uint32_t nr = 0; nr < KY_CONTENT_ALL_CALLS && !ret; nr++)
		ret = ky_bpf_map_update(p->calls_map, &nr, &content->descriptors[nr], err);
	return ret;
}

static int map_regions(struct ky_content *content, struct kymo_error *err)
{
	size_t size = content->region_bytes * content->n_cpus;
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, content->programs.rings_map,
			0);

	if (at == MAP_FAILED)
		return ky_error_errno(err, errno, "cannot map the buffers of BPF");
	content->regions = at;
	return KYMO_OK;
}

struct ky_content_ring *ky_content_ring_of(const struct ky_content *content, uint32_t cpu)
{
	return (struct ky_content_ring *)(void *)(content->regions + cpu * content->region_bytes);
}

static int load_programs(struct ky_content *content, struct kymo_error *err)
{
	const struct ky_content_programs *p = &content->programs;
	uint32_t first = 0;
	int ret = KYMO_OK;

	if (p->fields) {
		content->messages_fd = ky_content_load_messages(p, err);
		if (content->messages_fd < 0)
			return content->messages_fd;
		ret = ky_bpf_map_update(p->next_map, &first, &content->messages_fd, err);
	}
	if (!ret && (p->fields || p->compat || p->unknown))
		ret = content->enter_fd = ky_content_load_program(p, false, err);
	if (ret < 0)
		return ret;
	content->exit_fd = ky_content_load_program(p, true, err);
	return content->exit_fd < 0 ? content->exit_fd : KYMO_OK;
}

int ky_content_load(struct ky_content *content, struct kymo_error *err)
{
	struct ky_content_programs *p = &content->programs;
	struct ky_btf btf;
	int info, status, ret;
	bool knows_task;

#if !defined(__x86_64__)
	return ky_error_set(err, KYMO_E_UNSUPPORTED,
			    "contents of system calls are known on x86-64 only");
#endif
	ky_btf_init(&btf, NULL);
	info = ky_btf_member(&btf, "task_struct", "thread_info");
	status = ky_btf_member(&btf, "thread_info", "status");
	knows_task = !p->ids || ky_content_task_layout(&btf, &p->task);
	ky_btf_fini(&btf);
	if (!knows_task)
		return ky_error_set(err, KYMO_E_UNSUPPORTED,
				    "this kernel does not tell where threads have their ids (BTF)");
	p->status_offset = info < 0 || status < 0 ? -1 : info + status;
	/* A 32-bit call has a number that may be none of 64 bits. */
	if ((p->compat || p->unknown) && p->status_offset < 0)
		return ky_error_set(err, KYMO_E_UNSUPPORTED,
				    "this kernel does not tell which calls are of 32 bits (BTF)");
	ret = make_maps(content, err);
	if (!ret)
		ret = map_regions(content, err);
	if (ret < 0)
		return ret;
	return load_programs(content, err);
}

int ky_content_attach(struct ky_content *content, struct kymo_error *err)
{
	content->exit_link = ky_bpf_attach_raw(content->exit_fd, "sys_exit", err);
	if (content->exit_link < 0 || content->enter_fd < 0)
		return content->exit_link < 0 ? content->exit_link : KYMO_OK;
	content->enter_link = ky_bpf_attach_raw(content->enter_fd, "sys_enter", err);
	return content->enter_link < 0 ? content->enter_link : KYMO_OK;
}

void ky_content_stats(const struct ky_content *content, struct ky_content_stats *stats)
{
	*stats = content->stats;
	for (uint32_t cpu = 0; content->regions && cpu < content->n_cpus; cpu++)
		stats->lost += ky_content_ring_of(content, cpu)->lost;
}
