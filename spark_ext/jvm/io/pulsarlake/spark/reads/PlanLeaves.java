package io.pulsarlake.spark.reads;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Strategy$;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/** What a query's plan reads, leaf by leaf, as JSON: for {@code spark_ext.planner.query_plans}. */
public final class PlanLeaves {
  private PlanLeaves() {}

  /** {table, columns, predicates} of a scan of hot rows; null for any other scan. */
  public static String hot(Scan scan) {
    return scan instanceof HotTable.HotScan hot ? hot.request() : null;
  }

  /** Filters as the catalog's scans are given them; those without such a form are left out. */
  public static String filters(Seq<Expression> filters) {
    List<Predicate> found = new ArrayList<>();
    for (Iterator<Expression> all = filters.iterator(); all.hasNext(); ) {
      Option<Predicate> one = DataSourceV2Strategy$.MODULE$.translateFilterV2(all.next());
      if (one.isDefined()) {
        found.add(one.get());
      }
    }
    return Filters.json(found.toArray(Predicate[]::new)).toString();
  }
}
