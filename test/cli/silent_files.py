# SPDX-License-Identifier: MIT
"""silent_files.py DIR FILE STOP: a file system with one file, DIR/file, that reads like FILE. Once STOP exists it answers
nothing any more, so that whoever opens the file waits, as on a network that is gone.
"""

import errno
import os
import struct
import subprocess
import sys
import time

LOOKUP, FORGET, GETATTR, OPEN, READ, RELEASE, FLUSH, INIT, INTERRUPT, BATCH_FORGET = 1, 2, 3, 14, 15, 18, 25, 26, 36, 42
ROOT, FILE = 1, 2


def attributes(node, size):
    mode, length = (0o40755, 0) if node == ROOT else (0o100755, size)
    return struct.pack("=6Q10I", node, length, (length + 511) // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def answer(opcode, node, body, content):
    """What is answered: bytes, or an error number."""
    if opcode == INIT:
        return struct.pack("=4I2H2I2HI28x", 7, 31, 65536, 0, 8, 8, 65536, 1, 16, 0, 0)
    if opcode == LOOKUP:
        if body != b"file\0":
            return errno.ENOENT
        return struct.pack("=4Q2I", FILE, 0, 0, 0, 0, 0) + attributes(FILE, len(content))
    if opcode == GETATTR:
        return struct.pack("=Q2I", 0, 0, 0) + attributes(node, len(content))
    if opcode == OPEN:
        return struct.pack("=Q2I", 0, 0, 0)
    if opcode == READ:
        offset, size = struct.unpack_from("=QI", body, 8)
        return content[offset:offset + size]
    return b"" if opcode in (RELEASE, FLUSH) else errno.ENOSYS


def main(directory, path, stop):
    with open(path, "rb") as file:
        content = file.read()
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other"
    subprocess.run(["mount", "-i", "-t", "fuse", "-o", options, "silent", directory], pass_fds=[device], check=True)
    while True:
        request = os.read(device, 1 << 17)
        _, opcode, unique, node = struct.unpack_from("=2I2Q", request)
        if opcode in (FORGET, BATCH_FORGET, INTERRUPT):
            continue
        while os.path.exists(stop):
            time.sleep(1)
        found = answer(opcode, node, request[40:], content)
        data, error = (b"", -found) if isinstance(found, int) else (found, 0)
        os.write(device, struct.pack("=IiQ", 16 + len(data), error, unique) + data)


main(*sys.argv[1:])
