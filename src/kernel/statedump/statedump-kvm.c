/* SPDX-License-Identifier: MIT */
/* The state dump of virtual machines: their CPUs, the threads that run these, and what the guest's time stamp counter is to the host's. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernel/statedump/statedump-run.h"
#include "os/file.h"

/* In debugfs: PID-FD/vcpuN/tsc-offset. */
#define KVM_DIRECTORY	 "/sys/kernel/debug/kvm"
#define NUMBER_MAX_BYTES 64
/* A ratio of 1, where the kernel has no such file: the counter is never scaled. */
#define RATIO_BITS_DEFAULT 48

/* False: there is no such file, or no number in it. */
static bool statedump_kvm_number(struct ky_dump_run *run, int fd, const char *vcpu,
				 const char *file, int64_t *number)
{
	struct ky_strbuf *text = &run->proc.text;
	char path[300], *end;

	snprintf(path, sizeof(path), "%s/%s", vcpu, file);
	if (ky_read_file(fd, path, NUMBER_MAX_BYTES, text) < 0 || !text->data)
		return false;
	*number = (int64_t)(text->data[0] == '-' ? (uint64_t)strtoll(text->data, &end, 10)
						 : strtoull(text->data, &end, 10));
	return end != text->data;
}

static int statedump_kvm_vcpu(struct ky_dump_run *run, int fd, int32_t vm, const char *name)
{
	struct ky_dump_body *body = &run->body;
	int64_t offset, ratio, bits, tid = 0;
	char *end;
	unsigned long number;

	if (strncmp(name, "vcpu", 4) != 0)
		return KYMO_OK;
	number = strtoul(name + 4, &end, 10);
	if (end == name + 4 || *end || !statedump_kvm_number(run, fd, name, "tsc-offset", &offset))
		return KYMO_OK;
	if (!statedump_kvm_number(run, fd, name, "tsc-scaling-ratio", &ratio) ||
	    !statedump_kvm_number(run, fd, name, "tsc-scaling-ratio-frac-bits", &bits)) {
		bits = RATIO_BITS_DEFAULT;
		ratio = INT64_C(1) << RATIO_BITS_DEFAULT;
	}
	(void)statedump_kvm_number(run, fd, name, "pid", &tid); /* since Linux 6.0 */
	ky_dump_put32(body, (uint32_t)vm);
	ky_dump_put32(body, (uint32_t)number);
	ky_dump_put32(body, (uint32_t)tid);
	ky_dump_put64(body, (uint64_t)offset);
	ky_dump_put64(body, (uint64_t)ratio);
	ky_dump_put8(body, (uint8_t)bits);
	return ky_dump_emit(run, KY_STATEDUMP_KVM_VCPU);
}

static int statedump_kvm_vm(struct ky_dump_run *run, int all, const char *name)
{
	int fd = openat(all, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC), ret = KYMO_OK;
	int32_t vm = (int32_t)strtol(name, NULL, 10);
	DIR *dir = fd < 0 || vm <= 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return KYMO_OK;
	}
	while (ret == KYMO_OK && (entry = readdir(dir)))
		ret = statedump_kvm_vcpu(run, fd, vm, entry->d_name);
	closedir(dir);
	return ret;
}

int ky_dump_kvm(struct ky_dump_run *run)
{
	const struct dirent *entry;
	int ret = KYMO_OK;
	DIR *dir;

	if (!ky_dump_wants(run, KY_STATEDUMP_BIT(KY_STATEDUMP_KVM_VCPU)))
		return KYMO_OK;
	dir = opendir(KVM_DIRECTORY);
	while (dir && ret == KYMO_OK && (entry = readdir(dir)))
		ret = statedump_kvm_vm(run, dirfd(dir), entry->d_name);
	if (dir)
		closedir(dir);
	return ret;
}
