/* SPDX-License-Identifier: MIT */
/* The file of debug information: opening it, and what it says of itself (kdi.h). */
#include "os/elf-file.h"
#include "symbols/kdi/kdi.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "os/file.h"
#include "os/sigbus-guard.h"
#include "symbols/kdi/kdi-internal.h"

/* ---- the file --------------------------------------------------------------------------- */

static int kdi_malformed(struct kymo_error *err, const char *what)
{
	return ky_error_set(err, KYMO_E_FORMAT, "malformed debug information: %s", what);
}

static int kdi_read_sections(struct ky_kdi *kdi, struct kymo_error *err)
{
	const uint8_t *data = kdi->whole.data;
	size_t bytes = kdi->whole.bytes;
	uint32_t n = ky_load32(data + 12, false);

	if (n > KY_KDI_SECTIONS || KY_KDI_HEADER_BYTES + (size_t)n * KY_KDI_SECTION_BYTES > bytes)
		return kdi_malformed(err, "its table of sections is too long");
	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *entry = data + KY_KDI_HEADER_BYTES + i * KY_KDI_SECTION_BYTES;
		uint32_t id = ky_load32(entry, false);
		uint64_t at = ky_load64(entry + 8, false), length = ky_load64(entry + 16, false);

		if (at > bytes || length > bytes - at)
			return kdi_malformed(err, "a section goes past the end of the file");
		/* Sections of later versions are left out. */
		if (id < KY_KDI_SECTIONS)
			kdi->parts[id] = (struct ky_kdi_part){data + at, length};
	}
	return KYMO_OK;
}

static int check(struct ky_kdi *kdi, struct kymo_error *err)
{
	const uint8_t *data = kdi->whole.data;
	int ret;

	if (kdi->whole.bytes < KY_KDI_HEADER_BYTES || memcmp(data, KY_KDI_MAGIC, 8) != 0)
		return ky_error_set(err, KYMO_E_FORMAT, "not a file of debug information (.kdi)");
	if (ky_load32(data + 8, false) != KY_KDI_VERSION)
		return ky_error_set(err, KYMO_E_UNSUPPORTED,
				    "debug information of version %u, which Kymo does not know",
				    ky_load32(data + 8, false));
	ret = kdi_read_sections(kdi, err);
	if (ret)
		return ret;
	kdi->n_functions = ky_load32(data + 24, false);
	kdi->n_types = ky_load32(data + 28, false);
	kdi->n_strings = ky_load32(data + 32, false);
	kdi->n_blocks = kdi->n_functions / KY_KDI_BLOCK + (kdi->n_functions % KY_KDI_BLOCK > 0);
	if (kdi->parts[KY_KDI_INDEX].bytes / KY_KDI_BLOCK_BYTES < kdi->n_blocks)
		return kdi_malformed(err, "its index of functions is too short");
	/* Each type has a byte at least; void has none. */
	if (kdi->n_types && kdi->n_types - 1 > kdi->parts[KY_KDI_TYPES].bytes)
		return kdi_malformed(err, "its list of types is too short");
	return KYMO_OK;
}

int ky_kdi_open_bytes(const void *data, size_t bytes, struct ky_kdi **kdi, struct kymo_error *err)
{
	struct ky_kdi *k = calloc(1, sizeof(*k));
	int ret;

	if (!k)
		return ky_error_nomem(err);
	k->whole = (struct ky_kdi_part){data, bytes};
	ret = check(k, err);
	if (ret)
		free(k);
	else
		*kdi = k;
	return ret;
}

static int map_file(int fd, const char *path, struct ky_kdi_part *part, struct kymo_error *err)
{
	struct stat st;
	void *data;
	int ret = KYMO_OK;

	if (fstat(fd, &st) != 0)
		return ky_error_errno(err, errno, "cannot read the debug information");
	if (st.st_size < KY_KDI_HEADER_BYTES || st.st_size > KY_KDI_BYTES_MAX) {
		ret = ky_error_set(err, KYMO_E_FORMAT, "not a file of debug information (.kdi)");
		ky_error_path(err, path);
		return ret;
	}
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		return ky_error_errno(err, errno, "cannot map the debug information");
	*part = (struct ky_kdi_part){data, (size_t)st.st_size};
	if (ky_sigbus_guard_add(data, part->bytes) < 0) {
		munmap(data, part->bytes);
		return ky_error_nomem(err);
	}
	return ret;
}

int ky_kdi_open(const char *path, struct ky_kdi **kdi, struct kymo_error *err)
{
	int fd = ky_file_open_regular(AT_FDCWD, path, O_RDONLY | O_CLOEXEC), ret;
	struct ky_kdi_part part = {0};

	if (fd < 0) {
		ret = ky_error_errno(err, -fd, "cannot open the debug information");
		ky_error_path(err, path);
		return ret;
	}
	ret = map_file(fd, path, &part, err);
	close(fd);
	if (ret)
		return ret;
	ret = ky_kdi_open_bytes(part.data, part.bytes, kdi, err);
	if (ret) {
		ky_error_path(err, path);
		ky_sigbus_guard_remove(part.data, part.bytes);
		munmap((void *)(uintptr_t)part.data, part.bytes);
		return ret;
	}
	(*kdi)->is_mapped = true;
	return KYMO_OK;
}

static struct ky_kdi *kdi_open_in(const char *dir, const char *hex, const uint8_t *id,
				  size_t id_bytes)
{
	struct ky_kdi *kdi = NULL;
	char path[4096];
	const uint8_t *own;
	size_t bytes;

	if (snprintf(path, sizeof(path), "%s/%s.kdi", dir, hex) >= (int)sizeof(path) ||
	    ky_kdi_open(path, &kdi, NULL) < 0)
		return NULL;
	own = ky_kdi_build_id(kdi, &bytes);
	if (bytes == id_bytes && memcmp(own, id, bytes) == 0)
		return kdi;
	ky_kdi_close(kdi);
	return NULL;
}

struct ky_kdi *ky_kdi_open_id(const uint8_t *id, size_t id_bytes, const char *const *dirs,
			      size_t n_dirs, bool is_standard)
{
	char hex[2 * KY_ELF_BUILD_ID_MAX + 1] = "";
	struct ky_kdi *kdi = NULL;

	if (!id_bytes || id_bytes > KY_ELF_BUILD_ID_MAX)
		return NULL;
	for (size_t i = 0; i < id_bytes; i++)
		snprintf(hex + 2 * i, 3, "%02x", id[i]);
	for (size_t i = 0; i < n_dirs && !kdi; i++)
		kdi = kdi_open_in(dirs[i], hex, id, id_bytes);
	return kdi || !is_standard ? kdi : kdi_open_in(KY_KDI_PLACE, hex, id, id_bytes);
}

void ky_kdi_close(struct ky_kdi *kdi)
{
	if (!kdi)
		return;
	if (kdi->is_mapped) {
		ky_sigbus_guard_remove(kdi->whole.data, kdi->whole.bytes);
		munmap((void *)(uintptr_t)kdi->whole.data, kdi->whole.bytes);
	}
	free(kdi);
}

/* ---- the file that it describes --------------------------------------------------------- */

const uint8_t *ky_kdi_build_id(const struct ky_kdi *kdi, size_t *bytes)
{
	const struct ky_kdi_part *part = &kdi->parts[KY_KDI_IDENTITY];

	*bytes = part->bytes > 1 ? part->bytes - 1 : 0;
	return part->bytes > 1 ? part->data + 1 : NULL;
}

const void *ky_kdi_bytes(const struct ky_kdi *kdi)
{
	return kdi->whole.data;
}

size_t ky_kdi_size(const struct ky_kdi *kdi)
{
	return kdi->whole.bytes;
}

bool ky_kdi_is_kernel(const struct ky_kdi *kdi)
{
	return kdi->parts[KY_KDI_IDENTITY].bytes && kdi->parts[KY_KDI_IDENTITY].data[0] & 1;
}

uint32_t ky_kdi_functions(const struct ky_kdi *kdi)
{
	return kdi->n_functions;
}

uint32_t ky_kdi_types(const struct ky_kdi *kdi)
{
	return kdi->n_types;
}

uint64_t ky_kdi_first_page(const struct ky_kdi *kdi)
{
	const struct ky_kdi_part *part = &kdi->parts[KY_KDI_SEGMENTS];
	uint64_t first = UINT64_MAX;

	for (size_t at = 0; part->bytes - at >= 24; at += 24) {
		uint64_t address = ky_load64(part->data + at + 8, false) & ~(uint64_t)4095;

		if (address < first)
			first = address;
	}
	return first == UINT64_MAX ? 0 : first;
}

bool ky_kdi_address(const struct ky_kdi *kdi, uint64_t offset, uint64_t *address)
{
	const struct ky_kdi_part *part = &kdi->parts[KY_KDI_SEGMENTS];

	for (size_t at = 0; part->bytes - at >= 24; at += 24) {
		uint64_t from = ky_load64(part->data + at, false);
		uint64_t bytes = ky_load64(part->data + at + 16, false);

		if (offset >= (from & ~(uint64_t)4095) &&
		    offset < ((from + bytes + 4095) & ~(uint64_t)4095)) {
			*address = ky_load64(part->data + at + 8, false) + (offset - from);
			return true;
		}
	}
	return false;
}