"""Tasks of real clients: calls whose results the client fetches later.

    python tasks.py URL PLAN        PLAN is JSON

Two clients call a tool at the same time, each with its own value. Each gets a task and polls it until it ends.
Prints one JSON report, {sdk, tasks, errors}, in which `tasks` has the observed states of each task. Exits with 1
after any error. tasks.mjs takes the same arguments, and uses the tasks of 2025-11-25. The plan:

    tool, arguments     the call; "{value}" in an argument is the client's own value
    expect              a text in the result, in which "{value}" is the client's own value too
    asks                whether the task asks for a name, which the client answers with the value
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
    """The state of a task."""

    task_id: str
    status: str
    result: types.CallToolResult | None = None
    input_requests: dict[str, Any] | None = None


class Tasks(ClientExtension):
    """The extension for tasks, which polls a task and returns its result to the caller of the tool."""

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
        # Report the error without the exception groups of task groups.
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
