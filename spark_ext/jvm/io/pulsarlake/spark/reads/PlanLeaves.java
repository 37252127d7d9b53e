package io.pulsarlake.spark.reads;

import com.fasterxml.jackson.core.JsonProcessingException;
import io.pulsarlake.spark.planner.Planner;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.connector.read.Scan;
import scala.collection.immutable.Seq;

/** What a query's plan reads, leaf by leaf, as JSON: for {@code spark_ext.planner.query_plans}. */
public final class PlanLeaves {
  private PlanLeaves() {}

  /** What is asked of the planner for a scan of hot rows; null for any other scan. */
  public static String hot(Scan scan) throws JsonProcessingException {
    return scan instanceof HotTable.HotScan hot ? Planner.JSON.writeValueAsString(hot.read()) : null;
  }

  /** The filters of a scan of cold rows, as the planner is asked with them. */
  public static String filters(Seq<Expression> filters) throws JsonProcessingException {
    return Planner.JSON.writeValueAsString(Filters.of(filters));
  }
}
