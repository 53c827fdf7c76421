/* SPDX-License-Identifier: MIT */
#include "symbols/kdi-model.h"

int ky_kdi_model_init(struct ky_kdi_model *model)
{
	*model = (struct ky_kdi_model){0};
	ky_arena_init(&model->arena);
	ky_names_init(&model->names);
	ky_names_init(&model->file_names);
	return ky_vec_push(&model->types, (struct ky_kdi_type){.kind = KY_KDI_VOID, .name = ""});
}

void ky_kdi_model_fini(struct ky_kdi_model *model)
{
	ky_vec_fini(&model->segments);
	ky_vec_fini(&model->functions);
	ky_vec_fini(&model->lines);
	ky_vec_fini(&model->inlined);
	ky_vec_fini(&model->files);
	ky_vec_fini(&model->types);
	ky_vec_fini(&model->members);
	ky_names_fini(&model->names);
	ky_names_fini(&model->file_names);
	ky_arena_fini(&model->arena);
}

const char *ky_kdi_model_text(struct ky_kdi_model *model, const char *text)
{
	char *known;

	if (!text || !*text)
		return "";
	known = ky_names_get(&model->names, text);
	if (known)
		return known;
	known = ky_arena_strdup(&model->arena, text);
	return known && ky_names_set(&model->names, known, known) == 0 ? known : NULL;
}

uint32_t ky_kdi_model_file(struct ky_kdi_model *model, const char *path)
{
	const char *copy = ky_kdi_model_text(model, path);
	uintptr_t number = copy ? (uintptr_t)ky_names_get(&model->file_names, copy) : 0;

	if (number)
		return (uint32_t)(number - 1);
	if (!copy || ky_vec_push(&model->files, copy) < 0 ||
	    ky_names_set(&model->file_names, copy, (void *)(uintptr_t)model->files.len) < 0)
		return UINT32_MAX;
	return (uint32_t)(model->files.len - 1);
}

uint32_t ky_kdi_model_type(struct ky_kdi_model *model, const struct ky_kdi_type *type)
{
	struct ky_kdi_type copy = *type;

	copy.name = ky_kdi_model_text(model, type->name);
	copy.first_member = (uint32_t)model->members.len;
	copy.n_members = 0;
	if (!copy.name || model->types.len >= KY_KDI_TYPES_MAX ||
	    ky_vec_push(&model->types, copy) < 0)
		return 0;
	return (uint32_t)(model->types.len - 1);
}

int ky_kdi_model_member(struct ky_kdi_model *model, const struct ky_kdi_member *member)
{
	struct ky_kdi_member copy = *member;

	copy.name = ky_kdi_model_text(model, member->name);
	if (model->members.len >= KY_KDI_MEMBERS_MAX)
		return KYMO_E_LIMIT;
	return copy.name ? ky_vec_push(&model->members, copy) : KYMO_E_MEMORY;
}
