# SPDX-License-Identifier: MIT
# The front door. Meson and ninja do the work; 'make help' lists what can be asked for.

BUILD     ?= build
PREFIX    ?= /usr/local
DESTDIR   ?=
T         ?=
SAN       ?=
F         ?=
SECONDS   ?= 60
SUITES    ?= $(wildcard ../shared/conformance)
MESON     ?= meson
MAKEFLAGS += --no-print-directory

# A sanitized build has a directory of its own, so that switching rebuilds nothing.
ifneq ($(findstring thread,$(SAN)),)
  DIR := $(BUILD)-tsan
else ifneq ($(SAN),)
  DIR := $(BUILD)-asan
else
  DIR := $(BUILD)
endif
SETUP := $(if $(SAN),-Db_sanitize=$(SAN) -Db_lundef=false)

all: build ## build build/src/cli/kymo and libkymo

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

build: $(DIR)/build.ninja $(DIR)/web-packages
	@ninja -C $(DIR)

$(DIR)/build.ninja:
	@command -v $(MESON) >/dev/null || { echo "meson is missing; run: tools/install-deps build" >&2; exit 1; }
	@$(MESON) setup $(DIR) --prefix=$(abspath $(PREFIX)) $(SETUP)

# The registry is asked once for each build directory and list of packages.
$(DIR)/web-packages: web/package-lock.json | $(DIR)/build.ninja
	@tools/web-packages
	@touch $@

deps-%:
	@tools/install-deps build $* || echo "carrying on without what could not be installed"

# Meson looks for a C++ compiler once; the tests' packages may have brought it since.
test: deps-test ## run the tests: [T=pattern] [SAN=address,undefined | SAN=thread]
	@$(MAKE) build
	@[ -x $(DIR)/examples/stream-rates ] || ! command -v g++ >/dev/null || \
		{ $(MESON) setup --reconfigure $(DIR) >/dev/null && ninja -C $(DIR); }
	@tools/run-tests --build $(DIR) $(if $(T),-T '$(T)')

demo: deps-build ## build, record this machine for three seconds, report
	@$(MAKE) build
	@tools/demo $(DIR)

# Meson looks for LTTng-UST once, too.
bench: deps-bench ## measure against perf, babeltrace2 and the floor: [T=pattern]
	@$(MAKE) build
	@[ -x $(DIR)/bench/tracer-hits-lttng ] || ! pkg-config --exists lttng-ust || \
		{ $(MESON) setup --reconfigure $(DIR) >/dev/null && ninja -C $(DIR); }
	@tools/run-bench $(DIR) '$(T)'

lint: deps-lint ## format, static checks, headers, folder arrows, man pages
	@$(MAKE) build
	@tools/lint $(DIR)

fuzz: deps-fuzz ## run a fuzzer: F=name [SECONDS=60]
	@tools/run-fuzz $(BUILD)-fuzz '$(F)' '$(SECONDS)'

conformance: build ## run published CTF test suites: SUITES=directory
	@tools/conformance --kymo $(DIR)/src/cli/kymo $(SUITES)

docs: deps-test build ## make the pictures of the documentation again
	@tools/make-pictures $(DIR)

install: build ## install: [PREFIX=/usr/local] [DESTDIR=]
	@$(MESON) configure $(DIR) -Dprefix=$(abspath $(PREFIX))
	@DESTDIR='$(DESTDIR)' $(MESON) install -C $(DIR) --quiet

dist: build ## make a release archive of the last commit: it has the viewer's page, and builds without node
	@$(MESON) dist -C $(DIR) --no-tests

clean: ## remove everything that was built
	rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-tsan $(BUILD)-fuzz

.PHONY: all help build test demo bench lint fuzz conformance docs install dist clean
