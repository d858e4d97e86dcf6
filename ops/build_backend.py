"""The build backend of ``pyproject.toml``: flit's, which first refuses to build without the files of third parties.

It never downloads. Builds of a checkout run in any environment, also without a network.

Source: PEP 517, "In-tree build backends"; PEP 660.
"""

from __future__ import annotations

from typing import Any

from flit_core import buildapi
from flit_core.buildapi import (
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)
from third_party import refuse_absent

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    """Build the wheel and return its name."""
    refuse_absent()
    name: str = buildapi.build_wheel(wheel_directory, config_settings, metadata_directory)
    return name


def build_editable(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    """Build a wheel that refers to the checkout and return its name."""
    refuse_absent()
    name: str = buildapi.build_editable(wheel_directory, config_settings, metadata_directory)
    return name


def build_sdist(sdist_directory: str, config_settings: Any = None) -> str:
    """Build the source archive, with the files of third parties, and return its name."""
    refuse_absent()
    name: str = buildapi.build_sdist(sdist_directory, config_settings)
    return name
