/**
 * The door by which Spark's catalog reaches the Python planner.
 *
 * <p>Nothing is decided here but that a session chooses no settings ({@link
 * io.pulsarlake.spark.StartUp}). A name is sent to the planner; what comes back (the text of a view,
 * or the schema of a table) is handed to Spark. What Spark's optimiser asks of a hot table (columns,
 * filters) is handed to the Python data source, and what it asks of a cold one (filters) to the
 * planner, whose files Spark reads itself. Spark has these interfaces on the JVM only: that is the
 * one reason for this package.
 */
package io.pulsarlake.spark;
