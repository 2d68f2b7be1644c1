"""Many generated programs, fixed and run: `python -m tests.fuzz`. Exit 1 if a fix is wrong."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed

from tests.fuzz.campaign import Chunk, run_chunk

#: How many programs a seed stands for.
_PROGRAMS = 200


def main() -> int:
    options = _parser().parse_args()
    sys.stdout.write(f"seed {options.seed}: {options.examples} programs in {options.processes} processes\n")
    # One core for each process; read by what it starts.
    os.environ["OMP_NUM_THREADS"] = "1"
    start, total = time.monotonic(), Chunk()
    seeds = [options.seed * 1000 + number for number in range(-(-options.examples // _PROGRAMS))]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.processes, mp_context=context) as pool:
        futures = [pool.submit(run_chunk, seed, _PROGRAMS, options.compiled) for seed in seeds]
        for done, future in enumerate(as_completed(futures), 1):
            known = set(total.finds)
            total.add(future.result())
            for name in total.finds.keys() - known:
                sys.stdout.write(f"\n{'=' * 100}\n{total.finds[name]}\n")
            if done % 10 == 0:
                sys.stdout.write(f"{total}, {time.monotonic() - start:.0f} s\n")
                sys.stdout.flush()
    sys.stdout.write(f"seed {options.seed}: {total}, {time.monotonic() - start:.0f} s\n")
    return 1 if total.finds else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--examples", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--compiled", type=int, default=20, help="one in how many fixed programs is compiled; 0: none")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
