package io.pulsarlake.spark.rules;

import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.classic.SparkSession;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/** What {@code spark.sql.extensions} names: the rules that a session has for topics. */
public final class PulsarLakeExtensions
    extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    // Before names are resolved.
    extensions.injectHintResolutionRule(session -> new ReadNames((SparkSession) session));
    extensions.injectHintResolutionRule(session -> new WriteNames((SparkSession) session));
    // Before a write is built of its query.
    extensions.injectOptimizerRule(session -> new WrittenColumns());
    // Once a query, when its filters have been pushed down and before the sizes of relations count.
    extensions.injectPreCBORule(session -> new TopicScans());
    return BoxedUnit.UNIT;
  }
}
