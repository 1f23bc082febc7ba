"""The results of checks, and the checks that are lost between two runs."""

import collections
from dataclasses import dataclass


@dataclass(frozen=True)
class Lost:
    """A check that passed less often than it should, or failed more often."""

    leg: str
    revision: str
    scenario: str
    check: str
    what: str

    @property
    def key(self):
        return self.leg, self.revision, self.scenario, self.check


class Results:
    """The checks of one run, by scenario. A check may be made several times under one id."""

    def __init__(self, checks):
        self._checks = checks
        self._counts = collections.Counter(
            (scenario, check["id"], check["status"])
            for scenario, of_scenario in checks.items()
            for check in of_scenario
        )

    def n_passed(self):
        return sum(n for (_, _, status), n in self._counts.items() if status == "SUCCESS")

    def n_made(self):
        """Returns the number of checks with a verdict; the others only inform, or were skipped."""
        return sum(
            n for (_, _, status), n in self._counts.items() if status not in ("INFO", "SKIPPED")
        )

    def passed_of(self, scenarios):
        """Returns the scenarios that ran without a failure."""
        failed = {scenario for scenario, _, status in self._counts if status == "FAILURE"}
        return [name for name in scenarios if self._checks.get(name) and name not in failed]

    def n_kept(self, direct):
        """Returns the number of checks that pass directly and here."""
        return sum(
            min(n, self._counts[key]) for key, n in direct._counts.items() if key[2] == "SUCCESS"
        )

    def lost(self, leg, revision, direct):
        """Yields the checks that are worse here than directly."""
        for scenario, check in sorted({key[:2] for key in direct._counts | self._counts}):
            passed = (scenario, check, "SUCCESS")
            failed = (scenario, check, "FAILURE")
            if self._counts[passed] < direct._counts[passed]:
                what = f"passes {self._counts[passed]} of {direct._counts[passed]} times"
            elif self._counts[failed] > direct._counts[failed]:
                what = f"fails {self._counts[failed]} times, {direct._counts[failed]} directly"
            else:
                continue
            yield Lost(leg, revision, scenario, check, what + self._why(scenario, check))

    def failed(self, leg, revision):
        """Yields the checks that failed or warned, for runs without a direct comparison."""
        for (scenario, check, status), n in sorted(self._counts.items()):
            if status in ("FAILURE", "WARNING"):
                what = f"{status.lower()} {n} times" + self._why(scenario, check)
                yield Lost(leg, revision, scenario, check, what)

    def _why(self, scenario, check):
        """Returns the first reason of the suite, on one line."""
        of_scenario = self._checks.get(scenario)
        if not of_scenario:
            return ": the scenario did not end"
        made = [entry for entry in of_scenario if entry["id"] == check]
        if not made:
            return ": the check did not run"
        for entry in made:
            if entry["status"] in ("FAILURE", "WARNING") and entry.get("errorMessage"):
                return ": " + " ".join(entry["errorMessage"].split())[:300]
        return ""
