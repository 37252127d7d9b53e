package io.pulsarlake.spark.reads;

import io.pulsarlake.spark.planner.Messages.DescribeStream;
import io.pulsarlake.spark.planner.Messages.Stream;
import io.pulsarlake.spark.planner.PlannerCatalog;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.streaming.Source;
import org.apache.spark.sql.sources.StreamSourceProvider;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.Tuple2;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Makes the sources of streams; {@code ReadNames} writes their options, and their columns as the
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
    Map<String, String> asked = CollectionConverters.asJava(options);
    return new TopicStream(
        session, given.get(), metadataPath, catalog(session, asked).planner(), streamed(asked));
  }

  /** The columns of a stream now. */
  public static StructType columns(SparkSession session, Map<String, String> options) {
    DescribeStream question = new DescribeStream(new Stream(streamed(options), ""));
    return StructType.fromDDL(catalog(session, options).planner().ask(question).schema());
  }

  /** The catalog that the options name, by whose settings topics are read. */
  public static PlannerCatalog catalog(SparkSession session, Map<String, String> options) {
    String name = "pulsar";
    for (Map.Entry<String, String> one : options.entrySet()) {
      name = one.getKey().equalsIgnoreCase(CATALOG) ? one.getValue() : name;
    }
    return PlannerCatalog.of(session, name);
  }

  /** The options for the planner. */
  public static Map<String, String> streamed(Map<String, String> options) {
    Map<String, String> streamed = new TreeMap<>(options);
    streamed.keySet().removeIf(one -> one.equalsIgnoreCase(CATALOG));
    return streamed;
  }
}
