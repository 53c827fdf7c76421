/* SPDX-License-Identifier: MIT */
/* The rings of a session: one for each CPU, and what is read of them. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/error.h"
#include "os/cpu.h"
#include "os/file.h"
#include "record/kernel/session-internal.h"

static int session_cpus_watch(struct ky_session *session, struct ky_session_cpu *cpu,
			      struct kymo_error *err)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = cpu};

	/* Rings of the boot before: nothing will come. A raw flight recorder reads its rings for a snapshot only. */
	if (session->epoll_fd < 0 || (session->options.raw && session->options.overwrite))
		return KYMO_OK;
	if (epoll_ctl(session->epoll_fd, EPOLL_CTL_ADD, cpu->kernel.ring.fd, &event) < 0)
		return ky_error_errno(err, errno, "cannot wait for the ring buffer");
	return KYMO_OK;
}

/* Behind the ids of the main streams and of the state dump. */
static uint64_t stream_id(const struct ky_session_buffers *buffers, uint32_t number)
{
	return (uint64_t)buffers->number << 32 | number;
}

static struct ky_session_cpu *new_cpu(struct ky_session *session,
				      const struct ky_session_buffers *buffers, uint32_t number)
{
	struct ky_session_cpu *cpu = calloc(1, sizeof(*cpu));

	if (!cpu || ky_vec_push(&session->cpus, cpu) < 0) {
		free(cpu);
		return NULL;
	}
	ky_kernel_cpu_init(&cpu->kernel, &session->kernel, number);
	cpu->session = session;
	cpu->buffers = buffers;
	if (buffers) {
		cpu->kernel.convert.of_group = true;
		cpu->kernel.instance = &buffers->instance;
		cpu->kernel.packets = buffers->packets;
		cpu->kernel.channel = buffers->group->name;
		cpu->kernel.is_late = buffers->packets && !session->options.overwrite;
		cpu->kernel.buffer_bytes = buffers->group->buffer_bytes;
		cpu->kernel.page_bytes = buffers->page_bytes;
		cpu->kernel.stream_id = stream_id(buffers, number);
	}
	cpu->raw_fd = cpu->direct_fd = cpu->raw_flight.fd = -1;
	return cpu;
}

static int session_cpus_open_cpu(struct ky_session *session,
				 const struct ky_session_buffers *buffers, uint32_t number,
				 struct kymo_error *err)
{
	struct ky_session_cpu *cpu = new_cpu(session, buffers, number);
	int ret;

	if (!cpu)
		return ky_error_nomem(err);
	cpu->kernel.online = ky_os_cpu_is_online(number);
	ret = ky_cpu_ring_open(&cpu->kernel.ring, buffers ? &buffers->instance : &session->instance,
			       number, buffers ? buffers->page_bytes : session->kernel.page_bytes,
			       &session->kernel.page_layout, session->options.reader, err);
	if (!ret)
		ret = ky_kernel_cpu_begin(&cpu->kernel, err);
	return ret < 0 ? ret : session_cpus_watch(session, cpu, err);
}

static int compare_cpus(const void *a, const void *b)
{
	const struct ky_session_cpu *x = *(struct ky_session_cpu *const *)a;
	const struct ky_session_cpu *y = *(struct ky_session_cpu *const *)b;

	if (x->kernel.stream_id >> 32 != y->kernel.stream_id >> 32)
		return x->kernel.stream_id < y->kernel.stream_id ? -1 : 1;
	return x->kernel.convert.cpu < y->kernel.convert.cpu
		       ? -1
		       : x->kernel.convert.cpu > y->kernel.convert.cpu;
}

/* The rings of one instance. */
static int open_rings(struct ky_session *session, const struct ky_instance *instance,
		      const struct ky_session_buffers *buffers, struct kymo_error *err)
{
	DIR *dir = ky_dir_open(instance->fd, "per_cpu");
	struct dirent *entry;
	unsigned int cpu;
	int ret = KYMO_OK, len;

	if (!dir) {
		ret = ky_error_errno(err, errno, "cannot list the CPUs");
		ky_error_path(err, instance->path);
		return ret;
	}
	while (!ret && (entry = readdir(dir)))
		if (sscanf(entry->d_name, "cpu%9u%n", &cpu, &len) == 1 && !entry->d_name[len])
			ret = session_cpus_open_cpu(session, buffers, cpu, err);
	closedir(dir);
	return ret;
}

int ky_session_open_cpus(struct ky_session *session, struct kymo_error *err)
{
	const struct ky_instance *instance;
	int ret = KYMO_OK;

	/* Raw pages have blocks of their own. */
	session->kernel.blocks = session->options.raw ? NULL : session->blocks;
	for (size_t i = 0; !ret && (instance = ky_session_instance_at(session, i)); i++)
		ret = open_rings(session, instance, i ? &session->buffers[i - 1] : NULL, err);
	if (!ret && !session->cpus.len)
		ret = ky_error_set(err, KYMO_E_IO, "tracefs lists no CPUs");
	if (session->cpus.len)
		qsort(session->cpus.data, session->cpus.len, sizeof(session->cpus.data[0]),
		      compare_cpus);
	ky_vec_foreach(&session->cpus, it)
		if (!ret && ky_vec_push(&session->kernel.cpus, &(*it)->kernel) < 0)
			ret = ky_error_nomem(err);
	return ret;
}

static void session_close_cpu(struct ky_session_cpu *cpu)
{
	ky_kernel_cpu_fini(&cpu->kernel);
	(void)ky_block_file_close(cpu->raw_file, NULL);
	if (cpu->raw_fd >= 0)
		close(cpu->raw_fd);
	if (cpu->direct_fd >= 0)
		close(cpu->direct_fd);
	if (cpu->raw_flight.fd >= 0)
		close(cpu->raw_flight.fd);
	free(cpu);
}

void ky_session_close_cpus(struct ky_session *session)
{
	ky_vec_foreach(&session->cpus, cpu)
		session_close_cpu(*cpu);
	ky_vec_fini(&session->cpus);
}

int ky_session_read_round(struct ky_session *session, bool final, struct kymo_error *err)
{
	return session->options.raw ? ky_raw_round(session, final, err)
				    : ky_kernel_trace_read_round(&session->kernel, final, err);
}
