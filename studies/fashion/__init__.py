"""A study on Fashion-MNIST: ``python -m studies.fashion --help``."""
