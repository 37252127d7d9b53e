package io.pulsarlake.spark.planner;

import com.fasterxml.jackson.core.JsonProcessingException;
import io.pulsarlake.spark.planner.Messages.Failure;
import org.apache.spark.QueryContext;
import org.apache.spark.sql.AnalysisException;
import scala.Option;
import scala.collection.immutable.Map;

/** Errors of queries, as Spark's clients show them. */
public final class Errors {
  /** Where {@code spark_ext.session.errors} finds an error as data: nobody parses the message. */
  private static final String PARAMETER = "pulsarLakeError";

  private Errors() {}

  /** The error of a query that cannot be. */
  public static RuntimeException refused(String message) {
    return unchecked(error(message, scala.collection.immutable.Map$.MODULE$.<String, String>empty()));
  }

  static RuntimeException of(Failure failure) {
    try {
      String data = Planner.JSON.writeValueAsString(failure.error());
      return unchecked(error(failure.message(), new Map.Map1<>(PARAMETER, data)));
    } catch (JsonProcessingException never) {
      throw new IllegalStateException(never);
    }
  }

  private static AnalysisException error(String message, Map<String, String> parameters) {
    return new AnalysisException(
        message,
        Option.empty(),
        Option.empty(),
        Option.empty(),
        Option.empty(),
        parameters,
        new QueryContext[0]);
  }

  /** Spark's interfaces are Scala's: any exception may leave them, and clients show this kind. */
  @SuppressWarnings("unchecked")
  public static <E extends Throwable> RuntimeException unchecked(Throwable error) throws E {
    throw (E) error;
  }
}
