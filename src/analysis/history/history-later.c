/* SPDX-License-Identifier: MIT */
/*
 * The state history: functions that had no name when the index was built, and have symbols by now. The index has their files and addresses, so this
 * needs no pass over the traces.
 */
#include "analysis/addresses/trace-symbols.h"
#include "analysis/history/history-internal.h"
#include "base/error.h"
#include "base/foreign.h"

static int history_later_put(struct ky_history *history, const struct ky_unnamed *one,
			     const char *function)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	const char *name;

	ky_foreign_adds(&text, function);
	name = ky_strbuf_failed(&text) ? NULL
				       : ky_arena_strdup(&history->arena, ky_strbuf_text(&text));
	ky_strbuf_fini(&text);
	if (!name)
		return KYMO_E_MEMORY;
	history->names.data[one->name] = name;
	return KYMO_OK;
}

static int history_later_name(struct ky_history *history, struct ky_symbols *symbols)
{
	int status = KYMO_OK;

	ky_vec_foreach(&history->unnamed, one) {
		const struct ky_unnamed_object *object = &history->objects.data[one->object];
		uint32_t number = ky_symbols_object(symbols, object->path, object->build_id,
						    object->build_id_bytes, -1);
		const struct ky_symbols_frame *frames;
		size_t n = number == KY_SYMBOLS_NO_OBJECT
				   ? 0
				   : ky_symbols_resolve_in(symbols, number, one->address, &frames);

		if (n && frames[n - 1].function)
			status = history_later_put(history, one, frames[n - 1].function);
		if (status < 0)
			break;
	}
	return status;
}

int ky_history_name_functions(struct ky_history *history, const struct ky_trace_set *set,
			      struct kymo_error *err)
{
	const struct ky_trace_symbols_options options = {.is_live = true};
	struct ky_trace_symbols *symbols;
	struct kymo_error ignored;
	int status;

	if (!history->unnamed.len || ky_trace_symbols_open(set, &options, &symbols, &ignored) < 0)
		return KYMO_OK;
	status = history_later_name(history, ky_trace_symbols_all(symbols));
	ky_trace_symbols_close(symbols);
	return status < 0 ? ky_error_nomem(err) : KYMO_OK;
}
