# SPDX-License-Identifier: MIT
"""Peers that use the protocols against a relay, or against a recorder."""

import contextlib
import os
import socket
import struct
import subprocess
import threading

import pytest

from relays import relays
from test_network import MODES, OPENED, data, frame, hello, talk

pytestmark = pytest.mark.usefixtures("needs_root_tracefs")

WELCOME, ACK, READERS, BYE = 5, 6, 7, 17
HEAD_BYTES = 24


def answer(kind, value):
    return frame(kind, struct.pack("<Q", value))


def numbers_of(client):
    """The numbers of the frames that a recorder sends, as they are whole."""
    with client.makefile("rb") as stream:
        while len(head := stream.read(HEAD_BYTES)) == HEAD_BYTES:
            kind, _, number, size = struct.unpack("<IIQQ", head)
            stream.read(size)
            yield kind, number


@contextlib.contextmanager
def hostile_relay(serve):
    """A port whose connections get serve(client), one thread each."""
    def take(client):
        with client, contextlib.suppress(ConnectionError):
            serve(client)

    def accept(server):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=take, args=(server.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=accept, args=(server,), daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


# ---- a recorder's relay ---------------------------------------------------------------------------

def test_acknowledgement_of_what_is_not_sent(kymo_bin):
    """The recorder keeps frames that the relay cannot have: it ends the connection."""
    def serve(client):
        client.sendall(answer(WELCOME, 1) + b"".join(answer(ACK, number) for number in range(2, 5000)))
        for _ in numbers_of(client):
            pass

    with hostile_relay(serve) as port:
        done = subprocess.run([kymo_bin, "record", "-o", f"kymo://localhost:{port}/x", "--user", "modes:*", "--", MODES,
                               "numbers", "100000", "0"], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1 and "Protocol error" in done.stderr, done.stderr


def test_relay_that_talks_without_end(kymo_bin):
    """Its answers do not keep the recorder from sending, nor from its end."""
    def flood(client):
        word = (answer(READERS, 20) + answer(READERS, 30)) * 10000
        with contextlib.suppress(OSError):
            while True:
                client.sendall(word)

    def serve(client):
        client.sendall(answer(WELCOME, 1))
        talker = None
        for kind, number in numbers_of(client):
            if kind == BYE:
                client.sendall(answer(ACK, number + 1))
            elif not talker:
                talker = threading.Thread(target=flood, args=(client,), daemon=True)
                talker.start()

    with hostile_relay(serve) as port:
        done = subprocess.run([kymo_bin, "record", "-o", f"kymo://localhost:{port}/x", "--user", "modes:*", "--", MODES,
                               "numbers", "10", "0"], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


# ---- a relay's clients ----------------------------------------------------------------------------

@pytest.fixture
def small_disk(tmp_path):
    """A directory on a disk of its own, of 1 MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", place], check=True)
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def test_new_recording_on_a_full_disk(kymo_bin, small_disk):
    """The relay refuses it, and goes on: other recordings may be on its other disks, or wait for room."""
    with relays(kymo_bin, small_disk) as begin:
        here = begin()
        with contextlib.suppress(OSError), open(small_disk / "filler", "wb", buffering=0) as filler:
            while filler.write(bytes(4096)):
                pass
        assert b"No space left" in talk(here.port, hello())
        os.remove(small_disk / "filler")
        assert b"No space left" not in talk(here.port, OPENED, data(0, 0, 0, b"x", 1))
        assert os.path.exists(here.trace("session") + "/kernel/a")
