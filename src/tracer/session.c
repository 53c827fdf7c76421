/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tracer/tracer.h"

/* ---- which events a session wants ---- */

static unsigned char bit_of(const struct ky_slot *slot)
{
	return (unsigned char)(1u << slot->number);
}

static const struct ky_session_rule *rules_of(const struct ky_session_file *file)
{
	return (const void *)((const char *)file + file->rules);
}

/*
 * The filters of all rules that take the event, as a list; an event that is taken by one without
 * a filter has none. Returns whether there is a rule at all that could be true.
 */
static bool link_filters(const struct ky_slot *slot, const struct ky_event *event,
			 struct ky_filter_linked **to, uint32_t *reason)
{
	const struct ky_session_rule *rules = rules_of(slot->file);
	struct ky_filter_linked *list = NULL, *filter;
	bool is_always = false;

	for (uint32_t i = 0; i < slot->file->n_rules && !is_always; i++) {
		if (!ky_rule_takes(slot->file, &rules[i], event))
			continue;
		/* The end of a span belongs to its begin, which was filtered. */
		if (!rules[i].n_code || event->kind == KY_EVENT_SPAN_END ||
		    event->kind == KY_EVENT_QUERY) {
			is_always = true;
			continue;
		}
		filter = NULL;
		int off = ky_filter_link(slot, &rules[i], event, &filter);

		if (off)
			*reason = (uint32_t)off;
		if (filter) {
			filter->next = list;
			list = filter;
		}
	}
	*to = is_always ? NULL : list;
	return is_always || list;
}

static int make_ring(struct ky_slot *slot)
{
	struct ky_control_slot *shared = &ky_trace.control->slots[slot->number];
	long dir_fd = ky_sys(SYS_openat, AT_FDCWD, (long)slot->directory,
			     O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW, 0, 0, 0);
	int os_error = 0, result;

	if (dir_fd < 0) {
		shared->os_error = (int32_t)-dir_fd;
		return KY_OFF_DIRECTORY;
	}
	result = ky_directory_is_safe((int)dir_fd) ? ky_ring_file_make(slot, (int)dir_fd, &os_error)
						   : KY_OFF_OWNER;
	shared->os_error = os_error;
	if (result && result != KY_OFF_OWNER)
		ky_ring_file_note((int)dir_fd, (uint32_t)result, os_error);
	ky_sys(SYS_close, dir_fd, 0, 0, 0, 0, 0);
	return result;
}

/* The bytes of an event that is one number, where there is nothing else to do than one test. */
static uint8_t fast_bytes(const struct ky_slot *slot, const struct ky_event *event,
			  const struct ky_wish *wish)
{
	bool is_one = event->shape == KY_SHAPE_FIXED && event->n_fields == 1;
	bool is_easy = !wish->filter || (wish->filter->n_tests == 1 && !wish->filter->next);

	if (!is_one || !is_easy || slot->n_contexts || slot->clock != KY_CLOCK_RECORD_TSC ||
	    wish->id > KY_HEADER_ID_MAX || event->kind == KY_EVENT_QUERY)
		return 0;
	return event->fixed_bytes;
}

/* Release: who finds the wish finds it whole, and its slot. Partners: acquire in hits. */
static void publish(struct ky_event *event, uint32_t number, struct ky_wish *wish)
{
	struct ky_wish *only = NULL;
	uint32_t n = 0;

	if (!event->is_gone)
		__atomic_store_n(&event->site->straight, NULL, __ATOMIC_RELEASE);
	__atomic_store_n(&event->only, NULL, __ATOMIC_RELEASE);
	__atomic_store_n(&event->wishes[number], wish, __ATOMIC_RELEASE);
	for (uint32_t i = 0; i < KY_CONTROL_SLOTS; i++) {
		if (!event->wishes[i])
			continue;
		only = event->wishes[i];
		n++;
	}
	only = n == 1 ? only : NULL;
	__atomic_store_n(&event->only, only, __ATOMIC_RELEASE);
	if (only && only->fast_bytes == 8 && !only->filter && !event->is_gone &&
	    only->site == event->site)
		__atomic_store_n(&event->site->straight, only, __ATOMIC_RELEASE);
}

static int want(struct ky_slot *slot, struct ky_event *event, struct ky_filter_linked *filter)
{
	struct ky_wish *wish = ky_trace_alloc(sizeof(*wish));

	if (!wish)
		return KY_OFF_MEMORY;
	wish->ring = slot->ring;
	wish->room = slot->ring.subbuf_mask - 12;
	wish->clock = slot->clock;
	wish->slot = slot;
	wish->site = event->site;
	wish->filter = filter;
	wish->asked_cookie = &ky_trace.control->slots[slot->number].cookie;
	wish->cookie = slot->cookie;
	wish->id = event->ids[slot->number];
	wish->bit = bit_of(slot);
	wish->fast_bytes = fast_bytes(slot, event, wish);
	publish(event, slot->number, wish);
	__atomic_fetch_or(&event->mask, wish->bit, __ATOMIC_RELEASE);
	ky_trace.control->slots[slot->number].n_events += event->kind != KY_EVENT_QUERY;
	return 0;
}

/* Decide whether @slot wants @event. A reason why not, or 0. */
static uint32_t decide(struct ky_slot *slot, struct ky_event *event)
{
	struct ky_filter_linked *filter;
	uint32_t reason = 0;

	if (!link_filters(slot, event, &filter, &reason))
		return reason;
	if (!slot->ring.file)
		reason = (uint32_t)make_ring(slot);
	if (slot->ring.file && event->kind != KY_EVENT_QUERY && !(event->has_id & bit_of(slot)))
		reason = (uint32_t)ky_ring_file_id(slot, event);
	if (slot->ring.file && (event->kind == KY_EVENT_QUERY || (event->has_id & bit_of(slot)))) {
		int off = want(slot, event, filter);

		reason = off ? (uint32_t)off : reason;
	}
	return reason;
}

/* Not from the record, which lies in memory that others may write to: pages are aligned. */
static uint32_t byte_of(const struct ky_event *event)
{
	return (uint32_t)((uintptr_t)event->enable % KY_ENABLE_BYTES);
}

/* Hits that find other bits than these in their byte ask. */
static void expect(const struct ky_module *module, unsigned char bit, const uint8_t *wanted)
{
	for (struct ky_event *event = ky_trace.events; event; event = event->next) {
		uint32_t byte;

		if (event->module != module || event->is_gone)
			continue;
		byte = byte_of(event);
		if (wanted[byte / 8] >> byte % 8 & 1)
			__atomic_fetch_or(&event->expected, bit, __ATOMIC_RELEASE);
		else
			__atomic_fetch_and(&event->expected, (unsigned char)~bit, __ATOMIC_RELEASE);
	}
}

/* Enable bytes that are set and should not be lose the slot's bit; those that should be have it. */
static void correct_enable_bytes(const struct ky_slot *slot)
{
	unsigned char bit = bit_of(slot), *page;
	uint8_t wanted[KY_ENABLE_BYTES / 8];
	/* A child may have unloaded what its parent, whose pages these are, has still. */
	bool may_clear = ky_trace.pid == ky_trace_pid() || !ky_trace.slots[slot->number];

	for (struct ky_module *module = ky_trace.modules; module; module = module->next) {
		memset(wanted, 0, sizeof(wanted));
		for (struct ky_event *event = ky_trace.events; event; event = event->next) {
			if (event->module != module || event->is_gone || !(event->mask & bit))
				continue;
			wanted[byte_of(event) / 8] |= (uint8_t)(1u << byte_of(event) % 8);
		}
		expect(module, bit, wanted);
		page = (unsigned char *)ky_trace.control + KY_ENABLE_OFFSET(module->page, 0);
		for (uint32_t i = 0; i < KY_ENABLE_BYTES; i++) {
			bool is_wanted = wanted[i / 8] >> i % 8 & 1;

			if (is_wanted && !(page[i] & bit))
				__atomic_fetch_or(&page[i], bit, __ATOMIC_RELEASE);
			else if (!is_wanted && may_clear && (page[i] & bit))
				__atomic_fetch_and(&page[i], (unsigned char)~bit, __ATOMIC_RELAXED);
		}
	}
}

static void ask_about_new_events(struct ky_slot *slot)
{
	struct ky_control_slot *shared = &ky_trace.control->slots[slot->number];
	unsigned char bit = bit_of(slot);
	uint32_t reason = shared->reason;
	bool is_new = false;

	for (struct ky_event *event = ky_trace.events; event; event = event->next) {
		uint32_t now;

		if (event->is_gone || (event->known & bit))
			continue;
		is_new = true;
		now = slot->file ? decide(slot, event) : 0;
		reason = now ? now : reason;
		event->known |= bit;
	}
	if (!is_new)
		return;
	correct_enable_bytes(slot);
	if (slot->file && !shared->n_events)
		reason = reason ? reason : KY_OFF_NO_EVENT;
	else if (reason == KY_OFF_NO_EVENT)
		reason = 0;
	shared->reason = reason;
}

void ky_sessions_new_events(void)
{
	for (uint32_t i = 0; i < KY_CONTROL_SLOTS; i++) {
		if (ky_trace.slots[i])
			ask_about_new_events(ky_trace.slots[i]);
	}
}

/* ---- joining and leaving ---- */

/* All events: not asked, not wanted, by slot @number. */
static void forget_events(uint32_t number, bool keep_ids)
{
	unsigned char keep = (unsigned char)~(1u << number);

	for (struct ky_event *event = ky_trace.events; event; event = event->next) {
		__atomic_fetch_and(&event->mask, keep, __ATOMIC_RELAXED);
		__atomic_fetch_and(&event->expected, keep, __ATOMIC_RELAXED);
		event->known &= keep;
		event->has_id &= keep_ids ? 0xff : keep;
		publish(event, number, NULL);
	}
}

static bool is_tracked(const struct ky_session_file *file)
{
	const uint32_t *pids = (const void *)((const char *)file + file->track_pids);

	for (uint32_t i = 0; i < file->n_track_pids; i++) {
		if (pids[i] == ky_trace_pid())
			return true;
	}
	return !file->n_track_pids;
}

/* What goes on when the session's file changed: ring, ids. */
static void take_over(struct ky_slot *slot, struct ky_slot *old)
{
	slot->ring = old->ring;
	slot->ring.client = slot;
	slot->blob = old->blob;
	slot->pid = old->pid;
	slot->next_id = old->next_id;
	memcpy(slot->trace_uuid, old->trace_uuid, sizeof(slot->trace_uuid));
	slot->n_contexts = old->n_contexts;
	slot->context_bytes = old->context_bytes;
	memcpy(slot->contexts, old->contexts, sizeof(slot->contexts));
}

static void leave(uint32_t number)
{
	struct ky_slot *old = ky_trace.slots[number];

	if (!old)
		return;
	forget_events(number, false);
	__atomic_store_n(&ky_trace.slots[number], NULL, __ATOMIC_RELEASE);
	correct_enable_bytes(old);
	if (!(ky_trace.control->slots[number].flags & KY_SLOT_NO_CALLS))
		ky_ring_file_leave(old);
}

/* Fill slot @number of this process, for the session in @slot->file, or none. */
static void enter(struct ky_slot *slot, uint32_t number, uint32_t reason)
{
	struct ky_control_slot *shared = &ky_trace.control->slots[number];
	struct ky_slot *old = ky_trace.slots[number];
	bool goes_on = old && old->ring.file && old->pid == ky_trace_pid() && slot->file &&
		       !memcmp(old->uuid, slot->file->uuid, sizeof(old->uuid));

	slot->number = number;
	if (slot->file) {
		memcpy(slot->uuid, slot->file->uuid, sizeof(slot->uuid));
		slot->clock = slot->file->clock.kind;
	}
	if (goes_on)
		take_over(slot, old);
	else if (old)
		leave(number);
	if (slot->file && !goes_on) {
		int off = ky_contexts_link(slot);

		reason = off ? (uint32_t)off : reason;
	}
	forget_events(number, goes_on);
	shared->n_events = 0;
	shared->reason = reason;
	shared->joined_pid = ky_trace_pid();
	/* Before the events: a hit that sees the bit finds the slot. Partner: hits. */
	__atomic_store_n(&ky_trace.slots[number], slot, __ATOMIC_RELEASE);
	ask_about_new_events(slot);
	__atomic_store_n(&shared->joined, slot->cookie, __ATOMIC_RELEASE);
}

/* Read the session in @dir_fd for @slot. 0 or enum ky_off. */
static int read_session(struct ky_slot *slot, int dir_fd, int *os_error)
{
	const struct ky_session_file *file;
	int result = ky_session_read(dir_fd, &file, &slot->file_bytes, os_error);

	if (result)
		return result;
	slot->file = file;
	if (file->clock.kind == KY_CLOCK_RECORD_TSC ||
	    file->clock.kind == KY_CLOCK_RECORD_MONOTONIC)
		return is_tracked(file) ? 0 : KY_OFF_NO_EVENT;
	return KY_OFF_VERSION;
}

/* A slot asks for a session that is not known. */
static void join(uint32_t number, uint64_t cookie)
{
	struct ky_control_slot *shared = &ky_trace.control->slots[number];
	struct ky_slot *slot = ky_trace_alloc(sizeof(*slot));
	int result, os_error = 0;
	long dir_fd;

	if (!slot)
		return;
	slot->cookie = cookie;
	memcpy(slot->directory, shared->directory, sizeof(slot->directory));
	slot->directory[sizeof(slot->directory) - 1] = 0;
	dir_fd = ky_sys(SYS_openat, AT_FDCWD, (long)slot->directory,
			O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW, 0, 0, 0);
	if (dir_fd < 0) {
		result = KY_OFF_DIRECTORY;
		os_error = (int)-dir_fd;
	} else {
		result = read_session(slot, (int)dir_fd, &os_error);
		ky_sys(SYS_close, dir_fd, 0, 0, 0, 0, 0);
	}
	/* The session may be another one by now: then its cookie comes with the next hit. */
	if (result)
		slot->file = NULL;
	shared->os_error = os_error;
	enter(slot, number, (uint32_t)result);
}

/* Another slot, before this one, has the session: this one is not needed. */
static bool is_double(uint32_t number, uint64_t cookie)
{
	for (uint32_t i = 0; i < number; i++) {
		if (__atomic_load_n(&ky_trace.control->slots[i].cookie, __ATOMIC_ACQUIRE) == cookie)
			return true;
	}
	return false;
}

/* Bits that were set and mean nothing: by a recorder that set too many, or died half-way. */
static void correct_slot(uint32_t number)
{
	struct ky_slot none = {.number = number};

	if (ky_trace.slots[number])
		correct_enable_bytes(ky_trace.slots[number]);
	else if (!__atomic_load_n(&ky_trace.control->slots[number].owner, __ATOMIC_RELAXED))
		correct_enable_bytes(&none);
}

void ky_sessions_sync(void)
{
	for (uint32_t i = 0; i < KY_CONTROL_SLOTS; i++) {
		struct ky_control_slot *shared = &ky_trace.control->slots[i];
		/* Partner: the store-release of who filled the slot. */
		uint64_t cookie = __atomic_load_n(&shared->cookie, __ATOMIC_ACQUIRE);
		struct ky_slot *slot = ky_trace.slots[i];

		if (slot ? slot->cookie == cookie : !cookie) {
			correct_slot(i);
			continue;
		}
		if (cookie && is_double(i, cookie)) {
			__atomic_store_n(&shared->cookie, 0, __ATOMIC_RELAXED);
			__atomic_store_n(&shared->owner, 0, __ATOMIC_RELEASE);
			cookie = 0;
		}
		if (cookie) {
			join(i, cookie);
			continue;
		}
		leave(i);
		/* The recorder's own end: the slot may be taken again. */
		__atomic_store_n(&shared->joined, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&shared->reason, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&shared->owner, 0, __ATOMIC_RELEASE);
	}
}

/*
 * A child that makes itself a control file goes without its parent's sessions until it finds them
 * for itself. The parent's rings stay mapped: a hit may be using them.
 */
void ky_sessions_forget(void)
{
	for (uint32_t i = 0; i < KY_CONTROL_SLOTS; i++)
		__atomic_store_n(&ky_trace.slots[i], NULL, __ATOMIC_RELAXED);
}

/* ---- the runtime directories ---- */

/* A free slot of the control file, for us. */
static struct ky_control_slot *claim_slot(uint64_t cookie, uint32_t *number)
{
	struct ky_control_slot *slots = ky_trace.control->slots;
	uint32_t free;

	for (uint32_t i = 0; i < KY_CONTROL_SLOTS; i++) {
		if (__atomic_load_n(&slots[i].cookie, __ATOMIC_ACQUIRE) == cookie)
			return NULL;
	}
	for (uint32_t i = 0; i < KY_CONTROL_SLOTS; i++) {
		free = 0;
		if (__atomic_compare_exchange_n(&slots[i].owner, &free, ky_trace_pid(), false,
						__ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
			*number = i;
			return &slots[i];
		}
	}
	ky_trace.off = KY_OFF_SLOTS;
	return NULL;
}

/*
 * Where the session's directory is, in @to, which has KY_SESSION_PATH_MAX + 1: the recorder may have it
 * elsewhere; then there is a link that says where, which nobody but those whom we believe can have made.
 */
static bool find_directory(int runtime_fd, const char *path, const char *name, char *to)
{
	size_t n = strlen(path), m = strlen(name);
	long got;

	if (m > KY_SESSION_NAME_MAX || n + 1 + m > KY_SESSION_PATH_MAX)
		return false;
	got = ky_sys(SYS_readlinkat, runtime_fd, (long)name, (long)to, KY_SESSION_PATH_MAX + 1, 0,
		     0);
	if (got > 0) {
		to[got <= KY_SESSION_PATH_MAX ? got : 0] = 0;
		return to[0] == '/';
	}
	memcpy(to, path, n);
	to[n] = '/';
	memcpy(to + n + 1, name, m + 1);
	return true;
}

/* The session in directory @name of @runtime, whose path is @path. */
static void find_session(int runtime_fd, const char *path, const char *name)
{
	char directory[KY_SESSION_PATH_MAX + 1] = "";
	struct ky_control_slot *shared;
	struct ky_slot *slot;
	int os_error, result;
	uint32_t number;
	long dir_fd;

	if (!find_directory(runtime_fd, path, name, directory))
		return;
	dir_fd = ky_sys(SYS_openat, AT_FDCWD, (long)directory,
			O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW, 0, 0, 0);
	if (dir_fd < 0)
		return;
	slot = ky_trace_alloc(sizeof(*slot));
	result = slot ? read_session(slot, (int)dir_fd, &os_error) : KY_OFF_MEMORY;
	ky_sys(SYS_close, dir_fd, 0, 0, 0, 0, 0);
	if (result)
		return;
	shared = claim_slot(slot->file->cookie, &number);
	if (!shared)
		return;
	memcpy(slot->directory, directory, sizeof(slot->directory));
	memcpy(shared->directory, directory, sizeof(slot->directory));
	slot->cookie = slot->file->cookie;
	shared->os_error = 0;
	__atomic_store_n(&shared->cookie, slot->cookie, __ATOMIC_RELEASE);
	enter(slot, number, 0);
}

/* As the kernel gives them. */
struct entry {
	uint64_t inode;
	int64_t offset;
	uint16_t bytes;
	uint8_t type;
	char name[];
};

static void find_in(const char *path)
{
	_Alignas(8) char buffer[2048];
	long fd = ky_sys(SYS_openat, AT_FDCWD, (long)path,
			 O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW, 0, 0, 0);
	long got;

	if (fd < 0)
		return;
	while (ky_directory_is_safe((int)fd) &&
	       (got = ky_sys(SYS_getdents64, fd, (long)buffer, sizeof(buffer), 0, 0, 0)) > 0) {
		for (long at = 0; at < got;) {
			const struct entry *entry = (const struct entry *)(buffer + at);

			if (entry->name[0] != '.')
				find_session((int)fd, path, entry->name);
			at += entry->bytes;
		}
	}
	ky_sys(SYS_close, fd, 0, 0, 0, 0, 0);
}

/* @format has one %u. */
static void put_path(char *to, const char *format, uint32_t uid)
{
	char digits[11];
	int n = 0;

	for (; *format; format++) {
		if (format[0] != '%') {
			*to++ = *format;
			continue;
		}
		format++;
		do {
			digits[n++] = (char)('0' + uid % 10);
			uid /= 10;
		} while (uid);
		while (n)
			*to++ = digits[--n];
	}
	*to = 0;
}

void ky_sessions_find(void)
{
	static const char *const formats[] = {KY_RUNTIME_ROOT, KY_RUNTIME_USER, KY_RUNTIME_SHM};
	uint32_t uid = ky_trace.control->uid;
	char path[64];

	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		put_path(path, formats[i], uid);
		find_in(path);
	}
}
