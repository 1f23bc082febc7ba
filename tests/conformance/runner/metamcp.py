"""One metamcp with one server, for the duration of a test."""

import contextlib
import json
import pathlib
import re
import tempfile
from dataclasses import dataclass

from . import processes

# The strictest reading of the specification, with all optional features: metamcp refuses a request
# without a known session id, and sends each answer as a stream of events, which clients of 2025-11-25 can
# resume. The pool is large, because a client of 2026-07-28 occupies a connection while a legacy server
# waits for its answer, and the clients of the suite often never answer.
_SETTINGS = """
[service]
log_level = "debug"

[listen]
http = "127.0.0.1:0"
control = {control}
session = "strict"
stream_after = "0s"

[pool]
size = 128

[servers.{name}]
{server}
"""


@dataclass(frozen=True)
class Service:
    """A running metamcp: the address of its server, and its control socket."""

    url: str
    control: pathlib.Path


@contextlib.contextmanager
def serving(program, name, server, log, credentials=()):
    """Starts metamcp with this server and these credentials, and yields the service."""
    with tempfile.TemporaryDirectory(prefix="metamcp-conformance.") as directory:
        directory = pathlib.Path(directory)
        config = directory / "metamcp.toml"
        control = directory / "control.sock"
        settings = _SETTINGS.format(
            control=_quoted(control),
            name=name,
            server="\n".join(f"{key} = {_quoted(value)}" for key, value in server.items()),
        )
        config.write_text(settings)
        secrets = directory / "credentials"
        secrets.mkdir(mode=0o700)
        for credential, secret in dict(credentials).items():
            (secrets / credential).write_text(secret)
        command = [program, "serve", "--config", config]
        environment = {
            "CREDENTIALS_DIRECTORY": str(secrets),
            "STATE_DIRECTORY": str(directory),
            "CACHE_DIRECTORY": str(directory / "cache"),
        }
        with processes.running(command, log, environment) as output:
            yield Service(f"{_address(output)}servers/{name}", control)


def _address(output):
    """Reads the address for clients, which metamcp prints when it is ready."""
    for line in output:
        if found := re.match(r"Clients: +(\S+)", line):
            return found[1]
    raise RuntimeError("metamcp ended before it served clients")


def _quoted(value):
    """Returns a value as TOML. Numbers, lists and plain texts are the same as in JSON."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_quoted(of)}" for key, of in value.items()) + " }"
    return json.dumps(value if isinstance(value, int | list) else str(value))
