package io.pulsarlake.spark.rules;

import io.pulsarlake.spark.catalog.TopicName;
import io.pulsarlake.spark.planner.Errors;
import io.pulsarlake.spark.reads.TopicStreams;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedDataSource;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap;
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap$;
import org.apache.spark.sql.classic.SparkSession;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * A topic that is named in a stream, as a catalog's table or by {@code format("pulsar")}, is a
 * source of {@link TopicStreams}.
 *
 * <p>Spark does not stream a view, which a topic is for it, and what a Python data source streams
 * is told neither columns nor filters. So both are replaced before they are resolved.
 */
public final class StreamNames extends Rule<LogicalPlan> {
  private static final String FORMAT = "pulsar";
  private static final String TOPIC = "topic";

  private final SparkSession session;

  StreamNames(SparkSession session) {
    this.session = session;
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    return plan.resolveOperatorsUp(Nodes.replaced(this::source));
  }

  /** What stands for the node; null: it is no stream of a topic. */
  private LogicalPlan source(LogicalPlan node) {
    if (node instanceof UnresolvedRelation relation && relation.isStreaming()) {
      return ofTable(relation);
    }
    if (node instanceof UnresolvedDataSource source
        && source.isStreaming()
        && source.format().equalsIgnoreCase(FORMAT)) {
      if (source.userSpecifiedSchema().isDefined()) {
        throw Errors.refused(
            "a topic has its own columns: a stream of it takes no schema (hint: leave it out)");
      }
      Map<String, String> options =
          new HashMap<>(CollectionConverters.asJava(source.options().originalMap()));
      options.putIfAbsent(TopicStreams.CATALOG, FORMAT);
      return source(options);
    }
    return null;
  }

  private LogicalPlan ofTable(UnresolvedRelation relation) {
    TopicName topic = TopicName.of(session, relation);
    if (topic == null) {
      return null;
    }
    Map<String, String> options = new HashMap<>(relation.options().asCaseSensitiveMap());
    for (String name : options.keySet()) {
      if (name.toLowerCase(java.util.Locale.ROOT).startsWith(TOPIC)) {
        throw Errors.refused(
            "a table is the topic: a stream of it takes no option " + name + " (hint: leave it out)");
      }
    }
    options.put(TOPIC, String.join("/", topic.namespace()) + "/" + topic.name());
    options.put(TopicStreams.CATALOG, topic.catalog().name());
    return source(options);
  }

  private LogicalPlan source(Map<String, String> options) {
    CaseInsensitiveMap<String> given =
        CaseInsensitiveMap$.MODULE$.apply(
            scala.collection.immutable.Map$.MODULE$.from(CollectionConverters.asScala(options)));
    Seq<String> noPaths = CollectionConverters.asScala(List.<String>of()).toSeq();
    return new UnresolvedDataSource(
        TopicStreams.class.getName(),
        Option.apply(TopicStreams.columns(session, options)),
        given,
        true,
        noPaths);
  }
}
