/* SPDX-License-Identifier: MIT */
#include "kernel/bpf/object.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>

#include "base/error.h"
#include "kernel/bpf/libbpf.h"
#include "os/file.h"

#define BTF_PATH "/sys/kernel/btf/vmlinux"

/* Kernels before 6.4 keep the log's beginning, of which the end is wanted. Memory that is not written is not there. */
#define LOG_BYTES (4u << 20)

/* What libbpf has said first that is wrong with the object in hand, in this thread. */
static _Thread_local char said[256];

__attribute__((format(printf, 2, 0))) static int hear(enum libbpf_print_level level,
						      const char *format, va_list args)
{
	if (level == LIBBPF_WARN && !said[0])
		vsnprintf(said, sizeof(said), format, args);
	return 0;
}

int ky_bpf_refused(struct kymo_error *err, int errnum, const char *what)
{
	int code;

	switch (errnum) {
	case EPERM:
	case EACCES:
		code = ky_error_set(err, KYMO_E_PERMISSION, "%s: the kernel does not allow BPF",
				    what);
		ky_error_hint(err, "run as root (or with CAP_BPF and CAP_PERFMON)");
		return code;
	case ENOSYS:
		return ky_error_set(err, KYMO_E_UNSUPPORTED, "%s: this kernel has no BPF", what);
	case ENOMEM:
		return ky_error_set(err, KYMO_E_MEMORY, "%s: not enough memory", what);
	default:
		return ky_error_errno(err, errnum, "%s", what);
	}
}

/* ---- types of the kernel ---------------------------------------------------------------- */

bool ky_bpf_has_btf(void)
{
	uint16_t magic = 0;
	int fd = open(BTF_PATH, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	if (read(fd, &magic, sizeof(magic)) != (ssize_t)sizeof(magic))
		magic = 0;
	close(fd);
	return magic == BTF_MAGIC;
}

int ky_bpf_use_btf(struct ky_bpf_opening *opening, struct btf *btf, struct kymo_error *err)
{
	uint32_t size = 0;
	const void *data = btf ? btf__raw_data(btf, &size) : NULL;
	int ret = 0;

	opening->btf_fd = memfd_create("kymo-btf", MFD_CLOEXEC);
	if (!data)
		ret = -ENOMEM;
	else if (opening->btf_fd < 0)
		ret = -errno;
	else
		ret = ky_write_all(opening->btf_fd, data, size);
	btf__free(btf);
	if (ret < 0)
		return ky_error_errno(err, -ret, "cannot make type information for BPF");
	snprintf(opening->btf_path, sizeof(opening->btf_path), "/proc/self/fd/%d", opening->btf_fd);
	opening->options.btf_custom_path = opening->btf_path;
	return KYMO_OK;
}

bool ky_bpf_has_helper(enum bpf_func_id helper)
{
	return libbpf_probe_bpf_helper(BPF_PROG_TYPE_RAW_TRACEPOINT, helper, NULL) > 0;
}

/* ---- loading ---------------------------------------------------------------------------- */

int ky_bpf_begin(struct ky_bpf_opening *opening, struct kymo_error *err)
{
	int ret;

	memset(opening, 0, sizeof(*opening));
	opening->btf_fd = -1;
	opening->options.sz = sizeof(opening->options);
	ret = ky_libbpf_load(err);
	if (ret < 0)
		return ret;
	libbpf_set_print(hear);
	said[0] = '\0';
	opening->log = calloc(1, LOG_BYTES);
	if (!opening->log)
		return ky_error_nomem(err);
	opening->options.kernel_log_buf = opening->log;
	opening->options.kernel_log_size = LOG_BYTES;
	/* Types of nothing: to programs that ask, this kernel has no such struct. Else libbpf would not load them. */
	return ky_bpf_has_btf() ? KYMO_OK : ky_bpf_use_btf(opening, btf__new_empty(), err);
}

/* The verifier's last line but its statistics says what it did not like. */
static const char *verdict(char *log)
{
	char *end = strstr(log, "\nprocessed "), *line;

	if (end)
		*end = '\0';
	line = strrchr(log, '\n');
	return line ? line + 1 : log;
}

int ky_bpf_load(struct ky_bpf_opening *opening, struct bpf_object_skeleton *skeleton,
		struct kymo_error *err)
{
	int ret = skeleton ? bpf_object__load_skeleton(skeleton) : -errno, code;

	if (ret == 0)
		return KYMO_OK;
	if (*opening->log) {
		code = ky_error_set(err, KYMO_E_UNSUPPORTED,
				    "the kernel's verifier refuses a BPF program");
		ky_error_hint(err, "its message: %.300s", verdict(opening->log));
		return code;
	}
	code = ky_bpf_refused(err, -ret, "cannot load a BPF program");
	if (code != KYMO_E_PERMISSION && said[0])
		ky_error_hint(err, "libbpf says: %.*s", (int)strcspn(said, "\n"), said);
	return code;
}

void ky_bpf_end(struct ky_bpf_opening *opening)
{
	free(opening->log);
	if (opening->btf_fd >= 0)
		close(opening->btf_fd);
}

/* ---- maps ------------------------------------------------------------------------------- */

uint32_t ky_bpf_possible_cpus(void)
{
	long n = sysconf(_SC_NPROCESSORS_CONF);

	return n > 0 ? (uint32_t)n : 1;
}

int ky_bpf_values_of_key(uint32_t *n, struct kymo_error *err)
{
	int ret = ky_libbpf_load(err), cpus;

	if (ret < 0)
		return ret;
	cpus = libbpf_num_possible_cpus();
	if (cpus < 0)
		return ky_error_errno(err, -cpus, "cannot count the CPUs");
	*n = (uint32_t)cpus;
	return KYMO_OK;
}

static int make_region_map(const struct ky_bpf_regions *regions, const struct bpf_map *map)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = bpf_map__map_flags(map));

	if (regions->bytes > UINT32_MAX)
		return -E2BIG;
	return bpf_map_create(bpf_map__type(map), bpf_map__name(map), bpf_map__key_size(map),
			      (uint32_t)regions->bytes, regions->n, &options);
}

int ky_bpf_regions_make(struct ky_bpf_regions *regions, struct bpf_map *map, uint64_t least_bytes,
			struct kymo_error *err)
{
	void *at = MAP_FAILED;
	int fd, ret;

	while ((fd = make_region_map(regions, map)) < 0 && regions->data_bytes / 2 >= least_bytes) {
		regions->data_bytes /= 2;
		regions->bytes -= regions->data_bytes;
	}
	if (fd < 0) {
		*regions = (struct ky_bpf_regions){0};
		return ky_bpf_refused(err, -fd, "cannot create a BPF map");
	}
	ret = bpf_map__reuse_fd(map, fd);
	if (ret == 0) {
		at = mmap(NULL, regions->bytes * regions->n, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			  0);
		ret = at == MAP_FAILED ? -errno : 0;
	}
	close(fd);
	if (ret < 0) {
		*regions = (struct ky_bpf_regions){0};
		return ky_error_errno(err, -ret, "cannot map the buffers of BPF");
	}
	regions->at = at;
	return KYMO_OK;
}

void ky_bpf_regions_unmap(struct ky_bpf_regions *regions)
{
	if (regions->at)
		munmap(regions->at, regions->bytes * regions->n);
	*regions = (struct ky_bpf_regions){0};
}

/* ---- attaching -------------------------------------------------------------------------- */

int ky_bpf_attach_raw(int prog_fd, const char *name, struct kymo_error *err)
{
	int fd = bpf_raw_tracepoint_open(name, prog_fd);

	if (fd == -ENOENT)
		return ky_error_set(err, KYMO_E_NOT_FOUND, "there is no tracepoint %s", name);
	return fd < 0 ? ky_bpf_refused(err, -fd, "cannot attach a BPF program") : fd;
}

int ky_bpf_load_copy(const struct bpf_program *program, enum bpf_prog_type type, int32_t any,
		     uint32_t number)
{
	size_t n = bpf_program__insn_cnt(program), n_found = 0;
	struct bpf_insn *insns = malloc(n * sizeof(*insns));
	int fd;

	if (!insns)
		return -ENOMEM;
	memcpy(insns, bpf_program__insns(program), n * sizeof(*insns));
	for (size_t i = 0; i < n; i++) {
		if (insns[i].code != (BPF_ALU64 | BPF_MOV | BPF_K) || insns[i].imm != any)
			continue;
		insns[i].imm = (int32_t)number;
		n_found++;
	}
	fd = n_found != 1 ? -EINVAL
			  : bpf_prog_load(type, "kymo_copy", "Dual MIT/GPL", insns, n, NULL);
	free(insns);
	return fd;
}
