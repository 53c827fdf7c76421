/* SPDX-License-Identifier: MIT */
/* Names of probes, operands of SDT probes, and which of them are wanted: any text; what is taken is within its bounds. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/probe/probe-sdt.h"
#include "kernel/probe/probe-spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct ky_probe_spec *spec)
{
	if (!spec->function[0] || spec->n_arguments > KY_PROBE_MAX_ARGUMENTS)
		abort();
	for (unsigned int i = 0; i < spec->n_arguments; i++) {
		const struct ky_probe_argument *argument = &spec->arguments[i];

		if (!argument->name[0] || strlen(argument->name) >= KY_PROBE_FIELD_BYTES ||
		    !argument->root[0] || argument->n_steps > KY_PROBE_MAX_STEPS)
			abort();
	}
}

/* The arguments that the first line wants of the operands, of which the file speaks, or of those here. */
static void pick(const char *text, const char *fetched)
{
	static const char here[] = " arg1=%di:s32 arg2=-4(%bp):u64 arg3=\\5:s32 arg12=@+16:u8";
	static struct ky_probe_spec spec;
	struct ky_strbuf fetch = KY_STRBUF_INIT;
	char *line = strndup(text, strcspn(text, "\n"));

	if (line && ky_sdt_arguments_parse(line, &spec, NULL) == 0) {
		(void)ky_sdt_arguments_pick(&spec, "a:b", fetched, &fetch, NULL);
		ky_strbuf_clear(&fetch);
		(void)ky_sdt_arguments_pick(&spec, "a:b", here, &fetch, NULL);
	}
	free(line);
	ky_strbuf_fini(&fetch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ky_probe_file file;
	static struct ky_probe_spec spec;
	struct ky_strbuf fetch = KY_STRBUF_INIT;
	char *text = malloc(size + 1);

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	if (!file.dwfl && ky_probe_file_open(&file, "/proc/self/exe", NULL) < 0)
		abort();
	for (int has_file = 0; has_file < 2; has_file++) {
		if (ky_probe_spec_parse(text, has_file, &spec, NULL) < 0)
			continue;
		check(&spec);
		for (unsigned int i = 0; i < spec.n_arguments; i++)
			(void)ky_probe_raw_fetch(&spec.arguments[i], &fetch, NULL);
	}
	ky_strbuf_clear(&fetch);
	(void)ky_sdt_fetch(&file, 0, text, &fetch);
	pick(text, ky_strbuf_text(&fetch));
	ky_strbuf_fini(&fetch);
	free(text);
	return 0;
}
