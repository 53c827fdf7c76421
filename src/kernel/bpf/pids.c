/* SPDX-License-Identifier: MIT */
#include "kernel/bpf/pids.h"

#include <errno.h>
#include <stdlib.h>

#include <bpf/bpf.h>

#include "base/error.h"
#include "kernel/bpf/object.h"
#include "kernel/bpf/pids.skel.h"

struct ky_bpf_pids {
	struct pids_bpf *skeleton;
	struct bpf_link *link;
};

static int pids_attach(struct ky_bpf_pids *pids, struct kymo_error *err)
{
	pids->link = bpf_program__attach_iter(pids->skeleton->progs.kymo_pids, NULL);
	return pids->link ? KYMO_OK : ky_bpf_refused(err, errno, "cannot attach a BPF program");
}

static int pids_load(struct ky_bpf_pids *pids, struct kymo_error *err)
{
	struct ky_bpf_opening opening;
	int ret;

	if (!ky_bpf_has_btf())
		return ky_error_set(
			err, KYMO_E_UNSUPPORTED,
			"this kernel does not provide the IDs of its threads (BTF, Linux 5.8)");
	ret = ky_bpf_begin(&opening, err);
	if (!ret) {
		pids->skeleton = pids_bpf__open_opts(&opening.options);
		ret = ky_bpf_load(&opening, pids->skeleton ? pids->skeleton->skeleton : NULL, err);
	}
	ky_bpf_end(&opening);
	return ret < 0 ? ret : pids_attach(pids, err);
}

int ky_bpf_pids_load(struct ky_bpf_pids **pids, struct kymo_error *err)
{
	int ret;

	*pids = calloc(1, sizeof(**pids));
	if (!*pids)
		return ky_error_nomem(err);
	ret = pids_load(*pids, err);
	if (ret < 0) {
		ky_bpf_pids_unload(*pids);
		*pids = NULL;
	}
	return ret;
}

void ky_bpf_pids_unload(struct ky_bpf_pids *pids)
{
	if (!pids)
		return;
	bpf_link__destroy(pids->link);
	pids_bpf__destroy(pids->skeleton);
	free(pids);
}

int ky_bpf_pids_read(struct ky_bpf_pids *pids, struct kymo_error *err)
{
	int fd = bpf_iter_create(bpf_link__fd(pids->link));

	return fd < 0 ? ky_bpf_refused(err, -fd, "cannot run a BPF program") : fd;
}
