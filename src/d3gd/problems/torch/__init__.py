"""PyTorch modules as problems."""
