package io.pulsarlake.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.v2.python.PythonInputPartition;

/** What the tasks of a hot scan read: what Python is given, or rows that need no reading. */
final class HotPartitions {
  private HotPartitions() {}

  /** Of the planner's answer: text is a pickle in base64, a number is so many rows. */
  static InputPartition[] of(JsonNode tasks) {
    InputPartition[] partitions = new InputPartition[tasks.size()];
    for (int i = 0; i < partitions.length; i++) {
      JsonNode task = tasks.path(i);
      partitions[i] =
          task.isNumber()
              ? new KnownRows(task.asLong())
              : new PythonInputPartition(i, bytes(task));
    }
    return partitions;
  }

  static byte[] bytes(JsonNode base64) {
    try {
      return base64.binaryValue();
    } catch (IOException broken) {
      throw new UncheckedIOException(broken);
    }
  }

  /** Rows without a column, whose number is known: no Python worker is needed to count them. */
  private record KnownRows(long count) implements InputPartition {}

  /** Reads both kinds. */
  record Factory(PartitionReaderFactory python) implements PartitionReaderFactory {
    @Override
    public PartitionReader<InternalRow> createReader(InputPartition partition) {
      return partition instanceof KnownRows known
          ? new KnownRowsReader(known.count())
          : python.createReader(partition);
    }
  }

  private static final class KnownRowsReader implements PartitionReader<InternalRow> {
    private long left;

    private KnownRowsReader(long count) {
      left = count;
    }

    @Override
    public boolean next() {
      return left-- > 0;
    }

    @Override
    public InternalRow get() {
      return InternalRow.empty();
    }

    @Override
    public void close() {}
  }
}
