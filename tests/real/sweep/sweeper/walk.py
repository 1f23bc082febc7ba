"""The requests that the sweep sends to each server, always in the same order."""

import re

from . import client as clients

# For each list: its method, the key of its items in the result, and the key that identifies an item.
LISTS = {
    "tools": ("tools/list", "tools", "name"),
    "prompts": ("prompts/list", "prompts", "name"),
    "resources": ("resources/list", "resources", "uri"),
    "templates": ("resources/templates/list", "resourceTemplates", "uriTemplate"),
}
# The seconds for a request that a server should refuse at once. Some never answer it.
_REFUSAL = 6
# The largest number of pages of a list.
_PAGES = 200


def list_all(client, kind):
    """Returns all pages of a list as {"items", "rest"}, or an answer without a result."""
    method, key, _ = LISTS[kind]
    items, rest, cursor = [], {}, None
    for _ in range(_PAGES):
        answer = client.ask(method, {} if cursor is None else {"cursor": cursor})
        if not isinstance(answer.get("result"), dict):
            return answer
        result = dict(answer["result"])
        items += result.pop(key, [])
        cursor = result.pop("nextCursor", None)
        rest |= result
        if cursor is None:
            break
    return {"items": items, "rest": rest}


def items(seen, kind):
    """Returns the items of a list in a walk; none if the server refused the list."""
    return seen.get(kind, {}).get("items", [])


def walk(client, server, plan=None, limit=clients.START):
    """Sends all requests, and returns the answers by step, and the plan of list-dependent requests.

    The first walk of a server makes the plan. All later walks get this plan, so that they send the same.
    """
    seen = {"hello": client.hello(limit)}
    if "result" not in seen["hello"]:
        return seen, plan
    for kind in LISTS:
        seen[kind] = list_all(client, kind)
    plan = plan or _plan(server, seen)
    if client.era == clients.LEGACY:
        seen["ping"] = client.ask("ping")
    for step, method, params in _REFUSED:
        seen[step] = client.ask(method, params, _REFUSAL)
    for step, method, params in plan:
        seen[step] = client.ask(method, params)
    if client.era == clients.LEGACY:
        seen["log level"] = client.ask("logging/setLevel", {"level": "error"}, _REFUSAL)
    return seen, plan


_REFUSED = [
    ("unknown method", "sweep/nothing", {}),
    ("unknown tool", "tools/call", {"name": "sweep_no_such_tool", "arguments": {}}),
    ("unknown prompt", "prompts/get", {"name": "sweep_no_such_prompt"}),
    ("unknown resource", "resources/read", {"uri": "sweep://no/such"}),
    ("bad cursor", "tools/list", {"cursor": "sweep no such cursor"}),
]


def _plan(server, seen):
    """Chooses requests as (step, method, params) from what the server lists."""
    plan = []
    if server.call:
        plan.append(("call", "tools/call", server.call))
    # A server should refuse a call without arguments. If it does not, a read-only tool does no harm.
    for tool in items(seen, "tools"):
        reads = (tool.get("annotations") or {}).get("readOnlyHint") is True
        if reads and (tool.get("inputSchema") or {}).get("required"):
            params = {"name": tool["name"], "arguments": {}}
            plan.append(("call without arguments", "tools/call", params))
            break
    for prompt in items(seen, "prompts"):
        if not any(argument.get("required") for argument in prompt.get("arguments") or []):
            plan.append(("prompt", "prompts/get", {"name": prompt["name"]}))
            break
    for number, resource in enumerate(items(seen, "resources")[:3]):
        plan.append((f"read {number}", "resources/read", {"uri": resource["uri"]}))
    for number, (ref, name) in enumerate(_completable(seen)):
        params = {"ref": ref, "argument": {"name": name, "value": ""}}
        plan.append((f"complete {number}", "completion/complete", params))
    return plan


def _completable(seen):
    """Yields up to two prompts and two templates, each with an argument that may have completions."""
    for prompt in [prompt for prompt in items(seen, "prompts") if prompt.get("arguments")][:2]:
        yield {"type": "ref/prompt", "name": prompt["name"]}, prompt["arguments"][0]["name"]
    for template in items(seen, "templates")[:2]:
        if variable := re.search(r"{\W?(\w+)", template["uriTemplate"]):
            yield {"type": "ref/resource", "uri": template["uriTemplate"]}, variable[1]
