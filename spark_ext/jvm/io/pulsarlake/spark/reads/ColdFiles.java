package io.pulsarlake.spark.reads;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.pulsarlake.spark.planner.Planner;
import java.net.URI;
import java.net.URISyntaxException;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.BiFunction;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The files of one version of a table, as the planner knows them from the Delta log: nothing is
 * listed, and no log is read here.
 *
 * <p>A relation has one without filters, which knows no file. For a query {@code ColdScans} puts
 * one in its place that has asked the planner which files the query's filters leave.
 */
public final class ColdFiles implements FileIndex {
  private final String table;
  private final String identity;
  private final long bytes;
  private final BiFunction<String, ObjectNode, JsonNode> planner;
  private final String filters; // null: it has not asked yet
  private final JsonNode found;

  /**
   * @param table equal for the same version of the same table
   * @param bytes of all its files
   * @param planner answers an operation's request about this table
   */
  ColdFiles(String table, long bytes, BiFunction<String, ObjectNode, JsonNode> planner) {
    this(table, table, bytes, planner);
  }

  /**
   * @param name for people
   * @param identity equal for the same files
   */
  ColdFiles(
      String name, String identity, long bytes, BiFunction<String, ObjectNode, JsonNode> planner) {
    this(name, identity, bytes, planner, null, Planner.JSON.createObjectNode());
  }

  private ColdFiles(
      String table,
      String identity,
      long bytes,
      BiFunction<String, ObjectNode, JsonNode> planner,
      String filters,
      JsonNode found) {
    this.table = table;
    this.identity = identity;
    this.bytes = bytes;
    this.planner = planner;
    this.filters = filters;
    this.found = found;
  }

  /** The name of the table in its catalog. */
  public String table() {
    return table;
  }

  /** Whether it knows its files. */
  public boolean asked() {
    return filters != null;
  }

  /** Those that the filters leave, by their conjuncts. */
  public ColdFiles leftBy(Seq<Expression> conjuncts) {
    String wanted = PlanLeaves.filters(conjuncts);
    if (wanted.equals(filters)) {
      return this;
    }
    ObjectNode request = Planner.JSON.createObjectNode().put("predicates", wanted);
    JsonNode left = planner.apply("files", request);
    return new ColdFiles(
        table, identity, left.path("bytes").asLong(), planner, wanted, left);
  }

  /** What the log knows of all rows: {rows, columns: {name: [least, greatest]}}. */
  public JsonNode extremes(List<String> columns) {
    ObjectNode request = Planner.JSON.createObjectNode();
    columns.forEach(request.putArray("columns")::add);
    return planner.apply("extremes", request);
  }

  private List<FileStatus> statuses() {
    Path root = new Path(found.path("root").asText());
    JsonNode roots = found.path("roots"); // of files of several tables
    JsonNode paths = found.path("paths");
    List<FileStatus> files = new ArrayList<>(paths.size());
    for (int i = 0; i < paths.size(); i++) {
      long size = found.path("sizes").path(i).asLong();
      long time = found.path("times").path(i).asLong();
      Path parent = roots.has(i) ? new Path(roots.path(i).asText()) : root;
      Path path = new Path(parent, stored(paths.path(i).asText()));
      files.add(new FileStatus(size, false, 1, size, time, path));
    }
    return files;
  }

  /** A file's name in the storage, of its path as the log has it: percent-encoded. */
  private static String stored(String path) {
    try {
      String decoded = path.indexOf('%') < 0 ? null : new URI(path).getPath();
      return decoded == null ? path : decoded;
    } catch (URISyntaxException plain) {
      return path;
    }
  }

  private ColdFiles asked(Seq<Expression> conjuncts) {
    return asked() ? this : leftBy(conjuncts);
  }

  private static <T> Seq<T> seq(List<T> list) {
    return CollectionConverters.asScala(list).toSeq();
  }

  @Override
  public Seq<PartitionDirectory> listFiles(Seq<Expression> partition, Seq<Expression> data) {
    List<FileStatusWithMetadata> files = new ArrayList<>();
    for (FileStatus file : asked(data).statuses()) {
      files.add(new FileStatusWithMetadata(file, FileStatusWithMetadata.apply$default$2()));
    }
    return seq(List.of(new PartitionDirectory(InternalRow.empty(), seq(files))));
  }

  /** As the planner names them: for {@code spark_ext.planner.query_plans}. */
  public String paths() {
    return found.path("paths").toString();
  }

  @Override
  public String[] inputFiles() {
    List<FileStatus> files = asked(seq(List.<Expression>of())).statuses();
    return files.stream().map(file -> file.getPath().toString()).toArray(String[]::new);
  }

  @Override
  public long sizeInBytes() {
    return bytes;
  }

  @Override
  public Seq<Path> rootPaths() {
    return seq(asked() ? List.of(new Path(found.path("root").asText())) : List.<Path>of());
  }

  @Override
  public void refresh() {}

  @Override
  public StructType partitionSchema() {
    return new StructType();
  }

  /** By what it reads: Spark reads once for two equal sides of a join. */
  @Override
  public boolean equals(Object other) {
    return other instanceof ColdFiles files
        && identity.equals(files.identity)
        && Objects.equals(filters, files.filters);
  }

  @Override
  public int hashCode() {
    return Objects.hash(identity, filters);
  }

  @Override
  public String toString() {
    return table;
  }
}
