"""The result of one server."""

import dataclasses


@dataclasses.dataclass
class Result:
    """One server as it is directly, and its differences through metamcp."""

    server: object
    sdk: str = ""
    # The reason why it could not be compared.
    failed: str = ""
    # Two walks of its own, the second without an answer if it does not speak that era.
    direct: dict = dataclasses.field(default_factory=dict)
    direct_modern: dict = dataclasses.field(default_factory=dict)
    is_modern: bool = False
    # The requests that depend on its lists.
    plan: list = dataclasses.field(default_factory=list)
    # The differences between two of its processes, and between its eras.
    own: list = dataclasses.field(default_factory=list)
    eras: list = dataclasses.field(default_factory=list)
    differences: list = dataclasses.field(default_factory=list)
    # Unexplained differences that were seen once and not a second time.
    passing: list = dataclasses.field(default_factory=list)
    # Faults of a stop.
    wrong: list = dataclasses.field(default_factory=list)

    @property
    def unexplained(self):
        return unexplained(self.differences)

    @property
    def is_good(self):
        return not (self.failed or self.unexplained or self.wrong)

    def keep(self, first, second):
        """Keeps the differences of the last attempt.

        A busy machine makes a server answer late, so a fault counts only if it is there twice.
        """
        if second is None:
            self.differences += first
            return
        self.differences += second
        again = {(one.view, one.path) for one in unexplained(second)}
        self.passing += [one for one in unexplained(first) if (one.view, one.path) not in again]


def unexplained(differences):
    return [one for one in differences if not one.reason]
