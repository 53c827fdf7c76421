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
# Whether it is the machine that stands still, or a program that waits, and for what.
alive() {
	while sleep 60; do
		echo "-- alive $(cut -d ' ' -f 1 /proc/uptime)"
		for process in /proc/[1-9]*; do
			[ -n "$(tr '\0' ' ' <"$process/cmdline")" ] &&
				echo "-- ${process#/proc/} $(cat "$process/comm" "$process/wchan" "$process/syscall" | tr '\n' ' ')"
		done
	done 2>/dev/null
}
(alive &) # no job of this shell, which may wait for its own
tell boot
