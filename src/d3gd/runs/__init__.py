"""A run on disk, and what long work shows while it goes on."""
