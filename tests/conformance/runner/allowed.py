"""The checks that may be lost. Each line of the file names one or more, with the reason.

    LEG[,LEG...] REVISION SCENARIO CHECK[,CHECK...] REASON...
"""

import itertools

_N_COLUMNS = 5


class Allowed:
    """The allowed losses of the file, and those that occurred."""

    def __init__(self, file):
        self._reasons = {}
        self._used = set()
        for number, line in enumerate(file.read_text().splitlines(), start=1):
            if not line.strip() or line.startswith("#"):
                continue
            columns = line.split(maxsplit=_N_COLUMNS - 1)
            if len(columns) != _N_COLUMNS:
                raise SystemExit(f"{file}:{number}: write LEG REVISION SCENARIO CHECK REASON on this line")
            legs, revision, scenario, checks, reason = columns
            for leg, check in itertools.product(legs.split(","), checks.split(",")):
                self._reasons[leg, revision, scenario, check] = reason

    def reason_for(self, lost):
        """Returns why this check may be lost; None if it may not."""
        reason = self._reasons.get(lost.key)
        if reason is not None:
            self._used.add(lost.key)
        return reason

    def stale(self, was_run):
        """Returns the allowed checks that were not lost, for the legs and revisions in `was_run`."""
        return [key for key in sorted(self._reasons.keys() - self._used) if key[:2] in was_run]
