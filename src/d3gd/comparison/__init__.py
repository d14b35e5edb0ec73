"""Fair comparisons of methods."""
