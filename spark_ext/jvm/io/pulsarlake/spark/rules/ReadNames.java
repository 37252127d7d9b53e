package io.pulsarlake.spark.rules;

import io.pulsarlake.spark.Compat;
import io.pulsarlake.spark.catalog.PulsarCatalog;
import io.pulsarlake.spark.catalog.TopicName;
import io.pulsarlake.spark.planner.Errors;
import io.pulsarlake.spark.reads.TopicStreams;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute$;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.UpCast;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedDataSource;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap;
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.CreateTempViewUsing;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * A topic that is named in a stream, as a catalog's table or by {@code format("pulsar")}, is a
 * source of {@link TopicStreams}; one that {@code format("pulsar")} names in a batch is a relation
 * of the catalog.
 *
 * <p>Spark does not stream a view, which a topic is for it, and what a Python data source reads is
 * told neither columns nor filters. So all are replaced before they are resolved.
 */
public final class ReadNames extends Rule<LogicalPlan> {
  private static final String FORMAT = "pulsar";
  private static final String TOPIC = "topic";

  private final SparkSession session;

  ReadNames(SparkSession session) {
    this.session = session;
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    return plan.resolveOperatorsUp(Nodes.replaced(this::source));
  }

  /** What stands for the node; null: it reads no topic by such a name. */
  private LogicalPlan source(LogicalPlan node) {
    if (node instanceof UnresolvedRelation relation && relation.isStreaming()) {
      return ofTable(relation);
    }
    if (node instanceof CreateTempViewUsing view && view.provider().equalsIgnoreCase(FORMAT)) {
      return Compat.temporaryView(
          view,
          batch(given(CollectionConverters.asJava(view.options())), view.userSpecifiedSchema()));
    }
    if (!(node instanceof UnresolvedDataSource source)
        || !source.format().equalsIgnoreCase(FORMAT)) {
      return null;
    }
    Map<String, String> options =
        given(CollectionConverters.asJava(source.options().originalMap()));
    if (!source.isStreaming()) {
      CollectionConverters.asJava(source.paths()).forEach(path -> options.put("path", path));
      return batch(options, source.userSpecifiedSchema());
    }
    if (source.userSpecifiedSchema().isDefined()) {
      throw Errors.refused(
          "a topic has its own columns: a stream of it takes no schema (hint: leave it out)");
    }
    options.putIfAbsent(TopicStreams.CATALOG, FORMAT);
    return stream(options);
  }

  /** Those that have a value: Python's None arrives as null. */
  private static Map<String, String> given(Map<String, String> options) {
    Map<String, String> found = new HashMap<>(options);
    found.values().removeIf(Objects::isNull);
    return found;
  }

  /** The relation of the catalog, or those of its columns that a schema names. */
  private LogicalPlan batch(Map<String, String> options, Option<StructType> schema) {
    String catalog = TopicStreams.catalog(session, options).name();
    LogicalPlan rows =
        new UnresolvedRelation(
            Nodes.seq(PulsarCatalog.named(catalog, TopicStreams.streamed(options))),
            CaseInsensitiveStringMap.empty(),
            false);
    if (schema.isEmpty()) {
      return rows;
    }
    List<NamedExpression> columns = new ArrayList<>();
    for (StructField field : schema.get().fields()) {
      columns.add(
          new Alias(
              new UpCast(
                  UnresolvedAttribute$.MODULE$.quoted(field.name()),
                  field.dataType(),
                  Nodes.seq()),
              field.name(),
              NamedExpression$.MODULE$.newExprId(),
              Nodes.seq(),
              Option.empty(),
              Nodes.seq()));
    }
    return new Project(Nodes.seq(columns), rows);
  }

  private LogicalPlan ofTable(UnresolvedRelation relation) {
    TopicName topic = TopicName.of(session, relation);
    if (topic == null) {
      return null;
    }
    Map<String, String> options = given(relation.options().asCaseSensitiveMap());
    for (String name : options.keySet()) {
      if (name.toLowerCase(java.util.Locale.ROOT).startsWith(TOPIC)) {
        throw Errors.refused(
            "a table is the topic: a stream of it takes no option " + name + " (hint: leave it out)");
      }
    }
    options.put(TOPIC, String.join("/", topic.namespace()) + "/" + topic.name());
    options.put(TopicStreams.CATALOG, topic.catalog().name());
    return stream(options);
  }

  private LogicalPlan stream(Map<String, String> options) {
    CaseInsensitiveMap<String> given =
        CaseInsensitiveMap$.MODULE$.apply(
            scala.collection.immutable.Map$.MODULE$.from(CollectionConverters.asScala(options)));
    return new UnresolvedDataSource(
        TopicStreams.class.getName(),
        Option.apply(TopicStreams.columns(session, options)),
        given,
        true,
        Nodes.seq());
  }
}
