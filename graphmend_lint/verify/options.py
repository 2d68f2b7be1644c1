"""How a target is run: everything that the two arms share."""

from __future__ import annotations

from dataclasses import dataclass

EXACT_BACKEND = "eager"


@dataclass(frozen=True, slots=True)
class Options:
    """`device` "auto" is the GPU where torch sees one. `calls` is how often the sequence of input sets is
    run.

    `passes` is how often it is run again to measure the steady state; with 0, nothing is timed.
    `require_both_sides` makes a rewritten predicate with a side that was not exercised a reason against the proof.

    `tolerance` is absolute and relative. Where it is None, compiled outputs are compared bit for bit on the
    eager backend, and with a tolerance by dtype (see `worker.compare`) on the others. `timeout` is in
    seconds, for each arm.
    """

    backend: str = EXACT_BACKEND
    mode: str | None = None
    dynamic: bool | None = None
    device: str = "auto"
    dtype: str | None = None
    calls: int = 2
    train: bool = False
    grad: bool = False
    tolerance: float | None = None
    timeout: float = 900.0
    seed: int = 0
    passes: int = 10
    require_both_sides: bool = False

    @property
    def exact(self) -> bool:
        """True where compiled outputs must agree bit for bit."""
        return self.tolerance is None and self.backend == EXACT_BACKEND
