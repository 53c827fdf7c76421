/* SPDX-License-Identifier: MIT */
#include "analysis/scheduling/kernel-names.h"

#include <inttypes.h>
#include <pthread.h>

#include "analysis/addresses/trace-symbols.h"

/* Reports finish at the same time. */
static pthread_mutex_t kernel_names_turn = PTHREAD_MUTEX_INITIALIZER;

static void kernel_names_put(struct ky_table *table, struct ky_cell *cell,
			     struct ky_trace_symbols *symbols, uint64_t address)
{
	const struct ky_symbols_query query = {
		.pid = -1, .address = address, .time_ns = UINT64_MAX};
	const struct ky_symbols_frame *frames;
	size_t n = ky_symbols_resolve(ky_trace_symbols_all(symbols), &query, &frames);
	struct ky_strbuf text = KY_STRBUF_INIT;

	if (!n || !frames[n - 1].function)
		return;
	ky_strbuf_adds(&text, frames[n - 1].function);
	if (frames[n - 1].offset)
		ky_strbuf_addf(&text, "+0x%" PRIx64, frames[n - 1].offset);
	ky_cell_text(table, cell, ky_strbuf_text(&text));
	table->failed |= ky_strbuf_failed(&text);
	ky_strbuf_fini(&text);
}

void ky_cell_kernel_function(struct ky_table *table, struct ky_cell *cell, struct ky_model *model,
			     uint64_t address)
{
	const struct ky_trace_symbols_options options = {.n_dirs = 0};
	struct ky_trace_symbols **symbols = ky_model_symbols(model);
	struct kymo_error err;

	/* The kernel has the upper half of the addresses. */
	if (address >> 63 == 0)
		return;
	pthread_mutex_lock(&kernel_names_turn);
	if (!*symbols && ky_trace_symbols_open(ky_model_traces(model), &options, symbols, &err) < 0)
		*symbols = NULL;
	if (*symbols)
		kernel_names_put(table, cell, *symbols, address);
	pthread_mutex_unlock(&kernel_names_turn);
}
