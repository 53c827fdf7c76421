/* SPDX-License-Identifier: MIT */
/* Threads and processes: what state dumps tell, and the tracks of threads. */
#include <stdio.h>

#include "analysis/perfetto/perfetto-internal.h"
#include "base/error.h"

#define COMM_BYTES 64

/* ---- state dumps -------------------------------------------------------------------------- */

/* The events that tell who was there before the trace, and who came in it. */
enum telling {
	TELLS_NOTHING,
	TELLS_THREAD,
	TELLS_BIRTH,
};

struct telling_class {
	enum telling what;
	struct ky_handle tid, pid, ppid, name;
};

/* True when the class tells something. */
static bool find_telling(struct telling_class *telling, const struct ky_event_class *cls)
{
	static const char *const ids[] = {"child_tid", "child_pid", "tid", "pid"};
	const char *colon = strrchr(cls->name, ':'), *name = colon ? colon + 1 : cls->name;

	if (strcmp(name, "lttng_statedump_process_state") == 0) {
		telling->what = TELLS_THREAD;
		ky_handle_find(&telling->tid, cls, KY_SCOPE_PAYLOAD, "tid");
		ky_handle_find(&telling->pid, cls, KY_SCOPE_PAYLOAD, "pid");
		ky_handle_find(&telling->ppid, cls, KY_SCOPE_PAYLOAD, "ppid");
		ky_handle_find(&telling->name, cls, KY_SCOPE_PAYLOAD, "name");
	} else if (strcmp(name, "task_newtask") == 0 || strcmp(name, "sched_process_fork") == 0) {
		telling->what = TELLS_BIRTH;
		for (int i = 0; i < 4 && !telling->tid.cls; i++)
			ky_handle_find(&telling->tid, cls, KY_SCOPE_PAYLOAD, ids[i]);
	}
	return telling->what != TELLS_NOTHING;
}

static struct ky_pf_dumped *get_dumped(struct ky_pf *pf, struct ky_pf_machine *machine, int32_t tid)
{
	struct ky_pf_dumped *dumped = ky_map_get(&machine->dump, (uint32_t)tid);

	if (dumped)
		return dumped;
	dumped = ky_arena_new(&pf->arena, struct ky_pf_dumped);
	if (!dumped)
		return NULL;
	dumped->tid = tid;
	dumped->dump_ns = dumped->born_ns = INT64_MAX;
	return ky_map_set(&machine->dump, (uint32_t)tid, dumped) < 0 ? NULL : dumped;
}

static int add_told(struct ky_pf *pf, struct ky_pf_machine *machine, const struct ky_event *event,
		    const struct telling_class *telling)
{
	int32_t tid = (int32_t)ky_get_i64(event, &telling->tid, 0);
	struct ky_pf_dumped *dumped;
	const char *name;
	size_t len;

	if (tid <= 0)
		return 0;
	dumped = get_dumped(pf, machine, tid);
	if (!dumped)
		return KYMO_E_MEMORY;
	if (telling->what == TELLS_BIRTH && event->ns < dumped->born_ns)
		dumped->born_ns = event->ns;
	if (telling->what != TELLS_THREAD || event->ns >= dumped->dump_ns)
		return 0;
	dumped->dump_ns = event->ns;
	dumped->pid = (int32_t)ky_get_i64(event, &telling->pid, tid);
	dumped->ppid = (int32_t)ky_get_i64(event, &telling->ppid, 0);
	name = ky_get_text(event, &telling->name, &len);
	if (len > sizeof(dumped->comm) - 1)
		len = sizeof(dumped->comm) - 1;
	memset(dumped->comm, 0, sizeof(dumped->comm));
	memcpy(dumped->comm, name, len);
	return 0;
}

/* Reads what one stream tells; all other events are stepped over. */
static int read_told(struct ky_pf *pf, const struct ky_stream *stream, const uint8_t *wanted,
		     const struct telling_class *classes)
{
	const struct ky_host *host = pf->model->streams[stream->index].host;
	struct kymo_error ignored;
	struct ky_batch batch;
	struct ky_flow *flow;
	int ret = 0;

	if (ky_source_open(stream, &flow, &ignored) < 0)
		return 0;
	ky_source_want(flow, wanted);
	while (ret >= 0 && ky_flow_next(flow, &batch, &ignored) > 0) {
		for (size_t i = 0; i < batch.n_events && ret >= 0; i++)
			ret = add_told(pf, pf->hosts[host->index].machine, &batch.events[i],
				       &classes[batch.events[i].cls->index]);
	}
	ky_flow_close(flow);
	return ret;
}

static int perfetto_threads_read_stream(struct ky_pf *pf, const struct ky_stream *stream)
{
	size_t n = stream->trace->cls->events.len;
	struct telling_class *classes = calloc(n + 1, sizeof(*classes));
	uint8_t *wanted = calloc(n + 1, 1);
	bool any = false;
	int ret = classes && wanted ? 0 : KYMO_E_MEMORY;

	for (size_t i = 0; ret >= 0 && i < stream->cls->events.len; i++) {
		const struct ky_event_class *cls = stream->cls->events.data[i];

		wanted[cls->index] = find_telling(&classes[cls->index], cls);
		any |= wanted[cls->index] != 0;
	}
	if (ret >= 0 && any)
		ret = read_told(pf, stream, wanted, classes);
	free(wanted);
	free(classes);
	return ret;
}

int ky_pf_read_dumps(struct ky_pf *pf, struct kymo_error *err)
{
	ky_vec_foreach(&pf->set->streams, it) {
		const struct ky_stream *stream = *it;
		const struct ky_host *host = pf->model->streams[stream->index].host;

		if (stream->cls && pf->hosts[host->index].is_kernel &&
		    perfetto_threads_read_stream(pf, stream) < 0)
			return ky_error_nomem(err);
	}
	return 0;
}

void ky_pf_dump_tree(struct ky_strbuf *out, const struct ky_pf_dumped *dumped)
{
	size_t begun;

	if (dumped->tid == dumped->pid) {
		begun = ky_pb_begin(out, 1);
		ky_pb_int(out, 1, dumped->pid);
		ky_pb_int(out, 2, dumped->ppid);
		ky_pb_text(out, 3, dumped->comm, strlen(dumped->comm), COMM_BYTES);
		ky_pb_end(out, begun);
	}
	begun = ky_pb_begin(out, 2);
	ky_pb_int(out, 1, dumped->tid);
	ky_pb_int(out, 3, dumped->pid);
	ky_pb_end(out, begun);
}

/* ---- threads of the model ----------------------------------------------------------------- */

struct ky_pf_thread *ky_pf_thread(struct ky_pf *pf, const struct ky_thread *thread)
{
	while (pf->threads.len <= thread->index) {
		if (ky_vec_push(&pf->threads, (struct ky_pf_thread){0}) < 0) {
			pf->out.failed = true;
			return NULL;
		}
	}
	return &pf->threads.data[thread->index];
}

int32_t ky_pf_pid(const struct ky_pf *pf, const struct ky_thread *thread)
{
	const struct ky_pf_dumped *dumped;

	if (thread->pid != KY_UNKNOWN)
		return thread->pid;
	/* A state dump tells of the first thread with an id, not of one that came later. */
	if (thread->born)
		return KY_UNKNOWN;
	dumped = ky_map_get(&pf->hosts[thread->host->index].machine->dump, (uint32_t)thread->tid);
	return dumped && dumped->dump_ns != INT64_MAX ? dumped->pid : KY_UNKNOWN;
}

/* The thread that runs on the CPU of @at, as the model sees it; NULL: idle, or not known. */
static struct ky_thread *current_thread(const struct ky_pf *pf, const struct ky_pf_at *at)
{
	const struct ky_cpu *cpu = pf->model->streams[at->stream->index].cpu;

	return cpu && cpu->state == KY_CPU_BUSY ? cpu->current : NULL;
}

int32_t ky_pf_tid(const struct ky_pf *pf, const struct ky_pf_at *at)
{
	const struct ky_class_info *info = &at->host->classes[at->event->cls->index];
	const struct ky_thread *thread;
	int64_t tid;

	if (info->tid.cls) {
		tid = ky_get_i64(at->event, &info->tid, 0);
		return tid > 0 && tid <= INT32_MAX ? (int32_t)tid : 0;
	}
	thread = current_thread(pf, at);
	return thread ? thread->tid : 0;
}

void ky_pf_note_current(struct ky_pf *pf, const struct ky_pf_at *at)
{
	const struct ky_thread *thread = current_thread(pf, at);
	struct ky_pf_thread *own;
	size_t packet, tree, one;
	int32_t pid;

	own = thread ? ky_pf_thread(pf, thread) : NULL;
	if (!own || own->told)
		return;
	pid = ky_pf_pid(pf, thread);
	if (pid == KY_UNKNOWN)
		return;
	own->told = true;
	packet = ky_pf_packet(pf, at->machine, at->event->ns);
	tree = ky_pb_begin(&pf->out, KY_PF_PACKET_PROCESS_TREE);
	one = ky_pb_begin(&pf->out, 2);
	ky_pb_int(&pf->out, 1, thread->tid);
	ky_pb_int(&pf->out, 3, pid);
	ky_pb_end(&pf->out, one);
	ky_pb_end(&pf->out, tree);
	ky_pf_packet_end(pf, packet);
}

/* ---- tracks ------------------------------------------------------------------------------- */

/* A track that trace_processor makes one with the thread's. @name: NULL for none. */
static uint64_t put_thread_track(struct ky_pf *pf, const struct ky_pf_machine *machine, int64_t ns,
				 int32_t pid, int32_t tid, const char *name)
{
	size_t packet = ky_pf_packet(pf, machine, ns);
	size_t track = ky_pb_begin(&pf->out, KY_PF_PACKET_TRACK_DESCRIPTOR), thread;
	uint64_t uuid = ++pf->next_uuid;

	ky_pb_uint(&pf->out, KY_PF_TRACK_UUID, uuid);
	thread = ky_pb_begin(&pf->out, KY_PF_TRACK_THREAD);
	ky_pb_int(&pf->out, KY_PF_THREAD_PID, pid);
	ky_pb_int(&pf->out, KY_PF_THREAD_TID, tid);
	if (name && name[0])
		ky_pb_text(&pf->out, KY_PF_THREAD_NAME, name, strlen(name), COMM_BYTES);
	ky_pb_end(&pf->out, thread);
	ky_pb_end(&pf->out, track);
	ky_pf_packet_end(pf, packet);
	return uuid;
}

/* A thread whose process is not known cannot be one of Perfetto's: a track with its name. */
static uint64_t put_lone_track(struct ky_pf *pf, const struct ky_pf_machine *machine, int32_t tid,
			       const char *comm)
{
	char name[COMM_BYTES + 32];

	snprintf(name, sizeof(name), "%.*s (thread %d)", COMM_BYTES, comm[0] ? comm : "?", tid);
	return ky_pf_track_named(pf, machine, 0, name);
}

uint64_t ky_pf_thread_track(struct ky_pf *pf, const struct ky_thread *thread, int64_t ns)
{
	const struct ky_pf_machine *machine = pf->hosts[thread->host->index].machine;
	struct ky_pf_thread *own = ky_pf_thread(pf, thread);
	int32_t pid;

	if (!own)
		return 0;
	if (own->uuid && (own->placed || own->open))
		return own->uuid;
	pid = ky_pf_pid(pf, thread);
	if (pid != KY_UNKNOWN) {
		own->uuid = put_thread_track(pf, machine, ns, pid, thread->tid, NULL);
		own->placed = own->told = true;
	} else if (!own->uuid) {
		own->uuid = put_lone_track(pf, machine, thread->tid, thread->comm);
	}
	return own->uuid;
}

static uint64_t stream_track(struct ky_pf *pf, const struct ky_pf_at *at)
{
	uint64_t *track = &pf->stream_tracks[at->stream->index];
	const char *slash = strrchr(at->stream->trace->path, '/');
	char name[256];

	if (!*track) {
		snprintf(name, sizeof(name), "%s %s", slash ? slash + 1 : at->stream->trace->path,
			 at->stream->name);
		*track = ky_pf_track_named(pf, at->machine, 0, name);
	}
	return *track;
}

uint64_t ky_pf_user_track(struct ky_pf *pf, const struct ky_pf_at *at)
{
	int32_t tid = (int32_t)ky_get_i64(at->event, &at->cls->thread.tid, 0);
	int32_t pid = (int32_t)ky_get_i64(at->event, &at->cls->thread.pid, 0);
	uint64_t key = (uint64_t)(uint32_t)pid << 32 | (uint32_t)tid;
	char comm[COMM_BYTES] = "";
	struct ky_pf_user *user;
	const char *text;
	size_t len;

	if (tid <= 0)
		return stream_track(pf, at);
	user = ky_map_get(&at->machine->users, key);
	if (user)
		return user->uuid;
	user = ky_arena_new(&pf->arena, struct ky_pf_user);
	if (!user || ky_map_set(&at->machine->users, key, user) < 0) {
		pf->out.failed = true;
		return 0;
	}
	text = ky_get_text(at->event, &at->cls->thread.comm, &len);
	snprintf(comm, sizeof(comm), "%.*s", (int)(len < COMM_BYTES ? len : COMM_BYTES - 1), text);
	if (pid > 0)
		user->uuid = put_thread_track(pf, at->machine, at->event->ns, pid, tid, comm);
	else
		user->uuid = put_lone_track(pf, at->machine, tid, comm);
	return user->uuid;
}
