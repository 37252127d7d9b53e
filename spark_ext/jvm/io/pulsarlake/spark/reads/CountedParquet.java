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
import scala.collection.AbstractIterator;
import scala.collection.Iterator;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction1;

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
    return new Read(
        super.buildReaderWithPartitionValues(
            session, data, partition, required, filters, options, hadoop),
        rows);
  }

  private static final class Read extends AbstractFunction1<PartitionedFile, Iterator<InternalRow>>
      implements Serializable {
    private final Function1<PartitionedFile, Iterator<InternalRow>> read;
    private final LongAccumulator rows;

    private Read(
        Function1<PartitionedFile, Iterator<InternalRow>> read, LongAccumulator rows) {
      this.read = read;
      this.rows = rows;
    }

    @Override
    @SuppressWarnings({"unchecked", "rawtypes"})
    public Iterator<InternalRow> apply(PartitionedFile file) {
      // A batch of rows passes for a row where Spark reads in batches.
      Iterator<Object> found = (Iterator) read.apply(file);
      return (Iterator)
          new AbstractIterator<Object>() {
            @Override
            public boolean hasNext() {
              return found.hasNext();
            }

            @Override
            public Object next() {
              Object one = found.next();
              rows.add(one instanceof ColumnarBatch batch ? batch.numRows() : 1);
              return one;
            }
          };
    }
  }
}
