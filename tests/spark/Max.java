import org.apache.spark.sql.Row;
import org.apache.spark.sql.expressions.MutableAggregationBuffer;
import org.apache.spark.sql.expressions.UserDefinedAggregateFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/** A user's aggregate, which has the name of one of Spark's, and is always 42. */
public class Max extends UserDefinedAggregateFunction {
  public StructType inputSchema() {
    return new StructType().add("value", DataTypes.LongType);
  }

  public StructType bufferSchema() {
    return new StructType().add("value", DataTypes.LongType);
  }

  public DataType dataType() {
    return DataTypes.LongType;
  }

  public boolean deterministic() {
    return true;
  }

  public void initialize(MutableAggregationBuffer buffer) {}

  public void update(MutableAggregationBuffer buffer, Row row) {}

  public void merge(MutableAggregationBuffer buffer, Row other) {}

  public Object evaluate(Row buffer) {
    return 42L;
  }
}
