#!/bin/busybox sh
# SPDX-License-Identifier: MIT
# shellcheck shell=dash
# The first program of a virtual machine: what all of them begin with. machine.py adds what it is to do.
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tracefs tracing /sys/kernel/tracing
mount -t tmpfs tmp /tmp
cd /tmp || exit 1
# After each step: what it was, how it went, and when.
tell() { echo "== $1 $? $(cut -d ' ' -f 1 /proc/uptime)"; }
tell boot
