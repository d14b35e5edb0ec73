"""Data for the problems: synthetic, real, and from users' files."""

from d3gd.data.bundled import breast_cancer, digits, wine
from d3gd.data.files import read_cifar10, read_idx, read_images, read_libsvm
from d3gd.data.mixture import dirichlet_mixture
from d3gd.data.readers import read_table
from d3gd.data.split import hold_out, split_by_label

__all__ = [
    "breast_cancer",
    "digits",
    "dirichlet_mixture",
    "hold_out",
    "read_cifar10",
    "read_idx",
    "read_images",
    "read_libsvm",
    "read_table",
    "split_by_label",
    "wine",
]
