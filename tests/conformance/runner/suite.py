"""The installed suite: its requirements, and its runs."""

import json
import pathlib
import re

from . import processes
from .results import Results

# The time for one scenario, in milliseconds, and for one run of all of them, in seconds.
SCENARIO_LIMIT_MS = 15_000
RUN_LIMIT = 300


class Suite:
    """The suite in the directory of `install`."""

    def __init__(self, directory):
        self._node = directory / "node"
        self._script = directory / "suite.js"
        self._requirements = directory / "requirements"

    def scored(self, mode, revision):
        """Returns the scenarios that a revision requires of a `server` or a `client`."""
        # The file has one item on a line. The standard library has no YAML parser.
        scenarios, section = [], None
        for line in (self._requirements / f"{revision}.yaml").read_text().splitlines():
            if found := re.fullmatch(r"(\w+):\s*", line):
                section = found[1]
            elif section == mode and (found := re.fullmatch(r"  - (\S+)", line)):
                scenarios.append(found[1])
        return scenarios

    def unscored(self, mode, revision):
        """Returns the further scenarios of a revision, which it does not require."""
        text = (self._requirements / f"{revision}.yaml").read_text()
        entries = re.findall(r"  - scenario: (\S+)\n    leg: (\S+)", text)
        return [scenario for scenario, of_mode in entries if of_mode == mode]

    def run_server(self, url, revision, directory):
        """Runs all scenarios of a revision against a server."""
        arguments = ["server", "--url", url, "--requirements", revision]
        self._run(arguments, directory, RUN_LIMIT)
        return Results(_checks_in(directory))

    def run_client(self, command, scenario, revision, directory, environment):
        """Runs one scenario against a client."""
        arguments = ["client", "--command", command, "--scenario", scenario]
        arguments += ["--spec-version", revision]
        # Twice the time of the scenario, for the start of its client and the end of its server.
        limit = 2 * SCENARIO_LIMIT_MS / 1000
        code = self._run(arguments, directory, limit, environment)
        checks = _checks_in(directory)
        # The exit code also covers warnings, and a client that fails or never ends.
        if code != 0 and not any(check["status"] == "FAILURE" for check in checks.get(scenario, [])):
            message = "the suite failed for another reason, see its log"
            failure = {"id": "verdict", "status": "FAILURE", "errorMessage": message}
            checks.setdefault(scenario, []).append(failure)
        return Results(checks)

    def _run(self, arguments, directory, limit, environment=()):
        directory.mkdir(parents=True)
        command = [self._node, self._script, *arguments]
        command += ["--timeout", str(SCENARIO_LIMIT_MS), "--output-dir", directory]
        return processes.run_to_the_end(command, directory / "suite.log", limit, environment)


def _checks_in(directory):
    """Returns the checks of each scenario. The suite names their directories with the time."""
    checks = {}
    for file in sorted(pathlib.Path(directory).glob("**/checks.json")):
        name = str(file.parent.relative_to(directory))
        scenario = re.sub(r"^server-|-\d{4}-\d\d-\d\dT[\dZ-]+$", "", name)
        checks[scenario] = json.loads(file.read_text())
    return checks
