package io.pulsarlake.spark.planner;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import java.util.Map;

/**
 * What is asked of the planner, and what it answers. Written by {@code
 * spark_ext.planner.java_messages} out of {@code spark_ext/planner/protocol.py}, which explains the
 * fields: change that.
 */
public final class Messages {
  private Messages() {}

  /** A question, whose answer is an A. */
  public interface Question<A> {
    Class<A> answer();
  }

  /** A line that the planner reads. */
  public record Request(long id, String config, String name, JsonNode question) {}

  /** An error of ``reader.errors``, for ``spark_ext.session.errors`` behind Spark. */
  public record ErrorData(String kind, String message, String hint, JsonNode context) {}

  /** Why a question has no answer. */
  public record Failure(String message, boolean notFound, ErrorData error) {}

  /** A line that the planner writes: the answer to the request of this id, or its failure. */
  public record Reply(long id, JsonNode answer, Failure failure) {}

  /** The answer to what only has to succeed. */
  public record Done() {}

  /** Names of namespaces or topics. */
  public record Names(List<String> names) {}

  /** Which namespaces may the client see? */
  public record ListNamespaces()
      implements Question<Names> {
    @Override
    public Class<Names> answer() {
      return Names.class;
    }
  }

  /** Does a namespace exist, and may the client see it? */
  public record FindNamespace(String namespace)
      implements Question<Done> {
    @Override
    public Class<Done> answer() {
      return Done.class;
    }
  }

  /** Which topics does a namespace have? */
  public record ListTopics(String namespace)
      implements Question<Names> {
    @Override
    public Class<Names> answer() {
      return Names.class;
    }
  }

  /** The hot or the cold rows of a snapshot, as a table of the catalog. */
  public record SnapshotTable(
      String name,
      String title,
      boolean cold,
      String schema,
      Long rows,
      Long bytes) {}

  /** A snapshot of a topic, as a view of the catalog. */
  public record TopicView(
      String namespace,
      String text,
      String schema,
      Map<String, String> properties,
      List<SnapshotTable> tables) {}

  /** What a name of the catalog stands for: one of the two. */
  public record Relation(TopicView view, SnapshotTable table) {}

  /** What does a name stand for? */
  public record LoadRelation(String catalog, String namespace, String name)
      implements Question<Relation> {
    @Override
    public Class<Relation> answer() {
      return Relation.class;
    }
  }

  /** What does ``format("pulsar")`` read with these options? */
  public record LoadFormat(String catalog, Map<String, String> options)
      implements Question<TopicView> {
    @Override
    public Class<TopicView> answer() {
      return TopicView.class;
    }
  }

  /** Which cold table is a version of a topic's table? */
  public record LoadVersion(String namespace, String name, Long version, Long at)
      implements Question<SnapshotTable> {
    @Override
    public Class<SnapshotTable> answer() {
      return SnapshotTable.class;
    }
  }

  /** A node of a filter: a call, a column or a literal. */
  public record Expression(
      String op,
      List<Expression> args,
      List<String> column,
      String type,
      Object value) {}

  /** A stream of topics, as each question about it names it. */
  public record Stream(Map<String, String> options, String place) {}

  /** The columns of a stream. */
  public record StreamColumns(String schema) {}

  /** Which columns does a stream have? */
  public record DescribeStream(Stream stream)
      implements Question<StreamColumns> {
    @Override
    public Class<StreamColumns> answer() {
      return StreamColumns.class;
    }
  }

  /** Offsets: where the first batch begins, and where the last one ends (None: never). */
  public record StreamBounds(String start, String ending) {}

  /** Where does a stream begin and end? Asked once: the checkpoint keeps the answer. */
  public record BoundStream(Stream stream)
      implements Question<StreamBounds> {
    @Override
    public Class<StreamBounds> answer() {
      return StreamBounds.class;
    }
  }

  /** The offset behind all that there is now. */
  public record StreamEnd(String latest) {}

  /** Where does Trigger.AvailableNow end? */
  public record FindStreamEnd(Stream stream)
      implements Question<StreamEnd> {
    @Override
    public Class<StreamEnd> answer() {
      return StreamEnd.class;
    }
  }

  /** A micro-batch that was planned; ``PlanReads`` narrows that very plan. */
  public record MicroBatch(
      Stream stream,
      String start,
      String end,
      String plan,
      String snapshots) {}

  /** Files of a micro-batch. */
  public record BatchFiles(String part, long bytes, Expression where) {}

  /** What tasks read of a micro-batch from one tier. */
  public record BatchTier(String tier, long bytes) {}

  /** What a micro-batch consists of: one part or tier at least. */
  public record BatchPlan(
      String name,
      MicroBatch batch,
      List<BatchFiles> files,
      List<BatchTier> hot) {}

  /** The batch that follows an offset: how far it goes, and how far it could go. */
  public record NextBatch(String next, String latest, BatchPlan plan) {}

  /** How far does the batch go that follows an offset, and what lies in it? */
  public record FindNextBatch(
      Stream stream,
      String start,
      String began,
      String ending,
      String until,
      double waited,
      String columns)
      implements Question<NextBatch> {
    @Override
    public Class<NextBatch> answer() {
      return NextBatch.class;
    }
  }

  /** What lies in a batch of which a query knows from its checkpoint alone? */
  public record PlanBatch(
      Stream stream,
      String start,
      String end,
      String began,
      String columns)
      implements Question<BatchPlan> {
    @Override
    public Class<BatchPlan> answer() {
      return BatchPlan.class;
    }
  }

  /** Texts by name, as Spark shows the metrics of a source. */
  public record StreamMetrics(Map<String, String> metrics) {}

  /** How far is a stream behind? */
  public record MeasureStream(Stream stream, String at, String latest)
      implements Question<StreamMetrics> {
    @Override
    public Class<StreamMetrics> answer() {
      return StreamMetrics.class;
    }
  }

  /** An aggregate over all rows of a table. */
  public record Aggregate(String function, String column) {}

  /** Files that a query reads: of a cold table, or of a part of a micro-batch. */
  public record ColdRead(
      String namespace,
      String name,
      MicroBatch batch,
      List<Expression> filters,
      List<Aggregate> aggregates) {}

  /** Rows that a query reads by tasks: of a hot table, or of a tier of a micro-batch. */
  public record HotRead(
      String namespace,
      String name,
      MicroBatch batch,
      String columns,
      List<Expression> filters) {}

  /** Files of one table. */
  public record TableFiles(String root, List<String> paths, List<Long> sizes, List<Long> times) {}

  /** What a ``ColdRead`` reads. */
  public record ColdPlan(List<Long> values, List<TableFiles> tables, long bytes) {}

  /** What Spark's Python workers run. */
  public record PythonFunction(byte[] function, String python, String version) {}

  /** Tasks for Spark's Python workers. Pickles hold the settings: no plan shows them. */
  public record TaskPlan(PythonFunction function, List<byte[]> tasks, long rows) {}

  /** The plans of a query's reads, in the order in which they were asked for. */
  public record ReadPlans(List<ColdPlan> cold, List<TaskPlan> hot) {}

  /** What do the scans of a query read? */
  public record PlanReads(List<ColdRead> cold, List<HotRead> hot, long parallelism)
      implements Question<ReadPlans> {
    @Override
    public Class<ReadPlans> answer() {
      return ReadPlans.class;
    }
  }

  /** A topic that rows are written to. */
  public record Sink(
      String name,
      String schema,
      long payload,
      Map<String, String> defaults,
      List<String> omitted,
      List<String> ignored) {}

  /** Which columns may rows have that are written to a topic? */
  public record DescribeSink(String namespace, String name)
      implements Question<Sink> {
    @Override
    public Class<Sink> answer() {
      return Sink.class;
    }
  }

  /** Make a topic. */
  public record CreateTopic(
      String namespace,
      String name,
      String columns,
      Map<String, String> properties)
      implements Question<Done> {
    @Override
    public Class<Done> answer() {
      return Done.class;
    }
  }

  /** Delete a topic. */
  public record DropTopic(String namespace, String name)
      implements Question<Done> {
    @Override
    public Class<Done> answer() {
      return Done.class;
    }
  }

  /** What is known of a write without a name of its own. */
  public record WriteState(long version, Map<String, Long> following, String producer) {}

  /** A write that was opened, as later questions name it. */
  public record Write(
      Map<String, String> options,
      String topic,
      String app,
      String place,
      boolean named,
      long version,
      WriteState state) {}

  /** A write, and what its tasks run. */
  public record OpenedWrite(Write write, PythonFunction function) {}

  /** Begin to write rows. */
  public record OpenWrite(
      String topic,
      Map<String, String> options,
      String columns,
      String query,
      boolean streaming)
      implements Question<OpenedWrite> {
    @Override
    public Class<OpenedWrite> answer() {
      return OpenedWrite.class;
    }
  }

  /** The tasks that send what a write has staged. */
  public record Sending(TaskPlan tasks, String columns) {}

  /** Decide what is sent: all rows are staged. */
  public record CommitWrite(Write write, Long epoch, List<byte[]> messages)
      implements Question<Sending> {
    @Override
    public Class<Sending> answer() {
      return Sending.class;
    }
  }

  /** Note that all was sent. */
  public record ConfirmWrite(Write write, Long epoch)
      implements Question<Done> {
    @Override
    public Class<Done> answer() {
      return Done.class;
    }
  }

  /** Drop what is staged: the write has failed. */
  public record AbortWrite(Write write, boolean decided, List<byte[]> messages)
      implements Question<Done> {
    @Override
    public Class<Done> answer() {
      return Done.class;
    }
  }
}
