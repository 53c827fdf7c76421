# SPDX-License-Identifier: MIT
"""Archives as others make them, and damaged ones: Kymo reads what is good in them and reports the rest."""

import bz2
import gzip
import io
import lzma
import os
import random
import subprocess
import tarfile
import zipfile

import pytest

import make_trace

LINES = "".join(f"2026-11-21T05:30:{i % 60:02}.{i:06}+00:00 host app[7]: line {i}\n" for i in range(40)).encode()


@pytest.fixture
def trace(tmp_path_factory):
    return make_trace.sample(tmp_path_factory.mktemp("trace") / "sample")


def tar_of(path, members, mode="w"):
    with tarfile.open(path, mode) as archive:
        for name, data in members:
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return path


def members_of(directory, prefix):
    return [(f"{prefix}{path.name}", path.read_bytes()) for path in sorted(directory.iterdir()) if path.is_file()]


def count(kymo, path, code=0):
    return len(kymo("print", path, code=code).out.splitlines())


@pytest.mark.parametrize("prefix", ["", "./", "s/", "s/ust/", "s/ust/uid/0/64-bit/", "/abs/x/y/", "../../s/../t/"])
def test_places_in_an_archive(kymo, trace, tmp_path, prefix):
    archive = tar_of(tmp_path / "x.tar", members_of(trace, prefix))
    assert count(kymo, archive) == count(kymo, trace)
    (tmp_path / "below").mkdir()
    kymo("convert", archive, "-o", tmp_path / "below" / "out")
    assert count(kymo, tmp_path / "below" / "out") == count(kymo, trace)
    assert sorted(os.listdir(tmp_path)) == ["below", "x.tar"] and os.listdir(tmp_path / "below") == ["out"]


def test_good_members_beside_damage(kymo, trace, tmp_path):
    cut = tar_of(tmp_path / "cut.tar", [("a/one.log", LINES), ("a/two.log", LINES)])
    os.truncate(cut, 512 + (len(LINES) + 511) // 512 * 512 + 512 + 700)
    done = kymo("print", cut, code=1)
    assert len(done.out.splitlines()) > 40 and "the archive is damaged" in done.err
    for bad in range(2):
        path = tmp_path / f"{bad}.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for i in range(2):
                archive.writestr(f"a/{i}.log", LINES.replace(b"line", b"l%d" % i))
        data = path.read_bytes()
        path.write_bytes(data.replace(b"l%d 39" % bad, b"l%d 38" % bad))
        done = kymo("print", path, code=1)
        assert f"l{1 - bad} 39" in done.out and "the archive is damaged" in done.err
    path = tmp_path / "trace.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in [("README", b"words"), *members_of(trace, "s/x/")]:
            archive.writestr(name, content)
    path.write_bytes(path.read_bytes().replace(b"words", b"Words"))
    done = kymo("print", path, code=1)
    assert len(done.out.splitlines()) == count(kymo, trace) and "the archive is damaged" in done.err


def test_links_are_told(kymo, trace, tmp_path):
    with tarfile.open(tmp_path / "links.tar", "w") as archive:
        archive.add(trace, "s/a")
        for path in trace.iterdir():
            if path.is_file():
                entry = tarfile.TarInfo(f"s/b/{path.name}")
                entry.type, entry.linkname = tarfile.LNKTYPE, f"s/a/{path.name}"
                archive.addfile(entry)
    done = kymo("print", tmp_path / "links.tar", code=1)
    assert len(done.out.splitlines()) == count(kymo, trace) and "stored as a link" in done.err


def test_members_that_are_passed_over_count(kymo, tmp_path):
    """A name too long for a trace does not make a bomb of its content."""
    zeros, head = 1 << 30, tarfile.TarInfo("n" * 600)
    head.size = 16 * zeros
    packed = bz2.compress(head.tobuf(tarfile.PAX_FORMAT))
    part = bz2.compress(bytes(zeros // 16))
    (tmp_path / "bomb.tar.bz2").write_bytes(packed + part * 256)
    assert "unpacks to more than an archive of traces has" in kymo("print", tmp_path / "bomb.tar.bz2", code=1).err


def zstd(data, *options):
    return subprocess.run(["zstd", "-q", "-c", *options], input=data, stdout=subprocess.PIPE, check=True).stdout


PACKERS = {"gz": gzip.compress, "xz": lzma.compress, "zst": zstd}


def log_of(n):
    digits = random.Random(1)
    return "".join(
        f"2026-11-21T05:{i // 60 % 60:02}:{i % 60:02}.{i % 1000000:06}+00:00 host app[7]: {digits.getrandbits(200):x}\n"
        for i in range(n)).encode()


@pytest.mark.parametrize("kind", PACKERS)
def test_compressed_file_that_is_cut(kymo, tmp_path, kind):
    """All that can be unpacked is there: libarchive's filters drop up to 64 KiB of it."""
    text = log_of(5000)
    packed = PACKERS[kind](text)
    path = tmp_path / f"log.{kind}"
    path.write_bytes(packed)
    assert count(kymo, path) == 5000
    for part, least in (9, 4000), (5, 1200):
        cut = packed[:len(packed) * part // 10]
        path.write_bytes(cut)
        done = kymo("print", path, code=1)
        # zstd's blocks are of 128 KiB and are unpacked whole.
        assert len(done.out.splitlines()) >= (least if kind != "zst" else least // 2)
        assert f"data are cut (at byte {len(cut)})" in done.err and done.err.count("damaged") == 1
    path.write_bytes(packed[:20])
    kymo("print", path, code=1)
    path.write_bytes(PACKERS[kind](b""))
    assert "the compressed file has no content" in kymo("print", path, code=1).err


def test_gzip_whose_checksum_differs(kymo, tmp_path):
    packed = bytearray(gzip.compress(LINES))
    packed[-6] ^= 1
    (tmp_path / "log.gz").write_bytes(packed)
    done = kymo("print", tmp_path / "log.gz", code=1)
    assert len(done.out.splitlines()) == 40 and "its gzip data are wrong" in done.err


@pytest.mark.parametrize("kind", PACKERS)
def test_what_follows_compressed_data(kymo, tmp_path, kind):
    packed = PACKERS[kind](LINES)
    path = tmp_path / "log"
    path.write_bytes(packed + packed + bytes(1000))
    assert count(kymo, path) == 80
    path.write_bytes(packed + b"words")
    done = kymo("print", path, code=1)
    assert len(done.out.splitlines()) == 40
    assert f"other data follow its compressed data (at byte {len(packed)})" in done.err


def test_archive_whose_compressed_data_are_cut(kymo, trace, tmp_path):
    whole = tar_of(tmp_path / "x.tar", [*members_of(trace, "s/"), ("s/later/log", os.urandom(400000))]).read_bytes()
    for kind, pack in PACKERS.items():
        packed = pack(whole)
        path = tmp_path / f"x.tar.{kind}"
        path.write_bytes(packed[:len(packed) - 50000])
        done = kymo("print", path, code=1)
        assert len(done.out.splitlines()) == count(kymo, trace) and "data are cut" in done.err


def test_files_that_are_left_out_are_told(kymo, trace, tmp_path):
    mixed = tar_of(tmp_path / "mixed.tar", [*members_of(trace, "s/kernel/"), ("s/app.log", LINES), ("s/b.log", LINES)])
    done = kymo("print", mixed)
    assert len(done.out.splitlines()) == count(kymo, trace)
    assert "files that belong to no trace are left out: 2" in done.err
    logs = tar_of(tmp_path / "logs.tar", [("a/app.log", LINES), ("a/app.log.1.gz", gzip.compress(LINES))])
    done = kymo("print", logs)
    assert len(done.out.splitlines()) == 40 and "of no format that Kymo knows, are left out: 1" in done.err


@pytest.mark.parametrize("damage,why", [
    (lambda packed: packed[:-6] + bytes([packed[-6] ^ 1]) + packed[-5:], "its gzip data are wrong"),
    (lambda packed: packed[:-8], "its gzip data are cut"),
    (lambda packed: packed + b"signature", "other data follow its compressed data"),
])
def test_damage_behind_the_members_of_a_small_archive(kymo, tmp_path, damage, why):
    """All of it is unpacked at once: the members are whole, and the damage is behind them."""
    members = []
    for name in "abc":
        make_trace.sample(tmp_path / name, packets=3 + ord(name) % 3)
        members += members_of(tmp_path / name, f"{name}/kernel/")
    whole = tar_of(tmp_path / "whole.tar.gz", members, "w:gz").read_bytes()
    path = tmp_path / "x.tar.gz"
    path.write_bytes(damage(whole))
    done = kymo("print", path, code=1)
    assert len(done.out.splitlines()) == sum(count(kymo, tmp_path / name) for name in "abc")
    assert done.err.count("the archive is damaged") == 1 and why in done.err


def test_names_of_files_in_an_archive(kymo, tmp_path):
    line = b'1796000000.%06d read(3, "", 1) = 0 <0.000010>\n'
    files = [(f"ff/s.{tid}", line % tid) for tid in (1234, 5678)]
    path = tar_of(tmp_path / "ff.tar", files)
    done = kymo("print", path).out
    assert done.count("tid = 1234") == 2 and done.count("tid = 5678") == 2
    assert "ff.tar/ff/s.1234/log" in kymo("info", path).out
    kymo("convert", path, "-o", tmp_path / "out")
    assert sorted(os.listdir(tmp_path / "out")) == ["s.1234", "s.5678"]
    (tmp_path / "s.77.gz").write_bytes(gzip.compress(files[0][1]))
    assert "tid = 77" in kymo("print", tmp_path / "s.77.gz").out


def test_decoder_that_needs_much_memory(kymo, tmp_path):
    path = tmp_path / "log.zst"
    path.write_bytes(zstd(LINES + bytes(300 << 20), "--long=30"))
    assert "unpacking needs more than 128 MiB of memory" in kymo("print", path, code=1).err
