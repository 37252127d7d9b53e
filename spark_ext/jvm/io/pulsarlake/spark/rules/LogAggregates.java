package io.pulsarlake.spark.rules;

import io.pulsarlake.spark.planner.Messages.Aggregate;
import io.pulsarlake.spark.reads.ColdFiles;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.expressions.aggregate.Complete$;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.expressions.aggregate.Max;
import org.apache.spark.sql.catalyst.expressions.aggregate.Min;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

/**
 * Aggregates over all rows of a cold table that the Delta log's statistics know: the number of rows,
 * and the extremes of integers and dates, which the log has exactly. No file is read for them.
 */
final class LogAggregates {
  private LogAggregates() {}

  /** A row of literals in place of the aggregate; null where the log does not know all of it. */
  static LogicalPlan answered(LogicalPlan node) {
    if (!(node instanceof org.apache.spark.sql.catalyst.plans.logical.Aggregate aggregate) || !aggregate.groupingExpressions().isEmpty()) {
      return null;
    }
    Map<ExprId, String> columns = new HashMap<>();
    LogicalRelation relation = unfiltered(aggregate.child(), columns);
    ColdFiles files = relation == null ? null : ColdScans.files(relation);
    List<AggregateExpression> wanted = new ArrayList<>();
    if (files == null || !known(aggregate, columns, wanted)) {
      return null;
    }
    List<Aggregate> names = new ArrayList<>();
    wanted.forEach(one -> names.add(message(one, columns)));
    List<Long> found = files.ask(files.read(ColdScans.seq(List.of()), names)).values();
    if (found == null) {
      return null;
    }
    Map<ExprId, Literal> values = new HashMap<>();
    for (int i = 0; i < wanted.size(); i++) {
      values.put(wanted.get(i).resultId(), literal(found.get(i), wanted.get(i).dataType()));
    }
    List<NamedExpression> results = new ArrayList<>();
    for (NamedExpression one : CollectionConverters.asJava(aggregate.aggregateExpressions())) {
      results.add((NamedExpression) ((Expression) one).transformDown(literals(values)));
    }
    return new Project(ColdScans.seq(results), new OneRowRelation());
  }

  /** The relation below projections that only choose and rename; null: there is more to it. */
  private static LogicalRelation unfiltered(LogicalPlan plan, Map<ExprId, String> columns) {
    if (plan instanceof LogicalRelation relation && !relation.isStreaming()) {
      for (AttributeReference one : CollectionConverters.asJava(relation.output())) {
        columns.put(one.exprId(), one.name());
      }
      return relation;
    }
    if (!(plan instanceof Project project)) {
      return null;
    }
    LogicalRelation relation = unfiltered(project.child(), columns);
    for (NamedExpression one : CollectionConverters.asJava(project.projectList())) {
      if (one instanceof Alias alias
          && alias.child() instanceof AttributeReference column
          && columns.containsKey(column.exprId())) {
        columns.put(alias.exprId(), columns.get(column.exprId()));
      }
    }
    return relation;
  }

  /** Whether the log may know every aggregate, which are added to {@code wanted}. */
  private static boolean known(
      org.apache.spark.sql.catalyst.plans.logical.Aggregate aggregate,
      Map<ExprId, String> columns,
      List<AggregateExpression> wanted) {
    for (NamedExpression one : CollectionConverters.asJava(aggregate.aggregateExpressions())) {
      collect((Expression) one, wanted);
    }
    return !wanted.isEmpty()
        && wanted.stream()
            .allMatch(
                one ->
                    one.mode() == Complete$.MODULE$
                        && !one.isDistinct()
                        && one.filter().isEmpty()
                        && (isRowCount(one.aggregateFunction())
                            || columnOf(one, columns).isPresent()));
  }

  private static void collect(Expression expression, List<AggregateExpression> into) {
    if (expression instanceof AggregateExpression aggregate) {
      into.add(aggregate);
    } else {
      CollectionConverters.asJava(expression.children()).forEach(one -> collect(one, into));
    }
  }

  private static boolean isRowCount(AggregateFunction function) {
    return function instanceof Count count
        && count.children().forall(one -> one instanceof Literal value && value.value() != null);
  }

  /** The column whose extreme it is, if its type is one that the log has exactly. */
  private static Optional<String> columnOf(
      AggregateExpression one, Map<ExprId, String> columns) {
    AggregateFunction function = one.aggregateFunction();
    Expression argument =
        function instanceof Min min ? min.child() : function instanceof Max max ? max.child() : null;
    return argument instanceof AttributeReference column && isExact(column.dataType())
        ? Optional.ofNullable(columns.get(column.exprId()))
        : Optional.empty();
  }

  private static boolean isExact(DataType type) {
    return type instanceof ByteType
        || type instanceof ShortType
        || type instanceof IntegerType
        || type instanceof LongType
        || type instanceof DateType;
  }

  private static Aggregate message(AggregateExpression one, Map<ExprId, String> columns) {
    String function = one.aggregateFunction().prettyName();
    return new Aggregate(function, columnOf(one, columns).orElse(null));
  }

  private static Literal literal(Long value, DataType type) {
    return value == null
        ? Literal$.MODULE$.create(null, type)
        : new Literal(internal(value, type), type);
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

  private static AbstractPartialFunction<Expression, Expression> literals(
      Map<ExprId, Literal> values) {
    return new AbstractPartialFunction<>() {
      @Override
      public boolean isDefinedAt(Expression expression) {
        return expression instanceof AggregateExpression one && values.containsKey(one.resultId());
      }

      @Override
      public Expression apply(Expression expression) {
        return values.get(((AggregateExpression) expression).resultId());
      }
    };
  }
}
