package io.pulsarlake.spark.reads;

import io.pulsarlake.spark.planner.Messages.Expression;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.BinaryOperator;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.connector.expressions.GeneralScalarExpression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Strategy$;
import org.apache.spark.sql.functions;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Spark's filters as messages, node by node: the planner chooses which of them it can use. */
public final class Filters {
  private Filters() {}

  static List<Expression> of(Predicate[] predicates) {
    return Arrays.stream(predicates).map(Filters::node).toList();
  }

  /** Those without such a form are left out. */
  public static List<Expression> of(
      Seq<org.apache.spark.sql.catalyst.expressions.Expression> conjuncts) {
    return CollectionConverters.asJava(conjuncts).stream()
        .map(DataSourceV2Strategy$.MODULE$::translateFilterV2)
        .filter(Option::isDefined)
        .map(one -> node(one.get()))
        .toList();
  }

  /** A filter of the planner's as a condition of Spark. AND and OR have any number of arguments. */
  static Column condition(Expression of) {
    if (of.op() == null) {
      return of.column().isEmpty()
          ? functions.lit(of.value())
          : functions.col("`" + of.column().get(0) + "`");
    }
    List<Column> args = of.args().stream().map(Filters::condition).toList();
    return switch (of.op()) {
      case "AND" -> args.isEmpty() ? functions.lit(true) : joined(args, Column::and);
      case "OR" -> args.isEmpty() ? functions.lit(false) : joined(args, Column::or);
      case "IS_NULL" -> args.get(0).isNull();
      case "IS_NOT_NULL" -> args.get(0).isNotNull();
      case "<>" -> args.get(0).notEqual(args.get(1));
      case "=" -> args.get(0).equalTo(args.get(1));
      case "<" -> args.get(0).lt(args.get(1));
      case "<=" -> args.get(0).leq(args.get(1));
      case ">" -> args.get(0).gt(args.get(1));
      case ">=" -> args.get(0).geq(args.get(1));
      default -> throw new IllegalArgumentException("no filter of the planner: " + of.op());
    };
  }

  /** In pairs of pairs: of a thousand partitions one by one, Spark's stack would overflow. */
  private static Column joined(List<Column> some, BinaryOperator<Column> by) {
    int half = some.size() / 2;
    return half == 0
        ? some.get(0)
        : by.apply(joined(some.subList(0, half), by), joined(some.subList(half, some.size()), by));
  }

  private static Expression node(org.apache.spark.sql.connector.expressions.Expression of) {
    if (of instanceof NamedReference reference) {
      return new Expression(null, List.of(), List.of(reference.fieldNames()), null, null);
    }
    if (of instanceof Literal<?> literal) {
      String type = literal.dataType().typeName();
      return new Expression(null, List.of(), List.of(), type, value(literal.value()));
    }
    String op = of instanceof GeneralScalarExpression call ? call.name() : null;
    boolean joins = "AND".equals(op) || "OR".equals(op);
    List<Expression> args = new ArrayList<>();
    for (org.apache.spark.sql.connector.expressions.Expression child : of.children()) {
      Expression one = node(child);
      // Flat: a chain of hundreds is deeper than JSON and Python read.
      args.addAll(joins && op.equals(one.op()) ? one.args() : List.of(one));
    }
    return new Expression(op, args, List.of(), null, null);
  }

  private static Object value(Object value) {
    if (value instanceof Double || value instanceof Float) {
      return ((Number) value).doubleValue();
    }
    if (value instanceof Number number && value.getClass().getName().startsWith("java.lang")) {
      return number.longValue();
    }
    if (value == null || value instanceof Boolean) {
      return value;
    }
    return value instanceof byte[] ? null : value.toString();
  }
}
