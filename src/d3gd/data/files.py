"""The field's data sets from files in their own formats; nothing is downloaded, and nothing is unpickled."""

import gzip
import hashlib
import io
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from d3gd import reading
from d3gd.arrays import Array, Floats, Ints
from d3gd.data.checks import check_room
from d3gd.errors import ProblemError
from d3gd.validation import as_array, as_path, count, listed, shown

_IDX = "an idx file, raw or as .gz, as of MNIST (yann.lecun.com/exdb/mnist) or Debian's dataset-fashion-mnist"
_LIBSVM = "a file in LIBSVM's format, as of www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
_CIFAR = "a batch of CIFAR-10's binary version (www.cs.toronto.edu/~kriz/cifar.html); the Python version is pickled"
_PICTURE = "an image"
_UNSIGNED, _IMAGES, _LABELS = 0x08, 3, 1  # of idx: the type of bytes, and numbers of axes
_LARGEST_SIDE = 10_000  # pixels
_RECORD, _CIFAR_SHAPE, _CIFAR_CLASSES = 3073, (3, 32, 32), 10


def read_idx(images: str | Path, labels: str | Path, *, sha256: Sequence[str] | None = None) -> tuple[Array, Ints]:
    """Images and labels from two idx files, the format of MNIST and Fashion-MNIST.

    Args:
        images: The file of images, raw or compressed (.gz).
        labels: The file of labels.
        sha256: The SHA-256 of the two files as they are, to be checked.

    Returns:
        Images in [0, 1] as float32, shape (samples, rows, columns), and labels.
    """
    wanted = _digests(sha256, 2)
    X = _idx(images, _IMAGES, wanted[0])
    y = _idx(labels, _LABELS, wanted[1]).astype(np.int64)
    if len(X) != len(y) or not len(y):
        raise ProblemError(
            f"{images} has {len(X)} images and {labels} {len(y)} labels; give files that belong together"
        )
    return _scaled(X), y


def _idx(path: str | Path, axes: int, sha256: str | None) -> Array:
    held = _content(path, _IDX, sha256)
    with reading.reported(Path(path), _IDX, ProblemError):
        if held[:2] == b"\x1f\x8b":
            with gzip.GzipFile(fileobj=io.BytesIO(held)) as packed:
                held = packed.read(reading.ARRAYS + 1)
            if len(held) > reading.ARRAYS:
                raise ValueError(f"it unpacks to more than the {reading.ARRAYS:,} bytes that are read")
        zero, kind, found = struct.unpack(">HBB", held[:4])
        if zero or kind != _UNSIGNED or found != axes:
            raise ValueError(f"it begins with {held[:4].hex()}, not with {_UNSIGNED << 8 | axes:08x}")
        shape = struct.unpack(f">{axes}I", held[4 : 4 + 4 * axes])
        size = int(np.prod(shape, dtype=object))
        if len(held) - 4 - 4 * axes != size:
            raise ValueError(f"{len(held) - 4 - 4 * axes:,} bytes for an array of shape {shape}")
        return np.frombuffer(held, np.uint8, offset=4 + 4 * axes).reshape(shape)


def read_libsvm(path: str | Path, *, features: int | None = None, sha256: str | None = None) -> tuple[Floats, Ints]:
    """Features and labels from a text file in LIBSVM's format, such as a9a.

    A line is a label and pairs ``index:value`` with increasing indices from 1; features that it leaves out are zero.

    Args:
        path: The file.
        features: The number of features; by default the largest index. A test file may need that of its training file.
        sha256: The SHA-256 of the file, to be checked.

    Returns:
        Features of shape (samples, features), and the classes 0, 1, ... in the order of their labels: -1 and +1 become
        0 and 1.
    """
    if features is not None:
        count("features", features, least=1, error=ProblemError)
    held = _content(path, _LIBSVM, _digests(sha256, 1)[0])
    with reading.reported(Path(path), _LIBSVM, ProblemError):
        lines = held.decode("ascii").splitlines()
    labels: list[float] = []
    rows: list[int] = []
    columns: list[int] = []
    values: list[float] = []
    for line, text in enumerate(lines, 1):
        words = text.partition("#")[0].split()
        if not words:
            continue
        try:
            pairs = [(int(index), reading.number(value)) for index, value in (word.split(":") for word in words[1:])]
            label = reading.number(words[0])
        except ValueError as error:
            raise ProblemError(f"{path}, line {line}: {error}; write a label and pairs index:value") from None
        places = [index for index, _ in pairs]
        if any(b <= a for a, b in zip([0, *places], places, strict=False)):
            raise ProblemError(f"{path}, line {line}: indices must increase from 1; found {shown(places[:20])}")
        if not np.isfinite([label, *(value for _, value in pairs)]).all():
            raise ProblemError(f"{path}, line {line}: there are numbers that are not finite; fill or drop that line")
        rows += [len(labels)] * len(pairs)
        columns += [index - 1 for index in places]
        values += [value for _, value in pairs]
        labels.append(label)
    if not labels:
        raise ProblemError(f"{path} has no samples; give {_LIBSVM}")
    largest = max(columns, default=0) + 1
    if features is not None and largest > features:
        raise ProblemError(f"{path} has a feature {largest}, more than features = {features}; raise it")
    check_room(samples=len(labels), features=features or largest)
    X = np.zeros((len(labels), features or largest))
    X[rows, columns] = values
    return X, np.unique(labels, return_inverse=True)[1].astype(np.int64)


def read_cifar10(
    paths: str | Path | Sequence[str | Path], *, sha256: Sequence[str] | None = None
) -> tuple[Array, Ints]:
    """Images and labels from batches of CIFAR-10 in its binary version, such as ``data_batch_1.bin``.

    The Python version is pickled, and could run any code when it is read; it is not accepted.

    Args:
        paths: The file, or a list of files.
        sha256: The SHA-256 of each file, to be checked.

    Returns:
        Images in [0, 1] as float32, shape (samples, 3, 32, 32): red, green and blue; and labels from 0 to 9.
    """
    several = [paths] if isinstance(paths, (str, Path)) else listed("paths", paths, "files", error=ProblemError)
    batches = [_cifar(path, digest) for path, digest in zip(several, _digests(sha256, len(several)), strict=True)]
    if not batches:
        raise ProblemError("paths is empty; give the files of CIFAR-10's binary version")
    records = np.concatenate(batches)
    return _scaled(records[:, 1:].reshape(-1, *_CIFAR_SHAPE)), records[:, 0].astype(np.int64)


def _cifar(path: str | Path, sha256: str | None) -> Array:
    held = _content(path, _CIFAR, sha256)
    records = np.frombuffer(held, np.uint8)
    if not held or len(held) % _RECORD or records[::_RECORD].max() >= _CIFAR_CLASSES:
        raise ProblemError(
            f"{path} has {len(held):,} bytes, and is no list of records of {_RECORD} bytes that begin with a class; "
            f"give {_CIFAR}"
        )
    return records.reshape(-1, _RECORD)


def read_images(folder: str | Path, *, size: tuple[int, int] | None = None) -> tuple[Array, Ints, list[str]]:
    """Images from a folder with one folder per class; needs Pillow.

    Args:
        folder: The folder. Files in its folders that are no images are refused; hidden ones are left out.
        size: Rows and columns to which images are resized; by default they must all have the same.

    Returns:
        Images in [0, 1] as float32, shape (samples, 3, rows, columns), classes, and the classes' names in order.
    """
    try:
        from PIL import Image
    except ImportError as error:
        raise ProblemError(f"folders of images need Pillow ({error}); install it: pip install pillow") from None
    folder = as_path("folder", folder, error=ProblemError)
    if size is not None:
        sides = as_array("size", size, error=ProblemError)
        if sides.shape != (2,) or sides.dtype.kind not in "iu" or not 0 < sides.min() <= sides.max() <= _LARGEST_SIDE:
            raise ProblemError(
                f"size = {shown(size)}: give rows and columns, two whole numbers from 1 to {_LARGEST_SIDE}"
            )
    try:
        seen = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
        files = [(label, path) for label, place in enumerate(seen) for path in _shown(place)]
    except (OSError, ValueError) as error:
        raise ProblemError(
            f"{folder} cannot be read ({getattr(error, 'strerror', error)}); give a folder with one folder per class"
        ) from None
    if not files:
        raise ProblemError(f"{folder} has no images in folders of their classes; put them into {folder}/CLASS/")
    found: list[Any] = []
    for _, path in files:
        held = reading.content(path, _PICTURE, limit=reading.ARRAYS, error=ProblemError)
        with reading.reported(path, _PICTURE, ProblemError), Image.open(io.BytesIO(held)) as picture:
            coloured = picture.convert("RGB")
            found.append(np.asarray(coloured if size is None else coloured.resize((size[1], size[0]))))
    shapes = {image.shape: path for image, (_, path) in zip(found, files, strict=True)}
    if len(shapes) > 1:
        (a, first), (b, second), *_ = shapes.items()
        raise ProblemError(
            f"{first} has {a[0]} x {a[1]} pixels and {second} {b[0]} x {b[1]}; give a size=(rows, columns)"
        )
    X = _scaled(np.stack(found).transpose(0, 3, 1, 2))
    return X, np.array([label for label, _ in files]), [place.name for place in seen]


def _shown(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def _scaled(pixels: Array) -> Array:
    scaled: Array = pixels.astype(np.float32) / np.float32(255)
    return scaled


def _digests(sha256: Any, needed: int) -> list[str | None]:
    if sha256 is None:
        return [None] * needed
    given = [sha256] if isinstance(sha256, str) else listed("sha256", sha256, "digests", error=ProblemError)
    if len(given) != needed or not all(isinstance(each, str) for each in given):
        raise ProblemError(f"sha256 = {shown(sha256)}: give {needed} digests, one per file")
    return given


def _content(path: str | Path, what: str, sha256: str | None) -> bytes:
    held = reading.content(as_path("path", path, error=ProblemError), what, limit=reading.ARRAYS, error=ProblemError)
    found = hashlib.sha256(held).hexdigest()
    if sha256 is not None and found != sha256.strip().lower():
        raise ProblemError(
            f"{path} has the SHA-256 {found}, not {shown(sha256)}; get {what} again, or correct the digest"
        )
    return held
