"""The client of stdio.mjs with the official Python SDK. Arguments: mode, command, its arguments."""

import asyncio
import sys

import sdk
from mcp.client.stdio import StdioServerParameters, stdio_client


async def work(session, value):
    tools = (await session.list_tools()).tools
    assert any(tool.name == "everything__echo" for tool in tools), tools
    result = await session.call_tool("everything__echo", {"message": value})
    assert result.content[0].text == f"Echo: {value}", result
    print(value, flush=True)


async def works(session):
    await work(session, "one")
    while word := (await asyncio.to_thread(sys.stdin.readline)).strip():
        await work(session, word)


async def main(mode, command, *arguments):
    pipes = stdio_client(StdioServerParameters(command=command, args=list(arguments)))
    if sdk.IS_FIRST:
        async with pipes as (read, write), sdk.ClientSession(read, write) as session:
            await session.initialize()
            await works(session)
    else:
        async with sdk.Client(pipes, mode=mode) as session:
            await works(session)


asyncio.run(main(*sys.argv[1:]))
