"""The official Python SDK, in the version that this Python has.

Version 1, which most current clients use, has the era "legacy" and, over HTTP with SSE, "sse". Version 2 has all
four eras. `connect` returns a client of version 2, or one of version 1 with the interface that client.py uses.
"""

import contextlib
import importlib.metadata

from mcp import types
from mcp.client.sse import sse_client

VERSION = importlib.metadata.version("mcp")
NAME = f"python mcp {VERSION}"
IS_FIRST = VERSION.startswith("1.")

# The seconds for an HTTP request over SSE. The SDK allows 5, which ten clients on a busy machine need to connect.
TIMEOUT = 60

if IS_FIRST:
    from mcp import ClientSession
    from mcp.client.streamable_http import streamable_http_client
else:
    from mcp import Client


def connect(url, era, elicit=None):
    """Returns the context of a connected client. `elicit` returns the name that answers an elicitation."""

    async def answer(_context, _params):
        return types.ElicitResult(action="accept", content={"name": await elicit()})

    callback = answer if elicit else None
    if IS_FIRST:
        return first(url, era, callback)
    # "modern" uses "auto" too: a client that pins the version does not test the negotiation.
    mode = "legacy" if era in ("legacy", "sse") else "auto"
    return Client(sse_client(url, timeout=TIMEOUT) if era == "sse" else url, mode=mode, elicitation_callback=callback)


@contextlib.asynccontextmanager
async def first(url, era, callback):
    transport = sse_client(url, timeout=TIMEOUT) if era == "sse" else streamable_http_client(url)
    async with transport as (read, write, *_), ClientSession(read, write, elicitation_callback=callback) as session:
        answer = await session.initialize()
        yield First(session, answer.protocolVersion)


class First:
    """A session of version 1 with the interface of version 2."""

    def __init__(self, session, protocol):
        self.session = session
        self.protocol_version = protocol
        self.call_tool = session.call_tool

    async def list_tools(self, cursor):
        return Page(await self.session.list_tools(params=page_from(cursor)))

    async def list_resources(self, cursor):
        return Page(await self.session.list_resources(params=page_from(cursor)))

    async def list_prompts(self, cursor):
        return Page(await self.session.list_prompts(params=page_from(cursor)))


class Page:
    def __init__(self, page):
        self.page = page
        self.next_cursor = page.nextCursor

    def __getattr__(self, name):
        return getattr(self.page, name)


def page_from(cursor):
    return types.PaginatedRequestParams(cursor=cursor) if cursor else None


def is_error(result):
    return result.isError if IS_FIRST else result.is_error
