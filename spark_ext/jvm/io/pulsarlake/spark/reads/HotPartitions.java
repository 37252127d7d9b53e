package io.pulsarlake.spark.reads;

import io.pulsarlake.spark.Compat;
import io.pulsarlake.spark.planner.Messages.PythonFunction;
import io.pulsarlake.spark.planner.Messages.TaskPlan;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import org.apache.spark.SparkContext;
import org.apache.spark.api.python.SimplePythonFunction;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.v2.python.PythonInputPartition;
import org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource;
import org.apache.spark.sql.types.StructType;

/** What the tasks of a hot scan read: what Python is given, or rows that need no reading. */
public final class HotPartitions {
  private HotPartitions() {}

  /** The tasks of a scan, and one for the rows that need no reading. */
  static InputPartition[] of(TaskPlan scan) {
    List<InputPartition> partitions = new ArrayList<>();
    for (byte[] task : scan.tasks()) {
      partitions.add(new PythonInputPartition(partitions.size(), task));
    }
    if (scan.rows() > 0) {
      partitions.add(new KnownRows(scan.rows()));
    }
    return partitions.toArray(InputPartition[]::new);
  }

  /** What reads the tasks of a scan. */
  public static PartitionReaderFactory factory(TaskPlan scan, StructType required) {
    PythonFunction function = scan.function();
    return new Factory(Compat.pythonReader(worker(function), function.function(), required));
  }

  /** The tasks of a scan, whose rows {@code factory} reads. */
  public static RDD<InternalRow> rdd(
      SparkContext context, TaskPlan scan, PartitionReaderFactory factory) {
    return Compat.rdd(context, of(scan), factory);
  }

  /** The Python worker that runs a function. */
  public static UserDefinedPythonDataSource worker(PythonFunction function) {
    return new UserDefinedPythonDataSource(
        new SimplePythonFunction(
            new byte[0],
            new HashMap<>(),
            List.of(),
            function.python(),
            function.version(),
            List.of(),
            null));
  }

  /** Rows without a column, whose number is known: no Python worker is needed to count them. */
  private record KnownRows(long count) implements InputPartition {}

  /** Reads both kinds. */
  private record Factory(PartitionReaderFactory python) implements PartitionReaderFactory {
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
