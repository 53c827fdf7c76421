/* SPDX-License-Identifier: MIT */
/* Causes: the requests of block devices that a thread waits for, and whose requests are before them. */
#include "analysis/causes/causes-internal.h"

/* So many requests are looked at for one wait: beyond that, the wait is for the disk and nothing is said of requests. */
#define CAUSES_DISK_LOOKS 4096

static int64_t causes_disk_begin(const struct ky_disk_run *run)
{
	return run->queue_ns != INT64_MIN ? run->queue_ns : run->issue_ns;
}

static const struct ky_disk_run *causes_disk_at(const struct ky_causes *causes,
						const struct ky_disk_lane *lane, size_t i)
{
	return &causes->requests.data[lane->places.data[i]];
}

/* The first request that ends after @ns; those that follow end later. */
static size_t causes_disk_find(const struct ky_causes *causes, const struct ky_disk_lane *lane,
			       int64_t ns)
{
	size_t low = 0, high = lane->places.len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (causes_disk_at(causes, lane, mid)->end_ns <= ns)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* May requests from here on have begun before @ns? */
static bool causes_disk_reaches(const struct ky_causes *causes, const struct ky_disk_lane *lane,
				size_t i, int64_t ns)
{
	int64_t end_ns;

	if (i >= lane->places.len)
		return false;
	end_ns = causes_disk_at(causes, lane, i)->end_ns;
	return end_ns <= ns || (uint64_t)end_ns - (uint64_t)ns <= lane->longest_ns;
}

const struct ky_thread *ky_disk_others(const struct ky_causes *causes, const struct ky_disk *disk,
				       const struct ky_thread *own, int64_t begin_ns,
				       int64_t end_ns)
{
	const struct ky_disk_lane *lane =
		disk->index < causes->disks.len ? &causes->disks.data[disk->index] : NULL;
	const struct ky_thread *found = NULL;
	uint64_t most_ns = 0;
	size_t looks = 0;

	for (size_t i = lane ? causes_disk_find(causes, lane, begin_ns) : 0;
	     lane && causes_disk_reaches(causes, lane, i, end_ns) && looks++ < CAUSES_DISK_LOOKS;
	     i++) {
		const struct ky_disk_run *run = causes_disk_at(causes, lane, i);
		int64_t from = run->issue_ns > begin_ns ? run->issue_ns : begin_ns;
		int64_t to = run->end_ns < end_ns ? run->end_ns : end_ns;

		/* Only those that the device had first. */
		if (run->issue_ns == INT64_MIN || run->issue_ns >= end_ns || from >= to ||
		    run->thread == own || !run->thread || (uint64_t)(to - from) <= most_ns)
			continue;
		most_ns = (uint64_t)(to - from);
		found = run->thread;
	}
	return found;
}

const struct ky_disk_run *ky_disk_completed(const struct ky_causes *causes,
					    const struct ky_host *host, int64_t begin_ns,
					    int64_t end_ns)
{
	size_t low = 0, high = causes->requests.len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (causes->requests.data[mid].end_ns <= end_ns)
			low = mid + 1;
		else
			high = mid;
	}
	/* Other hosts may have completed some as well. */
	for (int looks = 0; low-- > 0 && looks < 64; looks++) {
		const struct ky_disk_run *run = &causes->requests.data[low];

		if (run->end_ns < begin_ns)
			break;
		if (run->disk->host == host)
			return run;
	}
	return NULL;
}

/* What is best known of a disk wait at some time: a request is at the device, or in its queue, or neither. */
struct causes_disk_now {
	enum ky_cause cause;
	const struct ky_disk *disk;
	int64_t until_ns;
};

/* The state of one request of the thread at @ns; changes of it limit now->until_ns. */
static void causes_disk_see(struct causes_disk_now *now, const struct ky_disk_run *run, int64_t ns)
{
	int64_t begin = causes_disk_begin(run);
	int64_t issue = run->issue_ns == INT64_MIN ? run->end_ns : run->issue_ns;
	int64_t change = ns < begin ? begin : ns < issue ? issue : run->end_ns;

	if (run->end_ns <= ns)
		return;
	if (change < now->until_ns)
		now->until_ns = change;
	if (ns < begin)
		return;
	if (ns >= issue) {
		now->cause = run->is_flush ? KY_CAUSE_DISK_FLUSH : KY_CAUSE_DISK_DEVICE;
		now->disk = run->disk;
	} else if (now->cause == KY_CAUSE_UNKNOWN) {
		now->cause = KY_CAUSE_DISK_QUEUE;
		now->disk = run->disk;
	}
}

static struct causes_disk_now causes_disk_now(const struct ky_teller *teller,
					      const struct ky_stretch *stretch, int64_t ns,
					      int64_t end_ns)
{
	struct causes_disk_now now = {.cause = KY_CAUSE_UNKNOWN, .until_ns = end_ns};
	const struct ky_causes *causes = teller->causes;
	const struct ky_disk_lane *lane = &teller->track->requests;
	size_t looks = 0;

	for (size_t i = causes_disk_find(causes, lane, ns);
	     causes_disk_reaches(causes, lane, i, stretch->end_ns) && looks++ < CAUSES_DISK_LOOKS;
	     i++)
		causes_disk_see(&now, causes_disk_at(causes, lane, i), ns);
	return now;
}

int ky_tell_disk(struct ky_teller *teller, struct ky_part like, const struct ky_stretch *stretch,
		 int64_t ns)
{
	int status = 0;

	while (teller->at_ns < ns && status >= 0) {
		struct causes_disk_now now = causes_disk_now(teller, stretch, teller->at_ns, ns);
		struct ky_part part = like;

		if (now.cause != KY_CAUSE_UNKNOWN) {
			part.cause = now.cause;
			part.disk = now.disk;
			part.waker = NULL; /* the device is the end of the path */
			part.who = ky_disk_others(teller->causes, now.disk, teller->thread,
						  teller->at_ns, now.until_ns);
		}
		status = ky_tell(teller, part, now.until_ns);
	}
	return status;
}
