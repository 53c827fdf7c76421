/* SPDX-License-Identifier: MIT */
/*
 * What people write to name a probe:
 *
 *	[NAME=]FILE:FUNCTION[+OFFSET][(ARGUMENT, ...)]
 *
 * an ARGUMENT being  [NAME=]ROOT{->MEMBER | .MEMBER | [INDEX]}[:TYPE]  and a ROOT a parameter's name,
 * argN, %REGISTER, $stackN or $retval. Everything is bounded: it may come from anybody.
 * Threads: any.
 */
#ifndef KY_KERNEL_PROBE_PROBE_SPEC_H
#define KY_KERNEL_PROBE_PROBE_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kymo/error.h>

#define KY_PROBE_MAX_ARGUMENTS 32
#define KY_PROBE_MAX_STEPS     8
#define KY_PROBE_NAME_BYTES    64
#define KY_PROBE_FIELD_BYTES   32 /* the kernel's limit */

enum ky_probe_step_kind {
	KY_PROBE_ARROW,
	KY_PROBE_DOT,
	KY_PROBE_INDEX,
};

struct ky_probe_step {
	enum ky_probe_step_kind kind;
	char member[KY_PROBE_NAME_BYTES];
	uint32_t index;
};

struct ky_probe_argument {
	char name[KY_PROBE_FIELD_BYTES]; /* of the field */
	char root[KY_PROBE_NAME_BYTES];	 /* "fd", "arg1", "%di", "$stack2", "$retval" */
	char type[16];			 /* "string", "x32"; "": as it is declared, else x64 */
	struct ky_probe_step steps[KY_PROBE_MAX_STEPS];
	unsigned int n_steps;
	bool is_return; /* $retval */
};

struct ky_probe_spec {
	char name[KY_PROBE_NAME_BYTES]; /* "": not given */
	char file[4096];
	char function[256];
	uint64_t offset;
	struct ky_probe_argument arguments[KY_PROBE_MAX_ARGUMENTS];
	unsigned int n_arguments;
};

/* @has_file: FILE: stands before the function. 0, or KYMO_E_INVALID with what is wrong. */
int ky_probe_spec_parse(const char *text, bool has_file, struct ky_probe_spec *spec,
			struct kymo_error *err);

#endif
