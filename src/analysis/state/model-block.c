/* SPDX-License-Identifier: MIT */
/*
 * The state model's block devices: requests from their insertion to their completion, by device and
 * first sector. A request may complete in parts: then what is left begins at a later sector.
 * Events of flushes name no sectors: the oldest flush of a device is the one that completes.
 */
#include "analysis/state/model-internal.h"

#include <stdio.h>
#include <string.h>

static struct ky_disk *disk_new(struct ky_model *model, struct ky_host *host, uint32_t dev)
{
	struct ky_disk *disk = ky_arena_new(&model->arena, struct ky_disk);

	if (!disk)
		return NULL;
	disk->index = (uint32_t)model->disks.len;
	disk->dev = dev;
	disk->host = host;
	/* The kernel's dev_t: 12 bits of major, 20 of minor */
	disk->name = ky_arena_printf(&model->arena, "%u,%u", dev >> 20, dev & 0xfffff);
	if (!disk->name || ky_vec_push(&model->disks, disk) < 0 ||
	    ky_map_set(&host->state->disks, (uint64_t)dev + 1, disk) < 0)
		return NULL;
	return disk;
}

static struct ky_disk *get_disk(struct ky_feed *feed, const struct ky_event *event,
				const struct ky_handle *field)
{
	uint32_t dev = (uint32_t)ky_get_u64(event, field, 0);
	struct ky_disk *disk = ky_map_get(&feed->host->state->disks, (uint64_t)dev + 1);

	return disk ? disk : disk_new(feed->model, feed->host, dev);
}

int ky_on_dump_disk(struct ky_feed *feed, const struct ky_event *event,
		    const struct ky_class_info *info)
{
	struct ky_disk *disk = get_disk(feed, event, &info->fields[KY_DUMP_DISK_DEV]);
	size_t len;
	const char *name = ky_get_text(event, &info->fields[KY_DUMP_DISK_NAME], &len);

	if (disk && len)
		disk->name = ky_arena_strndup(&feed->model->arena, name, len);
	return disk && disk->name ? 0 : KYMO_E_MEMORY;
}

/* LTTng's mask, or the kernel's letters: "WS", "RA", "FWFS". */
static unsigned int get_rwbs(const struct ky_event *event, const struct ky_handle *field)
{
	size_t len;
	const char *text = ky_get_text(event, field, &len);
	unsigned int rwbs = 0;

	if (!len)
		return (unsigned int)ky_get_u64(event, field, 0);
	/* F first is the operation, or a flush before the operation. */
	if (text[0] == 'F' && len > 1 && strchr("WDRFNZ", text[1]))
		rwbs |= KY_RWBS_PREFLUSH;
	if (text[rwbs ? 1 : 0] == 'F')
		rwbs |= KY_RWBS_FLUSH;
	for (size_t i = 0; i < len; i++) {
		switch (text[i]) {
		case 'W':
			rwbs |= KY_RWBS_WRITE;
			break;
		case 'D':
			rwbs |= KY_RWBS_DISCARD;
			break;
		case 'R':
			rwbs |= KY_RWBS_READ;
			break;
		case 'S':
			rwbs |= KY_RWBS_SYNC;
			break;
		case 'M':
			rwbs |= KY_RWBS_META;
			break;
		}
	}
	return rwbs;
}

/* What an event tells. */
struct told {
	struct ky_disk *disk;
	uint64_t sector, n_sectors;
};

/* 1; 0: the event is about no sectors; or KYMO_E_MEMORY. */
static int get_told(struct ky_feed *feed, const struct ky_event *event,
		    const struct ky_class_info *info, struct told *told)
{
	told->disk = get_disk(feed, event, &info->fields[KY_RQ_DEV]);
	told->sector = ky_get_u64(event, &info->fields[KY_RQ_SECTOR], UINT64_MAX);
	told->n_sectors = ky_get_u64(event, &info->fields[KY_RQ_N], 0);
	if (!told->disk)
		return KYMO_E_MEMORY;
	return told->n_sectors && told->sector != UINT64_MAX;
}

static struct ky_request *model_block_find(const struct told *told)
{
	return ky_map_get(&told->disk->requests, told->sector + 1);
}

static int tell_issued(struct ky_feed *feed, const struct ky_disk *disk, int64_t ns)
{
	return feed->model->telling ? ky_model_notify(feed->model, issued, disk, ns) : 0;
}

/* The device does not have @request any more, if it had. */
static void model_block_take_back(struct ky_disk *disk, const struct ky_request *request)
{
	if (request->issue_ns != INT64_MIN && disk->n_issued)
		disk->n_issued--;
}

static void model_block_drop(struct ky_disk *disk, struct ky_request *request, uint64_t at_sector)
{
	model_block_take_back(disk, request);
	ky_map_del(&disk->requests, at_sector + 1);
	request->next = disk->spare;
	disk->spare = request;
}

static struct ky_request *request_new(struct ky_feed *feed, const struct told *told)
{
	struct ky_disk *disk = told->disk;
	struct ky_request *request = disk->spare;

	if (request)
		disk->spare = request->next;
	else
		request = ky_arena_new(&feed->model->arena, struct ky_request);
	if (!request || ky_map_set(&disk->requests, told->sector + 1, request) < 0)
		return NULL;
	*request = (struct ky_request){
		.disk = disk,
		.sector = told->sector,
		.n_sectors = told->n_sectors,
		.left = told->n_sectors,
		.queue_ns = INT64_MIN,
		.issue_ns = INT64_MIN,
	};
	return request;
}

#define OWNERS_MAX 16

struct owner {
	const struct ky_thread *thread;
	uint64_t sectors;
};

/* What is in queue and device before @request: how much, and whose most of it is, of the first threads found. */
static void count_ahead(const struct ky_disk *disk, struct ky_request *request)
{
	struct owner owners[OWNERS_MAX] = {{0}};
	uint64_t key;
	size_t pos = 0, n = 0;
	void *value;

	while (ky_map_next(&disk->requests, &pos, &key, &value)) {
		const struct ky_request *other = value;
		size_t i = 0;

		if (other == request)
			continue;
		request->n_ahead++;
		request->sectors_ahead += other->left;
		while (i < n && owners[i].thread != other->thread)
			i++;
		if (i == OWNERS_MAX)
			continue;
		n = i == n ? n + 1 : n;
		owners[i].thread = other->thread;
		owners[i].sectors += other->left;
		if (other->thread && owners[i].sectors > request->sectors_of) {
			request->ahead = other->thread;
			request->sectors_of = owners[i].sectors;
		}
	}
}

/* ---- flushes ------------------------------------------------------------------------------- */

#define FLUSHES_MAX (sizeof(((struct ky_disk *)0)->flushes) / sizeof(struct ky_flush_begin))

static bool is_flush(const struct ky_event *event, const struct ky_class_info *info)
{
	return get_rwbs(event, &info->fields[KY_RQ_RWBS]) & KY_RWBS_FLUSH;
}

/* Somebody asks for a flush, alone or before data: the kernel issues it in a thread of its own. */
int ky_on_getrq(struct ky_feed *feed, const struct ky_event *event,
		const struct ky_class_info *info)
{
	struct ky_disk *disk;

	if (!(get_rwbs(event, &info->fields[KY_RQ_RWBS]) & KY_RWBS_PREFLUSH))
		return 0;
	disk = get_disk(feed, event, &info->fields[KY_RQ_DEV]);
	if (!disk)
		return KYMO_E_MEMORY;
	disk->flusher = ky_feed_thread(feed, event, info);
	return 0;
}

static int issue_flush(struct ky_feed *feed, const struct ky_event *event,
		       const struct ky_class_info *info, struct ky_disk *disk)
{
	if (!is_flush(event, info))
		return 0;
	/* What is still there was never seen to complete. */
	if (disk->n_flushes == FLUSHES_MAX)
		disk->n_flushes = 0;
	disk->flushes[disk->n_flushes++] = (struct ky_flush_begin){
		event->ns, disk->flusher ? disk->flusher : ky_feed_thread(feed, event, info)};
	return 0;
}

static int complete_flush(struct ky_feed *feed, const struct ky_event *event,
			  const struct ky_class_info *info, struct ky_disk *disk)
{
	struct ky_request flush = {.disk = disk,
				   .rwbs = get_rwbs(event, &info->fields[KY_RQ_RWBS]),
				   .queue_ns = INT64_MIN,
				   .end_ns = event->ns};

	if (!(flush.rwbs & KY_RWBS_FLUSH) || !disk->n_flushes)
		return 0;
	flush.issue_ns = disk->flushes[0].ns;
	flush.thread = disk->flushes[0].thread;
	flush.error = (int)ky_get_i64(event, &info->fields[KY_RQ_ERROR], 0);
	disk->n_flushes--;
	memmove(disk->flushes, disk->flushes + 1, disk->n_flushes * sizeof(*disk->flushes));
	if (flush.issue_ns < feed->host->torn_until_ns ||
	    !ky_model_tells(feed->model, flush.thread, event->cpu_id) ||
	    !ky_model_tells_long(feed->model, flush.end_ns - flush.issue_ns))
		return 0;
	return ky_model_notify(feed->model, flush, &flush);
}

/* ---- events -------------------------------------------------------------------------------- */

/* Whose request it is: the event's own word, else what runs. */
static int set_thread(struct ky_feed *feed, const struct ky_event *event,
		      const struct ky_class_info *info, struct ky_request *request)
{
	int32_t tid = (int32_t)ky_get_i64(event, &info->fields[KY_RQ_TID], 0);

	if (tid > 0)
		request->thread = ky_model_thread_get(feed->model, feed->host, tid);
	else
		request->thread = ky_feed_thread(feed, event, info);
	return tid > 0 && !request->thread ? KYMO_E_MEMORY : 0;
}

int ky_on_rq_insert(struct ky_feed *feed, const struct ky_event *event,
		    const struct ky_class_info *info)
{
	struct ky_request *request;
	struct told told;
	int status = get_told(feed, event, info, &told);

	if (status <= 0)
		return status;
	request = model_block_find(&told);
	/* One that is still there was never seen to complete. */
	if (request) {
		model_block_drop(told.disk, request, told.sector);
		status = tell_issued(feed, told.disk, event->ns);
	}
	request = request_new(feed, &told);
	if (!request || status < 0)
		return request ? status : KYMO_E_MEMORY;
	request->queue_ns = event->ns;
	count_ahead(told.disk, request);
	request->rwbs = get_rwbs(event, &info->fields[KY_RQ_RWBS]);
	return set_thread(feed, event, info, request);
}

int ky_on_rq_issue(struct ky_feed *feed, const struct ky_event *event,
		   const struct ky_class_info *info)
{
	struct ky_request *request;
	struct told told;
	int status = get_told(feed, event, info, &told);

	if (!status)
		return issue_flush(feed, event, info, told.disk);
	if (status < 0)
		return status;
	request = model_block_find(&told);
	if (request && request->issue_ns != INT64_MIN) {
		model_block_drop(told.disk, request, told.sector);
		request = NULL;
	}
	if (!request) {
		request = request_new(feed, &told);
		if (!request || set_thread(feed, event, info, request) < 0)
			return KYMO_E_MEMORY;
		count_ahead(told.disk, request);
	}
	/* It may have grown in the queue, by merges. */
	request->n_sectors = request->left = told.n_sectors;
	request->rwbs = get_rwbs(event, &info->fields[KY_RQ_RWBS]);
	request->issue_ns = event->ns;
	told.disk->n_issued++;
	return tell_issued(feed, told.disk, event->ns);
}

/* The request that an event tells of. 1, 0 (none that is known), or KYMO_E_MEMORY. */
static int get_request(struct ky_feed *feed, const struct ky_event *event,
		       const struct ky_class_info *info, struct told *told,
		       struct ky_request **request)
{
	int status = get_told(feed, event, info, told);

	if (status <= 0)
		return status;
	*request = model_block_find(told);
	return *request != NULL;
}

int ky_on_rq_requeue(struct ky_feed *feed, const struct ky_event *event,
		     const struct ky_class_info *info)
{
	struct ky_request *request;
	struct told told;
	int status = get_request(feed, event, info, &told, &request);

	if (status <= 0)
		return status;
	model_block_take_back(told.disk, request);
	request->issue_ns = INT64_MIN;
	return tell_issued(feed, told.disk, event->ns);
}

/* It became a part of another one. */
int ky_on_rq_merge(struct ky_feed *feed, const struct ky_event *event,
		   const struct ky_class_info *info)
{
	struct ky_request *request;
	struct told told;
	int status = get_request(feed, event, info, &told, &request);

	if (status > 0 && request->issue_ns == INT64_MIN)
		model_block_drop(told.disk, request, told.sector);
	return status < 0 ? status : 0;
}

static int model_block_move(const struct told *told, uint64_t from, uint64_t to)
{
	struct ky_request *request = ky_map_del(&told->disk->requests, from + 1);

	if (!request)
		return 0;
	request->sector = to;
	return ky_map_set(&told->disk->requests, to + 1, request);
}

/* A request that begins where this one ends begins earlier now. */
int ky_on_bio_frontmerge(struct ky_feed *feed, const struct ky_event *event,
			 const struct ky_class_info *info)
{
	struct told told;
	int status = get_told(feed, event, info, &told);

	return status <= 0 ? status
			   : model_block_move(&told, told.sector + told.n_sectors, told.sector);
}

int ky_on_rq_remap(struct ky_feed *feed, const struct ky_event *event,
		   const struct ky_class_info *info)
{
	struct told told;
	int status = get_told(feed, event, info, &told);

	if (status <= 0)
		return status;
	return model_block_move(&told, ky_get_u64(event, &info->fields[KY_RQ_OLD], told.sector),
				told.sector);
}

int ky_on_rq_complete(struct ky_feed *feed, const struct ky_event *event,
		      const struct ky_class_info *info)
{
	struct ky_request *request;
	struct told told;
	int64_t begin_ns;
	int status = get_request(feed, event, info, &told, &request);

	if (!status)
		return complete_flush(feed, event, info, told.disk);
	if (status < 0)
		return status;
	ky_map_del(&told.disk->requests, told.sector + 1);
	request->error = (int)ky_get_i64(event, &info->fields[KY_RQ_ERROR], 0);
	if (told.n_sectors < request->left && !request->error) {
		request->left -= told.n_sectors;
		return ky_map_set(&told.disk->requests, told.sector + told.n_sectors + 1, request);
	}
	request->end_ns = event->ns;
	model_block_take_back(told.disk, request);
	status = tell_issued(feed, told.disk, event->ns);
	begin_ns = request->issue_ns != INT64_MIN ? request->issue_ns : event->ns;
	if (status >= 0 && ky_model_tells(feed->model, request->thread, event->cpu_id) &&
	    ky_model_tells_long(feed->model, event->ns - begin_ns))
		status = ky_model_notify(feed->model, request, request);
	request->next = told.disk->spare;
	told.disk->spare = request;
	return status < 0 ? status : 0;
}
