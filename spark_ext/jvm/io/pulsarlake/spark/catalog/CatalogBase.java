package io.pulsarlake.spark.catalog;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Relation;
import org.apache.spark.sql.connector.catalog.RelationCatalog;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableInfo;
import org.apache.spark.sql.connector.catalog.TableSummary;
import org.apache.spark.sql.connector.catalog.View;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;

/**
 * What of the catalog has another form in other versions of Spark: here, catalogs of tables and views.
 *
 * <p>What is read is a view, and what is written a table.
 */
abstract class CatalogBase implements RelationCatalog, SupportsNamespaces {
  abstract PulsarCatalog.Read read(Identifier ident) throws NoSuchTableException;

  abstract Table written(Identifier ident) throws NoSuchTableException;

  abstract Table created(
      Identifier ident, StructType schema, Transform[] partitions, Map<String, String> given);

  abstract Identifier[] topics(String[] namespace) throws NoSuchNamespaceException;

  @Override
  public Relation loadRelation(Identifier ident) throws NoSuchTableException {
    PulsarCatalog.Read found = read(ident);
    if (found.rows() != null) {
      return found.rows();
    }
    StructType schema = StructType.fromDDL(found.view().schema());
    return new View.Builder()
        .withSchema(schema)
        .withProperties(found.view().properties())
        .withQueryText(found.view().text())
        .withCurrentCatalog(name())
        .withCurrentNamespace(defaultNamespace())
        .withSqlConfigs(Map.of())
        .withSchemaMode("COMPENSATION")
        .withQueryColumnNames(schema.fieldNames())
        .build();
  }

  @Override
  public Table loadTable(Identifier ident) throws NoSuchTableException {
    return written(ident);
  }

  @Override
  public Table createTable(Identifier ident, TableInfo info) {
    return created(ident, info.schema(), info.partitions(), info.properties());
  }

  @Override
  public Identifier[] listTables(String[] namespace) {
    return new Identifier[0];
  }

  @Override
  public Identifier[] listViews(String[] namespace) throws NoSuchNamespaceException {
    return topics(namespace);
  }

  @Override
  public TableSummary[] listRelationSummaries(String[] namespace) throws NoSuchNamespaceException {
    List<TableSummary> found = new ArrayList<>();
    for (Identifier topic : topics(namespace)) {
      found.add(TableSummary.of(topic, TableSummary.VIEW_TABLE_TYPE));
    }
    return found.toArray(TableSummary[]::new);
  }

  @Override
  public View createView(Identifier ident, View view) {
    throw PulsarCatalog.refusedHere("make views");
  }

  @Override
  public View replaceView(Identifier ident, View view) {
    throw PulsarCatalog.refusedHere("make views");
  }

  @Override
  public boolean dropView(Identifier ident) {
    return dropTable(ident);
  }

  @Override
  public void renameView(Identifier from, Identifier to) {
    throw PulsarCatalog.refusedHere("rename topics");
  }
}
