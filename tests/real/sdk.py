"""The official Python SDK, of whichever version this Python has.

Version 1, which most clients of today are built on, has the era "legacy" and, over HTTP with SSE, "sse"; version 2
has all four. `connect` gives a client of version 2, or one that looks like it as far as client.py goes.
"""

import contextlib
import importlib.metadata

from mcp import types
from mcp.client.sse import sse_client

VERSION = importlib.metadata.version("mcp")
NAME = f"python mcp {VERSION}"
IS_FIRST = VERSION.startswith("1.")

# How long an HTTP request over SSE may take, in seconds. The SDK has 5, which ten clients on a busy machine need to
# connect.
PATIENCE = 60

if IS_FIRST:
    from mcp import ClientSession
    from mcp.client.streamable_http import streamable_http_client
else:
    from mcp import Client


def connect(url, era, elicit=None):
    """A context in which a client is connected; `elicit` answers with a name what it is asked."""

    async def answer(_context, _params):
        return types.ElicitResult(action="accept", content={"name": await elicit()})

    callback = answer if elicit else None
    if IS_FIRST:
        return first(url, era, callback)
    # "auto" must end at "modern": a client that pins the version does not test what the server offers.
    mode = "legacy" if era in ("legacy", "sse") else "auto"
    return Client(sse_client(url, timeout=PATIENCE) if era == "sse" else url, mode=mode, elicitation_callback=callback)


@contextlib.asynccontextmanager
async def first(url, era, callback):
    transport = sse_client(url, timeout=PATIENCE) if era == "sse" else streamable_http_client(url)
    async with transport as (read, write, *_), ClientSession(read, write, elicitation_callback=callback) as session:
        answer = await session.initialize()
        yield First(session, answer.protocolVersion)


class First:
    """A session of version 1 in the words of version 2."""

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
