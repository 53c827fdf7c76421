/* SPDX-License-Identifier: MIT */
/*
 * A hostile program's control file. The input is u16 lengths and so many bytes: what lies at the
 * beginning of the head, over the slots, and over the event table; the rest is written behind the
 * recorder's back, anywhere in the file, after it was opened. Whatever is there: nothing is read
 * outside of what was copied, events that come out are well-formed, and it ends.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "record/request/user-program.h"
#include "record/request/user-request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define COOKIE 0x0123456789abcdefull

struct input {
	const uint8_t *at;
	size_t left;
};

static size_t take(struct input *input, const uint8_t **part)
{
	size_t bytes;

	if (input->left < 2)
		return 0;
	bytes = (size_t)input->at[0] | (size_t)input->at[1] << 8;
	input->at += 2;
	input->left -= 2;
	if (bytes > input->left)
		bytes = input->left;
	*part = input->at;
	input->at += bytes;
	input->left -= bytes;
	return bytes;
}

/* A control file as the library makes it, but for what the input says. */
static int make(struct input *input, uint8_t **map)
{
	const uint8_t *head = NULL, *slots = NULL, *table = NULL;
	size_t head_bytes = take(input, &head), slots_bytes = take(input, &slots),
	       table_bytes = take(input, &table);
	int fd = memfd_create(KY_CONTROL_MEMFD, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct ky_control *control;

	if (fd < 0 || ftruncate(fd, KY_CONTROL_BYTES) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		abort();
	*map = mmap(NULL, KY_CONTROL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd,
		    0);
	if (*map == MAP_FAILED)
		abort();
	control = (struct ky_control *)*map;
	control->magic = KY_CONTROL_MAGIC;
	control->version = KY_CONTROL_VERSION;
	control->pid = 1;
	control->n_pages = 1;
	control->table_bytes = table_bytes;
	if (head_bytes > sizeof(*control))
		head_bytes = sizeof(*control);
	if (head_bytes)
		memcpy(control, head, head_bytes);
	if (slots_bytes > sizeof(control->slots))
		slots_bytes = sizeof(control->slots);
	if (slots_bytes)
		memcpy(control->slots, slots, slots_bytes);
	if (table_bytes)
		memcpy(*map + KY_CONTROL_TABLE, table, table_bytes);
	return fd;
}

/* u16 where, in steps that reach the head, the first pages of enable bytes, and the table. */
static void scribble(struct input *input, uint8_t *map)
{
	const uint8_t *part;
	size_t bytes;

	while (input->left > 4) {
		size_t where = (size_t)input->at[0] | (size_t)input->at[1] << 8;
		size_t at = where < 0x4000   ? where % 4096
			    : where < 0x5000 ? KY_CONTROL_ENABLE + where % 4096
					     : KY_CONTROL_TABLE + where - 0x5000;

		input->at += 2;
		input->left -= 2;
		bytes = take(input, &part);
		if (bytes)
			memcpy(map + at, part, bytes < 4096 ? bytes : 4096);
	}
}

static bool wants(void *data, const struct ky_user_event *event)
{
	char name[KY_USER_EVENT_NAME_BYTES];

	ky_user_event_name(event, name);
	return ky_user_glob("*:*", name);
}

static void look(struct ky_program *program)
{
	struct ky_user_names names = {0};
	struct ky_user_event event;
	struct kymo_error err;
	size_t n = 0;

	if (ky_program_read_table(program, &err) < 0)
		abort();
	for (size_t at = 0; ky_program_next_event(program, &at, &event); n++) {
		char name[KY_USER_EVENT_NAME_BYTES], type[48];

		if (n > KY_CONTROL_TABLE_BYTES / sizeof(struct ky_event_record))
			abort();
		ky_user_event_name(&event, name);
		if (strlen(event.file) >= event.record->bytes || !*event.provider || !*event.name)
			abort();
		for (unsigned int i = 0; i < event.record->n_fields; i++) {
			ky_user_field_type(&event.record->fields[i], type);
			if (!*ky_user_field_name(&event, i))
				abort();
		}
		if (ky_user_names_add(&names, &event) < 0)
			abort();
	}
	ky_user_names_fini(&names);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	struct ky_program_state state;
	struct ky_program *program;
	struct kymo_error err;
	uint8_t *map;
	int fd = make(&input, &map);

	if (ky_program_open(fd, &program, &err) == 0) {
		look(program);
		(void)ky_program_join(program, COOKIE, "/run/kymo/u0/1", wants, NULL, &err);
		ky_program_state(program, COOKIE, &state);
		if (!*ky_off_text(state.reason))
			abort();
		scribble(&input, map);
		look(program);
		(void)ky_program_join(program, COOKIE + 1, "/run/kymo/u0/2", wants, NULL, &err);
		ky_program_state(program, COOKIE, &state);
		ky_program_leave(program, COOKIE);
		ky_program_leave(program, COOKIE + 1);
		if (memchr(program->procname, 0, sizeof(program->procname)) == NULL)
			abort();
		ky_program_free(program);
	}
	munmap(map, KY_CONTROL_BYTES);
	return 0;
}
