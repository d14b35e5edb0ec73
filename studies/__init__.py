"""This project's own evaluation of PerronD3GD; not part of the installed package."""
