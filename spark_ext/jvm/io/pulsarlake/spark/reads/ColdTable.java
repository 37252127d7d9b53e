package io.pulsarlake.spark.reads;

import com.fasterxml.jackson.databind.JsonNode;
import io.pulsarlake.spark.catalog.PulsarCatalog;
import java.util.Map;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.DelegatingTable;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableInfo;
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

  public static Table of(String catalog, Identifier ident, JsonNode found) {
    return new DelegatingTable(
        new TableInfo.Builder()
            .withSchema(StructType.fromDDL(found.path("schema").asText()))
            .withProperties(
                Map.of(
                    CATALOG, catalog,
                    NAMESPACE, String.join("/", ident.namespace()),
                    TABLE, ident.name(),
                    BYTES, found.path("bytes").asText()))
            .withProvider(ColdTable.class.getName()) // A property as well: after the others.
            .build(),
        catalog + "." + ident);
  }

  @Override
  public BaseRelation createRelation(
      SQLContext context,
      scala.collection.immutable.Map<String, String> options,
      StructType schema) {
    SparkSession session = (SparkSession) context.sparkSession();
    PulsarCatalog catalog =
        (PulsarCatalog) session.sessionState().catalogManager().catalog(options.apply(CATALOG));
    Identifier ident =
        Identifier.of(new String[] {options.apply(NAMESPACE)}, options.apply(TABLE));
    return new HadoopFsRelation(
        new ColdFiles(
            catalog.name() + "." + ident,
            Long.parseLong(options.apply(BYTES)),
            (operation, request) -> catalog.answer(operation, ident, request)),
        new StructType(),
        schema,
        Option.empty(),
        new ParquetFileFormat(),
        scala.collection.immutable.Map$.MODULE$.<String, String>empty(),
        session);
  }
}
