/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Content of system calls. content-layout.h has the input and output of these programs.
 *
 * The program at sys_enter or sys_exit begins a record and fills it, except with vectors, messages and lists of
 * texts. These have programs of their own, which the first program ends with (a tail call): so the verifier
 * checks them once, and not at each place of use.
 */
#include "kernel/bpf/content-items.bpf.h"
#include "kernel/bpf/content-texts.bpf.h"

char kymo_license[] SEC("license") = "Dual MIT/GPL";

/* The kernel's, on x86-64, where it is part of the interface to debuggers. */
struct registers {
	uint64_t r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax;
};

/* in_ia32_syscall() */
#define TS_COMPAT 2

/* Of a call, before it has a record. */
struct found {
	struct ky_content_descriptor *call;
	const struct registers *registers;
	uint64_t number, id;
	bool is_compat;
	bool is_unpacked; /* from @block */
	uint32_t block[8];
};

/* ---- which call it is ------------------------------------------------------------------- */

/* Are there calls whose records are written whatever there is to read? */
static __always_inline bool has_whole(void)
{
	return config.compat || config.unknown;
}

static __always_inline bool content_bpf_is_whole(const struct ky_content_descriptor *call,
						 bool is_exit)
{
	return has_whole() &&
	       (call->whole & (is_exit ? KY_CONTENT_WHOLE_EXIT : KY_CONTENT_WHOLE_ENTRY));
}

/* The descriptor's number; KY_CONTENT_ALL_CALLS: none. */
static __always_inline uint64_t content_bpf_key_of(uint64_t number)
{
	if (number < KY_CONTENT_MAX_CALLS)
		return number;
	return has_whole() ? KY_CONTENT_BEYOND : KY_CONTENT_ALL_CALLS;
}

/*
 * Where socketcall stands for a call that is recorded, it becomes that one: its arguments are in memory. Returns the
 * descriptor's number.
 */
static __always_inline uint64_t content_bpf_unpack(struct found *found, bool is_exit)
{
	const uint64_t socketcall = KY_CONTENT_MAX_CALLS + KY_CONTENT_SOCKETCALL;
	const struct ky_content_descriptor *call;
	uint32_t which = 0, at = 0;

	bpf_probe_read_kernel(&which, sizeof(which), &found->registers->bx);
	if (which >= KY_CONTENT_MULTIPLEXED)
		return socketcall;
	call = &calls[KY_CONTENT_MULTIPLEXED_AT + which];
	if (!content_bpf_is_whole(call, is_exit))
		return socketcall;
	bpf_probe_read_kernel(&at, sizeof(at), &found->registers->cx);
	if (bpf_probe_read_user(found->block, call->block_bytes & 31, (void *)(uint64_t)at))
		return socketcall;
	found->number = call->stands_for;
	found->is_unpacked = true;
	return KY_CONTENT_MULTIPLEXED_AT + which;
}

/* Our own calls are left out. Those of 32-bit programs, whose numbers mean other calls, too; or they have descriptors of their own. */
static __always_inline bool is_wanted_task(struct found *found)
{
	const struct task_struct *task = (void *)bpf_get_current_task();

	found->id = bpf_get_current_pid_tgid();
	if (found->id >> 32 == config.own_pid)
		return false;
	if (!bpf_core_field_exists(task->thread_info.status))
		return true;
	found->is_compat = BPF_CORE_READ(task, thread_info.status) & TS_COMPAT;
	return config.compat || !found->is_compat;
}

/*
 * Is anything to be read, or, at entry, how much will fit into what it returns? At exit, input is only when it was not
 * readable at entry.
 */
static __always_inline bool has_items(const struct ky_content_descriptor *call, bool is_exit)
{
	for (unsigned int i = 0; i < (is_exit ? KY_CONTENT_PLACES : KY_CONTENT_IN_PLACES); i++)
		if (call->items[i].kind)
			return true;
	return !is_exit && (call->items[KY_CONTENT_OUT_A].kind == KY_CONTENT_SOCKADDR ||
			    call->items[KY_CONTENT_OUT_A].kind == KY_CONTENT_MSG_NAME);
}

/* False: nothing of this call is wanted. A call of which nothing is wanted should find that out quickly. */
static __always_inline bool content_bpf_find_call(struct found *found, bool is_exit)
{
	uint64_t key = content_bpf_key_of(found->number);

	if (config.compat && !is_wanted_task(found))
		return false;
	if (config.compat && found->is_compat) {
		key += KY_CONTENT_MAX_CALLS;
		if (key == KY_CONTENT_MAX_CALLS + KY_CONTENT_SOCKETCALL)
			key = content_bpf_unpack(found, is_exit);
	}
	if (key >= KY_CONTENT_ALL_CALLS)
		return false;
	found->call = &calls[key];
	if (!has_items(found->call, is_exit) && !content_bpf_is_whole(found->call, is_exit))
		return false;
	return config.compat || is_wanted_task(found);
}

/* At exit: what was not readable at entry, and how much room there was. False: nothing of this call is wanted. */
static __always_inline bool find_kept(const struct found *found, int64_t ret, struct kept *kept)
{
	const struct ky_content_descriptor *call = found->call;
	uint32_t tid = found->id;
	const struct kept *old = config.fields ? bpf_map_lookup_elem(&kymo_faults, &tid) : NULL;

	kept->faults = 0;
	kept->room = KY_CONTENT_ANY_ROOM;
	if (old) {
		*kept = *old;
		bpf_map_delete_elem(&kymo_faults, &tid);
		if (call->replaces_memory && ret == 0)
			kept->faults = 0;
		return true;
	}
	for (unsigned int i = KY_CONTENT_IN_PLACES; i < KY_CONTENT_PLACES; i++)
		if (call->items[i].kind)
			return true;
	return content_bpf_is_whole(call, true);
}

/* ---- its record ------------------------------------------------------------------------- */

static __always_inline void lose(struct ky_content_ring *ring, const struct found *found,
				 bool is_exit)
{
	if (content_bpf_is_whole(found->call, is_exit))
		ring->lost_calls++;
	else
		ring->lost++;
}

/* This CPU's region, where a record may begin; NULL: none may. */
static __always_inline struct ky_content_ring *content_bpf_reserve(const struct found *found,
								   bool is_exit)
{
	struct ky_content_ring *ring = this_ring();

	if (!ring)
		return NULL;
	if (!ring->busy && ring->head - ring->tail <= config.room_bytes) {
		ring->busy = 1;
		return ring;
	}
	lose(ring, found, is_exit);
	return NULL;
}

/* The arguments, and what kind of record it is. */
static __always_inline void write_arguments(struct ky_content_record *record,
					    const struct registers *r, const struct found *found,
					    bool is_exit)
{
	record->flags = is_exit ? KY_CONTENT_EXIT : 0;
	if (config.compat && found->is_compat) {
		record->flags |= KY_CONTENT_COMPAT;
		/* Of the registers the call takes the lower half. */
		record->args[0] = found->is_unpacked ? found->block[0] : (uint32_t)r->bx;
		record->args[1] = found->is_unpacked ? found->block[1] : (uint32_t)r->cx;
		record->args[2] = found->is_unpacked ? found->block[2] : (uint32_t)r->dx;
		record->args[3] = found->is_unpacked ? found->block[3] : (uint32_t)r->si;
		record->args[4] = found->is_unpacked ? found->block[4] : (uint32_t)r->di;
		record->args[5] = found->is_unpacked ? found->block[5] : (uint32_t)r->bp;
		return;
	}
	if (config.unknown)
		record->flags |= found->call->unknown;
	record->args[0] = r->di;
	record->args[1] = r->si;
	record->args[2] = r->dx;
	record->args[3] = r->r10;
	record->args[4] = r->r8;
	record->args[5] = r->r9;
}

static __always_inline void write_header(struct ky_content_record *record,
					 const struct found *found, int64_t ret, bool is_exit)
{
	struct registers r;

	bpf_probe_read_kernel(&r, sizeof(r), found->registers);
	write_arguments(record, &r, found, is_exit);
	record->ret = ret;
	record->reserved2 = 0;
	record->number = found->number;
	record->tid = found->id;
	record->pid = found->id >> 32;
	record->reserved = 0;
	record->time_ns = bpf_ktime_get_ns();
}

static __always_inline void content_bpf_begin(struct ky_content_ring *ring,
					      const struct found *found, const struct kept *kept,
					      int64_t ret, bool is_exit)
{
	struct ky_content_walk *walk = &ring->walk;

	write_header(record_of(ring), found, ret, is_exit);
	walk->len = HEADER_BYTES;
	walk->faults = 0;
	walk->room = kept->room;
	walk->late = kept->faults;
	walk->id = found->id;
	walk->is_exit = is_exit;
	walk->compat = config.compat && found->is_compat;
	walk->ret = ret;
}

/* At entry: how long an address may be that the call returns, which is overwritten with its length. */
static __always_inline void find_room(struct ky_content_ring *ring,
				      const struct ky_content_descriptor *call)
{
	const struct ky_content_record *record = record_of(ring);
	uint8_t kind = call->items[KY_CONTENT_OUT_A].kind;
	uint64_t name, len;
	uint32_t room;

	if (kind == KY_CONTENT_SOCKADDR) {
		uint64_t at = argument(record, call->items[KY_CONTENT_OUT_A].len_arg);

		if (bpf_probe_read_user(&room, sizeof(room), (void *)at) == 0)
			ring->walk.room = room;
	}
	if (kind == KY_CONTENT_MSG_NAME) {
		uint64_t message = argument(record, call->items[KY_CONTENT_OUT_A].arg);

		if (read_message_words(message, MSG_NAME_AT, ring->walk.compat, &name, &len) &&
		    name)
			ring->walk.room = (uint32_t)len;
	}
}

/* The item at @place, when it has a program of its own, which goes on with the record. */
static __always_inline void content_bpf_go_on(void *ctx, struct ky_content_ring *ring,
					      const struct ky_content_descriptor *call,
					      unsigned int place)
{
	const struct ky_content_record *record = record_of(ring);
	struct ky_content_walk *walk = &ring->walk;
	uint8_t kind = call->items[place].kind;

	if (kind < KY_CONTENT_LONG_FIRST || !is_due(walk, place))
		return;
	walk->call = *call;
	walk->place = place;
	walk->kind = kind;
	walk->pointer = argument(record, call->items[place].arg);
	walk->count = argument(record, call->items[place].len_arg);
	walk->left = 0;
	if (kind >= KY_CONTENT_TEXTS)
		bpf_tail_call_static(ctx, &kymo_next, KY_CONTENT_NEXT_TEXTS);
	else if (kind == KY_CONTENT_MESSAGES)
		bpf_tail_call_static(ctx, &kymo_next, KY_CONTENT_NEXT_MESSAGES);
	else
		bpf_tail_call_static(ctx, &kymo_next, KY_CONTENT_NEXT_VECTORS);
}

static __always_inline bool take_items(struct ky_content_ring *ring,
				       const struct ky_content_descriptor *call, bool is_exit)
{
	const unsigned int address = KIND(SOCKADDR) | KIND(VALUE) | KIND(MSG_NAME);

	if (config.fields && (!take_item(ring, call, KY_CONTENT_IN_A, KIND(TEXT) | address) ||
			      !take_item(ring, call, KY_CONTENT_IN_B, KIND(TEXT) | KIND(BUFFER)) ||
			      !take_item(ring, call, KY_CONTENT_IN_C, KIND(TEXT))))
		return false;
	if (!is_exit)
		return true;
	if (config.fields &&
	    (!take_item(ring, call, KY_CONTENT_OUT_A, address) ||
	     !take_item(ring, call, KY_CONTENT_OUT_B, KIND(BUFFER) | KIND(OUT_TEXT))))
		return false;
	return !config.ids || take_ids(ring, call);
}

/* At entry, a record of nothing was for what is kept alone. */
static __always_inline bool content_bpf_is_empty(const struct ky_content_ring *ring,
						 const struct ky_content_descriptor *call)
{
	return !ring->walk.is_exit && ring->walk.len == HEADER_BYTES &&
	       !content_bpf_is_whole(call, false);
}

static __always_inline int content_bpf_on_call(struct bpf_raw_tracepoint_args *ctx,
					       struct found *found, int64_t ret, bool is_exit)
{
	struct kept kept = {0, KY_CONTENT_ANY_ROOM};
	struct ky_content_ring *ring;

	if (!content_bpf_find_call(found, is_exit) || (is_exit && !find_kept(found, ret, &kept)))
		return 0;
	ring = content_bpf_reserve(found, is_exit);
	if (!ring)
		return 0;
	content_bpf_begin(ring, found, &kept, ret, is_exit);
	if (!take_items(ring, found->call, is_exit)) {
		ring->busy = 0;
		lose(ring, found, is_exit);
		return 0;
	}
	if (config.fields && !is_exit)
		find_room(ring, found->call);
	if (config.fields) {
		content_bpf_go_on(ctx, ring, found->call, KY_CONTENT_IN_B);
		content_bpf_go_on(ctx, ring, found->call, KY_CONTENT_IN_C);
		if (is_exit)
			content_bpf_go_on(ctx, ring, found->call, KY_CONTENT_OUT_B);
	}
	if (content_bpf_is_empty(ring, found->call)) {
		keep(&ring->walk);
		ring->busy = 0;
		return 0;
	}
	finish(ring);
	return 0;
}

SEC("raw_tp/sys_enter")
int kymo_sys_enter(struct bpf_raw_tracepoint_args *ctx)
{
	struct found found = {.registers = (void *)ctx->args[0], .number = ctx->args[1]};

	return content_bpf_on_call(ctx, &found, 0, false);
}

SEC("raw_tp/sys_exit")
int kymo_sys_exit(struct bpf_raw_tracepoint_args *ctx)
{
	struct found found = {.registers = (void *)ctx->args[0]};

	if (bpf_probe_read_kernel(&found.number, sizeof(found.number), &found.registers->orig_ax))
		return 0;
	return content_bpf_on_call(ctx, &found, ctx->args[1], true);
}

/* ---- what takes long -------------------------------------------------------------------- */

/* The vectors of a call, or of its struct msghdr. */
static __always_inline int64_t take_vectors(struct ky_content_ring *ring, void *to, bool has_loop)
{
	struct ky_content_walk *walk = &ring->walk;
	bool is_output = walk->place >= KY_CONTENT_IN_PLACES;
	uint64_t from = walk->pointer, count = walk->count;

	walk->total = 0;
	if (!from)
		return ABSENT;
	if (walk->kind == KY_CONTENT_MSG_IOVEC &&
	    !read_message_words(from, MSG_IOV_AT, walk->compat, &from, &count))
		return FAULT;
	if (!from)
		return ABSENT;
	return read_vectors(ring, to, from, count, KY_CONTENT_IOVECS,
			    is_output ? (uint64_t)walk->ret : config.limit, has_loop);
}

static __always_inline int on_vectors(bool has_loop)
{
	struct ky_content_ring *ring = this_ring();
	struct ky_content_part *part = ring ? next_part(ring) : NULL;
	int64_t result;

	if (!part)
		return 0;
	result = take_vectors(ring, part + 1, has_loop);
	end_part(ring, part, ring->walk.place & 7, result, ring->walk.total);
	finish(ring);
	return 0;
}

SEC("?raw_tp")
int kymo_vectors(void *ctx)
{
	(void)ctx;
	return on_vectors(true);
}

SEC("?raw_tp")
int kymo_vectors_old(void *ctx)
{
	(void)ctx;
	return on_vectors(false);
}

static __always_inline int on_texts(void *ctx, bool has_loop)
{
	struct ky_content_ring *ring = this_ring();

	if (!ring)
		return 0;
	take_texts(ring, has_loop);
	/* The program's environment may come behind its arguments. */
	if (ring->walk.place == KY_CONTENT_IN_B)
		content_bpf_go_on(ctx, ring, &ring->walk.call, KY_CONTENT_IN_C);
	finish(ring);
	return 0;
}

SEC("?raw_tp")
int kymo_texts(void *ctx)
{
	return on_texts(ctx, true);
}

SEC("?raw_tp")
int kymo_texts_old(void *ctx)
{
	return on_texts(ctx, false);
}

SEC("?raw_tp")
int kymo_messages(void *ctx)
{
	struct ky_content_ring *ring = this_ring();

	(void)ctx;
	if (!ring)
		return 0;
	if (begin_messages(ring)) {
		bpf_loop(KY_CONTENT_MESSAGES_MAX, next_message_again, &ring, 0);
		end_messages(ring);
	}
	finish(ring);
	return 0;
}

/*
 * A call may have 1024 messages, which is more than the verifier follows in one program without bpf_loop(). So each run
 * takes some, and then jumps to itself; what one run leaves to the next is in the region.
 */
#define RUNS  32 /* so many jumps any kernel allows */
#define TURNS 32

_Static_assert(RUNS *TURNS >= KY_CONTENT_MESSAGES_MAX, "all messages are reached");

SEC("?raw_tp")
int kymo_messages_old(void *ctx)
{
	struct ky_content_ring *ring = this_ring();

	if (!ring)
		return 0;
	if (!ring->walk.left && !begin_messages(ring)) {
		finish(ring);
		return 0;
	}
#pragma clang loop unroll(disable)
	for (int i = 0; i < TURNS; i++) {
		if (!take_message(ring, false)) {
			ring->walk.left = 0;
			break;
		}
	}
	if (ring->walk.left)
		bpf_tail_call_static(ctx, &kymo_next, KY_CONTENT_NEXT_MESSAGES);
	ring->walk.left = 0;
	end_messages(ring);
	finish(ring);
	return 0;
}
