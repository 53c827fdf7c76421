/* SPDX-License-Identifier: MIT */
/*
 * libbpf, which the first command that needs it loads: with libelf's and its own relocations, it would be a tenth of the time of
 * a short command. This file defines the functions of libbpf that Kymo calls, under their own names, since the skeletons call
 * them, too. Each passes its call on to the library. Where the library is missing, they fail; ky_libbpf_load() says why.
 */
#include "kernel/bpf/libbpf.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "os/library.h"

#define STRING(x)  #x
#define VERSION(x) STRING(x)
/* The version whose headers were there when this was compiled. */
#define FILE_NAME "libbpf.so." VERSION(LIBBPF_MAJOR_VERSION)
#define PACKAGE	  "libbpf" VERSION(LIBBPF_MAJOR_VERSION)

/* VALUE(type, value without the library, name, parameters, arguments); NOTHING(name, parameters, arguments): no value. */
#define FUNCTIONS(VALUE, NOTHING)                                                                  \
	VALUE(int, -ENOSYS, bpf_iter_create, (int link_fd), (link_fd))                             \
	VALUE(int, -ENOSYS, bpf_link__destroy, (struct bpf_link * link), (link))                   \
	VALUE(int, -ENOSYS, bpf_link__fd, (const struct bpf_link *link), (link))                   \
	VALUE(int, -ENOSYS, bpf_map__fd, (const struct bpf_map *map), (map))                       \
	VALUE(uint32_t, 0, bpf_map__key_size, (const struct bpf_map *map), (map))                  \
	VALUE(uint32_t, 0, bpf_map__map_flags, (const struct bpf_map *map), (map))                 \
	VALUE(uint32_t, 0, bpf_map__max_entries, (const struct bpf_map *map), (map))               \
	VALUE(const char *, NULL, bpf_map__name, (const struct bpf_map *map), (map))               \
	VALUE(int, -ENOSYS, bpf_map__reuse_fd, (struct bpf_map * map, int fd), (map, fd))          \
	VALUE(int, -ENOSYS, bpf_map__set_key_size, (struct bpf_map * map, uint32_t size),          \
	      (map, size))                                                                         \
	VALUE(int, -ENOSYS, bpf_map__set_max_entries,                                              \
	      (struct bpf_map * map, uint32_t max_entries), (map, max_entries))                    \
	VALUE(enum bpf_map_type, BPF_MAP_TYPE_UNSPEC, bpf_map__type, (const struct bpf_map *map),  \
	      (map))                                                                               \
	VALUE(int, -ENOSYS, bpf_map_create,                                                        \
	      (enum bpf_map_type map_type, const char *map_name, uint32_t key_size,                \
	       uint32_t value_size, uint32_t max_entries, const struct bpf_map_create_opts *opts), \
	      (map_type, map_name, key_size, value_size, max_entries, opts))                       \
	VALUE(int, -ENOSYS, bpf_map_delete_elem, (int fd, const void *key), (fd, key))             \
	VALUE(int, -ENOSYS, bpf_map_get_next_key, (int fd, const void *key, void *next_key),       \
	      (fd, key, next_key))                                                                 \
	VALUE(int, -ENOSYS, bpf_map_lookup_batch,                                                  \
	      (int fd, void *in_batch, void *out_batch, void *keys, void *values, uint32_t *count, \
	       const struct bpf_map_batch_opts *opts),                                             \
	      (fd, in_batch, out_batch, keys, values, count, opts))                                \
	VALUE(int, -ENOSYS, bpf_map_lookup_elem, (int fd, const void *key, void *value),           \
	      (fd, key, value))                                                                    \
	VALUE(int, -ENOSYS, bpf_map_update_elem,                                                   \
	      (int fd, const void *key, const void *value, __u64 flags), (fd, key, value, flags))  \
	VALUE(int, -ENOSYS, bpf_obj_get_info_by_fd, (int bpf_fd, void *info, uint32_t *info_len),  \
	      (bpf_fd, info, info_len))                                                            \
	VALUE(int, -ENOSYS, bpf_object__attach_skeleton, (struct bpf_object_skeleton * s), (s))    \
	NOTHING(bpf_object__destroy_skeleton, (struct bpf_object_skeleton * s), (s))               \
	VALUE(struct bpf_program *, NULL, bpf_object__find_program_by_name,                        \
	      (const struct bpf_object *obj, const char *name), (obj, name))                       \
	VALUE(int, -ENOSYS, bpf_object__load_skeleton, (struct bpf_object_skeleton * s), (s))      \
	VALUE(struct bpf_program *, NULL, bpf_object__next_program,                                \
	      (const struct bpf_object *obj, struct bpf_program *prog), (obj, prog))               \
	VALUE(int, -ENOSYS, bpf_object__open_skeleton,                                             \
	      (struct bpf_object_skeleton * s, const struct bpf_object_open_opts *opts),           \
	      (s, opts))                                                                           \
	VALUE(int, -ENOSYS, bpf_prog_load,                                                         \
	      (enum bpf_prog_type prog_type, const char *prog_name, const char *license,           \
	       const struct bpf_insn *insns, size_t insn_cnt,                                      \
	       const struct bpf_prog_load_opts *opts),                                             \
	      (prog_type, prog_name, license, insns, insn_cnt, opts))                              \
	VALUE(struct bpf_link *, NULL, bpf_program__attach, (const struct bpf_program *prog),      \
	      (prog))                                                                              \
	VALUE(struct bpf_link *, NULL, bpf_program__attach_iter,                                   \
	      (const struct bpf_program *prog, const struct bpf_iter_attach_opts *opts),           \
	      (prog, opts))                                                                        \
	VALUE(struct bpf_link *, NULL, bpf_program__attach_tracepoint,                             \
	      (const struct bpf_program *prog, const char *tp_category, const char *tp_name),      \
	      (prog, tp_category, tp_name))                                                        \
	VALUE(struct bpf_link *, NULL, bpf_program__attach_tracepoint_opts,                        \
	      (const struct bpf_program *prog, const char *tp_category, const char *tp_name,       \
	       const struct bpf_tracepoint_opts *opts),                                            \
	      (prog, tp_category, tp_name, opts))                                                  \
	VALUE(struct bpf_link *, NULL, bpf_program__attach_uprobe_opts,                            \
	      (const struct bpf_program *prog, pid_t pid, const char *binary_path,                 \
	       size_t func_offset, const struct bpf_uprobe_opts *opts),                            \
	      (prog, pid, binary_path, func_offset, opts))                                         \
	VALUE(bool, false, bpf_program__autoload, (const struct bpf_program *prog), (prog))        \
	VALUE(int, -ENOSYS, bpf_program__fd, (const struct bpf_program *prog), (prog))             \
	VALUE(size_t, 0, bpf_program__insn_cnt, (const struct bpf_program *prog), (prog))          \
	VALUE(const struct bpf_insn *, NULL, bpf_program__insns, (const struct bpf_program *prog), \
	      (prog))                                                                              \
	NOTHING(bpf_program__set_autoattach, (struct bpf_program * prog, bool autoattach),         \
		(prog, autoattach))                                                                \
	VALUE(int, -ENOSYS, bpf_program__set_autoload, (struct bpf_program * prog, bool autoload), \
	      (prog, autoload))                                                                    \
	VALUE(int, -ENOSYS, bpf_raw_tracepoint_open, (const char *name, int prog_fd),              \
	      (name, prog_fd))                                                                     \
	VALUE(int32_t, -ENOSYS, btf__find_by_name_kind,                                            \
	      (const struct btf *btf, const char *type_name, uint32_t kind),                       \
	      (btf, type_name, kind))                                                              \
	VALUE(int, -ENOSYS, btf__add_array,                                                        \
	      (struct btf * btf, int index_type_id, int elem_type_id, __u32 nr_elems),             \
	      (btf, index_type_id, elem_type_id, nr_elems))                                        \
	VALUE(int, -ENOSYS, btf__add_field,                                                        \
	      (struct btf * btf, const char *name, int field_type_id, __u32 bit_offset,            \
	       __u32 bit_size),                                                                    \
	      (btf, name, field_type_id, bit_offset, bit_size))                                    \
	VALUE(int, -ENOSYS, btf__add_int,                                                          \
	      (struct btf * btf, const char *name, size_t byte_sz, int encoding),                  \
	      (btf, name, byte_sz, encoding))                                                      \
	VALUE(int, -ENOSYS, btf__add_struct, (struct btf * btf, const char *name, __u32 sz),       \
	      (btf, name, sz))                                                                     \
	NOTHING(btf__free, (struct btf * btf), (btf))                                              \
	VALUE(struct btf *, NULL, btf__load_vmlinux_btf, (void), ())                               \
	VALUE(struct btf *, NULL, btf__new_empty, (void), ())                                      \
	VALUE(const void *, NULL, btf__raw_data, (const struct btf *btf, uint32_t *size),          \
	      (btf, size))                                                                         \
	VALUE(const struct btf_type *, NULL, btf__type_by_id,                                      \
	      (const struct btf *btf, uint32_t id), (btf, id))                                     \
	VALUE(int, -ENOSYS, libbpf_num_possible_cpus, (void), ())                                  \
	VALUE(int, -ENOSYS, libbpf_probe_bpf_helper,                                               \
	      (enum bpf_prog_type prog_type, enum bpf_func_id helper_id, const void *opts),        \
	      (prog_type, helper_id, opts))                                                        \
	VALUE(libbpf_print_fn_t, NULL, libbpf_set_print, (libbpf_print_fn_t fn), (fn))             \
	VALUE(int, -ENOSYS, ring_buffer__consume, (struct ring_buffer * rb), (rb))                 \
	NOTHING(ring_buffer__free, (struct ring_buffer * rb), (rb))                                \
	VALUE(struct ring_buffer *, NULL, ring_buffer__new,                                        \
	      (int map_fd, ring_buffer_sample_fn sample_cb, void *ctx,                             \
	       const struct ring_buffer_opts *opts),                                               \
	      (map_fd, sample_cb, ctx, opts))

#define NAME_OF_VALUE(type, failing, name, params, args) X(name)
#define NAME_OF_NOTHING(name, params, args)		 X(name)
#define NAMES						 FUNCTIONS(NAME_OF_VALUE, NAME_OF_NOTHING)

#define X KY_LIBRARY_TYPE
NAMES
#undef X

#define X KY_LIBRARY_MEMBER
static struct libbpf {
	NAMES
} libbpf;
#undef X

#define X(name) {#name, offsetof(struct libbpf, name)},
static const struct ky_library_symbol symbols[] = {NAMES{0}};
#undef X

static bool is_loaded;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int ky_libbpf_load(struct kymo_error *err)
{
	int ret = KYMO_OK;

	if (__atomic_load_n(&is_loaded, __ATOMIC_ACQUIRE))
		return KYMO_OK;
	pthread_mutex_lock(&lock);
	if (!is_loaded)
		ret = ky_library_load(FILE_NAME, PACKAGE, symbols, &libbpf, err);
	if (!ret)
		__atomic_store_n(&is_loaded, true, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
	return ret;
}

static bool has_library(void)
{
	if (ky_libbpf_load(NULL) == KYMO_OK)
		return true;
	errno = ENOSYS;
	return false;
}

#define DEFINE_VALUE(type, failing, name, params, args)              \
	type name params                                             \
	{                                                            \
		return has_library() ? libbpf.name args : (failing); \
	}
#define DEFINE_NOTHING(name, params, args) \
	void name params                   \
	{                                  \
		if (has_library())         \
			libbpf.name args;  \
	}

FUNCTIONS(DEFINE_VALUE, DEFINE_NOTHING)
