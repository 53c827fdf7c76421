/* SPDX-License-Identifier: MIT */
#include "sql/sql-temporary.h"

#include <stdio.h>

#include "sql/sql.h"

/* A temporary file; the memory behind it is SQLite's own file. */
struct temporary {
	sqlite3_file file;
	struct ky_sql_temporary *own;
	uint64_t bytes;
};

/* Of SQLite's own file. */
#define FILE_AT ((sizeof(struct temporary) + 15) / 16 * 16)

static sqlite3_file *temporary_base(sqlite3_file *file)
{
	return (sqlite3_file *)((char *)file + FILE_AT);
}

static void temporary_resize(struct temporary *file, uint64_t bytes)
{
	file->own->bytes += bytes - file->bytes;
	file->bytes = bytes;
}

/* ---- a file ----------------------------------------------------------------------------- */

static int temporary_close(sqlite3_file *file)
{
	sqlite3_file *base = temporary_base(file);

	temporary_resize((struct temporary *)file, 0);
	return base->pMethods ? base->pMethods->xClose(base) : SQLITE_OK;
}

static int temporary_read(sqlite3_file *file, void *to, int n, sqlite3_int64 at)
{
	sqlite3_file *base = temporary_base(file);

	return base->pMethods->xRead(base, to, n, at);
}

static int temporary_write(sqlite3_file *file, const void *from, int n, sqlite3_int64 at)
{
	struct temporary *own = (struct temporary *)file;
	sqlite3_file *base = temporary_base(file);
	uint64_t end = (uint64_t)at + (uint64_t)n, more = end > own->bytes ? end - own->bytes : 0;

	if (more && own->own->bytes + more > own->own->max_bytes) {
		own->own->is_full = true;
		return SQLITE_FULL;
	}
	if (more)
		temporary_resize(own, end);
	return base->pMethods->xWrite(base, from, n, at);
}

static int temporary_truncate(sqlite3_file *file, sqlite3_int64 bytes)
{
	struct temporary *own = (struct temporary *)file;
	sqlite3_file *base = temporary_base(file);

	if ((uint64_t)bytes < own->bytes)
		temporary_resize(own, (uint64_t)bytes);
	return base->pMethods->xTruncate(base, bytes);
}

static int temporary_sync(sqlite3_file *file, int flags)
{
	sqlite3_file *base = temporary_base(file);

	return base->pMethods->xSync(base, flags);
}

static int temporary_size(sqlite3_file *file, sqlite3_int64 *bytes)
{
	sqlite3_file *base = temporary_base(file);

	return base->pMethods->xFileSize(base, bytes);
}

static int temporary_lock(sqlite3_file *file, int kind)
{
	sqlite3_file *base = temporary_base(file);

	return base->pMethods->xLock(base, kind);
}

static int temporary_unlock(sqlite3_file *file, int kind)
{
	sqlite3_file *base = temporary_base(file);

	return base->pMethods->xUnlock(base, kind);
}

static int temporary_is_reserved(sqlite3_file *file, int *is_reserved)
{
	sqlite3_file *base = temporary_base(file);

	return base->pMethods->xCheckReservedLock(base, is_reserved);
}

/* Hints of the future size would make the file larger without xWrite. */
static int temporary_control(sqlite3_file *file, int what, void *data)
{
	sqlite3_file *base = temporary_base(file);

	return what == SQLITE_FCNTL_SIZE_HINT || what == SQLITE_FCNTL_CHUNK_SIZE
		       ? SQLITE_OK
		       : base->pMethods->xFileControl(base, what, data);
}

static int temporary_sector(sqlite3_file *file)
{
	sqlite3_file *base = temporary_base(file);

	return base->pMethods->xSectorSize(base);
}

static int temporary_device(sqlite3_file *file)
{
	sqlite3_file *base = temporary_base(file);

	return base->pMethods->xDeviceCharacteristics(base);
}

/* Version 1: no shared and no mapped memory, whose size nobody would count. */
static const sqlite3_io_methods methods = {
	.iVersion = 1,
	.xClose = temporary_close,
	.xRead = temporary_read,
	.xWrite = temporary_write,
	.xTruncate = temporary_truncate,
	.xSync = temporary_sync,
	.xFileSize = temporary_size,
	.xLock = temporary_lock,
	.xUnlock = temporary_unlock,
	.xCheckReservedLock = temporary_is_reserved,
	.xFileControl = temporary_control,
	.xSectorSize = temporary_sector,
	.xDeviceCharacteristics = temporary_device,
};

/* ---- the file system --------------------------------------------------------------------- */

static int temporary_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
			  int *got)
{
	struct ky_sql_temporary *own = (struct ky_sql_temporary *)vfs;
	struct temporary *made = (struct temporary *)file;
	int ret;

	if (!(flags & SQLITE_OPEN_DELETEONCLOSE))
		return own->base->xOpen(own->base, name, file, flags, got);
	*made = (struct temporary){.own = own};
	temporary_base(file)->pMethods = NULL;
	ret = own->base->xOpen(own->base, name, temporary_base(file), flags, got);
	/* SQLite closes a file with methods, also if it was not opened. */
	made->file.pMethods = temporary_base(file)->pMethods ? &methods : NULL;
	return ret;
}

int ky_sql_temporary_init(struct ky_sql_temporary *own)
{
	sqlite3_vfs *base = ky_sqlite.sqlite3_vfs_find(NULL);

	if (!base)
		return KYMO_E_MEMORY;
	*own = (struct ky_sql_temporary){.vfs = *base, .max_bytes = KY_SQL_TEMPORARY_BYTES};
	snprintf(own->name, sizeof(own->name), "kymo-%p", (void *)own);
	own->vfs.pNext = NULL;
	own->vfs.zName = own->name;
	own->vfs.szOsFile = base->szOsFile + (int)FILE_AT;
	own->vfs.xOpen = temporary_open;
	if (ky_sqlite.sqlite3_vfs_register(&own->vfs, 0) != SQLITE_OK)
		return KYMO_E_MEMORY;
	own->base = base;
	return KYMO_OK;
}

void ky_sql_temporary_fini(struct ky_sql_temporary *own)
{
	if (own->base)
		(void)ky_sqlite.sqlite3_vfs_unregister(&own->vfs);
	own->base = NULL;
}
