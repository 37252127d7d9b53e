package io.pulsarlake.spark.reads;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.pulsarlake.spark.planner.Planner;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.GeneralScalarExpression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;

/**
 * Spark's predicates as JSON, node by node: Python chooses which of them it can use.
 *
 * <pre>
 * {"op": ">=", "args": [{"column": ["__publishTime"]}, {"value": 1700000000000000, "type": "timestamp"}]}
 * </pre>
 *
 * A literal is Spark's internal value: times as microseconds, dates as days; null where JSON has
 * no form for it. An expression that is none of these has an "op" of null.
 */
final class Filters {
  private Filters() {}

  static ArrayNode json(Predicate[] predicates) {
    ArrayNode all = Planner.JSON.createArrayNode();
    for (Predicate predicate : predicates) {
      all.add(node(predicate));
    }
    return all;
  }

  private static ObjectNode node(Expression expression) {
    ObjectNode node = Planner.JSON.createObjectNode();
    if (expression instanceof NamedReference reference) {
      ArrayNode names = node.putArray("column");
      for (String name : reference.fieldNames()) {
        names.add(name);
      }
    } else if (expression instanceof Literal<?> literal) {
      node.put("type", literal.dataType().typeName());
      Object value = literal.value();
      if (value instanceof Double || value instanceof Float) {
        node.put("value", ((Number) value).doubleValue());
      } else if (value instanceof Number number && value.getClass().getName().startsWith("java.lang")) {
        node.put("value", number.longValue());
      } else if (value instanceof Boolean flag) {
        node.put("value", flag);
      } else if (value == null || value instanceof byte[]) {
        node.putNull("value");
      } else {
        node.put("value", value.toString());
      }
    } else {
      node.put("op", expression instanceof GeneralScalarExpression call ? call.name() : null);
      ArrayNode arguments = node.putArray("args");
      for (Expression child : expression.children()) {
        arguments.add(node(child));
      }
    }
    return node;
  }
}
