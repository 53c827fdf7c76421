/* SPDX-License-Identifier: MIT */
#include "symbols/kdi/kdi-to-dwarf.h"

#include <dwarf.h>
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <string.h>
#include <unistd.h>

#include "os/elf-file.h"
#include "os/file.h"

#define BYTES_MAX ((size_t)128 << 20)
#define UNIT_HEAD 11 /* u32 length, u16 version, u32 abbreviations, u8 bytes of an address */

/* A function or type has at least one byte in the file, whatever number the file claims. */
static uint32_t to_dwarf_bound(const struct ky_kdi *kdi, uint32_t claimed)
{
	return claimed < ky_kdi_size(kdi) ? claimed : (uint32_t)ky_kdi_size(kdi);
}

/* ---- abbreviations ----------------------------------------------------------------------- */

/* What entries there are; each attribute has one form. */
enum {
	A_END,
	A_UNIT,
	A_FUNCTION,
	A_VOID_FUNCTION,
	A_PARAMETER,
	A_NAMELESS_PARAMETER,
	A_BASE,
	A_POINTER,
	A_VOID_POINTER,
	A_CONST,
	A_VOID_CONST,
	A_VOLATILE,
	A_VOID_VOLATILE,
	A_TYPEDEF,
	A_VOID_TYPEDEF,
	A_ARRAY,
	A_RANGE,
	A_STRUCT,
	A_UNION,
	A_FORWARD,
	A_MEMBER,
	A_NAMELESS_MEMBER,
	A_BITS,
	A_ENUM,
	A_VALUE,
	A_SUBROUTINE,
	A_KINDS
};

/* The tag, whether there are children, and pairs of attributes and forms. */
static const uint8_t abbreviations[A_KINDS][12] = {
	[A_UNIT] = {DW_TAG_compile_unit, 1, DW_AT_language, DW_FORM_data1, DW_AT_low_pc,
		    DW_FORM_addr, DW_AT_high_pc, DW_FORM_data8},
	[A_FUNCTION] = {DW_TAG_subprogram, 1, DW_AT_name, DW_FORM_string, DW_AT_low_pc,
			DW_FORM_addr, DW_AT_high_pc, DW_FORM_data8, DW_AT_type, DW_FORM_ref4},
	[A_VOID_FUNCTION] = {DW_TAG_subprogram, 1, DW_AT_name, DW_FORM_string, DW_AT_low_pc,
			     DW_FORM_addr, DW_AT_high_pc, DW_FORM_data8},
	[A_PARAMETER] = {DW_TAG_formal_parameter, 0, DW_AT_name, DW_FORM_string, DW_AT_type,
			 DW_FORM_ref4},
	[A_NAMELESS_PARAMETER] = {DW_TAG_formal_parameter, 0, DW_AT_type, DW_FORM_ref4},
	[A_BASE] = {DW_TAG_base_type, 0, DW_AT_name, DW_FORM_string, DW_AT_byte_size, DW_FORM_udata,
		    DW_AT_encoding, DW_FORM_data1},
	[A_POINTER] = {DW_TAG_pointer_type, 0, DW_AT_byte_size, DW_FORM_data1, DW_AT_type,
		       DW_FORM_ref4},
	[A_VOID_POINTER] = {DW_TAG_pointer_type, 0, DW_AT_byte_size, DW_FORM_data1},
	[A_CONST] = {DW_TAG_const_type, 0, DW_AT_type, DW_FORM_ref4},
	[A_VOID_CONST] = {DW_TAG_const_type, 0},
	[A_VOLATILE] = {DW_TAG_volatile_type, 0, DW_AT_type, DW_FORM_ref4},
	[A_VOID_VOLATILE] = {DW_TAG_volatile_type, 0},
	[A_TYPEDEF] = {DW_TAG_typedef, 0, DW_AT_name, DW_FORM_string, DW_AT_type, DW_FORM_ref4},
	[A_VOID_TYPEDEF] = {DW_TAG_typedef, 0, DW_AT_name, DW_FORM_string},
	[A_ARRAY] = {DW_TAG_array_type, 1, DW_AT_type, DW_FORM_ref4},
	[A_RANGE] = {DW_TAG_subrange_type, 0, DW_AT_count, DW_FORM_udata},
	[A_STRUCT] = {DW_TAG_structure_type, 1, DW_AT_name, DW_FORM_string, DW_AT_byte_size,
		      DW_FORM_udata},
	[A_UNION] = {DW_TAG_union_type, 1, DW_AT_name, DW_FORM_string, DW_AT_byte_size,
		     DW_FORM_udata},
	[A_FORWARD] = {DW_TAG_structure_type, 0, DW_AT_name, DW_FORM_string, DW_AT_declaration,
		       DW_FORM_flag_present},
	[A_MEMBER] = {DW_TAG_member, 0, DW_AT_name, DW_FORM_string, DW_AT_type, DW_FORM_ref4,
		      DW_AT_data_member_location, DW_FORM_udata},
	[A_NAMELESS_MEMBER] = {DW_TAG_member, 0, DW_AT_type, DW_FORM_ref4,
			       DW_AT_data_member_location, DW_FORM_udata},
	[A_BITS] = {DW_TAG_member, 0, DW_AT_name, DW_FORM_string, DW_AT_type, DW_FORM_ref4,
		    DW_AT_bit_size, DW_FORM_udata, DW_AT_data_bit_offset, DW_FORM_udata},
	[A_ENUM] = {DW_TAG_enumeration_type, 1, DW_AT_name, DW_FORM_string, DW_AT_byte_size,
		    DW_FORM_udata},
	[A_VALUE] = {DW_TAG_enumerator, 0, DW_AT_name, DW_FORM_string, DW_AT_const_value,
		     DW_FORM_sdata},
	[A_SUBROUTINE] = {DW_TAG_subroutine_type, 0},
};

/* Four bytes that become the place of a type. */
struct reference {
	uint32_t at, type;
};

struct dwarf_writer {
	const struct ky_kdi *kdi;
	struct ky_strbuf abbreviations, info;
	uint32_t *places; /* of types, in info */
	KY_VEC(struct reference) references;
	bool failed;
};

static void to_dwarf_uleb(struct ky_strbuf *out, uint64_t value)
{
	do {
		ky_strbuf_addc(out, (char)((value & 127) | (value > 127 ? 128 : 0)));
		value >>= 7;
	} while (value);
}

static void to_dwarf_sleb(struct ky_strbuf *out, int64_t value)
{
	bool more = true;

	while (more) {
		uint8_t byte = value & 127;

		value >>= 7; /* of gcc and clang: with the sign */
		more = !((value == 0 && !(byte & 64)) || (value == -1 && byte & 64));
		ky_strbuf_addc(out, (char)(byte | (more ? 128 : 0)));
	}
}

static void to_dwarf_text(struct ky_strbuf *out, const char *text)
{
	ky_strbuf_add(out, text, strlen(text) + 1);
}

static void to_dwarf_number(struct ky_strbuf *out, uint64_t value, size_t bytes)
{
	ky_strbuf_add(out, (const char *)&value, bytes);
}

static void to_dwarf_abbreviations(struct ky_strbuf *out)
{
	for (uint64_t i = 1; i < A_KINDS; i++) {
		const uint8_t *row = abbreviations[i];

		to_dwarf_uleb(out, i);
		to_dwarf_uleb(out, row[0]);
		ky_strbuf_addc(out, (char)row[1]);
		for (size_t at = 2; at < sizeof(abbreviations[i]) && row[at]; at += 2) {
			to_dwarf_uleb(out, row[at]);
			to_dwarf_uleb(out, row[at + 1]);
		}
		to_dwarf_number(out, 0, 2);
	}
	ky_strbuf_addc(out, 0);
}

/* ---- types --------------------------------------------------------------------------------- */

/* Four bytes that become the place of @type. */
static void to_dwarf_reference(struct dwarf_writer *writer, uint32_t type)
{
	struct reference reference = {(uint32_t)writer->info.len, type};

	writer->failed |= ky_vec_push(&writer->references, reference) < 0;
	to_dwarf_number(&writer->info, 0, 4);
}

/* An entry of @kind; of @void_kind where it is of void. */
static void to_dwarf_of(struct dwarf_writer *writer, const struct ky_kdi_view *view, int kind,
			int void_kind)
{
	struct ky_strbuf *out = &writer->info;

	to_dwarf_uleb(out, (uint64_t)(view->target ? kind : void_kind));
	if (kind == A_POINTER)
		ky_strbuf_addc(out, 8);
	if (kind == A_TYPEDEF)
		to_dwarf_text(out, view->name);
	if (view->target)
		to_dwarf_reference(writer, view->target);
}

static void to_dwarf_member(struct dwarf_writer *writer, const struct ky_kdi_member *member)
{
	struct ky_strbuf *out = &writer->info;
	int kind = member->bits ? A_BITS : *member->name ? A_MEMBER : A_NAMELESS_MEMBER;

	if (!member->type || member->at < 0)
		return;
	to_dwarf_uleb(out, (uint64_t)kind);
	if (kind != A_NAMELESS_MEMBER)
		to_dwarf_text(out, member->name);
	to_dwarf_reference(writer, member->type);
	if (member->bits)
		to_dwarf_uleb(out, member->bits);
	to_dwarf_uleb(out, member->bits ? (uint64_t)member->at : (uint64_t)member->at / 8);
}

/* A struct, union or enumeration. */
static void to_dwarf_members(struct dwarf_writer *writer, struct ky_kdi_view *view)
{
	struct ky_strbuf *out = &writer->info;
	struct ky_kdi_member member;
	bool is_enum = view->kind == KY_KDI_ENUM;

	to_dwarf_uleb(out, view->kind == KY_KDI_STRUCT ? A_STRUCT : is_enum ? A_ENUM : A_UNION);
	to_dwarf_text(out, view->name);
	to_dwarf_uleb(out, view->bytes);
	while (ky_kdi_next_member(view, &member) && out->len < BYTES_MAX) {
		if (is_enum) {
			to_dwarf_uleb(out, A_VALUE);
			to_dwarf_text(out, member.name);
			to_dwarf_sleb(out, member.at);
		} else {
			to_dwarf_member(writer, &member);
		}
	}
	to_dwarf_uleb(out, A_END);
}

static void to_dwarf_base(struct dwarf_writer *writer, const struct ky_kdi_view *view)
{
	static const uint8_t encodings[] = {
		[KY_KDI_UNSIGNED] = DW_ATE_unsigned, [KY_KDI_SIGNED] = DW_ATE_signed,
		[KY_KDI_BOOL] = DW_ATE_boolean,	     [KY_KDI_CHAR] = DW_ATE_signed_char,
		[KY_KDI_FLOAT] = DW_ATE_float,
	};
	uint8_t encoding = view->encoding < sizeof(encodings) ? encodings[view->encoding]
							      : (uint8_t)DW_ATE_unsigned;

	to_dwarf_uleb(&writer->info, A_BASE);
	to_dwarf_text(&writer->info, view->name);
	to_dwarf_uleb(&writer->info, view->bytes);
	ky_strbuf_addc(&writer->info, (char)encoding);
}

/* void has no arrays: such a type is one behind pointers. */
static void to_dwarf_array(struct dwarf_writer *writer, const struct ky_kdi_view *view)
{
	to_dwarf_uleb(&writer->info, view->target ? A_ARRAY : A_SUBROUTINE);
	if (!view->target)
		return;
	to_dwarf_reference(writer, view->target);
	to_dwarf_uleb(&writer->info, A_RANGE);
	to_dwarf_uleb(&writer->info, view->bytes);
	to_dwarf_uleb(&writer->info, A_END);
}

static void to_dwarf_type(struct dwarf_writer *writer, struct ky_kdi_view *view)
{
	switch (view->kind) {
	case KY_KDI_BASE:
		to_dwarf_base(writer, view);
		break;
	case KY_KDI_POINTER:
		to_dwarf_of(writer, view, A_POINTER, A_VOID_POINTER);
		break;
	case KY_KDI_CONST:
	case KY_KDI_RESTRICT: /* nothing that a tracer must know */
		to_dwarf_of(writer, view, A_CONST, A_VOID_CONST);
		break;
	case KY_KDI_VOLATILE:
		to_dwarf_of(writer, view, A_VOLATILE, A_VOID_VOLATILE);
		break;
	case KY_KDI_TYPEDEF:
		to_dwarf_of(writer, view, A_TYPEDEF, A_VOID_TYPEDEF);
		break;
	case KY_KDI_ARRAY:
		to_dwarf_array(writer, view);
		break;
	case KY_KDI_STRUCT:
	case KY_KDI_UNION:
	case KY_KDI_ENUM:
		to_dwarf_members(writer, view);
		break;
	case KY_KDI_FORWARD:
		to_dwarf_uleb(&writer->info, A_FORWARD);
		to_dwarf_text(&writer->info, view->name);
		break;
	default: /* a signature behind a pointer */
		to_dwarf_uleb(&writer->info, A_SUBROUTINE);
		break;
	}
}

/* ---- functions ----------------------------------------------------------------------------- */

static void to_dwarf_function(struct dwarf_writer *writer, const struct ky_kdi_found *found,
			      struct ky_kdi_view *signature)
{
	struct ky_strbuf *out = &writer->info;
	struct ky_kdi_member member;

	to_dwarf_uleb(out, signature->target ? A_FUNCTION : A_VOID_FUNCTION);
	to_dwarf_text(out, found->name);
	to_dwarf_number(out, found->address, 8);
	to_dwarf_number(out, found->bytes, 8);
	if (signature->target)
		to_dwarf_reference(writer, signature->target);
	while (ky_kdi_next_member(signature, &member) && out->len < BYTES_MAX) {
		if (!member.type)
			continue;
		to_dwarf_uleb(out, *member.name ? A_PARAMETER : A_NAMELESS_PARAMETER);
		if (*member.name)
			to_dwarf_text(out, member.name);
		to_dwarf_reference(writer, member.type);
	}
	to_dwarf_uleb(out, A_END);
}

static void to_dwarf_function_at(struct dwarf_writer *writer, uint32_t i)
{
	struct ky_kdi_view signature;
	struct ky_kdi_found found;
	uint32_t type = ky_kdi_signature(writer->kdi, i);

	if (type && ky_kdi_type(writer->kdi, type, &signature) &&
	    signature.kind == KY_KDI_FUNCTION && ky_kdi_function(writer->kdi, i, &found))
		to_dwarf_function(writer, &found, &signature);
}

static void to_dwarf_functions(struct dwarf_writer *writer)
{
	for (uint32_t i = 0; i < to_dwarf_bound(writer->kdi, ky_kdi_functions(writer->kdi)) &&
			     writer->info.len < BYTES_MAX;
	     i++)
		to_dwarf_function_at(writer, i);
}

/* C++ has objects that are passed by their addresses. */
static uint8_t to_dwarf_language(const struct ky_kdi *kdi)
{
	struct ky_kdi_found found;

	for (uint32_t i = 0; i < to_dwarf_bound(kdi, ky_kdi_functions(kdi)); i++)
		if (ky_kdi_function(kdi, i, &found) && strstr(found.name, "::"))
			return DW_LANG_C_plus_plus;
	return DW_LANG_C99;
}

static void to_dwarf_info(struct dwarf_writer *writer, const struct ky_kdi_image *image)
{
	struct ky_strbuf *out = &writer->info;
	uint32_t n_types = to_dwarf_bound(writer->kdi, ky_kdi_types(writer->kdi)), length;

	to_dwarf_number(out, 0, 4);
	to_dwarf_number(out, 4, 2);
	to_dwarf_number(out, 0, 4);
	to_dwarf_number(out, 8, 1);
	to_dwarf_uleb(out, A_UNIT);
	to_dwarf_number(out, to_dwarf_language(writer->kdi), 1);
	to_dwarf_number(out, image->address, 8);
	to_dwarf_number(out, image->bytes, 8);
	to_dwarf_functions(writer);
	for (uint32_t i = 1; i < n_types && out->len < BYTES_MAX; i++) {
		struct ky_kdi_view view;

		writer->places[i] = (uint32_t)out->len;
		if (!ky_kdi_type(writer->kdi, i, &view))
			break;
		to_dwarf_type(writer, &view);
	}
	to_dwarf_uleb(out, A_END);
	if (ky_strbuf_failed(out) || out->len >= BYTES_MAX)
		return;
	length = (uint32_t)out->len - 4;
	memcpy(out->data, &length, 4);
	ky_vec_foreach(&writer->references, reference) {
		uint32_t place = reference->type < n_types ? writer->places[reference->type] : 0;

		memcpy(out->data + reference->at, &place, 4);
	}
}

/* ---- the file ------------------------------------------------------------------------------ */

static const char section_names[] = "\0.debug_info\0.debug_abbrev\0.shstrtab";

enum { NAME_INFO = 1, NAME_ABBREV = 13, NAME_NAMES = 27 };

static void to_dwarf_section(struct ky_strbuf *out, uint32_t name, uint32_t type, uint64_t offset,
			     uint64_t bytes)
{
	const Elf64_Shdr section = {.sh_name = name,
				    .sh_type = type,
				    .sh_offset = offset,
				    .sh_size = bytes,
				    .sh_addralign = 1};

	ky_strbuf_add(out, (const char *)&section, sizeof(section));
}

static void to_dwarf_file(const struct dwarf_writer *writer, const struct ky_kdi_image *image,
			  struct ky_strbuf *out)
{
	const uint64_t parts = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr) + 4 * sizeof(Elf64_Shdr);
	const uint64_t info = parts, abbrev = info + writer->info.len,
		       names = abbrev + writer->abbreviations.len;
	const Elf64_Ehdr head = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			    EV_CURRENT},
		.e_type = image->type,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(Elf64_Ehdr),
		.e_shoff = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr),
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 4,
		.e_shstrndx = 3,
	};
	const Elf64_Phdr load = {.p_type = PT_LOAD,
				 .p_flags = PF_R | PF_X,
				 .p_vaddr = image->address,
				 .p_paddr = image->address,
				 .p_memsz = image->first_bytes,
				 .p_align = image->alignment};

	ky_strbuf_add(out, (const char *)&head, sizeof(head));
	ky_strbuf_add(out, (const char *)&load, sizeof(load));
	to_dwarf_section(out, 0, SHT_NULL, 0, 0);
	to_dwarf_section(out, NAME_INFO, SHT_PROGBITS, info, writer->info.len);
	to_dwarf_section(out, NAME_ABBREV, SHT_PROGBITS, abbrev, writer->abbreviations.len);
	to_dwarf_section(out, NAME_NAMES, SHT_STRTAB, names, sizeof(section_names));
	ky_strbuf_add(out, writer->info.data, writer->info.len);
	ky_strbuf_add(out, writer->abbreviations.data, writer->abbreviations.len);
	ky_strbuf_add(out, section_names, sizeof(section_names));
}

int ky_kdi_to_dwarf(const struct ky_kdi *kdi, const struct ky_kdi_image *image,
		    struct ky_strbuf *out)
{
	struct dwarf_writer writer = {
		.kdi = kdi, .abbreviations = KY_STRBUF_INIT, .info = KY_STRBUF_INIT};
	int ret = KYMO_OK;

	writer.places =
		calloc(to_dwarf_bound(kdi, ky_kdi_types(kdi)) + 1ull, sizeof(*writer.places));
	if (writer.places) {
		to_dwarf_abbreviations(&writer.abbreviations);
		to_dwarf_info(&writer, image);
	}
	if (writer.info.len >= BYTES_MAX)
		ret = KYMO_E_LIMIT;
	else if (!writer.places || writer.failed || ky_strbuf_failed(&writer.info) ||
		 ky_strbuf_failed(&writer.abbreviations))
		ret = KYMO_E_MEMORY;
	else
		to_dwarf_file(&writer, image, out);
	free(writer.places);
	ky_vec_fini(&writer.references);
	ky_strbuf_fini(&writer.abbreviations);
	ky_strbuf_fini(&writer.info);
	return !ret && ky_strbuf_failed(out) ? KYMO_E_MEMORY : ret;
}

/* ---- of a program ---------------------------------------------------------------------------- */

/* What the file is, and where its part with the lowest address is. */
static bool to_dwarf_look(int fd, struct ky_kdi_image *image)
{
	Elf64_Ehdr head;
	uint64_t begin = UINT64_MAX, end = 0;

	if (pread(fd, &head, sizeof(head), 0) != sizeof(head) ||
	    head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_phentsize != sizeof(Elf64_Phdr))
		return false;
	for (int i = 0; i < head.e_phnum; i++) {
		Elf64_Phdr part;
		off_t at = (off_t)(head.e_phoff + (uint64_t)i * sizeof(part));

		if (pread(fd, &part, sizeof(part), at) != sizeof(part))
			return false;
		if (part.p_type != PT_LOAD || part.p_memsz > UINT64_MAX / 2 ||
		    part.p_vaddr > UINT64_MAX / 2)
			continue;
		if (part.p_vaddr < begin) {
			begin = part.p_vaddr;
			image->alignment = part.p_align;
			image->first_bytes = part.p_memsz;
		}
		end = part.p_vaddr + part.p_memsz > end ? part.p_vaddr + part.p_memsz : end;
	}
	image->type = head.e_type;
	image->address = begin;
	image->bytes = end - begin;
	return begin < end;
}

static int to_dwarf_memory(const struct ky_strbuf *bytes)
{
	int fd = memfd_create("kymo-dwarf", MFD_CLOEXEC);
	size_t done = 0;

	while (fd >= 0 && done < bytes->len) {
		ssize_t n = write(fd, bytes->data + done, bytes->len - done);

		if (n <= 0) {
			close(fd);
			return -1;
		}
		done += (size_t)n;
	}
	return fd;
}

int ky_kdi_debug_file(const char *path, const char *const *dirs, size_t n_dirs)
{
	int fd = ky_file_open_regular(AT_FDCWD, path, O_RDONLY | O_CLOEXEC), made = -1;
	struct ky_strbuf bytes = KY_STRBUF_INIT;
	struct ky_kdi_image image = {0};
	struct ky_elf_info info = {0};
	struct ky_kdi *kdi = NULL;

	if (fd < 0)
		return -1;
	if (ky_elf_read(fd, &info) && info.build_id_bytes && to_dwarf_look(fd, &image))
		kdi = ky_kdi_open_id(info.build_id, info.build_id_bytes, dirs, n_dirs, true);
	close(fd);
	if (kdi && ky_kdi_to_dwarf(kdi, &image, &bytes) == KYMO_OK)
		made = to_dwarf_memory(&bytes);
	ky_kdi_close(kdi);
	ky_strbuf_fini(&bytes);
	return made;
}
