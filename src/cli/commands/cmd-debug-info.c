/* SPDX-License-Identifier: MIT */
/* kymo debug-info: makes compact debug information, shows it, finds addresses in it. */
#include "cli/terminal/command.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/commands/debug-info-show.h"
#include "cli/terminal/output.h"
#include "os/file.h"
#include "symbols/make/kdi-make.h"
#include "symbols/kdi/kdi-write.h"
#include "symbols/lookup/symbols.h"

#define BTF_DIR	      "/sys/kernel/btf/"
#define BTF_MAX_BYTES (256u << 20)

struct debug_info_options {
	const char *output, *kallsyms, *btf;
	struct ky_text_list dirs;
	const char *types;
	bool lines;
};

static const struct ky_option_def debug_info_option_defs[] = {
	{.name = "output",
	 .letter = 'o',
	 .kind = KY_OPTION_TEXT,
	 .arg = "FILE",
	 .help = "make: the file to write. Default: the standard output.",
	 .at = offsetof(struct debug_info_options, output)},
	{.name = "lines",
	 .kind = KY_OPTION_FLAG,
	 .help = "make: add lines and inlined functions, which take most of the room.",
	 .at = offsetof(struct debug_info_options, lines)},
	{.name = "types",
	 .kind = KY_OPTION_TEXT,
	 .arg = "WHICH",
	 .help = "make: which types: all (default), signatures (what functions take and return, "
		 "without members), or none.",
	 .at = offsetof(struct debug_info_options, types),
	 .choices = "all signatures none"},
	{.name = "symbol-dir",
	 .kind = KY_OPTION_LIST,
	 .arg = "DIR",
	 .help = "Look for debug files in DIR first, by build ID, as in /usr/lib/debug. May be "
		 "given several times.",
	 .at = offsetof(struct debug_info_options, dirs)},
	{.name = "kallsyms",
	 .kind = KY_OPTION_TEXT,
	 .arg = "FILE",
	 .help = "make kernel: a list of the kernel's symbols, such as a System.map. Default: "
		 "/proc/kallsyms.",
	 .at = offsetof(struct debug_info_options, kallsyms)},
	{.name = "btf",
	 .kind = KY_OPTION_TEXT,
	 .arg = "FILE",
	 .help = "make kernel: the kernel's BTF. Default: /sys/kernel/btf/vmlinux.",
	 .at = offsetof(struct debug_info_options, btf)},
	{0},
};

static int fail(const struct kymo_error *err)
{
	ky_cli_error(err);
	return err->code == KYMO_E_INVALID ? KY_EXIT_USAGE : KY_EXIT_FAIL;
}

static bool types_are(const struct debug_info_options *options, const char *word)
{
	return options->types && strcmp(options->types, word) == 0;
}

/* ---- make ------------------------------------------------------------------------------- */

static int write_model(struct ky_kdi_info *info, const char *path, struct kymo_error *err)
{
	struct ky_strbuf bytes = KY_STRBUF_INIT;
	struct ky_cli_output output;
	int ret = ky_kdi_write(info, &bytes, err);

	if (!ret && !path && isatty(STDOUT_FILENO))
		ret = ky_error_set(err, KYMO_E_INVALID,
				   "debug information is no text for a terminal; try -o FILE.kdi");
	if (!ret)
		ret = ky_cli_output_file(&output, path, err);
	if (!ret) {
		int code = ky_write_all(output.fd, bytes.data, bytes.len);

		if (code < 0)
			ret = ky_error_errno(err, -code, "cannot write the debug information");
		if (!ret)
			ret = ky_cli_output_commit(&output, err);
		ky_cli_output_close(&output);
	}
	ky_strbuf_fini(&bytes);
	return ret;
}

static int make_file(struct ky_kdi_info *info, const char *path,
		     const struct debug_info_options *options, struct kymo_error *err)
{
	struct ky_object object = {.path = realpath(path, NULL)};
	const struct ky_object_search search = {
		.dirs = options->dirs.items, .n_dirs = options->dirs.len, .keep_open = true};
	const struct ky_kdi_options own = {.want_lines = options->lines,
					   .want_types = !types_are(options, "none"),
					   .no_members = types_are(options, "signatures")};
	int ret;

	if (!object.path) {
		ret = ky_error_set(err, KYMO_E_NOT_FOUND, "there is no such file");
		ky_error_path(err, path);
		return ret;
	}
	ret = ky_kdi_make_object(info, &object, &search, &own, err);
	ky_object_fini(&object);
	return ret;
}

/* A kernel without BTF has functions only. */
static int read_btf(const char *path, bool is_needed, struct ky_strbuf *text,
		    struct kymo_error *err)
{
	int code = ky_read_file(AT_FDCWD, path, BTF_MAX_BYTES, text);

	if (code >= 0 || !is_needed)
		return KYMO_OK;
	code = ky_error_errno(err, -code, "cannot read BTF");
	ky_error_path(err, path);
	return code;
}

static void read_build_id(struct ky_kdi_info *info, const char *module)
{
	struct ky_strbuf notes = KY_STRBUF_INIT;
	struct ky_elf_info elf = {0};
	char path[200];

	snprintf(path, sizeof(path),
		 module ? "/sys/module/%s/notes/.note.gnu.build-id" : "/sys/kernel/notes", module);
	if (ky_read_file(AT_FDCWD, path, 65536, &notes) == 0)
		ky_elf_note_build_id((const uint8_t *)ky_strbuf_text(&notes), notes.len, &elf);
	memcpy(info->build_id, elf.build_id, elf.build_id_bytes);
	info->build_id_bytes = elf.build_id_bytes;
	ky_strbuf_fini(&notes);
}

/* @module: NULL for the kernel itself. */
static int make_kernel(struct ky_kdi_info *info, const char *module,
		       const struct debug_info_options *options, struct kymo_error *err)
{
	struct ky_strbuf btf = KY_STRBUF_INIT, base = KY_STRBUF_INIT;
	struct ky_kdi_kernel kernel = {.kallsyms = "/proc/kallsyms",
				       .module = module,
				       .no_members = types_are(options, "signatures")};
	char path[200];
	int ret;

	if (options->kallsyms)
		kernel.kallsyms = options->kallsyms;
	else
		read_build_id(info, module);
	snprintf(path, sizeof(path), BTF_DIR "%s", module ? module : "vmlinux");
	ret = read_btf(options->btf ? options->btf : path, options->btf != NULL, &btf, err);
	if (!ret && module)
		ret = read_btf(BTF_DIR "vmlinux", btf.len > 0, &base, err);
	if (!types_are(options, "none") && btf.len) {
		kernel.btf = btf.data;
		kernel.btf_bytes = btf.len;
		kernel.base = module ? base.data : NULL;
		kernel.base_bytes = base.len;
	}
	if (!ret)
		ret = ky_kdi_make_kernel(info, &kernel, err);
	ky_strbuf_fini(&btf);
	ky_strbuf_fini(&base);
	return ret;
}

static bool is_module(const char *name)
{
	char path[200];

	snprintf(path, sizeof(path), "/sys/module/%s/sections", name);
	return !strchr(name, '/') && access(path, F_OK) == 0;
}

static int make(const struct debug_info_options *options, const char *what, struct kymo_error *err)
{
	struct ky_kdi_info info;
	int ret = ky_kdi_info_init(&info);

	if (ret)
		return ky_error_nomem(err);
	if (strcmp(what, "kernel") == 0)
		ret = make_kernel(&info, NULL, options, err);
	else if (access(what, F_OK) != 0 && is_module(what))
		ret = make_kernel(&info, what, options, err);
	else
		ret = make_file(&info, what, options, err);
	if (!ret)
		ret = write_model(&info, options->output, err);
	ky_kdi_info_fini(&info);
	return ret;
}

/* ---- find ------------------------------------------------------------------------------- */

static bool parse_address(const char *text, uint64_t *address)
{
	char *end;

	*address = strtoull(text, &end, 16);
	return end != text && (!*end || *end == '\n');
}

static int find_all(struct ky_symbols *symbols, uint32_t object, char **addresses, int n,
		    struct kymo_error *err)
{
	struct ky_strbuf out = KY_STRBUF_INIT;
	char line[64];
	uint64_t address;
	int ret = KYMO_OK;

	for (int i = 0; i < n && !ret; i++) {
		if (!parse_address(addresses[i], &address))
			ret = ky_error_set(err, KYMO_E_INVALID, "'%.60s' is no address",
					   addresses[i]);
		else
			ky_debug_info_look(&out, symbols, object, address);
	}
	while (!n && fgets(line, sizeof(line), stdin)) {
		if (parse_address(line, &address))
			ky_debug_info_look(&out, symbols, object, address);
		if (out.len < 65536)
			continue;
		ky_cli_write(&out);
		ky_strbuf_clear(&out);
	}
	ky_cli_write(&out);
	ky_strbuf_fini(&out);
	return ret;
}

static int cmd_debug_info_find(const struct debug_info_options *options, const char *file,
			       char **addresses, int n, struct kymo_error *err)
{
	const struct ky_symbols_options own = {
		.dirs = options->dirs.items, .n_dirs = options->dirs.len, .want_lines = true};
	char *path = realpath(file, NULL);
	struct ky_symbols *symbols;
	uint32_t object;
	int ret;

	if (!path) {
		ret = ky_error_set(err, KYMO_E_NOT_FOUND, "there is no such file");
		ky_error_path(err, file);
		return ret;
	}
	ret = ky_symbols_open(&own, &symbols, err);
	if (!ret) {
		object = ky_symbols_object(symbols, path, NULL, 0, -1);
		ret = find_all(symbols, object, addresses, n, err);
		ky_symbols_close(symbols);
	}
	free(path);
	return ret;
}

/* ---- the command ------------------------------------------------------------------------ */

static int show(char **args, int n_args, struct kymo_error *err)
{
	struct ky_strbuf out = KY_STRBUF_INIT;
	int ret = ky_debug_info_show(&out, args[0], args + 1, n_args - 1, err);

	ky_cli_write(&out);
	ky_strbuf_fini(&out);
	return ret;
}

static int run_debug_info(const struct ky_command *command, void *data, int n_args, char **args)
{
	struct debug_info_options *options = data;
	struct kymo_error err;
	int ret;

	ky_error_clear(&err);
	if (options->types && !types_are(options, "all") && !types_are(options, "signatures") &&
	    !types_are(options, "none"))
		return ky_cli_usage(command, "--types needs all, signatures or none");
	if (strcmp(args[0], "make") == 0 && n_args == 2)
		ret = make(options, args[1], &err);
	else if (strcmp(args[0], "make") == 0)
		return ky_cli_usage(command, "make needs one program, library, 'kernel' or module");
	else if (strcmp(args[0], "show") == 0)
		ret = show(args + 1, n_args - 1, &err);
	else if (strcmp(args[0], "find") == 0)
		ret = cmd_debug_info_find(options, args[1], args + 2, n_args - 2, &err);
	else
		return ky_cli_usage(command, "'%s' is not make, show or find", args[0]);
	return ret ? fail(&err) : KY_EXIT_OK;
}

const struct ky_command ky_command_debug_info = {
	.name = "debug-info",
	.summary = "make compact debug information, and look into it",
	.usage = "[OPTIONS] make|show|find FILE [NAME|ADDRESS]...",
	.description =
		"'make FILE' writes what a tracer needs of the debug information of a program, library or kernel image: functions with addresses, their signatures, structures with the offsets of members, enumerations; with --lines also lines and inlined functions. FILE 'kernel' is the running kernel, and the name of a module that module: kymo reads the list of symbols and BTF, so no debug package is necessary.\n"
		"\n"
		"The result, FILE.kdi, has a hundredth of the size of DWARF. Put it in a directory "
		"under its build ID, BUILD-ID.kdi, and name the directory with --symbol-dir.\n"
		"\n"
		"'show FILE.kdi' prints the build ID and counts; with NAMEs, functions and types.\n"
		"\n"
		"'find FILE ADDRESS...' prints function, file and line of addresses in a program, a library or a FILE.kdi, as addr2line does; without ADDRESS it reads addresses from the standard input.",
	.examples =
		"# of a library, with lines\n"
		"kymo debug-info make --lines /usr/lib/x86_64-linux-gnu/libc.so.6 -o libc.kdi\n\n"
		"# of the running kernel\n"
		"kymo debug-info make kernel -o kernel.kdi\n\n"
		"# a function's arguments, and a structure's members\n"
		"kymo debug-info show kernel.kdi vfs_read file\n\n"
		"# what lies at an address?\n"
		"kymo debug-info find libc.kdi 0x9c5a0",
	.see_also = "print record",
	.options = debug_info_option_defs,
	.options_size = sizeof(struct debug_info_options),
	.min_args = 2,
	.max_args = -1,
	.operands = "make show find",
	.is_rare = true,
	.run = run_debug_info,
};
