package io.pulsarlake.spark.rules;

import io.pulsarlake.spark.planner.Messages.Aggregate;
import io.pulsarlake.spark.planner.Messages.ColdRead;
import io.pulsarlake.spark.reads.ColdFiles;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.expressions.aggregate.Complete$;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.expressions.aggregate.Max;
import org.apache.spark.sql.catalyst.expressions.aggregate.Min;
import org.apache.spark.sql.catalyst.planning.PhysicalOperation$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * A query of nothing but aggregates over all rows of a cold table. The planner says whether the
 * Delta log knows their values: then no file is read.
 *
 * @param results what the query makes of the aggregates
 */
record LogAggregates(
    ColdFiles files,
    List<AggregateExpression> aggregates,
    List<Aggregate> asked,
    List<NamedExpression> results) {

  /** Of a node that is such a query, of files that have not been asked for; null for any other. */
  static LogAggregates of(LogicalPlan node) {
    if (!(node instanceof org.apache.spark.sql.catalyst.plans.logical.Aggregate aggregate)
        || !aggregate.groupingExpressions().isEmpty()) {
      return null;
    }
    var found = PhysicalOperation$.MODULE$.unapply(aggregate.child());
    if (found.isEmpty()
        || !found.get()._2().isEmpty()
        || !(found.get()._3() instanceof LogicalRelation relation)
        || relation.isStreaming()) {
      return null;
    }
    ColdFiles files = TopicScans.files(relation);
    if (files == null || files.asked()) {
      return null;
    }
    Map<ExprId, String> columns = columns(relation, found.get()._1());
    List<NamedExpression> results =
        List.copyOf(CollectionConverters.asJava(aggregate.aggregateExpressions()));
    List<AggregateExpression> aggregates = new ArrayList<>();
    results.forEach(one -> collect((Expression) one, aggregates));
    List<Aggregate> asked = new ArrayList<>();
    for (AggregateExpression one : aggregates) {
      Aggregate message = message(one, columns);
      if (message == null) {
        return null;
      }
      asked.add(message);
    }
    return asked.isEmpty() ? null : new LogAggregates(files, aggregates, asked, results);
  }

  /** What is asked of the planner. */
  ColdRead read() {
    return files.read(Nodes.seq(), asked);
  }

  /** A row of literals in place of the aggregate. */
  LogicalPlan answered(List<Long> values) {
    Map<ExprId, Literal> literals = new HashMap<>();
    for (int i = 0; i < values.size(); i++) {
      AggregateExpression one = aggregates.get(i);
      Object value = values.get(i) == null ? null : internal(values.get(i), one.dataType());
      literals.put(one.resultId(), new Literal(value, one.dataType()));
    }
    List<NamedExpression> row = new ArrayList<>();
    for (NamedExpression one : results) {
      Expression answered =
          ((Expression) one)
              .transformDown(
                  Nodes.replaced(
                      node ->
                          node instanceof AggregateExpression known
                              ? literals.get(known.resultId())
                              : null));
      row.add((NamedExpression) answered);
    }
    return new Project(Nodes.seq(row), new OneRowRelation());
  }

  /** The names of the relation's columns, by their ids below the aggregate. */
  private static Map<ExprId, String> columns(LogicalRelation relation, Seq<NamedExpression> renamed) {
    Map<ExprId, String> columns = new HashMap<>();
    relation.output().foreach(one -> columns.put(one.exprId(), one.name()));
    for (NamedExpression one : CollectionConverters.asJava(renamed)) {
      if (one instanceof Alias alias && alias.child() instanceof AttributeReference column) {
        columns.put(alias.exprId(), columns.get(column.exprId()));
      }
    }
    return columns;
  }

  private static void collect(Expression expression, List<AggregateExpression> into) {
    if (expression instanceof AggregateExpression aggregate) {
      into.add(aggregate);
    } else {
      CollectionConverters.asJava(expression.children()).forEach(one -> collect(one, into));
    }
  }

  /** A function of a column, or a count of literals that are not NULL, over all rows; else null. */
  private static Aggregate message(AggregateExpression one, Map<ExprId, String> columns) {
    List<Expression> arguments =
        CollectionConverters.asJava(one.aggregateFunction().children());
    String function = function(one.aggregateFunction());
    if (function == null
        || one.mode() != Complete$.MODULE$
        || one.isDistinct()
        || one.filter().isDefined()) {
      return null;
    }
    if (one.aggregateFunction() instanceof Count
        && arguments.stream().allMatch(of -> of instanceof Literal value && value.value() != null)) {
      return new Aggregate(function, null);
    }
    String column =
        arguments.size() == 1 && arguments.get(0) instanceof AttributeReference attribute
            ? columns.get(attribute.exprId())
            : null;
    return column == null ? null : new Aggregate(function, column);
  }

  /** Spark's own one of that name; a user may have named another one so. */
  private static String function(AggregateFunction of) {
    if (of instanceof Count) {
      return "count";
    }
    return of instanceof Min ? "min" : of instanceof Max ? "max" : null;
  }

  /** As Spark has a number of the type within. */
  private static Object internal(long value, DataType type) {
    if (type instanceof LongType) {
      return value;
    }
    if (type instanceof ShortType) {
      return (short) value;
    }
    return type instanceof ByteType ? (Object) (byte) value : (Object) (int) value;
  }
}
