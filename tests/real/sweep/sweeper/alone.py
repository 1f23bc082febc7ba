"""One server alone: directly, and through a metamcp with only this server."""

from . import compare, walk
from .client import LEGACY, MODERN, HttpClient
from .result import unexplained

# The seconds that a server may take to answer `server/discover`. Some never answer it.
_PROBE = 15


def compare_alone(launcher, result):
    """Compares one server directly and behind metamcp."""
    _walk_directly(launcher, result)
    if result.failed:
        return
    first, second = _through(launcher, result, "first"), None
    if unexplained(first):
        second = _through(launcher, result, "second")
    result.keep(first, second)


def _walk_directly(launcher, result):
    server = result.server
    with launcher.direct(server, LEGACY) as client:
        result.direct, result.plan = walk.walk(client, server)
        if "result" not in result.direct["hello"]:
            stderr = client.last_stderr.decode(errors="replace").strip()
            result.failed = f"does not start: {result.direct['hello']} {stderr[-300:]}"
            return
    with launcher.direct(server, LEGACY) as client:
        again, _ = walk.walk(client, server, result.plan)
    result.own = list(compare.compare(result.direct, again))
    with launcher.direct(server, MODERN) as client:
        result.direct_modern, _ = walk.walk(client, server, result.plan, _PROBE)
    result.is_modern = compare.speaks_modern(result.direct_modern)
    if result.is_modern:
        eras = compare.compare(result.direct, result.direct_modern, across_eras=True)
        result.eras = list(eras)


def _through(launcher, result, attempt):
    """Returns the differences at /servers/NAME, for clients of both eras."""
    server = result.server
    path = f"/servers/{server.name}"
    seen = {}
    with launcher.behind_metamcp([server], f"{server.name}-{attempt}") as gateway:
        for era in (LEGACY, MODERN):
            client = HttpClient(era, gateway.address, path)
            seen[era], _ = walk.walk(client, server, result.plan)
            client.close()
    result.wrong += gateway.wrong
    legacy = compare.compare(result.direct, seen[LEGACY], across_eras=result.is_modern)
    if result.is_modern:
        modern = compare.compare(result.direct_modern, seen[MODERN])
    else:
        modern = compare.compare(result.direct, seen[MODERN], across_eras=True)
    return compare.judge("legacy", legacy, result) + compare.judge("modern", modern, result)
