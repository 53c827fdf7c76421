/* SPDX-License-Identifier: MIT */
/* A sink that makes a tree of call stacks of the samples that it gets, as report flame does, and writes that at the end. */
#include <stdlib.h>

#include "analysis/export/stacks.h"
#include "analysis/calls/flame.h"
#include "base/error.h"
#include "os/file.h"

struct stacks_sink {
	struct ky_sink sink;
	int fd;
	const struct ky_trace_set *set;
	enum ky_stacks_form form;
	struct ky_model *model;
	struct ky_flame *flame;
	struct ky_report_options options;
};

static int stacks_sink_batch(struct ky_sink *sink, const struct ky_batch *batch,
			     struct kymo_error *err)
{
	struct stacks_sink *stacks = (struct stacks_sink *)sink;
	int ret = ky_model_feed(stacks->model, batch, err);

	return ret < 0 ? ret : KYMO_OK;
}

static int stacks_sink_write(struct stacks_sink *stacks, const struct ky_stack_tree *tree,
			     struct kymo_error *err)
{
	struct ky_strbuf out = KY_STRBUF_INIT;
	const char *name = stacks->set->traces.len ? stacks->set->traces.data[0]->path : "";
	int ret = ky_stacks_export(&out, tree, name, stacks->form, err);

	if (ret == KYMO_OK)
		ret = ky_write_all(stacks->fd, out.data, out.len);
	if (ret < 0 && ret > -4096 && !ky_strbuf_failed(&out))
		ret = ky_error_errno(err, -ret, "cannot write the stacks");
	ky_strbuf_fini(&out);
	return ret;
}

static int stacks_sink_finish(struct ky_sink *sink, struct kymo_error *err)
{
	struct stacks_sink *stacks = (struct stacks_sink *)sink;
	struct ky_stack_tree *tree;
	int ret = ky_model_end(stacks->model, err);

	if (ret < 0)
		return ret;
	if (!ky_flame_n_stacks(stacks->flame)) {
		ky_error_set(err, KYMO_E_UNSUPPORTED,
			     "no event of the trace is a sample with a "
			     "call stack");
		ky_error_hint(err, "record samples; report flame has the stacks of other "
				   "events");
		return KYMO_E_UNSUPPORTED;
	}
	tree = ky_flame_take(stacks->flame);
	if (!tree)
		return ky_error_nomem(err);
	ret = stacks_sink_write(stacks, tree, err);
	ky_stack_tree_fini(tree);
	free(tree);
	return ret;
}

static void stacks_sink_free(struct ky_sink *sink)
{
	struct stacks_sink *stacks = (struct stacks_sink *)sink;

	ky_flame_free(stacks->flame);
	ky_model_free(stacks->model);
	ky_report_options_fini(&stacks->options);
	free(stacks);
}

static const struct ky_sink_ops stacks_sink_ops = {
	.batch = stacks_sink_batch,
	.finish = stacks_sink_finish,
	.free = stacks_sink_free,
};

int ky_stacks_sink_open(const struct ky_trace_set *set, int fd, enum ky_stacks_form form,
			const char *const *symbol_dirs, size_t n_symbol_dirs, struct ky_sink **sink,
			struct kymo_error *err)
{
	struct stacks_sink *stacks = calloc(1, sizeof(*stacks));

	if (!stacks)
		return ky_error_nomem(err);
	stacks->sink.ops = &stacks_sink_ops;
	stacks->fd = fd;
	stacks->set = set;
	stacks->form = form;
	ky_report_options_init(&stacks->options);
	stacks->options.symbol_dirs = symbol_dirs;
	stacks->options.n_symbol_dirs = n_symbol_dirs;
	stacks->model = ky_model_new(set, err);
	if (stacks->model)
		stacks->flame = ky_flame_begin(stacks->model, &stacks->options);
	if (!stacks->flame) {
		stacks_sink_free(&stacks->sink);
		return ky_error_nomem(err);
	}
	*sink = &stacks->sink;
	return KYMO_OK;
}
