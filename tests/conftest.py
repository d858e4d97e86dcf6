"""Property tests use the same examples in every run, so that a failure is caused by the change;
``HYPOTHESIS_PROFILE=explore`` generates new ones, and each failure found becomes an example or a fix.
"""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("repeat", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeat"))
