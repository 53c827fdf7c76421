/* SPDX-License-Identifier: MIT */
#include "kernel/probe/probe-file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "kernel/probe/probe-name.h"
#include "symbols/demangle/demangle.h"
#include "symbols/kdi/kdi-to-dwarf.h"
#include "symbols/dwarf/libdw.h"

/* ---- finding -------------------------------------------------------------------------- */

static const char *const library_dirs[] = {
	"/lib/x86_64-linux-gnu",
	"/usr/lib/x86_64-linux-gnu",
	"/lib64",
	"/usr/lib64",
	"/lib",
	"/usr/lib",
	"/usr/local/lib",
};

static bool is_file(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* The real path: the kernel wants one, and probes of one file are of one file. */
static bool probe_file_take(const char *found, char *path)
{
	char real[PATH_MAX];

	if (!is_file(found) || !realpath(found, real) || strlen(real) >= 4096)
		return false;
	memcpy(path, real, strlen(real) + 1);
	return true;
}

static bool find_in_path(const char *name, char *path)
{
	const char *dirs = getenv("PATH");
	char full[PATH_MAX];

	for (; dirs && *dirs; dirs += strcspn(dirs, ":"), dirs += *dirs == ':') {
		int len = (int)strcspn(dirs, ":");

		if (snprintf(full, sizeof(full), "%.*s/%s", len, dirs, name) < (int)sizeof(full) &&
		    access(full, X_OK) == 0 && probe_file_take(full, path))
			return true;
	}
	return false;
}

int ky_probe_file_find(const char *name, char *path, struct kymo_error *err)
{
	char full[PATH_MAX];

	if (strchr(name, '/')) {
		if (probe_file_take(name, path))
			return KYMO_OK;
		return ky_error_set(err, KYMO_E_NOT_FOUND, "there is no file '%s'", name);
	}
	for (size_t i = 0; i < sizeof(library_dirs) / sizeof(library_dirs[0]); i++)
		if (snprintf(full, sizeof(full), "%s/%s", library_dirs[i], name) <
			    (int)sizeof(full) &&
		    probe_file_take(full, path))
			return KYMO_OK;
	if (find_in_path(name, path))
		return KYMO_OK;
	ky_error_set(err, KYMO_E_NOT_FOUND, "'%s' is neither a library nor a program in $PATH",
		     name);
	ky_error_hint(err, "a file is named by its path: ./%s", name);
	return KYMO_E_NOT_FOUND;
}

int ky_probe_library_find(const char *stem, char *path)
{
	for (size_t i = 0; i < sizeof(library_dirs) / sizeof(library_dirs[0]); i++) {
		DIR *dir = opendir(library_dirs[i]);
		struct dirent *entry;
		bool found = false;

		while (dir && !found && (entry = readdir(dir))) {
			const char *name = entry->d_name;
			char full[PATH_MAX];

			if (strncmp(name, "lib", 3) == 0 && strncmp(stem, "lib", 3) != 0)
				name += 3;
			if (strncmp(name, stem, strlen(stem)) != 0 ||
			    strncmp(name + strlen(stem), ".so.", 4) != 0)
				continue;
			snprintf(full, sizeof(full), "%s/%s", library_dirs[i], entry->d_name);
			found = probe_file_take(full, path);
		}
		if (dir)
			closedir(dir);
		if (found)
			return KYMO_OK;
	}
	return KYMO_E_NOT_FOUND;
}

/* ---- opening -------------------------------------------------------------------------- */

/* Directories with BUILD-ID.kdi files. */
static const char *const *kdi_dirs;
static size_t n_kdi_dirs;

void ky_probe_file_set_dirs(const char *const *dirs, size_t n)
{
	kdi_dirs = dirs;
	n_kdi_dirs = n;
}

/* What libdw finds by itself has more; else Kymo's compact form. */
static int probe_file_find_debuginfo(Dwfl_Module *module, void **data, const char *name,
				     Dwarf_Addr base, const char *path, const char *link,
				     GElf_Word crc, char **found)
{
	int fd = ky_debug_file_find(module, path, link, crc, found);

	(void)data;
	(void)name;
	(void)base;

	return fd < 0 && path ? ky_kdi_debug_file(path, kdi_dirs, n_kdi_dirs) : fd;
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_build_id_find_elf,
	.find_debuginfo = probe_file_find_debuginfo,
	.section_address = dwfl_offline_section_address,
	.debuginfo_path = &ky_debug_file_path,
};

static int not_elf(struct ky_probe_file *file, struct kymo_error *err)
{
	int code = ky_error_set(err, KYMO_E_FORMAT, "not a program or library for this machine");

	ky_error_path(err, file->path);
	ky_probe_file_close(file);
	return code;
}

static bool probe_file_is_ours(Elf *elf)
{
	GElf_Ehdr header;

	return elf && gelf_getehdr(elf, &header) && header.e_machine == EM_X86_64 &&
	       header.e_ident[EI_CLASS] == ELFCLASS64 &&
	       (header.e_type == ET_EXEC || header.e_type == ET_DYN);
}

int ky_probe_file_open(struct ky_probe_file *file, const char *path, struct kymo_error *err)
{
	int fd, ret;

	memset(file, 0, sizeof(*file));
	ret = ky_libdw_load(err);
	if (ret < 0)
		return ret;
	snprintf(file->path, sizeof(file->path), "%s", path);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || !is_file(path)) {
		ret = ky_error_errno(err, fd < 0 ? errno : EINVAL, "cannot open the file");
		ky_error_path(err, path);
		if (fd >= 0)
			close(fd);
		return ret;
	}
	file->dwfl = dwfl_begin(&callbacks);
	file->alt = calloc(1, sizeof(*file->alt));
	if (!file->dwfl || !file->alt) {
		close(fd);
		ky_probe_file_close(file);
		return ky_error_nomem(err);
	}
	/* Takes over the descriptor when it succeeds. */
	file->module = dwfl_report_offline(file->dwfl, path, path, fd);
	if (!file->module)
		close(fd);
	dwfl_report_end(file->dwfl, NULL, NULL);
	file->elf = file->module ? dwfl_module_getelf(file->module, &file->bias) : NULL;
	ky_elf_guards_add(&file->guards, file->elf);
	return probe_file_is_ours(file->elf) ? KYMO_OK : not_elf(file, err);
}

void ky_probe_file_close(struct ky_probe_file *file)
{
	ky_elf_guards_fini(&file->guards);
	if (file->dwfl)
		dwfl_end(file->dwfl);
	if (file->alt)
		ky_debug_alt_fini(file->alt);
	free(file->alt);
	file->alt = NULL;
	file->dwfl = NULL;
	file->module = NULL;
	file->elf = NULL;
}

bool ky_probe_file_offset(const struct ky_probe_file *file, uint64_t address, uint64_t *offset)
{
	size_t n = 0;

	if (elf_getphdrnum(file->elf, &n) != 0)
		return false;
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr header;

		if (!gelf_getphdr(file->elf, (int)i, &header) || header.p_type != PT_LOAD)
			continue;
		if (address < header.p_vaddr || address - header.p_vaddr >= header.p_filesz)
			continue;
		*offset = address - header.p_vaddr + header.p_offset;
		return true;
	}
	return false;
}

Dwarf *ky_probe_file_dwarf(const struct ky_probe_file *file, Dwarf_Addr *bias)
{
	return ky_debug_file_dwarf(file->module, file->alt, bias);
}

bool ky_probe_file_is_line(const struct ky_probe_file *file, uint64_t address)
{
	Dwarf_Addr begin;
	Dwfl_Line *line = ky_probe_file_dwarf(file, &begin)
				  ? dwfl_module_getsrc(file->module, address + file->bias)
				  : NULL;

	return line && dwfl_lineinfo(line, &begin, NULL, NULL, NULL, NULL) &&
	       begin == address + file->bias;
}
