package io.pulsarlake.spark.rules;

import io.pulsarlake.spark.Compat;
import io.pulsarlake.spark.catalog.PulsarCatalog;
import io.pulsarlake.spark.catalog.TopicName;
import io.pulsarlake.spark.planner.Errors;
import io.pulsarlake.spark.writes.TopicSink;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.analysis.ResolvedIdentifier;
import org.apache.spark.sql.catalyst.analysis.UnresolvedIdentifier;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.plans.logical.AppendData;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.InsertIntoStatement;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.ReplaceTable;
import org.apache.spark.sql.catalyst.plans.logical.ReplaceTableAsSelect;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.streaming.WriteToStreamStatement;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.python.PythonTable;
import scala.jdk.javaapi.CollectionConverters;

/**
 * A topic that a statement writes to has a name of its own: {@code topic/sink}, or {@code
 * topic/payload} where its values are told by their positions alone.
 *
 * <p>Under the topic's own name Spark would take what the statement reads of it for the target. By
 * position, values are those of the payload's columns: nobody writes twenty NULLs behind them.
 */
final class WriteNames extends Rule<LogicalPlan> {
  private static final String FORMAT = "pulsar";

  private final SparkSession session;

  WriteNames(SparkSession session) {
    this.session = session;
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    return plan.resolveOperatorsUp(Nodes.replaced(this::renamed));
  }

  private LogicalPlan renamed(LogicalPlan node) {
    if (node instanceof InsertIntoStatement insert) {
      if (insert.overwrite()) {
        refuse(insert.table(), "INSERT OVERWRITE");
      }
      boolean byPosition = insert.userSpecifiedCols().isEmpty() && !insert.byName();
      String suffix = byPosition ? PulsarCatalog.PAYLOAD : PulsarCatalog.SINK;
      UnresolvedRelation sink = sink(insert.table(), suffix);
      return sink == null ? null : Compat.into(insert, sink);
    }
    if (node instanceof WriteToStreamStatement write
        && (isFormat(write.sink()) || write.sink() instanceof TopicSink)
        && !Compat.inMicroBatches(write)) {
      throw Errors.refused(
          "rows are written to topics in micro-batches (hint: trigger processingTime or"
              + " availableNow)");
    }
    if (node instanceof WriteToStreamStatement write && isFormat(write.sink())) {
      return Compat.into(write, ours().anySink());
    }
    if (node instanceof AppendData append
        && append.table() instanceof DataSourceV2Relation relation
        && isFormat(relation.table())) {
      return append.withNewTable(
          Compat.relation(relation, ours().anySink(), relation.output()));
    }
    if (node instanceof AppendData append
        && !append.isByName()
        && append.table() instanceof DataSourceV2Relation relation) {
      return ofPayload(append, relation);
    }
    if (node instanceof AppendData append && append.table() instanceof UnresolvedRelation table) {
      UnresolvedRelation sink = sink(table, PulsarCatalog.SINK);
      return sink == null ? null : append.withNewTable(sink);
    }
    if (node instanceof V2WriteCommand overwrite && !(node instanceof AppendData)) {
      refuseRelation(overwrite.table(), "an overwrite");
    } else if (node instanceof DeleteFromTable delete) {
      refuse(delete.table(), "DELETE");
    } else if (node instanceof UpdateTable update) {
      refuse(update.table(), "UPDATE");
    } else if (node instanceof MergeIntoTable merge) {
      refuse(merge.targetTable(), "MERGE");
    } else if (node instanceof ReplaceTable replace) {
      refuseRelation(replace.name(), "REPLACE TABLE");
    } else if (node instanceof ReplaceTableAsSelect replace) {
      refuseRelation(replace.name(), "REPLACE TABLE");
    }
    return null;
  }

  /** Whether it is what {@code format("pulsar")} stands for, which writes nothing itself. */
  private static boolean isFormat(Table table) {
    return table instanceof PythonTable && table.name().equalsIgnoreCase(FORMAT);
  }

  /** The catalog by whose settings {@code format("pulsar")} writes. */
  private PulsarCatalog ours() {
    CatalogManager catalogs = session.sessionState().catalogManager();
    if (catalogs.isCatalogRegistered(FORMAT)
        && catalogs.catalog(FORMAT) instanceof PulsarCatalog ours) {
      return ours;
    }
    throw Errors.refused(
        "format(\"pulsar\") writes by the settings of the catalog pulsar, which this session does not"
            + " have (hint: INSERT INTO or writeTo, with the name of its own catalog)");
  }

  /** A write by position that names its table itself; null: it has all columns, or is no topic's. */
  private static LogicalPlan ofPayload(AppendData append, DataSourceV2Relation relation) {
    if (!(relation.table() instanceof TopicSink sink)
        || relation.output().size() == sink.payload()
        || (append.query().resolved()
            && append.query().output().size() == relation.output().size())) {
      return null;
    }
    List<AttributeReference> payload =
        CollectionConverters.asJava(relation.output()).subList(0, sink.payload());
    return append.withNewTable(Compat.relation(relation, sink, Nodes.seq(payload)));
  }

  private void refuse(LogicalPlan target, String what) {
    refuseRelation(target instanceof SubqueryAlias alias ? alias.child() : target, what);
  }

  private void refuseRelation(Object target, String what) {
    if (isOurs(target)) {
      throw Errors.refused(
          "a topic is a log, to which rows are added: " + what + " is not possible (hint: INSERT"
              + " INTO; a later message of the same key takes an earlier one's place in"
              + " topic$compacted)");
    }
  }

  /** Whether the target of a statement is a topic, or in a catalog of topics. */
  private boolean isOurs(Object target) {
    if (target instanceof UnresolvedRelation named) {
      return TopicName.of(session, named) != null;
    }
    if (target instanceof UnresolvedIdentifier named) {
      return TopicName.of(session, named.nameParts()) != null;
    }
    if (target instanceof ResolvedIdentifier found) {
      return found.catalog() instanceof PulsarCatalog
          && !PulsarCatalog.isDelta(found.identifier().namespace());
    }
    return target instanceof DataSourceV2Relation relation
        && (relation.table() instanceof TopicSink || isFormat(relation.table()));
  }

  /** The relation under its other name; null: it is no topic, or has that name already. */
  private UnresolvedRelation sink(LogicalPlan target, String suffix) {
    if (!(target instanceof UnresolvedRelation relation)) {
      return null;
    }
    TopicName topic = TopicName.of(session, relation);
    if (topic == null || PulsarCatalog.isSink(topic.name())) {
      return null;
    }
    List<String> parts =
        new ArrayList<>(CollectionConverters.asJava(relation.multipartIdentifier()));
    parts.set(parts.size() - 1, topic.name() + suffix);
    return relation.copy(Nodes.seq(parts), relation.options(), relation.isStreaming());
  }
}
