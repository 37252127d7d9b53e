package io.pulsarlake.spark.reads;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.pulsarlake.spark.catalog.PulsarCatalog;
import io.pulsarlake.spark.planner.Planner;
import java.util.Locale;
import java.util.Map;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.streaming.Source;
import org.apache.spark.sql.sources.StreamSourceProvider;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.Tuple2;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Makes the sources of streams; {@code StreamNames} writes their options, and their columns as the
 * schema: a query's batches have those that its DataFrame had when it was made.
 */
public final class TopicStreams implements StreamSourceProvider {
  /** The option that names the catalog whose settings are used. */
  public static final String CATALOG = "catalog";

  @Override
  public Tuple2<String, StructType> sourceSchema(
      SQLContext context,
      Option<StructType> given,
      String provider,
      scala.collection.immutable.Map<String, String> options) {
    return new Tuple2<>("pulsar", given.get());
  }

  @Override
  public Source createSource(
      SQLContext context,
      String metadataPath,
      Option<StructType> given,
      String provider,
      scala.collection.immutable.Map<String, String> options) {
    SparkSession session = (SparkSession) context.sparkSession();
    Planned planned = new Planned(session, CollectionConverters.asJava(options));
    return new TopicStream(session, given.get(), metadataPath, planned.name(), planned::answer);
  }

  /** The columns of a stream now. */
  public static StructType columns(SparkSession session, Map<String, String> options) {
    ObjectNode request = Planner.JSON.createObjectNode();
    JsonNode answer = new Planned(session, options).answer("stream_columns", request);
    return StructType.fromDDL(answer.path("schema").asText());
  }

  /** Asks the planner about one stream. */
  private static final class Planned {
    private final PulsarCatalog catalog;
    private final String options;

    private Planned(SparkSession session, Map<String, String> options) {
      ObjectNode given = Planner.JSON.createObjectNode();
      String name = "pulsar";
      for (Map.Entry<String, String> one : options.entrySet()) {
        if (one.getKey().toLowerCase(Locale.ROOT).equals(CATALOG)) {
          name = one.getValue();
        } else {
          given.put(one.getKey(), one.getValue());
        }
      }
      if (!(session.sessionState().catalogManager().catalog(name) instanceof PulsarCatalog one)) {
        throw PulsarCatalog.refused("the catalog " + name + " has no topics of Pulsar");
      }
      this.catalog = one;
      this.options = given.toString();
    }

    private String name() {
      return catalog.name() + options;
    }

    private JsonNode answer(String operation, ObjectNode request) {
      return catalog.stream(operation, options, request);
    }
  }
}
