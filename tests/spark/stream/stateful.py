"""Stateful queries over orders and payments, and what each must give, computed with pandas.

Time is the event time: of message number n it is n seconds, and days later after each break, which
ends with one message alone. So all that came before the last break is final.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

Values = list[tuple[Any, ...]]
Streams = Callable[[str], DataFrame]
"""A stream of "orders" or "payments"."""

KNOWN = 400
"""Payments of orders from there on come later than a query that joins a table of them."""
DELAY = 30
"""Seconds that the watermark stays behind."""
WITHIN = 20
"""Seconds after which an order is not paid any more."""


@dataclass(frozen=True)
class Sent:
    """All messages by topic: id, customer, amount, and seconds of event time."""

    orders: pd.DataFrame
    payments: pd.DataFrame

    @property
    def final(self) -> float:
        """Before it nothing more can come."""
        return float(self.orders.seconds.max()) - DELAY

    def pairs(self) -> pd.DataFrame:
        orders = self.orders.assign(row=self.orders.index)
        found = orders.merge(self.payments, on="id", suffixes=("", "_paid"))
        later = found.seconds_paid - found.seconds
        return found[(later >= 0) & (later <= WITHIN)]


@dataclass(frozen=True)
class StatefulQuery:
    """``build`` the query of streams; ``expected`` of what was sent. ``key``: so many columns
    identify a row, of which the last one counts (mode "update"); 0: each row counts."""

    name: str
    mode: str
    build: Callable[[SparkSession, Streams, DataFrame], DataFrame]
    expected: Callable[[Sent], Values]
    key: int = 0
    confs: tuple[tuple[str, str], ...] = ()

    def result(self, rows: Sequence[Any]) -> Values:
        """Of all batches, one after the other."""
        found = [tuple(row) for row in rows]
        if self.key:
            found = list({row[: self.key]: row for row in found}.values())
        return sorted(found, key=str)


def timed(rows: DataFrame) -> DataFrame:
    return rows.withWatermark("__eventTime", f"{DELAY} seconds")


def values(frame: pd.DataFrame) -> Values:
    return [tuple(row) for row in frame.astype(object).itertuples(index=False)]


def _windows(_: SparkSession, streams: Streams, __: DataFrame) -> DataFrame:
    window = sql.window("__eventTime", "60 seconds")
    grouped = timed(streams("orders")).groupBy(window, "customer")
    counted = grouped.agg(sql.count("*").alias("orders"), sql.sum("amount").alias("amount"))
    return counted.select(sql.col("window.start").cast("long"), "customer", "orders", "amount")


def _all_windows(sent: Sent) -> Values:
    frame = sent.orders.assign(start=(sent.orders.seconds // 60 * 60).astype(int))
    grouped = frame.groupby(["start", "customer"]).amount.agg(["count", "sum"]).reset_index()
    return values(grouped)


def _closed_windows(sent: Sent) -> Values:
    return [row for row in _all_windows(sent) if row[0] + 60 <= sent.final]


def _totals(_: SparkSession, streams: Streams, __: DataFrame) -> DataFrame:
    both = streams("orders").unionByName(streams("payments"))
    return both.groupBy("customer").agg(sql.count("*"), sql.sum("amount"))


def _sums(frame: pd.DataFrame) -> Values:
    return values(frame.groupby("customer").amount.agg(["count", "sum"]).reset_index())


def _unique(_: SparkSession, streams: Streams, __: DataFrame) -> DataFrame:
    return streams("orders").dropDuplicates(["id"]).select("id")


def _unique_in_time(_: SparkSession, streams: Streams, __: DataFrame) -> DataFrame:
    return timed(streams("orders")).dropDuplicatesWithinWatermark(["id"]).select("id")


def _ids(sent: Sent) -> Values:
    return [(number,) for number in sorted(set(sent.orders.id))]


def _join(kind: str) -> Callable[[SparkSession, Streams, DataFrame], DataFrame]:
    def build(_: SparkSession, streams: Streams, __: DataFrame) -> DataFrame:
        orders, payments = (
            timed(streams("orders")).alias("o"),
            timed(streams("payments")).alias("p"),
        )
        on = sql.expr(
            "o.id = p.id AND p.__eventTime >= o.__eventTime"
            f" AND p.__eventTime <= o.__eventTime + INTERVAL {WITHIN} SECONDS"
        )
        return orders.join(payments, on, kind).select("o.id", "o.amount", "p.amount")

    return build


def _paid(sent: Sent) -> Values:
    return values(sent.pairs()[["id", "amount", "amount_paid"]])


def _paid_or_not(sent: Sent) -> Values:
    late = sent.orders[~sent.orders.index.isin(sent.pairs().row)]
    late = late[late.seconds + WITHIN < sent.final]
    return _paid(sent) + [(row.id, row.amount, None) for row in late.itertuples()]


def _with_a_table(_: SparkSession, streams: Streams, payments: DataFrame) -> DataFrame:
    paid = payments.where(f"id < {KNOWN}").select("id", sql.col("amount").alias("paid"))
    return streams("orders").join(paid, "id").select("id", "amount", "paid")


def _in_the_table(sent: Sent) -> Values:
    payments = sent.payments[sent.payments.id < KNOWN]
    found = sent.orders.merge(payments, on="id", suffixes=("", "_paid"))
    return values(found[["id", "amount", "amount_paid"]])


_STATE = "customer STRING, orders LONG, amount DOUBLE"


def _in_pandas(_: SparkSession, streams: Streams, __: DataFrame) -> DataFrame:
    def add(
        key: tuple[str], frames: Iterator[pd.DataFrame], state: GroupState
    ) -> Iterator[pd.DataFrame]:
        known: Any = state.get if state.exists else None
        count, amount = known or (0, 0.0)
        for frame in frames:
            count, amount = count + len(frame), amount + float(frame.amount.sum())
        state.update((count, amount))
        yield pd.DataFrame({"customer": [key[0]], "orders": [count], "amount": [amount]})

    grouped = streams("orders").select("customer", "amount").groupBy("customer")
    return grouped.applyInPandasWithState(
        add, _STATE, "orders LONG, amount DOUBLE", "update", GroupStateTimeout.NoTimeout
    )


class _Totals(StatefulProcessor):
    """Counts and sums a customer's orders."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._total = handle.getValueState("total", "orders LONG, amount DOUBLE")

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        known: Any = self._total.get() if self._total.exists() else None
        count, amount = known or (0, 0.0)
        for frame in rows:
            count, amount = count + len(frame), amount + float(frame.amount.sum())
        self._total.update((count, amount))
        yield pd.DataFrame({"customer": [key[0]], "orders": [count], "amount": [amount]})

    def close(self) -> None:
        pass


def _with_processor(_: SparkSession, streams: Streams, __: DataFrame) -> DataFrame:
    grouped = streams("orders").select("customer", "amount").groupBy("customer")
    return grouped.transformWithStateInPandas(_Totals(), _STATE, "update", "none")


_ROCKSDB = (
    (
        "spark.sql.streaming.stateStore.providerClass",
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    ),
)

QUERIES = [
    StatefulQuery("windows-update", "update", _windows, _all_windows, key=2),
    StatefulQuery("windows-append", "append", _windows, _closed_windows),
    StatefulQuery(
        "totals-of-two",
        "update",
        _totals,
        lambda s: _sums(pd.concat([s.orders, s.payments])),
        key=1,
    ),
    StatefulQuery("unique", "append", _unique, _ids),
    StatefulQuery("unique-in-time", "append", _unique_in_time, _ids),
    StatefulQuery("inner-join", "append", _join("inner"), _paid),
    StatefulQuery("left-join", "append", _join("left"), _paid_or_not),
    StatefulQuery("join-with-a-table", "append", _with_a_table, _in_the_table),
    StatefulQuery("in-pandas", "update", _in_pandas, lambda s: _sums(s.orders), key=1),
    StatefulQuery(
        "with-processor",
        "update",
        _with_processor,
        lambda s: _sums(s.orders),
        key=1,
        confs=_ROCKSDB,
    ),
]
