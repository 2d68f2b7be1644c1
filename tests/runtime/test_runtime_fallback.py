"""What cannot be carried is called directly: the same messages, and no more graph breaks than the plain call
has."""

from __future__ import annotations

import enum
import functools
import io
import logging
import sys
import warnings
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from graphmend_lint.runtime import deferred, formatted, percent, when
from tests.runtime.hearing import Ear, listening

logger = logging.getLogger("tests.runtime.fallback")
unknown = logging.Logger("not in the tree")
adapter = logging.LoggerAdapter(logger, {"a": 1})
alias = logger.warning
X = torch.tensor([1.0, 2.0])
HEARD: list[Any] = []


class Thing:
    def __repr__(self) -> str:
        return "a thing"


class Name(str):
    pass


class Named(tuple[int, ...]):
    def __repr__(self) -> str:
        return "mine"


class Sub(torch.Tensor):
    pass


class Local(UserWarning):
    def __init__(self, a: str, b: str) -> None:
        super().__init__(a + b)


def callback(*values: Any) -> None:
    HEARD.append([str(value) for value in values])


THING, ITEMS, SINK, SUB = Thing(), {1, 2}, io.StringIO(), torch.ones(2).as_subclass(Sub)


def thing(say: Any, x: torch.Tensor) -> None:
    say(print)("a", THING, x.sum())


def set_(say: Any, x: torch.Tensor) -> None:
    say(print)("a", ITEMS)


def nested(say: Any, x: torch.Tensor) -> None:
    say(logger).warning("a %s", {"deep": [THING, x]})


def subclass(say: Any, x: torch.Tensor) -> None:
    say(print)(SUB)


def text_subclass(say: Any, x: torch.Tensor) -> None:
    say(print)(Name("n"), Named((1, 2)))


def file(say: Any, x: torch.Tensor) -> None:
    say(print)("x", file=SINK)


def aliased(say: Any, x: torch.Tensor) -> None:
    say(alias)("bound early")


def of_adapter(say: Any, x: torch.Tensor) -> None:
    say(adapter).warning("adapter")


def of_unknown(say: Any, x: torch.Tensor) -> None:
    say(unknown).warning("unknown")


def of_callback(say: Any, x: torch.Tensor) -> None:
    say(callback)("text", x)


def of_partial(say: Any, x: torch.Tensor) -> None:
    say(functools.partial(print, "first"))("second")


def odd_warning(say: Any, x: torch.Tensor) -> None:
    say(warnings.warn)(Local("a", "b"))


def with_module(say: Any, x: torch.Tensor) -> None:
    say(print)(LINEAR)


def handled(say: Any, x: torch.Tensor) -> None:
    try:
        raise ValueError("inside")
    except ValueError:
        say(logger).error("with trace", exc_info=False)
        say(logger).warning("no trace")
        say(logger).exception("its trace")
        say(logger).error("again", exc_info=True)
        say(print)("printed")


LINEAR = torch.nn.Linear(1, 1)
ALL = [
    thing,
    set_,
    nested,
    subclass,
    text_subclass,
    file,
    aliased,
    of_adapter,
    of_unknown,
    of_callback,
    of_partial,
    odd_warning,
    with_module,
    handled,
]


def forget() -> None:
    HEARD.clear()
    SINK.truncate(0)
    SINK.seek(0)


def plainly(target: Any) -> Any:
    return target


@pytest.mark.parametrize("speak", ALL)
def test_falls_back_to_the_plain_call(ear: Ear, speak: Any) -> None:
    def fixed(x: torch.Tensor) -> torch.Tensor:
        x = x * 2
        speak(deferred, x)
        return x + 1

    def plain(x: torch.Tensor) -> torch.Tensor:
        x = x * 2
        speak(plainly, x)
        return x + 1

    heard, frames = [], []
    for function in (plain, fixed):
        forget()
        events, *counts = ear.measured(function, (X,), (X,))
        heard.append(([event[:4] for event in events], [*HEARD], SINK.getvalue()))
        frames.append(counts)
    forget()
    eager = [event[:4] for event in ear.eager(fixed, (X,), (X,))], [*HEARD], SINK.getvalue()
    assert heard[0] == heard[1] == eager
    assert frames[1][0] <= frames[0][0]
    assert frames[1][1] <= frames[0][1]


def test_the_place_is_kept_after_a_fallback() -> None:
    def speak(x: torch.Tensor) -> torch.Tensor:
        deferred(logger).warning("%s", THING)
        deferred(warnings.warn)(Local("a", "b"))
        return x + 1

    torch._dynamo.reset()
    with listening() as events:
        torch.compile(speak, backend="eager")(X)
    line = speak.__code__.co_firstlineno
    assert events[0][4][:2] == (__file__, line + 1)
    assert events[1][3] == (__file__, line + 2)


def test_other_attributes_are_used_as_they_are(ear: Ear) -> None:
    def speak(x: torch.Tensor) -> Any:
        if deferred(logger).isEnabledFor(logging.ERROR):
            deferred(print)("enabled")
        return x + deferred(logger).level

    ear.same(speak, (X,), fullgraph=False)


def escaping(x: torch.Tensor) -> Any:
    text = formatted("n {} of {!r}", x.shape[0], x.shape)
    more = percent("%s!", x.shape[0])
    print(
        text,
        more,
        str(text),
        text + "a",
        "a" + more,
        len(text),
        text.upper(),
        text == "n",
        [text],
        str(more),
    )
    deferred(callback)(text, formatted("{}", x))
    deferred(unknown).warning(text)
    if alarm := when(x.sum() > 0):
        alarm(callback)(text)
    return x + 1


def test_texts_that_escape_are_right(ear: Ear) -> None:
    heard = []
    for compiled in (False, True):
        HEARD.clear()
        events = ear.compiled(escaping, (X,), fullgraph=False) if compiled else ear.eager(escaping, (X,))
        heard.append((events, [*HEARD]))
    assert heard[0] == heard[1]
    assert len(heard[0][1]) == 2


def test_a_text_in_an_f_string_is_an_error_not_a_wrong_text() -> None:
    torch._dynamo.reset()
    with pytest.raises(TypeError, match="may only be an argument of a deferred call"):
        torch.compile(lambda x: (x + 1, f"{formatted('{}', x.shape[0])}"), backend="eager")(X)


def test_when_guards_uncarriable_calls_too(ear: Ear) -> None:
    def speak(x: torch.Tensor) -> torch.Tensor:
        if alarm := when(x.sum() > 0):
            alarm(print)("positive", THING)
            alarm(logger).warning("%s", THING)
            alarm(adapter).warning("adapter")
        return x + 1

    heard = []
    for compiled in (False, True):
        calls = (X,), (-X,), (X,)
        events = ear.compiled(speak, *calls, fullgraph=False) if compiled else ear.eager(speak, *calls)
        heard.append([event[:4] for event in events])
    assert heard[0] == heard[1]


def test_meta_and_fake_tensors(ear: Ear) -> None:
    def speak(x: torch.Tensor) -> torch.Tensor:
        deferred(print)("x", x, x.sum(), x.shape)
        return x + 1

    ear.same(speak, (torch.empty(3, device="meta"),), (torch.empty(4, 5, device="meta"),))
    with FakeTensorMode() as mode:
        torch.compile(speak, backend="eager")(mode.from_tensor(X))


class Level(enum.Enum):
    HIGH = sys.maxsize


def test_deferred_inside_a_disabled_function(ear: Ear) -> None:
    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def quiet(x: torch.Tensor) -> None:
        deferred(print)("disabled", x, Level.HIGH)
        if alarm := when(x.sum() > 0):
            alarm(print)("positive")

    def speak(x: torch.Tensor) -> torch.Tensor:
        quiet(x)
        return x + 1

    ear.same(speak, (X,), fullgraph=False)
