"""The start of installed servers, in directories of this run."""

import contextlib
import os
import socket

from . import metamcp, servers
from .client import StdioClient
from .processes import Marked


class Launcher:
    """Starts servers directly, and behind a metamcp."""

    def __init__(self, program, installer, directory):
        self._program = program
        self._installer = installer
        self._directory = directory
        self._work = directory / "work"

    def direct(self, server, era):
        """Starts a server and returns its client, a context manager."""
        command, environment = self._command(server)
        return StdioClient(era, command, self._work, environment, Marked())

    @contextlib.contextmanager
    def behind_metamcp(self, servers, name):
        """Starts a metamcp with some servers, and yields its gateway."""
        commands = {server.name: self._command(server) for server in servers}
        directory = self._directory / name
        with metamcp.serving(self._program, commands, directory, self._work, Marked()) as gateway:
            yield gateway

    def _command(self, server):
        """Returns the command and the environment of a server."""
        installed = self._installer.directory(server)
        home = self._directory / "homes" / server.name
        home.mkdir(parents=True, exist_ok=True)
        values = {"work": self._work, "home": home, "here": servers.HERE}

        def fill(text):
            for name, value in values.items():
                text = text.replace("{" + name + "}", str(value))
            return text.replace("{port}", str(_free_port())) if "{port}" in text else text

        first, *arguments = map(fill, server.run)
        if server.npm:
            package = installed / "node_modules" / server.npm.rpartition("@")[0]
            command = [str(self._installer.node), str(package / first)]
        else:
            command = [str(installed / "bin" / first)]
        path = f"{self._installer.node.parent}:{os.environ['PATH']}"
        environment = {"HOME": str(home), "TMPDIR": str(home), "PATH": path}
        environment |= {key: fill(value) for key, value in server.env.items()}
        return command + arguments, environment


def _free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]
