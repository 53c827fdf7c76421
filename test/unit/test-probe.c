/* SPDX-License-Identifier: MIT */
/* What people write to name probes, and operands of SDT probes. */
#include "unit.h"

#include <string.h>

#include "kernel/probe/probe-sdt.h"
#include "kernel/probe/probe-spec.h"

/* A variable whose address an operand names. */
int probe_test_variable = 5;

static struct ky_probe_spec spec;
static struct kymo_error err;

static int parse(const char *text)
{
	return ky_probe_spec_parse(text, true, &spec, &err);
}

static void place(void **state)
{
	assert_int_equal(parse("/bin/sh:main"), 0);
	assert_string_equal(spec.file, "/bin/sh");
	assert_string_equal(spec.function, "main");
	assert_string_equal(spec.name, "");
	assert_int_equal(spec.n_arguments, 0);
	assert_int_equal(parse("  start=./a:b=c/d:_x.isra.0+0x10 ( )"), 0);
	assert_string_equal(spec.name, "start");
	assert_string_equal(spec.file, "./a:b=c/d");
	assert_string_equal(spec.function, "_x.isra.0");
	assert_int_equal(spec.offset, 16);
	assert_int_equal(parse("./a:b:shop::Shop::~Shop+4(this)"), 0);
	assert_string_equal(spec.file, "./a:b");
	assert_string_equal(spec.function, "shop::Shop::~Shop");
	assert_int_equal(spec.offset, 4);
	assert_int_equal(ky_probe_spec_parse("do_exit(%di)", false, &spec, &err), 0);
	assert_string_equal(spec.function, "do_exit");
}

static void arguments(void **state)
{
	assert_int_equal(parse("a:f(x, y->z.w[12]->v , n=$retval:string, %r8:s8,arg2)"), 0);
	assert_int_equal(spec.n_arguments, 5);
	assert_string_equal(spec.arguments[0].name, "x");
	assert_string_equal(spec.arguments[1].root, "y");
	assert_string_equal(spec.arguments[1].name, "y_z_w_12_v");
	assert_int_equal(spec.arguments[1].n_steps, 4);
	assert_int_equal(spec.arguments[1].steps[0].kind, KY_PROBE_ARROW);
	assert_int_equal(spec.arguments[1].steps[1].kind, KY_PROBE_DOT);
	assert_int_equal(spec.arguments[1].steps[2].index, 12);
	assert_true(spec.arguments[2].is_return);
	assert_string_equal(spec.arguments[2].name, "n");
	assert_string_equal(spec.arguments[2].type, "string");
	assert_string_equal(spec.arguments[3].root, "%r8");
	assert_string_equal(spec.arguments[3].name, "r8");
	/* As long as a field's name may be. */
	assert_int_equal(parse("a:f(abcdefghijklmnop->qrstuvwxyzabcdefghijklmnop)"), 0);
	assert_int_equal(strlen(spec.arguments[0].name), KY_PROBE_FIELD_BYTES - 1);
}

static void mistakes(void **state)
{
	static const char *const texts[] = {
		"",
		"x",
		":",
		":f",
		"a:",
		"a:(x)",
		"a::f",
		"a:f(",
		"a:f(x",
		"a:f(x,y",
		"a:f(,)",
		"a:f(x y)",
		"a:f(x->)",
		"a:f(x.)",
		"a:f(x[)",
		"a:f(x[])",
		"a:f(x[1)",
		"a:f(x[-1])",
		"a:f(x[9999999])",
		"a:f(x:)",
		"a:f(1)",
		"a:f($foo)",
		"a:f(%)",
		"a:f(x))",
		"a:f(x) y",
		"a:f(x, x)",
		"a:f+(x)",
		"a:f+x",
		"a:f+1x",
		"a:f+-1",
		"a:f g",
		"a:f(x=)",
		"a:f(1=x)",
		"a:f(x:abcdefghijklmnopq)",
		"a:f(x->a->b->c->d->e->f->g->h->i)",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (parse(texts[i]) != KYMO_E_INVALID)
			fail_msg("'%s' is taken", texts[i]);
		assert_true(err.message[0] && err.hint[0]);
	}
}

/* What @arguments become; their number that is left out is @left_out. */
static void operands_are(const struct ky_probe_file *file, const char *arguments,
			 const char *wanted, int left_out)
{
	struct ky_strbuf fetch = KY_STRBUF_INIT;
	int n = ky_sdt_fetch(file, 0, arguments, &fetch);

	assert_string_equal(ky_strbuf_text(&fetch), wanted);
	assert_int_equal(n, left_out);
	ky_strbuf_fini(&fetch);
}

static void operands(void **state)
{
	struct ky_probe_file file;
	char wanted[64];
	uint64_t address;

	assert_int_equal(ky_probe_file_open(&file, "/proc/self/exe", &err), 0);
	operands_are(&file, "", "", 0);
	operands_are(&file, "-4@%edi 8@%r12 1@%r9b -2@%r10w 8@%rsp",
		     " arg1=%di:s32 arg2=%r12:u64 arg3=%r9:u8 arg4=%r10:s16 arg5=%sp:u64", 0);
	operands_are(&file, "4@$-7 -8@16(%rbp) 8@(%rax) 1@-1(%rsp)",
		     " arg1=\\-7:u32 arg2=+16(%bp):s64 arg3=+0(%ax):u64 arg4=-1(%sp):u8", 0);
	operands_are(&file, "%rdi", " arg1=%di:u64", 0);
	/* Numbers of arguments stay, whatever is left out. */
	operands_are(&file,
		     "8f@%xmm0 1@%ah 8@%rsi 8@8(%rax,%rcx,4) 3@%di 4@%nosuch 4@nosuch(%rip) 4@",
		     " arg3=%si:u64", 7);
	assert_true(ky_probe_file_symbol(&file, "probe_test_variable", 19, &address));
	snprintf(wanted, sizeof(wanted), " arg1=@+%lu:s32", (unsigned long)address + 4);
	operands_are(&file, "-4@probe_test_variable+4(%rip)", wanted, 0);
	ky_probe_file_close(&file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(place),
		cmocka_unit_test(arguments),
		cmocka_unit_test(mistakes),
		cmocka_unit_test(operands),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
