/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "kernel/statedump/statedump-run.h"
#include "os/file.h"

#define SYSFS_MAX_BYTES	  4096
#define CPUINFO_MAX_BYTES (4 << 20)

/* Call @each for every entry of directory @path; 0 when none exists. */
static int each_entry(struct ky_dump_run *run, const char *path,
		      int (*each)(struct ky_dump_run *run, int dirfd, const char *name))
{
	DIR *dir = ky_dir_open(AT_FDCWD, path);
	struct dirent *entry;
	int ret = KYMO_OK;

	if (!dir)
		return KYMO_OK;
	while (ret == KYMO_OK && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			ret = each(run, dirfd(dir), entry->d_name);
	closedir(dir);
	return ret;
}

/* Read sysfs file @dir/@name without its line feed; false when it cannot be read. */
static bool read_sysfs(struct ky_dump_run *run, int dirfd, const char *dir, const char *name)
{
	struct ky_strbuf *text = &run->proc.text;
	char path[NAME_MAX + 64];
	int ret;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	ret = ky_read_file(dirfd, path, SYSFS_MAX_BYTES, text);
	if ((ret < 0 && ret != -EFBIG) || !text->data)
		return false;
	text->data[strcspn(text->data, "\n")] = '\0';
	return true;
}

static int dump_block_device(struct ky_dump_run *run, int dirfd, const char *name)
{
	unsigned int major, minor;

	if (!read_sysfs(run, dirfd, name, "dev") ||
	    sscanf(ky_strbuf_text(&run->proc.text), "%u:%u", &major, &minor) != 2)
		return KYMO_OK;
	/* The kernel's own dev_t, which the block events carry: 12 bits and 20. */
	ky_dump_put32(&run->body, major << 20 | (minor & 0xfffff));
	ky_dump_put_text(&run->body, name);
	return ky_dump_emit(run, KY_STATEDUMP_BLOCK_DEVICE);
}

static int dump_interface(struct ky_dump_run *run, const char *name, uint32_t address_be)
{
	ky_dump_put_text(&run->body, name);
	ky_dump_put32(&run->body, address_be);
	return ky_dump_emit(run, KY_STATEDUMP_NETWORK_INTERFACE);
}

static bool has_ipv4(const struct ifaddrs *list, const char *name)
{
	for (; list; list = list->ifa_next)
		if (list->ifa_addr && list->ifa_addr->sa_family == AF_INET &&
		    !strcmp(list->ifa_name, name))
			return true;
	return false;
}

/* Each IPv4 address; an interface that has none appears once, with 0. */
static int dump_interfaces(struct ky_dump_run *run)
{
	struct ifaddrs *list = NULL;
	int ret = KYMO_OK;

	if (getifaddrs(&list) < 0) {
		run->dump->missing += errno == EMFILE || errno == ENFILE;
		return KYMO_OK;
	}
	for (struct ifaddrs *at = list; at && ret == KYMO_OK; at = at->ifa_next) {
		int family = at->ifa_addr ? at->ifa_addr->sa_family : AF_UNSPEC;

		if (family == AF_INET)
			ret = dump_interface(run, at->ifa_name,
					     ((const struct sockaddr_in *)(void *)at->ifa_addr)
						     ->sin_addr.s_addr);
		else if (family == AF_PACKET && !has_ipv4(list, at->ifa_name))
			ret = dump_interface(run, at->ifa_name, 0);
	}
	freeifaddrs(list);
	return ret;
}

/* The handlers of one interrupt: "a,b" in `actions`, each an event. */
static int dump_irq(struct ky_dump_run *run, int dirfd, const char *name)
{
	const char *action;
	char chip[64];
	int ret = KYMO_OK;

	if (!read_sysfs(run, dirfd, name, "chip_name"))
		return KYMO_OK;
	snprintf(chip, sizeof(chip), "%.63s", ky_strbuf_text(&run->proc.text));
	if (!read_sysfs(run, dirfd, name, "actions"))
		return KYMO_OK;
	action = ky_strbuf_text(&run->proc.text);
	while (ret == KYMO_OK && *action) {
		size_t len = strcspn(action, ",");

		ky_dump_put32(&run->body, (uint32_t)strtoul(name, NULL, 10));
		ky_dump_put_text(&run->body, chip);
		ky_dump_put_textn(&run->body, action, len);
		ky_dump_put32(&run->body, 0);
		ret = ky_dump_emit(run, KY_STATEDUMP_INTERRUPT);
		action += len + (action[len] == ',');
	}
	return ret;
}

/* ---- CPUs ------------------------------------------------------------------------------- */

struct cpu {
	unsigned int id, family, model, physical_id, core_id, cores;
	char vendor[64], model_name[128];
};

/* One "key\t: value" line of /proc/cpuinfo. */
static void take_cpu_line(struct cpu *cpu, const char *line)
{
	static const struct {
		const char *key;
		size_t at;
	} numbers[] = {
		{"processor", offsetof(struct cpu, id)},
		{"cpu family", offsetof(struct cpu, family)},
		{"model", offsetof(struct cpu, model)},
		{"physical id", offsetof(struct cpu, physical_id)},
		{"core id", offsetof(struct cpu, core_id)},
		{"cpu cores", offsetof(struct cpu, cores)},
	};
	size_t key_len = strcspn(line, "\t:"), len;
	const char *value = strchr(line, ':');

	if (!value)
		return;
	value += 1 + strspn(value + 1, " ");
	len = strlen(value);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (key_len == strlen(numbers[i].key) && !memcmp(line, numbers[i].key, key_len)) {
			unsigned int number = (unsigned int)strtoul(value, NULL, 10);

			memcpy((char *)cpu + numbers[i].at, &number, sizeof(number));
		}
	if (key_len == 9 && !memcmp(line, "vendor_id", 9))
		snprintf(cpu->vendor, sizeof(cpu->vendor), "%.*s", (int)len, value);
	else if (key_len == 10 && !memcmp(line, "model name", 10))
		snprintf(cpu->model_name, sizeof(cpu->model_name), "%.*s", (int)len, value);
}

static int dump_cpu(struct ky_dump_run *run, const char *architecture, const struct cpu *cpu)
{
	struct ky_dump_body *body = &run->body;

	ky_dump_put_text(body, architecture);
	ky_dump_put16(body, (uint16_t)cpu->id);
	ky_dump_put_text(body, cpu->vendor);
	ky_dump_put8(body, (uint8_t)cpu->family);
	ky_dump_put8(body, (uint8_t)cpu->model);
	ky_dump_put_text(body, cpu->model_name);
	ky_dump_put16(body, (uint16_t)cpu->physical_id);
	ky_dump_put16(body, (uint16_t)cpu->core_id);
	ky_dump_put16(body, (uint16_t)cpu->cores);
	return ky_dump_emit(run, KY_STATEDUMP_CPU_TOPOLOGY);
}

/* Entries of /proc/cpuinfo end with an empty line. */
static int dump_cpus(struct ky_dump_run *run)
{
	struct ky_strbuf *text = &run->proc.text;
	struct utsname uts;
	struct cpu cpu = {0};
	bool any = false;
	char *line, *rest;
	int ret;

	ret = ky_read_file(run->proc.fd, "cpuinfo", CPUINFO_MAX_BYTES, text);
	if ((ret < 0 && ret != -EFBIG) || !text->data || uname(&uts) < 0)
		return KYMO_OK;
	ret = KYMO_OK;
	for (rest = text->data; ret == KYMO_OK && (line = strsep(&rest, "\n"));) {
		if (*line) {
			any = true;
			take_cpu_line(&cpu, line);
		} else if (any) {
			/* LTTng says "x86" for both widths. */
			ret = dump_cpu(run, !strcmp(uts.machine, "x86_64") ? "x86" : uts.machine,
				       &cpu);
			memset(&cpu, 0, sizeof(cpu));
			any = false;
		}
	}
	return ret;
}

int ky_dump_devices(struct ky_dump_run *run)
{
	int ret = KYMO_OK;

	if (ky_dump_wants(run, KY_STATEDUMP_BIT(KY_STATEDUMP_BLOCK_DEVICE)))
		ret = each_entry(run, "/sys/class/block", dump_block_device);
	if (ret == KYMO_OK && ky_dump_wants(run, KY_STATEDUMP_BIT(KY_STATEDUMP_NETWORK_INTERFACE)))
		ret = dump_interfaces(run);
	if (ret == KYMO_OK && ky_dump_wants(run, KY_STATEDUMP_BIT(KY_STATEDUMP_INTERRUPT)))
		ret = each_entry(run, "/sys/kernel/irq", dump_irq);
	if (ret == KYMO_OK && ky_dump_wants(run, KY_STATEDUMP_BIT(KY_STATEDUMP_CPU_TOPOLOGY)))
		ret = dump_cpus(run);
	return ret;
}
