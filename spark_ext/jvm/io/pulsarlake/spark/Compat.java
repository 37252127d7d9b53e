package io.pulsarlake.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.JobArtifactSet;
import org.apache.spark.SparkContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.GlobalTempView$;
import org.apache.spark.sql.catalyst.analysis.LocalTempView$;
import org.apache.spark.sql.catalyst.analysis.SchemaUnsupported$;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.plans.logical.InsertIntoStatement;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.streaming.WriteToStreamStatement;
import org.apache.spark.sql.connector.catalog.CatalogV2Util;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.DelegatingTable;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableInfo;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.execution.command.CreateViewCommand;
import org.apache.spark.sql.execution.datasources.CreateTempViewUsing;
import org.apache.spark.sql.execution.datasources.v2.DataSourceRDD;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.python.PythonPartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.v2.python.PythonStreamingWriterFactory;
import org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.execution.streaming.ContinuousTrigger;
import org.apache.spark.sql.execution.streaming.RealTimeTrigger;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager$;
import org.apache.spark.sql.execution.streaming.sources.WriteToMicroBatchDataSource;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.Tuple2;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** What has another form inside of other versions of Spark: all of it is here and in CatalogBase. */
public final class Compat {
  private Compat() {}

  /** A table with columns of these types. */
  public interface Typed extends Table {
    StructType type();

    @Override
    default Column[] columns() {
      return CatalogV2Util.structTypeToV2Columns(type(), false);
    }
  }

  /** A table that a provider of Spark's first data source interface reads. */
  public static Table provided(
      String catalog,
      Identifier ident,
      StructType schema,
      String provider,
      Map<String, String> options) {
    return new DelegatingTable(
        new TableInfo.Builder()
            .withSchema(schema)
            .withProperties(options)
            .withProvider(provider) // A property as well: after the others.
            .build(),
        catalog + "." + ident);
  }

  public static InsertIntoStatement into(InsertIntoStatement insert, LogicalPlan target) {
    return insert.copy(
        target,
        insert.partitionSpec(),
        insert.userSpecifiedCols(),
        insert.query(),
        insert.overwrite(),
        insert.ifPartitionNotExists(),
        insert.byName(),
        insert.replaceCriteriaOpt(),
        insert.withSchemaEvolution());
  }

  public static WriteToStreamStatement into(WriteToStreamStatement write, Table sink) {
    return write.copy(
        write.userSpecifiedName(),
        write.userSpecifiedSinkName(),
        write.userSpecifiedCheckpointLocation(),
        write.useTempCheckpointLocation(),
        write.recoverFromCheckpointLocation(),
        sink,
        write.outputMode(),
        write.hadoopConf(),
        write.trigger(),
        write.inputQuery(),
        write.catalogAndIdent(),
        write.catalogTable());
  }

  public static boolean inMicroBatches(WriteToStreamStatement write) {
    return !(write.trigger() instanceof ContinuousTrigger)
        && !(write.trigger() instanceof RealTimeTrigger);
  }

  /** The temporary view {@code USING} a format, of what the format stands for. */
  public static CreateViewCommand temporaryView(CreateTempViewUsing view, LogicalPlan rows) {
    return new CreateViewCommand(
        view.tableIdent(),
        CollectionConverters.asScala(List.<Tuple2<String, Option<String>>>of()).toSeq(),
        Option.empty(),
        Option.empty(),
        Map$.MODULE$.<String, String>empty(),
        Option.empty(),
        rows,
        false,
        view.replace(),
        view.global() ? GlobalTempView$.MODULE$ : LocalTempView$.MODULE$,
        SchemaUnsupported$.MODULE$,
        false,
        CollectionConverters.asScala(List.<String>of()).toSeq());
  }

  public static DataSourceV2Relation relation(
      DataSourceV2Relation relation, Table table, Seq<AttributeReference> output) {
    return relation.copy(
        table,
        output,
        relation.catalog(),
        relation.identifier(),
        relation.options(),
        relation.timeTravelSpec());
  }

  public static WriteToMicroBatchDataSource with(WriteToMicroBatchDataSource write, LogicalPlan query) {
    return write.copy(
        write.table(),
        query,
        write.queryId(),
        write.writeOptions(),
        write.outputMode(),
        write.batchId());
  }

  public static RDD<InternalRow> rdd(
      SparkContext context, InputPartition[] partitions, PartitionReaderFactory factory) {
    List<Option<InputPartition>> tasks = new ArrayList<>();
    for (InputPartition one : partitions) {
      tasks.add(Option.apply(one));
    }
    return new DataSourceRDD(
        context,
        CollectionConverters.asScala(tasks).toSeq(),
        factory,
        false,
        Map$.MODULE$.<String, SQLMetric>empty());
  }

  public static PartitionReaderFactory pythonReader(
      UserDefinedPythonDataSource source, byte[] function, StructType rows) {
    return new PythonPartitionReaderFactory(
        source,
        function,
        rows,
        JobArtifactSet.getCurrentJobArtifactState().map(state -> state.uuid()),
        Option.empty());
  }

  public static PythonStreamingWriterFactory pythonWriter(
      UserDefinedPythonDataSource source, byte[] function, StructType rows) {
    return new PythonStreamingWriterFactory(
        source,
        function,
        rows,
        JobArtifactSet.getCurrentJobArtifactState().map(state -> state.uuid()),
        Option.empty());
  }

  public static CheckpointFileManager checkpointFiles(Path folder, Configuration hadoop) {
    return CheckpointFileManager$.MODULE$.create(folder, hadoop);
  }
}
