/* SPDX-License-Identifier: MIT */
/* The members of struct task_struct, read in part, are where libbpf finds them among all of the kernel's types. */
#include "unit.h"

#include <string.h>

#include <bpf/btf.h>

#include "kernel/bpf/libbpf.h"
#include "kernel/bpf/object.h"
#include "kernel/bpf/task-btf.h"

static int64_t offset_of(const struct btf *btf, const char *name)
{
	int32_t id = btf__find_by_name_kind(btf, "task_struct", BTF_KIND_STRUCT);
	const struct btf_type *type = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;
	uint32_t size;
	const struct btf_header *head = btf__raw_data(btf, &size);
	const char *texts = (const char *)head + head->hdr_len + head->str_off;

	for (uint32_t i = 0; type && i < btf_vlen(type); i++)
		if (strcmp(texts + btf_members(type)[i].name_off, name) == 0)
			return btf_member_bit_offset(type, i);
	return -1;
}

static void same_offsets(void **state)
{
	static const char *const names[] = {"pid", "prio", "comm"};
	struct btf *all, *part;

	(void)state;
	if (!ky_bpf_has_btf() || ky_libbpf_load(NULL) < 0)
		skip();
	all = btf__load_vmlinux_btf();
	part = ky_bpf_task_btf();
	assert_non_null(all);
	assert_non_null(part);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_true(offset_of(all, names[i]) > 0);
		assert_int_equal(offset_of(part, names[i]), offset_of(all, names[i]));
	}
	assert_int_equal(offset_of(part, "flags"), -1);
	btf__free(part);
	btf__free(all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_offsets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
