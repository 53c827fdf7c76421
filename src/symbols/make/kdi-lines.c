/* SPDX-License-Identifier: MIT */
/* Lines and inlined functions of a file's functions (kdi-make.h). */
#include <elfutils/libdw.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/dwarf/dwarf-units.h"
#include "symbols/make/kdi-make.h"

/* A row of a line table; line 0: the code ends there. */
struct row {
	uint64_t address;
	uint32_t file, line, order;
};

KY_VEC_TYPE(rows, struct row);
KY_VEC_TYPE(offsets, Dwarf_Off);

/* ---- units ------------------------------------------------------------------------------ */

/* The first function that ends behind @address. */
static size_t kdi_lines_first_behind(const struct ky_kdi_info *info, uint64_t address)
{
	size_t low = 0, high = info->functions.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct ky_kdi_function *function = &info->functions.data[middle];

		if (function->address + function->bytes <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Has a function that is kept code in [@begin, @end)? */
static bool kdi_lines_has_code(const struct ky_kdi_info *info, uint64_t begin, uint64_t end)
{
	size_t i = kdi_lines_first_behind(info, begin);

	return i < info->functions.len && info->functions.data[i].address < end;
}

/* Has the unit code of a function that is kept? Most units of a large program have none. */
static bool kdi_lines_has_unit(const struct ky_kdi_info *info, Dwarf_Die *cu, uint64_t shift)
{
	Dwarf_Addr base, begin, end;
	ptrdiff_t at = 0;
	bool has_ranges = false;

	while ((at = dwarf_ranges(cu, at, &base, &begin, &end)) > 0) {
		has_ranges = true;
		if (kdi_lines_has_code(info, begin + shift, end + shift))
			return true;
	}
	return !has_ranges;
}

static int scan_units(const struct ky_kdi_info *info, Dwarf *dwarf, uint64_t shift,
		      struct offsets *units)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	int ret = KYMO_OK;

	while (!ret && dwarf_get_units(dwarf, cu, &cu, NULL, NULL, &die, NULL) == 0)
		if (kdi_lines_has_unit(info, &die, shift))
			ret = ky_vec_push(units, dwarf_dieoffset(&die));
	return ret;
}

static int kdi_lines_by_offset(const void *a, const void *b)
{
	const Dwarf_Off *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* By the file's list of the units' addresses, which spares reading all units. False: it lacks a function. */
static bool find_units(const struct ky_kdi_info *info, Dwarf *dwarf, uint64_t shift,
		       struct offsets *units)
{
	Dwarf_Aranges *list;
	size_t n, kept = 0;

	if (dwarf_getaranges(dwarf, &list, &n) != 0 || !n)
		return false;
	ky_vec_foreach(&info->functions, function) {
		Dwarf_Arange *range = dwarf_getarange_addr(list, function->address - shift);
		Dwarf_Off unit;

		if (!range || dwarf_getarangeinfo(range, NULL, NULL, &unit) != 0 ||
		    ky_vec_push(units, unit) < 0)
			return false;
	}
	qsort(units->data, units->len, sizeof(*units->data), kdi_lines_by_offset);
	for (size_t i = 0; i < units->len; i++)
		if (!kept || units->data[kept - 1] != units->data[i])
			units->data[kept++] = units->data[i];
	units->len = kept;
	return true;
}

/* ---- lines ------------------------------------------------------------------------------ */

/* The file of the row before, which most rows have, too. */
struct last_file {
	const char *path;
	uint32_t number;
};

static uint32_t kdi_lines_file(struct ky_kdi_info *info, struct last_file *last, const char *path)
{
	if (path != last->path) {
		last->path = path;
		last->number = ky_kdi_info_file(info, path);
	}
	return last->number;
}

static int add_row(struct ky_kdi_info *info, struct rows *rows, Dwarf_Line *line, uint64_t address,
		   struct last_file *last)
{
	struct row row = {.address = address, .order = (uint32_t)rows->len};
	const char *file = dwarf_linesrc(line, NULL, NULL);
	int number = 0;
	bool is_end = false;

	dwarf_lineendsequence(line, &is_end);
	if (!is_end && file && dwarf_lineno(line, &number) == 0 && number > 0) {
		row.file = kdi_lines_file(info, last, file);
		row.line = (uint32_t)number;
	}
	return row.file == UINT32_MAX ? KYMO_E_MEMORY : ky_vec_push(rows, row);
}

static uint64_t address_of_row(Dwarf_Lines *lines, size_t n, size_t i)
{
	Dwarf_Addr address = 0;

	if (i >= n)
		return UINT64_MAX;
	return dwarf_lineaddr(dwarf_onesrcline(lines, i), &address) == 0 ? address : 0;
}

/* The rows of a unit that reach into functions that are kept. A row reaches up to the next one. */
static int read_unit_rows(struct ky_kdi_info *info, Dwarf_Die *cu, uint64_t shift,
			  struct rows *rows)
{
	struct last_file last = {NULL, 0};
	Dwarf_Lines *lines;
	uint64_t address, next;
	size_t n;
	int ret = KYMO_OK;

	if (dwarf_getsrclines(cu, &lines, &n) != 0)
		return KYMO_OK;
	address = address_of_row(lines, n, 0);
	for (size_t i = 0; !ret && i < n; i++, address = next) {
		next = address_of_row(lines, n, i + 1);
		if (address && kdi_lines_has_code(info, address + shift,
						  next == UINT64_MAX ? UINT64_MAX : next + shift))
			ret = add_row(info, rows, dwarf_onesrcline(lines, i), address + shift,
				      &last);
	}
	return ret;
}

static int read_rows(struct ky_kdi_info *info, Dwarf *dwarf, uint64_t shift,
		     const struct offsets *units, struct rows *rows)
{
	Dwarf_Die cu;
	int ret = KYMO_OK;

	for (size_t i = 0; !ret && i < units->len; i++)
		if (dwarf_offdie(dwarf, units->data[i], &cu))
			ret = read_unit_rows(info, &cu, shift, rows);
	return ret;
}

/* An end comes before what begins at the same address. */
static int kdi_lines_by_address(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	if (!x->line != !y->line)
		return x->line ? 1 : -1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* The lines of a function: @i is the first row that is not before it. */
static int set_lines(struct ky_kdi_info *info, struct ky_kdi_function *function,
		     const struct rows *rows, size_t i)
{
	uint64_t end = function->address + function->bytes;
	struct ky_kdi_line last = {0};
	int ret = KYMO_OK;

	function->first_line = (uint32_t)info->lines.len;
	if (i && (i == rows->len || rows->data[i].address > function->address) &&
	    rows->data[i - 1].line)
		i--;
	for (; !ret && i < rows->len && rows->data[i].address < end; i++) {
		const struct row *row = &rows->data[i];
		struct ky_kdi_line line = {.address = row->address < function->address
							      ? function->address
							      : row->address,
					   .file = row->file,
					   .line = row->line};
		bool is_last = i + 1 == rows->len || rows->data[i + 1].address != row->address;

		if (!row->line || !is_last || (line.file == last.file && line.line == last.line))
			continue;
		ret = ky_vec_push(&info->lines, line);
		last = line;
	}
	function->n_lines = (uint32_t)info->lines.len - function->first_line;
	return ret;
}

static int add_lines(struct ky_kdi_info *info, const struct rows *rows)
{
	size_t at = 0;
	int ret = KYMO_OK;

	ky_vec_foreach(&info->functions, function) {
		while (at < rows->len && rows->data[at].address < function->address)
			at++;
		if (!ret)
			ret = set_lines(info, function, rows, at);
	}
	return ret;
}

/* ---- inlined functions ------------------------------------------------------------------ */

struct place {
	uint32_t function, order;
	struct ky_kdi_inlined inlined;
};

struct places {
	struct ky_kdi_info *info;
	uint64_t shift;
	KY_VEC(struct place) list;
};

/* The last function that begins at or before @address, if it reaches up to there. */
static size_t function_at(const struct ky_kdi_info *info, uint64_t address)
{
	size_t low = 0, high = info->functions.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (info->functions.data[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low ||
	    address - info->functions.data[low - 1].address >= info->functions.data[low - 1].bytes)
		return SIZE_MAX;
	return low - 1;
}

static bool kdi_lines_wants(void *data, uint64_t begin, uint64_t end)
{
	const struct places *places = data;

	return kdi_lines_has_code(places->info, begin + places->shift, end + places->shift);
}

static int kdi_lines_take_place(void *data, const struct ky_dwarf_inlined *found)
{
	struct places *places = data;
	size_t function = function_at(places->info, found->begin + places->shift);
	struct ky_kdi_inlined inlined = {
		.begin = found->begin + places->shift,
		.end = found->end + places->shift,
		.depth = found->depth,
		.line = found->line,
	};

	if (function == SIZE_MAX)
		return KYMO_OK;
	inlined.name = ky_kdi_info_text(places->info, found->name);
	inlined.file = ky_kdi_info_file(places->info, found->file ? found->file : "");
	if (!inlined.name || inlined.file == UINT32_MAX)
		return KYMO_E_MEMORY;
	return ky_vec_push(&places->list,
			   (struct place){(uint32_t)function, (uint32_t)places->list.len, inlined});
}

static int by_function(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->function != y->function)
		return x->function < y->function ? -1 : 1;
	return x->order < y->order ? -1 : 1;
}

static int add_inlined(struct places *places)
{
	struct ky_kdi_info *info = places->info;

	if (places->list.len)
		qsort(places->list.data, places->list.len, sizeof(*places->list.data), by_function);
	ky_vec_foreach(&places->list, place) {
		struct ky_kdi_function *function = &info->functions.data[place->function];

		if (!function->n_inlined)
			function->first_inlined = (uint32_t)info->inlined.len;
		function->n_inlined++;
		if (ky_vec_push(&info->inlined, place->inlined) < 0)
			return KYMO_E_MEMORY;
	}
	return KYMO_OK;
}

static int kdi_lines_read_inlined(struct ky_kdi_info *info, Dwarf *dwarf, uint64_t shift,
				  const struct offsets *units)
{
	struct places places = {.info = info, .shift = shift};
	int ret = KYMO_OK;

	for (size_t i = 0; !ret && i < units->len; i++)
		ret = ky_dwarf_unit_inlined(dwarf, units->data[i], kdi_lines_wants,
					    kdi_lines_take_place, &places);
	if (!ret)
		ret = add_inlined(&places);
	ky_vec_fini(&places.list);
	return ret;
}

static int read_units(struct ky_kdi_info *info, Dwarf *dwarf, uint64_t shift,
		      const struct offsets *units)
{
	struct rows rows = KY_VEC_INIT;
	int ret = read_rows(info, dwarf, shift, units, &rows);

	if (rows.len)
		qsort(rows.data, rows.len, sizeof(*rows.data), kdi_lines_by_address);
	if (!ret)
		ret = add_lines(info, &rows);
	ky_vec_fini(&rows);
	return ret ? ret : kdi_lines_read_inlined(info, dwarf, shift, units);
}

int ky_kdi_read_lines(struct ky_kdi_info *info, struct ky_object *object)
{
	GElf_Addr dwarf_bias = 0;
	Dwarf *dwarf = info->functions.len
			       ? ky_debug_file_dwarf(object->module, &object->alt, &dwarf_bias)
			       : NULL;
	struct ky_elf_guards guards = {0};
	struct offsets units = KY_VEC_INIT;
	uint64_t shift = dwarf_bias - object->bias;
	int ret = KYMO_OK;

	if (!dwarf)
		return KYMO_OK;
	ky_dwarf_guard(object->module, dwarf, &guards);
	if (!find_units(info, dwarf, shift, &units)) {
		units.len = 0;
		ret = scan_units(info, dwarf, shift, &units);
	}
	if (!ret)
		ret = read_units(info, dwarf, shift, &units);
	ky_vec_fini(&units);
	ky_elf_guards_fini(&guards);
	return ret;
}
