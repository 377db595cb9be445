"""An upload to an object store: an object is visible only when all of it was sent, and nothing is overwritten.

What fits into one part is created by one conditional request. A larger object is a multipart upload, whose completion
obstore can't make conditional: the name is looked up before the first part and again before completion, and the names
that the operator makes hold a UID. Uploading to a temporary key instead would need a server-side copy, which stores
limit to 5 GiB.
"""

from __future__ import annotations

import queue
import secrets
import time
import weakref
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

from .bucket import Bucket
from .codec import Writer
from .errors import StoreError, UnsureError
from .object_store_errors import code_of, request_errors, status_of

_ATTEMPT = "etcdops-attempt"  # metadata: the upload that an object came from
_PARTS = 10_000  # the most that S3 takes
_SMALLEST_PART = 5 << 20  # the least that S3 takes
_AT_ONCE = 3  # parts being sent; with the one being filled they must fit a Job's memory, beside ansible-playbook
_PIECES = 2  # pieces waiting to become parts
_LOOKS = 3  # how often to look for an object whose upload was not confirmed
_PIECE = 1 << 20
_DRAINING = 60  # seconds: how long an abandoned upload waits for parts that are being sent


@contextmanager
def writing(bucket: Bucket, key: str, size: int) -> Iterator[Writer]:
    """A writer. The object appears when the block succeeds; nothing is left when it fails.

    `size` is about how much will be written at most: it decides how large the parts are.
    """
    if bucket.found(key):
        raise _exists_already(bucket, key)
    with ThreadPoolExecutor(1) as sender:
        upload = Upload(bucket, key, part_size(size), sender)
        try:
            yield upload
            upload.complete()
        except BaseException as error:
            upload.abandon(error)
            raise


def part_size(size: int) -> int:
    """Bytes in a part, so that an object of that size is less than the most parts that a store takes."""
    needed = -(-size // (_PARTS - _PARTS // 10))  # a tenth to spare: size is an estimate
    return max(_SMALLEST_PART, -(-needed // _PIECE) * _PIECE)


class Upload:
    """Sends what is written as one object. obstore pulls the data, in a thread of its own."""

    def __init__(self, bucket: Bucket, key: str, part: int, sender: ThreadPoolExecutor) -> None:
        self._bucket, self._key, self._part = bucket, key, part
        self._attempt = secrets.token_hex(16)
        self._size = 0
        self._first: list[_Piece] = []  # the first part, kept until it is known whether there is a second one
        self._sender = sender
        self._pieces: queue.Queue[_Piece | None] = queue.Queue(_PIECES)
        self._unsent: weakref.WeakSet[_Piece] = weakref.WeakSet()
        self._sending: Future[None] | None = None
        self._abandoned = False

    def write(self, data: bytes | memoryview) -> int:
        self._size += len(data)
        for start in range(0, len(data), _PIECE):
            piece = _Piece(data[start : start + _PIECE])  # a copy: the caller uses its buffer again
            self._unsent.add(piece)
            self._first.append(piece)
        if self._size > self._part:
            self._sending = self._sending or self._sender.submit(self._send)
            with self._bucket.explained(self._key):
                while self._first:
                    self._hand_over(self._first.pop(0), self._sending)
        return len(data)

    def complete(self) -> None:
        """Make the object visible. If the answer is lost, the object itself tells whether that was done."""
        if self._sending and self._bucket.found(self._key):
            raise _exists_already(self._bucket, self._key)
        with self._bucket.explained(self._key):
            try:
                if self._sending:
                    self._hand_over(None, self._sending)
                    self._sending.result()
                else:
                    self._create()
            except request_errors() as error:
                if not self._is_stored(error):
                    raise

    def abandon(self, error: BaseException) -> None:
        """Stop sending, and discard what was sent."""
        if self._sending is None:
            return
        self._abandoned = True
        while not self._sending.done():
            try:
                self._pieces.put(None, timeout=0.1)  # wakes the sender
            except queue.Full:
                continue
            self._sending.exception()
        try:
            self._bucket.abort_uploads(self._key)  # obstore has tried, but does not say whether it could
        except StoreError as problem:
            if isinstance(error, Exception):
                left = f"parts of {self._bucket.url}/{self._key} may be left there"
                raise UnsureError(f"{error}; {left}") from problem

    def _create(self) -> None:
        import obstore  # noqa: PLC0415

        content, attributes = b"".join(self._first), {_ATTEMPT: self._attempt}
        obstore.put(self._bucket.store, self._key, content, mode="create", attributes=attributes)

    def _send(self) -> None:
        import obstore  # noqa: PLC0415

        obstore.put(
            self._bucket.store,
            self._key,
            self._pulled(),
            attributes={_ATTEMPT: self._attempt},
            use_multipart=True,
            chunk_size=self._part,
            max_concurrency=_AT_ONCE,
        )

    def _pulled(self) -> Iterator[_Piece]:
        while (piece := self._pieces.get()) is not None:
            yield piece
            del piece  # as a variable here it would not count as sent
        if self._abandoned:
            self._drain()
            raise StoreError("the upload was abandoned")  # an end without an error would complete it

    def _drain(self) -> None:
        """Wait for the parts that are being sent: a store may keep a part that it gets while an upload is aborted."""
        ends = time.monotonic() + _DRAINING
        while self._in_flight() and time.monotonic() < ends:
            time.sleep(0.02)

    def _in_flight(self) -> bool:
        """Whether obstore holds more than the beginning of a part: it lets go of what was sent."""
        unsent = sum(len(piece) for piece in list(self._unsent))
        return unsent - self._size % self._part > self._part // 2

    def _hand_over(self, piece: _Piece | None, sending: Future[None]) -> None:
        while True:
            if sending.done():  # it can only have failed: it was not told of the end
                sending.result()
            try:
                self._pieces.put(piece, timeout=0.5)
            except queue.Full:
                continue
            return

    def _is_stored(self, error: Exception) -> bool:
        """Whether the object is there though its upload ended in an error."""
        status = status_of(error) or 500
        # A request that was sent again because its answer was lost finds its own object, or its upload completed.
        if status < 500 and status != 412 and code_of(error) != "NoSuchUpload":
            return False
        for look in range(1, _LOOKS + 1):
            try:
                size = self._stored_size()
            except request_errors() as problem:
                raise UnsureError(
                    f"{self._bucket.service} was sent {self._bucket.url}/{self._key} and did not say whether it has it:"
                    f" {self._bucket.explain(self._key, problem)}"
                ) from error
            if size is not None:
                return size == self._size
            if status == 412:
                return False
            time.sleep(look)
        return False

    def _stored_size(self) -> int | None:
        """The size of the object, if this upload made it."""
        import obstore  # noqa: PLC0415

        try:
            found = obstore.get(self._bucket.store, self._key, options={"head": True})
        except FileNotFoundError:
            return None
        return found.meta["size"] if found.attributes.get(_ATTEMPT) == self._attempt else None


class _Piece(bytearray):
    """Some of the data. Unlike bytes it can be weakly referenced."""

    __hash__ = object.__hash__  # type: ignore[assignment]  # by identity


def _exists_already(bucket: Bucket, key: str) -> StoreError:
    return StoreError(f"{bucket.url}/{key} exists already, and nothing is ever overwritten")
