/* SPDX-License-Identifier: MIT */
/* The functions of SQLite that Kymo needs. They are loaded with the first query. */
#ifndef KY_SQL_SQL_LIBRARY_H
#define KY_SQL_SQL_LIBRARY_H

#include <sqlite3.h>

#include <kymo/error.h>

#include "os/library.h"

#define KY_SQLITE_FUNCTIONS(X)          \
	X(sqlite3_open_v2)              \
	X(sqlite3_close_v2)             \
	X(sqlite3_prepare_v2)           \
	X(sqlite3_step)                 \
	X(sqlite3_finalize)             \
	X(sqlite3_complete)             \
	X(sqlite3_reset)                \
	X(sqlite3_bind_null)            \
	X(sqlite3_bind_blob)            \
	X(sqlite3_bind_parameter_index) \
	X(sqlite3_progress_handler)     \
	X(sqlite3_errmsg)               \
	X(sqlite3_error_offset)         \
	X(sqlite3_column_count)         \
	X(sqlite3_column_name)          \
	X(sqlite3_column_type)          \
	X(sqlite3_column_int64)         \
	X(sqlite3_column_double)        \
	X(sqlite3_column_text)          \
	X(sqlite3_column_blob)          \
	X(sqlite3_column_bytes)         \
	X(sqlite3_bind_parameter_count) \
	X(sqlite3_bind_parameter_name)  \
	X(sqlite3_bind_int64)           \
	X(sqlite3_bind_double)          \
	X(sqlite3_bind_text)            \
	X(sqlite3_create_module_v2)     \
	X(sqlite3_create_function_v2)   \
	X(sqlite3_declare_vtab)         \
	X(sqlite3_vtab_collation)       \
	X(sqlite3_result_int64)         \
	X(sqlite3_result_double)        \
	X(sqlite3_result_text)          \
	X(sqlite3_result_null)          \
	X(sqlite3_result_error_nomem)   \
	X(sqlite3_value_type)           \
	X(sqlite3_value_int64)          \
	X(sqlite3_value_double)         \
	X(sqlite3_value_text)           \
	X(sqlite3_value_bytes)          \
	X(sqlite3_malloc64)             \
	X(sqlite3_free)                 \
	X(sqlite3_mprintf)              \
	X(sqlite3_set_authorizer)       \
	X(sqlite3_hard_heap_limit64)    \
	X(sqlite3_limit)                \
	X(sqlite3_vfs_find)             \
	X(sqlite3_vfs_register)         \
	X(sqlite3_vfs_unregister)       \
	X(sqlite3_db_config)

KY_SQLITE_FUNCTIONS(KY_LIBRARY_TYPE)

struct ky_sqlite_library {
	KY_SQLITE_FUNCTIONS(KY_LIBRARY_MEMBER)
};

extern struct ky_sqlite_library ky_sqlite;

/* KYMO_E_UNSUPPORTED: the library is missing. Not from several threads at once. */
int ky_sqlite_load(struct kymo_error *err);

#endif
