"""The container: any changed byte is noticed, no trick of a zip works, and writing is all or nothing."""

from __future__ import annotations

import hashlib
import io
import json
import os
import struct
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privgp import load
from privgp.storage import archive, parts
from privgp.storage.archive import VERSION, DamagedFile, pack, read, unpack, write

MEMBERS = {"model.json": b'{"a": 1}', "nodes.npy": bytes(range(256))}
FILE = pack(MEMBERS)


def sealed(body: bytes) -> bytes:
    """Bytes with a correct digest at their end."""
    return body + hashlib.sha256(body).hexdigest().encode()


def zipped(members, manifest=None, comment=b"0" * 64, tweak=lambda info: None) -> bytes:
    """A zip by other hands: names may come twice, be compressed or be anything."""
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in members}
    manifest = manifest or {"format": "privgp", "version": 1, "members": hashes}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, data in [("manifest.json", json.dumps(manifest).encode()), *members]:
            info = zipfile.ZipInfo(name, archive.EPOCH)
            tweak(info)
            file.writestr(info, data)
        file.comment = comment
    return sealed(buffer.getvalue()[:-64])


def assert_refused(data: bytes) -> str:
    with pytest.raises(DamagedFile) as caught:
        unpack(data)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_members_come_back_and_bytes_are_always_the_same():
    assert unpack(FILE) == MEMBERS
    assert pack(MEMBERS) == FILE
    with zipfile.ZipFile(io.BytesIO(FILE)) as file:  # any zip program can look inside
        assert file.testzip() is None
        assert file.read("nodes.npy") == MEMBERS["nodes.npy"]


@given(st.integers(0, 8 * len(FILE) - 1))
def test_a_flipped_bit_is_noticed(bit):
    data = bytearray(FILE)
    data[bit // 8] ^= 1 << bit % 8
    assert_refused(bytes(data))


@given(st.integers(0, len(FILE) - 1))
def test_a_cut_end_is_noticed(length):
    assert_refused(FILE[:length])
    assert_refused(sealed(FILE[:length]))


@given(st.binary(max_size=300), st.booleans())
def test_anything_else_is_no_file_of_ours(data, zip_like):
    assert_refused(b"PK\x03\x04" * zip_like + data)
    assert_refused(sealed(b"PK\x03\x04" * zip_like + data))


@given(st.integers(0, len(FILE) - 65), st.integers(0, 255))
def test_a_byte_changed_with_a_new_digest_changes_nothing_or_is_noticed(place, value):
    data = bytearray(FILE[:-64])
    data[place] = value
    with suppress(DamagedFile):
        assert unpack(sealed(bytes(data))) == MEMBERS


def test_tricks_of_a_zip_are_refused():
    (one, a), (_, b) = MEMBERS.items()
    with pytest.warns(UserWarning, match="Duplicate"):
        twice = zipped([(one, a), (one, a)])
    assert "two members of one name" in assert_refused(twice)
    for name in (
        "../up.npy",
        "/etc/passwd",
        "a/b.npy",
        "c:\\x.npy",
        "x.npy\0.json",
        "ü.npy",
        "x.py",
    ):
        assert_refused(zipped([(one, a), (name, b)]))

    def squeeze(info):
        info.compress_type = zipfile.ZIP_DEFLATED

    assert "compressed" in assert_refused(zipped([(one, b"0" * 2**20)], tweak=squeeze))

    def add_extra(info):
        info.extra = struct.pack("<HH4s", 0x7777, 4, b"abcd")

    assert "repacked" in assert_refused(zipped([(one, a)], tweak=add_extra))
    assert "too many" in assert_refused(zipped([(f"x{k}.npy", b"") for k in range(300)]))
    assert_refused(zipped([(one, b" " * (2**24 + 1))]))
    assert_refused(sealed(b"PK\x03\x04" + b"\0" * 100 + FILE[:-64]))


def test_a_declared_size_beyond_the_file_is_refused():
    data = FILE[:-64]
    place = data.rindex(b"PK\x01\x02") + 20  # sizes of the last member in the directory
    for size in (2**31, 2**32 - 1, 0):
        edited = data[:place] + struct.pack("<LL", size, size) + data[place + 8 :]
        assert_refused(sealed(edited))


def test_members_and_manifest_must_agree():
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in MEMBERS.items()}
    good = {"format": "privgp", "version": 1, "members": hashes}
    assert unpack(zipped([*MEMBERS.items()], good)) == MEMBERS
    swapped = dict(zip(MEMBERS, reversed(MEMBERS.values()), strict=True))
    assert "manifest" in assert_refused(zipped([*swapped.items()], good))
    assert "manifest" in assert_refused(zipped([*MEMBERS.items(), ("x.npy", b"")], good))
    assert "manifest" in assert_refused(zipped([*MEMBERS.items()][:1], good))
    for broken in (
        [],
        {**good, "format": "pickle"},
        {**good, "version": "1"},
        {**good, "version": True},
        {**good, "version": 0},
        {**good, "members": []},
        {**good, "members": {**hashes, "model.json": None}},
        {**good, "more": 1},
    ):
        assert_refused(zipped([*MEMBERS.items()], broken or {"": 0}))


def test_a_later_version_asks_for_a_newer_privgp(tmp_path):
    path = tmp_path / "later.privgp"
    path.write_bytes(
        zipped([("new.json", b"")], {"format": "privgp", "version": VERSION + 1, "else": []})
    )
    with pytest.raises(ValueError, match=r"^'.*later\.privgp' cannot be loaded: .*newer privgp is"):
        load(path)


def test_only_regular_files_of_bearable_size_are_read(tmp_path, monkeypatch):
    pipe = tmp_path / "pipe.privgp"
    os.mkfifo(pipe)
    with pytest.raises(DamagedFile, match="pipe"):
        read(pipe)
    large = tmp_path / "large.privgp"
    with open(large, "wb") as file:
        file.truncate(2**30 + 1)  # a hole, which takes no space
    with pytest.raises(DamagedFile, match="larger than 1 GiB"):
        read(large)
    monkeypatch.setattr(archive, "LARGEST_FILE", 2**20)
    with pytest.raises(ValueError, match="too large"):
        pack({"x.npy": b"0" * 2**20})


def test_a_file_is_overwritten_only_on_request(tmp_path):
    path = tmp_path / "model.privgp"
    write(path, b"one", overwrite=False)
    with pytest.raises(FileExistsError, match=r"exists already: choose .* overwrite=True\.$"):
        write(path, b"two", overwrite=False)
    assert path.read_bytes() == b"one"
    write(path, b"two", overwrite=True)
    assert path.read_bytes() == b"two"
    link = tmp_path / "link.privgp"
    link.symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileExistsError):
        write(link, b"three", overwrite=False)


def test_a_file_that_appears_meanwhile_is_kept(tmp_path, monkeypatch):
    path = tmp_path / "model.privgp"
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (real(fd), path.write_bytes(b"theirs")))
    with pytest.raises(FileExistsError):
        write(path, b"ours", overwrite=False)
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [b"theirs"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("problem", [OSError(28, "No space left"), KeyboardInterrupt()], ids=repr)
def test_a_failure_leaves_everything_as_it_was(step, problem, tmp_path, monkeypatch):
    path = tmp_path / "model.privgp"
    path.write_bytes(b"old")

    def fail(*_):
        raise problem

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(type(problem)):
        write(path, b"new", overwrite=True)
    assert [file.name for file in tmp_path.iterdir()] == ["model.privgp"]
    assert path.read_bytes() == b"old"


def test_a_folder_that_may_not_be_written_says_so(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    # Permissions do not stop the superuser, who may be running this.
    for module in (archive, parts):
        monkeypatch.setattr(module, "open", refuse, raising=False)
    with pytest.raises(PermissionError):
        write(tmp_path / "model.privgp", b"data", overwrite=False)
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "model.privgp")
    (tmp_path / "model.privgp").write_bytes(b"data")
    with pytest.raises(PermissionError):
        read(tmp_path / "model.privgp")


def test_permissions_of_a_new_file_follow_the_umask(tmp_path):
    path = Path(tmp_path / "model.privgp")
    old = os.umask(0o027)
    try:
        write(path, b"data", overwrite=False)
    finally:
        os.umask(old)
    assert path.stat().st_mode & 0o777 == 0o640


def test_members_of_plans_are_compressed_and_come_back():
    members = {"plan.json": b"{}", "zeros.npy": bytes(2**20)}
    packed = pack(members, "plan")
    assert len(packed) < 2**12
    assert pack(members, "plan") == packed
    assert unpack(packed, "plan") == members
    data = bytearray(packed)
    data[len(packed) // 2] ^= 1
    with pytest.raises(DamagedFile):
        unpack(bytes(data), "plan")


def test_a_plan_that_would_grow_beyond_the_limit_is_refused(monkeypatch):
    packed = pack({"zeros.npy": bytes(2**20)}, "plan")
    monkeypatch.setattr(archive, "LARGEST_COMPRESSED", 2**19)
    with pytest.raises(DamagedFile, match="too large"):
        unpack(packed, "plan")
    members = {"zeros.npy": bytes(2**21)}
    stored = pack(members, "plan")  # larger ones are stored
    assert len(stored) > 2**21
    assert unpack(stored, "plan") == members


def test_plans_that_were_stored_before_are_still_read():
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in MEMBERS.items()}
    manifest = {"format": "plan", "version": 4, "members": hashes}
    assert unpack(zipped([*MEMBERS.items()], manifest), "plan") == MEMBERS
