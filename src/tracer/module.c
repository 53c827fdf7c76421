/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tracer/tracer.h"

/* Out of the way of programs that count on small numbers. */
#define FD_MIN 200

struct ky_trace ky_trace = {.fd = -1};
ptrdiff_t ky_rseq_area;

_Static_assert(sizeof(struct ky_control) <= KY_CONTROL_ENABLE, "the head fits before the pages");
_Static_assert(KYMO_PAGE_BYTES == KY_ENABLE_BYTES, "a module's page is a page of enable bytes");
_Static_assert(sizeof(struct kymo_site) == 120, "as the asm in kymo/trace-site.h lays it out");

static const char *const off_texts[] = {
	[KY_OFF_NOT] = NULL,
	[KY_OFF_VERSION] = "the recorder is of another version",
	[KY_OFF_DIRECTORY] = "the session's directory cannot be opened",
	[KY_OFF_OWNER] =
		"the session's directory belongs to another user, or other users can write to it",
	[KY_OFF_SESSION] = "the session's file is missing or malformed",
	[KY_OFF_NO_RECORDER] = "the session's recorder is dead",
	[KY_OFF_NO_EVENT] = "no event of this program is wanted",
	[KY_OFF_FILE_SIZE] = "the limit for file sizes (ulimit -f) is too low",
	[KY_OFF_SPACE] = "no space for the ring file",
	[KY_OFF_CREATE] = "the ring file or the control file cannot be created",
	[KY_OFF_MEMORY] = "no memory",
	[KY_OFF_SLOTS] = "too many sessions",
	[KY_OFF_TABLE] = "too many events",
	[KY_OFF_FILTER] = "this version does not support a part of a filter",
	[KY_OFF_CONTEXT] = "a context field is not available here",
	[KY_OFF_OFTEN] = "it was asked to join, or to change its rules, too often",
	[KY_OFF_FIELD] = "no event of this program has the fields of the filter",
};

const char *kymo_trace_off(void)
{
	uint32_t off = ky_trace.off;

	for (uint32_t i = 0; !off && i < KY_CONTROL_SLOTS; i++) {
		/* Partner: the release in ky_session_enter(). */
		struct ky_slot *slot = __atomic_load_n(&ky_trace.slots[i], __ATOMIC_ACQUIRE);

		off = slot ? __atomic_load_n(&slot->reason, __ATOMIC_RELAXED) : 0;
	}
	return off < sizeof(off_texts) / sizeof(off_texts[0]) ? off_texts[off] : "unknown";
}

/* ---- the control file ---- */

/* A memfd of the right size, sealed; or a negative enum ky_off. */
static int control_file(void)
{
	struct rlimit limit;
	long fd, moved;

	/* Making a file larger than that raises SIGXFSZ. */
	if (ky_sys(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&limit, 0, 0) == 0 &&
	    limit.rlim_cur < KY_CONTROL_BYTES)
		return -KY_OFF_FILE_SIZE;
	fd = ky_sys(SYS_memfd_create, (long)KY_CONTROL_MEMFD, MFD_CLOEXEC | MFD_ALLOW_SEALING, 0, 0,
		    0, 0);
	if (fd < 0)
		return -KY_OFF_CREATE;
	moved = ky_sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, FD_MIN, 0, 0, 0);
	if (moved >= 0) {
		ky_sys(SYS_close, fd, 0, 0, 0, 0, 0);
		fd = moved;
	}
	if (ky_sys(SYS_ftruncate, fd, KY_CONTROL_BYTES, 0, 0, 0, 0) < 0 ||
	    ky_sys(SYS_fcntl, fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, 0, 0, 0) <
		    0) {
		ky_sys(SYS_close, fd, 0, 0, 0, 0, 0);
		return -KY_OFF_CREATE;
	}
	return (int)fd;
}

/* Of the control file. */
static dev_t control_device;
static ino_t control_inode;

int kymo_control_fd(void)
{
	return __atomic_load_n(&ky_trace.fd, __ATOMIC_RELAXED);
}

/* Programs close what they did not open, and then the number may be another file's. */
static bool has_control_fd(void)
{
	struct stat stat;

	return ky_fstat(kymo_control_fd(), &stat) == 0 && stat.st_ino == control_inode &&
	       stat.st_dev == control_device;
}

static int control_make(void)
{
	struct ky_control *control;
	int fd = control_file();
	struct stat stat;
	long map;

	if (fd < 0)
		return -fd;
	if (ky_fstat(fd, &stat) == 0) {
		control_device = stat.st_dev;
		control_inode = stat.st_ino;
	}
	map = ky_sys(SYS_mmap, 0, KY_CONTROL_BYTES, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (map < 0) {
		ky_sys(SYS_close, fd, 0, 0, 0, 0, 0);
		return KY_OFF_MEMORY;
	}
	ky_trace.start_ns = (uint64_t)ky_clock_ns(CLOCK_MONOTONIC);
	ky_trace.start_realtime_ns = ky_clock_ns(CLOCK_REALTIME);
	ky_trace.pid = ky_trace_pid();
	ky_trace.uid = (uint32_t)ky_sys(SYS_geteuid, 0, 0, 0, 0, 0, 0);
	ky_sys(SYS_prctl, PR_GET_NAME, (long)ky_trace.procname, 0, 0, 0, 0);
	ky_trace.n_pages = ky_trace.n_records = 0;
	ky_trace.table_bytes = 0;
	control = (struct ky_control *)map; // NOLINT(performance-no-int-to-ptr)
	control->version = KY_CONTROL_VERSION;
	control->pid = ky_trace.pid;
	control->uid = ky_trace.uid;
	control->start_ns = ky_trace.start_ns;
	memcpy(control->procname, ky_trace.procname, sizeof(control->procname));
	/* Partner: the recorder's load; the rest is there. */
	__atomic_store_n(&control->magic, KY_CONTROL_MAGIC, __ATOMIC_RELEASE);
	ky_trace.fd = fd;
	ky_trace.control = control;
	return 0;
}

void kymo_control_fd_move(void)
{
	int fd = kymo_control_fd();
	long moved;

	/* A child of vfork() has our memory, but not our descriptors. */
	if (!ky_trace.process || !has_control_fd() ||
	    (uint32_t)ky_sys(SYS_getpid, 0, 0, 0, 0, 0, 0) != ky_trace_pid())
		return;
	moved = ky_sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, FD_MIN, 0, 0, 0);
	/* Another thread, or a signal's handler, may have moved it. */
	if (moved >= 0 && !__atomic_compare_exchange_n(&ky_trace.fd, &fd, (int)moved, false,
						       __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		ky_sys(SYS_close, moved, 0, 0, 0, 0, 0);
}

static unsigned char *enable_page(uint16_t page)
{
	return (unsigned char *)ky_trace.control + KY_ENABLE_OFFSET(page, 0);
}

/* ---- modules ---- */

/* A page for @module, mapped over the module's own. */
static bool module_map_page(struct ky_module *to, struct kymo_module *module)
{
	long got = ky_sys(SYS_mmap, (long)module->page, KYMO_PAGE_BYTES, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_FIXED, ky_trace.fd, KY_ENABLE_OFFSET(to->page, 0));

	/* Where pages are larger than that, a module's page is not one. */
	if (got < 0)
		ky_trace.off = KY_OFF_MEMORY;
	return got >= 0;
}

static struct ky_module *take_module(struct kymo_module *module)
{
	struct ky_module *to;

	for (to = ky_trace.modules; to && to->module; to = to->next)
		;
	if (!to) {
		if (ky_trace.n_pages >= KY_CONTROL_PAGES)
			return NULL;
		to = ky_trace_alloc(sizeof(*to));
		if (!to)
			return NULL;
		to->page = (uint16_t)ky_trace.n_pages++;
		to->next = ky_trace.modules;
		ky_trace.modules = to;
		__atomic_store_n(&ky_trace.control->n_pages, ky_trace.n_pages, __ATOMIC_RELEASE);
	}
	if (!module_map_page(to, module))
		return NULL;
	to->module = module;
	return to;
}

static void fill_fields(struct ky_event *event)
{
	const struct ky_event_record *record = event->record;
	uint32_t fixed = 0, value = 0;

	event->shape = KY_SHAPE_FIXED;
	for (uint32_t i = 0; i < record->n_fields; i++) {
		const struct ky_field_record *from = &record->fields[i];
		struct ky_field *field = &event->fields[i];

		field->kind = from->kind;
		field->bytes = from->element_bytes;
		field->flags = from->flags;
		field->length = from->length;
		field->name = ky_record_text(record, from->name);
		field->value = (uint8_t)value;
		value += field->kind == KY_KIND_SEQUENCE || field->kind == KY_KIND_TEXT ||
					 field->kind == KY_KIND_BLOB
				 ? 2
				 : 1;
		if (field->kind == KY_KIND_STRING || field->kind >= KY_KIND_ARRAY ||
		    (field->flags & KY_FIELD_FILTER_ONLY))
			event->shape = KY_SHAPE_ANY;
		fixed += field->bytes;
	}
	event->fixed_bytes = (uint8_t)fixed;
}

/* An event like this that was unloaded: a library that comes and goes costs memory once. */
static struct ky_event *find_gone(const struct ky_event_record *record, uint64_t hash)
{
	for (struct ky_event *event = ky_trace.events; event; event = event->next) {
		if (event->is_gone && event->hash == hash && event->record->line == record->line &&
		    event->record->enable_byte == record->enable_byte &&
		    ky_record_same(event->record, record))
			return event;
	}
	return NULL;
}

/* Where the control file has the description of @event. */
static struct ky_event_record *in_table(const struct ky_event *event)
{
	uint8_t *table = (uint8_t *)ky_trace.control + KY_CONTROL_TABLE;

	return (struct ky_event_record *)(table + event->table_at);
}

/* What of @event's description changes, in the table, too. */
static void publish_state(const struct ky_event *event)
{
	struct ky_event_record *shared = in_table(event);

	shared->page = event->record->page;
	shared->flags = event->record->flags;
}

/* A copy of @scratch, which stays. It is put into the table as well. */
static struct ky_event *new_event(const struct ky_event_record *scratch, uint64_t hash)
{
	uint32_t bytes = scratch->bytes;
	struct ky_event_record *record = ky_trace_alloc(bytes);
	struct ky_event *event =
		ky_trace_alloc(sizeof(*event) + scratch->n_fields * sizeof(event->fields[0]));

	if (!event || !record)
		return NULL;
	memcpy(record, scratch, bytes);
	event->record = record;
	event->table_at = (uint32_t)ky_trace.table_bytes;
	memcpy(in_table(event), record, bytes);
	ky_trace.n_records++;
	ky_trace.table_bytes += bytes;
	ky_trace.control->n_events = ky_trace.n_records;
	__atomic_store_n(&ky_trace.control->table_bytes, ky_trace.table_bytes, __ATOMIC_RELEASE);
	event->hash = hash;
	event->kind = record->kind;
	event->n_fields = record->n_fields;
	event->log_level = record->log_level;
	fill_fields(event);
	event->next = ky_trace.events;
	ky_trace.events = event;
	ky_trace.n_events++;
	return event;
}

static void add_site(struct ky_module *module, struct kymo_site *site)
{
	struct ky_event_record *record = ky_trace.scratch;
	uint32_t bytes = ky_describe(site, module->module->page, ky_trace.n_records, module->page,
				     record, KY_CONTROL_TABLE_BYTES - ky_trace.table_bytes);
	struct ky_event *event;
	uint64_t hash;

	if (!bytes || ky_trace.n_records >= KY_EVENTS_MAX) {
		ky_trace.off = KY_OFF_TABLE;
		return;
	}
	hash = ky_record_hash(record);
	event = find_gone(record, hash);
	if (event) {
		event->record->page = module->page;
		event->record->flags &= (uint8_t)~KY_EVENT_GONE;
		event->is_gone = false;
		publish_state(event);
	} else {
		event = new_event(record, hash);
		if (!event)
			return;
	}
	event->module = module;
	event->site = site;
	event->enable = enable_page(module->page) + site->enable_byte;
	/* Partner: the load in hits. */
	__atomic_store_n(&site->event, event, __ATOMIC_RELEASE);
}

static void add_module(struct kymo_module *module)
{
	struct ky_module *to = take_module(module);

	if (!to)
		return;
	for (struct kymo_site *site = module->sites; site < module->sites_end; site++)
		add_site(to, site);
	module->module = to;
	__atomic_fetch_add(&ky_trace.control->table_changes, 1, __ATOMIC_RELEASE);
}

/*
 * All modules get pages of a control file that is our own, where nothing is enabled. A hit that is on its way finds
 * private memory where the other one was: no session is on there.
 */
void ky_modules_begin_anew(void)
{
	struct ky_module *old = ky_trace.modules;
	struct ky_control *control = ky_trace.control;
	struct ky_event *event;

	ky_sessions_forget();
	for (event = ky_trace.events; event; event = event->next) {
		if (event->is_gone)
			continue;
		__atomic_store_n(&event->site->straight, NULL, __ATOMIC_RELEASE);
		__atomic_store_n(&event->site->event, NULL, __ATOMIC_RELEASE);
	}
	ky_trace.events = NULL;
	ky_trace.modules = NULL;
	ky_trace.n_events = 0;
	if (has_control_fd())
		ky_sys(SYS_close, ky_trace.fd, 0, 0, 0, 0, 0);
	ky_trace.off = (uint32_t)control_make();
	for (; old && !ky_trace.off; old = old->next) {
		if (old->module)
			add_module(old->module);
	}
	ky_sys(SYS_mmap, (long)control, KY_CONTROL_BYTES, PROT_READ | PROT_WRITE,
	       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
}

void kymo_module_add(struct kymo_module *module)
{
	bool is_first, has_file = true;
	uint64_t signals;

	if (module->version != KYMO_SITE_VERSION || module->site_bytes != sizeof(struct kymo_site))
		return;
	/* Also of a module without events, which may have trackers. */
	if (!ky_trace_begin()) {
		ky_trace.off = KY_OFF_MEMORY;
		return;
	}
	if (module->sites >= module->sites_end)
		return;
	ky_notes_begin();
	ky_notes_count();
	signals = kymo_ring_signals_block();
	ky_trace_lock();
	is_first = !ky_trace.control || ky_trace.pid != ky_trace_pid();
	if (!ky_trace.control)
		ky_trace.off = (uint32_t)control_make();
	else if (is_first)
		/* A forked child loads a library: the control file belongs to its parent, which still uses it. */
		ky_modules_begin_anew();
	else
		has_file = has_control_fd();
	if (!has_file)
		ky_trace.off = KY_OFF_CREATE;
	if (has_file && ky_trace.control && ky_trace.pid == ky_trace_pid()) {
		ky_notes_loaded();
		add_module(module);
		if (is_first)
			ky_sessions_find();
		ky_sessions_new_events();
		ky_sessions_catch_up();
	}
	ky_trace_unlock();
	kymo_ring_signals_restore(signals);
}

void kymo_module_remove(struct kymo_module *module)
{
	struct ky_module *from;
	bool is_ours;

	if (!ky_trace.control)
		return;
	ky_trace_lock();
	/* A child's table and pages are its parent's, too. */
	is_ours = ky_trace.pid == ky_trace_pid();
	from = module->module;
	for (struct ky_event *event = ky_trace.events; from && event; event = event->next) {
		if (event->module != from || event->is_gone)
			continue;
		__atomic_store_n(&event->mask, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&event->expected, 0, __ATOMIC_RELAXED);
		event->known = 0;
		__atomic_store_n(&event->site->straight, NULL, __ATOMIC_RELAXED);
		__atomic_store_n(&event->site->event, NULL, __ATOMIC_RELAXED);
		event->record->flags |= KY_EVENT_GONE;
		if (is_ours)
			publish_state(event);
		event->is_gone = true;
	}
	if (from && is_ours) {
		ky_notes_unload(module->sites);
		/* Where the module has it: that is mapped in already. */
		memset(module->page, 0, KY_ENABLE_BYTES);
		__atomic_fetch_add(&ky_trace.control->table_changes, 1, __ATOMIC_RELEASE);
	}
	if (from)
		from->module = NULL;
	module->module = NULL;
	ky_trace_unlock();
}
