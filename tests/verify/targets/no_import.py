"""A target whose import fails."""

from __future__ import annotations

import a_package_that_nobody_has  # type: ignore[import-not-found]

build = a_package_that_nobody_has.build
