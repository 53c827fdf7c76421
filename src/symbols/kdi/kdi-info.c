/* SPDX-License-Identifier: MIT */
#include "symbols/kdi/kdi-info.h"

int ky_kdi_info_init(struct ky_kdi_info *info)
{
	*info = (struct ky_kdi_info){0};
	ky_arena_init(&info->arena);
	ky_names_init(&info->names);
	ky_names_init(&info->file_names);
	return ky_vec_push(&info->types, (struct ky_kdi_type){.kind = KY_KDI_VOID, .name = ""});
}

void ky_kdi_info_fini(struct ky_kdi_info *info)
{
	ky_vec_fini(&info->segments);
	ky_vec_fini(&info->functions);
	ky_vec_fini(&info->lines);
	ky_vec_fini(&info->inlined);
	ky_vec_fini(&info->files);
	ky_vec_fini(&info->types);
	ky_vec_fini(&info->members);
	ky_names_fini(&info->names);
	ky_names_fini(&info->file_names);
	ky_arena_fini(&info->arena);
}

const char *ky_kdi_info_text(struct ky_kdi_info *info, const char *text)
{
	char *known;

	if (!text || !*text)
		return "";
	known = ky_names_get(&info->names, text);
	if (known)
		return known;
	known = ky_arena_strdup(&info->arena, text);
	return known && ky_names_set(&info->names, known, known) == 0 ? known : NULL;
}

uint32_t ky_kdi_info_file(struct ky_kdi_info *info, const char *path)
{
	const char *copy = ky_kdi_info_text(info, path);
	uintptr_t number = copy ? (uintptr_t)ky_names_get(&info->file_names, copy) : 0;

	if (number)
		return (uint32_t)(number - 1);
	if (!copy || ky_vec_push(&info->files, copy) < 0 ||
	    ky_names_set(&info->file_names, copy, (void *)(uintptr_t)info->files.len) < 0)
		return UINT32_MAX;
	return (uint32_t)(info->files.len - 1);
}

uint32_t ky_kdi_info_type(struct ky_kdi_info *info, const struct ky_kdi_type *type)
{
	struct ky_kdi_type copy = *type;

	copy.name = ky_kdi_info_text(info, type->name);
	copy.first_member = (uint32_t)info->members.len;
	copy.n_members = 0;
	if (!copy.name || info->types.len >= KY_KDI_TYPES_MAX ||
	    ky_vec_push(&info->types, copy) < 0)
		return 0;
	return (uint32_t)(info->types.len - 1);
}

int ky_kdi_info_member(struct ky_kdi_info *info, const struct ky_kdi_member *member)
{
	struct ky_kdi_member copy = *member;

	copy.name = ky_kdi_info_text(info, member->name);
	if (info->members.len >= KY_KDI_MEMBERS_MAX)
		return KYMO_E_LIMIT;
	return copy.name ? ky_vec_push(&info->members, copy) : KYMO_E_MEMORY;
}
