"""A metamcp with some servers, for the duration of a block."""

import contextlib
import json
import queue
import re
import subprocess
import threading

from . import processes

# The seconds for its start, and for its stop, which includes its longest wait for requests.
_START, _STOP = 20, 25
# The seconds in which the processes of servers must end after that.
_CLEANUP = 5

_SETTINGS = """
[listen]
http = "127.0.0.1:0"
control = {control}

[pool]
size = 128
"""


class Gateway:
    """A running metamcp; after its block, `wrong` has the failures of its stop."""

    def __init__(self, address):
        self.address = address
        self.wrong = []


@contextlib.contextmanager
def serving(program, commands, directory, work, marked):
    """Starts metamcp in front of servers, given as {name: (command, environment)}, and yields a gateway.

    Its own files go to `directory`, which is new; the servers run in `work`.
    """
    directory.mkdir()
    config = directory / "metamcp.toml"
    config.write_text(_settings(commands, directory, marked))
    environment = {
        "STATE_DIRECTORY": str(directory / "state"),
        "CACHE_DIRECTORY": str(directory / "cache"),
        "RUNTIME_DIRECTORY": str(directory / "run"),
    }
    with open(directory / "log", "wb") as log:
        process = processes.start(
            [program, "serve", "--config", config],
            work,
            {**processes.inherited(), **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    gateway = None
    try:
        gateway = Gateway(_address(process, directory / "log"))
        yield gateway
    finally:
        marked.remember(process.pid)
        process.terminate()
        try:
            code = process.wait(_STOP)
            wrong = [f"metamcp ended with exit code {code}"] if code else []
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            wrong = [f"metamcp did not stop within {_STOP} s"]
        processes.forget(process)
        if left := marked.left_after(_CLEANUP):
            wrong.append(f"left after the stop: {', '.join(left)}")
        if gateway:
            gateway.wrong = wrong


def _settings(commands, directory, marked):
    lines = [_SETTINGS.format(control=json.dumps(str(directory / "control.sock")))]
    for name, (command, environment) in commands.items():
        program, *arguments = command
        pairs = {**environment, **marked.environment}.items()
        inner = ", ".join(f"{key} = {json.dumps(value)}" for key, value in pairs)
        lines += [
            f"[servers.{name}]",
            f"command = {json.dumps(program)}",
            f"args = {json.dumps(arguments)}",
            f"env = {{ {inner} }}",
        ]
    return "\n".join(lines) + "\n"


def _address(process, log):
    """Reads the address for clients, which metamcp prints when it is ready."""
    lines = queue.Queue()

    def read():
        for line in process.stdout:
            lines.put(line)
        lines.put("")

    threading.Thread(target=read, daemon=True).start()
    try:
        while line := lines.get(timeout=_START):
            if found := re.match(r"Clients: +http://([^/\s]+)", line):
                return found[1]
    except queue.Empty:
        pass
    raise RuntimeError(f"metamcp did not start: {log.read_text(errors='replace')[-600:].strip()}")
