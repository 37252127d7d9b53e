package io.pulsarlake.spark.rules;

import io.pulsarlake.spark.Compat;
import io.pulsarlake.spark.writes.TopicSink;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.AppendData;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.streaming.sources.WriteToMicroBatchDataSource;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The columns of a write that the planner wants: what it ignores is left out, and what it omits
 * where it is NULL in each row, as Spark fills it in where the statement has none.
 *
 * <p>Each costs its way to Python: of maps and arrays that are NULL more than the row itself, as
 * Spark measures a batch anew with each row.
 */
final class WrittenColumns extends Rule<LogicalPlan> {
  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    return plan.transformDown(Nodes.replaced(WrittenColumns::narrowed));
  }

  private static LogicalPlan narrowed(LogicalPlan node) {
    if (node instanceof AppendData append && append.write().isEmpty()) {
      LogicalPlan query = narrowed(append.table(), append.query());
      if (query == null) {
        return null;
      }
      DataSourceV2Relation relation = (DataSourceV2Relation) append.table();
      TopicSink some = ((TopicSink) relation.table()).narrow();
      return append
          .withNewTable(Compat.relation(relation, some, relation.output()))
          .withNewQuery(query);
    }
    if (node instanceof WriteToMicroBatchDataSource write) {
      LogicalPlan query = narrowed(write.table(), write.query());
      return query == null ? null : Compat.with(write, query);
    }
    return null;
  }

  /** The query without what is not written; null: it has nothing of that kind, or nothing else. */
  private static LogicalPlan narrowed(Object table, LogicalPlan query) {
    if (!(table instanceof DataSourceV2Relation relation)
        || !(relation.table() instanceof TopicSink sink)) {
      return null;
    }
    List<NamedExpression> kept = new ArrayList<>();
    List<Attribute> columns = CollectionConverters.asJava(query.output());
    for (int i = 0; i < columns.size(); i++) {
      String name = columns.get(i).name();
      if (!sink.ignored().contains(name) && !(sink.omits(name) && isNull(query, i))) {
        kept.add(columns.get(i));
      }
    }
    return kept.isEmpty() || kept.size() == query.output().size()
        ? null
        : new Project(Nodes.seq(kept), query);
  }

  /** Whether a column of a query is NULL in each row, by what the optimizer has made of it. */
  private static boolean isNull(LogicalPlan query, int column) {
    if (query instanceof Project project) {
      return project.projectList().apply(column) instanceof Alias alias
          && alias.child() instanceof Literal literal
          && literal.value() == null;
    }
    if (query instanceof LocalRelation values) {
      return values.data().forall(row -> row.isNullAt(column));
    }
    if (query instanceof Union union) {
      return union.children().forall(one -> isNull(one, column));
    }
    return false;
  }
}
