/* SPDX-License-Identifier: MIT */
/* Making a ring file, and mapping it for writing. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ring/ring-writer.h"

/* When the machine does not tell how many CPUs it may have. Those beyond use the spare buffer. */
#define CPUS_WHEN_UNKNOWN 64

#if KYMO_RING_HAS_RSEQ
/* glibc has them since 2.35; weak, so that programs start with an older one. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

bool ky_rb_find_rseq(ptrdiff_t *area)
{
	if (&__rseq_size == NULL || &__rseq_offset == NULL || __rseq_size == 0)
		return false;
	*area = __rseq_offset;
	return true;
}
#else
bool ky_rb_find_rseq(ptrdiff_t *area)
{
	return false;
}
#endif

static long call3(long number, long a, long b, long c)
{
	return ky_rb_syscall(number, a, b, c, 0, 0, 0);
}

/* CPUs that there may ever be: the last number in "0-3,8-11", and one. */
static uint32_t possible_cpus(void)
{
	static const char path[] = "/sys/devices/system/cpu/possible";
	char text[256];
	long fd = ky_rb_syscall(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
	long len = 0;
	uint32_t last = 0;

	if (fd >= 0) {
		len = call3(SYS_read, fd, (long)text, sizeof(text));
		call3(SYS_close, fd, 0, 0);
	}
	if (len <= 0)
		return CPUS_WHEN_UNKNOWN;
	for (long i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			last = text[i] == '-' || text[i] == ',' ? 0 : last;
		else if (last < KYMO_RING_BUFFERS_MAX)
			last = last * 10 + (uint32_t)(text[i] - '0');
	}
	return last + 1 < KYMO_RING_BUFFERS_MAX ? last + 1 : KYMO_RING_BUFFERS_MAX;
}

static bool is_power_of_two(uint64_t number)
{
	return number && !(number & (number - 1));
}

static bool sizes_ok(uint64_t subbuf_bytes, uint64_t n_subbufs, uint64_t header_bytes,
		     uint64_t n_buffers)
{
	return is_power_of_two(subbuf_bytes) && subbuf_bytes >= KYMO_RING_SUBBUF_MIN_BYTES &&
	       subbuf_bytes <= KYMO_RING_BUFFER_MAX_BYTES / 2 && is_power_of_two(n_subbufs) &&
	       n_subbufs >= 2 && n_subbufs <= KYMO_RING_BUFFER_MAX_BYTES / subbuf_bytes &&
	       n_subbufs * subbuf_bytes >= KYMO_RING_BUFFER_MIN_BYTES &&
	       header_bytes <= KYMO_RING_SUBBUF_HEADER_MAX_BYTES &&
	       n_buffers <= KYMO_RING_BUFFERS_MAX;
}

static uint64_t align(uint64_t bytes)
{
	return (bytes + KYMO_RING_ALIGN_BYTES - 1) & ~(uint64_t)(KYMO_RING_ALIGN_BYTES - 1);
}

void ky_rb_lay_out(struct kymo_ring_file *file)
{
	uint64_t n = (uint64_t)file->n_buffers + 1,
		 buffer_bytes = file->subbuf_bytes * file->n_subbufs;

	file->control_offset = align(sizeof(*file));
	file->slots_offset = file->control_offset + align(n * sizeof(struct kymo_ring_control));
	file->client_offset =
		file->slots_offset + align(n * file->n_subbufs * sizeof(struct kymo_ring_slot));
	file->data_offset = file->client_offset + align(file->client_bytes);
	file->file_bytes = file->data_offset + align(n * buffer_bytes);
}

bool ky_rb_head_ok(const struct kymo_ring_file *head)
{
	struct kymo_ring_file again = *head;

	if (head->version != KYMO_RING_VERSION || head->flags & ~(uint32_t)KYMO_RING_FLAGS ||
	    head->client_bytes > KYMO_RING_BUFFER_MAX_BYTES ||
	    !sizes_ok(head->subbuf_bytes, head->n_subbufs, head->subbuf_header_bytes,
		      head->n_buffers))
		return false;
	ky_rb_lay_out(&again);
	return again.control_offset == head->control_offset &&
	       again.slots_offset == head->slots_offset &&
	       again.client_offset == head->client_offset &&
	       again.data_offset == head->data_offset && again.file_bytes == head->file_bytes;
}

/* Whether the kernel has it at all, when this process does not use it. */
static bool kernel_has_rseq(void)
{
	return ky_rb_syscall(SYS_rseq, 0, 0, -1, 0, 0, 0) != -ENOSYS;
}

/* The options, with what they leave open filled in, as the head of a file. 0 or -EINVAL. */
static int plan_file(const struct kymo_ring_config *config, const struct kymo_ring_options *given,
		     struct kymo_ring_file *file)
{
	struct kymo_ring_options options = {0};
	ptrdiff_t area;

	if (given->size_bytes < offsetof(struct kymo_ring_options, n_buffers) ||
	    given->size_bytes > sizeof(options))
		return -EINVAL;
	memcpy(&options, given, given->size_bytes);
	*file = (struct kymo_ring_file){
		.version = KYMO_RING_VERSION,
		.flags = options.flags & ~(uint32_t)KYMO_RING_MIXED,
		.n_buffers = options.n_buffers ? options.n_buffers : possible_cpus(),
		.n_subbufs = options.n_subbufs ? options.n_subbufs : KYMO_RING_DEFAULT_SUBBUFS,
		.subbuf_bytes = options.subbuf_bytes ? options.subbuf_bytes
						     : KYMO_RING_DEFAULT_SUBBUF_BYTES,
		.subbuf_header_bytes = config->subbuf_header_bytes,
		.client = options.client,
		.clock = options.clock,
		.page_bytes = (uint32_t)sysconf(_SC_PAGESIZE),
		.client_bytes = options.client_bytes,
	};
	if (options.flags & KYMO_RING_GLOBAL)
		file->n_buffers = 0;
	if ((options.flags & KYMO_RING_GLOBAL) ||
	    (!ky_rb_find_rseq(&area) && !((options.flags & KYMO_RING_MIXED) && kernel_has_rseq())))
		file->flags |= KYMO_RING_LOCKED;
	ky_rb_lay_out(file);
	return ky_rb_head_ok(file) ? 0 : -EINVAL;
}

/* A file beyond RLIMIT_FSIZE would be answered with SIGXFSZ. */
static int ring_map_make_room(int fd, uint64_t bytes)
{
	struct rlimit64 limit;
	long result = ky_rb_syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&limit, 0, 0);

	if (result == 0 && bytes > limit.rlim_cur)
		return -EFBIG;
	return (int)call3(SYS_ftruncate, fd, (long)bytes, 0);
}

/* Everything in @writer that follows from the file's head. */
static void derive(struct kymo_ring_writer *writer, const struct kymo_ring_file *head, uint8_t *map)
{
	writer->file = (struct kymo_ring_file *)map;
	writer->control = (struct kymo_ring_control *)(map + head->control_offset);
	writer->slots = (struct kymo_ring_slot *)(map + head->slots_offset);
	writer->client_region = map + head->client_offset;
	writer->data = map + head->data_offset;
	writer->map_bytes = head->file_bytes;
	writer->subbuf_bytes = head->subbuf_bytes;
	writer->subbuf_mask = head->subbuf_bytes - 1;
	writer->buffer_bytes = head->subbuf_bytes * head->n_subbufs;
	writer->buffer_mask = writer->buffer_bytes - 1;
	writer->n_subbufs = head->n_subbufs;
	writer->n_buffers = head->n_buffers + 1;
	writer->flags = head->flags;
	writer->subbuf_header_bytes = head->subbuf_header_bytes;
	if (!(head->flags & KYMO_RING_LOCKED) && ky_rb_find_rseq(&writer->rseq_area))
		writer->rseq_buffers = head->n_buffers;
	writer->process = ky_rb_process_new();
}

static int ring_map_file(struct kymo_ring_writer *writer, int fd, const struct kymo_ring_file *head,
			 const void *client)
{
	const int synced = MAP_SHARED_VALIDATE | MAP_SYNC | MAP_NORESERVE;
	uint8_t *map = ky_rb_map(head->file_bytes, synced, fd);

	/* Refused by whatever is not persistent memory, and by kernels before 4.15. */
	writer->is_synced = map != NULL;
	if (!map)
		map = ky_rb_map(head->file_bytes, MAP_SHARED | MAP_NORESERVE, fd);
	if (!map)
		return -ENOMEM;
	derive(writer, head, map);
	writer->client = client;
	return 0;
}

int kymo_ring_create(struct kymo_ring_writer *writer, int fd, const struct kymo_ring_config *config,
		     const void *client, const struct kymo_ring_options *options)
{
	struct kymo_ring_file head;
	int status = plan_file(config, options, &head);

	memset(writer, 0, sizeof(*writer));
	if (status == 0)
		status = ring_map_make_room(fd, head.file_bytes);
	if (status == 0)
		status = ring_map_file(writer, fd, &head, client);
	if (status < 0)
		return status;
	if (ky_rb_populate(writer->file, sizeof(head)) < 0 ||
	    ky_rb_populate(writer->control, writer->n_buffers * sizeof(struct kymo_ring_control)) <
		    0) {
		kymo_ring_unmap(writer);
		return -ENOSPC;
	}
	*writer->file = head;
	/* Partner: the recorder, which finds the file and checks the magic number. */
	__atomic_store_n(&writer->file->magic, KYMO_RING_MAGIC, __ATOMIC_RELEASE);
	return 0;
}

int kymo_ring_map(struct kymo_ring_writer *writer, int fd, const struct kymo_ring_config *config,
		  const void *client)
{
	struct kymo_ring_file head;
	long got = ky_rb_syscall(SYS_pread64, fd, (long)&head, sizeof(head), 0, 0, 0);
	int64_t end;

	memset(writer, 0, sizeof(*writer));
	if (got < 0)
		return (int)got;
	end = call3(SYS_lseek, fd, 0, SEEK_END);
	if (got != sizeof(head) || head.magic != KYMO_RING_MAGIC || !ky_rb_head_ok(&head) ||
	    head.subbuf_header_bytes != config->subbuf_header_bytes ||
	    end != (int64_t)head.file_bytes)
		return -EINVAL;
	return ring_map_file(writer, fd, &head, client);
}

void kymo_ring_unmap(struct kymo_ring_writer *writer)
{
	ky_rb_process_free(writer->process);
	if (writer->file)
		call3(SYS_munmap, (long)writer->file, (long)writer->map_bytes, 0);
	memset(writer, 0, sizeof(*writer));
}
