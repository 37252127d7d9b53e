/**
 * The door by which Spark's catalog reaches the Python planner.
 *
 * <p>Nothing is decided here but that a session chooses no settings ({@link
 * io.pulsarlake.spark.StartUp}). A name is sent to the planner; what comes back (the text of a view,
 * or the schema and options of a hot table) is handed to Spark, and what Spark's optimiser asks of
 * a hot table (columns, filters) is handed to the Python data source. Spark has these interfaces
 * on the JVM only: that is the one reason for this package.
 */
package io.pulsarlake.spark;
