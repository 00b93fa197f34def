"""Settings that every test runs under."""

from __future__ import annotations

import os

from hypothesis import settings

# Figures are drawn to files, never to a screen.
os.environ["MPLBACKEND"] = "Agg"

# The same examples on every machine and every day, and no verdict about a slow moment. For a
# search over new ones: HYPOTHESIS_PROFILE=default python -m pytest …
settings.register_profile("steady", derandomize=True, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))
