"""The steps with a server: the driver uses everything that the server lists."""

import json
import os
import signal
import sys

from runner import metamcp

from . import answers, login, modern, settings
from .exchange import Failed
from .legacy import LegacyClient

# The name of the suite's server in metamcp's configuration.
NAME = "suite"
CLIENTS = {"legacy": LegacyClient, "modern": modern.ModernClient}


def main():
    era = os.environ["CONFORMANCE_CLIENT_ERA"]
    program = os.environ["CONFORMANCE_METAMCP"]
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    # The suite sends SIGTERM when the time is up. metamcp must end with the driver.
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(1))
    server = settings.server(
        sys.argv[1],
        era,
        os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"],
        os.environ["MCP_CONFORMANCE_SCENARIO"],
        context,
    )
    log = os.environ["CONFORMANCE_LOG"]
    with metamcp.serving(program, NAME, server, log, settings.credentials(context)) as service:
        operator = login.Operator(program, service.control, NAME)
        client = login.WithLogins(CLIENTS[era](service.url), operator)
        capabilities = client.open()
        use_tools(client, context.get("toolCalls"))
        if "resources" in capabilities:
            for resource in listed(client, "resources"):
                attempt(client.request, "resources/read", {"uri": resource["uri"]})
        if "prompts" in capabilities:
            for prompt in listed(client, "prompts"):
                arguments = {argument["name"]: "value" for argument in prompt.get("arguments", [])}
                params = {"name": prompt["name"], "arguments": arguments}
                attempt(client.request, "prompts/get", params)
        client.close()


def use_tools(client, wanted):
    """Makes the calls that the suite asks for, or else calls each tool once."""
    tools = client.request("tools/list", {})["tools"]
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
