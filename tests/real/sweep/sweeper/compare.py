"""The comparison of two walks, and the explanations of their differences."""

import dataclasses
import json
import re

from . import client as clients
from .walk import LISTS, items

_ABSENT = "\0absent"
_SERVER_INFO = "io.modelcontextprotocol/serverInfo"
# The keys and steps that exist in one era only.
_ERA_KEYS = ("ttlMs", "cacheScope", "resultType", "supportedVersions", "protocolVersion")
_ERA_STEPS = ("ping", "log level")

# The differences that docs/servers-tried.md explains: view, path, and the reason for the table.
_DESIGN = [
    ("legacy", r"^unknown resource\.error\.code$", "unknown resource"),
    ("modern", r"^unknown resource\.error\.code$", "unknown resource"),
    ("modern", r"^(tools\.items|bad cursor\.result\.tools)\[.*\]\.execution$", "tasks"),
    ("modern", r"^hello\.result\.capabilities\.(tasks|extensions)$", "tasks"),
    ("legacy", r"^hello\.result\.capabilities\.tasks\.list$", "tasks"),
    ("modern", r"^hello\.result\.supportedVersions", "versions"),
    ("legacy", r"^hello\.result\.protocolVersion$", "versions"),
    ("legacy", r"^log level\.error\.(message|data)", "log level"),
]


@dataclasses.dataclass(frozen=True)
class Difference:
    """One difference between the answers directly and through metamcp."""

    view: str
    path: str
    direct: object
    through: object
    # The explanation; empty if there is none.
    reason: str = ""

    def __str__(self):
        lines = [f"{self.view}: {self.path}", f"  directly: {_short(self.direct)}"]
        return "\n".join([*lines, f"  through:  {_short(self.through)}"])


def compare(before, after, across_eras=False):
    """Yields all differences of two walks as (path, before, after)."""
    for step in before:
        if step in after:
            one, other = before[step], after[step]
            if across_eras:
                one, other = _without_era(step, one), _without_era(step, other)
            yield from _differences(one, other, step)
        elif not (across_eras and step in _ERA_STEPS):
            yield step, "asked", "not asked"


def judge(view, found, result):
    """Returns the differences of one view, each with its reason if there is one."""
    unstable = [_unstable(path) for path, _, _ in result.own]
    said = {(path, json.dumps(other)) for path, _, other in result.eras}
    judged = []
    for path, one, other in found:
        reason = _known(view, path, result.server)
        if not reason and any(_plain(path).startswith(start) for start in unstable):
            reason = "two processes"
        if not reason and (path, json.dumps(other)) in said:
            reason = "two eras"
        judged.append(Difference(view, path, one, other, reason))
    return judged


def merged_as_own(server, own, merged):
    """Returns the items of one server in the merged lists, with the names that the server gives them.

    `own` is a walk of the server, and `merged` has all items of the merged lists by kind.
    """
    prefix = f"{server.name}__"
    view = {}
    for kind, (_, _, key) in LISTS.items():
        wanted = items(own, kind)
        if kind in ("tools", "prompts"):
            shown = [item for item in merged[kind] if item["name"].startswith(prefix)]
            names = [item["name"] for item in wanted]
            shown = [item | {"name": _own_name(item["name"], prefix, names)} for item in shown]
            shown = [_with_own_page(item, server.name) for item in shown]
        else:
            keys = [item[key] for item in wanted]
            shown = [item | {key: _own_page(item[key], server.name)} for item in merged[kind]]
            shown = [item for item in shown if item[key] in keys]
        view[kind] = {"items": shown}
    return view


def _own_page(uri, server):
    """Returns the server's own URI of a UI page; the URI in the merged list contains the server's name."""
    start = f"ui://{server}/"
    return "ui://" + uri.removeprefix(start) if uri.startswith(start) else uri


def _with_own_page(tool, server):
    """Returns a tool with the server's own URI of its UI page."""
    meta = tool.get("_meta", {})
    ui = meta.get("ui", {})
    if "resourceUri" in ui:
        meta = meta | {"ui": ui | {"resourceUri": _own_page(ui["resourceUri"], server)}}
    if "ui/resourceUri" in meta:
        meta = meta | {"ui/resourceUri": _own_page(meta["ui/resourceUri"], server)}
    return tool | {"_meta": meta} if meta else tool


def _own_name(shown, prefix, names):
    """Returns the server's own name for a name in the merged list, which may be an alias."""
    name = shown.removeprefix(prefix)
    if name in names:
        return name
    # An alias: the beginning of the name and eight digits, for a name that is too long for clients.
    start = re.fullmatch(r"([A-Za-z0-9_-]*)[0-9a-f]{8}", shown)
    if not start or len(shown) > 50:
        return name
    begins = re.sub(r"[_-]+$", "", start[1])
    fits = [one for one in names if re.sub(r"[^A-Za-z0-9_-]", "_", prefix + one).startswith(begins)]
    fits = [one for one in fits if len(prefix + one) > 50 or not re.fullmatch(r"[A-Za-z0-9_-]+", one)]
    return fits[0] if len(fits) == 1 else name


def _known(view, path, server):
    for explanation in server.explained:
        if view.startswith(explanation.view) and re.search(explanation.path, path):
            return explanation.reason
    for where, what, reason in _DESIGN:
        if where == view and re.search(what, path):
            return reason
    return ""


def _unstable(path):
    """Returns the prefix of all paths that cannot be compared, because two processes differ at `path`."""
    # Lists with different items, or in a different order, cannot be compared item by item.
    if path.endswith(" (length)"):
        return _plain(path.removesuffix(" (length)"))
    if other := re.fullmatch(r"(.*)\[.*\]\.(name|uri|uriTemplate)", path):
        return _plain(other[1])
    return _plain(path)


def _plain(path):
    """Returns a path without the positions in lists, which do not identify an item."""
    return re.sub(r"\[\d+\]", "[]", path)


def _differences(one, other, path):
    """Yields the differences between two JSON values. The order of an object's keys is ignored."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in [*one, *(key for key in other if key not in one)]:
            yield from _differences(one.get(key, _ABSENT), other.get(key, _ABSENT), f"{path}.{key}")
    elif isinstance(one, list) and isinstance(other, list):
        if len(one) != len(other):
            yield f"{path} (length)", len(one), len(other)
        for number, (left, right) in enumerate(zip(one, other)):
            label = left.get("name") or left.get("uri") if isinstance(left, dict) else None
            yield from _differences(left, right, f"{path}[{label or number}]")
    elif type(one) is not type(other) or one != other:
        yield path, one, other


def _without_era(step, answer):
    """Returns an answer without the parts that exist in one era only."""
    answer = json.loads(json.dumps(answer))
    for part in (answer.get("result"), answer.get("rest")):
        if not isinstance(part, dict):
            continue
        for key in _ERA_KEYS:
            part.pop(key, None)
        if isinstance(meta := part.get("_meta"), dict):
            info = meta.pop(_SERVER_INFO, None)
            if step == "hello" and info is not None:
                part.setdefault("serverInfo", info)
            if not meta:
                del part["_meta"]
    return answer


def speaks_modern(walk):
    """Returns whether the server understood a walk in the era of 2026-07-28."""
    return clients.MODERN in (walk["hello"].get("result") or {}).get("supportedVersions", [])


def _short(value, size=200):
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = text.replace("\0", "")
    return text if len(text) <= size else f"{text[:size]}… ({len(text)} characters)"
