/* SPDX-License-Identifier: MIT */
/* The sizes of the records of BTF, the kernel's own type information. */
#ifndef KY_ABI_BTF_KINDS_H
#define KY_ABI_BTF_KINDS_H

#include <stdint.h>

#include <linux/btf.h>

/* The bytes after the struct btf_type of a type with this @info; -1: a kind that is not known. */
static inline int64_t ky_btf_bytes_behind(uint32_t info)
{
	int64_t n = BTF_INFO_VLEN(info);

	switch (BTF_INFO_KIND(info)) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		return 4;
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return n * (int64_t)sizeof(struct btf_member);
	case BTF_KIND_ENUM:
		return n * (int64_t)sizeof(struct btf_enum);
	case BTF_KIND_ENUM64:
		return n * (int64_t)sizeof(struct btf_enum64);
	case BTF_KIND_FUNC_PROTO:
		return n * (int64_t)sizeof(struct btf_param);
	case BTF_KIND_DATASEC:
		return n * (int64_t)sizeof(struct btf_var_secinfo);
	default:
		return BTF_INFO_KIND(info) > BTF_KIND_ENUM64 ? -1 : 0;
	}
}

#endif
