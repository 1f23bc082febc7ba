"""The legs: the combinations of transport, era and sharing between metamcp and a server."""

from dataclasses import dataclass

REVISIONS = ("2025-11-25", "2026-07-28")
LEGACY, MODERN = REVISIONS


@dataclass(frozen=True, eq=False)
class Leg:
    """The fixture behind metamcp, connected over `transport`.

    `era` is the era of the fixture, and `sharing` its declared sharing for each revision that runs.
    """

    name: str
    transport: str
    era: str
    sharing: dict


# A server of the era of 2026-07-28 asks its client in its answers, so that clients can share it. A
# legacy server sends requests outside of answers, so that metamcp cannot know the client, unless the
# connection belongs to one session, or to one request of a client without a session.
SHARED = {"sharing": "shared"}
SESSION = {"sharing": "session"}
EXCLUSIVE = {"sharing": "exclusive", "max_connections": 64}

_SHARED = {LEGACY: SHARED, MODERN: SHARED}
_SEPARATE = {LEGACY: SESSION, MODERN: EXCLUSIVE}

LEGS = (
    Leg("http", "http", "both", _SHARED),
    Leg("stdio", "stdio", "both", _SHARED),
    Leg("http-legacy-server", "http", "legacy", _SEPARATE),
    Leg("stdio-legacy-server", "stdio", "legacy", _SEPARATE),
    Leg("http-modern-server", "http", "modern", _SHARED),
    Leg("stdio-modern-server", "stdio", "modern", _SHARED),
)


@dataclass(frozen=True, eq=False)
class ClientLeg:
    """The suite's servers behind metamcp, and the driver as a client of this era."""

    name: str
    era: str


CLIENT_LEGS = (ClientLeg("client-legacy", "legacy"), ClientLeg("client-modern", "modern"))
