package io.pulsarlake.spark.reads;

import io.pulsarlake.spark.planner.Errors;
import io.pulsarlake.spark.planner.Messages.HotRead;
import io.pulsarlake.spark.planner.Messages.MicroBatch;
import io.pulsarlake.spark.planner.Messages.PlanReads;
import io.pulsarlake.spark.planner.Messages.TaskPlan;
import io.pulsarlake.spark.planner.PlannerClient;
import java.io.Serializable;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.sources.PrunedFilteredScan;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.LongAccumulator;
import scala.Function1;
import scala.reflect.ClassTag$;

/**
 * The hot rows of one micro-batch: planned once Spark knows which columns and filters.
 *
 * <p>A relation of Spark's first interface, as a stream gives its batch as one, and the optimizer
 * tells only those what the query needs. All filters are evaluated again by Spark.
 */
public final class HotRows extends BaseRelation implements PrunedFilteredScan {
  private final SQLContext context;
  private final StructType type;
  private final String name;
  private final long bytes;
  private final LongAccumulator rows;
  private final PlannerClient planner;
  private final MicroBatch batch;
  private final String tier;
  private final Map<HotRead, TaskPlan> plans = new ConcurrentHashMap<>();
  private Exception failed; // why the batch cannot be planned

  /**
   * @param rows adds up how many its tasks have read
   */
  HotRows(
      SQLContext context,
      StructType type,
      String name,
      long bytes,
      LongAccumulator rows,
      PlannerClient planner,
      MicroBatch batch,
      String tier) {
    this.context = context;
    this.type = type;
    this.name = name;
    this.bytes = bytes;
    this.rows = rows;
    this.planner = planner;
    this.batch = batch;
    this.tier = tier;
  }

  /** As rows that cannot be read: no matter, if they are not. */
  HotRows failed(Exception why) {
    failed = why;
    return this;
  }

  /** Whether reading them tells why their batch cannot be planned. */
  public boolean isFailed() {
    return failed != null;
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
    HotRead wanted = read(columns, filters);
    if (failed != null) {
      throw Errors.unchecked(failed);
    }
    TaskPlan scan = plans.get(wanted);
    if (scan == null) {
      PlanReads question =
          new PlanReads(List.of(), List.of(wanted), context.sparkContext().defaultParallelism());
      scan = planner.ask(question).hot().get(0);
    }
    LongAccumulator counter = rows;
    return (RDD)
        HotPartitions.rdd(
                context.sparkContext(), scan, HotPartitions.factory(scan, required(columns)))
            .map(
                (Function1<InternalRow, InternalRow> & Serializable)
                    row -> {
                      counter.add(1);
                      return row;
                    },
                ClassTag$.MODULE$.apply(InternalRow.class));
  }

  public PlannerClient planner() {
    return planner;
  }

  /** The answer, for which {@code buildScan} then does not ask itself. */
  public void planned(HotRead asked, TaskPlan answer) {
    plans.put(asked, answer);
  }

  /** What is to be asked for these columns and filters. */
  public HotRead read(String[] columns, Filter[] filters) {
    Predicate[] predicates = Arrays.stream(filters).map(Filter::toV2).toArray(Predicate[]::new);
    return new HotRead("", tier, batch, required(columns).json(), Filters.of(predicates));
  }

  private StructType required(String[] columns) {
    StructType required = new StructType();
    for (String column : columns) {
      required = required.add(type.apply(column));
    }
    return required;
  }
}
