"""Fixtures of the runtime's tests."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
import torch

pytest.register_assert_rewrite("tests.runtime.hearing")

from tests.runtime.hearing import Ear  # noqa: E402


@pytest.fixture
def ear() -> Iterator[Ear]:
    logging.getLogger("tests").setLevel(logging.DEBUG)
    yield Ear()
    torch._dynamo.reset()
