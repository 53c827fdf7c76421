/* SPDX-License-Identifier: MIT */
#include "symbols/dwarf/debug-file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <elfutils/libdwelf.h>

#include "os/elf-file.h"
#include "os/file.h"
#include "os/memory-limit.h"
#include "symbols/dwarf/debuginfod.h"
#include "symbols/dwarf/libdw.h"

#define DEBUG_DIR "/usr/lib/debug"

/* The directory is for build IDs. A name is looked up here, and libdw gets it as a whole path without a directory. */
char *ky_debug_file_path = (char[]){":" DEBUG_DIR};

/* What is looked for, and what libdw must know to accept it. */
struct wanted {
	Dwfl_Module *module;
	GElf_Word crc;
	struct stat self;	 /* of the file that names it; zeros: not known */
	const uint8_t *build_id; /* of a common file; NULL: libdw compares */
	size_t build_id_bytes;
	char *path; /* what was found */
};

/* ---- files ------------------------------------------------------------------------------ */

static int debug_file_check_id(const struct wanted *wanted, int fd)
{
	struct ky_elf_info info;

	return ky_elf_read(fd, &info) && info.build_id_bytes == wanted->build_id_bytes &&
			       memcmp(info.build_id, wanted->build_id, wanted->build_id_bytes) == 0
		       ? fcntl(fd, F_DUPFD_CLOEXEC, 0)
		       : -1;
}

/* libdw compares build ID or checksum, and keeps what it has opened for that. */
static int debug_file_check(const struct wanted *wanted, int fd)
{
	char path[32], *found = NULL;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	fd = dwfl_standard_find_debuginfo(wanted->module, NULL, NULL, 0, NULL, path, wanted->crc,
					  &found);
	free(found);
	return fd;
}

static int debug_file_try(struct wanted *wanted, const char *path)
{
	int fd = ky_file_open_regular(AT_FDCWD, path, O_RDONLY | O_CLOEXEC), ret = -1;
	struct stat st;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0 &&
	    (st.st_ino != wanted->self.st_ino || st.st_dev != wanted->self.st_dev))
		ret = wanted->build_id ? debug_file_check_id(wanted, fd)
				       : debug_file_check(wanted, fd);
	close(fd);
	if (ret >= 0)
		wanted->path = strdup(path);
	return ret;
}

__attribute__((format(printf, 2, 3))) static int debug_file_try_at(struct wanted *wanted,
								   const char *format, ...)
{
	char path[PATH_MAX];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	return n < 0 || n >= (int)sizeof(path) ? -1 : debug_file_try(wanted, path);
}

/* ---- places ----------------------------------------------------------------------------- */

static const char *debug_file_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Beside the file in @dir, and where packages of debug files have it: the directories' last parts suffice. */
static int debug_file_try_dir(struct wanted *wanted, const char *dir, const char *name)
{
	int fd = debug_file_try_at(wanted, "%s/%s", dir, name);

	if (fd < 0)
		fd = debug_file_try_at(wanted, "%s/.debug/%s", dir, name);
	for (const char *sub = dir; fd < 0 && sub; sub = strchr(sub + 1, '/'))
		if (*sub)
			fd = debug_file_try_at(wanted, DEBUG_DIR "%s/%s", sub, name);
	return fd < 0 ? debug_file_try_at(wanted, DEBUG_DIR "/%s", name) : fd;
}

static int debug_file_try_all(struct wanted *wanted, const char *file, const char *link)
{
	const char *base = debug_file_base(file);
	char dir[PATH_MAX], name[PATH_MAX];
	int fd;

	if (*file != '/' || strlen(file) >= sizeof(dir) - sizeof(".debug"))
		return -1;
	if (stat(file, &wanted->self) < 0)
		wanted->self = (struct stat){0};
	snprintf(dir, sizeof(dir), "%.*s", (int)(base - file - 1), file);
	if (link)
		return debug_file_try_dir(wanted, dir, link);
	wanted->crc = 0;
	snprintf(name, sizeof(name), "%s.debug", base);
	fd = debug_file_try_dir(wanted, dir, name);
	return fd < 0 ? debug_file_try_dir(wanted, dir, base) : fd;
}

/* The name's place, or that of the file that it leads to. */
static int debug_file_try_places(struct wanted *wanted, const char *file, const char *link)
{
	int fd = debug_file_try_all(wanted, file, link);
	char *real = fd < 0 ? realpath(file, NULL) : NULL;

	if (real && strcmp(real, file) != 0)
		fd = debug_file_try_all(wanted, real, link);
	free(real);
	return fd;
}

int ky_debug_file_find(Dwfl_Module *module, const char *file, const char *link, GElf_Word crc,
		       char **found)
{
	struct wanted wanted = {.module = module, .crc = crc};
	int fd;

	/* Without a name, libdw looks for the build ID in the system's directory, and asks debuginfod. */
	errno = 0;
	fd = dwfl_standard_find_debuginfo(module, NULL, NULL, 0, NULL, NULL, 0, found);
	/* A name without a checksum is that of a common file: ky_debug_file_dwarf(). */
	if (fd >= 0 || !file || (link && !crc))
		return fd;
	fd = debug_file_try_places(&wanted, file, link);
	if (fd >= 0)
		*found = wanted.path;
	return fd;
}

/* ---- common files ----------------------------------------------------------------------- */

static int debug_alt_try(struct wanted *wanted, const char *file, const char *name)
{
	const char *base = debug_file_base(name);
	char dir[PATH_MAX], hex[2 * KY_ELF_BUILD_ID_MAX + 1];
	int fd = -1;

	for (size_t i = 0; i < wanted->build_id_bytes; i++)
		snprintf(hex + 2 * i, 3, "%02x", wanted->build_id[i]);
	if (wanted->build_id_bytes > 1)
		fd = debug_file_try_at(wanted, DEBUG_DIR "/.build-id/%.2s/%s.debug", hex, hex + 2);
	snprintf(dir, sizeof(dir), "%.*s", (int)(debug_file_base(file) - file), file);
	if (fd < 0 && *name == '/')
		fd = debug_file_try(wanted, name);
	if (fd < 0 && *dir == '/')
		fd = debug_file_try_at(wanted, "%s%s", dir, name);
	if (fd < 0 && *dir == '/')
		fd = debug_file_try_at(wanted, "%s.dwz/%s", dir, base);
	if (fd < 0)
		fd = debug_file_try_at(wanted, DEBUG_DIR "/.dwz/%s", base);
	return fd < 0 ? ky_debuginfod_open(wanted->build_id, (uint32_t)wanted->build_id_bytes) : fd;
}

/* Debug information without content. libdw opens the named file itself for a Dwarf that has no common file. */
static Elf *debug_alt_empty(void)
{
	static struct {
		Elf64_Ehdr head;
		Elf64_Shdr sections[3];
		char names[24];
	} image = {
		.head = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
			 .e_type = ET_DYN,
			 .e_machine = EM_X86_64,
			 .e_version = EV_CURRENT,
			 .e_shoff = offsetof(typeof(image), sections),
			 .e_ehsize = sizeof(Elf64_Ehdr),
			 .e_shentsize = sizeof(Elf64_Shdr),
			 .e_shnum = 3,
			 .e_shstrndx = 1},
		.sections = {{0},
			     {.sh_name = 1,
			      .sh_type = SHT_STRTAB,
			      .sh_offset = offsetof(typeof(image), names),
			      .sh_size = sizeof(image.names)},
			     {.sh_name = 7,
			      .sh_type = SHT_PROGBITS,
			      .sh_offset = offsetof(typeof(image), names),
			      .sh_size = 1,
			      .sh_addralign = 1}},
		.names = "\0names\0.debug_line",
	};

	return elf_memory((char *)&image, sizeof(image));
}

static void debug_alt_open(struct ky_debug_alt *alt, Dwfl_Module *module, const char *name,
			   const void *build_id, size_t bytes)
{
	struct wanted wanted = {.build_id = build_id, .build_id_bytes = bytes};
	const char *file = NULL, *debug_file = NULL;

	(void)dwfl_module_info(module, NULL, NULL, NULL, NULL, NULL, &file, &debug_file);
	file = debug_file ? debug_file : file;
	alt->fd =
		bytes <= KY_ELF_BUILD_ID_MAX ? debug_alt_try(&wanted, file ? file : "", name) : -1;
	free(wanted.path);
	alt->elf = alt->fd >= 0 ? ky_elf_guards_open(&alt->guards, alt->fd) : NULL;
	if (alt->fd >= 0 && !alt->elf)
		close(alt->fd);
	alt->dwarf = alt->elf ? dwarf_begin_elf(alt->elf, DWARF_C_READ, NULL) : NULL;
	if (alt->dwarf)
		return;
	ky_debug_alt_fini(alt);
	alt->elf = debug_alt_empty();
	alt->dwarf = alt->elf ? dwarf_begin_elf(alt->elf, DWARF_C_READ, NULL) : NULL;
}

static Dwarf *debug_file_dwarf(Dwfl_Module *module, struct ky_debug_alt *alt, Dwarf_Addr *bias)
{
	Dwarf *dwarf = dwfl_module_getdwarf(module, bias);
	const char *name;
	const void *build_id;
	ssize_t bytes;

	if (!dwarf || alt->dwarf)
		return dwarf;
	bytes = dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &build_id);
	if (bytes <= 0)
		return dwarf;
	debug_alt_open(alt, module, name, build_id, (size_t)bytes);
	if (!alt->dwarf)
		return NULL;
	dwarf_setalt(dwarf, alt->dwarf);
	return dwarf;
}

Dwarf *ky_debug_file_dwarf(Dwfl_Module *module, struct ky_debug_alt *alt, Dwarf_Addr *bias)
{
	Dwarf *dwarf;

	ky_memory_limit_begin(4 * (size_t)KY_DEBUG_FILE_BYTES);
	dwarf = debug_file_dwarf(module, alt, bias);
	ky_memory_limit_end();
	return dwarf;
}

void ky_debug_alt_fini(struct ky_debug_alt *alt)
{
	if (alt->dwarf)
		(void)dwarf_end(alt->dwarf);
	ky_elf_guards_fini(&alt->guards);
	if (alt->elf) {
		(void)elf_end(alt->elf);
		if (alt->fd >= 0)
			close(alt->fd);
	}
	*alt = (struct ky_debug_alt){.fd = -1};
}
