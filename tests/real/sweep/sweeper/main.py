"""The steps of the sweep: install, each server alone, all of them merged, the table."""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import sweeper

from . import install, processes, report, sdk, servers
from .alone import compare_alone
from .launcher import Launcher
from .merged import compare_merged
from .result import Result

PROJECT = servers.HERE.parent.parent.parent


def main():
    arguments = parse_arguments()
    processes.end_on_signals()
    known, not_after = servers.read()
    chosen = [server for server in known if server.ci or not arguments.only_ci]
    if arguments.only:
        chosen = [server for server in known if server.name in arguments.only]
        if unknown := set(arguments.only) - {server.name for server in known}:
            sys.exit(f"sweep: {servers.FILE} has no server {', '.join(sorted(unknown))}")
    installer = install.Installer(arguments.cache.resolve(), not_after)
    # The directory is removed last, after everything that writes to it.
    with tempfile.TemporaryDirectory(prefix="metamcp-sweep.", ignore_cleanup_errors=True) as name:
        directory = pathlib.Path(name).resolve()
        with processes.threads(arguments.jobs) as pool:
            results = install_all(installer, chosen, pool)
            if arguments.install_only:
                print(report.details(results))
                return 1 if any(result.failed for result in results) else 0
            program = arguments.metamcp.resolve(strict=True)
            try:
                return run(program, installer, results, directory, pool)
            finally:
                if arguments.keep:
                    homes = shutil.ignore_patterns("homes", "*.sock")
                    shutil.copytree(directory, arguments.keep, ignore=homes, dirs_exist_ok=True)


def run(program, installer, results, directory, pool):
    """Compares everything, prints the results, and returns the exit code."""
    make_work(directory / "work")
    launcher = Launcher(program, installer, directory)

    def compare(result):
        if not result.failed:
            began = time.monotonic()
            guarded(result, lambda: compare_alone(launcher, result))
            outcome = " ".join(report.row(result)[-2:]).strip()
            say(f"{result.server.name}: {outcome} ({time.monotonic() - began:.0f} s)")

    list(pool.map(compare, results))
    compared = [result for result in results if not result.failed]
    say(f"merged: {len(compared)} servers behind one metamcp")
    merged = compare_merged(launcher, compared, pool)

    print(report.table(results), end="\n\n")
    print(f"Servers: {len(compared)}; tools in the merged list: {merged.n_tools}", end="\n\n")
    (directory / "differences.txt").write_text(report.everything(results))
    if details := report.details(results):
        print(details, end="\n\n")
    if merged.wrong:
        print(f"merged: FAILED {'; '.join(merged.wrong)}", end="\n\n")
    n_failed = sum(not result.is_good for result in results) + bool(merged.wrong)
    print(f"{len(results) + 1 - n_failed} passed, {n_failed} failed")
    return 1 if n_failed else 0


def install_all(installer, chosen, pool):
    """Installs the missing servers, and returns a result for each server."""
    installer.install_tools()

    def one(server):
        result = Result(server)
        guarded(result, lambda: installer.install(server))
        if not result.failed:
            result.sdk = sdk.of(server, installer.directory(server))
        return result

    return list(pool.map(one, chosen))


def guarded(result, function):
    """Calls a function, so that a failure of one server does not stop the others."""
    try:
        function()
    except Exception as error:
        result.failed = f"{type(error).__name__}: {error}"


def make_work(work):
    """Makes the working directory of all servers: a git repository with a few files."""
    work.mkdir()
    (work / "hello.txt").write_text("hello from the sweep\n")
    # No server listens there.
    cluster = {"name": "none", "cluster": {"server": "http://127.0.0.1:9"}}
    context = {"name": "none", "context": {"cluster": "none", "user": "none"}}
    kubeconfig = {"apiVersion": "v1", "kind": "Config", "clusters": [cluster], "contexts": [context]}
    kubeconfig |= {"users": [{"name": "none", "user": {}}], "current-context": "none"}
    (work / "kubeconfig").write_text(json.dumps(kubeconfig))
    # The commit must not depend on the user's git configuration or the clock.
    who = {"NAME": "metamcp", "EMAIL": "metamcp@localhost", "DATE": "2026-01-01T00:00:00Z"}
    environment = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    for role in ("AUTHOR", "COMMITTER"):
        environment |= {f"GIT_{role}_{key}": value for key, value in who.items()}
    git = ["git", "-c", "init.defaultBranch=main"]
    for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "one"]):
        subprocess.run([*git, *command], cwd=work, env=environment, check=True, timeout=20)


def say(line):
    print(line, file=sys.stderr, flush=True)


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=sweeper.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    release = PROJECT / "target/release/metamcp"
    add = parser.add_argument
    add("--metamcp", type=pathlib.Path, default=release, help="the program; by default the release build")
    add("--only", nargs="+", default=[], metavar="NAME", help="these servers only")
    add("--only-ci", action="store_true", help="the ten with ci = true, as tests/run does")
    add("--jobs", type=int, default=2, help="servers compared at the same time (2)")
    add("--install-only", action="store_true", help="install, and compare nothing")
    add("--cache", type=pathlib.Path, default=install.default_cache(), help="where the servers are installed")
    add("--keep", type=pathlib.Path, help="a directory that receives the logs and all differences")
    return parser.parse_args()
