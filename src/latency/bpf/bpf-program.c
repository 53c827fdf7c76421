/* SPDX-License-Identifier: MIT */
#include "latency/bpf/bpf-program.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>

#include "base/error.h"
#include "kernel/bpf/object.h"
#include "kernel/process/pid-view.h"

int ky_latency_need_btf(struct kymo_error *err)
{
	int code;

	if (ky_bpf_has_btf())
		return KYMO_OK;
	code = ky_error_set(err, KYMO_E_UNSUPPORTED,
			    "this kernel has no type information (BTF) for BPF programs");
	ky_error_hint(err, "record a trace instead, and use kymo report");
	return code;
}

uint32_t ky_latency_arguments(const struct btf *btf, const char *tracepoint)
{
	char name[64] = "btf_trace_";
	const struct btf_type *type;
	int id;

	strncat(name, tracepoint, sizeof(name) - strlen(name) - 1);
	id = btf__find_by_name_kind(btf, name, BTF_KIND_TYPEDEF);
	type = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;
	type = type ? btf__type_by_id(btf, type->type) : NULL; /* the pointer */
	type = type ? btf__type_by_id(btf, type->type) : NULL; /* the function */
	return type && btf_is_func_proto(type) ? btf_vlen(type) : 0;
}

int ky_latency_kernel_id(int32_t *id, struct kymo_error *err)
{
	struct ky_pid_view view;
	int32_t own = *id;

	if (!own)
		return KYMO_OK;
	/* Where it is not known, ids are taken as they are. */
	if (ky_pid_view_open(&view, err) >= 0 && view.is_foreign && !view.is_blind)
		*id = ky_pid_to_kernel(&view, own);
	ky_pid_view_close(&view);
	return *id ? KYMO_OK : ky_error_set(err, KYMO_E_NOT_FOUND, "there is no thread %d", own);
}

int ky_latency_seed(struct bpf_program *program, struct kymo_error *err)
{
	struct bpf_link *link;
	char byte;
	int fd;

	link = bpf_program__attach_iter(program, NULL);
	if (!link)
		return ky_bpf_refused(err, errno, "cannot attach a BPF program");
	fd = bpf_iter_create(bpf_link__fd(link));
	if (fd >= 0) {
		while (read(fd, &byte, 1) > 0)
			;
		close(fd);
	}
	bpf_link__destroy(link);
	return fd < 0 ? ky_bpf_refused(err, -fd, "cannot run a BPF program") : KYMO_OK;
}

uint64_t ky_latency_program_misses(const struct bpf_program *program)
{
	struct bpf_prog_info info = {0};
	uint32_t size = sizeof(info);
	int fd = bpf_program__fd(program);

	return fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &size) ? 0 : info.recursion_misses;
}
