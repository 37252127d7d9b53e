package io.pulsarlake.spark.reads;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.pulsarlake.spark.planner.Planner;
import java.util.function.Function;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.sources.PrunedFilteredScan;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.LongAccumulator;

/**
 * The hot rows of one micro-batch: planned once Spark knows which columns and filters.
 *
 * <p>A relation of Spark's first interface, as a stream gives its batch as one, and the optimizer
 * tells only those what the query needs. All filters are evaluated again by Spark.
 */
final class HotRows extends BaseRelation implements PrunedFilteredScan {
  private final SQLContext context;
  private final StructType type;
  private final String name;
  private final long bytes;
  private final LongAccumulator rows;
  private final Function<ObjectNode, JsonNode> planner;

  /**
   * @param rows adds up how many its tasks have read
   * @param planner answers a request with "columns", "predicates" and "parallelism"
   */
  HotRows(
      SQLContext context,
      StructType type,
      String name,
      long bytes,
      LongAccumulator rows,
      Function<ObjectNode, JsonNode> planner) {
    this.context = context;
    this.type = type;
    this.name = name;
    this.bytes = bytes;
    this.rows = rows;
    this.planner = planner;
  }

  @Override
  public SQLContext sqlContext() {
    return context;
  }

  @Override
  public StructType schema() {
    return type;
  }

  @Override
  public long sizeInBytes() {
    return bytes;
  }

  @Override
  public boolean needConversion() {
    return false; // Its rows are Spark's internal ones.
  }

  @Override
  public String toString() {
    return name;
  }

  @Override
  @SuppressWarnings({"unchecked", "rawtypes"})
  public RDD<Row> buildScan(String[] columns, Filter[] filters) {
    StructType required = new StructType();
    for (String column : columns) {
      required = required.add(type.apply(column));
    }
    Predicate[] predicates = new Predicate[filters.length];
    for (int i = 0; i < filters.length; i++) {
      predicates[i] = filters[i].toV2();
    }
    ObjectNode request = Planner.JSON.createObjectNode();
    request.put("columns", required.json()).put("predicates", Filters.json(predicates).toString());
    request.put("parallelism", context.sparkContext().defaultParallelism());
    JsonNode plan = planner.apply(request);
    return (RDD)
        HotPartitions.rdd(
            context.sparkContext(),
            plan,
            HotPartitions.counted(HotPartitions.factory(plan, required), rows));
  }
}
