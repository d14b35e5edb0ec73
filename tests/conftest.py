"""Every test draws its examples as `tests.strategies` says, whether it imports it or not."""

import tests.strategies  # noqa: F401
