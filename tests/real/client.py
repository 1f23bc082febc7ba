"""Many concurrent real clients: the official Python SDK against one streamable HTTP endpoint.

    python client.py URL PLAN        PLAN is JSON, or "-" for standard input

All clients connect before the first call, so that all sessions are alive during the calls. Prints one JSON
report, and exits with 1 after any error. client.mjs takes the same plan and prints the same report. Every
key of the plan is optional:

    clients    the number of clients, each with its own connection and session (1)
    era        "legacy" (initialize), "modern" (server/discover), "auto" (the era that the server speaks), or
               "sse" (the HTTP with SSE of 2024-11-05) ("auto")
    tools      the names that the list of tools must contain
    calls      [{tool, arguments, expect, times}]: the text of each answer must contain "expect"; each client
               makes each call "times" (1) times, and all calls are in flight together
    progress   {tool, arguments, total, first}: only the calling client must receive the progress in `first`, if
               given, and then the progress 1, 2 … total
    asks       [{tool, arguments, expect}]: each client calls each tool, and answers its elicitation of a name
               with {value} after all clients have received theirs; the text of the result must contain "expect"
    resources  true: the list of resources must not be empty
    prompts    true: the list of prompts must not be empty
    timeout    the seconds for the whole plan (60)

In any string of arguments, expect and total, {value} is a text and {number} a number that no other call has.
{steps} is a small number that differs between neighbouring clients. A string that consists of {number} or
{steps} alone becomes a JSON number.
"""

import asyncio
import json
import secrets
import sys
import time

import sdk


def fill(template, values):
    """Returns the template with its placeholders replaced."""
    if isinstance(template, dict):
        return {key: fill(inner, values) for key, inner in template.items()}
    if isinstance(template, list):
        return [fill(inner, values) for inner in template]
    if not isinstance(template, str):
        return template
    for name, value in values.items():
        if template == "{" + name + "}":
            return value
        template = template.replace("{" + name + "}", str(value))
    return template


def values_of(client, call):
    return {
        "value": f"<{client}.{call}.{secrets.token_hex(4)}>",
        # All numbers have the same width, so that none is a prefix of another.
        "number": 100_000 + client * 100 + call,
        "steps": 2 + client % 4,
    }


def text_of(result):
    return "".join(block.text for block in result.content if block.type == "text")


async def all_pages(list_page, items):
    """Returns all items of a paginated list."""
    found, cursor = [], None
    while True:
        page = await list_page(cursor=cursor)
        found += items(page)
        cursor = page.next_cursor
        if not cursor:
            return found


class Barrier:
    """A barrier for `n` clients: each waits until all have arrived."""

    def __init__(self, n):
        self.missing = n
        self.is_complete = asyncio.Event()

    async def arrive(self):
        self.missing -= 1
        if self.missing == 0:
            self.is_complete.set()
        await self.is_complete.wait()

    def give_up(self):
        """Releases the clients that wait, if one of them fails."""
        self.is_complete.set()


class Run:
    def __init__(self, url, plan):
        self.url = url
        self.plan = plan
        self.clients = plan.get("clients", 1)
        self.errors = []
        self.calls = 0
        self.tools = {}
        self.protocols = set()
        self.resources = None
        self.prompts = None
        self.connected = Barrier(self.clients)
        # One barrier for each elicitation: no client answers before all clients have received theirs.
        self.asked = [Barrier(self.clients) for _ in plan.get("asks", [])]

    def expect(self, holds, client, claim):
        if not holds:
            self.errors.append(f"client {client}: {claim}")
        return holds

    async def client(self, number):
        """Runs one client from connection to disconnection. Returns whether it succeeded."""
        errors = len(self.errors)
        try:
            era = self.plan.get("era", "auto")
            answers = asyncio.Queue()
            async with sdk.connect(self.url, era, self.elicit(answers)) as client:
                await self.connected.arrive()
                self.check_era(number, era, client.protocol_version)
                await self.lists(number, client)
                await self.make_calls(number, client)
                await self.progress(number, client)
                for turn in range(len(self.asked)):
                    await self.is_asked(number, turn, client, answers)
        except Exception as error:
            self.errors.append(f"client {number}: {describe(error)}")
            for barrier in (self.connected, *self.asked):
                barrier.give_up()
        return len(self.errors) == errors

    def elicit(self, answers):
        """Returns the function that answers an elicitation with the next value of `answers`."""

        async def answer():
            turn, value = answers.get_nowait()
            await self.asked[turn].arrive()
            return value

        return answer if self.asked else None

    def check_era(self, number, era, protocol):
        self.protocols.add(protocol)
        modern = protocol >= "2026-07-28"
        self.expect(era == "auto" or modern == (era == "modern"), number, f"asked for {era}, negotiated {protocol}")

    async def lists(self, number, client):
        names = sorted(await all_pages(client.list_tools, lambda page: [tool.name for tool in page.tools]))
        self.tools[number] = names
        for name in self.plan.get("tools", []):
            self.expect(name in names, number, f"{name} is not among the tools {names}")
        if self.plan.get("resources"):
            found = await all_pages(client.list_resources, lambda page: page.resources)
            self.resources = len(found)
            self.expect(found, number, "no resources")
        if self.plan.get("prompts"):
            found = await all_pages(client.list_prompts, lambda page: page.prompts)
            self.prompts = len(found)
            self.expect(found, number, "no prompts")

    async def make_calls(self, number, client):
        calls = [call for call in self.plan.get("calls", []) for _ in range(call.get("times", 1))]
        await asyncio.gather(*(self.one_call(number, turn, call, client) for turn, call in enumerate(calls)))

    async def one_call(self, number, turn, call, client):
        call = fill(call, values_of(number, turn))
        result = await client.call_tool(call["tool"], call.get("arguments", {}))
        self.calls += 1
        text = text_of(result)
        answered = not sdk.is_error(result) and str(call["expect"]) in text
        self.expect(answered, number, f"call {turn} of {call['tool']}: expected {call['expect']!r}, got {text!r}")

    async def progress(self, number, client):
        if "progress" not in self.plan:
            return
        call = fill(self.plan["progress"], values_of(number, 0))
        wanted = [(step, call["total"]) for step in range(1, call["total"] + 1)]
        wanted[:0] = map(tuple, call.get("first", []))
        seen = []
        complete = asyncio.Event()

        async def on_progress(progress, total, _message):
            seen.append((progress, total))
            if len(seen) >= len(wanted):
                complete.set()

        result = await client.call_tool(call["tool"], call.get("arguments", {}), progress_callback=on_progress)
        self.calls += 1
        self.expect(not sdk.is_error(result), number, f"the call with progress failed: {text_of(result)!r}")
        # The SDK runs the callback in its own task, which may run after the answer.
        try:
            await asyncio.wait_for(complete.wait(), 5)
        except TimeoutError:
            pass
        self.expect(seen == wanted, number, f"progress: expected {wanted}, got {seen}")

    async def is_asked(self, number, turn, client, answers):
        values = values_of(number, turn)
        call = fill(self.plan["asks"][turn], values)
        answers.put_nowait((turn, values["value"]))
        result = await client.call_tool(call["tool"], call.get("arguments", {}))
        self.calls += 1
        text = text_of(result)
        answered = not sdk.is_error(result) and call["expect"] in text
        self.expect(answered, number, f"asked by {call['tool']}: expected {call['expect']!r}, got {text!r}")

    async def all(self):
        started = time.monotonic()
        ok = []
        try:
            async with asyncio.timeout(self.plan.get("timeout", 60)):
                ok = await asyncio.gather(*(self.client(number) for number in range(self.clients)))
        except TimeoutError:
            self.errors.append("not done in time")
        lists = {tuple(names) for names in self.tools.values()}
        if len(lists) > 1:
            self.errors.append(f"clients were shown {len(lists)} different lists of tools")
        return {
            "sdk": sdk.NAME,
            "clients": self.clients,
            "ok": sum(ok),
            "errors": self.errors,
            "protocols": sorted(self.protocols),
            "calls": self.calls,
            "tools": list(min(lists, default=())),
            "resources": self.resources,
            "prompts": self.prompts,
            "seconds": round(time.monotonic() - started, 3),
        }


def describe(error):
    """Describes an error without the exception groups of task groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    url, plan = sys.argv[1:]
    plan = json.loads(sys.stdin.read() if plan == "-" else plan)
    report = asyncio.run(Run(url, plan).all())
    print(json.dumps(report))
    sys.exit(0 if not report["errors"] and report["ok"] == report["clients"] else 1)


if __name__ == "__main__":
    main()
