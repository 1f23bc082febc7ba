"""All servers behind one metamcp: the merged lists, and a call by a merged name."""

import dataclasses

from . import compare, walk
from .client import LEGACY, HttpClient
from .result import unexplained


@dataclasses.dataclass
class Merged:
    """The outcome of one attempt with all servers."""

    n_tools: int
    # Failures of the stop.
    wrong: list
    # The differences of each server, by its name.
    differences: dict


def compare_merged(launcher, results, threads):
    """Compares each server with its part of the merged lists."""
    first, second = _attempt(launcher, results, threads, "first"), None
    if any(map(unexplained, first.differences.values())):
        second = _attempt(launcher, results, threads, "second")
        second.wrong += first.wrong
    for result in results:
        name = result.server.name
        result.keep(first.differences[name], second and second.differences[name])
    return second or first


def _attempt(launcher, results, threads, attempt):
    servers = [result.server for result in results]
    with launcher.behind_metamcp(servers, f"merged-{attempt}") as gateway:
        # A few at a time, because the merged list would start all of them at once.
        list(threads.map(lambda server: _start(gateway, server), servers))
        client = HttpClient(LEGACY, gateway.address, "/direct")
        client.hello()
        lists = {kind: walk.list_all(client, kind).get("items", []) for kind in walk.LISTS}
        calls = {result.server.name: _call(client, result) for result in results}
        client.close()
    differences = {}
    for result in results:
        name = result.server.name
        wanted = {kind: {"items": walk.items(result.direct, kind)} for kind in walk.LISTS}
        seen = compare.merged_as_own(result.server, result.direct, lists)
        if calls[name]:
            wanted["call"], seen["call"] = result.direct["call"], calls[name]
        found = compare.compare(wanted, seen, across_eras=result.is_modern)
        differences[name] = compare.judge("merged", found, result)
    return Merged(len(lists["tools"]), gateway.wrong, differences)


def _start(gateway, server):
    """Makes metamcp start a server and read its lists."""
    client = HttpClient(LEGACY, gateway.address, f"/servers/{server.name}")
    client.hello()
    for kind in walk.LISTS:
        walk.list_all(client, kind)
    client.close()


def _call(client, result):
    if not (call := result.server.call):
        return None
    return client.ask("tools/call", call | {"name": f"{result.server.name}__{call['name']}"})
