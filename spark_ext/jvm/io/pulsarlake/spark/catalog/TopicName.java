package io.pulsarlake.spark.catalog;

import java.util.List;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** A topic of one of our catalogs, as a query names it. */
public record TopicName(PulsarCatalog catalog, String[] namespace, String name) {
  /** What a relation that is not resolved names; null: nothing of ours. */
  public static TopicName of(SparkSession session, UnresolvedRelation relation) {
    return session.sessionState().catalog().isTempView(relation.multipartIdentifier())
        ? null
        : of(session, relation.multipartIdentifier());
  }

  /** What a name stands for that is no temporary view's; null: nothing of ours. */
  public static TopicName of(SparkSession session, Seq<String> name) {
    List<String> parts = List.copyOf(CollectionConverters.asJava(name));
    CatalogManager manager = session.sessionState().catalogManager();
    CatalogPlugin catalog = manager.currentCatalog();
    String[] namespace = manager.currentNamespace();
    if (parts.size() > 1 && manager.isCatalogRegistered(parts.get(0))) {
      catalog = manager.catalog(parts.get(0));
      namespace = catalog.defaultNamespace();
      parts = parts.subList(1, parts.size());
    }
    if (!(catalog instanceof PulsarCatalog ours)) {
      return null;
    }
    if (parts.size() > 1) {
      namespace = parts.subList(0, parts.size() - 1).toArray(String[]::new);
    }
    return PulsarCatalog.isDelta(namespace)
        ? null
        : new TopicName(ours, namespace, parts.get(parts.size() - 1));
  }
}
