import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.DescriptorProtos.FileDescriptorSet;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.util.JsonFormat;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.sql.Time;
import java.sql.Timestamp;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Date;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.protobuf.ProtobufData;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.schema.Field;
import org.apache.pulsar.client.api.schema.GenericRecord;
import org.apache.pulsar.client.impl.schema.KeyValueSchemaImpl;
import org.apache.pulsar.client.impl.schema.ProtobufNativeSchemaUtils;
import org.apache.pulsar.client.impl.schema.SchemaInfoImpl;
import org.apache.pulsar.client.impl.schema.generic.GenericAvroRecord;
import org.apache.pulsar.client.impl.schema.generic.GenericJsonRecord;
import org.apache.pulsar.client.impl.schema.generic.GenericProtobufNativeRecord;
import org.apache.pulsar.common.schema.KeyValue;
import org.apache.pulsar.common.schema.KeyValueEncodingType;
import org.apache.pulsar.common.schema.SchemaInfo;
import org.apache.pulsar.common.schema.SchemaType;

/** The client's schemas from their JSON form, and values from JSON and to it. */
final class Schemas {
    private static final JsonNodeFactory NODES = JsonNodeFactory.instance;

    @SuppressWarnings({"unchecked", "rawtypes"})
    static Schema<Object> of(JsonNode spec) {
        return (Schema) make(spec);
    }

    private static Schema<?> make(JsonNode spec) {
        if (spec.path("raw").asBoolean()) {
            return new Coded(info(spec), value -> (byte[]) value, bytes -> bytes);
        }
        String type = spec.get("type").asText();
        switch (type) {
            case "BYTES": return Schema.BYTES;
            case "STRING": return Schema.STRING;
            case "BOOLEAN": return Schema.BOOL;
            case "INT8": return Schema.INT8;
            case "INT16": return Schema.INT16;
            case "INT32": return Schema.INT32;
            case "INT64": return Schema.INT64;
            case "FLOAT": return Schema.FLOAT;
            case "DOUBLE": return Schema.DOUBLE;
            case "DATE": return Schema.DATE;
            case "TIME": return Schema.TIME;
            case "TIMESTAMP": return Schema.TIMESTAMP;
            case "INSTANT": return Schema.INSTANT;
            case "LOCAL_DATE": return Schema.LOCAL_DATE;
            case "LOCAL_TIME": return Schema.LOCAL_TIME;
            case "LOCAL_DATE_TIME": return Schema.LOCAL_DATE_TIME;
            case "AUTO_PRODUCE": return Schema.AUTO_PRODUCE_BYTES();
            case "AVRO":
            case "JSON":
            case "PROTOBUF_NATIVE":
                return Schema.generic(info(spec));
            case "PROTOBUF": {
                Descriptor descriptor = descriptor(spec);
                return new Coded(
                        info(spec),
                        value -> ((DynamicMessage) value).toByteArray(),
                        bytes -> DynamicMessage.parseFrom(descriptor, bytes));
            }
            case "KEY_VALUE":
                return Schema.KeyValue(make(spec.get("key")), make(spec.get("value")),
                        KeyValueEncodingType.valueOf(spec.get("encoding").asText()));
            default:
                throw new IllegalArgumentException("no such schema type: " + type);
        }
    }

    /** What the client registers for a schema. */
    private static SchemaInfo info(JsonNode spec) {
        String type = spec.get("type").asText();
        switch (type) {
            case "AVRO":
            case "JSON":
                return info(type, definition(spec).getBytes(StandardCharsets.UTF_8), Map.of());
            case "PROTOBUF_NATIVE":
                return info(type, ProtobufNativeSchemaUtils.serialize(descriptor(spec)), Map.of());
            case "PROTOBUF":
                return protobufInfo(descriptor(spec));
            default:
                return make(((ObjectNode) spec.deepCopy()).without("raw")).getSchemaInfo();
        }
    }

    private static SchemaInfo info(String type, byte[] definition, Map<String, String> properties) {
        return SchemaInfoImpl.builder()
                .name(type).type(SchemaType.valueOf(type)).schema(definition).properties(properties)
                .build();
    }

    /** What ProtobufSchema registers; itself it wants a generated class. */
    private static SchemaInfo protobufInfo(Descriptor descriptor) {
        ArrayNode fields = NODES.arrayNode();
        for (FieldDescriptor field : descriptor.getFields()) {
            ObjectNode one = fields.addObject().put("number", field.getNumber());
            one.put("name", field.getName()).put("type", field.getType().name());
            one.put("label", field.toProto().getLabel().name()).putNull("definition");
        }
        String definition = ProtobufData.get().getSchema(descriptor).toString();
        return info("PROTOBUF", definition.getBytes(StandardCharsets.UTF_8),
                Map.of("__PARSING_INFO__", fields.toString()));
    }

    /** The definition may be given as an object or as text. */
    private static String definition(JsonNode spec) {
        JsonNode found = spec.get("definition");
        return found.isTextual() ? found.asText() : found.toString();
    }

    private static Descriptor descriptor(JsonNode spec) {
        try {
            FileDescriptorSet all =
                    FileDescriptorSet.parseFrom(Base64.getDecoder().decode(spec.get("descriptors").asText()));
            List<FileDescriptor> built = new ArrayList<>();
            for (FileDescriptorProto file : all.getFileList()) { // dependencies come first
                built.add(FileDescriptor.buildFrom(file,
                        built.stream().filter(one -> file.getDependencyList().contains(one.getName()))
                                .toArray(FileDescriptor[]::new)));
            }
            String message = spec.get("message").asText();
            for (FileDescriptor file : built) {
                Descriptor found = file.getMessageTypes().stream()
                        .filter(one -> one.getFullName().equals(message)).findFirst().orElse(null);
                if (found != null) {
                    return found;
                }
            }
            throw new IllegalArgumentException("no such message: " + message);
        } catch (java.io.IOException | com.google.protobuf.Descriptors.DescriptorValidationException error) {
            throw new IllegalArgumentException(error);
        }
    }

    static Object toJava(Schema<?> schema, JsonNode spec, JsonNode value) {
        if (value == null || value.isNull()) {
            return null;
        }
        String text = value.asText();
        if (spec.path("raw").asBoolean()) {
            return Base64.getDecoder().decode(text);
        }
        switch (spec.get("type").asText()) {
            case "BYTES":
            case "AUTO_PRODUCE": return Base64.getDecoder().decode(text);
            case "STRING": return text;
            case "BOOLEAN": return value.booleanValue();
            case "INT8": return (byte) value.intValue();
            case "INT16": return (short) value.intValue();
            case "INT32": return value.intValue();
            case "INT64": return value.longValue();
            case "FLOAT": return Float.valueOf(text);
            case "DOUBLE": return Double.valueOf(text);
            case "DATE": return new Date(value.longValue());
            case "TIME": return new Time(value.longValue());
            case "TIMESTAMP": return new Timestamp(value.longValue());
            case "INSTANT": return Instant.parse(text);
            case "LOCAL_DATE": return LocalDate.parse(text);
            case "LOCAL_TIME": return LocalTime.parse(text);
            case "LOCAL_DATE_TIME": return LocalDateTime.parse(text);
            case "AVRO": return avro(spec, value);
            case "JSON": return new GenericJsonRecord(null, List.<Field>of(), value, schema.getSchemaInfo());
            case "PROTOBUF": return message(descriptor(spec), value);
            case "PROTOBUF_NATIVE": {
                Descriptor descriptor = descriptor(spec);
                return new GenericProtobufNativeRecord(
                        null, descriptor, List.of(), message(descriptor, value)) { };
            }
            case "KEY_VALUE": {
                KeyValueSchemaImpl<?, ?> both = (KeyValueSchemaImpl<?, ?>) schema;
                return new KeyValue<>(
                        toJava(both.getKeySchema(), spec.get("key"), value.get("key")),
                        toJava(both.getValueSchema(), spec.get("value"), value.get("value")));
            }
            default: throw new IllegalArgumentException("no values of " + spec);
        }
    }

    /** {@code value} is in Avro's own JSON encoding: unions are tagged, bytes are ISO-8859-1. */
    private static Object avro(JsonNode spec, JsonNode value) {
        try {
            org.apache.avro.Schema schema = new org.apache.avro.Schema.Parser().parse(definition(spec));
            org.apache.avro.generic.GenericRecord found =
                    new GenericDatumReader<org.apache.avro.generic.GenericRecord>(schema)
                            .read(null, DecoderFactory.get().jsonDecoder(schema, value.toString()));
            return new GenericAvroRecord(null, schema, List.of(), found);
        } catch (java.io.IOException error) {
            throw new IllegalArgumentException(error);
        }
    }

    /** {@code value} is in Protobuf's own JSON encoding. */
    private static DynamicMessage message(Descriptor descriptor, JsonNode value) {
        try {
            DynamicMessage.Builder built = DynamicMessage.newBuilder(descriptor);
            JsonFormat.parser().merge(value.toString(), built);
            return built.build();
        } catch (com.google.protobuf.InvalidProtocolBufferException error) {
            throw new IllegalArgumentException(error);
        }
    }

    /** The fields, at any depth, of which unset and default are the same. */
    private static void withoutPresence(
            Descriptor descriptor, Set<Descriptor> seen, Set<FieldDescriptor> found) {
        if (seen.add(descriptor)) {
            for (FieldDescriptor field : descriptor.getFields()) {
                if (!field.hasPresence()) {
                    found.add(field);
                }
                if (field.getJavaType() == FieldDescriptor.JavaType.MESSAGE) {
                    withoutPresence(field.getMessageType(), seen, found);
                }
            }
        }
    }

    /** A value that the client gave; bytes as base64, times in ISO form or as milliseconds. */
    static JsonNode toJson(Object value) throws Exception {
        if (value == null) {
            return NODES.nullNode();
        } else if (value instanceof DynamicMessage) {
            DynamicMessage message = (DynamicMessage) value;
            Set<FieldDescriptor> always = new HashSet<>();
            withoutPresence(message.getDescriptorForType(), new HashSet<>(), always);
            return Server.JSON.readTree((always.isEmpty()
                            ? JsonFormat.printer()
                            : JsonFormat.printer().includingDefaultValueFields(always))
                    .preservingProtoFieldNames().print(message));
        } else if (value instanceof GenericRecord) {
            return toJson(((GenericRecord) value).getNativeObject());
        } else if (value instanceof JsonNode) {
            return (JsonNode) value;
        } else if (value instanceof KeyValue) {
            ObjectNode both = NODES.objectNode();
            both.set("key", toJson(((KeyValue<?, ?>) value).getKey()));
            both.set("value", toJson(((KeyValue<?, ?>) value).getValue()));
            return both;
        } else if (value instanceof org.apache.avro.generic.GenericRecord) {
            org.apache.avro.generic.GenericRecord record = (org.apache.avro.generic.GenericRecord) value;
            ObjectNode fields = NODES.objectNode();
            for (org.apache.avro.Schema.Field field : record.getSchema().getFields()) {
                fields.set(field.name(), toJson(record.get(field.pos())));
            }
            return fields;
        } else if (value instanceof org.apache.avro.generic.GenericFixed) {
            return NODES.binaryNode(((org.apache.avro.generic.GenericFixed) value).bytes());
        } else if (value instanceof Map) {
            ObjectNode fields = NODES.objectNode();
            for (Map.Entry<?, ?> one : ((Map<?, ?>) value).entrySet()) {
                fields.set(one.getKey().toString(), toJson(one.getValue()));
            }
            return fields;
        } else if (value instanceof Iterable) {
            ArrayNode items = NODES.arrayNode();
            for (Object one : (Iterable<?>) value) {
                items.add(toJson(one));
            }
            return items;
        } else if (value instanceof ByteBuffer) {
            byte[] bytes = new byte[((ByteBuffer) value).remaining()];
            ((ByteBuffer) value).duplicate().get(bytes);
            return NODES.binaryNode(bytes);
        } else if (value instanceof Date) { // and its subclasses Time and Timestamp
            return NODES.numberNode(((Date) value).getTime());
        } else if (value instanceof Boolean || value instanceof byte[]
                || value instanceof Integer || value instanceof Long
                || value instanceof Short || value instanceof Byte) {
            return Server.JSON.valueToTree(value);
        } else if (value instanceof Float || value instanceof Double) {
            double number = ((Number) value).doubleValue();
            return Double.isFinite(number) ? NODES.numberNode(number) : NODES.textNode(value.toString());
        }
        return NODES.textNode(value.toString());
    }
}
