/* SPDX-License-Identifier: MIT */
/* The state model: what it holds, for reports. */
#include "analysis/state/model-internal.h"

unsigned int ky_model_abilities(const struct ky_model *model)
{
	unsigned int abilities = 0;

	ky_vec_foreach(&model->hosts, host)
		abilities |= (*host)->abilities;
	return abilities;
}

int64_t ky_model_begin_ns(const struct ky_model *model)
{
	return model->begin_ns;
}

int64_t ky_model_end_ns(const struct ky_model *model)
{
	return model->end_ns;
}

uint64_t ky_model_n_events(const struct ky_model *model)
{
	return model->n_events;
}

const struct ky_trace_set *ky_model_traces(const struct ky_model *model)
{
	return model->set;
}

size_t ky_model_n_hosts(const struct ky_model *model)
{
	return model->hosts.len;
}

const struct ky_host *ky_model_host(const struct ky_model *model, size_t index)
{
	return model->hosts.data[index];
}

struct ky_waits_known ky_model_waits(const struct ky_model *model)
{
	return model->waits;
}

size_t ky_model_n_cpus(const struct ky_model *model)
{
	return model->cpus.len;
}

const struct ky_cpu *ky_model_cpu(const struct ky_model *model, size_t index)
{
	return model->cpus.data[index];
}

size_t ky_model_n_threads(const struct ky_model *model)
{
	return model->threads.len;
}

struct ky_thread *ky_model_thread(const struct ky_model *model, size_t index)
{
	return model->threads.data[index];
}

size_t ky_model_n_syscalls(const struct ky_model *model)
{
	return model->syscalls.len;
}

size_t ky_model_n_irq_lines(const struct ky_model *model)
{
	return model->lines.len;
}

const struct ky_irq_line *ky_model_irq_line(const struct ky_model *model, size_t index)
{
	return model->lines.data[index];
}

size_t ky_model_n_files(const struct ky_model *model)
{
	return model->files.len;
}

const struct ky_file *ky_model_file(const struct ky_model *model, size_t index)
{
	return model->files.data[index];
}

size_t ky_model_n_disks(const struct ky_model *model)
{
	return model->disks.len;
}

const struct ky_disk *ky_model_disk(const struct ky_model *model, size_t index)
{
	return model->disks.data[index];
}

size_t ky_model_n_netifs(const struct ky_model *model)
{
	return model->netifs.len;
}

const struct ky_netif *ky_model_netif(const struct ky_model *model, size_t index)
{
	return model->netifs.data[index];
}

const char *ky_model_syscall_name(const struct ky_model *model, uint32_t syscall)
{
	return syscall < model->syscalls.len ? model->syscalls.data[syscall] : "?";
}
