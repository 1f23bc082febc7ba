"""A metamcp with some servers, for as long as a block takes."""

import contextlib
import json
import queue
import re
import subprocess
import threading

from . import processes

# Seconds: until it serves, and until it has stopped, which includes its longest wait for requests.
_START, _STOP = 20, 25
# Seconds in which what the servers have started is to be gone after that.
_GONE = 5

_SETTINGS = """
[listen]
http = "127.0.0.1:0"
control = {control}

[pool]
size = 128
"""


class Gateway:
    """A metamcp that serves; after its block, the faults of its stop."""

    def __init__(self, address):
        self.address = address
        self.wrong = []


@contextlib.contextmanager
def serving(program, commands, directory, work, marked):
    """Starts metamcp before servers, given as {name: (command, environment)}, and yields a gateway.

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
        if left := marked.left_after(_GONE):
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
    """Reads where clients are served, which is printed as soon as they are."""
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
    raise RuntimeError(f"metamcp does not serve: {log.read_text(errors='replace')[-600:].strip()}")
