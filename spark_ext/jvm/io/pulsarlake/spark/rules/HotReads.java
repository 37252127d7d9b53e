package io.pulsarlake.spark.rules;

import io.pulsarlake.spark.planner.Messages.HotRead;
import io.pulsarlake.spark.reads.HotRows;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.AttributeSet$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.planning.PhysicalOperation$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.DataSourceStrategy$;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.sources.Filter;
import scala.Option;
import scala.Tuple3;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * What Spark will ask of the hot rows of a micro-batch: these columns and filters.
 *
 * <p>As {@code DataSourceStrategy} finds them for a scan of the first data source interface, which
 * is planned after the optimizer. Where the two differ, the scan asks the planner once more.
 */
record HotReads(HotRows rows, HotRead read) {
  /** Of a projection and a filter over hot rows, or one of them, or the rows alone; else null. */
  static HotReads of(LogicalPlan node) {
    Option<Tuple3<Seq<NamedExpression>, Seq<Expression>, LogicalPlan>> found =
        PhysicalOperation$.MODULE$.unapply(node);
    if (found.isEmpty()
        || !(found.get()._3() instanceof LogicalRelation relation)
        || !(relation.relation() instanceof HotRows rows)
        || rows.isFailed()) {
      return null;
    }
    Seq<NamedExpression> projects = found.get()._1();
    Seq<Expression> filters = found.get()._2();
    AttributeSet projected = references(CollectionConverters.asJava(projects));
    AttributeSet filtered = references(CollectionConverters.asJava(filters));
    boolean plain =
        projects.forall(one -> one instanceof Attribute)
            && projected.size() == projects.size()
            && filtered.subsetOf(projected);
    List<String> columns = new ArrayList<>();
    if (plain) {
      CollectionConverters.asJava(projects).forEach(one -> columns.add(name(relation, one)));
    } else {
      CollectionConverters.asJava(projected.$plus$plus(filtered))
          .forEach(one -> columns.add(name(relation, one)));
    }
    Seq<Filter> pushed = DataSourceStrategy$.MODULE$.selectFilters(rows, filters)._2();
    return new HotReads(
        rows,
        rows.read(
            columns.toArray(String[]::new),
            CollectionConverters.asJava(pushed).toArray(Filter[]::new)));
  }

  private static AttributeSet references(List<? extends Object> expressions) {
    List<AttributeSet> sets = new ArrayList<>();
    expressions.forEach(one -> sets.add(((Expression) one).references()));
    return AttributeSet$.MODULE$.fromAttributeSets(CollectionConverters.asScala(sets));
  }

  /** In the case in which the relation has it. */
  private static String name(LogicalRelation relation, NamedExpression column) {
    Object found = relation.attributeMap().apply((Attribute) column);
    return ((NamedExpression) found).name();
  }
}
