"""What one client gets and another does not: real clients of server-everything, at an endpoint of its own.

    python features.py URL SCENARIO SDK

Prints one JSON report, {sdk, errors}, and exits 1 if anything was not as it should be. features.mjs takes the
same arguments and does the same. All clients shake hands and have sessions; SDK is the version that is expected.
The scenarios, each with three clients:

    notices    on one shared connection: a call is cancelled while another with the same id goes on, log
               messages come by the level of each client, updates of resources to those who watch them
    questions  on a connection for each client: roots, elicitation and sampling, asked of two clients at once;
               the third one has no capabilities
    restart    prints "ready" once its calls are under way, goes on while the server is killed and started
               again, until a line comes on standard input: then everything must work as before
"""

import asyncio
import importlib.metadata
import json
import re
import secrets
import sys
import time
import traceback
import warnings

import mcp_types as types
from mcp import Client, MCPDeprecationWarning, MCPError

# Most clients of today use what the protocol of tomorrow does without.
warnings.simplefilter("ignore", MCPDeprecationWarning)

DEADLINE = 60
LONG = "trigger-long-running-operation"
errors = []


def expect(holds, claim):
    if not holds:
        errors.append(claim)


def new_uri():
    return f"demo://resource/dynamic/text/{secrets.token_hex(6)}"


class Participant:
    """One client, and what it was told."""

    def __init__(self, name, url, is_capable):
        self.name = name
        self.logs = []
        self.updated = set()
        self.changes = 0
        self.asked = []
        self.told = asyncio.Condition()
        self.new_root()
        callbacks = {}
        if is_capable:
            callbacks = {
                "list_roots_callback": self.roots,
                "elicitation_callback": self.elicit,
                "sampling_callback": self.sample,
            }
        self.client = Client(url, mode="legacy", message_handler=self.hear, **callbacks)

    def new_root(self):
        self.root = f"file:///{self.name}/{secrets.token_hex(6)}"

    async def hear(self, message):
        match message:
            case types.LoggingMessageNotification():
                self.logs.append(message.params)
            case types.ResourceUpdatedNotification():
                self.updated.add(str(message.params.uri))
            case types.ResourceListChangedNotification():
                self.changes += 1
        async with self.told:
            self.told.notify_all()

    async def roots(self, _context):
        return types.ListRootsResult(roots=[types.Root(uri=self.root, name=self.name)])

    async def elicit(self, _context, _params):
        await self.barrier.wait()
        return types.ElicitResult(action="accept", content={"name": f"name of {self.name}"})

    async def sample(self, _context, params):
        self.asked.append(params.model_dump_json())
        await self.barrier.wait()
        content = types.TextContent(type="text", text=f"model of {self.name}")
        return types.CreateMessageResult(role="assistant", content=content, model="none", stop_reason="endTurn")

    async def call(self, tool, arguments=None, progress=None):
        result = await self.client.call_tool(tool, arguments or {}, progress_callback=progress)
        text = "".join(block.text for block in result.content if block.type == "text")
        if result.is_error:
            raise RuntimeError(f"{self.name}: {tool}: {text}")
        return text

    async def until(self, holds, what):
        """Waits until something holds; it is looked at whenever a notification has come."""
        try:
            async with asyncio.timeout(DEADLINE), self.told:
                await self.told.wait_for(holds)
        except TimeoutError:
            raise RuntimeError(f"{self.name}: {what}") from None

    async def change(self):
        """Has the server notify all clients of its connection that its resources have changed."""
        name = f"{self.name}-{secrets.token_hex(6)}.gz"
        data = f"data:text/plain,{self.name}"
        await self.call("gzip-file-as-resource", {"name": name, "data": data, "outputType": "resourceLink"})


async def each(clients, what):
    return await asyncio.gather(*(what(client) for client in clients))


async def listening(clients):
    """Waits until the stream of each client is open."""

    async def one(client):
        before, ends = client.changes, time.monotonic() + DEADLINE
        while client.changes == before and time.monotonic() < ends:
            await client.change()
        expect(client.changes > before, f"{client.name} hears nothing")

    await each(clients, one)


async def fence(clients):
    """After this, each client has received all that the server sent before."""
    before = {client: client.changes for client in clients}
    await clients[0].change()
    await each(clients, lambda client: client.until(lambda: client.changes > before[client], "no changed list"))


async def notices(clients):
    first, second, third = clients
    await listening(clients)

    # Both run under the same id.
    has_begun = asyncio.Event()

    async def begun(_progress, _total, _message):
        has_begun.set()

    seen = []

    async def step(progress, _total, _message):
        seen.append(progress)

    async with asyncio.timeout(DEADLINE):
        cancelled = asyncio.create_task(first.call(LONG, {"duration": 60, "steps": 600}, begun))
        other = asyncio.create_task(second.call(LONG, {"duration": 1, "steps": 5}, step))
        await has_begun.wait()
        cancelled.cancel()
        outcome = await asyncio.gather(cancelled, return_exceptions=True)
        expect(isinstance(outcome[0], asyncio.CancelledError), f"the cancelled call: {outcome}")
        expect("Steps: 5." in await other, "the other call was not answered")
    # The SDK runs the callback in a task of its own, which may come after the answer.
    await fence(clients)
    expect(seen == [1, 2, 3, 4, 5], f"progress of the other call: {seen}")

    await first.client.set_logging_level("debug")
    await second.client.set_logging_level("emergency")
    watched = new_uri()
    await third.client.subscribe_resource(watched)

    def has_log(client):
        return any(watched in str(log.data) for log in client.logs)

    await first.until(lambda: has_log(first), "no log message")
    await fence(clients)
    for client in (second, third):
        expect(not has_log(client), f"{client.name} was sent the log of others")
    await first.call("toggle-simulated-logging")
    simulated = re.compile("[Ll]evel.message")
    await first.until(lambda: any(simulated.search(str(log.data)) for log in first.logs), "no simulated log message")
    await first.call("toggle-simulated-logging")
    low = [log for log in second.logs if log.level != "emergency"]
    expect(not low, f"below the level: {low}")

    both, one = new_uri(), new_uri()
    await third.client.unsubscribe_resource(watched)
    await each((first, second), lambda client: client.client.subscribe_resource(both))
    await second.client.subscribe_resource(one)

    async def updates(*expected):
        await third.call("toggle-subscriber-updates")
        pairs = list(zip(clients, expected, strict=True))
        for client, uris in pairs:
            await client.until(lambda client=client, uris=uris: uris <= client.updated, "no update")
        await third.call("toggle-subscriber-updates")
        await fence(clients)
        for client, uris in pairs:
            expect(client.updated == uris, f"{client.name}: updates of {client.updated}")
            client.updated.clear()

    await updates({both}, {both, one}, set())
    await second.client.unsubscribe_resource(both)
    await updates({both}, {one}, set())


async def questions(clients):
    first, second, plain = clients
    capable = [first, second]
    lists = [
        {tool.name for tool in result.tools}
        for result in await each(clients, lambda client: client.client.list_tools())
    ]
    expect([len(tools) for tools in lists] == [17, 17, 13], f"tools: {lists}")
    added = sorted(lists[0] - lists[2])
    triggers = [f"trigger-{what}" for what in ("elicitation-request", "sampling-request", "url-elicitation")]
    expect(added == ["get-roots-list", *triggers], f"tools for capabilities: {added}")
    # Roots are asked for on no request's stream.
    await listening(clients)

    shown = await each(capable, lambda client: client.call("get-roots-list"))
    for client, text in zip(capable, shown, strict=True):
        expect(client.root in text and "(1 total)" in text, f"{client.name}: {text}")

    async def change_roots(client):
        client.new_root()
        await client.client.send_roots_list_changed()
        text, ends = "", time.monotonic() + DEADLINE
        while client.root not in text and time.monotonic() < ends:
            text = await client.call("get-roots-list")
        expect(client.root in text, f"{client.name}, after a change: {text}")

    await each(capable, change_roots)

    async def together(tool, arguments, answer):
        # Every client answers only when each of them was asked.
        first.barrier = second.barrier = asyncio.Barrier(len(capable))
        async with asyncio.timeout(DEADLINE):
            texts = await each(capable, lambda client: client.call(tool, arguments(client)))
        for client, text in zip(capable, texts, strict=True):
            expect(f"{answer} of {client.name}" in text, f"{client.name}: {text}")

    await together("trigger-elicitation-request", lambda _client: {}, "Name: name")
    await together("trigger-sampling-request", lambda client: {"prompt": f"prompt of {client.name}"}, "model")
    for client in capable:
        was_asked = len(client.asked) == 1 and f"prompt of {client.name}" in client.asked[0]
        expect(was_asked, f"{client.name} was asked {client.asked}")


async def restart(clients):
    first, second, _third = clients
    await listening(clients)
    await first.client.set_logging_level("debug")
    watched = new_uri()
    await second.client.subscribe_resource(watched)

    async def echo(client):
        await client.call("echo", {"message": client.name})

    # One round before anything happens, then on and on while it does.
    await each(clients, echo)
    is_restarted = asyncio.create_task(asyncio.to_thread(sys.stdin.readline))
    print("ready", flush=True)

    async def go_on(client):
        failed = []
        while not is_restarted.done():
            try:
                await echo(client)
            except MCPError as error:
                failed.append(error)
        # The call that was in flight; one that comes while there is no server waits for it.
        expect(len(failed) <= 1, f"{client.name}: {failed}")

    await each(clients, go_on)

    for _ in range(5):
        await each(clients, echo)
    await listening(clients)
    await first.call("toggle-simulated-logging")
    await first.until(lambda: first.logs, "no log message")
    await first.call("toggle-simulated-logging")
    await first.call("toggle-subscriber-updates")
    await second.until(lambda: watched in second.updated, "the new server was not told what is watched")
    await first.call("toggle-subscriber-updates")


async def run(url, scenario):
    is_asked = scenario is questions
    clients = [
        Participant(name, url, is_asked and name != "third") for name in ("first", "second", "third")
    ]
    try:
        async with clients[0].client, clients[1].client, clients[2].client:
            await scenario(clients)
    except Exception as error:
        # The error itself, out of the groups that task groups wrap it in.
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        errors.append("".join(traceback.format_exception(error)))


def main():
    scenarios = {scenario.__name__: scenario for scenario in (notices, questions, restart)}
    if len(sys.argv) != 4 or sys.argv[2] not in scenarios:
        sys.exit(__doc__)
    url, scenario, version = sys.argv[1:]
    asyncio.run(run(url, scenarios[scenario]))
    installed = importlib.metadata.version("mcp")
    expect(installed.split(".")[0] == version, f"this is {installed}")
    print(json.dumps({"sdk": f"python mcp {installed}", "errors": errors}))
    sys.exit(1 if errors else 0)


if __name__ == "__main__":
    main()
