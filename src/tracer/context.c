/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tracer/tracer.h"

#define PROCNAME_BYTES 17 /* LTTng's */
#define FRAMES_MAX     32
#define OWN_FRAMES_MAX 4 /* before the place of the event */
#define STACK_BYTES    (8u << 20)
#define APPS_MAX       16

enum shape {
	S32,
	U32,
	POINTER,
	U64,
	PROCNAME,
	APP_TEXT,
	FRAMES,
};

static const struct {
	const char *name;
	enum shape shape;
} kinds[] = {
	[KY_CONTEXT_VPID] = {"vpid", S32},
	[KY_CONTEXT_VTID] = {"vtid", S32},
	[KY_CONTEXT_PROCNAME] = {"procname", PROCNAME},
	[KY_CONTEXT_IP] = {"ip", POINTER},
	[KY_CONTEXT_CPU_ID] = {"cpu_id", S32},
	[KY_CONTEXT_PTHREAD_ID] = {"pthread_id", POINTER},
	[KY_CONTEXT_VUID] = {"vuid", U32},
	[KY_CONTEXT_VEUID] = {"veuid", U32},
	[KY_CONTEXT_VSUID] = {"vsuid", U32},
	[KY_CONTEXT_VGID] = {"vgid", U32},
	[KY_CONTEXT_VEGID] = {"vegid", U32},
	[KY_CONTEXT_VSGID] = {"vsgid", U32},
	[KY_CONTEXT_CGROUP_NS] = {"cgroup_ns", U32},
	[KY_CONTEXT_IPC_NS] = {"ipc_ns", U32},
	[KY_CONTEXT_MNT_NS] = {"mnt_ns", U32},
	[KY_CONTEXT_NET_NS] = {"net_ns", U32},
	[KY_CONTEXT_PID_NS] = {"pid_ns", U32},
	[KY_CONTEXT_TIME_NS] = {"time_ns", U32},
	[KY_CONTEXT_USER_NS] = {"user_ns", U32},
	[KY_CONTEXT_UTS_NS] = {"uts_ns", U32},
	[KY_CONTEXT_CALLSTACK_USER] = {"callstack_user", FRAMES},
};
#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

static const char *const ns_files[] = {
	"/proc/self/ns/cgroup", "/proc/self/ns/ipc",  "/proc/self/ns/mnt",  "/proc/self/ns/net",
	"/proc/self/ns/pid",	"/proc/self/ns/time", "/proc/self/ns/user", "/proc/self/ns/uts",
};

/* ---- applications' own ---- */

static struct app {
	char name[KY_NAME_MAX + 1]; /* "app_PROVIDER_NAME" */
	enum kymo_app_type type;
	kymo_app_get get;
	void *data;
} * apps; /* APPS_MAX; made for the first one, for most programs have none */
static uint32_t n_apps;

static bool put_word(char *to, size_t *at, const char *word)
{
	size_t n = strlen(word);

	if (!n || *at + n + 1 > KY_NAME_MAX)
		return false;
	for (size_t i = 0; i < n; i++) {
		char c = word[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      c == '_'))
			return false;
		to[*at + i] = c;
	}
	*at += n;
	return true;
}

int kymo_app_context(const char *provider, const char *name, enum kymo_app_type type,
		     kymo_app_get get, void *data)
{
	struct app app = {.type = type, .get = get, .data = data};
	uint64_t signals;
	size_t at = 0;
	int result = -1;

	if (!put_word(app.name, &at, "app_") || !put_word(app.name, &at, provider) ||
	    !put_word(app.name, &at, "_") || !put_word(app.name, &at, name))
		return -1;
	signals = kymo_ring_signals_block();
	ky_trace_lock();
	if (!apps)
		apps = ky_trace_alloc(APPS_MAX * sizeof(apps[0]));
	if (apps && n_apps < APPS_MAX) {
		apps[n_apps] = app;
		/* Partner: the load in ky_context_find(). */
		__atomic_store_n(&n_apps, n_apps + 1, __ATOMIC_RELEASE);
		result = 0;
	}
	ky_trace_unlock();
	kymo_ring_signals_restore(signals);
	return result;
}

/* ---- values ---- */

/* Of a thread. The pid tells a forked child's from its parent's. */
struct thread {
	uint32_t pid, tid;
};
static __thread struct thread thread __attribute__((tls_model("initial-exec")));

/* What is remembered may be the parent's, in a child of vfork() or clone(). */
static uint32_t process_id(void)
{
	if (kymo_ring_is_shared_thread())
		return (uint32_t)ky_sys(SYS_getpid, 0, 0, 0, 0, 0, 0);
	return ky_trace_pid();
}

static uint32_t thread_id(void)
{
	uint32_t pid = ky_trace_pid();

	if (kymo_ring_is_shared_thread())
		return (uint32_t)ky_sys(SYS_gettid, 0, 0, 0, 0, 0, 0);
	if (thread.pid != pid) {
		thread.tid = (uint32_t)ky_sys(SYS_gettid, 0, 0, 0, 0, 0, 0);
		thread.pid = pid;
	}
	return thread.tid;
}

static uint64_t namespace(uint32_t kind)
{
	uint32_t i = kind - KY_CONTEXT_CGROUP_NS;
	uint64_t inode = __atomic_load_n(&ky_trace.process->ns_inode[i], __ATOMIC_RELAXED);
	int saved = errno;
	struct stat st;

	if (!inode && stat(ns_files[i], &st) == 0) {
		inode = st.st_ino;
		__atomic_store_n(&ky_trace.process->ns_inode[i], inode, __ATOMIC_RELAXED);
	}
	errno = saved;
	return inode;
}

/* Real, effective and saved, of users (0-2) and groups (3-5). */
static uint64_t identity(uint32_t i)
{
	uint32_t ids[3] = {0};

	ky_sys(i < 3 ? SYS_getresuid : SYS_getresgid, (long)&ids[0], (long)&ids[1], (long)&ids[2],
	       0, 0, 0);
	return ids[i % 3];
}

static uint32_t this_cpu(void)
{
	uint32_t cpu = 0;

	ky_sys(SYS_getcpu, (long)&cpu, 0, 0, 0, 0, 0);
	return cpu;
}

/*
 * What the application's function does may be an event again (it allocates, with libkymo-libc loaded):
 * that one has no value here, instead of asking for it, and so on.
 */
static uint64_t ask_app(const struct app *app)
{
	/* In the thread's static block: does not allocate. */
	static __thread bool is_asking __attribute__((tls_model("initial-exec")));
	uint64_t got;

	if (is_asking)
		return 0;
	is_asking = true;
	got = app->get(app->data);
	is_asking = false;
	return got;
}

static const char *app_value(const struct app *app, char *text, uint64_t *number)
{
	uint64_t got = ask_app(app);
	const char *string = (const char *)(uintptr_t)got; // NOLINT(performance-no-int-to-ptr)

	*number = got;
	if (app->type != KYMO_APP_TEXT)
		return NULL;
	memset(text, 0, KY_CONTEXT_TEXT_BYTES);
	if (string)
		memcpy(text, string, strnlen(string, KY_CONTEXT_TEXT_BYTES - 1));
	return text;
}

const char *ky_context_get(const struct ky_context *context, uintptr_t ip, char *text,
			   uint64_t *number)
{
	uint32_t kind = context->kind;

	switch (kind) {
	case KY_CONTEXT_VPID:
		*number = process_id();
		return NULL;
	case KY_CONTEXT_VTID:
		*number = thread_id();
		return NULL;
	case KY_CONTEXT_PROCNAME:
		memset(text, 0, KY_CONTEXT_TEXT_BYTES);
		ky_sys(SYS_prctl, PR_GET_NAME, (long)text, 0, 0, 0, 0);
		return text;
	case KY_CONTEXT_IP:
		*number = ip;
		return NULL;
	case KY_CONTEXT_CPU_ID:
		*number = this_cpu();
		return NULL;
	case KY_CONTEXT_PTHREAD_ID:
		*number = (uint64_t)pthread_self();
		return NULL;
	case KY_CONTEXT_PERF:
		*number = ky_perf_read(context->index);
		return NULL;
	case KY_CONTEXT_APP:
		return app_value(&apps[context->index], text, number);
	default:
		break;
	}
	*number = 0;
	if (kind >= KY_CONTEXT_VUID && kind <= KY_CONTEXT_VSGID)
		*number = identity(kind - KY_CONTEXT_VUID);
	else if (kind >= KY_CONTEXT_CGROUP_NS && kind <= KY_CONTEXT_UTS_NS)
		*number = namespace(kind);
	return NULL;
}

/* ---- the call stack ---- */

struct frame {
	uint64_t next, ip;
};

/*
 * Reads the frame at @at of this thread's stack. The kernel copies it, so code without frame pointers, where
 * the register holds anything, costs wrong frames, never a fault. Returns false when there is no memory.
 */
static bool read_frame(uint32_t pid, uint64_t at, struct frame *frame)
{
	uint64_t local[2] = {(uint64_t)frame, sizeof(*frame)}, remote[2] = {at, sizeof(*frame)};

	return ky_sys(SYS_process_vm_readv, pid, (long)local, 1, (long)remote, 1, 0) ==
	       (long)sizeof(*frame);
}

/*
 * The place of the event, then its callers, as far as frame pointers lead upwards in this thread's stack. Of frames
 * of the library or of a wrapper (preload/), the last one returns to the place. Returns the number of frames, at least 1.
 */
static uint32_t context_walk(uint64_t *frames, struct ky_place place)
{
	uint64_t at = place.frame, low = at;
	uint32_t pid = process_id(), n = 1;
	struct frame frame;

	frames[0] = place.ip;
	while (n < FRAMES_MAX && at % 8 == 0 && at - low < STACK_BYTES &&
	       read_frame(pid, at, &frame) && frame.ip) {
		if (frame.ip == place.ip && n <= OWN_FRAMES_MAX)
			n = 1;
		else
			frames[n++] = frame.ip;
		if (frame.next <= at)
			break;
		at = frame.next;
	}
	return n;
}

/* ---- a session's ---- */

static enum shape shape_of(const struct ky_context *context)
{
	if (context->kind == KY_CONTEXT_APP)
		return apps[context->index].type == KYMO_APP_TEXT ? APP_TEXT : U64;
	return context->kind == KY_CONTEXT_PERF ? U64 : kinds[context->kind].shape;
}

static uint32_t context_bytes_of(enum shape shape)
{
	static const uint16_t bytes[] = {
		[S32] = 4,
		[U32] = 4,
		[POINTER] = 8,
		[U64] = 8,
		[PROCNAME] = PROCNAME_BYTES,
		[APP_TEXT] = KY_CONTEXT_TEXT_BYTES,
		[FRAMES] = 4 + 8 * FRAMES_MAX,
	};

	return bytes[shape];
}

bool ky_context_find(const char *name, struct ky_context *to)
{
	uint32_t n = __atomic_load_n(&n_apps, __ATOMIC_ACQUIRE);
	const char *counter;

	memset(to, 0, sizeof(*to));
	memcpy(to->name, name, strnlen(name, KY_NAME_MAX));
	for (uint32_t i = 1; i < N_KINDS; i++) {
		if (!strcmp(kinds[i].name, name)) {
			to->kind = i;
			return true;
		}
	}
	for (uint32_t i = 0; (counter = ky_perf_name(i)); i++) {
		if (!strcmp(counter, name)) {
			to->kind = KY_CONTEXT_PERF;
			to->index = i;
			return true;
		}
	}
	for (uint32_t i = 0; i < n; i++) {
		if (!strcmp(apps[i].name, name)) {
			to->kind = KY_CONTEXT_APP;
			to->index = i;
			return true;
		}
	}
	return false;
}

/* "PROVIDER:NAME" in a session's file is "app_PROVIDER_NAME". */
static bool find_app(const char *name, struct ky_context *to)
{
	char full[KY_NAME_MAX + 1] = "app_";
	size_t n = strnlen(name, KY_NAME_MAX - 4);

	memcpy(full + 4, name, n);
	full[4 + n] = 0;
	for (char *at = full; *at; at++)
		*at = *at == ':' ? '_' : *at;
	return ky_context_find(full, to) && to->kind == KY_CONTEXT_APP;
}

static bool context_find_counter(const struct ky_session_context *from, const char *name,
				 struct ky_context *to)
{
	int index = ky_perf_find(from->config_type, from->config, name);

	return index >= 0 && ky_context_find(ky_perf_name((uint32_t)index), to);
}

int ky_contexts_link(struct ky_slot *slot)
{
	const struct ky_session_context *from =
		(const void *)((const char *)slot->file + slot->file->contexts);
	int result = 0;

	for (uint32_t i = 0; i < slot->file->n_contexts; i++, from++) {
		struct ky_context *to = &slot->contexts[slot->n_contexts];
		bool found = false;

		if (from->kind == KY_CONTEXT_APP && from->name)
			found = find_app((const char *)slot->file + from->name, to);
		else if (from->kind == KY_CONTEXT_PERF && from->name)
			found = context_find_counter(from, (const char *)slot->file + from->name,
						     to);
		else if (from->kind && from->kind < N_KINDS)
			found = ky_context_find(kinds[from->kind].name, to);
		if (!found) {
			result = KY_OFF_CONTEXT;
			continue;
		}
		slot->n_contexts++;
		slot->context_bytes += context_bytes_of(shape_of(to));
	}
	return result;
}

uint32_t ky_contexts_describe(const struct ky_slot *slot, void *to, uint64_t room)
{
	struct ky_event_record *record = to;
	uint32_t names = (uint32_t)(sizeof(*record) + slot->n_contexts * sizeof(record->fields[0]));
	uint32_t bytes = (names + 1 + slot->n_contexts * (KY_NAME_MAX + 1) + 7) & ~7u;
	char *text = (char *)to + names + 1;

	if (bytes > room)
		return 0;
	memset(to, 0, bytes);
	record->bytes = bytes;
	record->kind = KY_EVENT_CONTEXT;
	/* An empty text. */
	record->provider = record->name = record->file = names;
	record->n_fields = (uint8_t)slot->n_contexts;
	for (uint32_t i = 0; i < slot->n_contexts; i++, text += KY_NAME_MAX + 1) {
		struct ky_field_record *field = &record->fields[i];
		enum shape shape = shape_of(&slot->contexts[i]);

		memcpy(text, slot->contexts[i].name, KY_NAME_MAX);
		field->name = (uint32_t)(text - (char *)to);
		field->kind = KY_KIND_INTEGER;
		field->element_bytes = shape == S32 || shape == U32 ? 4 : 8;
		field->flags = shape == S32 ? KY_FIELD_SIGNED : 0;
		field->base = shape == POINTER || shape == FRAMES ? 16 : 10;
		if (shape == FRAMES)
			field->kind = KY_KIND_SEQUENCE;
		if (shape == PROCNAME || shape == APP_TEXT) {
			field->kind = KY_KIND_TEXT_ARRAY;
			field->element_bytes = 1;
			field->length = context_bytes_of(shape);
		}
	}
	return bytes;
}

uint32_t ky_contexts_put(const struct ky_slot *slot, uint8_t *to, struct ky_place place)
{
	char text[KY_CONTEXT_TEXT_BYTES];
	uint64_t frames[FRAMES_MAX], number;
	uint8_t *at = to;

	for (uint32_t i = 0; i < slot->n_contexts; i++) {
		enum shape shape = shape_of(&slot->contexts[i]);
		uint32_t bytes = context_bytes_of(shape);

		if (shape == FRAMES) {
			uint32_t n = context_walk(frames, place);

			memcpy(at, &n, 4);
			memcpy(at + 4, frames, n * sizeof(frames[0]));
			at += 4 + n * sizeof(frames[0]);
			continue;
		}
		if (ky_context_get(&slot->contexts[i], place.ip, text, &number)) {
			memcpy(at, text, bytes);
		} else {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
			number <<= 64 - 8 * bytes;
#endif
			memcpy(at, &number, bytes);
		}
		at += bytes;
	}
	return (uint32_t)(at - to);
}
