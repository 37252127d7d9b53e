import com.fasterxml.jackson.databind.ObjectMapper;
import com.google.protobuf.NullValue;
import com.google.protobuf.Struct;
import com.google.protobuf.Syntax;
import com.google.protobuf.Type;
import com.google.protobuf.Value;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.common.schema.KeyValue;
import org.apache.pulsar.common.schema.KeyValueEncodingType;

/**
 * Writes java.jsonl: schemas and payloads as Pulsar's Java client makes them, binary as base64.
 *
 * <p>Run with the server's jars (testbed/server/jars.py) on the class path:
 * {@code java -cp "$JARS/*" Golden.java > java.jsonl}.
 */
public class Golden {
    public static class Row {
        public int a;
        public String s;
        public Long n;
    }

    static Row row(int a, String s) {
        Row row = new Row();
        row.a = a;
        row.s = s;
        return row;
    }

    static <T> void print(String name, Schema<T> schema, T value, byte[] key) throws Exception {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("name", name);
        line.put("type", schema.getSchemaInfo().getType());
        line.put("schema", schema.getSchemaInfo().getSchema());
        line.put("properties", schema.getSchemaInfo().getProperties());
        line.put("payload", schema.encode(value));
        line.put("key", key);
        System.out.println(new ObjectMapper().writeValueAsString(line));
    }

    public static void main(String[] args) throws Exception {
        Type type = Type.newBuilder().setName("ä").addOneofs("o").setSyntax(Syntax.SYNTAX_PROTO3)
            .addFields(com.google.protobuf.Field.newBuilder().setNumber(-7).setPacked(true)
                .setKind(com.google.protobuf.Field.Kind.TYPE_INT32)).build();
        Struct struct = Struct.newBuilder()
            .putFields("z", Value.newBuilder().setNullValue(NullValue.NULL_VALUE).build())
            .putFields("k", Value.newBuilder().setNumberValue(1).build()).build();
        print("native", Schema.PROTOBUF_NATIVE(Type.class), type, null);
        print("parsing info", Schema.PROTOBUF(Type.class), type, null);
        print("struct", Schema.PROTOBUF_NATIVE(Struct.class), struct, null);
        Schema<KeyValue<Row, Row>> inline = Schema.KeyValue(
            Schema.AVRO(Row.class), Schema.JSON(Row.class), KeyValueEncodingType.INLINE);
        print("inline", inline, new KeyValue<>(row(1, "k"), row(2, "v")), null);
        print("inline null key", inline, new KeyValue<>(null, row(2, "v")), null);
        print("inline nulls", inline, new KeyValue<>(null, null), null);
        Schema<KeyValue<Integer, Struct>> separated = Schema.KeyValue(
            Schema.INT32, Schema.PROTOBUF_NATIVE(Struct.class), KeyValueEncodingType.SEPARATED);
        print("separated", separated, new KeyValue<>(5, struct), Schema.INT32.encode(5));
    }
}
