package io.pulsarlake.spark.catalog;

import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A catalog's settings file and interpreter, as whoever started Spark chose them.
 *
 * <p>A session may only repeat that choice: the settings hold an identity and say where it is
 * shown, and the interpreter is a program that is run, while anybody who can run SQL can say
 * {@code SET}.
 *
 * @param config the settings file; null: the environment alone
 */
public record StartUp(String config, String python) {
  private static final Set<String> ALLOWED = ConcurrentHashMap.newKeySet();

  /**
   * Lets sessions name these settings files as well: for the Python program that runs this JVM.
   *
   * <p>A list, because SQL's {@code java_method} hands over nothing but texts and numbers.
   */
  public static void allow(List<String> files) {
    ALLOWED.addAll(files);
  }

  /**
   * What the catalog has; {@code options} are those of the session.
   *
   * @throws IllegalArgumentException where the session chose something itself
   */
  static StartUp of(String catalog, CaseInsensitiveStringMap options) {
    SparkConf started = SparkEnv.get().conf();
    String prefix = "spark.sql.catalog." + catalog;
    if (!PulsarCatalog.class.getName().equals(started.get(prefix, ""))) {
      throw new IllegalArgumentException(
          "the catalog " + catalog + " was not there when Spark started: a session cannot add one"
              + " (hint: set " + prefix + " and its options before Spark starts)");
    }
    String config = started.get(prefix + ".config", null);
    String asked = options.get("config");
    if (asked != null && ALLOWED.contains(asked)) {
      config = asked;
    }
    String python = started.get(prefix + ".python", null);
    require(config, asked, prefix + ".config");
    require(python, options.get("python"), prefix + ".python");
    return new StartUp(config, python != null ? python : interpreter(started));
  }

  private static void require(String chosen, String asked, String key) {
    if (asked != null && !Objects.equals(chosen, asked)) {
      throw new IllegalArgumentException(
          key + " cannot be set in a session (hint: set it before Spark starts)");
    }
  }

  private static String interpreter(SparkConf started) {
    String fromSpark = started.get("spark.pyspark.python", "");
    String fromShell = System.getenv().getOrDefault("PYSPARK_PYTHON", "python3");
    return fromSpark.isEmpty() ? fromShell : fromSpark;
  }
}
