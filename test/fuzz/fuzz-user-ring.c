/* SPDX-License-Identifier: MIT */
/*
 * A hostile program's ring file, all the way to the trace. The input scribbles over a ring with events
 * and their descriptions, before it is opened and behind the recorder's back; it may also cut the
 * file. Whatever is there: metadata that was written can be read, what is written does not
 * grow, it ends. Patches are {u16 where, u8 length, bytes}; the first byte chooses when. With its
 * highest bit, the ring is one of many programs, and has a registry of events.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/control.h"
#include "abi/user-packet.h"
#include "base/strbuf.h"
#include "ctf/tsdl/tsdl.h"
#include "os/file.h"
#include "record/rings/user-dump.h"
#include "record/rings/user-ring.h"
#include "store/directory/directory-store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SUBBUF_BYTES 4096u
#define SUBBUFS	     4u
#define CLIENT_BYTES (KY_BLOB_BYTES + KY_NOTES_BYTES)
#define TRACE_MAX    (64u * SUBBUF_BYTES * SUBBUFS)

/* In memory: metadata is synced. */
static char output[] = "/dev/shm/fuzz-user-ring-XXXXXX";
static struct ky_packet_store *store; /* at output */
static const uint8_t uuid[16] = "0123456789abcde";

static uint64_t now(void)
{
	static uint64_t ticks;

	return ++ticks;
}

static uint32_t header_of(const void *record, const struct kymo_ring_spot *spot,
			  union kymo_ring_header *header)
{
	header->word32 = *(const uint32_t *)record | (uint32_t)spot->now << 5;
	return KY_HEADER_COMPACT_BYTES;
}

static void packet_open(const void *client, const struct kymo_ring_packet *packet, void *header)
{
	ky_user_packet_open(uuid, packet, header);
}

static void packet_close(const void *client, const struct kymo_ring_packet *packet, void *header)
{
	ky_user_packet_close(packet, header);
}

static const struct kymo_ring_config config = {KY_PACKET_PROLOG_BYTES, now, header_of, packet_open,
					       packet_close};

/* "f:e", with a sequence "x"; its record and how long it is. */
static uint32_t put_record(uint8_t *to, uint8_t kind, uint8_t n_fields)
{
	struct ky_event_record *record = (void *)to;
	uint32_t texts = (uint32_t)(sizeof(*record) + n_fields * sizeof(record->fields[0]));

	*record = (struct ky_event_record){
		.bytes = (texts + 15) & ~7u,
		.provider = texts,
		.name = texts + 2,
		.file = texts + 6,
		.kind = kind,
		.n_fields = n_fields,
	};
	memcpy(to + texts, "f\0e\0x\0", 7);
	for (uint8_t i = 0; i < n_fields; i++)
		record->fields[i] = (struct ky_field_record){
			.name = texts + 4, .kind = KY_KIND_SEQUENCE, .element_bytes = 4};
	return record->bytes;
}

static uint8_t *put_entry(uint8_t *at, uint8_t kind, uint8_t n_fields)
{
	struct ky_shared_entry *entry = (void *)at;
	uint32_t bytes = put_record(at + sizeof(*entry), kind, n_fields);

	*entry = (struct ky_shared_entry){.claim = (uint64_t)bytes << 32 | 7, .ready = 1};
	return at + sizeof(*entry) + bytes;
}

/* The event's id is 0, as in a blob of one program: its entry is the first. */
static uint8_t *put_registry(struct ky_blob *blob)
{
	uint8_t *at = put_entry((uint8_t *)(blob + 1), KY_EVENT_PLAIN, 1);

	blob->flags = KY_BLOB_SHARED;
	blob->layout = (uint64_t)(at - (uint8_t *)blob);
	at = put_entry(at, KY_EVENT_CONTEXT, 0);
	return put_entry(at, KY_EVENT_COUNTER, 1);
}

static void put_blob(struct kymo_ring_writer *writer, bool is_shared)
{
	struct ky_blob *blob = writer->client_region;
	uint8_t *at = (uint8_t *)(blob + 1);

	if (is_shared) {
		at = put_registry(blob);
	} else {
		at += put_record(at, KY_EVENT_CONTEXT, 0);
		at += put_record(at, KY_EVENT_PLAIN, 1);
	}
	blob->version = KY_CONTROL_VERSION;
	blob->head_bytes = sizeof(*blob);
	memcpy(blob->trace_uuid, uuid, sizeof(uuid));
	blob->clock =
		(struct ky_clock_record){.kind = KY_CLOCK_RECORD_TSC, .frequency_hz = 1000000000};
	blob->pid = 1;
	memcpy(blob->procname, "fuzz", 5);
	blob->bytes = (uint64_t)(at - (uint8_t *)blob);
	blob->magic = KY_BLOB_MAGIC;
}

static uint8_t *put_note(uint8_t *at, uint32_t kind, const void *body, uint32_t bytes)
{
	struct ky_note *note = (void *)at;

	*note = (struct ky_note){.cycles = now(), .kind = kind, .bytes = bytes};
	memcpy(at + sizeof(*note), body, bytes);
	return at + sizeof(*note) + (bytes + 7) / 8 * 8;
}

/* What is loaded when it begins; that the second one goes; and what is loaded then. */
static void put_notes(struct kymo_ring_writer *writer)
{
	static const char maps[] = "400000-402000 r--p 00000000 fe:01 77      /bin/true\n"
				   "402000-409000 r-xp 00002000 fe:01 77      /bin/true\n"
				   "7f000000-7f020000 r-xp 00000000 fe:01 78  /lib/x.so\n"
				   "7ffd0000-7ffd2000 r-xp 00000000 00:00 0   [vdso]\n";
	static const uint64_t address = 0x7f000100;
	struct ky_blob *blob = writer->client_region;
	uint8_t *begin = (uint8_t *)blob + KY_BLOB_BYTES, *at = begin;

	at = put_note(at, KY_NOTE_MAPS, maps, sizeof(maps) - 1);
	at = put_note(at, KY_NOTE_UNLOAD, &address, sizeof(address));
	at = put_note(at, KY_NOTE_MAPS, maps + 52, sizeof(maps) - 1 - 52);
	blob->notes_bytes = (uint32_t)(at - begin);
}

static void write_events(struct kymo_ring_writer *writer, uint32_t n)
{
	static const uint32_t id, elements[3] = {2, 7, 8};

	for (uint32_t i = 0; i < n; i++)
		kymo_ring_write(&config, writer, &id, elements, sizeof(elements));
}

/* The head, control blocks, slots, the blob, data: all of it in reach of 16 bits. */
static uint64_t place(const struct kymo_ring_writer *writer, uint16_t where)
{
	const uint8_t *file = (const uint8_t *)writer->file;
	uint64_t offset = where & 0x1fff;

	switch (where >> 13) {
	case 0:
		return offset % sizeof(struct kymo_ring_file);
	case 1:
	case 2:
		return (uint64_t)((const uint8_t *)writer->control - file) + offset % 512;
	case 3:
		return (uint64_t)((const uint8_t *)writer->slots - file) +
		       offset % (2 * SUBBUFS * sizeof(struct kymo_ring_slot));
	case 4:
		return (uint64_t)(writer->data - file) + offset;
	case 5:
		return (uint64_t)((const uint8_t *)writer->client_region - file) + KY_BLOB_BYTES +
		       offset % 1024;
	default:
		return (uint64_t)((const uint8_t *)writer->client_region - file) + offset % 1024;
	}
}

static void scribble(struct kymo_ring_writer *writer, const uint8_t *data, size_t size)
{
	while (size > 3) {
		uint64_t at = place(writer, (uint16_t)(data[0] | data[1] << 8));
		size_t bytes = data[2] % 64;

		data += 3;
		size -= 3;
		if (bytes > size)
			bytes = size;
		memcpy((uint8_t *)writer->file + at, data, bytes);
		data += bytes;
		size -= bytes;
	}
}

/* The trace, with all that is in it, goes; first its metadata is read, if it says that it is one. */
static void remove_below(int at_fd, const char *name, uint64_t *bytes)
{
	int fd = openat(at_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;
	struct stat st;

	if (!dir)
		abort();
	while ((entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISDIR(st.st_mode)) {
			remove_below(fd, entry->d_name, bytes);
			unlinkat(fd, entry->d_name, AT_REMOVEDIR);
			continue;
		}
		*bytes += (uint64_t)st.st_size;
		if (strcmp(entry->d_name, "metadata") == 0) {
			struct ky_strbuf text = KY_STRBUF_INIT;
			struct ky_trace_class *cls;
			struct kymo_error err;

			if (ky_read_file(fd, "metadata", 1 << 22, &text) < 0 ||
			    ky_metadata_read(ky_strbuf_text(&text), text.len, &cls, &err) < 0)
				abort();
			ky_trace_class_free(cls);
			ky_strbuf_fini(&text);
		}
		unlinkat(fd, entry->d_name, 0);
	}
	closedir(dir);
}

static void record(struct kymo_ring_writer *writer, int fd, const uint8_t *data, size_t size)
{
	struct ky_user_ring_options options = {.store = store,
					       .subbuf_bytes = SUBBUF_BYTES,
					       .n_subbufs = SUBBUFS,
					       .is_shared = data[0] & 128,
					       .uid = 1000};
	static const struct ky_clock_record clock = {.kind = KY_CLOCK_RECORD_TSC,
						     .frequency_hz = 999};
	struct ky_user_ring *ring;
	struct ky_os_clock ticks;
	struct kymo_error err;

	if (ky_os_clock_init(&ticks, KY_OS_CLOCK_MONOTONIC, NULL) < 0)
		abort();
	if (data[0] & 4) {
		options = (struct ky_user_ring_options){.store = store, .read_only = true};
	}
	if (ky_user_ring_open(fd, "fuzz", &options, &ring, &err) < 0)
		return;
	if (ky_user_ring_read(ring, data[0] & 8, &err) < 0 ||
	    (data[0] & 64 && ky_user_dump_notes(ring, &ticks, &err) < 0))
		abort();
	if (!(data[0] & 2))
		scribble(writer, data + 1, size - 1);
	if (data[0] & 16 && ftruncate(fd, (off_t)writer->map_bytes / 2) < 0)
		abort();
	ring->metadata_ns = 0; /* as after a while: what it describes is read again */
	if (ky_user_ring_read(ring, true, &err) < 0 || ky_user_dump_notes(ring, &ticks, &err) < 0 ||
	    ky_user_ring_finish(ring, &err) < 0 || ky_user_ring_set_clock(ring, &clock, &err) < 0)
		abort();
	ky_user_ring_free(ring);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kymo_ring_options options = {.size_bytes = sizeof(options),
					    .flags = KYMO_RING_LOCKED,
					    .subbuf_bytes = SUBBUF_BYTES,
					    .n_subbufs = SUBBUFS,
					    .n_buffers = 1,
					    .client_bytes = CLIENT_BYTES};
	struct kymo_ring_writer writer;
	uint64_t bytes = 0;
	int fd;

	if (size < 1)
		return 0;
	if (strstr(output, "XXXXXX") && !mkdtemp(output))
		abort();
	if (!store && ky_directory_store_open(output, &store, NULL) < 0)
		abort();
	if (mkdir(output, 0700) < 0 && access(output, W_OK) < 0)
		abort();
	fd = memfd_create("fuzz", MFD_CLOEXEC);
	options.flags |= data[0] & KYMO_RING_OVERWRITE;
	if (fd < 0 || kymo_ring_create(&writer, fd, &config, NULL, &options) < 0)
		abort();
	put_blob(&writer, data[0] & 128);
	put_notes(&writer);
	write_events(&writer, data[0] & 32 ? 500 : 20);
	if (data[0] & 2)
		scribble(&writer, data + 1, size - 1);
	record(&writer, fd, data, size);
	kymo_ring_unmap(&writer);
	remove_below(AT_FDCWD, output, &bytes);
	rmdir(output);
	if (bytes > TRACE_MAX)
		abort();
	return 0;
}
