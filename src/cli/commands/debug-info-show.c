/* SPDX-License-Identifier: MIT */
#include "cli/commands/debug-info-show.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/foreign.h"
#include "symbols/kdi/kdi.h"
#include "symbols/lookup/symbols.h"

static void put_foreign(struct ky_strbuf *out, const struct ky_strbuf *text)
{
	ky_foreign_adds(out, ky_strbuf_text(text));
}

static void show_function(struct ky_strbuf *out, const struct ky_kdi *kdi,
			  const struct ky_kdi_found *found)
{
	uint32_t signature = ky_kdi_signature(kdi, found->number);
	struct ky_strbuf type = KY_STRBUF_INIT;

	ky_strbuf_addf(out, "%016" PRIx64 " %6" PRIu64 "  ", found->address, found->bytes);
	ky_foreign_adds(out, found->name);
	if (signature) {
		ky_kdi_put_type(kdi, signature, &type);
		ky_strbuf_adds(out, ": ");
		put_foreign(out, &type);
	}
	ky_strbuf_addc(out, '\n');
	ky_strbuf_fini(&type);
}

static void show_member(struct ky_strbuf *out, const struct ky_kdi_view *view,
			const struct ky_kdi_member *member)
{
	struct ky_strbuf type = KY_STRBUF_INIT;

	if (view->kind == KY_KDI_ENUM) {
		ky_strbuf_addf(out, "%20" PRId64 "  ", member->at);
		ky_foreign_adds(out, member->name);
	} else {
		ky_strbuf_addf(out, "%12" PRId64, member->at / 8);
		if (member->bits)
			ky_strbuf_addf(out, ".%" PRId64, member->at % 8);
		ky_strbuf_adds(out, "  ");
		ky_kdi_put_type(view->kdi, member->type, &type);
		put_foreign(out, &type);
		ky_strbuf_addc(out, ' ');
		ky_foreign_adds(out, member->name);
		if (member->bits)
			ky_strbuf_addf(out, " : %" PRIu32, member->bits);
	}
	ky_strbuf_addc(out, '\n');
	ky_strbuf_fini(&type);
}

static void show_type(struct ky_strbuf *out, const struct ky_kdi *kdi, uint32_t number)
{
	struct ky_strbuf type = KY_STRBUF_INIT;
	struct ky_kdi_member member;
	struct ky_kdi_view view;

	if (!ky_kdi_type(kdi, number, &view))
		return;
	ky_kdi_put_type(kdi, number, &type);
	put_foreign(out, &type);
	if (view.kind == KY_KDI_TYPEDEF) {
		ky_strbuf_clear(&type);
		ky_kdi_put_type(kdi, view.target, &type);
		ky_strbuf_adds(out, " = ");
		put_foreign(out, &type);
	}
	ky_strbuf_addf(out, view.bytes ? ": %" PRIu64 " bytes\n" : "\n", view.bytes);
	while (ky_kdi_next_member(&view, &member))
		show_member(out, &view, &member);
	ky_strbuf_fini(&type);
}

static bool debug_info_show_name(struct ky_strbuf *out, const struct ky_kdi *kdi, const char *name)
{
	struct ky_kdi_found found;
	uint32_t n = 0, type = ky_kdi_find_type(kdi, name);

	for (; n < 1000 && ky_kdi_find_name(kdi, name, n, &found); n++)
		show_function(out, kdi, &found);
	if (type)
		show_type(out, kdi, type);
	return n || type;
}

static void show_whole(struct ky_strbuf *out, const struct ky_kdi *kdi)
{
	size_t bytes;
	const uint8_t *id = ky_kdi_build_id(kdi, &bytes);

	ky_strbuf_adds(out, "build id   ");
	for (size_t i = 0; i < bytes; i++)
		ky_strbuf_addf(out, "%02x", id[i]);
	ky_strbuf_addf(out, "%s\nfunctions  %" PRIu32 "\ntypes      %" PRIu32 "\n",
		       bytes ? "" : "none", ky_kdi_functions(kdi), ky_kdi_types(kdi));
	if (ky_kdi_is_kernel(kdi))
		ky_strbuf_adds(
			out, "addresses  from the kernel's _text, or from the module's code on\n");
}

int ky_debug_info_show(struct ky_strbuf *out, const char *path, char **names, int n_names,
		       struct kymo_error *err)
{
	struct ky_kdi *kdi;
	int ret = ky_kdi_open(path, &kdi, err);

	if (ret)
		return ret;
	if (!n_names)
		show_whole(out, kdi);
	for (int i = 0; i < n_names && !ret; i++) {
		if (debug_info_show_name(out, kdi, names[i]))
			continue;
		ret = ky_error_set(err, KYMO_E_NOT_FOUND, "no function and no type '%.100s'",
				   names[i]);
		ky_error_path(err, path);
	}
	ky_kdi_close(kdi);
	return ret;
}

static void debug_info_put_frame(struct ky_strbuf *out, const struct ky_symbols_frame *frames,
				 size_t i)
{
	ky_strbuf_adds(out, i ? " (inlined by) " : " ");
	ky_foreign_adds(out, frames[i].function ? frames[i].function : "??");
	if (frames[i].function && !frames[i].is_inlined)
		ky_strbuf_addf(out, "+0x%" PRIx64, frames[i].offset);
	ky_strbuf_addc(out, ' ');
	ky_foreign_adds(out, frames[i].file ? frames[i].file : "??");
	ky_strbuf_addf(out, ":%" PRIu32, frames[i].line);
}

void ky_debug_info_look(struct ky_strbuf *out, struct ky_symbols *symbols, uint32_t object,
			uint64_t address)
{
	const struct ky_symbols_frame *frames;
	size_t n = ky_symbols_resolve_in(symbols, object, address, &frames);

	ky_strbuf_addf(out, "0x%" PRIx64, address);
	for (size_t i = 0; i < n; i++)
		debug_info_put_frame(out, frames, i);
	ky_strbuf_adds(out, n ? "\n" : " ?? ??:0\n");
}
