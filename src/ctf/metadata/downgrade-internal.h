/* SPDX-License-Identifier: MIT */
/* What the parts of lowering (downgrade.h) share: the trace, names, numbers, choices. */
#ifndef KY_CTF_METADATA_DOWNGRADE_INTERNAL_H
#define KY_CTF_METADATA_DOWNGRADE_INTERNAL_H

#include "base/hash.h"
#include "ctf/metadata/downgrade.h"

/* A member to be put before the one at hand: a copy of the number that tells its length or option. */
struct ky_downgrade_copy {
	struct ky_field_class *cls;
	const char *what; /* "length", "selector" */
};

KY_VEC_TYPE(ky_downgrade_members, struct ky_member);

/* A structure whose members are being lowered: member *index is at hand, those before are done, and copies among them. */
struct ky_downgrade_open {
	const struct ky_field_class *st;
	const size_t *index;
	const struct ky_downgrade_members *done;
};

struct ky_downgrade {
	struct ky_trace_class *trace; /* a copy: ours to change */
	enum ky_scope scope;
	struct ky_strbuf path; /* of the field at hand, for notes */
	struct ky_downgrade_notes *notes;
	KY_VEC(struct ky_downgrade_copy) copies; /* of the members at hand, the innermost's last */
	KY_VEC(struct ky_downgrade_open) open;	 /* around the field at hand, the innermost last */
	struct ky_map done; /* members of structures that are done -> their structure */
	struct kymo_error *err;
};

/* Names that are given already, in one structure or variant. Made when somebody asks first. */
struct ky_downgrade_names {
	struct ky_names given;
	bool known;
};

/* ---- downgrade-names.c: 0 or KYMO_E_MEMORY ------------------------------------------------------ */

/* Give member @index of @parent a name that CTF 1.8 allows. @names: of @parent. */
int ky_downgrade_member_name(struct ky_downgrade *l, const struct ky_field_class *parent,
			     size_t index, struct ky_downgrade_names *names);
/*
 * Name @members of @parent, the @n @copies for the member that is displayed as @of; the first of them will be member
 * @first.
 */
int ky_downgrade_copy_names(struct ky_downgrade *l, const struct ky_field_class *parent,
			    const char *of, struct ky_member *members, size_t first,
			    const struct ky_downgrade_copy *copies, size_t n,
			    struct ky_downgrade_names *names);
/* Give all options of @variant names of their own. */
int ky_downgrade_option_names(struct ky_downgrade *l, struct ky_field_class *variant);
int ky_downgrade_clock_names(struct ky_downgrade *l);
int ky_downgrade_env_names(struct ky_downgrade *l);

/* ---- downgrade-numbers.c ------------------------------------------------------------------------ */

/* What is no integer of up to 64 bits or float in CTF 1.8 becomes what is. 0 or KYMO_E_MEMORY. */
int ky_downgrade_number(struct ky_downgrade *l, struct ky_field_class *cls);
/* One field of several roles is as many fields: the first is what others refer to. Likewise. */
int ky_downgrade_roles(struct ky_downgrade *l, struct ky_field_class *st);
/* Give @cls two labels, for values that @ranges hold and for all others. Likewise. */
int ky_downgrade_label_two(struct ky_downgrade *l, struct ky_field_class *cls, const char *in,
			   const struct ky_range *ranges, size_t n_ranges, const char *out);

/* ---- downgrade-choice.c ------------------------------------------------------------------------- */

/* Make the length of @cls (text, blob, array) one that CTF 1.8 can express. 0 or KYMO_E_MEMORY. */
int ky_downgrade_length(struct ky_downgrade *l, struct ky_field_class *cls);
/* Make an optional field a variant. Likewise. */
int ky_downgrade_optional(struct ky_downgrade *l, struct ky_field_class *cls);
/* Give a variant's options names, and its selector labels for them. Likewise. */
int ky_downgrade_variant(struct ky_downgrade *l, struct ky_field_class *cls);

#endif
