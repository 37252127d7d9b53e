package io.pulsarlake.spark.reads;

import com.fasterxml.jackson.core.JsonProcessingException;
import io.pulsarlake.spark.planner.Messages.Aggregate;
import io.pulsarlake.spark.planner.Messages.ColdPlan;
import io.pulsarlake.spark.planner.Messages.ColdRead;
import io.pulsarlake.spark.planner.Messages.MicroBatch;
import io.pulsarlake.spark.planner.Messages.PlanReads;
import io.pulsarlake.spark.planner.Messages.TableFiles;
import io.pulsarlake.spark.planner.Planner;
import io.pulsarlake.spark.planner.PlannerClient;
import java.net.URI;
import java.net.URISyntaxException;
import java.util.ArrayList;
import java.util.List;
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
 * <p>A relation has one without filters, which knows no file. For a query {@code TopicScans} puts
 * one in its place that has asked the planner which files the query's filters leave.
 */
public final class ColdFiles implements FileIndex {
  private final String name;
  private final long bytes;
  private final PlannerClient planner;
  private final ColdRead read;
  private final ColdPlan plan; // null: it has not asked yet

  private ColdFiles(
      String name, long bytes, PlannerClient planner, ColdRead read, ColdPlan plan) {
    this.name = name;
    this.bytes = bytes;
    this.planner = planner;
    this.read = read;
    this.plan = plan;
  }

  /** All files of a table of the catalog. */
  static ColdFiles ofTable(
      String name, long bytes, PlannerClient planner, String namespace, String table) {
    ColdRead all = new ColdRead(namespace, table, null, List.of(), List.of());
    return new ColdFiles(name, bytes, planner, all, null);
  }

  /** All files of a part of a micro-batch. */
  static ColdFiles ofBatch(
      String name, long bytes, PlannerClient planner, MicroBatch batch, String part) {
    ColdRead all = new ColdRead("", part, batch, List.of(), List.of());
    return new ColdFiles(name, bytes, planner, all, null);
  }

  /** The name of the table in its catalog. */
  public String table() {
    return name;
  }

  /** Whether it knows its files. */
  public boolean asked() {
    return plan != null;
  }

  /** What the planner is asked for. */
  public ColdRead read() {
    return read;
  }

  public PlannerClient planner() {
    return planner;
  }

  /** What is to be asked for these conjuncts of a filter, of which nothing but these is needed. */
  public ColdRead read(Seq<Expression> conjuncts, List<Aggregate> aggregates) {
    return new ColdRead(
        read.namespace(), read.name(), read.batch(), Filters.of(conjuncts), aggregates);
  }

  /** Those that the planner has named. */
  public ColdFiles planned(ColdRead asked, ColdPlan answer) {
    return new ColdFiles(name, answer.bytes(), planner, asked, answer);
  }

  private ColdFiles asked(Seq<Expression> conjuncts) {
    if (asked()) {
      return this;
    }
    ColdRead wanted = read(conjuncts, List.of());
    PlanReads question = new PlanReads(List.of(wanted), List.of(), 1);
    return planned(wanted, planner.ask(question).cold().get(0));
  }

  private List<FileStatus> statuses() {
    List<FileStatus> files = new ArrayList<>();
    for (TableFiles table : plan.tables()) {
      Path root = new Path(table.root());
      for (int i = 0; i < table.paths().size(); i++) {
        long size = table.sizes().get(i);
        Path path = new Path(root, stored(table.paths().get(i)));
        files.add(new FileStatus(size, false, 1, size, table.times().get(i), path));
      }
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

  private static <T> Seq<T> seq(List<T> list) {
    return CollectionConverters.asScala(list).toSeq();
  }

  @Override
  public Seq<PartitionDirectory> listFiles(Seq<Expression> partition, Seq<Expression> data) {
    var none = FileStatusWithMetadata.apply$default$2();
    List<FileStatusWithMetadata> files =
        asked(data).statuses().stream()
            .map(file -> new FileStatusWithMetadata(file, none))
            .toList();
    return seq(List.of(new PartitionDirectory(InternalRow.empty(), seq(files))));
  }

  /** As the Delta log has them, as JSON: for {@code spark_ext.planner.query_plans}. */
  public String paths() throws JsonProcessingException {
    return Planner.JSON.writeValueAsString(
        plan.tables().stream().flatMap(one -> one.paths().stream()).toList());
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
    return seq(
        asked()
            ? plan.tables().stream().map(one -> new Path(one.root())).toList()
            : List.<Path>of());
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
        && planner.equals(files.planner)
        && read.equals(files.read)
        && asked() == files.asked();
  }

  @Override
  public int hashCode() {
    return read.hashCode();
  }

  @Override
  public String toString() {
    return name;
  }
}
