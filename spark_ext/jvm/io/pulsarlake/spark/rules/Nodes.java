package io.pulsarlake.spark.rules;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.runtime.AbstractPartialFunction;

/** What rules do with the nodes of a plan. */
final class Nodes {
  private Nodes() {}

  /** A function of each node; null where it leaves the node as it is. */
  interface Replacement {
    LogicalPlan of(LogicalPlan node);
  }

  /** As Spark takes it. */
  static AbstractPartialFunction<LogicalPlan, LogicalPlan> replaced(Replacement by) {
    return new AbstractPartialFunction<>() {
      @Override
      public boolean isDefinedAt(LogicalPlan node) {
        return true; // To find out would be to make what takes its place.
      }

      @Override
      public LogicalPlan apply(LogicalPlan node) {
        LogicalPlan found = by.of(node);
        return found == null ? node : found;
      }
    };
  }
}
