"""Property tests: the same examples in every run, so that a red build is the change's; ``HYPOTHESIS_PROFILE=explore``
looks for new ones, and what it finds becomes an example or a fix.
"""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("repeat", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeat"))
