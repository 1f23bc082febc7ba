"""Tasks, as real clients have them: calls whose results are fetched later.

    python tasks.py URL PLAN        PLAN is JSON

Two clients at once call a tool, each with a value of its own, get a task, and look how it is doing until it has
ended. Prints one JSON report, {sdk, tasks, errors}, where tasks tells in which states each of them was seen, and
exits 1 if anything was not as it should be. tasks.mjs takes the same arguments, and has the tasks of 2025-11-25.

    tool, arguments     the call; "{value}" in an argument is the client's own value
    expect              a text in the result, likewise
    asks                whether the task wants to know a name, which is the value
"""

import asyncio
import importlib.metadata
import json
import secrets
import sys
import traceback
from typing import Any, Literal

import mcp_types as types
from mcp import Client
from mcp.client.extension import ClientExtension, ResultClaim

DEADLINE = 60
errors = []
tasks = []


class Created(types.Result):
    """A task instead of a result."""

    result_type: Literal["task"] = "task"
    task_id: str
    status: str
    ttl_ms: int | None
    poll_interval_ms: int | None = None


class AboutTask(types.Request[dict[str, Any], str]):
    """A request about a task."""

    name_param = "taskId"


class Shown(types.Result):
    """How a task is doing."""

    task_id: str
    status: str
    result: types.CallToolResult | None = None
    input_requests: dict[str, Any] | None = None


class Tasks(ClientExtension):
    """The extension for tasks: the caller of a tool gets the result in the end."""

    identifier = "io.modelcontextprotocol/tasks"

    def __init__(self, value):
        self.value = value

    def claims(self):
        return (ResultClaim(result_type="task", model=Created, resolve=self.resolve),)

    async def resolve(self, created, context):
        seen, answered = [created.status], set()
        tasks.append(seen)

        async def about(method, model, **params):
            request = AboutTask(method=method, params={"taskId": created.task_id, **params})
            return await context.session.send_request(request, model)

        while True:
            shown = await about("tasks/get", Shown)
            if shown.status != seen[-1]:
                seen.append(shown.status)
            new = (shown.input_requests or {}).keys() - answered
            answered |= new
            if new:
                answer = {"action": "accept", "content": {"name": self.value}}
                await about("tasks/update", types.EmptyResult, inputResponses=dict.fromkeys(new, answer))
            if shown.status not in ("working", "input_required"):
                if shown.task_id != created.task_id:
                    errors.append(f"{shown.task_id} is not {created.task_id}")
                return shown.result
            await asyncio.sleep((created.poll_interval_ms or 100) / 1000)


async def client(url, plan):
    value = secrets.token_hex(6)
    arguments = json.loads(json.dumps(plan["arguments"]).replace("{value}", value))
    async with Client(url, mode="auto", extensions=[Tasks(value)]) as connected:
        await connected.list_tools()
        result = await connected.call_tool(plan["tool"], arguments)
        text = "".join(block.text for block in result.content if block.type == "text")
        for wanted in [plan["expect"], *(['"name":"{value}"'] if plan.get("asks") else [])]:
            wanted = wanted.replace("{value}", value)
            if wanted not in text:
                errors.append(f"{wanted} is not in {text}")


async def run(url, plan):
    try:
        async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as group:
            for _ in range(2):
                group.create_task(client(url, plan))
    except Exception as error:
        # The error itself, out of the groups that task groups wrap it in.
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        errors.append("".join(traceback.format_exception(error)))


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    url, plan = sys.argv[1], json.loads(sys.argv[2])
    asyncio.run(run(url, plan))
    if len(tasks) != 2:
        errors.append(f"{len(tasks)} tasks")
    installed = importlib.metadata.version("mcp")
    print(json.dumps({"sdk": f"python mcp {installed}", "tasks": tasks, "errors": errors}))
    sys.exit(1 if errors else 0)


if __name__ == "__main__":
    main()
