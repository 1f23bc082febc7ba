"""The steps with a server: the driver uses everything that the server lists."""

import json
import os
import signal
import sys

from runner import legs, metamcp

from . import answers, modern
from .exchange import Failed
from .legacy import LegacyClient

CLIENTS = {"legacy": LegacyClient, "modern": modern.ModernClient}


def main():
    era = os.environ["CONFORMANCE_CLIENT_ERA"]
    # The suite sends SIGTERM when the time is up. metamcp must end with the driver.
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(1))
    serving = metamcp.serving(
        os.environ["CONFORMANCE_METAMCP"],
        "suite",
        {"url": sys.argv[1], **sharing(era, os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"])},
        os.environ["CONFORMANCE_LOG"],
    )
    with serving as url:
        client = CLIENTS[era](url)
        capabilities = client.open()
        use_tools(client)
        if "resources" in capabilities:
            for resource in listed(client, "resources"):
                attempt(client.request, "resources/read", {"uri": resource["uri"]})
        if "prompts" in capabilities:
            for prompt in listed(client, "prompts"):
                arguments = {argument["name"]: "value" for argument in prompt.get("arguments", [])}
                params = {"name": prompt["name"], "arguments": arguments}
                attempt(client.request, "prompts/get", params)
        client.close()


def sharing(era, version):
    """Returns the declared sharing of the server, so that it can send requests to its client."""
    if version == modern.VERSION:
        return legs.SHARED
    # A legacy server sends requests outside of answers. Without a session, a client only has its request.
    return legs.SESSION if era == "legacy" else legs.EXCLUSIVE


def use_tools(client):
    """Makes the calls that the suite asks for, or else calls each tool once."""
    tools = client.request("tools/list", {})["tools"]
    wanted = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}")).get("toolCalls")
    if wanted is None:
        for tool in tools:
            attempt(client.call, tool, answers.arguments_for(tool, tools))
        return
    by_name = {tool["name"]: tool for tool in tools}
    for call in wanted:
        attempt(client.call, by_name[call["name"]], call.get("arguments", {}))


def listed(client, what):
    """Returns a list; empty if the server has none. Before the server is connected, metamcp declares all
    capabilities to a client of 2026-07-28, so that the server may refuse the list or leave it out."""
    return (attempt(client.request, f"{what}/list", {}) or {}).get(what, [])


def attempt(function, *arguments):
    """Calls a function that may be refused. The suite decides what a refusal means."""
    try:
        return function(*arguments)
    except Failed as failure:
        print(f"{arguments}: {failure}", file=sys.stderr)
        return None
