"""What tests with PyTorch share."""

import pytest


@pytest.fixture
def one_thread():
    """Small networks are slower on many threads, most of all where tests share the cores."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
