package io.pulsarlake.spark.rules;

import io.pulsarlake.spark.reads.ColdFiles;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.datasources.DataSourceStrategy$;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * What a query needs of cold tables: nothing where the log's statistics are the answer (the number
 * of rows, the extremes of integers and dates), otherwise the files that its filters leave.
 *
 * <p>Before Spark looks at sizes, so that it chooses joins by the files that are left. Without this
 * rule queries give the same rows: a scan then asks when it runs.
 */
final class ColdScans extends Rule<LogicalPlan> {
  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    return plan.transformUpWithSubqueries(Nodes.replaced(LogAggregates::answered))
        .transformDownWithSubqueries(Nodes.replaced(ColdScans::scanned));
  }

  private static LogicalPlan scanned(LogicalPlan node) {
    if (node instanceof Filter filter && filter.child() instanceof LogicalRelation relation) {
      ColdFiles files = files(relation);
      if (files != null && !files.asked()) {
        List<Expression> conjuncts = new ArrayList<>();
        split(filter.condition(), conjuncts);
        // A column may be spelled in the query in another case than in the table.
        List<Attribute> columns = List.copyOf(CollectionConverters.asJava(relation.output()));
        Seq<Expression> spelled =
            DataSourceStrategy$.MODULE$.normalizeExprs(seq(conjuncts), seq(columns));
        return filter.withNewChildren(
            seq(List.<LogicalPlan>of(reading(relation, files.leftBy(spelled)))));
      }
    }
    if (node instanceof LogicalRelation relation) {
      ColdFiles files = files(relation);
      if (files != null && !files.asked()) {
        return reading(relation, files.leftBy(seq(List.<Expression>of())));
      }
    }
    return null;
  }

  private static LogicalRelation reading(LogicalRelation relation, ColdFiles files) {
    HadoopFsRelation old = (HadoopFsRelation) relation.relation();
    HadoopFsRelation now =
        old.copy(
            files,
            old.partitionSchema(),
            old.dataSchema(),
            old.bucketSpec(),
            old.fileFormat(),
            old.options(),
            old.sparkSession());
    return relation.copy(
        now, relation.output(), relation.catalogTable(), relation.isStreaming(), relation.stream());
  }

  private static void split(Expression condition, List<Expression> into) {
    if (condition instanceof And and) {
      split(and.left(), into);
      split(and.right(), into);
    } else {
      into.add(condition);
    }
  }

  /** Those of a cold table's relation; null for any other. */
  static ColdFiles files(LogicalRelation relation) {
    return relation.relation() instanceof HadoopFsRelation found
            && found.location() instanceof ColdFiles files
        ? files
        : null;
  }

  static <T> Seq<T> seq(List<T> list) {
    return CollectionConverters.asScala(list).toSeq();
  }
}
