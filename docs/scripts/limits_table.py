"""The table of docs/results/limits.md on the largest stable steps: python -m docs.scripts.limits_table (a minute)."""

from docs.scripts import between
from studies.limits import table

if __name__ == "__main__":
    between.write("results/limits.md", "limits", table())
