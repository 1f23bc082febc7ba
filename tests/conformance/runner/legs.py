"""The ways from the suite through metamcp to a server."""

from dataclasses import dataclass

REVISIONS = ("2025-11-25", "2026-07-28")
LEGACY, MODERN = REVISIONS


@dataclass(frozen=True, eq=False)
class Leg:
    """The fixture behind metamcp, reached by `transport`.

    `era` is what the fixture speaks, and `sharing` how connections to it are shared, as declared, for
    each revision that is run.
    """

    name: str
    transport: str
    era: str
    sharing: dict


# A server that speaks the era of 2026-07-28 asks its client within its answers, so that it can be
# shared. What is connected with `initialize` asks in between, and nobody knows whom, unless it is the
# client's own, or that of one request for clients that have no session.
SHARED = {"sharing": "shared"}
SESSION = {"sharing": "session"}
EXCLUSIVE = {"sharing": "exclusive", "max_connections": 64}

_SHARED = {LEGACY: SHARED, MODERN: SHARED}
_APART = {LEGACY: SESSION, MODERN: EXCLUSIVE}

LEGS = (
    Leg("http", "http", "both", _SHARED),
    Leg("stdio", "stdio", "both", _SHARED),
    Leg("http-legacy-server", "http", "legacy", _APART),
    Leg("stdio-legacy-server", "stdio", "legacy", _APART),
    Leg("http-modern-server", "http", "modern", _SHARED),
    Leg("stdio-modern-server", "stdio", "modern", _SHARED),
)


@dataclass(frozen=True, eq=False)
class ClientLeg:
    """The suite's servers behind metamcp, and a client of this era in front of it."""

    name: str
    era: str


CLIENT_LEGS = (ClientLeg("client-legacy", "legacy"), ClientLeg("client-modern", "modern"))
