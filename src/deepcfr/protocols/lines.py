"""Lines of the dealer protocol over asyncio streams."""

from __future__ import annotations

import asyncio

from deepcfr.protocols.acpc import LINE_END, MOST_CHARACTERS, ProtocolError, is_comment


async def next_line(reader: asyncio.StreamReader, peer: str) -> str | None:
    """The next line that says something, without its end; None if the connection ended instead.

    The reader's limit must be MOST_CHARACTERS. Raises ProtocolError for a line that is longer, or is not ASCII text, and
    OSError if the connection breaks.
    """
    while True:
        try:
            raw = await reader.readline()
        except ValueError as error:
            raise ProtocolError(f"{peer} sent a line of more than {MOST_CHARACTERS:,} characters.") from error
        if not raw.endswith(b"\n"):
            return None
        try:
            line = raw.decode("ascii").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise ProtocolError(f"{peer} sent {raw[:60]!r}, which is not ASCII text.") from error
        if not is_comment(line):
            return line


async def send_line(writer: asyncio.StreamWriter, text: str) -> None:
    """Send a line. Raises OSError if the connection is broken."""
    writer.write((text + LINE_END).encode("ascii"))
    await writer.drain()
