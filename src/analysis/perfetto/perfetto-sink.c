/* SPDX-License-Identifier: MIT */
/* The sink of a Perfetto trace: its making and its end. */
#include "analysis/perfetto/perfetto-internal.h"
#include "base/error.h"
#include "os/file.h"

static void free_machine(struct ky_pf_machine *machine)
{
	uint64_t key;
	size_t pos = 0;
	void *cpu;

	while (ky_map_next(&machine->cpus, &pos, &key, &cpu))
		ky_strbuf_fini(&((struct ky_pf_cpu *)cpu)->events);
	ky_map_fini(&machine->cpus);
	ky_map_fini(&machine->users);
	ky_map_fini(&machine->dump);
	for (int i = 0; i < KY_PF_NAME_TABLES; i++)
		ky_names_fini(&machine->names[i]);
}

static void pf_free(struct ky_sink *sink)
{
	struct ky_pf *pf = (struct ky_pf *)sink;

	for (size_t i = 0; i < pf->n_machines; i++)
		free_machine(&pf->machines[i]);
	ky_map_fini(&pf->requests);
	ky_map_fini(&pf->devices);
	ky_vec_fini(&pf->threads);
	ky_values_fini(&pf->values);
	ky_strbuf_fini(&pf->out);
	ky_strbuf_fini(&pf->interned);
	ky_strbuf_fini(&pf->scratch);
	ky_model_free(pf->model);
	ky_arena_fini(&pf->arena);
	free(pf);
}

static const struct ky_sink_ops pf_ops = {
	.batch = ky_pf_batch,
	.finish = ky_pf_finish,
	.free = pf_free,
};

static struct ky_pf_machine *perfetto_sink_find_machine(struct ky_pf *pf, const char *name)
{
	struct ky_pf_machine *machine;

	for (size_t i = 0; i < pf->n_machines; i++) {
		if (strcmp(pf->machines[i].name, name) == 0)
			return &pf->machines[i];
	}
	machine = &pf->machines[pf->n_machines];
	machine->id = (uint32_t)pf->n_machines++;
	machine->name = name;
	return machine;
}

static int add_hosts(struct ky_pf *pf)
{
	size_t n = ky_model_n_hosts(pf->model);

	pf->hosts = ky_arena_array(&pf->arena, n + 1, sizeof(*pf->hosts));
	pf->machines = ky_arena_array(&pf->arena, n + 1, sizeof(*pf->machines));
	pf->stream_tracks = ky_arena_array(&pf->arena, pf->set->streams.len + 1, sizeof(uint64_t));
	if (!pf->hosts || !pf->machines || !pf->stream_tracks)
		return KYMO_E_MEMORY;
	for (size_t i = 0; i < n; i++) {
		const struct ky_host *host = ky_model_host(pf->model, i);
		struct ky_pf_host *own = &pf->hosts[i];

		own->machine = perfetto_sink_find_machine(pf, host->name);
		if (ky_pf_resolve(pf, host, own) < 0)
			return KYMO_E_MEMORY;
		if (!own->machine->kernel || own->is_kernel)
			own->machine->kernel = host->trace->cls;
	}
	return 0;
}

static int perfetto_sink_prepare(struct ky_pf *pf, struct kymo_error *err)
{
	const struct ky_listener listener = {
		.data = pf,
		.call_begin = ky_pf_call_begin,
		.call = ky_pf_call,
	};

	pf->model = ky_model_new(pf->set, err);
	if (!pf->model)
		return KYMO_E_MEMORY;
	if (add_hosts(pf) < 0 || ky_model_listen(pf->model, &listener) < 0)
		return ky_error_nomem(err);
	return ky_pf_read_dumps(pf, err);
}

int ky_perfetto_sink_open(const struct ky_trace_set *set, int fd, struct ky_sink **sink,
			  struct kymo_error *err)
{
	struct ky_pf *pf = calloc(1, sizeof(*pf));
	int ret;

	if (!pf)
		return ky_error_nomem(err);
	pf->sink.ops = &pf_ops;
	pf->fd = fd;
	pf->set = set;
	ky_arena_init(&pf->arena);
	ky_values_init(&pf->values);
	ret = perfetto_sink_prepare(pf, err);
	if (ret < 0)
		pf_free(&pf->sink);
	else
		*sink = &pf->sink;
	return ret;
}
