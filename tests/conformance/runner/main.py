"""The steps: all runs, then the table and the lost checks."""

import argparse
import contextlib
import pathlib
import shutil
import tempfile

import runner

from . import metamcp, processes
from .allowed import Allowed
from .legs import CLIENT_LEGS, LEGACY, LEGS, REVISIONS
from .omitted import Omitted
from .suite import Suite
from .table import table

HERE = pathlib.Path(__file__).resolve().parent.parent
FIXTURE = HERE / "fixture-server"
# The number of runs at the same time. A scenario mostly waits, but some have only half a second.
N_AT_ONCE = 2
# The scenarios of authorization, and those for servers of the first revision with authorization, which
# no later revision requires.
AUTHORIZATION = "auth/"
FIRST_AUTHORIZATION = "2025-03-26"
OLD_AUTHORIZATION = ["auth/2025-03-26-oauth-metadata-backcompat", "auth/2025-03-26-oauth-endpoint-fallback"]


class Run:
    """All runs and their results: call `begin` first, then take a row for each leg."""

    def __init__(self, program, suite, omitted, directory, threads):
        self.program = program
        self.suite = suite
        self._omitted = omitted
        self.directory = directory
        self._threads = threads
        self._begun = {}
        self.lost = []
        self.was_run = set()
        self.n_kept = 0
        self.direct = {}

    def begin(self, legs, client_legs):
        """Begins all runs. Their results are printed in order."""
        for revision in REVISIONS if legs else ():
            self._begin("direct", revision, function=self.directly)
        for leg in legs:
            for revision in leg.sharing:
                self._begin(leg, revision, function=self.through)
        for leg in client_legs:
            for revision in REVISIONS:
                for scenario in self.client_scenarios(revision):
                    self._begin(leg, revision, scenario, function=self.client)
        print(f"{len(self._begun)} runs, {N_AT_ONCE} at the same time", flush=True)

    def _begin(self, *arguments, function):
        self._begun[arguments] = self._threads.submit(function, *arguments)

    def _results(self, *arguments):
        return self._begun[arguments].result()

    def all_directly(self):
        """Waits for the suite against the fixture itself, and returns the row of the table."""
        row = ["direct"]
        for revision in REVISIONS:
            self.direct[revision] = self._results("direct", revision)
            row += self.cells(revision, self.direct[revision])
        return row

    def all_through(self, leg):
        """Waits for the suite through metamcp on one leg, and returns the row of the table."""
        row = [leg.name]
        for revision in REVISIONS:
            if revision not in leg.sharing:
                row += ["–", "–"]
                continue
            results = self._results(leg, revision)
            direct = self.direct[revision]
            self.keep(leg.name, revision, results.lost(leg.name, revision, direct))
            self.n_kept += results.n_kept(direct)
            row += self.cells(revision, results)
        return row

    def directly(self, name, revision):
        with self.fixture("both", f"{name}-{revision}") as url:
            return self.suite.run_server(url, revision, self.directory / f"{name}-{revision}")

    def through(self, leg, revision):
        name = f"{leg.name}-{revision}"
        log = self.directory / f"{name}.metamcp.log"
        with contextlib.ExitStack() as stack:
            if leg.transport == "http":
                server = {"url": stack.enter_context(self.fixture(leg.era, name))}
            else:
                server = {"command": FIXTURE, "args": ["--era", leg.era, "stdio"]}
            server |= leg.sharing[revision]
            through = metamcp.serving(self.program, "fixture", server, log)
            service = stack.enter_context(through)
            return self.suite.run_server(service.url, revision, self.directory / name)

    def cells(self, revision, results):
        scored = self.suite.scored("server", revision)
        n_checks = self.direct[revision].n_passed()
        n_kept = results.n_kept(self.direct[revision])
        return [
            f"{n_kept} of {n_checks}",
            f"{len(results.passed_of(scored))} of {len(scored)}",
        ]

    def client_scenarios(self, revision):
        """Returns the scenarios for clients, beginning with those that a revision requires."""
        scored = self.suite.scored("client", revision)
        further = self._omitted.removed_from(self.suite.unscored("client", revision))
        return scored + further + (OLD_AUTHORIZATION if revision == LEGACY else [])

    def all_clients(self, leg):
        """Waits for the scenarios for clients, and returns the row of the table."""
        row = [leg.name]
        for revision in REVISIONS:
            scored = self.suite.scored("client", revision)
            passed, n_passed, n_made = set(), 0, 0
            for scenario in self.client_scenarios(revision):
                results = self._results(leg, revision, scenario)
                losses = list(results.failed(leg.name, revision))
                self.keep(leg.name, revision, losses)
                n_passed += results.n_passed()
                n_made += results.n_made()
                passed |= set(results.passed_of([scenario]) if not losses else [])
            self.n_kept += n_passed
            row.append(f"{n_passed} of {n_made}")
            for names in of_authorization(scored):
                row.append(f"{len(passed.intersection(names))} of {len(names)}")
        return row

    def client(self, leg, revision, scenario):
        name = f"{leg.name}-{revision}-{scenario.replace('/', '-')}"
        environment = {
            "CONFORMANCE_METAMCP": str(self.program),
            "CONFORMANCE_CLIENT_ERA": leg.era,
            "CONFORMANCE_LOG": str(self.directory / f"{name}.metamcp.log"),
        }
        version = FIRST_AUTHORIZATION if scenario in OLD_AUTHORIZATION else revision
        return self.suite.run_client(
            str(HERE / "client"), scenario, version, self.directory / name, environment
        )

    @contextlib.contextmanager
    def fixture(self, era, name):
        """Starts the fixture over HTTP and yields its address."""
        log = self.directory / f"{name}.fixture.log"
        with processes.running([FIXTURE, "--era", era, "http"], log) as output:
            url = output.readline().strip()
            if not url:
                raise RuntimeError(f"the fixture did not start: {log.read_text()}")
            yield url

    def keep(self, leg, revision, lost):
        self.was_run.add((leg, revision))
        self.lost += lost


def of_authorization(scenarios):
    """Returns the scenarios without authorization, and those with it."""
    with_it = [name for name in scenarios if name.startswith(AUTHORIZATION)]
    return [name for name in scenarios if name not in with_it], with_it


def report(run, allowed):
    """Prints the lost checks, and returns the number of failures."""
    n_failed = 0
    for lost in run.lost:
        reason = allowed.reason_for(lost)
        n_failed += reason is None
        print("allowed" if reason else "LOST   ", *lost.key, "-", reason or lost.what)
    for key in allowed.stale(run.was_run):
        n_failed += 1
        print("STALE  ", *key, "- is allowed to be lost, but passes: remove it from allowed.txt")
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
    allowed = Allowed(HERE / "allowed.txt")
    omitted = Omitted(HERE / "omitted.txt")
    suite = Suite(arguments.suite.resolve())
    wanted = arguments.leg or [leg.name for leg in LEGS + CLIENT_LEGS]
    legs = [leg for leg in LEGS if leg.name in wanted]
    client_legs = [leg for leg in CLIENT_LEGS if leg.name in wanted]

    with processes.threads(N_AT_ONCE) as threads:
        run = Run(arguments.metamcp.resolve(), suite, omitted, directory, threads)
        run.begin(legs, client_legs)
        rows = [run.all_directly()] if legs else []
        rows += [run.all_through(leg) for leg in legs]
        client_rows = [run.all_clients(leg) for leg in client_legs]

    print_table(["scored scenarios"], rows)
    print_table(["scored scenarios", "scored of authorization"], client_rows)
    n_failed = report(run, allowed)
    for scenario, reason in omitted.reasons.items():
        print("omitted", scenario, "-", reason)
    if client_legs:
        for scenario in omitted.stale():
            n_failed += 1
            print("STALE  ", scenario, "- the suite has no such scenario: remove it from omitted.txt")
    print(f"\n{run.n_kept} passed, {n_failed} failed")
    return 1 if n_failed else 0


def print_table(columns, rows):
    """Prints one row for each leg, with the checks and these further columns of each revision."""
    head = [""]
    for revision in REVISIONS:
        head += [f"{revision}: checks", *columns]
    if rows:
        print("\n" + table(head, rows) + "\n")


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
            parser.error(f"leg {leg} does not exist; use one of: {', '.join(names)}")
    return arguments
