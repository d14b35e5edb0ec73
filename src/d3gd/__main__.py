"""The command line, as ``python -m d3gd``."""

from d3gd.cli import main

if __name__ == "__main__":
    main()
