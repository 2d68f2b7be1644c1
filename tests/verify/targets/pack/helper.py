from __future__ import annotations

import logging
import sys
import warnings

import torch

logger = logging.getLogger(__name__)
logger.propagate = False


def remark(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    logger.warning("remark")
    print("printed", "twice")
    warnings.warn("careful", FutureWarning, stacklevel=2)
    sys.stderr.write("written\n")
    return y * 2
