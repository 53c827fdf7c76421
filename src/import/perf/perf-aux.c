/* SPDX-License-Identifier: MIT */
/* What tracing hardware has written (AUX data of perf: Intel PT, CoreSight, SPE), as events with its bytes. */
#include <string.h>

#include "base/error.h"
#include "import/perf/import-perf.h"

#define PIECE_BYTES 4096u

static const char *perf_aux_kind(uint32_t kind)
{
	static const char *const kinds[] = {"",	       "intel_pt",    "intel_bts", "cs_etm",
					    "arm_spe", "s390_cpumsf", "hisi_ptt"};

	return kind < sizeof(kinds) / sizeof(kinds[0]) ? kinds[kind] : "";
}

static void perf_aux_begin(struct ky_import_perf_trace *trace, enum ky_import_perf_event event,
			   const struct ky_perf_aux *aux, uint64_t ns)
{
	ky_maker_begin(trace->maker, aux->cpu < KY_FOREIGN_CPUS_MAX ? aux->cpu : 0,
		       trace->events[event], ns);
	ky_maker_number(trace->maker, aux->tid);
	ky_maker_number(trace->maker, aux->tid);
	ky_maker_text(trace->maker, "", 0);
	ky_maker_numbers(trace->maker, NULL, 0);
	ky_maker_numbers(trace->maker, NULL, 0);
}

static int perf_aux_data(struct ky_import_perf_trace *trace, struct ky_perf_file *perf,
			 const struct ky_perf_aux *aux, uint64_t ns, struct kymo_error *err)
{
	uint64_t piece;
	int ret = KYMO_OK;

	for (uint64_t done = 0; done < aux->bytes && !ret; done += piece) {
		const uint8_t *bytes;

		piece = aux->bytes - done < PIECE_BYTES ? aux->bytes - done : PIECE_BYTES;
		bytes = ky_foreign_bytes(&perf->file, aux->at + done, piece, "AUX data", err);
		if (!bytes)
			return err && err->code ? err->code : KYMO_E_IO;
		perf_aux_begin(trace, KY_IMPORT_PERF_AUXTRACE_DATA, aux, ns);
		ky_maker_number(trace->maker, aux->index);
		ky_maker_number(trace->maker, aux->offset + done);
		ky_maker_bytes(trace->maker, bytes, piece);
		ret = ky_maker_commit(trace->maker, err);
	}
	return ret;
}

int ky_import_perf_aux(struct ky_import_perf_trace *trace, struct ky_perf_file *perf, uint64_t ns,
		       struct kymo_error *err)
{
	const char *kind = perf_aux_kind(perf->aux_kind);
	int ret = KYMO_OK;

	ky_vec_foreach(&perf->aux, aux) {
		if (ret < 0)
			break;
		perf_aux_begin(trace, KY_IMPORT_PERF_AUXTRACE, aux, ns);
		ky_maker_text(trace->maker, kind, strlen(kind));
		ky_maker_number(trace->maker, aux->index);
		ky_maker_number(trace->maker, aux->offset);
		ky_maker_number(trace->maker, aux->bytes);
		ky_maker_number(trace->maker, aux->reference);
		ret = ky_maker_commit(trace->maker, err);
		if (!ret)
			ret = perf_aux_data(trace, perf, aux, ns, err);
	}
	return ret;
}
