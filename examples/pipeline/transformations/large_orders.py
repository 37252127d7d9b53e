"""Large orders go to a topic of their own, each exactly once and keyed by its customer."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

dp.create_sink("large_orders", "pulsar", {"topic": "public/default/large-orders"})


@dp.append_flow(target="large_orders")
def large() -> DataFrame:
    """Columns are the topic's fields, and what a message carries beside them."""
    return (
        SparkSession.active()
        .readStream.table("bronze")
        .where("amount > 100")
        .selectExpr("id", "customer", "amount", "customer AS __key")
    )
