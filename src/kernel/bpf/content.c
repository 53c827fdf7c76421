/* SPDX-License-Identifier: MIT */
#include "kernel/bpf/content.h"

#include <errno.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/error.h"
#include "kernel/bpf/content.skel.h"
#include "kernel/bpf/object.h"

/* A region of memory per CPU, as large as older kernels allow, and less where there are many CPUs. */
#define DATA_BYTES     (2u << 20) /* at least, of a CPU */
#define DATA_MAX_BYTES (64u << 20)
#define DATA_ALL_BYTES (256u << 20)

#define IOVECS_BYTES (KY_CONTENT_IOVECS * 16)
#define PART_BYTES   sizeof(struct ky_content_part)

static uint64_t up8(uint64_t n)
{
	return (n + 7) & ~UINT64_C(7);
}

/* ---- sizes ------------------------------------------------------------------------------ */

/* The longest content of one item. */
static uint64_t part_max(uint32_t limit)
{
	return up8(limit > KY_CONTENT_TEXT_BYTES ? limit : KY_CONTENT_TEXT_BYTES);
}

static uint64_t record_max(uint32_t limit)
{
	uint64_t items = KY_CONTENT_PLACES * (PART_BYTES + part_max(limit));
	uint64_t messages = PART_BYTES + KY_CONTENT_MESSAGES_BYTES +
			    sizeof(struct ky_content_message) + KY_CONTENT_SOCKADDR_BYTES +
			    up8(limit);

	return sizeof(struct ky_content_record) + (items > messages ? items : messages);
}

/* What the verifier believes possible: a whole record, and behind it one more item, gathered to twice its limit. */
static uint64_t slack_bytes(uint32_t limit)
{
	return (record_max(limit) + 2 * part_max(limit) + 2 * PART_BYTES + 4095) & ~UINT64_C(4095);
}

static uint64_t bpf_content_choose_data_bytes(const struct ky_bpf_content_options *options,
					      uint32_t n_cpus)
{
	uint64_t data = DATA_BYTES, least = 2 * record_max(options->limit);

	while (data < options->ring_bytes / 2 && data < DATA_MAX_BYTES)
		data *= 2;
	while (data * n_cpus > DATA_ALL_BYTES && data / 2 >= least)
		data /= 2;
	return data;
}

/* ---- loading ---------------------------------------------------------------------------- */

static int bpf_content_make_regions(struct ky_bpf_content *content,
				    const struct ky_bpf_content_options *options,
				    struct kymo_error *err)
{
	uint32_t n_cpus = ky_bpf_possible_cpus();
	uint64_t data = bpf_content_choose_data_bytes(options, n_cpus);

	content->regions.n = n_cpus;
	content->regions.data_bytes = data;
	content->regions.bytes =
		KY_CONTENT_DATA_OFFSET + data + slack_bytes(options->limit) + IOVECS_BYTES;
	return ky_bpf_regions_make(&content->regions, content->skeleton->maps.kymo_content,
				   DATA_BYTES, err);
}

static void configure(const struct ky_bpf_content *content,
		      const struct ky_bpf_content_options *options)
{
	struct ky_content_config *config = &content->skeleton->rodata->config;

	config->data_bytes = content->regions.data_bytes;
	config->record_max = content->record_max;
	config->room_bytes = content->regions.data_bytes - up8(content->record_max);
	config->iovecs_at =
		KY_CONTENT_DATA_OFFSET + content->regions.data_bytes + slack_bytes(options->limit);
	config->limit = options->limit;
	config->own_pid = options->own_pid;
	config->fields = options->fields;
	config->compat = options->compat;
	config->unknown = options->unknown;
	config->ids = options->ids;
}

/* Programs for what takes long, by KY_CONTENT_NEXT_*. */
static void bpf_content_choose_programs(const struct content_bpf *skeleton,
					const struct ky_bpf_content_options *options,
					struct bpf_program *next[KY_CONTENT_NEXT])
{
	bool is_old = options->old_loops || !ky_bpf_has_helper(BPF_FUNC_loop);

	next[KY_CONTENT_NEXT_VECTORS] =
		is_old ? skeleton->progs.kymo_vectors_old : skeleton->progs.kymo_vectors;
	next[KY_CONTENT_NEXT_MESSAGES] =
		is_old ? skeleton->progs.kymo_messages_old : skeleton->progs.kymo_messages;
	next[KY_CONTENT_NEXT_TEXTS] =
		is_old ? skeleton->progs.kymo_texts_old : skeleton->progs.kymo_texts;
	for (uint32_t i = 0; i < KY_CONTENT_NEXT; i++)
		bpf_program__set_autoload(next[i], true);
}

static int bpf_content_set_next(const struct content_bpf *skeleton,
				struct bpf_program *const next[KY_CONTENT_NEXT],
				struct kymo_error *err)
{
	int map = bpf_map__fd(skeleton->maps.kymo_next), ret = 0;

	for (uint32_t i = 0; i < KY_CONTENT_NEXT && !ret; i++) {
		int fd = bpf_program__fd(next[i]);

		ret = bpf_map_update_elem(map, &i, &fd, BPF_ANY);
	}
	return ret < 0 ? ky_bpf_refused(err, -ret, "cannot fill a BPF map") : KYMO_OK;
}

static int bpf_content_configure_and_load(struct ky_bpf_content *content,
					  struct ky_bpf_opening *opening,
					  const struct ky_bpf_content_options *options,
					  struct kymo_error *err)
{
	struct content_bpf *skeleton = content->skeleton;
	struct bpf_program *next[KY_CONTENT_NEXT];
	int ret;

	if (!skeleton)
		return ky_bpf_load(opening, NULL, err);
	ret = bpf_content_make_regions(content, options, err);
	if (ret < 0)
		return ret;
	configure(content, options);
	if (options->fields)
		bpf_content_choose_programs(skeleton, options, next);
	bpf_program__set_autoload(skeleton->progs.kymo_sys_enter,
				  options->fields || options->compat || options->unknown);
	ret = ky_bpf_load(opening, skeleton->skeleton, err);
	if (!ret && options->fields)
		ret = bpf_content_set_next(skeleton, next, err);
	return ret;
}

static int bpf_content_check_kernel(const struct ky_bpf_content_options *options,
				    struct kymo_error *err)
{
#if !defined(__x86_64__)
	return ky_error_set(err, KYMO_E_UNSUPPORTED,
			    "contents of system calls are known on x86-64 only");
#endif
	if (ky_bpf_has_btf())
		return KYMO_OK;
	if (options->ids)
		return ky_error_set(err, KYMO_E_UNSUPPORTED,
				    "this kernel's BTF does not describe the IDs of threads");
	/* A 32-bit call has a number that may be none of 64 bits. */
	if (options->compat || options->unknown)
		return ky_error_set(err, KYMO_E_UNSUPPORTED,
				    "this kernel's BTF does not describe 32-bit calls");
	return KYMO_OK;
}

int ky_bpf_content_load(struct ky_bpf_content *content,
			const struct ky_bpf_content_options *options, struct kymo_error *err)
{
	struct ky_bpf_opening opening;
	int ret;

	*content = (struct ky_bpf_content){.enter_link = -1, .exit_link = -1};
	content->record_max = (uint32_t)record_max(options->limit);
	ret = bpf_content_check_kernel(options, err);
	if (ret < 0)
		return ret;
	ret = ky_bpf_begin(&opening, err);
	if (!ret) {
		content->skeleton = content_bpf__open_opts(&opening.options);
		ret = bpf_content_configure_and_load(content, &opening, options, err);
	}
	ky_bpf_end(&opening);
	if (ret < 0)
		return ret;
	content->calls = content->skeleton->bss->calls;
	return KYMO_OK;
}

void ky_bpf_content_unload(struct ky_bpf_content *content)
{
	if (!content->skeleton)
		return;
	ky_bpf_content_detach(content);
	ky_bpf_regions_unmap(&content->regions);
	content_bpf__destroy(content->skeleton);
	*content = (struct ky_bpf_content){0};
}

/* ---- attaching -------------------------------------------------------------------------- */

int ky_bpf_content_attach(struct ky_bpf_content *content, struct kymo_error *err)
{
	int enter = bpf_program__fd(content->skeleton->progs.kymo_sys_enter);
	int exit = bpf_program__fd(content->skeleton->progs.kymo_sys_exit);

	content->exit_link = ky_bpf_attach_raw(exit, "sys_exit", err);
	if (content->exit_link < 0 || enter < 0)
		return content->exit_link < 0 ? content->exit_link : KYMO_OK;
	content->enter_link = ky_bpf_attach_raw(enter, "sys_enter", err);
	return content->enter_link < 0 ? content->enter_link : KYMO_OK;
}

static void close_link(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void ky_bpf_content_detach(struct ky_bpf_content *content)
{
	if (!content->skeleton)
		return;
	close_link(&content->enter_link);
	close_link(&content->exit_link);
}
