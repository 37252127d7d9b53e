package io.pulsarlake.spark.reads;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import org.apache.spark.JobArtifactSet;
import org.apache.spark.SparkContext;
import org.apache.spark.api.python.SimplePythonFunction;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.v2.DataSourceRDD;
import org.apache.spark.sql.execution.datasources.v2.python.PythonInputPartition;
import org.apache.spark.sql.execution.datasources.v2.python.PythonPartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.LongAccumulator;
import scala.Option;
import scala.collection.immutable.Map$;
import scala.jdk.javaapi.CollectionConverters;

/** What the tasks of a hot scan read: what Python is given, or rows that need no reading. */
public final class HotPartitions {
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

  /** What reads the tasks of the planner's answer. */
  public static PartitionReaderFactory factory(JsonNode plan, StructType required) {
    return new Factory(
        new PythonPartitionReaderFactory(
            new UserDefinedPythonDataSource(worker(plan)),
            bytes(plan.path("function")),
            required,
            JobArtifactSet.getCurrentJobArtifactState().map(state -> state.uuid()),
            Option.empty()));
  }

  /** The tasks of the planner's answer, whose rows {@code factory} reads. */
  public static RDD<InternalRow> rdd(
      SparkContext context, JsonNode plan, PartitionReaderFactory factory) {
    List<Option<InputPartition>> tasks = new ArrayList<>();
    for (InputPartition one : of(plan.path("partitions"))) {
      tasks.add(Option.apply(one));
    }
    return new DataSourceRDD(
        context,
        CollectionConverters.asScala(tasks).toSeq(),
        factory,
        false,
        Map$.MODULE$.<String, SQLMetric>empty());
  }

  /** The Python worker that runs the function of the planner's answer. */
  public static SimplePythonFunction worker(JsonNode plan) {
    return new SimplePythonFunction(
        new byte[0],
        new HashMap<>(),
        List.of(),
        plan.path("python").asText(),
        plan.path("version").asText(),
        List.of(),
        null);
  }

  /** {@code factory}, which adds up the rows that its tasks have read. */
  static PartitionReaderFactory counted(PartitionReaderFactory factory, LongAccumulator rows) {
    return new Counted(factory, rows);
  }

  public static byte[] bytes(JsonNode base64) {
    try {
      return base64.binaryValue();
    } catch (IOException broken) {
      throw new UncheckedIOException(broken);
    }
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

  private record Counted(PartitionReaderFactory factory, LongAccumulator rows)
      implements PartitionReaderFactory {
    @Override
    public PartitionReader<InternalRow> createReader(InputPartition partition) {
      PartitionReader<InternalRow> reader = factory.createReader(partition);
      return new PartitionReader<>() {
        @Override
        public boolean next() throws IOException {
          boolean found = reader.next();
          if (found) {
            rows.add(1);
          }
          return found;
        }

        @Override
        public InternalRow get() {
          return reader.get();
        }

        @Override
        public CustomTaskMetric[] currentMetricsValues() {
          return reader.currentMetricsValues();
        }

        @Override
        public void close() throws IOException {
          reader.close();
        }
      };
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
