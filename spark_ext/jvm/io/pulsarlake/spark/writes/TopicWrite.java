package io.pulsarlake.spark.writes;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.pulsarlake.spark.planner.Planner;
import io.pulsarlake.spark.reads.HotPartitions;
import java.util.Base64;
import java.util.Map;
import org.apache.spark.JobArtifactSet;
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
import org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/**
 * Rows written to topics, as a batch or batch by batch of a stream.
 *
 * <p>Tasks stage what is to be sent. At commit the planner decides, once and for all, what that is,
 * and a second job sends it, a task for each partition. What was decided and not sent whole is sent
 * when the same write is run again.
 */
final class TopicWrite implements BatchWrite, StreamingWrite {
  private final TopicSink.Asked planner;
  private final StructType rows;
  private final JsonNode opened;
  private volatile boolean decided; // Or about to be: a commit that was cancelled may go on.

  private TopicWrite(TopicSink.Asked planner, StructType rows, JsonNode opened) {
    this.planner = planner;
    this.rows = rows;
    this.opened = opened;
  }

  /** Refuses rows that the topic does not take. */
  static TopicWrite open(TopicSink.Asked planner, LogicalWriteInfo info, boolean streaming) {
    ObjectNode request = Planner.JSON.createObjectNode();
    ObjectNode options = Planner.JSON.createObjectNode();
    for (Map.Entry<String, String> one : info.options().asCaseSensitiveMap().entrySet()) {
      options.put(one.getKey(), one.getValue());
    }
    request.put("options", options.toString());
    request.put("columns", info.schema().json());
    request.put("query", info.queryId());
    request.put("streaming", streaming);
    return new TopicWrite(planner, info.schema(), planner.answer("sink_open", request));
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
    WriterCommitMessage[] staged = decided ? new WriterCommitMessage[0] : messages;
    ObjectNode request = request(null, staged);
    request.put("decided", decided);
    planner.answer("sink_abort", request);
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
    JsonNode sending = planner.answer("sink_commit", request(epoch, messages));
    if (sending.has("partitions")) {
      send(sending);
      planner.answer("sink_sent", request(epoch, new WriterCommitMessage[0]));
    }
  }

  private static void send(JsonNode sending) {
    StructType sent = (StructType) StructType.fromJson(sending.path("schema").asText());
    HotPartitions.rdd(
            SparkSession.active().sparkContext(), sending, HotPartitions.factory(sending, sent))
        .count();
  }

  private ObjectNode request(Long epoch, WriterCommitMessage[] messages) {
    ObjectNode request = Planner.JSON.createObjectNode();
    request.put("write", opened.path("write").asText());
    request.put("epoch", epoch);
    ArrayNode staged = request.putArray("messages");
    for (WriterCommitMessage one : messages) {
      if (one instanceof PythonWriterCommitMessage message) {
        staged.add(Base64.getEncoder().encodeToString(message.pickledMessage()));
      }
    }
    return request;
  }

  private PythonStreamingWriterFactory factory() {
    return new PythonStreamingWriterFactory(
        new UserDefinedPythonDataSource(HotPartitions.worker(opened)),
        HotPartitions.bytes(opened.path("function")),
        rows,
        JobArtifactSet.getCurrentJobArtifactState().map(state -> state.uuid()),
        Option.empty());
  }
}
