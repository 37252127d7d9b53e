import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SchemaSerializationException;
import org.apache.pulsar.common.schema.SchemaInfo;

/** A schema that is two functions. */
final class Coded implements Schema<Object> {
    private final SchemaInfo info;
    private final Step<Object, byte[]> encode;
    private final Step<byte[], Object> decode;

    interface Step<A, B> {
        B of(A given) throws Exception;
    }

    Coded(SchemaInfo info, Step<Object, byte[]> encode, Step<byte[], Object> decode) {
        this.info = info;
        this.encode = encode;
        this.decode = decode;
    }

    @Override
    public byte[] encode(Object value) {
        return apply(encode, value);
    }

    @Override
    public Object decode(byte[] bytes, byte[] schemaVersion) {
        return apply(decode, bytes);
    }

    @Override
    public SchemaInfo getSchemaInfo() {
        return info;
    }

    @Override
    public Schema<Object> clone() {
        return this;
    }

    private static <A, B> B apply(Step<A, B> step, A given) {
        try {
            return step.of(given);
        } catch (Exception failed) {
            throw new SchemaSerializationException(failed);
        }
    }
}
