"""Properties are checked with the same examples in every run: a red test stays red until it is mended."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("steady", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("steady")
