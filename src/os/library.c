/* SPDX-License-Identifier: MIT */
#include "os/library.h"

#include <dlfcn.h>
#include <string.h>

#include "base/error.h"

static int library_missing(const char *package, struct kymo_error *err)
{
	ky_error_set(err, KYMO_E_UNSUPPORTED, "cannot load a library: %s", dlerror());
	ky_error_hint(err, "install the package %s", package);
	return KYMO_E_UNSUPPORTED;
}

int ky_library_load(const char *file, const char *package, const struct ky_library_symbol *symbols,
		    void *table, struct kymo_error *err)
{
	void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return library_missing(package, err);
	for (; symbols->name; symbols++) {
		void *symbol = dlsym(library, symbols->name);

		if (!symbol)
			return library_missing(package, err);
		memcpy((char *)table + symbols->offset, &symbol, sizeof(symbol));
	}
	return KYMO_OK;
}
