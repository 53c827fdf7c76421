/* SPDX-License-Identifier: MIT */
#include "symbols/tables/kernel-table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "os/file.h"

#define KALLSYMS_MAX_BYTES (256u << 20)
#define MODULES_MAX	   65536u

/* The group of module @name, which is the last one for most symbols; 0 where memory is out. */
static uint32_t module_group(struct ky_kernel_table *kernel, const char *name, size_t len)
{
	char *copy;

	for (size_t i = kernel->modules.len; i-- > 0;)
		if (strncmp(kernel->modules.data[i], name, len) == 0 &&
		    !kernel->modules.data[i][len])
			return (uint32_t)i + 1;
	copy = kernel->modules.len < MODULES_MAX ? strndup(name, len) : NULL;
	if (!copy || ky_vec_push(&kernel->modules, copy) < 0) {
		free(copy);
		return 0;
	}
	return (uint32_t)kernel->modules.len;
}

static enum ky_symbol_kind kernel_table_kind_of(char letter)
{
	switch (letter) {
	case 'T':
		return KY_SYMBOL_GLOBAL;
	case 't':
		return KY_SYMBOL_LOCAL;
	case 'w':
	case 'W':
		return KY_SYMBOL_WEAK;
	default:
		return KY_SYMBOL_END;
	}
}

/* "ffffffff81000000 T _stext", with a tab and "[module]" for those of modules. */
static int kernel_table_add_line(struct ky_kernel_table *kernel, const char *line, size_t len)
{
	struct ky_symbol symbol = {0};
	const char *name, *end = line + len, *module;
	size_t digits = 0;

	for (; digits < len && digits < 16; digits++) {
		char c = line[digits];
		uint64_t digit =
			c >= '0' && c <= '9' ? (uint64_t)(c - '0') : (uint64_t)(c - 'a' + 10);

		if (digit > 15)
			break;
		symbol.address = symbol.address << 4 | digit;
	}
	/* Variables of CPUs count from 0. */
	if (len < digits + 4 || line[digits] != ' ' || line[digits + 2] != ' ' ||
	    symbol.address < 4096 || line[digits + 1] == 'a' || line[digits + 1] == 'A')
		return KYMO_OK;
	symbol.kind = kernel_table_kind_of(line[digits + 1]);
	name = line + digits + 3;
	module = memchr(name, '\t', (size_t)(end - name));
	if (module && module + 2 < end)
		symbol.group = module_group(kernel, module + 1, (size_t)(end - module - 1));
	if (!module && ((len == digits + 8 && memcmp(name, "_text", 5) == 0) ||
			(len == digits + 9 && memcmp(name, "_stext", 6) == 0 && !kernel->text)))
		kernel->text = symbol.address;
	if (len == digits + 9 && memcmp(name, "_etext", 6) == 0)
		symbol.kind = KY_SYMBOL_END;
	return ky_symbol_table_add(&kernel->table, &symbol, name,
				   (size_t)((module ? module : end) - name));
}

static const char *problem_of(int error)
{
	if (error == -EACCES || error == -EPERM)
		return "the kernel's symbols are not readable for this user";
	return error == -ENOENT ? "the kernel has no list of its symbols"
				: "the list of the kernel's symbols cannot be read";
}

int ky_kernel_table_read(struct ky_kernel_table *kernel, const char *path)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	int error = ky_read_file(AT_FDCWD, path, KALLSYMS_MAX_BYTES, &text), ret = KYMO_OK;
	const char *at = ky_strbuf_text(&text), *end = at + text.len;

	kernel->table.keeps_first = true;
	if (error && error != -EFBIG)
		kernel->problem = problem_of(error);
	while (at < end && !ret) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));

		stop = stop ? stop : end;
		ret = kernel_table_add_line(kernel, at, (size_t)(stop - at));
		at = stop + 1;
	}
	if (!kernel->problem && !kernel->table.symbols.len)
		kernel->problem = "sysctl kernel.kptr_restrict hides the kernel's addresses";
	ky_strbuf_fini(&text);
	ky_symbol_table_finish(&kernel->table);
	return ret == KYMO_E_LIMIT ? KYMO_OK : ret;
}

void ky_kernel_table_fini(struct ky_kernel_table *kernel)
{
	ky_symbol_table_fini(&kernel->table);
	ky_vec_foreach(&kernel->modules, module)
		free(*module);
	ky_vec_fini(&kernel->modules);
}

const char *ky_kernel_table_module(const struct ky_kernel_table *kernel,
				   const struct ky_symbol *symbol)
{
	return symbol->group ? kernel->modules.data[symbol->group - 1] : "[kernel]";
}
