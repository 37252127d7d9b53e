"""A day of a large installation, added up from what each part costs. Pure."""

from dataclasses import dataclass

_SECONDS = 86_400
_TOPICS = 3_000
_ROWS = 6_000_000_000


@dataclass(frozen=True, slots=True)
class Costs:
    """CPU seconds of everything of ours; a commit's are with a Spark job of its own."""

    row: float
    ledger: float
    commit: float
    idle_hour: float


@dataclass(frozen=True, slots=True)
class Day:
    """``ledgers``: of a topic that end in a day. What was closed an hour ago is committed."""

    name: str
    ledgers: int

    @property
    def commits(self) -> int:
        """Of a topic, at most."""
        return min(self.ledgers, 24)

    def cores(self, costs: Costs) -> dict[str, float]:
        """How many cores each part takes, on average."""
        seconds = {
            "rows": _ROWS * costs.row,
            "ledgers": _TOPICS * self.ledgers * costs.ledger,
            "commits, with a job each": _TOPICS * self.commits * costs.commit,
            "looking at topics": _TOPICS * 24 * costs.idle_hour,
        }
        return {what: one / _SECONDS for what, one in seconds.items()}


# A topic has 2 M messages a day. Pulsar begins a new ledger after 50,000 entries, but not before
# 10 minutes, and after 4 hours at the latest.
DAYS = (
    Day("ledgers of 4 hours (batches)", 6),
    Day("ledgers of 36 minutes (an entry each)", 40),
    Day("ledgers of 10 minutes", 144),
)
