package io.pulsarlake.spark.reads;

import io.pulsarlake.spark.Compat;
import io.pulsarlake.spark.planner.Messages.BatchFiles;
import io.pulsarlake.spark.planner.Messages.BatchPlan;
import io.pulsarlake.spark.planner.Messages.BatchTier;
import io.pulsarlake.spark.planner.Messages.BoundStream;
import io.pulsarlake.spark.planner.Messages.FindNextBatch;
import io.pulsarlake.spark.planner.Messages.FindStreamEnd;
import io.pulsarlake.spark.planner.Messages.MeasureStream;
import io.pulsarlake.spark.planner.Messages.MicroBatch;
import io.pulsarlake.spark.planner.Messages.NextBatch;
import io.pulsarlake.spark.planner.Messages.PlanBatch;
import io.pulsarlake.spark.planner.Messages.Stream;
import io.pulsarlake.spark.planner.Messages.StreamBounds;
import io.pulsarlake.spark.planner.Planner;
import io.pulsarlake.spark.planner.PlannerClient;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReportsSourceMetrics;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation$;
import org.apache.spark.sql.execution.streaming.Offset;
import org.apache.spark.sql.execution.streaming.Source;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.LongAccumulator;
import scala.Option;

/**
 * Topics as a stream: the planner says how far each batch goes and what lies in it; a batch is a
 * plan of files and hot rows, which Spark optimizes together with the query.
 *
 * <p>All leaves of a batch are streaming ones: Spark plans stateful operators above nothing else.
 */
final class TopicStream implements Source, SupportsTriggerAvailableNow, ReportsSourceMetrics {
  // An idle query asks a hundred times a second. The planner itself asks brokers more rarely.
  private static final long LOOK_NANOS = 50_000_000L;
  private static final long METRICS_NANOS = 1_000_000_000L;
  private static final Map<String, String> TIERS =
      Map.of(
          "parquet", "rowsFromParquet",
          "bookkeeper", "rowsFromBookKeeper",
          "tiered", "rowsFromTieredStorage",
          "broker", "rowsFromBroker");

  private final SparkSession session;
  private final StructType type;
  private final String columns; // as Spark writes them: an idle query names them often
  private final Path stored;
  private final PlannerClient planner;
  private final Stream stream;
  private StreamBounds bounds; // once they are known
  private BatchPlan planned; // of the last batch whose end was found; null: it has no rows
  private String latest; // what there was at the last look
  private String until; // Trigger.AvailableNow ends there
  private String quietAt; // nothing lay behind it at the last look
  private long quietSince; // by System.nanoTime, as the next
  private MeasureStream measuredAt;
  private long measuredSince;
  private Map<String, String> measured;
  private long given = System.nanoTime(); // when the last batch was begun, or the query
  private long batches;
  private boolean looked; // how far a batch goes was asked for, since the query was started
  private final Map<String, LongAccumulator> read = new HashMap<>(); // of this trigger, by tier

  /**
   * @param metadataPath where the stream may keep what it is to know after a restart
   * @param options of the user
   */
  TopicStream(
      SparkSession session,
      StructType type,
      String metadataPath,
      PlannerClient planner,
      Map<String, String> options) {
    this.session = session;
    this.type = type;
    this.columns = type.json();
    this.stored = new Path(metadataPath, "bounds");
    this.planner = planner;
    // The planner knows a query's stream by its place in the checkpoint.
    this.stream = new Stream(options, metadataPath);
  }

  @Override
  public StructType schema() {
    return type;
  }

  @Override
  public Option<Offset> getOffset() {
    throw new UnsupportedOperationException("latestOffset is asked instead");
  }

  // Positions

  /** Limits are options, which the planner knows. */
  @Override
  public ReadLimit getDefaultReadLimit() {
    return ReadLimit.allAvailable();
  }

  @Override
  public org.apache.spark.sql.connector.read.streaming.Offset latestOffset(
      org.apache.spark.sql.connector.read.streaming.Offset from, ReadLimit limit) {
    read.clear(); // A new trigger.
    looked = true;
    String start = from == null ? start() : from.json();
    if (start.equals(quietAt) && System.nanoTime() - quietSince < LOOK_NANOS) {
      return from;
    }
    double waited = (System.nanoTime() - given) / 1e9;
    String ending = bounds().ending();
    NextBatch answer =
        planner.ask(
            new FindNextBatch(stream, start, start(), ending, until, waited, columns));
    planned = answer.plan();
    latest = answer.latest();
    String next = answer.next();
    quietAt = next.equals(start) ? start : null;
    given = quietAt == null ? System.nanoTime() : given;
    quietSince = System.nanoTime();
    // Nothing yet: without a first batch, which would be empty.
    return from == null && quietAt != null ? null : new StreamPosition(next);
  }

  @Override
  public org.apache.spark.sql.connector.read.streaming.Offset reportLatestOffset() {
    return latest == null ? null : new StreamPosition(latest);
  }

  @Override
  public void prepareForTriggerAvailableNow() {
    until = planner.ask(new FindStreamEnd(stream)).latest();
  }

  private String start() {
    return bounds().start();
  }

  /** Where the first batch begins and the last one ends: found once, and kept with the checkpoint. */
  private StreamBounds bounds() {
    if (bounds == null) {
      CheckpointFileManager files =
          Compat.checkpointFiles(stored.getParent(), session.sessionState().newHadoopConf());
      try {
        if (files.exists(stored)) {
          try (InputStream in = files.open(stored)) {
            bounds = Planner.JSON.readValue(in, StreamBounds.class);
          }
        } else {
          StreamBounds found = planner.ask(new BoundStream(stream));
          files.mkdirs(stored.getParent());
          try (var out = files.createAtomic(stored, false)) {
            out.write(Planner.JSON.writeValueAsBytes(found));
          }
          bounds = found;
        }
      } catch (IOException failed) {
        throw new UncheckedIOException(failed);
      }
    }
    return bounds;
  }

  // Rows

  @Override
  public Dataset<Row> getBatch(Option<Offset> from, Offset to) {
    String start = from.isEmpty() ? start() : from.get().json();
    read.clear();
    BatchPlan plan;
    try {
      plan = planned(start, to.json());
    } catch (Exception failed) {
      if (looked) {
        throw failed;
      }
      // Spark asks for the last batch when a query starts again, and runs it only if it was not
      // committed: what is gone of one that was is nobody's loss.
      HotRows none = hot(toString(), null, new BatchTier("bookkeeper", 0L));
      return streaming(none.failed(failed));
    }
    String name = plan.name() + ", batch " + batches++;
    Dataset<Row> rows = null;
    for (BatchFiles part : plan.files()) {
      rows = with(rows, files(name, plan.batch(), part));
    }
    for (BatchTier tier : plan.hot()) {
      rows = with(rows, streaming(hot(name + " (" + tier.tier() + ")", plan.batch(), tier)));
    }
    return rows;
  }

  private BatchPlan planned(String from, String to) {
    return planned != null && planned.batch().start().equals(from) && planned.batch().end().equals(to)
        ? planned
        : planner.ask(new PlanBatch(stream, from, to, start(), columns));
  }

  private Dataset<Row> files(String name, MicroBatch batch, BatchFiles part) {
    Dataset<Row> rows =
        streaming(
            new HadoopFsRelation(
                ColdFiles.ofBatch(
                    name + " (" + part.part() + ")", part.bytes(), planner, batch, part.part()),
                new StructType(),
                type,
                Option.empty(),
                new CountedParquet(counter("parquet")),
                scala.collection.immutable.Map$.MODULE$.<String, String>empty(),
                session));
    return rows.filter(Filters.condition(part.where()));
  }

  private HotRows hot(String name, MicroBatch batch, BatchTier tier) {
    return new HotRows(
        session.sqlContext(),
        type,
        name,
        tier.bytes(),
        counter(tier.tier()),
        planner,
        batch,
        tier.tier());
  }

  /** Adds up what the batch's tasks read of a tier. */
  private LongAccumulator counter(String tier) {
    return read.computeIfAbsent(
        tier,
        one -> {
          LongAccumulator rows = new LongAccumulator();
          session.sparkContext().register(rows);
          return rows;
        });
  }

  private Dataset<Row> streaming(BaseRelation relation) {
    return Dataset$.MODULE$.ofRows(session, LogicalRelation$.MODULE$.apply(relation, true));
  }

  private static Dataset<Row> with(Dataset<Row> rows, Dataset<Row> more) {
    return rows == null ? more : rows.unionAll(more);
  }

  @Override
  public void commit(Offset end) {} // The checkpoint is the position.

  @Override
  public void stop() {}

  // What an operator sees

  @Override
  public Map<String, String> metrics(
      Optional<org.apache.spark.sql.connector.read.streaming.Offset> consumed) {
    String at = consumed.map(one -> one.json()).orElse(null);
    MeasureStream question = new MeasureStream(stream, at, latest);
    if (!question.equals(measuredAt) || System.nanoTime() - measuredSince >= METRICS_NANOS) {
      Map<String, String> found = planner.ask(question).metrics();
      measuredAt = question;
      measuredSince = System.nanoTime();
      measured = found;
    }
    Map<String, String> found = new HashMap<>(measured);
    TIERS.forEach((tier, name) -> found.put(name, String.valueOf(rows(tier))));
    return found;
  }

  private long rows(String tier) {
    LongAccumulator rows = read.get(tier);
    return rows == null ? 0 : rows.value();
  }

  @Override
  public String toString() {
    return "Pulsar[" + stored.getParent().getName() + "]";
  }
}
