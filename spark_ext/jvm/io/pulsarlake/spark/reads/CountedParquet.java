package io.pulsarlake.spark.reads;

import java.io.Serializable;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.util.LongAccumulator;
import scala.Function1;
import scala.collection.Iterator;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;

/** Spark's own Parquet format, which adds up how many rows its tasks have read of the files. */
final class CountedParquet extends ParquetFileFormat {
  private final LongAccumulator rows;

  CountedParquet(LongAccumulator rows) {
    this.rows = rows;
  }

  @Override
  public Function1<PartitionedFile, Iterator<InternalRow>> buildReaderWithPartitionValues(
      SparkSession session,
      StructType data,
      StructType partition,
      StructType required,
      Seq<Filter> filters,
      Map<String, String> options,
      Configuration hadoop) {
    LongAccumulator counter = rows;
    Function1<PartitionedFile, Iterator<InternalRow>> read =
        super.buildReaderWithPartitionValues(
            session, data, partition, required, filters, options, hadoop);
    return (Function1<PartitionedFile, Iterator<InternalRow>> & Serializable)
        file -> counted(read.apply(file), counter);
  }

  /** A batch of rows passes for a row where Spark reads in batches. */
  @SuppressWarnings({"unchecked", "rawtypes"})
  private static Iterator<InternalRow> counted(Iterator<?> found, LongAccumulator rows) {
    return (Iterator)
        found.map(
            one -> {
              rows.add(one instanceof ColumnarBatch batch ? batch.numRows() : 1);
              return one;
            });
  }
}
