package io.pulsarlake.spark.reads;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.pulsarlake.spark.planner.Planner;
import java.util.List;
import java.util.Objects;
import java.util.OptionalLong;
import java.util.Set;
import java.util.function.Function;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogV2Util;
import org.apache.spark.sql.connector.catalog.Column;
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
 * The hot rows of one snapshot: read by the Python data source, told which columns and filters.
 *
 * <p>The version stays null: with one, Spark would load the table again when the query runs.
 *
 * @param identity equal for two tables of the same snapshot
 * @param planner answers "plan" requests about this table
 */
public record HotTable(
    String name,
    StructType type,
    String identity,
    OptionalLong rows,
    OptionalLong bytes,
    Function<ObjectNode, JsonNode> planner)
    implements SupportsRead {

  @Override
  public Column[] columns() {
    return CatalogV2Util.structTypeToV2Columns(type, false);
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

  /** One scan of the table; nothing that it learns stays on the table. */
  static final class HotScan implements SupportsReportStatistics {
    private final HotTable table;
    private final StructType required;
    private final Predicate[] predicates;
    private final HotBatch batch;

    private HotScan(HotTable table, StructType required, Predicate[] predicates) {
      this.table = table;
      this.required = required;
      this.predicates = predicates;
      this.batch = new HotBatch(table, required, Filters.json(predicates).toString());
    }

    /** What the planner is asked about this scan, as JSON. */
    String request() {
      return batch.request(Planner.JSON.createObjectNode()).put("table", table.identity()).toString();
    }

    /** Always the same, because adaptive execution asks twice and planning is work. */
    @Override
    public Batch toBatch() {
      return batch;
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
          return table.bytes();
        }

        @Override
        public OptionalLong numRows() {
          return table.rows();
        }
      };
    }

    @Override
    public boolean equals(Object other) {
      return other instanceof HotScan scan && batch.equals(scan.batch);
    }

    @Override
    public int hashCode() {
      return batch.hashCode();
    }
  }

  /**
   * What the planner makes of the scan: a pickled function, and what each task calls it with.
   *
   * <p>Equal for the same snapshot, columns and filters: Spark then reads hot rows once for two
   * equal sides of a join.
   */
  private static final class HotBatch implements Batch {
    private final HotTable table;
    private final StructType required;
    private final String predicates;
    private JsonNode plan;

    private HotBatch(HotTable table, StructType required, String predicates) {
      this.table = table;
      this.required = required;
      this.predicates = predicates;
    }

    private ObjectNode request(ObjectNode into) {
      return into.put("columns", required.json()).put("predicates", predicates);
    }

    private synchronized JsonNode plan() {
      if (plan == null) {
        ObjectNode request = request(Planner.JSON.createObjectNode());
        request.put("parallelism", SparkSession.active().sparkContext().defaultParallelism());
        plan = table.planner().apply(request);
      }
      return plan;
    }

    @Override
    public InputPartition[] planInputPartitions() {
      return HotPartitions.of(plan().path("partitions"));
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
      return HotPartitions.factory(plan(), required);
    }

    @Override
    public boolean equals(Object other) {
      return other instanceof HotBatch batch
          && table.identity().equals(batch.table.identity())
          && required.equals(batch.required)
          && predicates.equals(batch.predicates);
    }

    @Override
    public int hashCode() {
      return Objects.hash(table.identity(), required, predicates);
    }
  }
}
