/* SPDX-License-Identifier: MIT */
/* What people call layers, devices, interrupts, users, groups. */
#include <fcntl.h>
#include <net/if.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "latency/layers/latency-internal.h"
#include "os/block-name.h"
#include "os/file.h"
#include "record/common/cgroup.h"

static const struct {
	const char *name, *title, *help;
} layers[KY_LATENCY_LAYERS] = {
	[KY_LATENCY_SYSCALL] = {"syscall", "System calls", "from entry to return"},
	[KY_LATENCY_WAKEUP] = {"wakeup", "Wake-ups", "from the wake-up until the thread runs"},
	[KY_LATENCY_OFFCPU] = {"offcpu", "Off the CPU",
			       "from leaving the CPU until the thread runs again"},
	[KY_LATENCY_BLOCK_QUEUE] = {"block-queue", "Block: in the queue",
				    "from insertion into the queue to issue"},
	[KY_LATENCY_BLOCK_DEVICE] = {"block-device", "Block: at the device",
				     "from issue to completion"},
	[KY_LATENCY_FLUSH] = {"flush", "Flushes of caches", "from issue to completion"},
	[KY_LATENCY_IRQ] = {"irq", "Interrupt handlers", "the run of a handler"},
	[KY_LATENCY_SOFTIRQ] = {"softirq", "Softirqs", "the run of a softirq's handler"},
	[KY_LATENCY_NET_SEND] = {"net-send", "Packets sent",
				 "from the queue of the interface to the device"},
	[KY_LATENCY_NET_RECEIVE] = {"net-receive", "Packets received",
				    "from the interface to the program's memory"},
	[KY_LATENCY_FIRST_BYTE] = {"first-byte", "Time to first byte",
				   "from accept to the first write to the connection"},
	[KY_LATENCY_LOCK] = {"lock", "Locks of the kernel",
			     "from the first try until the thread has the lock"},
	[KY_LATENCY_FILE] = {"file", "File system",
			     "the file system's part of a call, from begin to end"},
	[KY_LATENCY_PROGRAM] = {"program", "Program trackers",
				"from KYMO_LATENCY_BEGIN to KYMO_LATENCY_END in a program"},
	[KY_LATENCY_TRACK] = {"track", "Trackers", "from one event to another one"},
	[KY_LATENCY_CHAIN] = {"chain", "From an interrupt to user space",
			      "the parts of the whole, one after the other"},
};

static const char *const call_kinds[KY_LATENCY_CALL_KINDS] = {
	"other", "read", "write", "sync", "open", "close", "poll", "futex", "sleep",
};

static const char *const reasons[KY_LATENCY_OFF_REASONS] = {
	"none",	      "preempted", "yielded",	  "read",    "write",	"sync",
	"poll",	      "futex",	   "sleep",	  "child",   "device",	"kernel",
	"page fault", "stopped",   "system call", "kthread", "unknown",
};

/* As perf lock contention calls them. */
static const char *const locks[KY_LATENCY_LOCK_KINDS] = {
	"semaphore", "spinlock", "rwlock:R", "rwlock:W",   "mutex",
	"rwsem:R",   "rwsem:W",	 "rt-mutex", "pcpu-sem:R", "pcpu-sem:W",
};

static const char *const file_ops[KY_LATENCY_FILE_OPS] = {
	"ext4 sync", "ext4 write", "ext4 truncate", "ext4 allocate", "ext4 unlink",
	"f2fs sync", "f2fs write", "f2fs unlink",   "nfs sync",	     "xfs sync",
	"xfs read",  "xfs write",  "btrfs sync",
};

static const char *const softirqs[] = {
	"hi",	    "timer",   "net_tx", "net_rx",  "block",
	"irq_poll", "tasklet", "sched",	 "hrtimer", "rcu",
};

static const char *const chain_parts[KY_CHAIN_PARTS] = {
	"whole", "timer", "handler", "softirq wait", "softirq", "wake-up", "return",
};

const char *ky_chain_part_name(enum ky_chain_part part)
{
	return chain_parts[part];
}

const char *ky_softirq_name(uint32_t vector)
{
	return vector < sizeof(softirqs) / sizeof(softirqs[0]) ? softirqs[vector] : NULL;
}

static const char *const operations[] = {"read", "write", "flush", "discard"};

const char *ky_latency_layer_name(enum ky_latency_layer layer)
{
	return layers[layer].name;
}

const char *ky_latency_layer_title(enum ky_latency_layer layer)
{
	return layers[layer].title;
}

const char *ky_latency_layer_help(enum ky_latency_layer layer)
{
	return layers[layer].help;
}

/* ---- sub-keys --------------------------------------------------------------------------- */

static void put_device(struct ky_strbuf *out, uint64_t sub)
{
	ky_os_block_name(out, KY_LATENCY_MAJOR(sub), KY_LATENCY_MINOR(sub));
}

static void put_interface(struct ky_strbuf *out, uint64_t index)
{
	char name[IF_NAMESIZE];

	if (if_indextoname((unsigned int)index, name))
		ky_strbuf_adds(out, name);
	else
		ky_strbuf_addf(out, "interface %llu", (unsigned long long)index);
}

static void put_operation(struct ky_strbuf *out, uint8_t op)
{
	if (op < sizeof(operations) / sizeof(operations[0]))
		ky_strbuf_addf(out, " %s", operations[op]);
	else
		ky_strbuf_addf(out, " op%u", op);
}

void ky_latency_put_irq(struct ky_strbuf *out, uint64_t irq)
{
	struct ky_strbuf actions = KY_STRBUF_INIT;
	char path[64];

	ky_strbuf_addf(out, "%llu", (unsigned long long)irq);
	snprintf(path, sizeof(path), "/sys/kernel/irq/%llu/actions", (unsigned long long)irq);
	if (ky_read_file(AT_FDCWD, path, 4096, &actions) >= 0 && actions.len > 1) {
		ky_strbuf_addc(out, ' ');
		ky_strbuf_add(out, actions.data, strcspn(actions.data, "\n"));
	}
	ky_strbuf_fini(&actions);
}

static void put_call(struct ky_strbuf *out, const struct ky_latency *latency, uint64_t kind)
{
	if (kind < KY_LATENCY_CALL_KINDS)
		ky_strbuf_adds(out, call_kinds[kind]);
	else if (kind - KY_LATENCY_CALL_KINDS < latency->chosen.len)
		ky_strbuf_adds(out, latency->chosen.data[kind - KY_LATENCY_CALL_KINDS]);
}

void ky_latency_put_name(struct ky_strbuf *out, const struct ky_latency *latency,
			 const struct ky_latency_key *key)
{
	switch (key->layer) {
	case KY_LATENCY_SYSCALL:
		put_call(out, latency, key->sub);
		break;
	case KY_LATENCY_OFFCPU:
		ky_strbuf_adds(out, reasons[key->sub % KY_LATENCY_OFF_REASONS]);
		break;
	case KY_LATENCY_LOCK:
		ky_strbuf_adds(out, locks[key->sub % KY_LATENCY_LOCK_KINDS]);
		break;
	case KY_LATENCY_FILE:
		ky_strbuf_adds(out, file_ops[key->sub % KY_LATENCY_FILE_OPS]);
		break;
	case KY_LATENCY_BLOCK_QUEUE:
	case KY_LATENCY_BLOCK_DEVICE:
		put_device(out, key->sub);
		put_operation(out, KY_LATENCY_OP(key->sub));
		break;
	case KY_LATENCY_FLUSH:
		put_device(out, key->sub);
		break;
	case KY_LATENCY_IRQ:
		ky_latency_put_irq(out, key->sub);
		break;
	case KY_LATENCY_NET_SEND:
	case KY_LATENCY_NET_RECEIVE:
		put_interface(out, key->sub);
		break;
	case KY_LATENCY_PROGRAM:
		ky_strbuf_adds(out, latency->program_name ? latency->program_name : "");
		break;
	case KY_LATENCY_CHAIN:
		ky_strbuf_adds(out, chain_parts[key->sub % KY_CHAIN_PARTS]);
		break;
	case KY_LATENCY_TRACK:
		ky_strbuf_adds(out, ky_tracker_name(latency->trackers[key->sub]));
		break;
	case KY_LATENCY_SOFTIRQ:
		if (key->sub < sizeof(softirqs) / sizeof(softirqs[0]))
			ky_strbuf_adds(out, softirqs[key->sub]);
		else
			ky_strbuf_addf(out, "%u", (unsigned int)key->sub);
		break;
	default:
		ky_strbuf_adds(out, "all");
	}
}

/* ---- owners ----------------------------------------------------------------------------- */

static void put_path_below(struct ky_strbuf *out, const char *path, const char *root)
{
	size_t len = strlen(root);

	if (strcmp(path, root) == 0)
		ky_strbuf_addc(out, '/');
	else
		ky_strbuf_adds(out, strncmp(path, root, len) == 0 ? path + len : path);
}

/* The directory of a control group of version 2, whose id is its handle. */
static void put_cgroup(struct ky_strbuf *out, uint64_t id)
{
	union {
		struct file_handle handle;
		char room[sizeof(struct file_handle) + sizeof(uint64_t)];
	} group = {.handle = {.handle_bytes = sizeof(uint64_t), .handle_type = 0xfe}};
	char link[64], path[4096] = "";
	const char *root = KY_CGROUP_ROOT "/unified";
	int mount = open(root, O_RDONLY | O_CLOEXEC), fd;

	if (mount < 0) {
		root = KY_CGROUP_ROOT;
		mount = open(root, O_RDONLY | O_CLOEXEC);
	}
	memcpy(group.handle.f_handle, &id, sizeof(id));
	fd = open_by_handle_at(mount, &group.handle, O_PATH | O_CLOEXEC);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (fd >= 0 && readlink(link, path, sizeof(path) - 1) > 0)
		put_path_below(out, path, root);
	else
		ky_strbuf_addf(out, "%llu", (unsigned long long)id);
	if (fd >= 0)
		close(fd);
	if (mount >= 0)
		close(mount);
}

static void put_user(struct ky_strbuf *out, uint64_t uid)
{
	const struct passwd *user = getpwuid((uid_t)uid);

	if (user)
		ky_strbuf_adds(out, user->pw_name);
	else
		ky_strbuf_addf(out, "%llu", (unsigned long long)uid);
}

static void put_process(struct ky_strbuf *out, const struct ky_latency *latency, uint64_t tgid)
{
	char comm[KY_LATENCY_COMM_BYTES];

	if (ky_latency_comm(latency, (uint32_t)tgid, comm) || ky_program_comm((pid_t)tgid, comm)) {
		ky_strbuf_add(out, comm, strnlen(comm, sizeof(comm)));
		ky_strbuf_addc(out, ' ');
	}
	ky_strbuf_addf(out, "%llu", (unsigned long long)tgid);
}

static bool has_owner(const struct ky_latency *latency, const struct ky_series *series)
{
	return latency->options.by != KY_LATENCY_BY_NONE && series->key.layer != KY_LATENCY_IRQ &&
	       series->key.layer != KY_LATENCY_SOFTIRQ && series->key.layer < KY_LATENCY_TRACK;
}

static void put_owner(struct ky_strbuf *out, const struct ky_latency *latency,
		      const struct ky_series *series)
{
	switch (latency->options.by) {
	case KY_LATENCY_BY_PROCESS:
		put_process(out, latency, series->key.who);
		break;
	case KY_LATENCY_BY_USER:
		put_user(out, series->key.who);
		break;
	case KY_LATENCY_BY_CGROUP:
		put_cgroup(out, series->key.who);
		break;
	default:
		break;
	}
}

static bool latency_names_replace(char **text, struct ky_strbuf *by)
{
	char *copy = strdup(ky_strbuf_text(by));

	ky_strbuf_fini(by);
	if (!copy)
		return false;
	free(*text);
	*text = copy;
	return true;
}

int ky_latency_name(const struct ky_latency *latency, struct ky_series *series)
{
	struct ky_strbuf name = KY_STRBUF_INIT, owner = KY_STRBUF_INIT;

	/* A program's tracker has its name from its first duration on. */
	if (!series->name || series->key.layer != KY_LATENCY_PROGRAM) {
		ky_latency_put_name(&name, latency, &series->key);
		if (!latency_names_replace(&series->name, &name))
			return KYMO_E_MEMORY;
	}
	if (!has_owner(latency, series))
		return KYMO_OK;
	put_owner(&owner, latency, series);
	return latency_names_replace(&series->owner, &owner) ? KYMO_OK : KYMO_E_MEMORY;
}
