"""The installed suite: what it requires, and how it is run."""

import json
import pathlib
import re

from . import processes
from .results import Results

# How long one scenario may take, in milliseconds, and one run of all of them, in seconds.
SCENARIO_LIMIT_MS = 15_000
RUN_LIMIT = 300


class Suite:
    """The suite in the directory that `install` made."""

    def __init__(self, directory):
        self._node = directory / "node"
        self._script = directory / "suite.js"
        self._requirements = directory / "requirements"

    def scored(self, mode, revision):
        """The scenarios that a revision requires of a `server` or a `client`."""
        # The lists of that file, one item a line; no parser of YAML is in the standard library.
        scenarios, section = [], None
        for line in (self._requirements / f"{revision}.yaml").read_text().splitlines():
            if found := re.fullmatch(r"(\w+):\s*", line):
                section = found[1]
            elif section == mode and (found := re.fullmatch(r"  - (\S+)", line)):
                scenarios.append(found[1])
        return scenarios

    def unscored(self, mode, revision):
        """The scenarios that a revision has beside those, for whoever wants to know."""
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
        # Beside the scenario, its client must be started and its server ended.
        limit = 2 * SCENARIO_LIMIT_MS / 1000
        code = self._run(arguments, directory, limit, environment)
        checks = _checks_in(directory)
        # It counts warnings, a client that fails, and one that never ends, too.
        if code != 0 and not any(check["status"] == "FAILURE" for check in checks.get(scenario, [])):
            message = "the suite is not content, see its log"
            failure = {"id": "verdict", "status": "FAILURE", "errorMessage": message}
            checks.setdefault(scenario, []).append(failure)
        return Results(checks)

    def _run(self, arguments, directory, limit, environment=()):
        directory.mkdir(parents=True)
        command = [self._node, self._script, *arguments]
        command += ["--timeout", str(SCENARIO_LIMIT_MS), "--output-dir", directory]
        return processes.run_to_the_end(command, directory / "suite.log", limit, environment)


def _checks_in(directory):
    """The checks of each scenario; the suite gives each a directory, with the time in its name."""
    checks = {}
    for file in sorted(pathlib.Path(directory).glob("*/checks.json")):
        scenario = re.sub(r"^server-|-\d{4}-\d\d-\d\dT[\dZ-]+$", "", file.parent.name)
        checks[scenario] = json.loads(file.read_text())
    return checks
