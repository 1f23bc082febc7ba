"""One metamcp with one server, for as long as a test takes."""

import contextlib
import json
import pathlib
import re
import tempfile

from . import processes

# What the specification says is held to the letter, and everything in it is used that may be: a request
# without a session id, or with one that is not known, is refused, and each answer comes on a stream of
# events, which clients of 2025-11-25 can resume. A client of 2026-07-28 that is asked something by a server
# of the other era keeps a connection until it answers, and those of the suite often never do.
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


@contextlib.contextmanager
def serving(program, name, server, log):
    """Starts metamcp with this server, and yields the address at which that one is."""
    with tempfile.TemporaryDirectory(prefix="metamcp-conformance.") as directory:
        directory = pathlib.Path(directory)
        config = directory / "metamcp.toml"
        settings = _SETTINGS.format(
            control=_quoted(directory / "control.sock"),
            name=name,
            server="\n".join(f"{key} = {_quoted(value)}" for key, value in server.items()),
        )
        config.write_text(settings)
        command = [program, "serve", "--config", config]
        environment = {
            "STATE_DIRECTORY": str(directory),
            "CACHE_DIRECTORY": str(directory / "cache"),
        }
        with processes.running(command, log, environment) as output:
            yield f"{_address(output)}servers/{name}"


def _address(output):
    """Reads where clients are served, which is printed as soon as they are."""
    for line in output:
        if found := re.match(r"Clients: +(\S+)", line):
            return found[1]
    raise RuntimeError("metamcp ended before it served anybody")


def _quoted(value):
    """A value as TOML has it, which for numbers, lists and text without odd characters is as JSON has it."""
    return json.dumps(value if isinstance(value, int | list) else str(value))
