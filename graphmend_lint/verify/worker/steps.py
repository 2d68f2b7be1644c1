"""The steps of an arm. Each takes the job and returns a JSON record; tensors go to a file beside it."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import torch

from graphmend_lint.verify.worker import compare
from graphmend_lint.verify.worker.calls import call, check_memory, copied
from graphmend_lint.verify.worker.capture import GraphCounter, break_log, reason_of, sites_of
from graphmend_lint.verify.worker.executed import executed_files, packages_of, user_files
from graphmend_lint.verify.worker.job import Job
from graphmend_lint.verify.worker.leaves import detached
from graphmend_lint.verify.worker.messages import listening
from graphmend_lint.verify.worker.replay import observe
from graphmend_lint.verify.worker.subject import (
    Subject,
    build,
    build_same,
    device_of,
    save_shared,
    seed,
)
from graphmend_lint.verify.worker.timing import compiled_like, timed


def prepare(job: Job) -> dict[str, Any]:
    """Saves weights and inputs for all other steps, and finds out which files the calls execute."""
    loaded = set(sys.modules)
    subject = build(job)
    modules = [name for name in sys.modules if name not in loaded]
    save_shared(job, subject)
    with executed_files() as files:
        for pair in subject.inputs:
            call(job, subject, subject.model, pair)
    executed = user_files(files)
    return {
        "input_sets": len(subject.inputs),
        "modules": modules,
        "executed": executed,
        "packages": sorted({*packages_of(executed), job.module.partition(".")[0]}),
        "environment": _environment(job),
    }


def eager(job: Job) -> dict[str, Any]:
    """Runs the calls as plain Python."""
    subject = build_same(job)
    return _observed(job, "eager", subject, subject.model)


def compiled(job: Job) -> dict[str, Any]:
    """Runs the same calls compiled with the chosen backend."""
    subject = build_same(job)
    return _observed(job, "compiled", subject, compiled_like(job, subject.model))


def capture(job: Job) -> dict[str, Any]:
    """Counts graphs and lists breaks for each input set, each on a model of its own and from a fresh
    Dynamo.
    """
    indices = range(_prepared(job)["input_sets"])
    with break_log() as entries:
        counters = [GraphCounter() for _ in indices]
        for index in indices:
            _trace(job, index, counters[index], fullgraph=False)
        sites = sites_of(entries)
    return {
        "graphs": [counter.graphs for counter in counters],
        "sites": [asdict(site) for site in sites],
        "fullgraph": [_trace(job, index, GraphCounter(), fullgraph=True) for index in indices],
    }


def compare_arms(job: Job) -> dict[str, Any]:
    """Compares the tensors that the steps of both arms left behind."""
    original, fixed = job.original, job.home
    close = compare.Closeness(job.options["exact"], job.options["tolerance"])
    found = {"eager": compare.compare(original / "eager.pt", fixed / "eager.pt", compare.EXACT)}
    if "compiled" in job.steps:
        found |= {
            "compiled": compare.compare(original / "compiled.pt", fixed / "compiled.pt", close),
            "original_compiled_to_eager": compare.compare(original / "eager.pt", original / "compiled.pt", close),
            "fixed_compiled_to_eager": compare.compare(original / "eager.pt", fixed / "compiled.pt", close),
        }
    return found


def timing(job: Job) -> dict[str, Any]:
    """How long one pass over the input sets takes, and how much memory."""
    return timed(job, build_same(job), _prepared(job)["packages"])


def sides(job: Job) -> dict[str, Any]:
    """Which sides of the watched predicates are taken, and whether both versions agree on other values."""
    return observe(job, build_same(job), _prepared(job)["packages"])


STEPS: dict[str, Callable[[Job], dict[str, Any]]] = {
    "prepare": prepare,
    "eager": eager,
    "compiled": compiled,
    "capture": capture,
    "compare": compare_arms,
    "timing": timing,
    "sides": sides,
}


def _prepared(job: Job) -> dict[str, Any]:
    record = job.prepared()
    assert record is not None, "the original arm prepares first"
    return record


def _observed(job: Job, step: str, subject: Subject, function: Callable[..., Any]) -> dict[str, Any]:
    """Runs the sequence of calls; records messages and exceptions, saves the tensors that each leaves."""
    messages, raised, saved = [], [], []
    sequence = subject.inputs * job.options["calls"]
    with listening(_prepared(job)["packages"]) as ear:
        for number, pair in enumerate(sequence, 1):
            job.enter(f"{step} run, call {number} of {len(sequence)}")
            left, error = call(job, subject, function, pair)
            messages.append(ear.take())
            raised.append(error)
            saved.append(left)
    saved.append({"parameters": detached(_parameters(subject))})
    compare.save(job.home / f"{step}.pt", saved)
    return {"messages": messages, "raised": raised, "recompiles": ear.recompiles}


def _parameters(subject: Subject) -> dict[str, torch.Tensor]:
    """Compared once, at the end: they are large, and a call in eval mode seldom changes them."""
    return {name: value for name, value in subject.state().items() if isinstance(value, torch.nn.Parameter)}


def _trace(job: Job, index: int, counter: GraphCounter, *, fullgraph: bool) -> str | None:
    """Traces one call of an input set; the reason in one line where Dynamo refused."""
    subject = build_same(job)
    torch._dynamo.reset()
    function = torch.compile(subject.model, backend=counter, fullgraph=fullgraph, dynamic=job.options["dynamic"])
    args, kwargs = copied(subject.inputs[index])
    seed(job.options["seed"])
    with torch.set_grad_enabled(job.options["grad"]):
        try:
            function(*args, **kwargs)
        except torch._dynamo.exc.TorchDynamoException as error:
            return reason_of(str(error))
        except Exception as error:
            # An exception of the model's own: it came out of a captured graph.
            check_memory(error)
    return None


def _environment(job: Job) -> dict[str, Any]:
    device = device_of(job.options["device"])
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor() or platform.machine()
    names = ("backend", "mode", "dynamic", "dtype", "calls", "train", "grad", "exact", "tolerance", "seed", "passes")
    return {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "device": device.type,
        "device_name": name,
        **{name: job.options[name] for name in names},
    }
