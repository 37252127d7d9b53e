package io.pulsarlake.spark.writes;

import io.pulsarlake.spark.Compat;
import io.pulsarlake.spark.planner.Messages.AbortWrite;
import io.pulsarlake.spark.planner.Messages.CommitWrite;
import io.pulsarlake.spark.planner.Messages.ConfirmWrite;
import io.pulsarlake.spark.planner.Messages.OpenWrite;
import io.pulsarlake.spark.planner.Messages.OpenedWrite;
import io.pulsarlake.spark.planner.Messages.PythonFunction;
import io.pulsarlake.spark.planner.Messages.Sending;
import io.pulsarlake.spark.planner.PlannerClient;
import io.pulsarlake.spark.reads.HotPartitions;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;
import org.apache.spark.sql.execution.datasources.v2.python.PythonStreamingWriterFactory;
import org.apache.spark.sql.execution.datasources.v2.python.PythonWriterCommitMessage;
import org.apache.spark.sql.types.StructType;

/**
 * Rows written to topics, as a batch or batch by batch of a stream.
 *
 * <p>Tasks stage what is to be sent. At commit the planner decides, once and for all, what that is,
 * and a second job sends it, a task for each partition. What was decided and not sent whole is sent
 * when the same write is run again.
 */
final class TopicWrite implements BatchWrite, StreamingWrite {
  private final PlannerClient planner;
  private final StructType rows;
  private final OpenedWrite opened;
  private volatile boolean decided; // Or about to be: a commit that was cancelled may go on.

  private TopicWrite(PlannerClient planner, StructType rows, OpenedWrite opened) {
    this.planner = planner;
    this.rows = rows;
    this.opened = opened;
  }

  /** Refuses rows that the topic does not take. */
  static TopicWrite open(
      PlannerClient planner, String topic, LogicalWriteInfo info, boolean streaming) {
    Map<String, String> options = new HashMap<>(info.options().asCaseSensitiveMap());
    options.values().removeIf(Objects::isNull); // as Python's None arrives
    OpenWrite question =
        new OpenWrite(
            topic,
            options,
            info.schema().json(),
            info.queryId(),
            streaming);
    return new TopicWrite(planner, info.schema(), planner.ask(question));
  }

  // A batch

  @Override
  public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
    return factory();
  }

  @Override
  public void commit(WriterCommitMessage[] messages) {
    commit(null, messages);
  }

  @Override
  public void abort(WriterCommitMessage[] messages) {
    List<byte[]> staged = decided ? List.of() : staged(messages);
    planner.ask(new AbortWrite(opened.write(), decided, staged));
  }

  // A stream

  @Override
  public StreamingDataWriterFactory createStreamingWriterFactory(PhysicalWriteInfo info) {
    return factory();
  }

  @Override
  public void commit(long epoch, WriterCommitMessage[] messages) {
    commit((Long) epoch, messages);
  }

  @Override
  public void abort(long epoch, WriterCommitMessage[] messages) {
    abort(messages);
  }

  /** Of two attempts of a task, one is committed. */
  @Override
  public boolean useCommitCoordinator() {
    return true;
  }

  private void commit(Long epoch, WriterCommitMessage[] messages) {
    decided = true;
    Sending sending = planner.ask(new CommitWrite(opened.write(), epoch, staged(messages)));
    if (sending.tasks() != null) {
      StructType sent = (StructType) StructType.fromJson(sending.columns());
      HotPartitions.rdd(
              SparkSession.active().sparkContext(),
              sending.tasks(),
              HotPartitions.factory(sending.tasks(), sent))
          .count();
      planner.ask(new ConfirmWrite(opened.write(), epoch));
    }
  }

  private static List<byte[]> staged(WriterCommitMessage[] messages) {
    List<byte[]> staged = new ArrayList<>();
    for (WriterCommitMessage one : messages) {
      if (one instanceof PythonWriterCommitMessage message) {
        staged.add(message.pickledMessage());
      }
    }
    return staged;
  }

  private PythonStreamingWriterFactory factory() {
    PythonFunction function = opened.function();
    return Compat.pythonWriter(HotPartitions.worker(function), function.function(), rows);
  }
}
