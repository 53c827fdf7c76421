/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "import/common/import.h"

/* The viewer frees the paths of dropped files, and opens later ones through the same imports. */
static void test_places_outlive_the_callers_paths(void **state)
{
	static const char line[] =
		"7 1795713893.000001 openat(AT_FDCWD, \"a\", O_RDONLY) = -1 ENOENT (No such file) <0.000004>\n";
	struct ky_import imports = KY_IMPORT_INIT;
	char path[] = "/tmp/kymo-test-import-XXXXXX", same[sizeof(path)];
	char *const paths[] = {path};
	struct kymo_error err;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, line, sizeof(line) - 1), sizeof(line) - 1);
	memcpy(same, path, sizeof(path));
	assert_int_equal(
		ky_import_paths(&imports, (char **)(uintptr_t)paths, 1, NULL, NULL, false, &err),
		KYMO_OK);
	assert_int_equal(unlink(path), 0);
	close(fd);
	memset(path, 'x', sizeof(path) - 1);
	assert_true(imports.places.len > 0);
	for (size_t i = 0; i < imports.places.len; i++)
		assert_string_equal(imports.places.data[i].path, same);
	ky_import_fini(&imports);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places_outlive_the_callers_paths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
