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
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.Complete$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

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
    Map<ExprId, String> columns = new HashMap<>();
    LogicalRelation relation = unfiltered(aggregate.child(), columns);
    ColdFiles files = relation == null ? null : TopicScans.files(relation);
    if (files == null || files.asked()) {
      return null;
    }
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
    return files.read(TopicScans.seq(List.of()), asked);
  }

  /** A row of literals in place of the aggregate. */
  LogicalPlan answered(List<Long> values) {
    Map<ExprId, Literal> literals = new HashMap<>();
    for (int i = 0; i < values.size(); i++) {
      AggregateExpression one = aggregates.get(i);
      literals.put(one.resultId(), literal(values.get(i), one.dataType()));
    }
    List<NamedExpression> row = new ArrayList<>();
    for (NamedExpression one : results) {
      row.add((NamedExpression) ((Expression) one).transformDown(replaced(literals)));
    }
    return new Project(TopicScans.seq(row), new OneRowRelation());
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

  private static void collect(Expression expression, List<AggregateExpression> into) {
    if (expression instanceof AggregateExpression aggregate) {
      into.add(aggregate);
    } else {
      CollectionConverters.asJava(expression.children()).forEach(one -> collect(one, into));
    }
  }

  /** A function of a column, or of literals that are not NULL, over all rows; null: none of these. */
  private static Aggregate message(AggregateExpression one, Map<ExprId, String> columns) {
    List<Expression> arguments =
        CollectionConverters.asJava(one.aggregateFunction().children());
    String function = one.aggregateFunction().prettyName();
    if (one.mode() != Complete$.MODULE$ || one.isDistinct() || one.filter().isDefined()) {
      return null;
    }
    if (arguments.stream().allMatch(of -> of instanceof Literal value && value.value() != null)) {
      return new Aggregate(function, null);
    }
    String column =
        arguments.size() == 1 && arguments.get(0) instanceof AttributeReference attribute
            ? columns.get(attribute.exprId())
            : null;
    return column == null ? null : new Aggregate(function, column);
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

  private static AbstractPartialFunction<Expression, Expression> replaced(
      Map<ExprId, Literal> literals) {
    return new AbstractPartialFunction<>() {
      @Override
      public boolean isDefinedAt(Expression expression) {
        return expression instanceof AggregateExpression one && literals.containsKey(one.resultId());
      }

      @Override
      public Expression apply(Expression expression) {
        return literals.get(((AggregateExpression) expression).resultId());
      }
    };
  }
}
