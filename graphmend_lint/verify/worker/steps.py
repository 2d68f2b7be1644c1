"""The steps of an arm. Each takes the job and returns a JSON record; tensors go to a file beside it."""

from __future__ import annotations

import copy
import importlib
import platform
import random
import re
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import torch

from graphmend_lint.verify.worker import compare
from graphmend_lint.verify.worker.capture import GraphCounter, break_log, reason_of, sites_of
from graphmend_lint.verify.worker.executed import executed_files, packages_of, user_files
from graphmend_lint.verify.worker.job import Job, StepFailure
from graphmend_lint.verify.worker.leaves import Leaf, detached, leaves_of
from graphmend_lint.verify.worker.messages import listening
from graphmend_lint.verify.worker.subject import (
    InputSet,
    Subject,
    build,
    build_same,
    device_of,
    save_shared,
    seed,
)

_NO_MEMORY = re.compile(r"out of memory|can't allocate memory|not enough memory", re.IGNORECASE)


def prepare(job: Job) -> dict[str, Any]:
    """Saves weights and inputs for all other steps, and finds out which files the calls execute."""
    loaded = set(sys.modules)
    subject = build(job)
    modules = [name for name in sys.modules if name not in loaded]
    save_shared(job, subject)
    with executed_files() as files:
        for pair in subject.inputs:
            _call(job, subject, subject.model, pair)
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
    if job.options["backend"] == "inductor":
        # Inductor's own random numbers are other ones than those of eager code.
        inductor: Any = importlib.import_module("torch._inductor.config")
        inductor.fallback_random = True
    options = {name: job.options[name] for name in ("backend", "mode", "dynamic")}
    return _observed(job, "compiled", subject, torch.compile(subject.model, **options))


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
    return {
        "eager": compare.compare(original / "eager.pt", fixed / "eager.pt", compare.EXACT),
        "compiled": compare.compare(original / "compiled.pt", fixed / "compiled.pt", close),
        "original_compiled_to_eager": compare.compare(original / "eager.pt", original / "compiled.pt", close),
        "fixed_compiled_to_eager": compare.compare(original / "eager.pt", fixed / "compiled.pt", close),
    }


STEPS: dict[str, Callable[[Job], dict[str, Any]]] = {
    "prepare": prepare,
    "eager": eager,
    "compiled": compiled,
    "capture": capture,
    "compare": compare_arms,
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
            left, error = _call(job, subject, function, pair)
            messages.append(ear.take())
            raised.append(error)
            saved.append(left)
    saved.append({"state": detached(subject.state())})
    compare.save(job.home / f"{step}.pt", saved)
    return {"messages": messages, "raised": raised, "recompiles": ear.recompiles}


def _call(
    job: Job, subject: Subject, function: Callable[..., Any], pair: InputSet
) -> tuple[dict[str, list[Leaf]], dict[str, str] | None]:
    """One call with inputs of its own: what it leaves behind, and what it raised."""
    args, kwargs = _copied(pair)
    output, raised = None, None
    left = {}
    seed(job.options["seed"])
    with torch.set_grad_enabled(job.options["grad"]):
        try:
            output = function(*args, **kwargs)
            left["outputs"] = detached(output)
            if job.options["grad"]:
                left["gradients"] = _gradients(subject, output, (args, kwargs))
        except Exception as error:
            _check_memory(error)
            raised = {"type": f"{type(error).__module__}.{type(error).__qualname__}", "text": str(error)}
    left["random"] = detached(_random_state(job))
    left["inputs"] = detached((args, kwargs))
    return left, raised


def _copied(pair: InputSet) -> InputSet:
    try:
        return copy.deepcopy(pair)
    except Exception:
        # Not every object can be copied; both arms then hand on the same one each time.
        return pair


def _gradients(subject: Subject, output: Any, inputs: InputSet) -> list[Leaf]:
    """The gradients of the sum of all outputs, in parameters and inputs; they are cleared afterwards."""
    results = [leaf.value for leaf in leaves_of(output) if isinstance(leaf.value, torch.Tensor)]
    losses = [result.sum() for result in results if result.requires_grad and result.is_floating_point()]
    if not losses:
        return []
    torch.autograd.backward(losses)
    owners = subject.state() | {
        leaf.path: leaf.value for leaf in leaves_of(inputs, "input ") if isinstance(leaf.value, torch.Tensor)
    }
    found = {name: tensor.grad for name, tensor in owners.items() if tensor.is_leaf}
    kept = detached(found)
    for tensor in owners.values():
        if tensor.is_leaf:
            tensor.grad = None
    return kept


def _random_state(job: Job) -> dict[str, Any]:
    state: dict[str, Any] = {"torch": torch.get_rng_state(), "python": repr(random.getstate())}
    if device_of(job.options["device"]).type == "cuda":
        state["cuda"] = torch.cuda.get_rng_state()
    if numpy := sys.modules.get("numpy"):
        state["numpy"] = numpy.random.get_state()
    return state


def _trace(job: Job, index: int, counter: GraphCounter, *, fullgraph: bool) -> str | None:
    """Traces one call of an input set; the reason in one line where Dynamo refused."""
    subject = build_same(job)
    torch._dynamo.reset()
    function = torch.compile(subject.model, backend=counter, fullgraph=fullgraph, dynamic=job.options["dynamic"])
    args, kwargs = _copied(subject.inputs[index])
    seed(job.options["seed"])
    with torch.set_grad_enabled(job.options["grad"]):
        try:
            function(*args, **kwargs)
        except torch._dynamo.exc.TorchDynamoException as error:
            return reason_of(str(error))
        except Exception as error:
            # An exception of the model's own: it came out of a captured graph.
            _check_memory(error)
    return None


def _check_memory(error: Exception) -> None:
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and _NO_MEMORY.search(str(error))):
        raise StepFailure("out of memory") from error


def _environment(job: Job) -> dict[str, Any]:
    device = device_of(job.options["device"])
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor() or platform.machine()
    names = ("backend", "mode", "dynamic", "dtype", "calls", "train", "grad", "exact", "tolerance", "seed")
    return {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "device": device.type,
        "device_name": name,
        **{name: job.options[name] for name in names},
    }
