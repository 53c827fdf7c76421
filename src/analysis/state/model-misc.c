/* SPDX-License-Identifier: MIT */
/* The state model's events that need no state: packets of network interfaces, pages, faults, sizes. */
#include "analysis/state/model-internal.h"

static struct ky_netif *netif_get(struct ky_feed *feed, const char *name, size_t len)
{
	struct ky_names *names = &feed->host->state->netifs;
	struct ky_netif *netif = ky_names_getn(names, name, len);

	if (netif)
		return netif;
	netif = ky_arena_new(&feed->model->arena, struct ky_netif);
	if (!netif)
		return NULL;
	netif->index = (uint32_t)feed->model->netifs.len;
	netif->host = feed->host;
	netif->name = ky_arena_strndup(&feed->model->arena, name, len);
	if (!netif->name || ky_vec_push(&feed->model->netifs, netif) < 0 ||
	    ky_names_set(names, netif->name, netif) < 0)
		return NULL;
	return netif;
}

static int model_misc_on_packet(struct ky_feed *feed, const struct ky_event *event,
				const struct ky_class_info *info, bool received)
{
	size_t len;
	const char *name = ky_get_text(event, &info->fields[KY_NET_NAME], &len);
	struct ky_packet_seen packet = {
		.netif = netif_get(feed, name, len),
		.received = received,
		.failed = ky_get_i64(event, &info->fields[KY_NET_RC], 0) != 0,
		.bytes = ky_get_u64(event, &info->fields[KY_NET_LEN], 0),
		.thread = ky_feed_thread(feed, event, info),
		.ns = event->ns,
	};

	if (!packet.netif)
		return KYMO_E_MEMORY;
	if (!ky_model_tells(feed->model, packet.thread, event->cpu_id))
		return 0;
	return ky_model_notify(feed->model, packet, &packet);
}

int ky_on_net_sent(struct ky_feed *feed, const struct ky_event *event,
		   const struct ky_class_info *info)
{
	return model_misc_on_packet(feed, event, info, false);
}

int ky_on_net_received(struct ky_feed *feed, const struct ky_event *event,
		       const struct ky_class_info *info)
{
	return model_misc_on_packet(feed, event, info, true);
}

/* ---- memory ------------------------------------------------------------------------------ */

static int model_misc_tell(struct ky_feed *feed, const struct ky_event *event,
			   const struct ky_class_info *info, struct ky_memory *memory)
{
	memory->thread = ky_feed_thread(feed, event, info);
	memory->host = feed->host;
	memory->ns = event->ns;
	if (!ky_model_tells(feed->model, memory->thread, event->cpu_id))
		return 0;
	return ky_model_notify(feed->model, memory, memory);
}

static int on_pages(struct ky_feed *feed, const struct ky_event *event,
		    const struct ky_class_info *info, enum ky_memory_kind kind)
{
	uint64_t order = ky_get_u64(event, &info->fields[KY_PAGE_ORDER], 0);
	struct ky_memory memory = {.kind = kind, .value = order < 40 ? UINT64_C(1) << order : 0};

	return model_misc_tell(feed, event, info, &memory);
}

int ky_on_page_alloc(struct ky_feed *feed, const struct ky_event *event,
		     const struct ky_class_info *info)
{
	return on_pages(feed, event, info, KY_MEMORY_ALLOC);
}

int ky_on_page_free(struct ky_feed *feed, const struct ky_event *event,
		    const struct ky_class_info *info)
{
	return on_pages(feed, event, info, KY_MEMORY_FREE);
}

int ky_on_reclaim_begin(struct ky_feed *feed, const struct ky_event *event,
			const struct ky_class_info *info)
{
	struct ky_thread *thread = ky_feed_thread(feed, event, info);

	if (thread)
		thread->reclaim_ns = event->ns;
	return 0;
}

static int model_misc_on_reclaim_end(struct ky_feed *feed, const struct ky_event *event,
				     const struct ky_class_info *info, bool by_limit)
{
	struct ky_thread *thread = ky_feed_thread(feed, event, info);
	struct ky_memory memory = {.kind = KY_MEMORY_RECLAIM, .by_limit = by_limit};

	if (!thread || !thread->reclaim_ns)
		return 0;
	memory.value = ky_get_u64(event, &info->fields[KY_RECLAIM_PAGES], 0);
	memory.begin_ns = thread->reclaim_ns;
	thread->reclaim_ns = 0;
	return model_misc_tell(feed, event, info, &memory);
}

int ky_on_reclaim_end(struct ky_feed *feed, const struct ky_event *event,
		      const struct ky_class_info *info)
{
	return model_misc_on_reclaim_end(feed, event, info, false);
}

int ky_on_limit_reclaim_end(struct ky_feed *feed, const struct ky_event *event,
			    const struct ky_class_info *info)
{
	return model_misc_on_reclaim_end(feed, event, info, true);
}

int ky_on_fault_user(struct ky_feed *feed, const struct ky_event *event,
		     const struct ky_class_info *info)
{
	struct ky_memory memory = {.kind = KY_MEMORY_FAULT, .value = 1};

	return model_misc_tell(feed, event, info, &memory);
}

int ky_on_fault_kernel(struct ky_feed *feed, const struct ky_event *event,
		       const struct ky_class_info *info)
{
	struct ky_memory memory = {.kind = KY_MEMORY_FAULT, .value = 0};

	return model_misc_tell(feed, event, info, &memory);
}

static struct ky_space *space_get(struct ky_feed *feed, uint64_t mm)
{
	struct ky_map *spaces = &feed->host->state->spaces;
	struct ky_space *space = ky_map_get(spaces, mm);

	if (space)
		return space;
	space = ky_arena_new(&feed->model->arena, struct ky_space);
	if (!space)
		return NULL;
	*space = (struct ky_space){.index = feed->model->n_spaces++};
	return ky_map_set(spaces, mm, space) < 0 ? NULL : space;
}

/* The model keeps sizes of all processes, since each event has only one part of them. */
int ky_on_rss(struct ky_feed *feed, const struct ky_event *event, const struct ky_class_info *info)
{
	int64_t bytes = ky_get_i64(event, &info->fields[KY_RSS_SIZE], 0);
	int64_t member = ky_get_i64(event, &info->fields[KY_RSS_MEMBER], -1);
	struct ky_space *space =
		space_get(feed, (uint32_t)ky_get_u64(event, &info->fields[KY_RSS_MM], 0));
	struct ky_memory memory = {.kind = KY_MEMORY_RSS, .space = space};
	struct ky_thread *thread = ky_feed_thread(feed, event, info);

	if (!space)
		return KYMO_E_MEMORY;
	if (thread && ky_get_u64(event, &info->fields[KY_RSS_CURRENT], 0))
		space->thread = thread;
	/* The kernel's counters may be below zero for a moment. */
	if (member >= 0 && member < KY_RSS_MEMBERS)
		space->bytes[member] = bytes > 0 ? (uint64_t)bytes : 0;
	return model_misc_tell(feed, event, info, &memory);
}

int ky_on_dump_memory(struct ky_feed *feed, const struct ky_event *event,
		      const struct ky_class_info *info)
{
	for (int i = 0; i < KY_MACHINE_PARTS; i++)
		feed->host->memory_bytes[i] = ky_get_u64(event, &info->fields[i], 0);
	feed->host->memory_ns = event->ns;
	return 0;
}

#define SIGNAL_DELIVERED 0

int ky_on_signal(struct ky_feed *feed, const struct ky_event *event,
		 const struct ky_class_info *info)
{
	int32_t tid = (int32_t)ky_get_i64(event, &info->fields[KY_SIGNAL_TID], 0);
	struct ky_signal signal = {
		.nr = (int32_t)ky_get_i64(event, &info->fields[KY_SIGNAL_NR], 0),
		.code = (int32_t)ky_get_i64(event, &info->fields[KY_SIGNAL_CODE], 0),
		.sender = ky_feed_thread(feed, event, info),
		.ignored = ky_get_i64(event, &info->fields[KY_SIGNAL_RESULT], SIGNAL_DELIVERED) !=
			   SIGNAL_DELIVERED,
		.ns = event->ns,
	};
	const char *comm;
	size_t len;

	if (tid <= 0)
		return 0;
	signal.receiver = ky_model_thread_get(feed->model, feed->host, tid);
	if (!signal.receiver)
		return KYMO_E_MEMORY;
	comm = ky_get_text(event, &info->fields[KY_SIGNAL_COMM], &len);
	if (!signal.receiver->comm[0] && len)
		ky_thread_name(signal.receiver, comm, len);
	/* It concerns both sides. */
	if (!ky_model_tells(feed->model, signal.sender, event->cpu_id) &&
	    !ky_model_tells(feed->model, signal.receiver, event->cpu_id))
		return 0;
	return ky_model_notify(feed->model, signal, &signal);
}

#define ORDER_MAX 20

static int model_misc_cache(struct ky_feed *feed, const struct ky_event *event,
			    const struct ky_class_info *info, bool added)
{
	uint64_t order = ky_get_u64(event, &info->fields[KY_CACHE_ORDER], 0);
	uint64_t dev = ky_get_u64(event, &info->fields[KY_CACHE_DEV], 0);
	const struct ky_cached cached = {
		.is_added = added,
		.thread = ky_feed_thread(feed, event, info),
		.file = dev << 40 ^ ky_get_u64(event, &info->fields[KY_CACHE_INODE], 0),
		.pages = UINT64_C(1) << (order < ORDER_MAX ? order : ORDER_MAX),
		.ns = event->ns,
	};

	if (!ky_model_tells(feed->model, cached.thread, event->cpu_id))
		return 0;
	return ky_model_notify(feed->model, cached, &cached);
}

int ky_on_cache_add(struct ky_feed *feed, const struct ky_event *event,
		    const struct ky_class_info *info)
{
	return model_misc_cache(feed, event, info, true);
}

int ky_on_cache_delete(struct ky_feed *feed, const struct ky_event *event,
		       const struct ky_class_info *info)
{
	return model_misc_cache(feed, event, info, false);
}
