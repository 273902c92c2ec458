"""Tensors on disk: the same bytes for the same content, and no bit of them goes unnoticed."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
import safetensors.torch
import torch

from skipstone.errors import InvalidInput
from skipstone.models.tensors import open_tensors, read_tensors, write_tensors

TENSORS = {"a": torch.arange(6.0).reshape(2, 3), "b.c": torch.tensor([1, 2])}
NOTES = {"kind": "rnn", "progress": '{"step": 3, "text": "\\"}"}'}


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.safetensors"
    checksum = write_tensors(path, TENSORS, NOTES)
    tensors, notes = read_tensors(path)
    assert notes == NOTES
    assert all(torch.equal(tensors[name], TENSORS[name]) for name in TENSORS)
    file = open_tensors(path)
    assert file.sha256 == checksum
    assert file.shapes == {"a": (2, 3), "b.c": (2,)}
    assert write_tensors(tmp_path / "again", TENSORS, NOTES) == checksum
    assert safetensors.torch.load(path.read_bytes()).keys() == TENSORS.keys()


def test_no_flipped_bit_goes_unnoticed(tmp_path: Path) -> None:
    path = tmp_path / "t.safetensors"
    write_tensors(path, TENSORS, NOTES)
    content = path.read_bytes()
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        with pytest.raises(InvalidInput):
            read_tensors(path)
    for length in (0, 5, 8, 100, len(content) - 1):
        path.write_bytes(content[:length])
        with pytest.raises(InvalidInput, match="cut short"):
            read_tensors(path)


@pytest.mark.parametrize("shape", [None, 5, "3", [None], [[3]], {}])
def test_a_header_without_sizes_is_explained(shape: object, tmp_path: Path) -> None:
    path = tmp_path / "t.safetensors"
    header = {"a": {"dtype": "F32", "shape": shape, "data_offsets": [0, 12]}}
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(12))
    with pytest.raises(InvalidInput, match=r"the header of .* is not as it should be: \S*shape"):
        open_tensors(path)


def test_a_file_without_a_checksum_is_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "t.safetensors"
    path.write_bytes(safetensors.torch.save(TENSORS, metadata={"kind": "rnn"}))
    assert not open_tensors(path).sealed
    assert open_tensors(path).notes == {"kind": "rnn"}
    with pytest.raises(InvalidInput, match="it has no checksum"):
        read_tensors(path)


def test_a_file_that_is_replaced_while_it_is_read_is_one_or_the_other(tmp_path: Path) -> None:
    path, stop = tmp_path / "t.safetensors", threading.Event()

    def write(index: int) -> None:
        write_tensors(path, {"a": torch.full((1000 + index,), float(index))}, {"is": str(index)})

    def replace() -> None:
        while not stop.is_set():
            for index in range(3):
                write(index)

    write(0)
    thread = threading.Thread(target=replace)
    thread.start()
    try:
        for _ in range(200):
            tensors, notes = read_tensors(path)
            index = int(notes["is"])
            assert torch.equal(tensors["a"], torch.full((1000 + index,), float(index)))
    finally:
        stop.set()
        thread.join()
