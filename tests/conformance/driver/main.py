"""The way through a server: everything that is listed is used."""

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
    # The suite sends it when the time is up: what was started ends with us.
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
    """As what the server is declared, so that it can ask its client something."""
    if version == modern.VERSION:
        return legs.SHARED
    # It asks in between, and a client without a session has nothing of its own but a request.
    return legs.SESSION if era == "legacy" else legs.EXCLUSIVE


def use_tools(client):
    """Calls what the suite wants to be called, or else each tool once."""
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
    """A list, or nothing: a client of 2026-07-28 that comes before the server is there is told that
    this may have everything, and the server refuses what it has not, or says nothing of it."""
    return (attempt(client.request, f"{what}/list", {}) or {}).get(what, [])


def attempt(function, *arguments):
    """Does something that may be refused: what that means for a scenario, the suite says."""
    try:
        return function(*arguments)
    except Failed as failure:
        print(f"{arguments}: {failure}", file=sys.stderr)
        return None
