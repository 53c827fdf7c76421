/* SPDX-License-Identifier: MIT */
/*
 * What programs write about their events, and what state dumps read: the input is taken as a
 * control file's event table, as a ring's blob, and as an ELF file.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ctf/tsdl/tsdl.h"
#include "os/file.h"
#include "os/elf-file.h"
#include "record/rings/user-metadata.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_table(const uint8_t *data, size_t size)
{
	struct ky_user_event event;
	bool is_good;
	size_t at = 0, bytes;

	while ((bytes = ky_user_event_next(data + at, data + size, &event, &is_good))) {
		char name[KY_USER_EVENT_NAME_BYTES], type[48];

		at += bytes;
		if (!is_good)
			continue;
		ky_user_event_name(&event, name);
		for (unsigned int i = 0; i < event.record->n_fields; i++) {
			ky_user_field_type(&event.record->fields[i], type);
			if (!*ky_user_field_name(&event, i))
				abort();
		}
	}
}

/* Metadata that is written must be readable. */
static void try_blob(const uint8_t *data, size_t size)
{
	struct ky_user_blob blob = {(const struct ky_blob *)data, size};
	char name[KY_USER_TRACE_NAME_BYTES], *text;
	struct ky_trace_class *cls;
	struct kymo_error err;
	uint32_t n_bad;
	size_t len;

	if (ky_user_blob_check(&blob, &err) < 0)
		return;
	ky_user_trace_name(blob.head, name);
	if (strchr(name, '/') || name[0] == '.')
		abort();
	if (ky_user_metadata(&blob, &blob.head->clock, name, &text, &len, &n_bad, &err) < 0)
		return;
	if (ky_metadata_read(text, len, &cls, &err) < 0)
		abort();
	ky_trace_class_free(cls);
	free(text);
}

static void try_elf(const uint8_t *data, size_t size)
{
	struct ky_elf_info info;
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0)
		return;
	if (ky_write_all(fd, data, size) == 0 && ky_elf_read(fd, &info) &&
	    (info.build_id_bytes > sizeof(info.build_id) ||
	     !memchr(info.debug_link, 0, sizeof(info.debug_link))))
		abort();
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Memory of its own, aligned, so that reading behind its end is seen. */
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		return 0;
	memcpy(copy, data, size);
	try_table(copy, size);
	try_blob(copy, size);
	try_elf(copy, size);
	free(copy);
	return 0;
}
