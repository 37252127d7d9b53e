package io.pulsarlake.spark.reads;

import org.apache.spark.sql.execution.streaming.Offset;

/** Where a stream is, in the planner's words: JSON, which only the planner reads. */
final class StreamPosition extends Offset {
  private final String json;

  StreamPosition(String json) {
    this.json = json;
  }

  @Override
  public String json() {
    return json;
  }
}
