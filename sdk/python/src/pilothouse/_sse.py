"""Parser of Server-Sent Events."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

from ._errors import PilothouseConnectionError

# Longest line of a stream: the service sends none longer than 1 MiB.
_MAX_LINE = 4 * 2**20
# A carriage return at the end of a chunk may be followed by a line feed.
_LINE_END = re.compile(r"\r\n|\n|\r(?=.)", re.DOTALL)


class EventParser:
    """Parses chunks of a stream into frames. An unfinished last frame is dropped, as the standard requires."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self._id = ""
        self._type = ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> Iterator[tuple[str, str, str]]:
        """Returns the id, type and data of each frame that ends in a chunk."""
        *lines, self._rest = _LINE_END.split(self._rest + self._decoder.decode(chunk))
        if len(self._rest) > _MAX_LINE:
            raise PilothouseConnectionError(f"expected lines below {_MAX_LINE} characters")
        for line in lines:
            if line == "":
                if self._data or self._id:
                    yield self._id, self._type, "\n".join(self._data)
                self._id, self._type, self._data = "", "", []
                continue
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "id":
                self._id = value
            elif name == "event":
                self._type = value
            elif name == "data":
                self._data.append(value)
