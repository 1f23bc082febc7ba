"""The scenarios that do not run. Each line of the file names one, with the reason.

    SCENARIO REASON...
"""


class Omitted:
    """The scenarios of the file, and those that the suite has."""

    def __init__(self, file):
        self.reasons = {}
        self._met = set()
        for number, line in enumerate(file.read_text().splitlines(), start=1):
            if not line.strip() or line.startswith("#"):
                continue
            scenario, _, reason = line.partition(" ")
            if not reason:
                raise SystemExit(f"{file}:{number}: write SCENARIO REASON on this line")
            self.reasons[scenario] = reason

    def removed_from(self, scenarios):
        """Returns the scenarios that run."""
        self._met.update(self.reasons.keys() & set(scenarios))
        return [name for name in scenarios if name not in self.reasons]

    def stale(self):
        """Returns the omitted scenarios that the suite does not have."""
        return sorted(self.reasons.keys() - self._met)
