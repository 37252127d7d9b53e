package io.pulsarlake.spark.planner;

import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;

/** A catalog whose tables are topics. */
public interface PlannerCatalog extends CatalogPlugin {
  /** Asks by the settings of the catalog. */
  PlannerClient planner();

  /** The session's catalog of that name. Throws if its tables are no topics. */
  static PlannerCatalog of(SparkSession session, String name) {
    if (session.sessionState().catalogManager().catalog(name) instanceof PlannerCatalog catalog) {
      return catalog;
    }
    throw Errors.refused("the catalog " + name + " has no topics of Pulsar");
  }
}
