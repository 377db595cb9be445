"""What the writer asks a cluster for, and what came of it: put, get, delete, and compare-and-swap of numbered values.

Every value is the number of the operation that wrote it, so a value identifies its write.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

_REGISTERS = 5  # keys that all streams write, so that operations compete
Json = Mapping[str, Any]


@dataclass(frozen=True)
class Seen:
    """A key as an operation saw it: who wrote it last, and when; 0 for both when the key was absent."""

    at: int  # the revision of the store that was looked at
    value: int = 0
    revision: int = 0


@dataclass(frozen=True)
class Operation:
    number: int
    kind: Literal["put", "get", "delete", "swap"]
    key: str
    expected: int = 0  # swap: the revision at which the key must have been written last; 0: it must be absent
    start: float = 0.0
    end: float = 0.0
    revision: int = 0  # of the store afterwards; 0 when there was no answer: it was executed or not
    changed: bool = False
    seen: Seen | None = None
    failure: str = ""


def operation(number: int, prefix: str, known: Mapping[str, int]) -> Operation:
    """The operation of this number. `known` is what the stream knows of keys: the revisions of their last writes."""
    register = f"{prefix}register/{number // 6 % _REGISTERS}"
    match number % 6:
        case 2:
            return Operation(number, "get", register)
        case 3 if number // 6 % 4 == 0:
            return Operation(number, "delete", register)
        case 3:
            return Operation(number, "put", register)
        case 5:
            return Operation(number, "swap", register, expected=known.get(register, 0))
    return Operation(number, "put", f"{prefix}once/{number}")


def request(asked: Operation) -> tuple[str, Json]:
    """The path and the body for the JSON gateway."""
    key, value = {"key": _encoded(asked.key)}, {"value": _encoded(str(asked.number))}
    match asked.kind:
        case "put":
            return "/kv/put", key | value
        case "get":
            return "/kv/range", key
        case "delete":
            return "/kv/deleterange", {**key, "prev_kv": True}
    unchanged = {**key, "target": "MOD", "result": "EQUAL", "mod_revision": str(asked.expected)}
    look: Json = {"request_range": key}
    return "/kv/txn", {"compare": [unchanged], "success": [look, {"request_put": key | value}], "failure": [look]}


def answered(asked: Operation, answer: Json) -> Operation:
    """The operation with what the answer tells."""
    revision = int(answer["header"]["revision"])
    match asked.kind:
        case "put":
            return replace(asked, revision=revision, changed=True)
        case "get":
            pairs, changed = answer.get("kvs", []), False
        case "delete":
            pairs = answer.get("prev_kvs", [])
            changed = bool(pairs)
        case _:
            pairs = answer["responses"][0]["response_range"].get("kvs", [])
            changed = answer.get("succeeded", False)
    # What changed a key saw it as it was before.
    return replace(asked, revision=revision, changed=changed, seen=seen(pairs, revision - changed))


def last_write(done: Operation) -> int:
    """The revision at which the key was written last, as this operation left it; 0 when it is absent now."""
    if done.changed:
        return 0 if done.kind == "delete" else done.revision
    return done.seen.revision if done.seen else 0


def seen(pairs: Iterable[Json], at: int) -> Seen:
    """What an answer with at most one key shows."""
    for pair in pairs:
        return Seen(at, int(base64.b64decode(pair["value"])), int(pair["mod_revision"]))
    return Seen(at)


def read_back(history: Iterable[Operation], prefix: str, answer: Json, end: float) -> list[Operation]:
    """One get for each key that was written or found, from the answer to a range over all of them."""
    found = {base64.b64decode(pair["key"]).decode(): pair for pair in answer.get("kvs", [])}
    revision = int(answer["header"]["revision"])
    keys = sorted({each.key for each in history} | set(found))
    return [
        Operation(0, "get", key, start=end, end=end, revision=revision, seen=seen([found[key]], revision))
        if key in found
        else Operation(0, "get", key, start=end, end=end, revision=revision, seen=Seen(revision))
        for key in keys
        if key.startswith(prefix)
    ]


def line(done: Operation) -> str:
    return json.dumps(asdict(done))


def from_line(text: str) -> Operation:
    stored = json.loads(text)
    return Operation(**{**stored, "seen": Seen(**stored["seen"]) if stored["seen"] else None})


def range_over(prefix: str) -> Json:
    """The body of a request for all keys with a prefix."""
    return {"key": _encoded(prefix), "range_end": _encoded(prefix[:-1] + chr(ord(prefix[-1]) + 1))}


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
