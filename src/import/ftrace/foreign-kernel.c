/* SPDX-License-Identifier: MIT */
/* Records of the kernel, which the converter of Kymo's recordings reads, one at a time or a page of them. */
#include "import/ftrace/foreign-kernel.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kernel/events/events.h"
#include "kernel/statedump/statedump.h"
#include "kernel/tracefs/page.h"

#define PAGE_BYTES (64u << 10)
/* ftrace's records of call stacks, as they are made here. */
#define KERNEL_STACK_ID 0xbffeu
#define USER_STACK_ID	0xbfffu
#define STACK_FRAMES	512u
#define STACK_BYTES	(16u + 8 * STACK_FRAMES)

/* No CPU has this number. */
#define DUMP_STREAM_ID 0x10000u

struct ky_foreign_cpu {
	struct ky_kernel_cpu cpu;
	uint64_t last_ns; /* of the last record */
	uint64_t lost;	  /* before the next page, and not told yet */
};

void ky_foreign_kernel_init(struct ky_foreign_kernel *foreign)
{
	memset(foreign, 0, sizeof(*foreign));
	ky_kernel_trace_init(&foreign->kernel);
	ky_arena_init(&foreign->arena);
	ky_arena_init(&foreign->kernel.catalogue.arena);
	foreign->kernel.clock.frequency_hz = 1000000000;
	foreign->kernel.page_bytes = PAGE_BYTES;
	foreign->dump_stream = -1;
}

static void foreign_kernel_free_cpu(struct ky_foreign_cpu *cpu)
{
	if (!cpu)
		return;
	ky_kernel_cpu_fini(&cpu->cpu);
	free(cpu);
}

void ky_foreign_kernel_fini(struct ky_foreign_kernel *foreign)
{
	ky_vec_foreach(&foreign->cpus, cpu)
		foreign_kernel_free_cpu(*cpu);
	ky_vec_fini(&foreign->cpus);
	ky_packet_writer_fini(&foreign->dump);
	free(foreign->swaps);
	free(foreign->record);
	(void)ky_store_close(foreign->kernel.packets, NULL);
	ky_kernel_trace_fini(&foreign->kernel);
	ky_arena_fini(&foreign->arena);
}

/* ---- events --------------------------------------------------------------------------- */

/* The fields of a record, whose bytes have to be turned round. */
struct ky_foreign_swap {
	const struct ky_format *format;
};

static int foreign_kernel_add_swap(struct ky_foreign_kernel *foreign,
				   const struct ky_format *format, struct kymo_error *err)
{
	struct ky_format *kept = ky_arena_memdup(&foreign->arena, format, sizeof(*format));
	struct ky_foreign_swap *swap = ky_arena_new(&foreign->arena, struct ky_foreign_swap);

	if (!foreign->swaps)
		foreign->swaps = calloc(UINT16_MAX + 1u, sizeof(struct ky_foreign_swap *));
	if (!kept || !swap || !foreign->swaps)
		return ky_error_nomem(err);
	swap->format = kept;
	foreign->swaps[format->id] = swap;
	return KYMO_OK;
}

/* Only where number and arguments lie as in the events of single calls. */
static void foreign_kernel_note_raw(struct ky_foreign_kernel *foreign,
				    const struct ky_format *format)
{
	bool fits = format->n_fields == 2 && format->fields[0].offset == 8 &&
		    format->fields[0].size == 8 && format->fields[1].offset == 16;

	if (fits && strcmp(format->name, "sys_enter") == 0)
		foreign->raw_entry_id = format->id;
	else if (fits && strcmp(format->name, "sys_exit") == 0)
		foreign->raw_exit_id = format->id;
}

int ky_foreign_kernel_add(struct ky_foreign_kernel *foreign, const char *system, const char *format,
			  size_t len, struct kymo_error *err)
{
	struct ky_catalogue *catalogue = &foreign->kernel.catalogue;
	char name[KY_EVENT_NAME_BYTES];
	struct ky_event_source source = {.format = format, .format_len = len, .selected = true};
	struct ky_format parsed;
	struct kymo_error why;
	int ret = ky_format_parse(&foreign->arena, format, len, &parsed, &why);

	if (ret < 0)
		return ret == KYMO_E_MEMORY ? ky_error_nomem(err) : KYMO_OK;
	if (strlen(system) + strlen(parsed.name) + 16 > sizeof(name))
		return KYMO_OK;
	ky_vec_foreach(&catalogue->events, other)
		if (other->id == parsed.id)
			return KYMO_OK;
	ky_event_name(system, parsed.name, name);
	source.id = parsed.id;
	source.system = ky_arena_strdup(&catalogue->arena, system);
	source.event = ky_arena_strdup(&catalogue->arena, parsed.name);
	source.name = ky_arena_strdup(&catalogue->arena, name);
	if (!source.system || !source.event || !source.name ||
	    ky_vec_push(&catalogue->events, source) < 0)
		return ky_error_nomem(err);
	if (foreign->is_x86_64 && strcmp(system, "raw_syscalls") == 0)
		foreign_kernel_note_raw(foreign, &parsed);
	return foreign->swap ? foreign_kernel_add_swap(foreign, &parsed, err) : KYMO_OK;
}

/* A description that @foreign owns. */
static int foreign_kernel_add_own(struct ky_foreign_kernel *foreign, const char *system,
				  const struct ky_strbuf *text, struct kymo_error *err)
{
	char *kept = ky_arena_strndup(&foreign->arena, ky_strbuf_text(text), text->len);
	bool swap = foreign->swap;
	int ret;

	if (!kept || ky_strbuf_failed(text))
		return ky_error_nomem(err);
	/* These records are made here, in this machine's byte order. */
	foreign->swap = false;
	ret = ky_foreign_kernel_add(foreign, system, kept, text->len, err);
	foreign->swap = swap;
	return ret;
}

/* An event for each call, whose record is that of raw_syscalls with another type. */
static int foreign_kernel_add_calls(struct ky_foreign_kernel *foreign, struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	int ret = KYMO_OK;

	for (uint32_t i = 0; i < 2 * KY_FOREIGN_CALLS && !ret; i++) {
		bool is_exit = i & 1;

		ky_strbuf_clear(&text);
		if ((is_exit ? foreign->raw_exit_id : foreign->raw_entry_id) &&
		    ky_foreign_call_format(i / 2, is_exit, &text)) {
			foreign->known_calls[i / 2 / 64] |= UINT64_C(1) << i / 2 % 64;
			ret = foreign_kernel_add_own(foreign, "syscalls", &text, err);
		}
	}
	ky_strbuf_fini(&text);
	return ret;
}

static int foreign_kernel_add_stack(struct ky_foreign_kernel *foreign, const char *name,
				    uint32_t id, struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	int ret;

	ky_strbuf_addf(
		&text,
		"name: %s\nID: %u\nformat:\n"
		"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
		"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
		"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
		"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
		"\tfield:int size;\toffset:8;\tsize:4;\tsigned:1;\n"
		"\tfield:unsigned long caller[%u];\toffset:16;\tsize:%u;\tsigned:0;\n\n"
		"print fmt: \"\"\n",
		name, id, STACK_FRAMES, STACK_FRAMES * 8);
	ret = foreign_kernel_add_own(foreign, "ftrace", &text, err);
	if (!ret) {
		struct ky_event_source *source = ky_vec_last(&foreign->kernel.catalogue.events);

		source->selected = false;
		source->hidden = true;
	}
	ky_strbuf_fini(&text);
	return ret;
}

static int foreign_kernel_add_stacks(struct ky_foreign_kernel *foreign, struct kymo_error *err)
{
	int ret;

	ky_vec_foreach(&foreign->kernel.catalogue.events, source)
		source->stacks = KY_STACK_KERNEL | KY_STACK_USER;
	foreign->kernel.context |= KY_CONTEXT_OF_STACKS;
	ret = foreign_kernel_add_stack(foreign, "kernel_stack", KERNEL_STACK_ID, err);
	return ret ? ret : foreign_kernel_add_stack(foreign, "user_stack", USER_STACK_ID, err);
}

int ky_foreign_kernel_begin(struct ky_foreign_kernel *foreign, struct ky_packet_store *store,
			    uint64_t begin_ns, struct kymo_error *err)
{
	const struct ky_store_place place = {.path = "kernel"};
	struct ky_kernel_trace *kernel = &foreign->kernel;
	int ret = ky_kernel_trace_make_uuid(kernel, err);

	kernel->start_cycles = foreign->last_ns = begin_ns;
	/* Names in the events' formats are worth what the file's kernel says, which is unknown; not what this one says. */
	kernel->has_constants = true;
	if (!ret && (foreign->raw_entry_id || foreign->raw_exit_id))
		ret = foreign_kernel_add_calls(foreign, err);
	if (!ret && foreign->has_stacks)
		ret = foreign_kernel_add_stacks(foreign, err);
	if (!ret)
		ret = ky_convert_init(&kernel->convert, kernel->context, err);
	if (!ret)
		ret = ky_kernel_trace_build(kernel, err);
	if (!ret)
		ret = ky_store_open(store, &place, &kernel->packets, err);
	foreign->has_begun = !ret;
	return ret;
}

/* ---- CPUs ----------------------------------------------------------------------------- */

static int foreign_kernel_new_cpu(struct ky_foreign_kernel *foreign, uint32_t number,
				  struct kymo_error *err)
{
	struct ky_foreign_cpu *cpu = calloc(1, sizeof(*cpu));
	const struct ky_page nothing = {.cycles = foreign->kernel.start_cycles};
	int ret;

	if (!cpu)
		return ky_error_nomem(err);
	ky_kernel_cpu_init(&cpu->cpu, &foreign->kernel, number);
	cpu->last_ns = foreign->kernel.start_cycles;
	foreign->cpus.data[number] = cpu;
	if (ky_vec_push(&foreign->kernel.cpus, &cpu->cpu) < 0)
		return ky_error_nomem(err);
	ret = ky_kernel_cpu_begin(&cpu->cpu, err);
	return ret < 0 ? ret : ky_convert_page(&cpu->cpu.convert, &nothing, err);
}

static struct ky_foreign_cpu *foreign_kernel_add_cpu(struct ky_foreign_kernel *foreign,
						     uint32_t number, struct kymo_error *err)
{
	if (number >= KY_FOREIGN_CPUS_MAX) {
		ky_error_set(err, KYMO_E_LIMIT, "CPU %u is above the limit of %u CPUs", number,
			     KY_FOREIGN_CPUS_MAX);
		return NULL;
	}
	while (foreign->cpus.len <= number)
		if (ky_vec_push(&foreign->cpus, NULL) < 0) {
			ky_error_nomem(err);
			return NULL;
		}
	if (foreign_kernel_new_cpu(foreign, number, err) < 0)
		return NULL;
	return foreign->cpus.data[number];
}

/* CPU @number, a new one if need be. NULL: @err. */
static inline struct ky_foreign_cpu *foreign_kernel_cpu(struct ky_foreign_kernel *foreign,
							uint32_t number, struct kymo_error *err)
{
	if (__builtin_expect(number < foreign->cpus.len && foreign->cpus.data[number], 1))
		return foreign->cpus.data[number];
	return foreign_kernel_add_cpu(foreign, number, err);
}

/* Tells what was lost before the next record. */
static int foreign_kernel_tell_lost(struct ky_foreign_cpu *cpu, struct kymo_error *err)
{
	const struct ky_page page = {.cycles = cpu->last_ns, .missed = true, .lost = cpu->lost};

	cpu->lost = 0;
	return ky_convert_page(&cpu->cpu.convert, &page, err);
}

/* Room for a copy of a record. */
static inline uint8_t *foreign_kernel_reserve(struct ky_foreign_kernel *foreign, uint32_t len)
{
	uint8_t *record;

	if (__builtin_expect(len <= foreign->record_cap, 1))
		return foreign->record;
	len = len < STACK_BYTES ? STACK_BYTES : len;
	record = realloc(foreign->record, len);
	if (!record)
		return NULL;
	foreign->record = record;
	foreign->record_cap = len;
	return record;
}

/* ---- the other byte order ------------------------------------------------------------- */

static void turn(uint8_t *at, size_t bytes)
{
	for (size_t i = 0; i < bytes / 2; i++) {
		uint8_t byte = at[i];

		at[i] = at[bytes - 1 - i];
		at[bytes - 1 - i] = byte;
	}
}

static void turn_all(uint8_t *record, uint32_t len, uint32_t at, uint32_t bytes, uint32_t n)
{
	for (uint32_t i = 0; i < n && bytes && at <= len && bytes <= len - at; i++, at += bytes)
		turn(record + at, bytes);
}

static void turn_field(const struct ky_format_field *field, uint8_t *record, uint32_t len)
{
	uint32_t word, at;

	if (field->kind == KY_FORMAT_INT || field->kind == KY_FORMAT_POINTER) {
		turn_all(record, len, field->offset, field->size, 1);
	} else if (field->kind == KY_FORMAT_ARRAY) {
		turn_all(record, len, field->offset, field->element_bytes, field->elements);
	} else if (field->kind == KY_FORMAT_LOC_TEXT || field->kind == KY_FORMAT_LOC_ARRAY) {
		turn_all(record, len, field->offset, 4, 1);
		if (field->kind != KY_FORMAT_LOC_ARRAY || field->element_bytes < 2 ||
		    field->offset + 4u > len)
			return;
		word = ky_record_word(record + field->offset);
		at = (word & 0xffff) + (field->is_relative ? field->offset + 4u : 0);
		turn_all(record, len, at, field->element_bytes,
			 (word >> 16) / field->element_bytes);
	}
}

static void turn_record(const struct ky_format *format, uint8_t *record, uint32_t len)
{
	turn_all(record, len, format->type_offset, format->type_size, 1);
	turn_all(record, len, format->pid_offset, 4, 1);
	for (size_t i = 0; i < format->n_fields; i++)
		turn_field(&format->fields[i], record, len);
}

/* A copy of a record, in this machine's byte order. */
static const uint8_t *foreign_kernel_turned(struct ky_foreign_kernel *foreign, uint32_t id,
					    const uint8_t *data, uint32_t len)
{
	uint8_t *record = foreign_kernel_reserve(foreign, len);

	if (!record)
		return NULL;
	memcpy(record, data, len);
	turn_record(foreign->swaps[id]->format, record, len);
	return record;
}

/* ---- records -------------------------------------------------------------------------- */

/* A system call of raw_syscalls becomes the event of that call. */
static inline uint16_t foreign_kernel_type(const struct ky_foreign_kernel *foreign, uint32_t id,
					   const uint8_t *record, uint32_t len)
{
	bool is_entry = id == foreign->raw_entry_id;
	uint16_t type;
	uint64_t number;

	memcpy(&type, record, sizeof(type));
	if (!id || (!is_entry && id != foreign->raw_exit_id) || len < (is_entry ? 64u : 24u))
		return type;
	number = ky_record_long(record + 8);
	if (number >= KY_FOREIGN_CALLS || !(foreign->known_calls[number / 64] >> number % 64 & 1))
		return type;
	return (uint16_t)((is_entry ? KY_FOREIGN_ENTRY_ID : KY_FOREIGN_EXIT_ID) + number);
}

/* Behind the record of its event, at the same time: with the event's thread and level. */
static int foreign_kernel_put_stack(struct ky_foreign_kernel *foreign, struct ky_foreign_cpu *cpu,
				    const uint8_t common[8], uint16_t id, const uint64_t *frames,
				    size_t n, struct kymo_error *err)
{
	uint32_t size = (uint32_t)(n < STACK_FRAMES ? n : STACK_FRAMES);
	uint8_t *at = n ? foreign_kernel_reserve(foreign, STACK_BYTES) : NULL;

	if (!n)
		return KYMO_OK;
	if (!at)
		return ky_error_nomem(err);
	memset(at, 0, STACK_BYTES);
	memcpy(at, common, 8);
	memcpy(at, &id, sizeof(id));
	memcpy(at + 8, &size, sizeof(size));
	memcpy(at + 16, frames, size * sizeof(*frames));
	return ky_convert_one(&cpu->cpu.convert, cpu->last_ns, id, at, STACK_BYTES, err);
}

static int foreign_kernel_put_stacks(struct ky_foreign_kernel *foreign, struct ky_foreign_cpu *cpu,
				     const uint8_t *record, const struct ky_foreign_stacks *stacks,
				     struct kymo_error *err)
{
	uint8_t common[8];
	int ret;

	memcpy(common, record, sizeof(common));
	ret = foreign_kernel_put_stack(foreign, cpu, common, KERNEL_STACK_ID, stacks->kernel,
				       stacks->n_kernel, err);
	return ret < 0 ? ret
		       : foreign_kernel_put_stack(foreign, cpu, common, USER_STACK_ID, stacks->user,
						  stacks->n_user, err);
}

int ky_foreign_kernel_record(struct ky_foreign_kernel *foreign, uint32_t number, uint32_t id,
			     uint64_t ns, const uint8_t *data, uint32_t len,
			     const struct ky_foreign_stacks *stacks, struct kymo_error *err)
{
	struct ky_foreign_cpu *cpu = foreign_kernel_cpu(foreign, number, err);
	int ret = KYMO_OK;

	if (!cpu)
		return err ? err->code : KYMO_E_MEMORY;
	if (len < 8 || id > UINT16_MAX)
		return KYMO_OK;
	/* The bytes of its type would be taken for another event's. */
	if (foreign->swap && (!foreign->swaps || !foreign->swaps[id]))
		return KYMO_OK;
	if (foreign->swap) {
		data = foreign_kernel_turned(foreign, id, data, len);
		if (!data)
			return ky_error_nomem(err);
	}
	if (cpu->lost)
		ret = foreign_kernel_tell_lost(cpu, err);
	cpu->last_ns = ns > cpu->last_ns ? ns : cpu->last_ns;
	foreign->last_ns = ns > foreign->last_ns ? ns : foreign->last_ns;
	if (!ret)
		ret = ky_convert_one(&cpu->cpu.convert, cpu->last_ns,
				     foreign_kernel_type(foreign, id, data, len), data, len, err);
	if (!ret && stacks && foreign->has_stacks)
		ret = foreign_kernel_put_stacks(foreign, cpu, data, stacks, err);
	return ret;
}

int ky_foreign_kernel_page(struct ky_foreign_kernel *foreign, uint32_t number,
			   const struct ky_page *page, struct kymo_error *err)
{
	struct ky_foreign_cpu *cpu = foreign_kernel_cpu(foreign, number, err);
	struct ky_page own = *page;
	int ret;

	if (!cpu)
		return err ? err->code : KYMO_E_MEMORY;
	if (cpu->lost) {
		own.missed = true;
		own.lost += cpu->lost;
		cpu->lost = 0;
	}
	ret = ky_convert_page(&cpu->cpu.convert, &own, err);
	if (!ret)
		ret = ky_convert_run(&cpu->cpu.convert, UINT64_MAX, err);
	if (cpu->cpu.convert.writer.last_cycles > foreign->last_ns)
		foreign->last_ns = cpu->cpu.convert.writer.last_cycles;
	return ret < 0 ? ret : KYMO_OK;
}

int ky_foreign_kernel_lost(struct ky_foreign_kernel *foreign, uint32_t number, uint64_t n,
			   struct kymo_error *err)
{
	struct ky_foreign_cpu *cpu = foreign_kernel_cpu(foreign, number, err);

	if (!cpu)
		return err ? err->code : KYMO_E_MEMORY;
	cpu->lost += n;
	return KYMO_OK;
}

/* ---- the state dump ------------------------------------------------------------------- */

static int foreign_kernel_send_dump(struct ky_foreign_kernel *foreign, struct kymo_error *err)
{
	if (foreign->dump_stream < 0)
		foreign->dump_stream = ky_store_stream(foreign->kernel.packets, "statedump_0", err);
	if (foreign->dump_stream < 0)
		return foreign->dump_stream;
	return ky_kernel_trace_send(&foreign->kernel, &foreign->dump, foreign->dump_stream, NULL,
				    foreign->kernel.start_cycles, 0, err);
}

/* Bytes of lttng_statedump_process_state, with LTTng's numbers. */
struct foreign_thread {
	int32_t tid, pid, ppid;
	char comm[16];
	int32_t type, mode, submode, status;
	uint32_t cpu;
	uint64_t file_table;
	int32_t prio;
} __attribute__((packed));

#define MODE_UNKNOWN 5
#define STATUS_WAIT  5

int ky_foreign_kernel_thread(struct ky_foreign_kernel *foreign, int32_t tid, int32_t pid,
			     const char *comm, struct kymo_error *err)
{
	struct ky_kernel_trace *kernel = &foreign->kernel;
	uint32_t id = kernel->first_dump_id + KY_STATEDUMP_PROCESS_STATE;
	/* Thread 0, and no call stacks: all zeros. */
	uint32_t context = kernel->convert.context_bytes,
		 len = context + sizeof(struct foreign_thread);
	struct foreign_thread thread = {
		.tid = tid,
		.pid = pid,
		.mode = MODE_UNKNOWN,
		.status = STATUS_WAIT,
		.prio = 20,
	};
	uint8_t *at;
	int ret = KYMO_OK;

	memcpy(thread.comm, comm, sizeof(thread.comm));
	if (!foreign->dump.data) {
		if (ky_packet_writer_init(&foreign->dump, KY_KERNEL_TRACE_PACKET_BYTES,
					  kernel->uuid, 0, DUMP_STREAM_ID, 0,
					  kernel->compact_header) < 0)
			return ky_error_nomem(err);
		ky_packet_writer_begin(&foreign->dump, kernel->start_cycles);
	}
	at = ky_packet_writer_event(&foreign->dump, id, kernel->start_cycles, len);
	if (!at) {
		ret = foreign_kernel_send_dump(foreign, err);
		ky_packet_writer_begin(&foreign->dump, kernel->start_cycles);
		at = ky_packet_writer_event(&foreign->dump, id, kernel->start_cycles, len);
	}
	if (at) {
		memset(at, 0, context);
		memcpy(at + context, &thread, sizeof(thread));
	}
	return ret;
}

int ky_foreign_kernel_end(struct ky_foreign_kernel *foreign, uint64_t *n_events, uint64_t *n_bad,
			  struct kymo_error *err)
{
	struct ky_kernel_trace *kernel = &foreign->kernel;
	int ret = KYMO_OK, closed;

	*n_events = *n_bad = 0;
	ky_vec_foreach(&foreign->cpus, cpu) {
		if (!*cpu || ret < 0)
			continue;
		ret = (*cpu)->lost ? foreign_kernel_tell_lost(*cpu, err) : KYMO_OK;
		*n_events += (*cpu)->cpu.convert.events;
		*n_bad += (*cpu)->cpu.convert.bad;
	}
	if (!ret && foreign->dump.data)
		ret = foreign_kernel_send_dump(foreign, err);
	if (!ret)
		ret = ky_kernel_trace_end_streams(kernel, foreign->last_ns, err);
	if (!ret)
		ret = ky_kernel_trace_write_metadata(kernel, err);
	closed = ky_store_close(kernel->packets, ret < 0 ? NULL : err);
	kernel->packets = NULL;
	return ret < 0 ? ret : closed;
}
