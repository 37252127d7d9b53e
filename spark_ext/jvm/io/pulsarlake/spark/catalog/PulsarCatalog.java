package io.pulsarlake.spark.catalog;

import io.pulsarlake.spark.planner.Errors;
import io.pulsarlake.spark.planner.Messages.CreateTopic;
import io.pulsarlake.spark.planner.Messages.DescribeSink;
import io.pulsarlake.spark.planner.Messages.DropTopic;
import io.pulsarlake.spark.planner.Messages.FindNamespace;
import io.pulsarlake.spark.planner.Messages.ListNamespaces;
import io.pulsarlake.spark.planner.Messages.ListTopics;
import io.pulsarlake.spark.planner.Messages.LoadFormat;
import io.pulsarlake.spark.planner.Messages.LoadRelation;
import io.pulsarlake.spark.planner.Messages.LoadVersion;
import io.pulsarlake.spark.planner.Messages.Question;
import io.pulsarlake.spark.planner.Messages.Relation;
import io.pulsarlake.spark.planner.Messages.Sink;
import io.pulsarlake.spark.planner.Messages.SnapshotTable;
import io.pulsarlake.spark.planner.Messages.TopicView;
import io.pulsarlake.spark.planner.Planner;
import io.pulsarlake.spark.planner.PlannerCatalog;
import io.pulsarlake.spark.planner.PlannerClient;
import io.pulsarlake.spark.reads.ColdTable;
import io.pulsarlake.spark.reads.HotTable;
import io.pulsarlake.spark.writes.TopicSink;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.TableWritePrivilege;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Pulsar's topics as tables of Spark: {@code spark.sql.catalog.<name>} names this class.
 *
 * <p>A topic is a <em>view</em>: the planner takes one snapshot of it and writes the text that
 * unites its cold rows (a table of this catalog whose name holds a version of the topic's Delta
 * table) with its hot rows (another one, whose name holds the snapshot). Spark asks once a statement,
 * however many references it has, so that all of them see the same rows. It asks for the two tables
 * next, which the planner has described with the view.
 *
 * <p>Options: {@code config}, the settings file (absent: environment alone); {@code python}, the
 * interpreter (absent: spark.pyspark.python, then $PYSPARK_PYTHON, then python3). Both are what they
 * were when Spark started ({@link StartUp}).
 */
public final class PulsarCatalog extends CatalogBase implements PlannerCatalog {
  /**
   * Behind a topic's name: what rows are written to, by name or by position. No topic's own name
   * has a slash.
   */
  public static final String SINK = "/sink";

  public static final String PAYLOAD = "/payload";

  /** Behind the names and values of options: what {@code format("pulsar")} reads with them. */
  private static final String OPTIONS = "/options";

  private static final int KEPT_TABLES = 128;

  /** Tables that the texts of views name, the newest ones. A name may hold a whole snapshot. */
  private final Map<Identifier, SnapshotTable> kept =
      Collections.synchronizedMap(
          new LinkedHashMap<>() {
            @Override
            protected boolean removeEldestEntry(Map.Entry<Identifier, SnapshotTable> eldest) {
              return size() > KEPT_TABLES;
            }
          });

  private String name;
  private PlannerClient planner;

  @Override
  public void initialize(String catalogName, CaseInsensitiveStringMap options) {
    name = catalogName;
    try {
      StartUp chosen = StartUp.of(catalogName, options);
      planner = new PlannerClient(Planner.of(chosen.python()), chosen.config());
      planner.planner().start();
    } catch (IllegalArgumentException refused) {
      throw Errors.refused(refused.getMessage());
    }
  }

  @Override
  public String name() {
    return name;
  }

  /** The settings file that it reads by; null: the environment alone. */
  public String config() {
    return planner.config();
  }

  @Override
  public PlannerClient planner() {
    return planner;
  }

  @Override
  public String[] defaultNamespace() {
    return new String[] {"public/default"};
  }

  // Relations

  /** What is read by a name: a table's rows, or (null) a view of a topic. */
  record Read(Table rows, TopicView view) {}

  @Override
  Read read(Identifier ident) throws NoSuchTableException {
    if (isDelta(ident)) {
      return new Read(sessionCatalog().loadTable(ident), null);
    }
    SnapshotTable known = kept.get(ident);
    if (known != null) {
      return new Read(rows(ident.namespace(), known), null);
    }
    if (ident.name().equals(OPTIONS)) {
      return view(planner.ask(new LoadFormat(name, options(ident.namespace()))));
    }
    Relation found = planner.find(new LoadRelation(name, joined(ident.namespace()), ident.name()));
    if (found == null) {
      throw new NoSuchTableException(ident);
    }
    return found.view() == null
        ? new Read(rows(ident.namespace(), found.table()), null)
        : view(found.view());
  }

  private Read view(TopicView view) {
    String[] namespace = {view.namespace()};
    for (SnapshotTable table : view.tables()) {
      kept.put(Identifier.of(namespace, table.name()), table);
    }
    return new Read(null, view);
  }

  /** The name of what {@code format("pulsar")} reads by a catalog with these options. */
  public static List<String> named(String catalog, Map<String, String> options) {
    List<String> parts = new ArrayList<>();
    parts.add(catalog);
    options.forEach((key, value) -> parts.addAll(List.of(key, value)));
    parts.add(OPTIONS);
    return parts;
  }

  private static Map<String, String> options(String[] parts) {
    Map<String, String> options = new LinkedHashMap<>();
    for (int i = 0; i + 1 < parts.length; i += 2) {
      options.put(parts[i], parts[i + 1]);
    }
    return options;
  }

  private Table rows(String[] namespace, SnapshotTable found) {
    Identifier ident = Identifier.of(namespace, found.name());
    StructType schema = StructType.fromDDL(found.schema());
    return found.cold()
        ? ColdTable.of(name, ident, schema, found.bytes())
        : new HotTable(
            found.title(),
            schema,
            found.rows(),
            found.bytes(),
            planner,
            joined(namespace),
            found.name());
  }

  /** The archive alone: versions are those of the topic's table. */
  @Override
  public Table loadTable(Identifier ident, String version) throws NoSuchTableException {
    if (isDelta(ident)) {
      return sessionCatalog().loadTable(ident, version);
    }
    try {
      return archive(ident, Long.valueOf(version), null);
    } catch (NumberFormatException none) {
      throw Errors.refused("a version of a table is a number, not '" + version + "'");
    }
  }

  @Override
  public Table loadTable(Identifier ident, long timestamp) throws NoSuchTableException {
    return isDelta(ident)
        ? sessionCatalog().loadTable(ident, timestamp)
        : archive(ident, null, timestamp);
  }

  private Table archive(Identifier ident, Long version, Long at) {
    String[] namespace = ident.namespace();
    return rows(
        namespace, planner.ask(new LoadVersion(joined(namespace), ident.name(), version, at)));
  }

  @Override
  Identifier[] topics(String[] namespace) throws NoSuchNamespaceException {
    List<String> names = found(new ListTopics(joined(namespace)), namespace).names();
    return names.stream().map(one -> Identifier.of(namespace, one)).toArray(Identifier[]::new);
  }

  // Namespaces

  @Override
  public String[][] listNamespaces() {
    List<String> names = planner.ask(new ListNamespaces()).names();
    return names.stream().map(one -> new String[] {one}).toArray(String[][]::new);
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
    found(new FindNamespace(joined(namespace)), namespace);
    return Map.of();
  }

  private <A> A found(Question<A> question, String[] namespace) throws NoSuchNamespaceException {
    A answer = planner.find(question);
    if (answer == null) {
      throw new NoSuchNamespaceException(namespace);
    }
    return answer;
  }

  // Helpers

  /** {@code delta.`path`} while this is the current catalog: it is the session catalog's. */
  public static boolean isDelta(String[] namespace) {
    return namespace.length == 1 && namespace[0].equalsIgnoreCase("delta");
  }

  private static boolean isDelta(Identifier ident) {
    return isDelta(ident.namespace());
  }

  private static String joined(String[] namespace) {
    return String.join("/", namespace);
  }

  /** The names that the planner gives (relations.py). */
  private static boolean isSnapshot(Identifier ident) {
    return ident.name().contains("$hot@") || ident.name().contains("$cold@");
  }

  private static TableCatalog sessionCatalog() {
    return (TableCatalog)
        SparkSession.active().sessionState().catalogManager().v2SessionCatalog();
  }

  /** Names of columns, without regard to case as in {@code equalsIgnoreCase}. */
  private static Set<String> names(List<String> listed) {
    Set<String> names = new TreeSet<>(String.CASE_INSENSITIVE_ORDER);
    names.addAll(listed);
    return names;
  }

  /** With what a column gets that a statement leaves out: an SQL expression by its name. */
  private static StructType withDefaults(StructType columns, Map<String, String> defaults) {
    StructType found = new StructType();
    for (StructField one : columns.fields()) {
      String value = defaults.get(one.name());
      if (value != null) {
        one = one.withCurrentDefaultValue(value).withExistenceDefaultValue(value);
      }
      found = found.add(one);
    }
    return found;
  }

  // Writing

  /**
   * A topic that rows are written to; reading goes through {@link #read}. Or the rows of a snapshot,
   * which Spark loads again where a DataFrame has become a temporary view.
   */
  @Override
  Table written(Identifier ident) throws NoSuchTableException {
    if (isDelta(ident)) {
      return sessionCatalog().loadTable(ident);
    }
    if (isSnapshot(ident)) {
      return read(ident).rows();
    }
    DescribeSink question = new DescribeSink(joined(ident.namespace()), ident.name());
    // Of a sink, whose name is ours, Spark would tell that name: the planner tells the topic's.
    Sink found = isSink(ident.name()) ? planner.ask(question) : planner.find(question);
    if (found == null) {
      throw new NoSuchTableException(ident);
    }
    return new TopicSink(
        name + "." + Identifier.of(ident.namespace(), found.name()),
        withDefaults(StructType.fromDDL(found.schema()), found.defaults()),
        (int) found.payload(),
        names(found.omitted()),
        names(found.ignored()),
        false,
        planner,
        joined(ident.namespace()) + "/" + found.name());
  }

  /** A topic is a table for what writes, and a view for what reads. */
  @Override
  public boolean tableExists(Identifier ident) {
    try {
      return written(ident) != null;
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
    return new TopicSink(name, new StructType(), 0, Set.of(), Set.of(), true, planner, null);
  }

  static RuntimeException refusedHere(String what) {
    return Errors.refused("this catalog does not " + what + " (hint: use Pulsar's own tools)");
  }

  @Override
  public Table loadTable(Identifier ident, Set<TableWritePrivilege> forWriting)
      throws NoSuchTableException {
    if (isDelta(ident)) {
      return sessionCatalog().loadTable(ident, forWriting);
    }
    return written(ident);
  }

  @Override
  Table created(
      Identifier ident, StructType schema, Transform[] partitions, Map<String, String> given) {
    if (partitions.length > 0) {
      throw Errors.refused(
          "a topic is not partitioned by its columns (hint: TBLPROPERTIES ('partitions'='4');"
              + " rows go to partitions by their __key)");
    }
    String namespace = joined(ident.namespace());
    planner.ask(new CreateTopic(namespace, ident.name(), schema.json(), given));
    return new TopicSink(
        name + "." + ident,
        schema,
        schema.size(),
        Set.of(),
        Set.of(),
        false,
        planner,
        namespace + "/" + ident.name());
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
    planner.ask(new DropTopic(joined(ident.namespace()), ident.name()));
    return true;
  }

  @Override
  public void renameTable(Identifier from, Identifier to) {
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
