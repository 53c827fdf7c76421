/* SPDX-License-Identifier: MIT */
/* What the files share that add probes: probe.c, and probe-sdt-add.c for those that programs bring along. */
#ifndef KY_KERNEL_PROBE_PROBE_INTERNAL_H
#define KY_KERNEL_PROBE_PROBE_INTERNAL_H

#include "kernel/probe/probe-file.h"
#include "kernel/probe/probe.h"

/* "bash:readline": of the last part of @path, or of @provider. */
void ky_probe_name_event(const char *path, const char *provider, const char *name, char *out,
			 size_t size);
/* The kernel splits its definitions at spaces. 0 or KYMO_E_UNSUPPORTED. */
int ky_probe_check_path(const char *path, struct kymo_error *err);

/*
 * The event @name@suffix for @definition, among those from @from on, or a new one. Overloads and instances of one
 * function have arguments of other types. NULL: out of memory, or there are too many.
 */
struct ky_probe_event *ky_probe_take_event(struct ky_probes *probes, size_t from, const char *name,
					   const char *suffix, char type,
					   const struct ky_strbuf *definition);
/* Add the definition "@place@arguments" to @event; @text is used up. 0 or KYMO_E_MEMORY. */
int ky_probe_add_place(struct ky_probes *probes, struct ky_probe_event *event,
		       struct ky_strbuf *text, struct kymo_error *err);

/*
 * Keep which clones of @spec's function there are that are not at @addresses; of a function of the kernel, all.
 * 0 or KYMO_E_MEMORY.
 */
int ky_probe_find_clones(struct ky_probes *probes, const struct ky_probe_file *file,
			 const struct ky_probe_spec *spec,
			 const struct ky_probe_addresses *addresses, struct kymo_error *err);
int ky_probe_find_kernel_clones(struct ky_probes *probes, const char *function,
				struct kymo_error *err);
/*
 * The clones of @function that no probe is for: their @names, for messages. Returns the first of them, which
 * lives as long as @probes. NULL: there are none, or they were asked for before.
 */
const char *ky_probe_clones_of(struct ky_probes *probes, const char *file, const char *function,
			       struct ky_strbuf *names);

/* ky_probes_add_sdt() without " if EXPR". */
int ky_probe_add_sdt_text(struct ky_probes *probes, const char *text, struct kymo_error *err);

#endif
