package io.pulsarlake.spark.reads;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.pulsarlake.spark.catalog.PulsarCatalog;
import io.pulsarlake.spark.planner.Planner;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.function.BiFunction;
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
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager$;
import org.apache.spark.sql.functions;
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
  private final Path stored;
  private final String identity;
  private final BiFunction<String, ObjectNode, JsonNode> planner;
  private JsonNode bounds; // "start", "ending" or null; once they are known
  private String latest; // what there was at the last look
  private String until; // Trigger.AvailableNow ends there
  private String quietAt; // nothing lay behind it at the last look
  private long quietSince; // by System.nanoTime, as the next
  private ObjectNode measuredAt;
  private long measuredSince;
  private Map<String, String> measured;
  private long given = System.nanoTime(); // when the last batch was begun, or the query
  private long batches;
  private boolean looked; // how far a batch goes was asked for, since the query was started
  private final Map<String, LongAccumulator> read = new HashMap<>(); // of this trigger, by tier

  /**
   * @param metadataPath where the stream may keep what it is to know after a restart
   * @param identity equal for streams of the same topics of the same catalog
   * @param planner answers an operation's request about this stream
   */
  TopicStream(
      SparkSession session,
      StructType type,
      String metadataPath,
      String identity,
      BiFunction<String, ObjectNode, JsonNode> planner) {
    this.session = session;
    this.type = type;
    this.stored = new Path(metadataPath, "bounds");
    this.identity = identity;
    // The planner knows a query's stream by its place in the checkpoint.
    this.planner =
        (operation, request) -> planner.apply(operation, request.put("place", metadataPath));
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
    ObjectNode request = Planner.JSON.createObjectNode().put("start", start);
    request.put("ending", bounds().path("ending").asText(null)).put("until", until);
    request.put("waited", (System.nanoTime() - given) / 1e9);
    JsonNode answer = planner.apply("stream_next", request);
    latest = answer.path("latest").asText();
    String next = answer.path("next").asText();
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
    ObjectNode request = Planner.JSON.createObjectNode();
    until = planner.apply("stream_end", request).path("latest").asText();
  }

  private String start() {
    return bounds().path("start").asText();
  }

  /** Where the first batch begins and the last one ends: found once, and kept with the checkpoint. */
  private JsonNode bounds() {
    if (bounds == null) {
      CheckpointFileManager files =
          CheckpointFileManager$.MODULE$.create(
              stored.getParent(), session.sessionState().newHadoopConf());
      try {
        if (files.exists(stored)) {
          try (InputStream in = files.open(stored)) {
            bounds = Planner.JSON.readTree(in);
          }
        } else {
          JsonNode found = planner.apply("stream_bounds", Planner.JSON.createObjectNode());
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
    ObjectNode range = Planner.JSON.createObjectNode();
    range.put("start", from.isEmpty() ? start() : from.get().json()).put("end", to.json());
    read.clear();
    JsonNode batch;
    try {
      ObjectNode request = range.deepCopy().put("columns", type.json()).put("began", start());
      batch = planner.apply("stream_batch", request);
    } catch (Exception failed) {
      if (looked) {
        throw failed;
      }
      // Spark asks for the last batch when a query starts again, and runs it only if it was not
      // committed: what is gone of one that was is nobody's loss.
      return streaming(
          new HotRows(
              session.sqlContext(),
              type,
              toString(),
              0,
              counter("bookkeeper"),
              request -> {
                throw PulsarCatalog.unchecked(failed);
              }));
    }
    range.set("snapshots", batch.path("snapshots")); // Both halves are of these.
    String name = batch.path("name").asText() + ", batch " + batches++;
    Dataset<Row> rows = null;
    for (JsonNode part : batch.path("files")) {
      rows = with(rows, files(name, range.deepCopy().put("part", part.path("part").asText()), part));
    }
    for (Map.Entry<String, JsonNode> one : batch.path("hot").properties()) {
      rows = with(rows, hot(name, range, one.getKey(), one.getValue().asLong()));
    }
    return rows;
  }

  private Dataset<Row> files(String name, ObjectNode range, JsonNode part) {
    ColdFiles files =
        new ColdFiles(
            name + " (" + part.path("part").asText() + ")",
            identity + range,
            part.path("bytes").asLong(),
            (operation, request) -> planner.apply("stream_" + operation, request.setAll(range)));
    Dataset<Row> rows =
        streaming(
            new HadoopFsRelation(
                files,
                new StructType(),
                type,
                Option.empty(),
                new CountedParquet(counter("parquet")),
                scala.collection.immutable.Map$.MODULE$.<String, String>empty(),
                session));
    String where = part.path("where").asText("");
    return where.isEmpty() ? rows : rows.filter(functions.expr(where));
  }

  private Dataset<Row> hot(String name, ObjectNode range, String tier, long bytes) {
    ObjectNode part = range.deepCopy().put("tier", tier);
    return streaming(
        new HotRows(
            session.sqlContext(),
            type,
            name + " (" + tier + ")",
            bytes,
            counter(tier),
            request -> planner.apply("stream_plan", request.setAll(part))));
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
    ObjectNode request = Planner.JSON.createObjectNode();
    request.put("at", consumed.map(one -> one.json()).orElse(null)).put("latest", latest);
    if (!request.equals(measuredAt) || System.nanoTime() - measuredSince >= METRICS_NANOS) {
      Map<String, String> found = new HashMap<>();
      planner
          .apply("stream_metrics", request.deepCopy())
          .properties()
          .forEach(one -> found.put(one.getKey(), one.getValue().asText()));
      measuredAt = request;
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
