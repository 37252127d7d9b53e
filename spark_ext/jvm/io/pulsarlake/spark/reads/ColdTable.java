package io.pulsarlake.spark.reads;

import io.pulsarlake.spark.Compat;
import io.pulsarlake.spark.planner.PlannerCatalog;
import java.util.Map;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.SchemaRelationProvider;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/**
 * One version of a topic's Delta table, as Spark's own Parquet scan: {@link ColdFiles} says which
 * files it reads.
 *
 * <p>Spark makes a scan of its own of what a provider of its first data source interface returns,
 * and of nothing that the second one offers: so the catalog's table names this class, which Spark
 * then asks for the relation. Options name a table of the catalog, never a path.
 */
public final class ColdTable implements SchemaRelationProvider {
  private static final String CATALOG = "catalog";
  private static final String NAMESPACE = "namespace";
  private static final String TABLE = "table";
  private static final String BYTES = "bytes";

  public static Table of(String catalog, Identifier ident, StructType schema, long bytes) {
    return Compat.provided(
        catalog,
        ident,
        schema,
        ColdTable.class.getName(),
        Map.of(
            CATALOG, catalog,
            NAMESPACE, String.join("/", ident.namespace()),
            TABLE, ident.name(),
            BYTES, String.valueOf(bytes)));
  }

  @Override
  public BaseRelation createRelation(
      SQLContext context,
      scala.collection.immutable.Map<String, String> options,
      StructType schema) {
    SparkSession session = (SparkSession) context.sparkSession();
    PlannerCatalog catalog = PlannerCatalog.of(session, options.apply(CATALOG));
    String namespace = options.apply(NAMESPACE);
    Identifier ident = Identifier.of(new String[] {namespace}, options.apply(TABLE));
    return new HadoopFsRelation(
        ColdFiles.ofTable(
            catalog.name() + "." + ident,
            Long.parseLong(options.apply(BYTES)),
            catalog.planner(),
            namespace,
            ident.name()),
        new StructType(),
        schema,
        Option.empty(),
        new ParquetFileFormat(),
        scala.collection.immutable.Map$.MODULE$.<String, String>empty(),
        session);
  }
}
