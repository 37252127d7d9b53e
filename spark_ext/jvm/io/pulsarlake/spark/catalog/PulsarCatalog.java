package io.pulsarlake.spark.catalog;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.pulsarlake.spark.planner.Planner;
import io.pulsarlake.spark.reads.ColdTable;
import io.pulsarlake.spark.reads.HotTable;
import io.pulsarlake.spark.writes.TopicSink;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.TreeSet;
import org.apache.spark.QueryContext;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.Relation;
import org.apache.spark.sql.connector.catalog.RelationCatalog;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.TableInfo;
import org.apache.spark.sql.connector.catalog.TableSummary;
import org.apache.spark.sql.connector.catalog.TableWritePrivilege;
import org.apache.spark.sql.connector.catalog.View;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;

/**
 * Pulsar's topics as tables of Spark: {@code spark.sql.catalog.<name>} names this class.
 *
 * <p>A topic is a <em>view</em>: the planner takes one snapshot of it and writes the text that
 * unites its cold rows (a table of this catalog whose name holds a version of the topic's Delta
 * table) with its hot rows (another one, whose name holds the snapshot). Spark asks once a statement, however many references it
 * has, so that all of them see the same rows.
 *
 * <p>Options: {@code config}, the settings file (absent: environment alone); {@code python}, the
 * interpreter (absent: spark.pyspark.python, then $PYSPARK_PYTHON, then python3). Both are what they
 * were when Spark started ({@link StartUp}).
 */
public final class PulsarCatalog implements RelationCatalog, SupportsNamespaces {
  /**
   * Behind a topic's name: what rows are written to, by name or by position. No topic's own name
   * has a slash.
   */
  public static final String SINK = "/sink";

  public static final String PAYLOAD = "/payload";

  private String name;
  private String config;
  private Planner planner;

  @Override
  public void initialize(String catalogName, CaseInsensitiveStringMap options) {
    name = catalogName;
    try {
      StartUp chosen = StartUp.of(catalogName, options);
      config = chosen.config();
      planner = Planner.of(chosen.python());
      planner.running();
    } catch (IllegalArgumentException refused) {
      throw unchecked(error(refused.getMessage()));
    } catch (Planner.GoneException failed) {
      okay(failed.answer());
    }
  }

  @Override
  public String name() {
    return name;
  }

  /** The settings file that it reads by; null: the environment alone. */
  public String config() {
    return config;
  }

  @Override
  public String[] defaultNamespace() {
    return new String[] {"public/default"};
  }

  // Relations

  @Override
  public Relation loadRelation(Identifier ident) throws NoSuchTableException {
    if (isDelta(ident)) {
      return sessionCatalog().loadTable(ident);
    }
    JsonNode found = askTable("load", ident);
    StructType schema = StructType.fromDDL(found.path("schema").asText());
    if (found.path("kind").asText().equals("hot")) {
      return new HotTable(
          found.path("name").asText(),
          schema,
          name + "." + ident,
          number(found.path("rows")),
          number(found.path("bytes")),
          request -> answer("plan", ident, request));
    }
    if (found.path("kind").asText().equals("cold")) {
      return ColdTable.of(name, ident, found);
    }
    return new View.Builder()
        .withSchema(schema)
        .withProperties(strings(found.path("properties")))
        .withQueryText(found.path("text").asText())
        .withCurrentCatalog(name)
        .withCurrentNamespace(defaultNamespace())
        .withSqlConfigs(Map.of())
        .withSchemaMode("COMPENSATION")
        .withQueryColumnNames(schema.fieldNames())
        .build();
  }

  /** The archive alone: versions are those of the topic's table. */
  @Override
  public Table loadTable(Identifier ident, String version) throws NoSuchTableException {
    if (isDelta(ident)) {
      return sessionCatalog().loadTable(ident, version);
    }
    try {
      return archive(ident, request().put("version", Long.parseLong(version)));
    } catch (NumberFormatException none) {
      throw unchecked(error("a version of a table is a number, not '" + version + "'"));
    }
  }

  @Override
  public Table loadTable(Identifier ident, long timestamp) throws NoSuchTableException {
    return isDelta(ident)
        ? sessionCatalog().loadTable(ident, timestamp)
        : archive(ident, request().put("at", timestamp));
  }

  @Override
  public Identifier[] listTables(String[] namespace) {
    return new Identifier[0];
  }

  @Override
  public Identifier[] listViews(String[] namespace) throws NoSuchNamespaceException {
    List<Identifier> topics = new ArrayList<>();
    for (JsonNode topic : askNamespace("topics", namespace)) {
      topics.add(Identifier.of(namespace, topic.asText()));
    }
    return topics.toArray(Identifier[]::new);
  }

  @Override
  public TableSummary[] listRelationSummaries(String[] namespace) throws NoSuchNamespaceException {
    List<TableSummary> topics = new ArrayList<>();
    for (Identifier topic : listViews(namespace)) {
      topics.add(TableSummary.of(topic, TableSummary.VIEW_TABLE_TYPE));
    }
    return topics.toArray(TableSummary[]::new);
  }

  // Namespaces

  @Override
  public String[][] listNamespaces() throws NoSuchNamespaceException {
    List<String[]> namespaces = new ArrayList<>();
    for (JsonNode namespace : askNamespace("namespaces", new String[0])) {
      namespaces.add(new String[] {namespace.asText()});
    }
    return namespaces.toArray(String[][]::new);
  }

  @Override
  public String[][] listNamespaces(String[] parent) throws NoSuchNamespaceException {
    if (parent.length == 0) {
      return listNamespaces();
    }
    loadNamespaceMetadata(parent);
    return new String[0][];
  }

  @Override
  public Map<String, String> loadNamespaceMetadata(String[] namespace)
      throws NoSuchNamespaceException {
    return strings(askNamespace("namespace", namespace));
  }

  // The planner

  /** What the planner answers about a table of this catalog, errors as exceptions. */
  public JsonNode answer(String operation, Identifier ident, ObjectNode request) {
    return okay(ask(request, operation, ident.namespace(), ident.name()));
  }

  /** What the planner answers about a stream with these options, as JSON. */
  public JsonNode stream(String operation, String options, ObjectNode request) {
    return okay(ask(request.put("options", options), operation, new String[0], null));
  }

  /** The error of a query that cannot be; for those that ask this catalog. */
  public static RuntimeException refused(String message) {
    return unchecked(error(message));
  }

  private Table archive(Identifier ident, ObjectNode request) throws NoSuchTableException {
    String cold = answer("archive", ident, request).path("name").asText();
    return (Table) loadRelation(Identifier.of(ident.namespace(), cold));
  }

  private JsonNode askTable(String operation, Identifier ident) throws NoSuchTableException {
    JsonNode answer = ask(operation, ident.namespace(), ident.name());
    // Of a sink, whose name is ours, Spark would tell that name: the planner tells the topic's.
    if (answer.path("error").path("kind").asText().equals("not_found") && !isSink(ident.name())) {
      throw new NoSuchTableException(ident);
    }
    return okay(answer);
  }

  private JsonNode askNamespace(String operation, String[] namespace)
      throws NoSuchNamespaceException {
    JsonNode answer = ask(operation, namespace, null);
    if (answer.path("error").path("kind").asText().equals("not_found")) {
      throw new NoSuchNamespaceException(namespace);
    }
    return okay(answer);
  }

  private JsonNode ask(String operation, String[] namespace, String topic) {
    return ask(request(), operation, namespace, topic);
  }

  private static ObjectNode request() {
    return Planner.JSON.createObjectNode();
  }

  private JsonNode ask(ObjectNode request, String operation, String[] namespace, String topic) {
    request.put("op", operation).put("catalog", name).put("config", config).put("name", topic);
    ArrayNode parts = request.putArray("namespace");
    for (String part : namespace) {
      parts.add(part);
    }
    return planner.call(request);
  }

  private static JsonNode okay(JsonNode answer) {
    if (answer.hasNonNull("error")) {
      JsonNode error = answer.path("error");
      // The whole error as data, for Python's spark_ext.session.errors: nobody parses the message.
      throw unchecked(
          error(
              error.path("message").asText(),
              new scala.collection.immutable.Map.Map1<>(
                  "pulsarLakeError", error.path("data").asText())));
    }
    return answer.path("ok");
  }

  private static AnalysisException error(String message) {
    return error(message, scala.collection.immutable.Map$.MODULE$.<String, String>empty());
  }

  private static AnalysisException error(
      String message, scala.collection.immutable.Map<String, String> parameters) {
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

  // Helpers

  /** {@code delta.`path`} while this is the current catalog: it is the session catalog's. */
  public static boolean isDelta(String[] namespace) {
    return namespace.length == 1 && namespace[0].equalsIgnoreCase("delta");
  }

  private static boolean isDelta(Identifier ident) {
    return isDelta(ident.namespace());
  }

  /** The names that the planner gives (relations.py). */
  private static boolean isSnapshot(Identifier ident) {
    return ident.name().contains("$hot@") || ident.name().contains("$cold@");
  }

  private static TableCatalog sessionCatalog() {
    return (TableCatalog)
        SparkSession.active().sessionState().catalogManager().v2SessionCatalog();
  }

  private static Map<String, String> strings(JsonNode object) {
    Map<String, String> map = new HashMap<>();
    object.properties().forEach(entry -> map.put(entry.getKey(), entry.getValue().asText()));
    return map;
  }

  /** Names of columns, without regard to case as in {@code equalsIgnoreCase}. */
  private static Set<String> names(JsonNode listed) {
    Set<String> names = new TreeSet<>(String.CASE_INSENSITIVE_ORDER);
    listed.forEach(one -> names.add(one.asText()));
    return names;
  }

  /** With what a column gets that a statement leaves out: an SQL expression by its name. */
  private static StructType withDefaults(StructType columns, JsonNode defaults) {
    StructType found = new StructType();
    for (StructField one : columns.fields()) {
      JsonNode value = defaults.path(one.name());
      if (value.isTextual()) {
        one = one.withCurrentDefaultValue(value.asText());
        one = one.withExistenceDefaultValue(value.asText());
      }
      found = found.add(one);
    }
    return found;
  }

  private static OptionalLong number(JsonNode value) {
    return value.isNumber() ? OptionalLong.of(value.asLong()) : OptionalLong.empty();
  }

  // Writing

  /**
   * A topic that rows are written to; reading goes through {@link #loadRelation}. Or the rows of a
   * snapshot, which Spark loads again where a DataFrame has become a temporary view.
   */
  @Override
  public Table loadTable(Identifier ident) throws NoSuchTableException {
    if (isDelta(ident)) {
      return sessionCatalog().loadTable(ident);
    }
    if (isSnapshot(ident)) {
      return (Table) loadRelation(ident);
    }
    JsonNode found = askTable("sink_table", ident);
    Identifier topic = Identifier.of(ident.namespace(), found.path("name").asText());
    return new TopicSink(
        name + "." + topic,
        withDefaults(StructType.fromDDL(found.path("schema").asText()), found.path("defaults")),
        found.path("payload").asInt(),
        names(found.path("omitted")),
        names(found.path("ignored")),
        false,
        (operation, request) -> answer(operation, topic, request));
  }

  /** A topic is a table for what writes, and a view for what reads. */
  @Override
  public boolean tableExists(Identifier ident) {
    try {
      return loadTable(ident) != null;
    } catch (NoSuchTableException none) {
      return false;
    }
  }

  /** Whether it is the name of what rows are written to. */
  public static boolean isSink(String name) {
    return name.endsWith(SINK) || name.endsWith(PAYLOAD);
  }

  /** What rows go to that name their topic themselves, or that options name one for. */
  public TopicSink anySink() {
    return new TopicSink(
        name,
        new StructType(),
        0,
        Set.of(),
        Set.of(),
        true,
        (operation, request) -> okay(ask(request, operation, new String[0], null)));
  }

  private static RuntimeException refusedHere(String what) {
    return unchecked(error("this catalog does not " + what + " (hint: use Pulsar's own tools)"));
  }

  @Override
  public Table loadTable(Identifier ident, Set<TableWritePrivilege> forWriting)
      throws NoSuchTableException {
    if (isDelta(ident)) {
      return sessionCatalog().loadTable(ident, forWriting);
    }
    return loadTable(ident);
  }

  @Override
  public Table createTable(Identifier ident, TableInfo info) {
    if (info.partitions().length > 0) {
      throw refused(
          "a topic is not partitioned by its columns (hint: TBLPROPERTIES ('partitions'='4');"
              + " rows go to partitions by their __key)");
    }
    ObjectNode properties = Planner.JSON.createObjectNode();
    info.properties().forEach(properties::put);
    ObjectNode request = request();
    request.put("columns", info.schema().json()).put("properties", properties.toString());
    JsonNode made = answer("sink_create", ident, request);
    return new TopicSink(
        name + "." + ident,
        info.schema(),
        info.schema().size(),
        Set.of(),
        names(made.path("ignored")),
        false,
        (operation, asked) -> answer(operation, ident, asked));
  }

  @Override
  public Table alterTable(Identifier ident, TableChange... changes) {
    throw refusedHere("change topics");
  }

  @Override
  public boolean dropTable(Identifier ident) {
    if (!tableExists(ident)) {
      return false;
    }
    answer("sink_drop", ident, request());
    return true;
  }

  @Override
  public void renameTable(Identifier from, Identifier to) {
    throw refusedHere("rename topics");
  }

  @Override
  public View createView(Identifier ident, View view) {
    throw refusedHere("make views");
  }

  @Override
  public View replaceView(Identifier ident, View view) {
    throw refusedHere("make views");
  }

  @Override
  public boolean dropView(Identifier ident) {
    return dropTable(ident);
  }

  @Override
  public void renameView(Identifier from, Identifier to) {
    throw refusedHere("rename topics");
  }

  @Override
  public void createNamespace(String[] namespace, Map<String, String> metadata) {
    throw refusedHere("make namespaces");
  }

  @Override
  public void alterNamespace(String[] namespace, NamespaceChange... changes) {
    throw refusedHere("change namespaces");
  }

  @Override
  public boolean dropNamespace(String[] namespace, boolean cascade) {
    throw refusedHere("delete namespaces");
  }
}
