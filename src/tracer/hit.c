/* SPDX-License-Identifier: MIT */
/*
 * An event is hit. The order of what is looked at, and who wrote it:
 *
 *	site->event		at registration	(acquire; release in add_site())
 *	the enable byte		recorder, sync	which slots to look at
 *	event->expected, mask	sync		which bits are to be expected there, and meant
 *	event->reservations[s]	sync		(acquire) session, id and filter, as this process knows them
 *	control's cookie	recorder	still that session?
 *
 * Everything behind a pointer is complete and does not change, so a hit needs no lock. A
 * hit that runs beside a change sees the session before it or the one after it.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tracer/ring-config.h"
#include "tracer/tracer.h"

#define INLINE static inline __attribute__((always_inline))

/* ---- records of numbers only are packed here ---- */

INLINE void record(struct ky_reservation *reservation, const struct ky_event *event,
		   const uint64_t *values, struct ky_place place)
{
	uint64_t payload[KY_EVENT_FIELDS_MAX + 1];
	uint8_t *at = (uint8_t *)payload;

	if (__builtin_expect(event->shape != KY_SHAPE_FIXED || reservation->slot->n_contexts, 0)) {
		ky_record_any(reservation, event, values, place);
		return;
	}
	for (uint32_t i = 0; i < event->n_fields; i++) {
		ky_put_number(at, values[i], event->fields[i].bytes);
		at += event->fields[i].bytes;
	}
	ky_record_payload(reservation, payload, event->fixed_bytes);
}

/* ---- filters ---- */

INLINE bool test_holds(const struct ky_test *test, uint64_t value)
{
	return (value ^ test->flip) - test->low <= test->span;
}

INLINE bool passes(const struct ky_filter_linked *filter, const struct ky_event *event,
		   const uint64_t *values, struct ky_place place)
{
	for (; filter; filter = filter->next) {
		uint32_t i = 0;

		if (!filter->n_tests) {
			if (ky_filter_run(filter, event, values, place.ip))
				return true;
			continue;
		}
		while (i < filter->n_tests &&
		       test_holds(&filter->tests[i], values[filter->tests[i].value]))
			i++;
		if (i == filter->n_tests)
			return true;
	}
	return false;
}

/* ---- sessions ---- */

/*
 * Signals wait meanwhile: a handler that does not come back would leave the lock taken for ever, one that
 * forks two processes that believe to have it. Only where no system call is needed none is made: the
 * program may be in a sandbox.
 */
static bool try_sync(void)
{
	bool may_call = ky_sessions_need_calls(), is_done;
	uint64_t signals = 0;

	if (may_call)
		signals = kymo_ring_signals_block();
	is_done = ky_trace_trylock();
	if (is_done) {
		ky_sessions_sync(may_call);
		ky_trace_unlock();
	}
	if (may_call)
		kymo_ring_signals_restore(signals);
	return is_done;
}

static void hit_lost_joining(uint32_t i)
{
	/* Partner: the release in enter(). */
	struct ky_slot *slot = __atomic_load_n(&ky_trace.slots[i], __ATOMIC_ACQUIRE);
	struct ky_blob *blob = slot ? __atomic_load_n(&slot->blob, __ATOMIC_ACQUIRE) : NULL;

	if (blob)
		__atomic_fetch_add(&blob->lost_joining, 1, __ATOMIC_RELAXED);
}

/* A recorder has set a bit of an unknown session. False: the hit is lost, and counted. */
static __attribute__((noinline, cold)) bool sync(void)
{
	if (!ky_trace_is_locked() && try_sync())
		return true;
	/* Another thread is at it, or this one was interrupted there. */
	for (uint32_t i = 0; i < KY_CONTROL_SLOTS; i++)
		hit_lost_joining(i);
	return false;
}

/*
 * A recorder has set a bit of an unknown session, or a session with this enable byte does not want the event: the
 * byte belongs to another event, too, or a recorder changes the rules now (it clears the expected bits first, and
 * sets them last).
 */
static __attribute__((noinline)) uint32_t wanted_now(const struct ky_event *event)
{
	uint32_t asked = __atomic_load_n(event->enable, __ATOMIC_RELAXED);

	/* Acquire, and in this order. Partners: ky_session_forget_events(), expect(). */
	if (asked & ~(uint32_t)__atomic_load_n(&event->expected, __ATOMIC_ACQUIRE)) {
		sync();
		asked = __atomic_load_n(event->enable, __ATOMIC_RELAXED);
	}
	return asked & __atomic_load_n(&event->mask, __ATOMIC_ACQUIRE);
}

/* The slots to record in. */
INLINE uint32_t wanted_by(const struct ky_event *event)
{
	uint32_t asked = __atomic_load_n(event->enable, __ATOMIC_RELAXED);

	/* Partner: the release in want(). What is expected is what is wanted, or more. */
	uint32_t wanted = asked & __atomic_load_n(&event->mask, __ATOMIC_ACQUIRE);

	return __builtin_expect(wanted == asked, 1) ? wanted : wanted_now(event);
}

/* Is the session on? */
INLINE bool is_on(struct ky_reservation *reservation)
{
	return __atomic_load_n(reservation->asked_cookie, __ATOMIC_RELAXED) == reservation->cookie;
}

/* Its rules have changed, or are being changed just now, or it has ended. */
static __attribute__((noinline, cold)) struct ky_reservation *
reserve_again(const struct ky_event *event, uint32_t i)
{
	struct ky_reservation *reservation = NULL;

	if (sync())
		reservation = __atomic_load_n(&event->reservations[i], __ATOMIC_ACQUIRE);
	return reservation && is_on(reservation) ? reservation : NULL;
}

/* Slot @i's reservation, if there is one, and the session is on. */
INLINE struct ky_reservation *reservation_of(const struct ky_event *event, uint32_t i)
{
	/* Partner: the release in publish(). */
	struct ky_reservation *reservation =
		__atomic_load_n(&event->reservations[i], __ATOMIC_ACQUIRE);

	return __builtin_expect(reservation && is_on(reservation), 1) ? reservation
								      : reserve_again(event, i);
}

/* Returns the slots in which it was recorded. */
static __attribute__((noinline)) uint32_t hit(struct kymo_site *site, const uint64_t *values,
					      struct ky_place place)
{
	/* Partner: the release in add_site(). */
	const struct ky_event *event = __atomic_load_n(&site->event, __ATOMIC_ACQUIRE);
	uint32_t done = 0, left;

	if (__builtin_expect(!event, 0))
		return 0;
	left = wanted_by(event);
	if (__builtin_expect(!left, 0)) {
		/* The process may have begun anew meanwhile. */
		event = __atomic_load_n(&site->event, __ATOMIC_ACQUIRE);
		left = event ? wanted_by(event) : 0;
	}
	for (; left; left &= left - 1) {
		struct ky_reservation *reservation =
			reservation_of(event, (uint32_t)__builtin_ctz(left));

		if (!reservation ||
		    (reservation->filter && !passes(reservation->filter, event, values, place)))
			continue;
		record(reservation, event, values, place);
		done |= reservation->bit;
	}
	return done;
}

/*
 * The frame pointer as the caller has left it, in functions that are so small that the compiler needs the register for
 * nothing else: a frame of their own would cost every event. Where the compiler makes one all the same, the walk begins there.
 */
INLINE uintptr_t frame_register(void)
{
	uintptr_t frame;

#if defined(__x86_64__)
	__asm__ volatile("mov %%rbp, %0" : "=r"(frame));
#elif defined(__aarch64__)
	__asm__ volatile("mov %0, x29" : "=r"(frame));
#else
	frame = (uintptr_t)__builtin_frame_address(0);
#endif
	return frame;
}

#define IP ((uintptr_t)__builtin_return_address(0))

/* For functions that do nothing but pass it on; for others, which then have a frame of their own. */
#define CALLER	   ((struct ky_place){IP, frame_register()})
#define FRAME_HERE ((struct ky_place){IP, (uintptr_t)__builtin_frame_address(0)})

void kymo_hit(struct kymo_site *site, const uint64_t *values)
{
	hit(site, values, CALLER);
}

/* The only session that wants the event, as far as that is known at once. */
INLINE struct ky_reservation *only_reservation(const struct kymo_site *site)
{
	const struct ky_event *event = __atomic_load_n(&site->event, __ATOMIC_ACQUIRE);
	struct ky_reservation *reservation =
		event ? __atomic_load_n(&event->only, __ATOMIC_ACQUIRE) : NULL;

	return __builtin_expect(reservation &&
					__atomic_load_n(event->enable, __ATOMIC_RELAXED) ==
						reservation->bit &&
					is_on(reservation),
				1)
		       ? reservation
		       : NULL;
}

/* One session, which does not want it, or whose record is one number: as little as it takes. False: it takes more. */
INLINE bool hit_at_once(struct kymo_site *site, const uint64_t *values)
{
	struct ky_reservation *reservation = only_reservation(site);

	if (!reservation)
		return false;
	if (reservation->has_one_test &&
	    !test_holds(&reservation->test, values[reservation->test.value]))
		return true;
	if (__builtin_expect(reservation->fast_bytes != 8, 0))
		return false;
	kymo_ring_write(&ky_ring_tsc, &reservation->ring, &reservation->id, values, 8);
	return true;
}

/* @reservation: what hit_one() has found; NULL: not enough. */
static __attribute__((noinline)) void hit_one_wanted(struct kymo_site *site, uint64_t value,
						     struct ky_place place,
						     struct ky_reservation *reservation)
{
	if (reservation && reservation->fast_bytes == 8)
		kymo_ring_write(&ky_ring_tsc, &reservation->ring, &reservation->id, &value, 8);
	else
		hit(site, &value, place);
}

/* What a test refuses ends here, before anything needs room on the stack. The event has one value only. */
static __attribute__((noinline)) void hit_one(struct kymo_site *site, uint64_t value,
					      struct ky_place place)
{
	struct ky_reservation *reservation = only_reservation(site);

	if (!reservation || !reservation->has_one_test || test_holds(&reservation->test, value))
		hit_one_wanted(site, value, place, reservation);
}

#if KYMO_RING_HAS_RSEQ && defined(__OPTIMIZE__)
#if defined(__x86_64__)
#include "tracer/straight-x86-64.h"

/* What the assembler there knows. */
_Static_assert(KYMO_RING_POSITION_SHIFT == 5 && KYMO_RING_PARITY == 16, "the commit word");
_Static_assert(offsetof(struct kymo_ring_control, point) == 0 &&
		       offsetof(struct kymo_ring_control, head) == 32 &&
		       sizeof(struct kymo_ring_control) == 256 &&
		       sizeof(struct kymo_ring_point) == 16,
	       "a control block");
_Static_assert(KY_HEADER_TIME_BITS == 27 && KY_HEADER_COMPACT_BYTES == 4, "a record's header");
#else
/* A number of 8 bytes, on @cpu, which has a buffer. False: not done, for any reason. */
INLINE bool straight_write(struct ky_reservation *reservation, ptrdiff_t area, uint64_t cpu,
			   uint64_t value)
{
	struct kymo_ring_spot spot;

	kymo_ring_glance(&ky_ring_tsc, &reservation->ring, cpu, &spot);
	return is_on(reservation) && spot.now >= spot.last &&
	       kymo_ring_write_spot(&ky_ring_tsc, &reservation->ring, area, &spot, &reservation->id,
				    NULL, value, sizeof(value));
}
#endif

static __attribute__((noinline, cold)) void write_one(struct ky_reservation *reservation,
						      uint64_t value, struct ky_place place)
{
	struct kymo_ring_part part = {&value, sizeof(value)};

	if (is_on(reservation))
		kymo_ring_write_slow(&ky_ring_tsc, &reservation->ring, &reservation->id, &part, 1);
	else
		hit_one(reservation->site, value, place);
}

/* The straight path: a number of 8 bytes, one session, no filter. */
__attribute__((aligned(64))) void kymo_hit_one(struct kymo_site *site, uint64_t value,
					       unsigned int on)
{
	/* Partner: the release in publish(). */
	struct ky_reservation *reservation = __atomic_load_n(&site->straight, __ATOMIC_ACQUIRE);
	ptrdiff_t area = ky_rseq_area;
	uint64_t cpu;

	if (__builtin_expect(!reservation || reservation->bit != (uint8_t)on, 0)) {
		hit_one(site, value, CALLER);
		return;
	}
	cpu = kymo_ring_rseq_cpu(area);
	if (__builtin_expect((uint32_t)cpu >= reservation->ring.rseq_buffers ||
				     !straight_write(reservation, area, cpu, value),
			     0))
		write_one(reservation, value, CALLER);
}
#else
void kymo_hit_one(struct kymo_site *site, uint64_t value, unsigned int on)
{
	hit_one(site, value, CALLER);
}
#endif

static __attribute__((noinline)) void hit_from(struct kymo_site *site, const uint64_t *values,
					       struct ky_place place)
{
	if (!hit_at_once(site, values))
		hit(site, values, place);
}

void kymo_hit_from(struct kymo_site *site, const uint64_t *values, uintptr_t ip)
{
	hit_from(site, values, (struct ky_place){ip, frame_register()});
}

unsigned int kymo_hit_begin(struct kymo_site *site, const uint64_t *values)
{
	return hit(site, values, CALLER);
}

void kymo_hit_end(struct kymo_site *site, unsigned int sessions)
{
	const struct ky_event *event = __atomic_load_n(&site->event, __ATOMIC_ACQUIRE);
	struct ky_place place = FRAME_HERE;
	struct ky_reservation *reservation;

	if (!event)
		return;
	for (uint32_t left = wanted_by(event) & sessions; left; left &= left - 1) {
		reservation = reservation_of(event, (uint32_t)__builtin_ctz(left));
		if (reservation)
			record(reservation, event, NULL, place);
	}
}

void kymo_hit_text(struct kymo_site *site, const char *format, ...)
{
	/* One more than is recorded: what is too long is marked then, as other strings are. */
	char text[KYMO_STRING_MAX + 2];
	uint64_t value = (uint64_t)(uintptr_t)text;
	int saved = errno;
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	errno = saved;
	hit(site, &value, FRAME_HERE);
}

int kymo_site_enabled(struct kymo_site *site)
{
	const struct ky_event *event = __atomic_load_n(&site->event, __ATOMIC_ACQUIRE);

	return event && wanted_by(event) != 0;
}
