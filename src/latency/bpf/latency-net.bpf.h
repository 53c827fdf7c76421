/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The network's layers of latency.bpf.c: packets by their address, connections by process and descriptor. */
#ifndef KY_LATENCY_LATENCY_NET_BPF_H
#define KY_LATENCY_LATENCY_NET_BPF_H

#include "latency/bpf/latency-cells.bpf.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct net_device {
	int ifindex;
};

struct sk_buff {
	struct net_device *dev;
	int skb_iif; /* it came in by this one; 0: by none */
};

struct pt_regs___latency {
	unsigned long di, cs;
};

#pragma clang attribute pop

/* Packets on their way: to the device, to a program. What never arrives gives way to others. */
struct packet {
	uint64_t begin_ns, interface;
};

struct packets {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__type(key, uint64_t);
	__type(value, struct packet);
	__uint(max_entries, 16384);
};

struct packets kymo_sent SEC(".maps"), kymo_received SEC(".maps");

/* Connections that were accepted, and to which nothing was written yet. */
struct connection {
	uint32_t tgid, fd;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__type(key, struct connection);
	__type(value, uint64_t);
	__uint(max_entries, 16384);
} kymo_accepted SEC(".maps");

static __always_inline void packet_begins(void *packets, uint64_t skb, uint64_t interface)
{
	struct packet packet = {.begin_ns = bpf_ktime_get_ns(), .interface = interface};

	bpf_map_update_elem(packets, &skb, &packet, BPF_ANY);
}

static __always_inline void packet_ends(void *ctx, void *packets, uint64_t skb, uint32_t layer)
{
	const struct task_struct___latency *task = (void *)bpf_get_current_task_btf();
	struct packet *packet = bpf_map_lookup_elem(packets, &skb);
	uint64_t ns, interface;

	if (!packet)
		return;
	ns = bpf_ktime_get_ns() - packet->begin_ns;
	interface = packet->interface;
	bpf_map_delete_elem(packets, &skb);
	if (!is_wanted_task(task))
		return;
	add_owned(layer, interface, who_of(task), task, ns);
	if (ns > config.members_ns)
		tell_member(ctx, layer, interface, NULL, NULL, ns);
}

static __always_inline int interface_of(const struct sk_buff *skb)
{
	return skb->dev->ifindex;
}

SEC("tp_btf/net_dev_queue")
int kymo_queue(uint64_t *ctx)
{
	packet_begins(&kymo_sent, ctx[0], interface_of((void *)ctx[0]));
	return 0;
}

SEC("tp_btf/net_dev_xmit")
int kymo_xmit(uint64_t *ctx)
{
	packet_ends(ctx, &kymo_sent, ctx[0], KY_LATENCY_NET_SEND);
	return 0;
}

SEC("tp_btf/netif_receive_skb")
int kymo_receive(uint64_t *ctx)
{
	packet_begins(&kymo_received, ctx[0], interface_of((void *)ctx[0]));
	return 0;
}

/*
 * Many kinds of sockets copy so. What is dropped is not told here, and a message of a local socket may take its place, at
 * the same address: no device has received that one.
 */
SEC("tp_btf/skb_copy_datagram_iovec")
int kymo_copy(uint64_t *ctx)
{
	const struct sk_buff *skb = (void *)ctx[0];

	if (skb->skb_iif)
		packet_ends(ctx, &kymo_received, ctx[0], KY_LATENCY_NET_RECEIVE);
	return 0;
}

/* ---- connections ------------------------------------------------------------------------ */

static __always_inline uint32_t role_of(uint32_t call)
{
	return config.first_byte && call < KY_LATENCY_CALL_COUNT ? config.role[call] : 0;
}

/* A call begins whose first argument is a descriptor. */
static __always_inline void connection_enter(void *ctx, uint32_t call,
					     const struct pt_regs___latency *registers)
{
	const struct task_struct___latency *task = (void *)bpf_get_current_task_btf();
	uint32_t role = role_of(call);
	struct connection key;
	uint64_t *accepted, ns;

	if (!role || role == KY_LATENCY_ROLE_ACCEPT || !shared.any_accepted ||
	    !bpf_core_field_exists(registers->di))
		return;
	key.tgid = task->tgid;
	key.fd = BPF_CORE_READ(registers, di);
	accepted = bpf_map_lookup_elem(&kymo_accepted, &key);
	if (!accepted)
		return;
	ns = bpf_ktime_get_ns() - *accepted;
	bpf_map_delete_elem(&kymo_accepted, &key);
	if (role != KY_LATENCY_ROLE_WRITE || !is_wanted_task(task))
		return;
	add_keyed(KY_LATENCY_FIRST_BYTE, 0, who_of(task), task, ns);
	if (ns > config.members_ns)
		tell_member(ctx, KY_LATENCY_FIRST_BYTE, 0, task, NULL, ns);
}

static __always_inline void connection_exit(uint32_t call, int64_t ret)
{
	struct connection key = {.fd = ret};
	uint64_t now_ns;

	if (role_of(call) != KY_LATENCY_ROLE_ACCEPT || ret < 0)
		return;
	key.tgid = bpf_get_current_pid_tgid() >> 32;
	now_ns = bpf_ktime_get_ns();
	bpf_map_update_elem(&kymo_accepted, &key, &now_ns, BPF_ANY);
	shared.any_accepted = 1;
}

#endif
