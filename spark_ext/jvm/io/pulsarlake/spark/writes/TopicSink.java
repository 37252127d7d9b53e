package io.pulsarlake.spark.writes;

import io.pulsarlake.spark.Compat;
import io.pulsarlake.spark.planner.PlannerClient;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;
import org.apache.spark.sql.internal.connector.SupportsStreamingUpdateAsAppend;
import org.apache.spark.sql.types.StructType;

/**
 * A topic as what rows are written to: the columns that its table has.
 *
 * @param payload how many of the columns, from the first, are the payload's
 * @param omitted columns that are left out where they are NULL in each row
 * @param ignored columns that are left out
 * @param narrowed whether a write has only some of the columns
 * @param topic its full name; null: rows name theirs, or options name one
 */
public record TopicSink(
    String name,
    StructType type,
    int payload,
    Set<String> omitted,
    Set<String> ignored,
    boolean narrowed,
    PlannerClient planner,
    String topic)
    implements SupportsWrite, Compat.Typed {

  @Override
  public Set<TableCapability> capabilities() {
    return narrowed
        ? Set.of(
            TableCapability.BATCH_WRITE,
            TableCapability.STREAMING_WRITE,
            TableCapability.ACCEPT_ANY_SCHEMA)
        : Set.of(TableCapability.BATCH_WRITE, TableCapability.STREAMING_WRITE);
  }

  /** Whether a column is left out where it is NULL; before the topic is known, metadata is. */
  public boolean omits(String column) {
    return topic == null ? column.startsWith("__") : omitted.contains(column);
  }

  /** As what a write goes to that has only some of the columns, once Spark has checked them. */
  public TopicSink narrow() {
    return new TopicSink(name, type, payload, omitted, ignored, true, planner, topic);
  }

  /** Also in update mode: a row that has changed is one more message, the latest of its key. */
  @Override
  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return new SupportsStreamingUpdateAsAppend() {
      @Override
      public Write build() {
        return new Write() {
          @Override
          public String description() {
            return name;
          }

          @Override
          public BatchWrite toBatch() {
            return TopicWrite.open(planner, topic, info, false);
          }

          @Override
          public StreamingWrite toStreaming() {
            return TopicWrite.open(planner, topic, info, true);
          }
        };
      }
    };
  }
}
