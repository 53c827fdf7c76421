/* SPDX-License-Identifier: MIT */
/* What functions with mangled names are called. */
#include "unit.h"

#include <string.h>

#include "kernel/probe/probe-name.h"
#include "symbols/demangle/demangle.h"

static void names(void **state)
{
	static const char *const pairs[][2] = {
		{"_Z3addii", "add"},
		{"_ZL5quietv", "quiet"},
		{"_ZN4shop4Shop5placeERNS_5OrderEPKNS_4ItemEi", "shop::Shop::place"},
		{"_ZNK4shop4Shop5placeEv", "shop::Shop::place"},
		{"_ZN4shop4ShopC2Ei", "shop::Shop::Shop"},
		{"_ZN4shop4ShopD0Ev", "shop::Shop::~Shop"},
		{"_ZN4shop3BoxIiE3putERKi", "shop::Box::put"},
		{"_ZN4shop3BoxILi5EN1a4KindELNS1_4KindE3ES_IbEE3putEv", "shop::Box::put"},
		{"_ZNSt6vectorIiSaIiEE9push_backEOi", "std::vector::push_back"},
		{"_ZNSs6appendEPKc", "std::basic_string::append"},
		{"_ZSt9terminatev", "std::terminate"},
		{"_ZN12_GLOBAL__N_15quietEv", "(anonymous namespace)::quiet"},
		{"_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write"},
		{"_ZN57_$LT$r..shop..Item$LT$T$GT$$u20$as$u20$r..shop..Price$GT$5total17h0ef7027a6b0b4569E",
		 "r::shop::Item::total"},
		{"_ZN3std2rt10lang_start28_$u7b$$u7b$closure$u7d$$u7d$17ha86af84d9cc65291E",
		 "std::rt::lang_start::{{closure}}"},
		{"_ZN4core3fmt3num52_$LT$impl$u20$core..fmt..Display$u20$for$u20$u32$GT$3fmt17h0123456789abcdefE",
		 "core::fmt::num::u32::fmt"},
		{"_ZN5alloc3vec16Vec$LT$T$C$A$GT$4push17h0123456789abcdefE",
		 "alloc::vec::Vec::push"},
		{"_ZN42_$LT$$RF$T$u20$as$u20$core..fmt..Debug$GT$3fmt17h0123456789abcdefE",
		 "&T::fmt"},
		{"_RNvCs6GmmlP4bgsG_1r7free_fn", "r::free_fn"},
		{"_RNvMNtCs6GmmlP4bgsG_1r5innerNtB2_5Thing4work", "r::inner::Thing::work"},
		{"_RINvMNtCs6GmmlP4bgsG_1r5innerNtB3_5Thing3genReEB5_", "r::inner::Thing::gen"},
		{"_RINvCs6GmmlP4bgsG_1r5konstKj3_EB2_", "r::konst"},
		{"_RINvC1r5konstKan1f_KpKB3_E", "r::konst"},
		{"_RINvCs6GmmlP4bgsG_1r7genericAhj4_EB2_", "r::generic"},
		{"_RINvCs6GmmlP4bgsG_1r7genericFEuEB2_", "r::generic"},
		{"_RINvC1r7genericFG_UKCRL0_hjEuFK10vectorcallElE", "r::generic"},
		{"_RINvCs6GmmlP4bgsG_1r7genericRDNtB2_2TrEL_EB2_", "r::generic"},
		{"_RINvC1r7genericDG_INtB2_2TrlEp4ItemhNtB2_4SendEL_E", "r::generic"},
		{"_RNvXs0_C1rAhj2_NtB5_2Tr2go", "go"},
		{"_RNvXs_NtCs6GmmlP4bgsG_1r5innerNtB4_5ThingNtB4_2Tr2tr", "r::inner::Thing::tr"},
	};
	static const char *const others[] = {
		"",
		"_",
		"_Z",
		"_ZN",
		"_ZNE",
		"_Z0",
		"_Z9short",
		"_ZN4shop",
		"_ZN4shopI",
		"_ZN5_$LT$17h0123456789abcdefE",
		"_ZTV4Shop",
		"_ZplRK1AS1_",
		"_ZN1AC1Ev.cold",
		"main",
		"_R",
		"_RB_",
		"_RNvB0_3foo",
		"_RNvC",
		"_RNvC99999999999999999999a",
		"_ZNS_3fooE",
		"_ZN3fooILE",
		"_Z99999999999999999999999a",
		"_RMC1a",
		"_RINvC1a1b",
		"_RINvC1a1bKjE",
		"_RINvC1a1bAhE",
		"_RINvC1a1bFhE",
		"_RINvC1a1bDEE",
		"_RINvC1a1bDNtC1a1c",
	};
	char name[KY_DEMANGLED_BYTES], deep[5000];

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		assert_true(ky_demangle(pairs[i][0], name));
		assert_string_equal(name, pairs[i][1]);
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (ky_demangle(others[i], name))
			fail_msg("'%s' is called '%s'", others[i], name);
	/* Neither too deep nor too long. */
	memset(deep, 'I', sizeof(deep));
	memcpy(deep, "_ZN1a", 5);
	deep[sizeof(deep) - 1] = '\0';
	assert_false(ky_demangle(deep, name));
	for (size_t i = 3; i + 2 < sizeof(deep); i += 2)
		memcpy(deep + i, "1a", 2);
	assert_false(ky_demangle(deep, name));
}

static bool is(const char *symbol, const char *wanted)
{
	return ky_probe_name_is(symbol, wanted, strlen(wanted));
}

static void ends(void **state)
{
	static const char symbol[] = "_ZN4shop4Shop5placeEi";

	assert_true(is(symbol, "shop::Shop::place"));
	assert_true(is(symbol, "Shop::place"));
	assert_true(is(symbol, "place"));
	assert_false(is(symbol, "lace"));
	assert_false(is(symbol, "hop::place"));
	assert_false(is(symbol, "::place"));
	assert_false(is(symbol, "a::shop::Shop::place"));
	assert_false(is("place", "place"));
}

static void clones(void **state)
{
	assert_true(ky_probe_name_is_clone("f.constprop.0", "f"));
	assert_true(ky_probe_name_is_clone("f.isra.0.part.3", "f"));
	assert_true(ky_probe_name_is_clone("_ZN4shop4Shop5placeEi.part.0", "shop::Shop::place"));
	assert_true(
		ky_probe_name_is_clone("_ZN4shop4Shop5placeEi.isra.0", "_ZN4shop4Shop5placeEi"));
	assert_false(ky_probe_name_is_clone("f", "f"));
	assert_false(ky_probe_name_is_clone("f.cold", "f"));
	assert_false(ky_probe_name_is_clone("f.part.0.cold", "f"));
	assert_false(ky_probe_name_is_clone("f.12", "f"));
	assert_false(ky_probe_name_is_clone("ff.part.0", "f"));
	assert_false(ky_probe_name_is_clone("f.part.0", "f.part.0"));
	assert_false(ky_probe_name_is_clone(".part.0", ""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(ends),
		cmocka_unit_test(clones),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
