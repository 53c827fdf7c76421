/* SPDX-License-Identifier: MIT */
#include "tracer/preload/call-filter.h"

#include <elf.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_BYTES     512
#define PATTERNS_BYTES 4096
#define PATTERNS_MAX   64
#define RANGES_BYTES   ((size_t)64 << 20) /* of address space: it fills as far as functions match */
#define CACHE_ENTRIES  4096u

struct range {
	uintptr_t begin, end;
};

struct pattern {
	const char *text;
	bool leaves_out;
};

static struct {
	bool is_ready, wants_all, has_positive;
	char text[PATTERNS_BYTES];
	struct pattern patterns[PATTERNS_MAX];
	size_t n_patterns;
	struct range *ranges; /* in order */
	size_t n_ranges;
	uintptr_t cache[CACHE_ENTRIES]; /* an address * 2 + whether it is chosen */
} filter;

/* ---- names --------------------------------------------------------------------------------- */

struct name_writer {
	const char *at;
	char *out;
	uint32_t len, bytes;
};

static void call_filter_put(struct name_writer *writer, const char *text, size_t len)
{
	if (writer->len + len >= writer->bytes)
		len = writer->bytes - writer->len - 1;
	memcpy(writer->out + writer->len, text, len);
	writer->len += (uint32_t)len;
	writer->out[writer->len] = '\0';
}

/* "5order" */
static bool call_filter_part(struct name_writer *writer)
{
	char *end;
	unsigned long len = strtoul(writer->at, &end, 10);

	if (end == writer->at || !len || len > strlen(end))
		return false;
	/* What rustc puts behind each name: a hash. */
	if (!(len == 17 && *end == 'h' && end[len] == 'E')) {
		if (writer->len)
			call_filter_put(writer, "::", 2);
		call_filter_put(writer, end, len);
	}
	writer->at = end + len;
	return true;
}

const char *ky_call_filter_name(const char *mangled, char *name, uint32_t bytes)
{
	struct name_writer writer = {.at = mangled + 2, .out = name, .bytes = bytes};
	bool is_nested;

	if (strncmp(mangled, "_Z", 2) != 0)
		return mangled;
	is_nested = *writer.at == 'N';
	writer.at += is_nested;
	writer.at += strspn(writer.at, is_nested ? "KVrRO" : "L");
	if (strncmp(writer.at, "St", 2) == 0) {
		call_filter_put(&writer, "std", 3);
		writer.at += 2;
	}
	while (call_filter_part(&writer) && is_nested)
		writer.at += *writer.at == 'L';
	return writer.len ? name : mangled;
}

/* ---- patterns ------------------------------------------------------------------------------ */

static bool call_filter_matches(const char *pattern, const char *name, const char *source)
{
	return fnmatch(pattern, name, 0) == 0 ||
	       (source != name && fnmatch(pattern, source, 0) == 0);
}

static bool call_filter_wants(const char *name)
{
	char text[NAME_BYTES];
	const char *source = ky_call_filter_name(name, text, sizeof(text));
	bool wants = !filter.has_positive;

	for (size_t i = 0; i < filter.n_patterns; i++) {
		const struct pattern *pattern = &filter.patterns[i];

		if (call_filter_matches(pattern->text, name, source))
			wants = !pattern->leaves_out;
	}
	return wants;
}

static void call_filter_parse(const char *text)
{
	char *rest = filter.text, *word;

	strncpy(filter.text, text, sizeof(filter.text) - 1);
	while ((word = strsep(&rest, ",")) && filter.n_patterns < PATTERNS_MAX) {
		struct pattern *pattern = &filter.patterns[filter.n_patterns];

		pattern->leaves_out = *word == '!';
		pattern->text = word + pattern->leaves_out;
		filter.n_patterns += *pattern->text != '\0';
		filter.has_positive |= *pattern->text && !pattern->leaves_out;
	}
}

/* ---- files --------------------------------------------------------------------------------- */

struct image {
	const uint8_t *data;
	size_t bytes;
	uintptr_t base;
};

/* @bytes of the file at @offset; NULL: it has not so many. */
static const void *call_filter_at(const struct image *image, uint64_t offset, uint64_t bytes)
{
	return offset <= image->bytes && bytes <= image->bytes - offset ? image->data + offset
									: NULL;
}

static void call_filter_symbol(const struct image *image, const Elf64_Sym *symbol,
			       const char *names, uint64_t bytes)
{
	if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || !symbol->st_value || !symbol->st_size ||
	    symbol->st_name >= bytes || (filter.n_ranges + 1) * sizeof(struct range) > RANGES_BYTES)
		return;
	if (call_filter_wants(names + symbol->st_name))
		filter.ranges[filter.n_ranges++] =
			(struct range){image->base + symbol->st_value,
				       image->base + symbol->st_value + symbol->st_size};
}

static void call_filter_table(const struct image *image, const Elf64_Shdr *sections, size_t n,
			      const Elf64_Shdr *table)
{
	const Elf64_Shdr *strings = table->sh_link < n ? &sections[table->sh_link] : NULL;
	const Elf64_Sym *symbols = call_filter_at(image, table->sh_offset, table->sh_size);
	const char *names =
		strings ? call_filter_at(image, strings->sh_offset, strings->sh_size) : NULL;

	if (!symbols || !names || !strings->sh_size || names[strings->sh_size - 1])
		return;
	for (size_t i = 0; i < table->sh_size / sizeof(*symbols); i++)
		call_filter_symbol(image, &symbols[i], names, strings->sh_size);
}

/* The table of all symbols; without it, that of the dynamic linker. */
static void call_filter_image(const struct image *image)
{
	const Elf64_Ehdr *head = call_filter_at(image, 0, sizeof(*head));
	const Elf64_Shdr *sections, *best = NULL;

	if (!head || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 ||
	    head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_shentsize != sizeof(*sections))
		return;
	sections =
		call_filter_at(image, head->e_shoff, (uint64_t)head->e_shnum * sizeof(*sections));
	for (size_t i = 0; sections && i < head->e_shnum; i++)
		if (sections[i].sh_type == SHT_SYMTAB ||
		    (sections[i].sh_type == SHT_DYNSYM && !best))
			best = &sections[i];
	if (best)
		call_filter_table(image, sections, head->e_shnum, best);
}

static int call_filter_object(struct dl_phdr_info *info, size_t size, void *data)
{
	const char *path = info->dlpi_name && *info->dlpi_name ? info->dlpi_name : "/proc/self/exe";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct image image = {.base = info->dlpi_addr};
	struct stat st;
	void *mapped;

	(void)size;
	(void)data;
	if (fd < 0 || fstat(fd, &st) != 0 || st.st_size <= 0) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	image.bytes = (size_t)st.st_size;
	mapped = mmap(NULL, image.bytes, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (mapped == MAP_FAILED)
		return 0;
	image.data = mapped;
	call_filter_image(&image);
	munmap(mapped, image.bytes);
	return 0;
}

/* ---- look-ups ------------------------------------------------------------------------------ */

static int call_filter_compare(const void *a, const void *b)
{
	const struct range *left = a, *right = b;

	return left->begin < right->begin ? -1 : left->begin > right->begin;
}

void ky_call_filter_init(void)
{
	const char *text = getenv("KYMO_CALLS");
	void *ranges;

	if (filter.is_ready)
		return;
	filter.is_ready = true;
	filter.wants_all = !text || !*text || strcmp(text, "*") == 0;
	if (filter.wants_all)
		return;
	call_filter_parse(text);
	ranges = mmap(NULL, RANGES_BYTES, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (ranges == MAP_FAILED)
		return;
	filter.ranges = ranges;
	dl_iterate_phdr(call_filter_object, NULL);
	qsort(filter.ranges, filter.n_ranges, sizeof(*filter.ranges), call_filter_compare);
}

static bool call_filter_find(uintptr_t address)
{
	size_t low = 0, high = filter.n_ranges;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (filter.ranges[middle].begin <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low && address < filter.ranges[low - 1].end;
}

bool ky_call_filter_chooses(uintptr_t address)
{
	uintptr_t *place = &filter.cache[(address ^ address >> 12) % CACHE_ENTRIES], known;
	bool is_chosen;

	if (__builtin_expect(filter.wants_all, 1))
		return true;
	/* A word is whole, whoever writes it at the same time. */
	known = __atomic_load_n(place, __ATOMIC_RELAXED);
	if (known >> 1 == address)
		return known & 1;
	is_chosen = call_filter_find(address);
	__atomic_store_n(place, address << 1 | is_chosen, __ATOMIC_RELAXED);
	return is_chosen;
}
