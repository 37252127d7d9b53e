/**
 * The door by which Spark reaches the Python planner: Spark's interfaces exist on the JVM only, which
 * is the one reason for these packages.
 *
 * <ul>
 *   <li>{@code catalog}: topics as relations of Spark's catalog, and which settings a session has
 *   <li>{@code reads}: what Spark reads of a topic: its cold files, its hot rows, its streams
 *   <li>{@code writes}: what Spark writes to a topic
 *   <li>{@code rules}: rules of a session, for the plans of its queries
 *   <li>{@code planner}: the process that answers
 * </ul>
 *
 * <p>Nothing is decided here but that a session chooses no settings ({@link
 * io.pulsarlake.spark.catalog.StartUp}); decision 42 lists what rules read out of plans. A name is
 * sent to the planner; what comes back (the text of a view, or the schema of a table) is handed to Spark. What Spark's optimizer asks of a hot table
 * (columns, filters) and of a cold one (filters) is handed to the planner, too.
 */
package io.pulsarlake.spark;
