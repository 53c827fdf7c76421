/* SPDX-License-Identifier: MIT */
/* The BPF programs: which are loaded, with which constants, and their maps. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>

#include "base/error.h"
#include "kernel/bpf/object.h"
#include "kernel/process/pid-view.h"
#include "kernel/tracefs/tracefs.h"
#include "latency/layers/latency-internal.h"
#include "latency/bpf/latency.skel.h"

/* Cells with keys take 2 KiB each. */
#define CELLS_DEFAULT	   8192u
#define CELLS_WITHOUT_KEYS 1024u

/* Of the ring in which members come: some thousand. */
#define MEMBERS_BYTES (4u << 20)

#define LAYER(name)   (1u << KY_LATENCY_##name)
#define CALL_LAYERS   (LAYER(SYSCALL) | LAYER(OFFCPU) | LAYER(FIRST_BYTE))
#define THREAD_LAYERS (LAYER(WAKEUP) | LAYER(OFFCPU) | LAYER(LOCK) | LAYER(FILE))
/* Both of the above. */
#define FORK_LAYERS (CALL_LAYERS | LAYER(WAKEUP) | LAYER(LOCK) | LAYER(FILE))

static const struct {
	const char *program;
	const char *tracepoint; /* NULL: none, it is an iterator */
	uint32_t layers;	/* that need it */
} needs[] = {
	{"kymo_seed", NULL, THREAD_LAYERS},
	{"kymo_fork", "sched_process_fork", FORK_LAYERS},
	{"kymo_rename", "task_rename", 0}, /* with keys only */
	{"kymo_enter", "sys_enter", CALL_LAYERS},
	{"kymo_exit", "sys_exit", CALL_LAYERS | LAYER(FILE)},
	{"kymo_waking", "sched_waking", LAYER(WAKEUP)},
	{"kymo_wakeup_new", "sched_wakeup_new", LAYER(WAKEUP)},
	{"kymo_switch", "sched_switch", LAYER(WAKEUP) | LAYER(OFFCPU)},
	{"kymo_insert", "block_rq_insert", LAYER(BLOCK_QUEUE)},
	{"kymo_issue", "block_rq_issue", KY_LATENCY_BLOCK_LAYERS},
	{"kymo_merge", "block_rq_merge", KY_LATENCY_BLOCK_LAYERS},
	{"kymo_complete", "block_rq_complete", KY_LATENCY_BLOCK_LAYERS},
	{"kymo_queue", "net_dev_queue", LAYER(NET_SEND)},
	{"kymo_xmit", "net_dev_xmit", LAYER(NET_SEND)},
	{"kymo_receive", "netif_receive_skb", LAYER(NET_RECEIVE)},
	{"kymo_copy", "skb_copy_datagram_iovec", LAYER(NET_RECEIVE)},
	{"kymo_irq_entry", "irq_handler_entry", LAYER(IRQ)},
	{"kymo_irq_exit", "irq_handler_exit", LAYER(IRQ)},
	{"kymo_softirq_entry", "softirq_entry", LAYER(SOFTIRQ)},
	{"kymo_softirq_exit", "softirq_exit", LAYER(SOFTIRQ)},
	{"kymo_lock_begin", "contention_begin", LAYER(LOCK)},
	{"kymo_lock_end", "contention_end", LAYER(LOCK)},
#define FILE_EVENT(name)                          \
	{                                         \
		"kymo_" #name, #name, LAYER(FILE) \
	}
	FILE_EVENT(ext4_sync_file_enter),
	FILE_EVENT(ext4_sync_file_exit),
	FILE_EVENT(ext4_da_write_begin),
	FILE_EVENT(ext4_da_write_end),
	FILE_EVENT(ext4_write_begin),
	FILE_EVENT(ext4_write_end),
	FILE_EVENT(ext4_journalled_write_end),
	FILE_EVENT(ext4_truncate_enter),
	FILE_EVENT(ext4_truncate_exit),
	FILE_EVENT(ext4_fallocate_enter),
	FILE_EVENT(ext4_fallocate_exit),
	FILE_EVENT(ext4_unlink_enter),
	FILE_EVENT(ext4_unlink_exit),
	FILE_EVENT(f2fs_sync_file_enter),
	FILE_EVENT(f2fs_sync_file_exit),
	FILE_EVENT(f2fs_write_begin),
	FILE_EVENT(f2fs_write_end),
	FILE_EVENT(f2fs_unlink_enter),
	FILE_EVENT(f2fs_unlink_exit),
	FILE_EVENT(nfs_fsync_enter),
	FILE_EVENT(nfs_fsync_exit),
	FILE_EVENT(xfs_file_fsync),
	FILE_EVENT(xfs_file_buffered_read),
	FILE_EVENT(xfs_file_direct_read),
	FILE_EVENT(xfs_file_buffered_write),
	FILE_EVENT(xfs_file_direct_write),
	FILE_EVENT(btrfs_sync_file),
#undef FILE_EVENT
};

#define N_NEEDS (sizeof(needs) / sizeof(needs[0]))

/* Is @tracepoint of a file system there, also of one that is a module? Its system is the first word of its name. */
static bool has_file_event(const struct ky_tracefs *fs, const char *tracepoint)
{
	char path[128];

	snprintf(path, sizeof(path), "events/%.*s/%s", (int)strcspn(tracepoint, "_"), tracepoint,
		 tracepoint);
	return fs->fd >= 0 && faccessat(fs->fd, path, F_OK, 0) == 0;
}

/* Layers whose tracepoints are not all there go; that of file systems, if it has none of its own. */
static void find_absent(struct ky_latency *latency, const struct btf *btf,
			const struct ky_tracefs *fs)
{
	uint32_t absent = LAYER(FILE);

	for (size_t i = 0; i < N_NEEDS; i++) {
		bool of_files = needs[i].layers == LAYER(FILE);

		if (of_files && has_file_event(fs, needs[i].tracepoint))
			absent &= ~LAYER(FILE);
		else if (!of_files && needs[i].tracepoint &&
			 !ky_latency_arguments(btf, needs[i].tracepoint))
			absent |= needs[i].layers;
	}
	latency->absent_layers |= absent & latency->options.layers;
	latency->options.layers &= ~latency->absent_layers;
}

/* Programs of the layers; of file systems, those whose tracepoints this kernel has. */
static void choose_wanted(struct ky_latency *latency, const struct ky_tracefs *fs)
{
	for (size_t i = 0; i < N_NEEDS; i++) {
		struct bpf_program *program =
			bpf_object__find_program_by_name(latency->skeleton->obj, needs[i].program);
		bool wanted = needs[i].layers & latency->options.layers;

		if (needs[i].layers == LAYER(FILE))
			wanted = wanted && has_file_event(fs, needs[i].tracepoint);
		if (program)
			bpf_program__set_autoload(program, wanted);
	}
}

static int choose_programs(struct ky_latency *latency, struct kymo_error *err)
{
	struct btf *btf = btf__load_vmlinux_btf();
	struct ky_tracefs fs;

	if (!btf)
		return ky_error_errno(err, errno, "cannot read the kernel's type information");
	if (ky_tracefs_open(&fs, NULL) < 0)
		fs.fd = -1;
	find_absent(latency, btf, &fs);
	/* The first argument is the tracer's own. */
	latency->skeleton->rodata->config.has_prev_state =
		ky_latency_arguments(btf, "sched_switch") >= 5;
	choose_wanted(latency, &fs);
	ky_tracefs_close(&fs);
	btf__free(btf);
	if (!latency->options.layers)
		return ky_error_set(err, KYMO_E_UNSUPPORTED,
				    "this kernel has not the tracepoints of these layers");
	bpf_program__set_autoload(latency->skeleton->progs.kymo_rename,
				  latency->options.by == KY_LATENCY_BY_PROCESS);
	return KYMO_OK;
}

static int latency_load_configure(struct ky_latency *latency, struct kymo_error *err)
{
	const struct ky_latency_options *options = &latency->options;
	struct ky_latency_config *config = &latency->skeleton->rodata->config;
	uint32_t max = options->max_cells ? options->max_cells
		       : options->by	  ? CELLS_DEFAULT
					  : CELLS_WITHOUT_KEYS;
	int ret = ky_latency_kernel_id(&latency->options.pid, err);

	if (ret >= 0)
		ret = choose_programs(latency, err);
	if (ret < 0)
		return ret;
	config->by = options->by;
	config->tgid = options->pid;
	config->own_tgid = ky_pid_this_process();
	config->calls = (options->layers & CALL_LAYERS) != 0;
	config->threads = (options->layers & THREAD_LAYERS) != 0;
	config->exits[0] = SYS_exit;
	config->exits[1] = SYS_exit_group;
	config->syscall = (options->layers & LAYER(SYSCALL)) != 0;
	config->first_byte = (options->layers & LAYER(FIRST_BYTE)) != 0;
	config->file = (options->layers & LAYER(FILE)) != 0;
	config->wakeup = (options->layers & LAYER(WAKEUP)) != 0;
	config->offcpu = (options->layers & LAYER(OFFCPU)) != 0;
	config->stacks = options->stacks;
	config->members_ns = options->members_ns ? options->members_ns : UINT64_MAX;
	if (options->members_ns)
		bpf_map__set_max_entries(latency->skeleton->maps.kymo_members, MEMBERS_BYTES);
	bpf_map__set_max_entries(latency->skeleton->maps.kymo_cells, max);
	if (options->by == KY_LATENCY_BY_PROCESS)
		bpf_map__set_max_entries(latency->skeleton->maps.kymo_names, max);
	return ky_latency_choose_calls(options, config, err);
}

static int latency_load_member(void *data, void *record, size_t size)
{
	struct ky_latency *latency = data;

	if (size >= sizeof(struct ky_latency_member))
		latency->take_member(latency->take_data, record);
	return ky_ring_turn_next(&latency->turn);
}

int ky_latency_members(struct ky_latency *latency, ky_latency_take_member take, void *data,
		       struct kymo_error *err)
{
	latency->take_member = take;
	latency->take_data = data;
	if (!latency->members)
		return KYMO_OK;
	return ky_ring_turn_read(&latency->turn, latency->members, err);
}

static int attach_all(struct ky_latency *latency, struct kymo_error *err)
{
	struct bpf_program *seed = latency->skeleton->progs.kymo_seed;
	int ret = bpf_program__autoload(seed) ? ky_latency_seed(seed, err) : KYMO_OK;

	if (ret < 0)
		return ret;
	bpf_program__set_autoattach(seed, false);
	if (latency->options.members_ns) {
		latency->members =
			ring_buffer__new(bpf_map__fd(latency->skeleton->maps.kymo_members),
					 latency_load_member, latency, NULL);
		if (!latency->members)
			return ky_bpf_refused(err, errno, "cannot map a BPF ring buffer");
	}
	ret = latency_bpf__attach(latency->skeleton);
	return ret < 0 ? ky_bpf_refused(err, -ret, "cannot attach a BPF program") : KYMO_OK;
}

static int load(struct ky_latency *latency, struct kymo_error *err)
{
	struct ky_bpf_opening opening;
	int ret = ky_bpf_begin(&opening, err);

	if (!ret) {
		latency->skeleton = latency_bpf__open_opts(&opening.options);
		ret = latency->skeleton ? latency_load_configure(latency, err) : KYMO_OK;
	}
	if (!ret)
		ret = ky_bpf_load(&opening, latency->skeleton ? latency->skeleton->skeleton : NULL,
				  err);
	ky_bpf_end(&opening);
	return ret;
}

int ky_latency_load(struct ky_latency *latency, struct kymo_error *err)
{
	int ret = latency->options.layers ? ky_latency_need_btf(err) : KYMO_OK;

	if (ret < 0 || !latency->options.layers)
		return ret;
	ret = load(latency, err);
	return ret < 0 ? ret : attach_all(latency, err);
}

void ky_latency_unload(struct ky_latency *latency)
{
	ring_buffer__free(latency->members);
	latency_bpf__destroy(latency->skeleton);
	latency->skeleton = NULL;
}

uint64_t ky_latency_misses(const struct ky_latency *latency)
{
	struct bpf_program *program;
	uint64_t n = 0;

	if (latency->skeleton)
		bpf_object__for_each_program(program, latency->skeleton->obj) n +=
			ky_latency_program_misses(program);
	return n;
}

struct ky_latency_shared *ky_latency_shared(const struct ky_latency *latency)
{
	return latency->skeleton ? &latency->skeleton->bss->shared : NULL;
}

int ky_latency_places_fd(const struct ky_latency *latency)
{
	return bpf_map__fd(latency->skeleton->maps.kymo_places);
}

int ky_latency_cells_fd(const struct ky_latency *latency)
{
	return bpf_map__fd(latency->skeleton->maps.kymo_cells);
}

bool ky_latency_comm(const struct ky_latency *latency, uint32_t tgid,
		     char comm[KY_LATENCY_COMM_BYTES])
{
	return latency->skeleton &&
	       bpf_map_lookup_elem(bpf_map__fd(latency->skeleton->maps.kymo_names), &tgid, comm) ==
		       0;
}

uint32_t ky_latency_cells_max(const struct ky_latency *latency)
{
	return bpf_map__max_entries(latency->skeleton->maps.kymo_cells);
}
