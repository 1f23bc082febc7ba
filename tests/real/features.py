"""Real clients of server-everything, each of which must receive only its own messages. The endpoint serves no others.

    python features.py URL SCENARIO SDK

Prints one JSON report, {sdk, errors}, and exits with 1 after any error. features.mjs takes the same arguments and
does the same. All clients use the legacy era and have sessions. SDK is the expected version of the SDK. The
scenarios, each with three clients:

    notices    one shared connection: one call is cancelled, and another with the same id continues; each client
               receives the log messages of its level, and the updates of its subscribed resources
    questions  a connection for each client: the server requests roots, elicitation and sampling from two clients
               at once; the third client has no capabilities
    restart    prints "ready" once its calls are in flight, and continues while the test restarts the server; after
               a line on standard input, everything must work as before
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

# Most current clients use features that the next protocol version deprecates.
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
    """One client and the messages that it received."""

    def __init__(self, name, url, is_capable):
        self.name = name
        self.logs = []
        self.updated = set()
        self.changes = 0
        self.asked = []
        self.received = asyncio.Condition()
        self.new_root()
        callbacks = {}
        if is_capable:
            callbacks = {
                "list_roots_callback": self.roots,
                "elicitation_callback": self.elicit,
                "sampling_callback": self.sample,
            }
        self.client = Client(url, mode="legacy", message_handler=self.handle, **callbacks)

    def new_root(self):
        self.root = f"file:///{self.name}/{secrets.token_hex(6)}"

    async def handle(self, message):
        match message:
            case types.LoggingMessageNotification():
                self.logs.append(message.params)
            case types.ResourceUpdatedNotification():
                self.updated.add(str(message.params.uri))
            case types.ResourceListChangedNotification():
                self.changes += 1
        async with self.received:
            self.received.notify_all()

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
        """Waits until a condition holds. Checks it after each notification."""
        try:
            async with asyncio.timeout(DEADLINE), self.received:
                await self.received.wait_for(holds)
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
        expect(client.changes > before, f"{client.name} receives no notification")

    await each(clients, one)


async def fence(clients):
    """Waits until each client has received all earlier messages of the server."""
    before = {client: client.changes for client in clients}
    await clients[0].change()
    await each(clients, lambda client: client.until(lambda: client.changes > before[client], "no changed list"))


async def notices(clients):
    first, second, third = clients
    await listening(clients)

    # Both requests have the same id.
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
    # The SDK runs the callback in its own task, which may run after the answer.
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
        expect(not has_log(client), f"{client.name} received a log message for another client")
    await first.call("toggle-simulated-logging")
    simulated = re.compile("[Ll]evel.message")
    await first.until(lambda: any(simulated.search(str(log.data)) for log in first.logs), "no simulated log message")
    await first.call("toggle-simulated-logging")
    low = [log for log in second.logs if log.level != "emergency"]
    expect(not low, f"log messages below the requested level: {low}")

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
    # The server requests roots on the notification stream and not on the stream of a call.
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
        # Every client answers only after all clients have received their requests.
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

    # One call per client before the restart, and then calls until the restart is complete.
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
        # Only the call in flight may fail. A call without a server waits for the server.
        expect(len(failed) <= 1, f"{client.name}: {failed}")

    await each(clients, go_on)

    for _ in range(5):
        await each(clients, echo)
    await listening(clients)
    await first.call("toggle-simulated-logging")
    await first.until(lambda: first.logs, "no log message")
    await first.call("toggle-simulated-logging")
    await first.call("toggle-subscriber-updates")
    await second.until(lambda: watched in second.updated, "the new server did not receive the subscription")
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
        # Report the error without the exception groups of task groups.
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
