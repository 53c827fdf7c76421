/* SPDX-License-Identifier: MIT */
/*
 * libdw and libelf, which the first command that needs them loads: loading them takes as long as all the rest of a short command.
 * This file defines the functions that Kymo calls, under their own names. Each passes its call on to the library. Only the
 * functions that begin something load it: without their objects, no other function can be called.
 */
#include "symbols/dwarf/libdw.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <gelf.h>
#include <libelf.h>

#include "os/library.h"

/* VALUE(type, name, parameters, arguments); NOTHING(name, parameters, arguments): no value. */
#define DW_FUNCTIONS(VALUE, NOTHING)                                                               \
	VALUE(int, dwarf_aggregate_size, (Dwarf_Die * die, Dwarf_Word * size), (die, size))        \
	VALUE(Dwarf_Attribute *, dwarf_attr,                                                       \
	      (Dwarf_Die * die, unsigned int search_name, Dwarf_Attribute *result),                \
	      (die, search_name, result))                                                          \
	VALUE(Dwarf_Attribute *, dwarf_attr_integrate,                                             \
	      (Dwarf_Die * die, unsigned int search_name, Dwarf_Attribute *result),                \
	      (die, search_name, result))                                                          \
	VALUE(Dwarf *, dwarf_begin_elf, (Elf * elf, Dwarf_Cmd cmd, Elf_Scn * scngrp),              \
	      (elf, cmd, scngrp))                                                                  \
	VALUE(int, dwarf_child, (Dwarf_Die * die, Dwarf_Die * result), (die, result))              \
	VALUE(const char *, dwarf_diename, (Dwarf_Die * die), (die))                               \
	VALUE(Dwarf_Off, dwarf_dieoffset, (Dwarf_Die * die), (die))                                \
	VALUE(int, dwarf_end, (Dwarf * dwarf), (dwarf))                                            \
	VALUE(int, dwarf_entrypc, (Dwarf_Die * die, Dwarf_Addr * return_addr), (die, return_addr)) \
	VALUE(const char *, dwarf_filesrc,                                                         \
	      (Dwarf_Files * file, size_t idx, Dwarf_Word * mtime, Dwarf_Word * length),           \
	      (file, idx, mtime, length))                                                          \
	VALUE(int, dwarf_formflag, (Dwarf_Attribute * attr, bool *return_bool),                    \
	      (attr, return_bool))                                                                 \
	VALUE(Dwarf_Die *, dwarf_formref_die, (Dwarf_Attribute * attr, Dwarf_Die * die_mem),       \
	      (attr, die_mem))                                                                     \
	VALUE(int, dwarf_formsdata, (Dwarf_Attribute * attr, Dwarf_Sword * return_uval),           \
	      (attr, return_uval))                                                                 \
	VALUE(const char *, dwarf_formstring, (Dwarf_Attribute * attrp), (attrp))                  \
	VALUE(int, dwarf_formudata, (Dwarf_Attribute * attr, Dwarf_Word * return_uval),            \
	      (attr, return_uval))                                                                 \
	VALUE(int, dwarf_func_inline_instances,                                                    \
	      (Dwarf_Die * func, int (*callback)(Dwarf_Die *, void *), void *arg),                 \
	      (func, callback, arg))                                                               \
	VALUE(int, dwarf_get_units,                                                                \
	      (Dwarf * dwarf, Dwarf_CU * cu, Dwarf_CU * *next_cu, Dwarf_Half * version,            \
	       uint8_t * unit_type, Dwarf_Die * cudie, Dwarf_Die * subdie),                        \
	      (dwarf, cu, next_cu, version, unit_type, cudie, subdie))                             \
	VALUE(Dwarf_Arange *, dwarf_getarange_addr, (Dwarf_Aranges * aranges, Dwarf_Addr addr),    \
	      (aranges, addr))                                                                     \
	VALUE(int, dwarf_getarangeinfo,                                                            \
	      (Dwarf_Arange * arange, Dwarf_Addr * addrp, Dwarf_Word * lengthp,                    \
	       Dwarf_Off * offsetp),                                                               \
	      (arange, addrp, lengthp, offsetp))                                                   \
	VALUE(int, dwarf_getaranges, (Dwarf * dwarf, Dwarf_Aranges * *aranges, size_t * naranges), \
	      (dwarf, aranges, naranges))                                                          \
	VALUE(Elf *, dwarf_getelf, (Dwarf * dwarf), (dwarf))                                       \
	VALUE(int, dwarf_getlocation,                                                              \
	      (Dwarf_Attribute * attr, Dwarf_Op * *expr, size_t * exprlen), (attr, expr, exprlen)) \
	VALUE(int, dwarf_getlocation_addr,                                                         \
	      (Dwarf_Attribute * attr, Dwarf_Addr address, Dwarf_Op * *exprs, size_t * exprlens,   \
	       size_t nlocs),                                                                      \
	      (attr, address, exprs, exprlens, nlocs))                                             \
	VALUE(int, dwarf_getscopes, (Dwarf_Die * cudie, Dwarf_Addr pc, Dwarf_Die * *scopes),       \
	      (cudie, pc, scopes))                                                                 \
	VALUE(Dwarf_Line *, dwarf_getsrc_die, (Dwarf_Die * cudie, Dwarf_Addr addr), (cudie, addr)) \
	VALUE(int, dwarf_getsrcfiles, (Dwarf_Die * cudie, Dwarf_Files * *files, size_t * nfiles),  \
	      (cudie, files, nfiles))                                                              \
	VALUE(int, dwarf_getsrclines, (Dwarf_Die * cudie, Dwarf_Lines * *lines, size_t * nlines),  \
	      (cudie, lines, nlines))                                                              \
	VALUE(int, dwarf_hasattr, (Dwarf_Die * die, unsigned int search_name), (die, search_name)) \
	VALUE(int, dwarf_haspc, (Dwarf_Die * die, Dwarf_Addr pc), (die, pc))                       \
	VALUE(int, dwarf_lineaddr, (Dwarf_Line * line, Dwarf_Addr * addrp), (line, addrp))         \
	VALUE(int, dwarf_lineendsequence, (Dwarf_Line * line, bool *flagp), (line, flagp))         \
	VALUE(int, dwarf_lineno, (Dwarf_Line * line, int *linep), (line, linep))                   \
	VALUE(const char *, dwarf_linesrc,                                                         \
	      (Dwarf_Line * line, Dwarf_Word * mtime, Dwarf_Word * length), (line, mtime, length)) \
	VALUE(int, dwarf_lowpc, (Dwarf_Die * die, Dwarf_Addr * return_addr), (die, return_addr))   \
	VALUE(int, dwarf_nextcu,                                                                   \
	      (Dwarf * dwarf, Dwarf_Off off, Dwarf_Off * next_off, size_t * header_sizep,          \
	       Dwarf_Off * abbrev_offsetp, uint8_t * address_sizep, uint8_t * offset_sizep),       \
	      (dwarf, off, next_off, header_sizep, abbrev_offsetp, address_sizep, offset_sizep))   \
	VALUE(Dwarf_Die *, dwarf_offdie, (Dwarf * dbg, Dwarf_Off offset, Dwarf_Die * result),      \
	      (dbg, offset, result))                                                               \
	VALUE(Dwarf_Line *, dwarf_onesrcline, (Dwarf_Lines * lines, size_t idx), (lines, idx))     \
	VALUE(ptrdiff_t, dwarf_ranges,                                                             \
	      (Dwarf_Die * die, ptrdiff_t offset, Dwarf_Addr * basep, Dwarf_Addr * startp,         \
	       Dwarf_Addr * endp),                                                                 \
	      (die, offset, basep, startp, endp))                                                  \
	NOTHING(dwarf_setalt, (Dwarf * dwarf, Dwarf * alt), (dwarf, alt))                          \
	VALUE(int, dwarf_siblingof, (Dwarf_Die * die, Dwarf_Die * result), (die, result))          \
	VALUE(int, dwarf_srclang, (Dwarf_Die * die), (die))                                        \
	VALUE(int, dwarf_tag, (Dwarf_Die * die), (die))                                            \
	VALUE(ssize_t, dwelf_dwarf_gnu_debugaltlink,                                               \
	      (Dwarf * dwarf, const char **name, const void **build_id), (dwarf, name, build_id))  \
	VALUE(bool, dwfl_attach_state,                                                             \
	      (Dwfl * dwfl, Elf * elf, pid_t pid, const Dwfl_Thread_Callbacks *thread_callbacks,   \
	       void *dwfl_arg),                                                                    \
	      (dwfl, elf, pid, thread_callbacks, dwfl_arg))                                        \
	VALUE(int, dwfl_build_id_find_elf,                                                         \
	      (Dwfl_Module * module, void **data, const char *name, Dwarf_Addr base, char **file,  \
	       Elf **elf),                                                                         \
	      (module, data, name, base, file, elf))                                               \
	NOTHING(dwfl_end, (Dwfl * dwfl), (dwfl))                                                   \
	VALUE(bool, dwfl_frame_pc, (Dwfl_Frame * state, Dwarf_Addr * pc, bool *isactivation),      \
	      (state, pc, isactivation))                                                           \
	VALUE(int, dwfl_getthread_frames,                                                          \
	      (Dwfl * dwfl, pid_t tid, int (*callback)(Dwfl_Frame *, void *), void *arg),          \
	      (dwfl, tid, callback, arg))                                                          \
	VALUE(const char *, dwfl_lineinfo,                                                         \
	      (Dwfl_Line * line, Dwarf_Addr * addr, int *linep, int *colp, Dwarf_Word *mtime,      \
	       Dwarf_Word *length),                                                                \
	      (line, addr, linep, colp, mtime, length))                                            \
	VALUE(const char *, dwfl_module_addrname, (Dwfl_Module * mod, GElf_Addr address),          \
	      (mod, address))                                                                      \
	VALUE(int, dwfl_module_build_id,                                                           \
	      (Dwfl_Module * mod, const unsigned char **bits, GElf_Addr *vaddr),                   \
	      (mod, bits, vaddr))                                                                  \
	VALUE(Dwarf *, dwfl_module_getdwarf, (Dwfl_Module * module, Dwarf_Addr * bias),            \
	      (module, bias))                                                                      \
	VALUE(Elf *, dwfl_module_getelf, (Dwfl_Module * module, GElf_Addr * bias), (module, bias)) \
	VALUE(Dwfl_Line *, dwfl_module_getsrc, (Dwfl_Module * mod, Dwarf_Addr addr), (mod, addr))  \
	VALUE(const char *, dwfl_module_getsym_info,                                               \
	      (Dwfl_Module * mod, int ndx, GElf_Sym *sym, GElf_Addr *addr, GElf_Word *shndxp,      \
	       Elf **elfp, Dwarf_Addr *bias),                                                      \
	      (mod, ndx, sym, addr, shndxp, elfp, bias))                                           \
	VALUE(int, dwfl_module_getsymtab, (Dwfl_Module * mod), (mod))                              \
	VALUE(const char *, dwfl_module_info,                                                      \
	      (Dwfl_Module * mod, void ***userdata, Dwarf_Addr *start, Dwarf_Addr *end,            \
	       Dwarf_Addr *dwbias, Dwarf_Addr *symbias, const char **mainfile,                     \
	       const char **debugfile),                                                            \
	      (mod, userdata, start, end, dwbias, symbias, mainfile, debugfile))                   \
	VALUE(int, dwfl_offline_section_address,                                                   \
	      (Dwfl_Module * module, void **data, const char *name, Dwarf_Addr base,               \
	       const char *section, GElf_Word index, const GElf_Shdr *header, Dwarf_Addr *addr),   \
	      (module, data, name, base, section, index, header, addr))                            \
	NOTHING(dwfl_report_begin, (Dwfl * dwfl), (dwfl))                                          \
	VALUE(int, dwfl_report_end,                                                                \
	      (Dwfl * dwfl,                                                                        \
	       int (*removed)(Dwfl_Module *, void *, const char *, Dwarf_Addr, void *),            \
	       void *arg),                                                                         \
	      (dwfl, removed, arg))                                                                \
	VALUE(Dwfl_Module *, dwfl_report_module,                                                   \
	      (Dwfl * dwfl, const char *name, Dwarf_Addr start, Dwarf_Addr end),                   \
	      (dwfl, name, start, end))                                                            \
	VALUE(Dwfl_Module *, dwfl_report_offline,                                                  \
	      (Dwfl * dwfl, const char *name, const char *file_name, int fd),                      \
	      (dwfl, name, file_name, fd))                                                         \
	VALUE(int, dwfl_standard_find_debuginfo,                                                   \
	      (Dwfl_Module * module, void **data, const char *name, Dwarf_Addr base,               \
	       const char *file, const char *link, GElf_Word crc, char **found),                   \
	      (module, data, name, base, file, link, crc, found))                                  \
	NOTHING(dwfl_thread_state_register_pc, (Dwfl_Thread * thread, Dwarf_Word pc),              \
		(thread, pc))                                                                      \
	VALUE(bool, dwfl_thread_state_registers,                                                   \
	      (Dwfl_Thread * thread, int firstreg, unsigned int nregs, const Dwarf_Word *regs),    \
	      (thread, firstreg, nregs, regs))

#define ELF_FUNCTIONS(VALUE, NOTHING)                                                             \
	VALUE(Elf *, elf_begin, (int fd, Elf_Cmd cmd, Elf *ref), (fd, cmd, ref))                  \
	VALUE(int, elf_end, (Elf * elf), (elf))                                                   \
	VALUE(Elf_Data *, elf_getdata, (Elf_Scn * scn, Elf_Data * data), (scn, data))             \
	VALUE(int, elf_getphdrnum, (Elf * elf, size_t * dst), (elf, dst))                         \
	VALUE(Elf_Scn *, elf_getscn, (Elf * elf, size_t index), (elf, index))                     \
	VALUE(int, elf_getshdrstrndx, (Elf * elf, size_t * dst), (elf, dst))                      \
	VALUE(Elf_Scn *, elf_nextscn, (Elf * elf, Elf_Scn * scn), (elf, scn))                     \
	VALUE(char *, elf_rawfile, (Elf * elf, size_t * nbytes), (elf, nbytes))                   \
	VALUE(char *, elf_strptr, (Elf * elf, size_t index, size_t offset), (elf, index, offset)) \
	VALUE(unsigned int, elf_version, (unsigned int version), (version))                       \
	VALUE(GElf_Ehdr *, gelf_getehdr, (Elf * elf, GElf_Ehdr * dest), (elf, dest))              \
	VALUE(size_t, gelf_getnote,                                                               \
	      (Elf_Data * data, size_t offset, GElf_Nhdr * result, size_t * name_offset,          \
	       size_t * desc_offset),                                                             \
	      (data, offset, result, name_offset, desc_offset))                                   \
	VALUE(GElf_Phdr *, gelf_getphdr, (Elf * elf, int ndx, GElf_Phdr *dst), (elf, ndx, dst))   \
	VALUE(GElf_Shdr *, gelf_getshdr, (Elf_Scn * scn, GElf_Shdr * dst), (scn, dst))

#define NAME_OF_VALUE(type, name, params, args) X(name)
#define NAME_OF_NOTHING(name, params, args)	X(name)
#define DW_NAMES				X(dwfl_begin) DW_FUNCTIONS(NAME_OF_VALUE, NAME_OF_NOTHING)
#define ELF_NAMES				X(elf_memory) ELF_FUNCTIONS(NAME_OF_VALUE, NAME_OF_NOTHING)

#define X KY_LIBRARY_TYPE
DW_NAMES
ELF_NAMES
#undef X

#define X KY_LIBRARY_MEMBER
static struct libdw {
	DW_NAMES
	ELF_NAMES
} libdw;
#undef X

#define X(name) {#name, offsetof(struct libdw, name)},
static const struct ky_library_symbol dw_symbols[] = {DW_NAMES{0}};
static const struct ky_library_symbol elf_symbols[] = {ELF_NAMES{0}};
#undef X

static bool is_loaded;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int ky_libdw_load(struct kymo_error *err)
{
	int ret = KYMO_OK;

	if (__atomic_load_n(&is_loaded, __ATOMIC_ACQUIRE))
		return KYMO_OK;
	pthread_mutex_lock(&lock);
	if (!is_loaded)
		ret = ky_library_load("libelf.so.1", "libelf1", elf_symbols, &libdw, err);
	if (!ret && !is_loaded)
		ret = ky_library_load("libdw.so.1", "libdw1", dw_symbols, &libdw, err);
	if (!ret)
		__atomic_store_n(
			&is_loaded, true,
			__ATOMIC_RELEASE); /* with the load above: the pointers are there */
	pthread_mutex_unlock(&lock);
	return ret;
}

Dwfl *dwfl_begin(const Dwfl_Callbacks *callbacks)
{
	return ky_libdw_load(NULL) == KYMO_OK ? libdw.dwfl_begin(callbacks) : NULL;
}

Elf *elf_memory(char *image, size_t size)
{
	return ky_libdw_load(NULL) == KYMO_OK ? libdw.elf_memory(image, size) : NULL;
}

#define DEFINE_VALUE(type, name, params, args) \
	type name params                       \
	{                                      \
		return libdw.name args;        \
	}
#define DEFINE_NOTHING(name, params, args) \
	void name params                   \
	{                                  \
		libdw.name args;           \
	}

DW_FUNCTIONS(DEFINE_VALUE, DEFINE_NOTHING)
ELF_FUNCTIONS(DEFINE_VALUE, DEFINE_NOTHING)
