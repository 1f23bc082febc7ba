"""The servers of servers.toml."""

import dataclasses
import pathlib
import tomllib

HERE = pathlib.Path(__file__).resolve().parent.parent
FILE = HERE / "servers.toml"


@dataclasses.dataclass(frozen=True)
class Explanation:
    """A difference that is the server's own: where it is seen, and why."""

    path: str
    reason: str
    view: str = ""


@dataclasses.dataclass(frozen=True)
class Server:
    """One server: its package, how it is started, and what is known of it."""

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
    """Returns the servers, and the day after which nothing that is installed was published."""
    document = tomllib.loads(path.read_text())
    servers = [_server(entry) for entry in document["server"]]
    names = [server.name for server in servers]
    if len(set(names)) != len(names):
        raise ValueError(f"{path}: two servers have one name")
    return servers, document["not_after"]


def _server(entry):
    explained = [Explanation(**one) for one in entry.pop("explained", [])]
    server = Server(**entry, explained=explained)
    if bool(server.npm) == bool(server.pypi):
        raise ValueError(f"server {server.name}: either npm or pypi names its package")
    return server
