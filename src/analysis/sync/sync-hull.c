/* SPDX-License-Identifier: MIT */
#include "analysis/sync/sync-hull.h"

#include <stdlib.h>

#include <kymo/error.h>

#define ONE	    INT64_C(1000000000000000000) /* of drifts */
#define POINTS_ROOM 8192

static int by_place(const void *a, const void *b)
{
	const struct ky_hull_point *one = a, *other = b;

	if (one->x != other->x)
		return one->x < other->x ? -1 : 1;
	return one->y < other->y ? -1 : one->y > other->y;
}

/* Whether the way from @a over @b to @c turns left (1), right (-1), or not at all (0). */
static int sync_hull_turn(const struct ky_hull_point *a, const struct ky_hull_point *b,
			  const struct ky_hull_point *c)
{
	__int128 cross =
		(__int128)(b->x - a->x) * (c->y - a->y) - (__int128)(c->x - a->x) * (b->y - a->y);

	return cross > 0 ? 1 : cross < 0 ? -1 : 0;
}

/* One hull of sorted @points, at the begin of @out: the lower one turns left, the upper one right. Returns its length. */
static size_t sync_hull_chain(const struct ky_hull_point *points, size_t n, int side,
			      struct ky_hull_point *out)
{
	size_t len = 0;

	for (size_t i = 0; i < n; i++) {
		/* Of equal x only the lowest counts, or the highest. */
		if (len && out[len - 1].x == points[i].x) {
			if ((points[i].y - out[len - 1].y) * side >= 0)
				continue;
			len--;
		}
		while (len >= 2 &&
		       sync_hull_turn(&out[len - 2], &out[len - 1], &points[i]) * side <= 0)
			len--;
		out[len++] = points[i];
	}
	return len;
}

/* Keeps only the corners of both hulls. */
static int hull_reduce(struct ky_hull *hull)
{
	size_t n = hull->points.len, lower, upper;
	struct ky_hull_point *room = malloc((2 * n + 1) * sizeof(*room));

	if (!room)
		return KYMO_E_MEMORY;
	qsort(hull->points.data, n, sizeof(*room), by_place);
	lower = sync_hull_chain(hull->points.data, n, 1, room);
	upper = sync_hull_chain(hull->points.data, n, -1, room + lower);
	/* A corner may be in both. */
	qsort(room, lower + upper, sizeof(*room), by_place);
	hull->points.len = 0;
	for (size_t i = 0; i < lower + upper; i++)
		if (!i || by_place(&room[i - 1], &room[i]) != 0)
			hull->points.data[hull->points.len++] = room[i];
	hull->sorted = hull->points.len;
	free(room);
	return KYMO_OK;
}

int ky_hull_add(struct ky_hull *hull, int64_t x, int64_t y)
{
	if (x >= KY_HULL_FAR || x <= -KY_HULL_FAR || y >= KY_HULL_FAR || y <= -KY_HULL_FAR)
		return KYMO_OK;
	hull->n++;
	if (ky_vec_push(&hull->points, (struct ky_hull_point){x, y}) < 0)
		return KYMO_E_MEMORY;
	return hull->points.len >= POINTS_ROOM + 2 * hull->sorted ? hull_reduce(hull) : KYMO_OK;
}

int ky_hull_join(struct ky_hull *hull, const struct ky_hull *from)
{
	uint64_t n = hull->n + from->n;
	int ret = KYMO_OK;

	for (size_t i = 0; i < from->points.len && !ret; i++)
		ret = ky_hull_add(hull, from->points.data[i].x, from->points.data[i].y);
	hull->n = n;
	return ret;
}

void ky_hull_fini(struct ky_hull *hull)
{
	ky_vec_fini(&hull->points);
}

/* ---- the lines between two hulls ------------------------------------------------------ */

/* The upper hull of what the offset is at least, the lower hull of what it is at most. */
struct corridor {
	struct ky_hull_point *least, *most;
	size_t n_least, n_most;
	int64_t drift_least, drift_most; /* what the points leave, 10^-18 */
	bool is_possible, is_seen_below, is_seen_above;
};

static __int128 floored(__int128 a, __int128 b)
{
	__int128 q = a / b;

	return q * b > a ? q - 1 : q;
}

/* The slope from @a to @b, which is right of it, rounded down, within 2 either way. */
static int64_t slope(const struct ky_hull_point *a, const struct ky_hull_point *b)
{
	__int128 dx = (__int128)b->x - a->x, dy = (__int128)b->y - a->y;

	if (dy >= 2 * dx)
		return 2 * ONE;
	if (dy <= -2 * dx)
		return -2 * ONE;
	/* |dy| < 2^63 and ONE < 2^60. */
	return (int64_t)floored(dy * ONE, dx);
}

/*
 * Of the corners of @chain right of @from, the one to which the slope times @side is the least. The slopes fall and then rise along the chain,
 * because @from is on the other side of it.
 */
static bool flattest(const struct ky_hull_point *from, const struct ky_hull_point *to, size_t n,
		     int side, int64_t *found)
{
	size_t low = 0, high = n;

	while (low < high) { /* the first right of @from */
		size_t middle = (low + high) / 2;

		if (to[middle].x > from->x)
			high = middle;
		else
			low = middle + 1;
	}
	if (low == n)
		return false;
	high = n - 1;
	while (low < high) {
		size_t middle = (low + high) / 2;

		/* Is the next one beyond the line to this one? */
		if (sync_hull_turn(from, &to[middle], &to[middle + 1]) * side < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*found = slope(from, &to[low]);
	return true;
}

/* The slopes that are left by a corner of @from and each corner of @to right of it. */
static void sync_hull_narrow(struct corridor *corridor, bool is_above)
{
	const struct ky_hull_point *from = is_above ? corridor->least : corridor->most;
	const struct ky_hull_point *to = is_above ? corridor->most : corridor->least;
	size_t n_from = is_above ? corridor->n_least : corridor->n_most;
	size_t n_to = is_above ? corridor->n_most : corridor->n_least;
	int64_t found;

	for (size_t i = 0; i < n_from; i++) {
		if (!flattest(&from[i], to, n_to, is_above ? 1 : -1, &found))
			continue;
		if (is_above && found + 1 < corridor->drift_most) {
			corridor->drift_most = found + 1;
			corridor->is_seen_above = true;
		} else if (!is_above && found > corridor->drift_least) {
			corridor->drift_least = found;
			corridor->is_seen_below = true;
		}
	}
}

/* The most that the offset is at @x with drift @drift, by all that it is at most (@side 1); the least (-1). */
static __int128 sync_hull_reach(const struct ky_hull_point *points, size_t n, int side, int64_t x,
				int64_t drift)
{
	__int128 best = 0;

	for (size_t i = 0; i < n; i++) {
		__int128 product = ((__int128)x - points[i].x) * drift;
		__int128 at =
			points[i].y + (side > 0 ? -floored(-product, ONE) : floored(product, ONE));

		if (!i || (at - best) * side < 0)
			best = at;
	}
	return best;
}

static __int128 highest(const struct corridor *corridor, int64_t x, int64_t drift)
{
	return sync_hull_reach(corridor->most, corridor->n_most, 1, x, drift);
}

static __int128 lowest(const struct corridor *corridor, int64_t x, int64_t drift)
{
	return sync_hull_reach(corridor->least, corridor->n_least, -1, x, drift);
}

static uint64_t half(__int128 low, __int128 high)
{
	__int128 width = high - low;

	width = width < 0 ? -width : width;
	return width / 2 + 1 > INT64_MAX ? INT64_MAX : (uint64_t)(width / 2 + 1);
}

/* How far the drift may be from @drift: that of the middle line may be at an end of what is possible. */
static uint64_t drift_bound(int64_t least, int64_t most, int64_t drift)
{
	__int128 below = (__int128)drift - least, above = (__int128)most - drift;

	below = below < 0 ? -below : below;
	above = above < 0 ? -above : above;
	return (uint64_t)(below > above ? below : above) + 1;
}

/*
 * Points that lie close together do not tell the drift, and the line between them may have any. A line around their centre with the middle of
 * the possible drifts is as good between them, and better before and behind them.
 */
static void take_middle_drift(const struct corridor *corridor, struct ky_hull_line *line)
{
	int64_t middle = (int64_t)(((__int128)corridor->drift_least + corridor->drift_most) / 2);
	__int128 turned =
		floored(((__int128)line->end - line->begin) * ((__int128)line->drift - middle),
			2 * (__int128)ONE);
	uint64_t bound = line->begin_bound < line->end_bound ? line->begin_bound : line->end_bound;
	__int128 size = turned < 0 ? -turned : turned + 1;

	if (size > bound / 16)
		return;
	line->offset = (int64_t)(line->offset + turned);
	line->drift = middle;
	line->begin_bound += (uint64_t)size;
	line->end_bound += (uint64_t)size;
}

/* The middle of all lines: of their lowest and highest values at the begin and at the end. */
static void take_middle(const struct corridor *corridor, struct ky_hull_line *line)
{
	int64_t least = corridor->drift_least, most = corridor->drift_most;
	__int128 begin_low = lowest(corridor, line->begin, most);
	__int128 begin_high = highest(corridor, line->begin, least);
	__int128 end_low = lowest(corridor, line->end, least);
	__int128 end_high = highest(corridor, line->end, most);
	__int128 length = (__int128)line->end - line->begin;
	__int128 rise = floored(end_low + end_high, 2) - floored(begin_low + begin_high, 2);

	line->at = line->begin;
	line->offset = (int64_t)floored(begin_low + begin_high, 2);
	line->drift = (int64_t)(((__int128)least + most) / 2);
	if (length && rise < length && rise > -length)
		line->drift = (int64_t)floored(rise * ONE, length);
	line->begin_bound = half(begin_low, begin_high);
	line->end_bound = half(end_low, end_high) + 1;
	if (line->is_possible && !line->is_drift_seen)
		take_middle_drift(corridor, line);
	line->drift_bound = drift_bound(least, most, line->drift);
}

static void range(const struct ky_hull_point *points, size_t n, struct ky_hull_line *line)
{
	line->begin = points[0].x < line->begin ? points[0].x : line->begin;
	line->end = points[n - 1].x > line->end ? points[n - 1].x : line->end;
}

/* Points of both hulls at one place. */
static bool are_apart(const struct corridor *corridor)
{
	for (size_t i = 0, j = 0; i < corridor->n_least && j < corridor->n_most;) {
		if (corridor->least[i].x == corridor->most[j].x &&
		    corridor->least[i].y > corridor->most[j].y)
			return false;
		if (corridor->least[i].x < corridor->most[j].x)
			i++;
		else
			j++;
	}
	return true;
}

static void solve(struct corridor *corridor, int64_t drift_max, struct ky_hull_line *line)
{
	corridor->drift_least = -drift_max;
	corridor->drift_most = drift_max;
	sync_hull_narrow(corridor, true);
	sync_hull_narrow(corridor, false);
	*line = (struct ky_hull_line){.begin = INT64_MAX, .end = INT64_MIN};
	range(corridor->least, corridor->n_least, line);
	range(corridor->most, corridor->n_most, line);
	line->is_possible = corridor->drift_least <= corridor->drift_most && are_apart(corridor);
	line->is_drift_seen =
		line->is_possible && corridor->is_seen_above && corridor->is_seen_below;
	if (!line->is_possible) {
		/* A clock was set meanwhile, perhaps: the line in the middle of what contradicts. */
		corridor->drift_least = corridor->drift_least < -drift_max  ? -drift_max
					: corridor->drift_least > drift_max ? drift_max
									    : corridor->drift_least;
		corridor->drift_most = corridor->drift_most < -drift_max  ? -drift_max
				       : corridor->drift_most > drift_max ? drift_max
									  : corridor->drift_most;
	}
	take_middle(corridor, line);
}

static struct ky_hull_point *sync_hull_chain_of(const struct ky_hull *hull, int side, size_t *n)
{
	struct ky_hull_point *sorted = malloc((2 * hull->points.len + 1) * sizeof(*sorted));
	struct ky_hull_point *out = sorted + hull->points.len;

	if (!sorted)
		return NULL;
	for (size_t i = 0; i < hull->points.len; i++)
		sorted[i] = hull->points.data[i];
	qsort(sorted, hull->points.len, sizeof(*sorted), by_place);
	*n = sync_hull_chain(sorted, hull->points.len, side, out);
	for (size_t i = 0; i < *n; i++)
		sorted[i] = out[i];
	return sorted;
}

int ky_hull_solve(const struct ky_hull *least, const struct ky_hull *most, int64_t drift_max,
		  struct ky_hull_line *line)
{
	struct corridor corridor = {0};
	int ret = KYMO_E_MEMORY;

	corridor.least = sync_hull_chain_of(least, -1, &corridor.n_least);
	corridor.most = sync_hull_chain_of(most, 1, &corridor.n_most);
	if (corridor.least && corridor.most) {
		solve(&corridor, drift_max, line);
		ret = KYMO_OK;
	}
	free(corridor.least);
	free(corridor.most);
	return ret;
}
