"""The result of one server."""

import dataclasses


@dataclasses.dataclass
class Result:
    """The answers of one server directly, and its differences through metamcp."""

    server: object
    sdk: str = ""
    # The reason why the server could not be compared.
    failed: str = ""
    # The direct walks of both eras; the modern one has no answers if the server does not speak that era.
    direct: dict = dataclasses.field(default_factory=dict)
    direct_modern: dict = dataclasses.field(default_factory=dict)
    is_modern: bool = False
    # The requests that depend on the lists of the server.
    plan: list = dataclasses.field(default_factory=list)
    # The differences between two processes of the server, and between its eras.
    own: list = dataclasses.field(default_factory=list)
    eras: list = dataclasses.field(default_factory=list)
    differences: list = dataclasses.field(default_factory=list)
    # Unexplained differences that occurred once and not a second time.
    passing: list = dataclasses.field(default_factory=list)
    # Failures of a stop.
    wrong: list = dataclasses.field(default_factory=list)

    @property
    def unexplained(self):
        return unexplained(self.differences)

    @property
    def is_good(self):
        return not (self.failed or self.unexplained or self.wrong)

    def keep(self, first, second):
        """Keeps the differences of the last attempt.

        A server on a busy machine may answer late, so a difference counts only if it occurs twice.
        """
        if second is None:
            self.differences += first
            return
        self.differences += second
        again = {(one.view, one.path) for one in unexplained(second)}
        self.passing += [one for one in unexplained(first) if (one.view, one.path) not in again]


def unexplained(differences):
    return [one for one in differences if not one.reason]
