package io.pulsarlake.spark.reads;

import io.pulsarlake.spark.Compat;
import io.pulsarlake.spark.planner.Messages.HotRead;
import io.pulsarlake.spark.planner.Messages.PlanReads;
import io.pulsarlake.spark.planner.Messages.TaskPlan;
import io.pulsarlake.spark.planner.PlannerClient;
import java.util.List;
import java.util.OptionalLong;
import java.util.Set;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsPushDownV2Filters;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The hot rows of one snapshot: read by tasks in Python, told which columns and filters.
 *
 * <p>The version stays null: with one, Spark would load the table again when the query runs.
 *
 * @param title for people
 * @param table its name in the namespace of its catalog
 */
public record HotTable(
    String title,
    StructType type,
    Long knownRows,
    Long knownBytes,
    PlannerClient planner,
    String namespace,
    String table)
    implements SupportsRead, Compat.Typed {

  @Override
  public String name() {
    return title;
  }

  @Override
  public Transform[] partitioning() {
    return new Transform[0];
  }

  @Override
  public Set<TableCapability> capabilities() {
    return Set.of(TableCapability.BATCH_READ);
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap ignored) {
    return new Builder();
  }

  private final class Builder
      implements SupportsPushDownRequiredColumns, SupportsPushDownV2Filters {
    private StructType required = type;
    private Predicate[] predicates = new Predicate[0];

    @Override
    public void pruneColumns(StructType columns) {
      required = columns;
    }

    /** All are handed on, and all are returned: Spark evaluates them again. */
    @Override
    public Predicate[] pushPredicates(Predicate[] pushed) {
      predicates = pushed;
      return pushed;
    }

    @Override
    public Predicate[] pushedPredicates() {
      return new Predicate[0];
    }

    @Override
    public Scan build() {
      return new HotScan(HotTable.this, required, predicates);
    }
  }

  /**
   * One scan of the table, which knows what it learns: a pickled function of the planner, and what
   * each task calls it with.
   *
   * <p>Equal for the same snapshot, columns and filters: Spark then reads hot rows once for two
   * equal sides of a join.
   */
  public static final class HotScan implements SupportsReportStatistics, Batch {
    private final HotTable table;
    private final StructType required;
    private final Predicate[] predicates;
    private final HotRead read;
    private TaskPlan plan;

    private HotScan(HotTable table, StructType required, Predicate[] predicates) {
      this.table = table;
      this.required = required;
      this.predicates = predicates;
      this.read =
          new HotRead(
              table.namespace(), table.table(), null, required.json(), Filters.of(predicates));
    }

    /** What the planner is asked for. */
    public HotRead read() {
      return read;
    }

    public PlannerClient planner() {
      return table.planner();
    }

    /** The answer, for which the scan then does not ask itself. */
    public synchronized void planned(TaskPlan answer) {
      plan = answer;
    }

    /** Asked for once, because adaptive execution asks twice and planning is work. */
    private synchronized TaskPlan plan() {
      if (plan == null) {
        int parallelism = SparkSession.active().sparkContext().defaultParallelism();
        PlanReads question = new PlanReads(List.of(), List.of(read), parallelism);
        plan = planner().ask(question).hot().get(0);
      }
      return plan;
    }

    @Override
    public Batch toBatch() {
      return this;
    }

    @Override
    public InputPartition[] planInputPartitions() {
      return HotPartitions.of(plan());
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
      return HotPartitions.factory(plan(), required);
    }

    @Override
    public StructType readSchema() {
      return required;
    }

    @Override
    public String description() {
      return table.name() + " PushedPredicates: " + List.of(predicates);
    }

    @Override
    public ColumnarSupportMode columnarSupportMode() {
      return ColumnarSupportMode.UNSUPPORTED; // By default Spark would plan the batch to see.
    }

    @Override
    public CustomMetric[] supportedCustomMetrics() {
      return new UserDefinedPythonDataSource(null).createPythonMetrics();
    }

    @Override
    public Statistics estimateStatistics() {
      return new Statistics() {
        @Override
        public OptionalLong sizeInBytes() {
          return known(table.knownBytes());
        }

        @Override
        public OptionalLong numRows() {
          return known(table.knownRows());
        }
      };
    }

    private static OptionalLong known(Long number) {
      return number == null ? OptionalLong.empty() : OptionalLong.of(number);
    }

    @Override
    public boolean equals(Object other) {
      return other instanceof HotScan scan
          && planner().equals(scan.planner())
          && read.equals(scan.read);
    }

    @Override
    public int hashCode() {
      return read.hashCode();
    }
  }
}
