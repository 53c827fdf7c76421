/* SPDX-License-Identifier: MIT */
#include "sql/sql-library.h"

#define SYMBOL(name) {#name, offsetof(struct ky_sqlite_library, name)},

static const struct ky_library_symbol symbols[] = {KY_SQLITE_FUNCTIONS(SYMBOL){0}};

struct ky_sqlite_library ky_sqlite;

int ky_sqlite_load(struct kymo_error *err)
{
	return ky_sqlite.sqlite3_step ? KYMO_OK
				      : ky_library_load("libsqlite3.so.0", "libsqlite3-0", symbols,
							&ky_sqlite, err);
}
