import gzip
import hashlib
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest

from d3gd.data import read_cifar10, read_idx, read_images, read_libsvm
from d3gd.errors import ProblemError

FASHION = Path("/usr/share/datasets/fashion-mnist")
PIXELS = np.random.default_rng(0).integers(0, 256, (5, 4, 3), dtype=np.uint8)
LABELS = np.array([3, 0, 1, 1, 2], dtype=np.uint8)


def idx(array):
    return struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()


def written(folder, *contents):
    paths = [folder / f"file{i}" for i in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    return paths


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["raw", "gz"])
def test_idx_files_come_back(pack, tmp_path):
    paths = written(tmp_path, pack(idx(PIXELS)), pack(idx(LABELS)))
    X, y = read_idx(*paths, sha256=[hashlib.sha256(path.read_bytes()).hexdigest() for path in paths])
    assert X.dtype == np.float32
    assert np.array_equal(np.rint(X * 255), PIXELS)
    assert y.tolist() == LABELS.tolist()


def test_what_is_wrong_with_idx_files_is_said(tmp_path):
    good, labels, short, other, none = written(
        tmp_path, idx(PIXELS), idx(LABELS), idx(PIXELS)[:-1], idx(LABELS[:4]), b""
    )
    with pytest.raises(ProblemError, match="59 bytes for an array"):
        read_idx(short, labels)
    with pytest.raises(ProblemError, match=r"begins with 00000801, not with 00000803.*dataset-fashion-mnist"):
        read_idx(labels, labels)
    with pytest.raises(ProblemError, match=r"5 images and .* 4 labels"):
        read_idx(good, other)
    with pytest.raises(ProblemError, match="cannot be read"):
        read_idx(none, labels)
    with pytest.raises(ProblemError, match=f"SHA-256 {hashlib.sha256(idx(PIXELS)).hexdigest()}, not 'ab'"):
        read_idx(good, labels, sha256=["ab", "cd"])
    with pytest.raises(ProblemError, match=r"cannot be read.*yann\.lecun\.com"):
        read_idx(tmp_path / "missing", labels)


def test_a_bomb_is_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr("d3gd.reading.ARRAYS", 1000)
    bomb, labels = written(tmp_path, gzip.compress(idx(np.zeros((100, 30, 30), np.uint8))), idx(LABELS))
    with pytest.raises(ProblemError, match="more than the 1,000 bytes"):
        read_idx(bomb, labels)


@pytest.mark.skipif(not FASHION.is_dir(), reason="Debian's dataset-fashion-mnist is not installed")
def test_debians_fashion_mnist_is_read():
    X, y = read_idx(FASHION / "t10k-images-idx3-ubyte.gz", FASHION / "t10k-labels-idx1-ubyte.gz")
    assert X.shape == (10000, 28, 28)
    assert np.bincount(y).tolist() == [1000] * 10


def test_libsvm_lines_come_back(tmp_path):
    (path,) = written(tmp_path, b"-1 3:1 11:0.5\n+1 1:2e-1 # a remark\n\n-1\n")
    X, y = read_libsvm(path)
    assert X.shape == (3, 11)
    assert (X[0, 2], X[0, 10], X[1, 0], np.count_nonzero(X)) == (1.0, 0.5, 0.2, 3)
    assert y.tolist() == [0, 1, 0]
    assert read_libsvm(path, features=123)[0].shape == (3, 123)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("1 3:x", "line 1"),
        ("1 3", "line 1"),
        ("1 0:1", "increase from 1"),
        ("1 3:1 2:1", "increase from 1"),
        ("1 2:nan", "not finite"),
        ("", "no samples"),
        ("1 99999999999:1", "an array may hold"),
        ("1 5:1", "more than features = 4"),
    ],
)
def test_what_is_wrong_with_libsvm_files_is_said(line, told, tmp_path):
    (path,) = written(tmp_path, line.encode())
    with pytest.raises(ProblemError, match=told):
        read_libsvm(path, **({"features": 4} if "5:1" in line else {}))


def test_cifar_records_come_back_and_the_pickled_version_does_not(tmp_path):
    images = np.random.default_rng(1).integers(0, 256, (4, 3, 32, 32), dtype=np.uint8)
    records = b"".join(bytes([label]) + image.tobytes() for label, image in zip([9, 0, 3, 3], images, strict=True))
    one, two, pickled = written(tmp_path, records[: 2 * 3073], records[2 * 3073 :], pickle.dumps({"data": records}))
    X, y = read_cifar10([one, two])
    assert np.array_equal(np.rint(X * 255), images)
    assert y.tolist() == [9, 0, 3, 3]
    with pytest.raises(ProblemError, match="the Python version is pickled"):
        read_cifar10(pickled)


def test_a_folder_per_class_is_read(tmp_path):
    image = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(2).integers(0, 256, (3, 6, 5, 3), dtype=np.uint8)
    for name, place in (("dog/a.png", 0), ("cat/b.png", 1), ("cat/c.bmp", 2)):
        (tmp_path / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        image.fromarray(pixels[place]).save(tmp_path / "data" / name)
    X, y, names = read_images(tmp_path / "data")
    assert names == ["cat", "dog"]
    assert y.tolist() == [0, 0, 1]
    assert np.array_equal(np.rint(X * 255).transpose(0, 2, 3, 1), pixels[[1, 2, 0]])
    assert read_images(tmp_path / "data", size=(2, 3))[0].shape == (3, 3, 2, 3)
    image.fromarray(pixels[0][:2]).save(tmp_path / "data/dog/d.png")
    with pytest.raises(ProblemError, match="pixels and"):
        read_images(tmp_path / "data")
    (tmp_path / "data/dog/e.png").write_text("no image")
    with pytest.raises(ProblemError, match=r"e\.png cannot be read"):
        read_images(tmp_path / "data")
    with pytest.raises(ProblemError, match="no images in folders"):
        read_images(tmp_path / "data/dog")
