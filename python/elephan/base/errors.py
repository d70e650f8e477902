"""Errors that end a command with one line, in addition to `ScenarioError` for bad input, and what their lines say."""

import inspect
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from difflib import SequenceMatcher

from elephan import _core
from elephan._core import ScenarioError

# What ends a name and tells no more than its unit.
UNITS = {"s", "bit"}
# A name that is spelt so much alike is meant, and so are all that are so near to the best.
ALIKE, EQUALLY = 0.6, 0.05
# A keyword that a class of the extension module does not have.
UNEXPECTED = re.compile(r"(\w+)\.__new__\(\) got an unexpected keyword argument '(\w+)'")


class FailedError(RuntimeError):
    """A valid request could not be carried out; the message says what was expected."""


@contextmanager
def given_as(names: Mapping[str, str]) -> Iterator[None]:
    """Let errors name the options or arguments that gave a value, in place of its keys: `{"path.rate": "--rate"}`.

    Numbers in keys do not count: `flow.cc` is the key of every flow.
    """

    def named(line: str) -> str:
        key, _, rest = line.removeprefix("scenario: ").partition(": ")
        name = names.get(re.sub(r"\.\d+", "", key))
        return line if name is None else f"{name}: {rest}"

    try:
        yield
    except ScenarioError as error:
        told = "\n".join(map(named, str(error).split("\n")))
        if told == str(error) or type(error) is not ScenarioError:
            raise
        raise ScenarioError(told) from error


def told(error: BaseException) -> str:
    """An exception of a user's code in one line: its kind and text, with the attribute or keyword that may have been meant."""
    text = f"{type(error).__name__}: {error}".removesuffix(": ")
    unexpected = UNEXPECTED.match(str(error))
    if isinstance(error, AttributeError) and error.name and not hasattr(error.obj, error.name):
        known, owner, name = dir(error.obj), type(error.obj), error.name
    elif unexpected and hasattr(_core, unexpected[1]):
        owner, name = getattr(_core, unexpected[1]), unexpected[2]
        known = dir(owner)
    else:
        return text
    known = [one for one in known if not one.startswith("_")]
    of_class = {one: getattr(owner, one, None) for one in known}
    fields = {one: inspect.getdoc(field) or "" for one, field in of_class.items() if inspect.isdatadescriptor(field)}
    # The first word of what is said of a field counts as one of its name: `rtt_s` is the "Mean" of round-trip times.
    words = {one: {*one.lower().split("_"), fields.get(one, "").partition(" ")[0].lower()} for one in known}
    rank = {
        one: (len(words[one] & {*name.lower().split("_")}), SequenceMatcher(None, name, one).ratio()) for one in known
    }
    shares, alike = max(rank.values(), default=(0, 0.0))
    meant = [one for one, (count, ratio) in rank.items() if count == shares and ratio > alike - EQUALLY]
    if meant and (alike >= ALIKE or words[meant[0]] & {*name.lower().split("_")} - UNITS):
        expected = f"; did you mean {' or '.join(map(repr, meant))}?"
    elif fields:
        expected = f"; it has {', '.join(fields)}"
    else:
        return text
    return f"{type(error).__name__}: {owner.__name__} has no {name!r}{expected}"
