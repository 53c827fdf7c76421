/* SPDX-License-Identifier: MIT */
/* Symbols of a file that probes are for (probe-file.h). */
#include "kernel/probe/probe-file.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kernel/probe/probe-name.h"
#include "symbols/demangle/demangle.h"

/* "setjmp@@GLIBC_2.2.5" is called setjmp. */
static bool is_called(const char *symbol, const char *name, size_t len)
{
	return strncmp(symbol, name, len) == 0 && (symbol[len] == '\0' || symbol[len] == '@');
}

/* A static function that is seen by other units since they are compiled as one has a number behind its name. */
static bool is_function(const char *symbol, const char *name, size_t len)
{
	static const char *const kinds[] = {".lto_priv.", ".llvm."};
	const char *rest = symbol + len;

	if (is_called(symbol, name, len))
		return true;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strncmp(symbol, name, len) == 0 &&
		    strncmp(rest, kinds[i], strlen(kinds[i])) == 0)
			return rest[strlen(kinds[i]) +
				    strspn(rest + strlen(kinds[i]), "0123456789")] == '\0';
	return false;
}

/* What compilers make of a static function whose callers they all know. */
static bool is_clone_of(const char *symbol, const char *name, size_t len)
{
	static const char *const kinds[] = {".isra.", ".constprop.", ".lto_priv."};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strncmp(symbol, name, len) == 0 &&
		    strncmp(symbol + len, kinds[i], strlen(kinds[i])) == 0)
			return !ky_probe_name_is_piece(symbol + len);
	return false;
}

static bool is_defined(const GElf_Sym *symbol)
{
	return symbol->st_shndx != SHN_UNDEF && symbol->st_value;
}

/* Symbol @i; NULL: it has no name, or is another file's. */
static const char *symbol_at(const struct ky_probe_file *file, int i, GElf_Sym *symbol)
{
	GElf_Addr value;
	const char *name =
		dwfl_module_getsym_info(file->module, i, symbol, &value, NULL, NULL, NULL);

	return name && is_defined(symbol) ? name : NULL;
}

static int add_address(struct ky_probe_addresses *addresses, uint64_t address)
{
	ky_vec_foreach(addresses, at)
		if (*at == address)
			return KYMO_OK;
	return ky_vec_push(addresses, address);
}

/* Of a function whose beginning is inlined everywhere, what is left of it. */
static bool suggest_part(const struct ky_probe_file *file, const char *function,
			 struct kymo_error *err)
{
	struct ky_probe_addresses none = KY_VEC_INIT;
	struct ky_probe_symbols parts = KY_VEC_INIT;
	bool is = ky_probe_file_clones(file, function, &none, &parts) == 0 && parts.len;

	if (is)
		ky_error_hint(
			err,
			"the compiler has put its beginning into its callers; the rest, which "
			"not each call comes to, is '%.150s'",
			parts.data[0].name);
	ky_vec_fini(&parts);
	return is;
}

static void suggest(const struct ky_probe_file *file, const char *function, struct kymo_error *err)
{
	int n = dwfl_module_getsymtab(file->module);
	size_t len = strlen(function);
	char names[200] = "", plain[KY_DEMANGLED_BYTES];
	bool has_own = false; /* symbols that only the file itself uses */
	int found = 0;

	for (int i = 1; i < n && found < 4; i++) {
		GElf_Sym symbol;
		const char *name = symbol_at(file, i, &symbol);

		if (!name || GELF_ST_TYPE(symbol.st_info) != STT_FUNC)
			continue;
		has_own |= GELF_ST_BIND(symbol.st_info) == STB_LOCAL;
		if (ky_demangle(name, plain))
			name = plain;
		if (!strcasestr(name, function) || strlen(name) > len + 20 || strchr(name, '@'))
			continue;
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%.60s",
			 found ? ", " : "", name);
		found++;
	}
	if (found)
		ky_error_hint(err, "there are: %s", names);
	else if (!has_own)
		ky_error_hint(err,
			      "the file has no symbols%s: install its debug symbols (Debian: "
			      "the package's -dbgsym)",
			      n > 1 ? " except names of other files" : "");
}

/* Functions that are @called so; *is_ifunc: there is one that is chosen at run time. */
static int find_functions(const struct ky_probe_file *file, const char *function,
			  bool (*called)(const char *, const char *, size_t),
			  struct ky_probe_addresses *addresses, bool *is_ifunc)
{
	int n = dwfl_module_getsymtab(file->module);
	size_t len = strlen(function);

	for (int i = 1; i < n; i++) {
		GElf_Sym symbol;
		const char *name = symbol_at(file, i, &symbol);
		int type;

		if (!name || !called(name, function, len))
			continue;
		type = GELF_ST_TYPE(symbol.st_info);
		*is_ifunc |= type == STT_GNU_IFUNC;
		if ((type == STT_FUNC || type == STT_NOTYPE) &&
		    add_address(addresses, symbol.st_value) < 0)
			return KYMO_E_MEMORY;
	}
	return KYMO_OK;
}

int ky_probe_file_function(const struct ky_probe_file *file, const char *function,
			   struct ky_probe_addresses *addresses, struct kymo_error *err)
{
	/* As the symbol is; as compilers change it; as people call what C++ and Rust mangle. */
	static bool (*const ways[])(const char *, const char *, size_t) = {
		is_function,
		is_clone_of,
		ky_probe_name_is,
	};
	bool is_ifunc = false;
	int code = KYMO_OK;

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (!code && !addresses->len && !is_ifunc)
			code = find_functions(file, function, ways[i], addresses, &is_ifunc);
	if (code < 0)
		return ky_error_nomem(err);
	/* One of an older version may stand beside it, which hardly anybody calls. */
	if (addresses->len && !is_ifunc)
		return KYMO_OK;
	if (is_ifunc) {
		code = ky_error_set(err, KYMO_E_UNSUPPORTED,
				    "'%s' is one of several functions, which the program selects "
				    "when it starts",
				    function);
		ky_error_path(err, file->path);
		ky_error_hint(err, "probe the one that is chosen here, such as __%s_avx2",
			      function);
		return code;
	}
	code = ky_error_set(err, KYMO_E_NOT_FOUND, "there is no function '%s'", function);
	ky_error_path(err, file->path);
	if (!suggest_part(file, function, err))
		suggest(file, function, err);
	return code;
}

int ky_probe_file_clones(const struct ky_probe_file *file, const char *function,
			 const struct ky_probe_addresses *addresses,
			 struct ky_probe_symbols *symbols)
{
	int n = dwfl_module_getsymtab(file->module);

	for (int i = 1; i < n; i++) {
		GElf_Sym symbol;
		const char *name = symbol_at(file, i, &symbol);
		struct ky_probe_symbol clone = {.name = name};
		bool is_known = false;

		if (!name || GELF_ST_TYPE(symbol.st_info) != STT_FUNC ||
		    !ky_probe_name_is_clone(name, function))
			continue;
		clone.address = symbol.st_value;
		ky_vec_foreach(addresses, at)
			is_known |= *at == clone.address;
		ky_vec_foreach(symbols, other)
			is_known |= other->address == clone.address;
		if (!is_known && ky_vec_push(symbols, clone) < 0)
			return KYMO_E_MEMORY;
	}
	return KYMO_OK;
}

bool ky_probe_file_symbol(const struct ky_probe_file *file, const char *wanted, size_t len,
			  uint64_t *address)
{
	int n = dwfl_module_getsymtab(file->module);

	for (int i = 1; i < n; i++) {
		GElf_Sym symbol;
		const char *name = symbol_at(file, i, &symbol);

		if (name && is_called(name, wanted, len)) {
			*address = symbol.st_value;
			return true;
		}
	}
	return false;
}
