"""The order of things: all runs, then what they say together."""

import argparse
import contextlib
import pathlib
import shutil
import tempfile

import runner

from . import metamcp, processes
from .allowed import Allowed
from .legs import CLIENT_LEGS, LEGS, REVISIONS
from .suite import Suite
from .table import table

HERE = pathlib.Path(__file__).resolve().parent.parent
FIXTURE = HERE / "fixture-server"
# A scenario of authorization is none of a client that has its credentials from its configuration.
AUTHORIZATION = "auth/"


class Run:
    """Everything that is run, and what comes of it."""

    def __init__(self, program, suite, directory):
        self.program = program
        self.suite = suite
        self.directory = directory
        self.lost = []
        self.was_run = set()
        self.n_kept = 0
        self.direct = {}

    def all_directly(self):
        """Runs the suite against the fixture itself, and returns the row of the table."""
        row = ["direct"]
        for revision in REVISIONS:
            with self.fixture("both", f"direct-{revision}") as url:
                self.direct[revision] = self.suite.run_server(
                    url, revision, self.directory / f"direct-{revision}"
                )
            row += self.cells(revision, self.direct[revision])
        return row

    def all_through(self, leg):
        """Runs the suite through metamcp on one leg, and returns the row of the table."""
        row = [leg.name]
        for revision in REVISIONS:
            if revision not in leg.sharing:
                row += ["–", "–"]
                continue
            results = self.through(leg, revision)
            direct = self.direct[revision]
            self.keep(leg.name, revision, results.lost(leg.name, revision, direct))
            self.n_kept += results.n_kept(direct)
            row += self.cells(revision, results)
        return row

    def through(self, leg, revision):
        name = f"{leg.name}-{revision}"
        log = self.directory / f"{name}.metamcp.log"
        with contextlib.ExitStack() as stack:
            if leg.transport == "http":
                server = {"url": stack.enter_context(self.fixture(leg.era, name))}
            else:
                server = {"command": FIXTURE, "args": ["--era", leg.era, "stdio"]}
            through = metamcp.serving(self.program, "fixture", server, leg.sharing[revision], log)
            url = stack.enter_context(through)
            return self.suite.run_server(url, revision, self.directory / name)

    def cells(self, revision, results):
        scored = self.suite.scored("server", revision)
        n_checks = self.direct[revision].n_passed()
        n_kept = results.n_kept(self.direct[revision])
        return [
            f"{n_kept} of {n_checks}",
            f"{len(results.passed_of(scored))} of {len(scored)}",
        ]

    def all_clients(self, leg):
        """Runs the scenarios for clients through metamcp, and returns the row of the table."""
        row = [leg.name]
        for revision in REVISIONS:
            scored = without_authorization(self.suite.scored("client", revision))
            others = without_authorization(self.suite.unscored("client", revision))
            passed, n_passed, n_made = [], 0, 0
            for scenario in scored + others:
                results = self.client(leg, scenario, revision)
                losses = list(results.failed(leg.name, revision))
                self.keep(leg.name, revision, losses)
                n_passed += results.n_passed()
                n_made += results.n_made()
                passed += results.passed_of([scenario]) if not losses else []
            self.n_kept += n_passed
            n_scored = len([name for name in passed if name in scored])
            row += [f"{n_passed} of {n_made}", f"{n_scored} of {len(scored)}"]
        return row

    def client(self, leg, scenario, revision):
        name = f"{leg.name}-{revision}-{scenario}"
        environment = {
            "CONFORMANCE_METAMCP": str(self.program),
            "CONFORMANCE_CLIENT_ERA": leg.era,
            "CONFORMANCE_LOG": str(self.directory / f"{name}.metamcp.log"),
        }
        return self.suite.run_client(
            str(HERE / "client"), scenario, revision, self.directory / name, environment
        )

    @contextlib.contextmanager
    def fixture(self, era, name):
        """Starts the fixture over HTTP and yields its address."""
        log = self.directory / f"{name}.fixture.log"
        with processes.running([FIXTURE, "--era", era, "http"], log) as output:
            url = output.readline().strip()
            if not url:
                raise RuntimeError(f"the fixture does not start: {log.read_text()}")
            yield url

    def keep(self, leg, revision, lost):
        self.was_run.add((leg, revision))
        self.lost += lost


def without_authorization(scenarios):
    return [name for name in scenarios if not name.startswith(AUTHORIZATION)]


def report(run, allowed):
    """Says what is lost, and returns how much of that may not be."""
    n_failed = 0
    for lost in run.lost:
        reason = allowed.reason_for(lost)
        n_failed += reason is None
        print("allowed" if reason else "LOST   ", *lost.key, "-", reason or lost.what)
    for key in allowed.stale(run.was_run):
        n_failed += 1
        print("STALE  ", *key, "- is allowed to be lost, and is not")
    return n_failed


def main():
    arguments = parse_arguments()
    processes.end_on_signals()
    directory = arguments.keep or pathlib.Path(tempfile.mkdtemp(prefix="metamcp-conformance."))
    directory.mkdir(parents=True, exist_ok=True)
    try:
        return run_all(arguments, directory.resolve())
    finally:
        if arguments.keep is None:
            shutil.rmtree(directory)


def run_all(arguments, directory):
    run = Run(arguments.metamcp.resolve(), Suite(arguments.suite.resolve()), directory)
    allowed = Allowed(HERE / "allowed.txt")
    wanted = arguments.leg or [leg.name for leg in LEGS + CLIENT_LEGS]

    def is_wanted(leg):
        if leg.name in wanted:
            print(f"running {leg.name}", flush=True)
        return leg.name in wanted

    rows = []
    if any(leg.name in wanted for leg in LEGS):
        rows.append(run.all_directly())
        rows += [run.all_through(leg) for leg in LEGS if is_wanted(leg)]
    rows += [run.all_clients(leg) for leg in CLIENT_LEGS if is_wanted(leg)]

    head = [""]
    for revision in REVISIONS:
        head += [f"{revision}: checks", "scored scenarios"]
    print("\n" + table(head, rows) + "\n")
    n_failed = report(run, allowed)
    print(f"\n{run.n_kept} passed, {n_failed} failed")
    return 1 if n_failed else 0


def parse_arguments():
    names = [leg.name for leg in LEGS + CLIENT_LEGS]
    parser = argparse.ArgumentParser(
        description=runner.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("metamcp", type=pathlib.Path, help="the program")
    parser.add_argument("suite", type=pathlib.Path, help="the directory of the suite")
    parser.add_argument("leg", nargs="*", help=f"by default all: {', '.join(names)}")
    parser.add_argument("--keep", type=pathlib.Path, help="a new directory for results and logs")
    arguments = parser.parse_intermixed_args()
    for leg in arguments.leg:
        if leg not in names:
            parser.error(f"there is no leg {leg}; there are: {', '.join(names)}")
    return arguments
