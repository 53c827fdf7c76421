/* SPDX-License-Identifier: MIT */
#include "symbols/make/kdi-make.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "symbols/tables/kernel-table.h"
#include "symbols/dwarf/libdw.h"
#include "symbols/make/kdi-module.h"

#define FUNCTION_BYTES_MAX (64u << 20) /* of one whose size only the next symbol tells */

static int kdi_make_add(struct ky_kdi_info *info, const char *name, uint64_t address,
			uint64_t bytes)
{
	struct ky_kdi_function function = {.address = address, .bytes = bytes};

	function.name = ky_kdi_info_text(info, name);
	return function.name ? ky_vec_push(&info->functions, function) : KYMO_E_MEMORY;
}

/* ---- a file ----------------------------------------------------------------------------- */

/* A function without a size reaches up to the next one. */
static uint64_t kdi_make_size_of(const struct ky_symbol_table *table, size_t i)
{
	const struct ky_symbol *symbol = &table->symbols.data[i];
	uint64_t bytes = symbol->bytes;

	if (!bytes && i + 1 < table->symbols.len)
		bytes = symbol[1].address - symbol->address;
	return symbol->bytes || bytes < FUNCTION_BYTES_MAX ? bytes : 0;
}

/* Their names are the object's, until the functions that are kept get copies. The table is in the order of addresses. */
static int add_functions(struct ky_kdi_info *info, const struct ky_object *object)
{
	const struct ky_symbol_table *table = &object->table;
	int ret = KYMO_OK;

	for (size_t i = 0; !ret && i < table->symbols.len; i++)
		ret = ky_vec_push(&info->functions,
				  (struct ky_kdi_function){
					  .name = ky_symbol_name(table, &table->symbols.data[i]),
					  .address = table->symbols.data[i].address,
					  .bytes = kdi_make_size_of(table, i),
				  });
	return ret;
}

static int kdi_make_copy_names(struct ky_kdi_info *info)
{
	ky_vec_foreach(&info->functions, function) {
		function->name = ky_kdi_info_text(info, function->name);
		if (!function->name)
			return KYMO_E_MEMORY;
	}
	return KYMO_OK;
}

/* Between a kernel's functions lie only bytes for alignment. A size that is rounded up takes less room in the file. */
static void kdi_make_close_gaps(struct ky_kdi_info *info)
{
	for (size_t i = 0; i + 1 < info->functions.len; i++) {
		struct ky_kdi_function *function = &info->functions.data[i];
		uint64_t reach = function[1].address - function->address;

		if (reach >= function->bytes && reach - function->bytes < 64)
			function->bytes = reach;
	}
}

static void keep_wanted(struct ky_kdi_info *info, const struct ky_kdi_options *options)
{
	size_t kept = 0;

	if (!options->wants)
		return;
	ky_vec_foreach(&info->functions, function)
		if (options->wants(options->data, function->address,
				   function->address + function->bytes))
			info->functions.data[kept++] = *function;
	info->functions.len = kept;
}

static int add_identity(struct ky_kdi_info *info, const struct ky_object *object)
{
	const unsigned char *id;
	GElf_Addr address;
	int bytes = dwfl_module_build_id(object->module, &id, &address), ret = KYMO_OK;

	if (bytes > 0 && bytes <= KY_ELF_BUILD_ID_MAX) {
		memcpy(info->build_id, id, (size_t)bytes);
		info->build_id_bytes = (uint32_t)bytes;
	}
	ky_vec_foreach(&object->segments, segment)
		if (!ret)
			ret = ky_vec_push(&info->segments,
					  (struct ky_kdi_segment){segment->offset, segment->address,
								  segment->file_bytes});
	return ret;
}

/* A kernel's image: its addresses count from _text, because the kernel is loaded elsewhere at each boot. */
static void move_kernel(struct ky_kdi_info *info, uint64_t text)
{
	info->is_kernel = true;
	ky_vec_foreach(&info->functions, function)
		function->address -= text;
	ky_vec_foreach(&info->lines, line)
		line->address -= text;
	ky_vec_foreach(&info->inlined, inlined) {
		inlined->begin -= text;
		inlined->end -= text;
	}
}

static bool kdi_make_is_kernel(const struct ky_kdi_info *info, const struct ky_object *object)
{
	if (!object->kernel_text)
		return false;
	ky_vec_foreach(&info->functions, function)
		if (!strcmp(function->name, "start_kernel"))
			return true;
	return false;
}

static int make_object(struct ky_kdi_info *info, struct ky_object *object,
		       const struct ky_kdi_options *options)
{
	GElf_Addr bias = 0;
	Dwarf *dwarf = options->want_types
			       ? ky_debug_file_dwarf(object->module, &object->alt, &bias)
			       : NULL;
	int ret = add_identity(info, object);
	bool is_kernel, is_module = ky_kdi_is_module(object);

	info->is_signatures_only = options->no_members;
	if (!ret)
		ret = add_functions(info, object);
	is_kernel = kdi_make_is_kernel(info, object);
	if (is_kernel)
		kdi_make_close_gaps(info);
	if (!ret && is_module)
		ret = ky_kdi_module_keep(info, object);
	keep_wanted(info, options);
	if (!ret)
		ret = kdi_make_copy_names(info);
	if (!ret && dwarf)
		ret = ky_kdi_read_dwarf(info, dwarf, bias - object->bias);
	if (!ret && options->want_lines)
		ret = ky_kdi_read_lines(info, object);
	if (!ret && is_kernel)
		move_kernel(info, object->kernel_text);
	if (!ret && is_module)
		ret = ky_kdi_module_move(info, object);
	return ret;
}

int ky_kdi_make_object(struct ky_kdi_info *info, struct ky_object *object,
		       const struct ky_object_search *search, const struct ky_kdi_options *options,
		       struct kymo_error *err)
{
	int ret = ky_libdw_load(err);

	if (ret < 0)
		return ret;
	if (!ky_object_load(object, search) || !ky_object_open(object, search)) {
		ret = ky_error_set(err, KYMO_E_NOT_FOUND,
				   "there is no such program, library or kernel");
		ky_error_path(err, object->path);
		return ret;
	}
	ret = make_object(info, object, options);
	return ret == KYMO_E_MEMORY ? ky_error_nomem(err) : ret;
}

/* ---- a running kernel ------------------------------------------------------------------- */

static bool kdi_make_is_of(const struct ky_kernel_table *table, const struct ky_symbol *symbol,
			   const char *module)
{
	const char *name = ky_kernel_table_module(table, symbol);
	size_t len = module ? strlen(module) : 0;

	if (!module)
		return symbol->group == 0;
	return name[0] == '[' && strncmp(name + 1, module, len) == 0 &&
	       strcmp(name + 1 + len, "]") == 0;
}

/* In the kernel's list everything has an end where the next symbol begins, also of data. */
static int add_kernel_functions(struct ky_kdi_info *info, const struct ky_kernel_table *table,
				const char *module)
{
	const struct ky_symbol *symbols = table->table.symbols.data;
	size_t n = table->table.symbols.len;
	uint64_t base = module ? 0 : table->text;

	for (size_t i = 0; i < n; i++) {
		const char *name = ky_symbol_name(&table->table, &symbols[i]);
		uint64_t bytes = i + 1 < n ? symbols[i + 1].address - symbols[i].address : 0;

		if (!kdi_make_is_of(table, &symbols[i], module))
			continue;
		if (!base)
			base = symbols[i].address;
		/* The compiler puts code for indirect calls before a function; that code is no function. */
		if (symbols[i].kind == KY_SYMBOL_END || symbols[i].address < base || !base ||
		    strncmp(name, "__pfx_", 6) == 0)
			continue;
		if (kdi_make_add(info, name, symbols[i].address - base,
				 bytes < FUNCTION_BYTES_MAX ? bytes : 0) < 0)
			return KYMO_E_MEMORY;
	}
	return KYMO_OK;
}

int ky_kdi_make_kernel(struct ky_kdi_info *info, const struct ky_kdi_kernel *kernel,
		       struct kymo_error *err)
{
	struct ky_kernel_table table = {0};
	int ret = ky_kernel_table_read(&table, kernel->kallsyms);

	info->is_kernel = true;
	info->is_signatures_only = kernel->no_members;
	if (!ret)
		ret = add_kernel_functions(info, &table, kernel->module);
	if (!ret && !info->functions.len)
		ret = ky_error_set(err, KYMO_E_NOT_FOUND, "%s",
				   table.problem ? table.problem
						 : "the kernel has no module of this name");
	else if (!ret && kernel->btf)
		ret = ky_kdi_read_btf(info, kernel->btf, kernel->btf_bytes, kernel->base,
				      kernel->base_bytes);
	ky_kernel_table_fini(&table);
	if (ret == KYMO_E_FORMAT)
		return ky_error_set(err, ret, "malformed BTF");
	return ret == KYMO_E_MEMORY ? ky_error_nomem(err) : ret;
}
