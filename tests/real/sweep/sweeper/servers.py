"""The servers of servers.toml."""

import dataclasses
import pathlib
import tomllib

HERE = pathlib.Path(__file__).resolve().parent.parent
FILE = HERE / "servers.toml"


@dataclasses.dataclass(frozen=True)
class Explanation:
    """A difference that the server causes: its view and path, and the reason."""

    path: str
    reason: str
    view: str = ""


@dataclasses.dataclass(frozen=True)
class Server:
    """One server: its package, its command, and its explained differences."""

    name: str
    run: list
    npm: str = ""
    pypi: str = ""
    beside: list = dataclasses.field(default_factory=list)
    env: dict = dataclasses.field(default_factory=dict)
    call: dict | None = None
    sdk: str = ""
    ci: bool = False
    explained: list = dataclasses.field(default_factory=list)

    @property
    def package(self):
        return self.npm or self.pypi

    @property
    def version(self):
        return self.npm.rpartition("@")[2] if self.npm else self.pypi.rpartition("==")[2]


def read(path=FILE):
    """Returns the servers, and the latest publication date of installed packages."""
    document = tomllib.loads(path.read_text())
    servers = [_server(entry) for entry in document["server"]]
    names = [server.name for server in servers]
    if len(set(names)) != len(names):
        raise ValueError(f"{path}: two servers have the same name")
    return servers, document["not_after"]


def _server(entry):
    explained = [Explanation(**one) for one in entry.pop("explained", [])]
    server = Server(**entry, explained=explained)
    if bool(server.npm) == bool(server.pypi):
        raise ValueError(f"server {server.name}: set either npm or pypi")
    return server
