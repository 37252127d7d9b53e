import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.ConsumerCryptoFailureAction;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.MessageIdAdv;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.ReaderBuilder;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.impl.MessageImpl;
import org.apache.pulsar.client.impl.TopicMessageImpl;
import org.apache.pulsar.common.api.EncryptionContext;

/** Reads a topic from the earliest message to its end. */
final class Rows {
    /** Of the broker, while nothing comes: one that is slow to send messages is slow to answer. */
    private static final int ANSWERS = 10;
    /** Each with a reader of its own: a broker can lose a question for its last message. */
    private static final int ATTEMPTS = 3;

    static JsonNode read(PulsarClient client, JsonNode request) throws Exception {
        for (int left = ATTEMPTS - 1; ; left--) {
            try {
                return readOnce(client, request);
            } catch (PulsarClientException.TimeoutException error) {
                if (left == 0) {
                    throw error;
                }
                System.err.println("Reading from the beginning again: " + error.getMessage());
            }
        }
    }

    private static JsonNode readOnce(PulsarClient client, JsonNode request) throws Exception {
        Schema<?> schema =
                Server.has(request, "schema") ? Schemas.of(request.get("schema")) : Schema.AUTO_CONSUME();
        ReaderBuilder<?> builder = client.newReader(schema)
                .topic(request.get("topic").asText())
                .startMessageId(MessageId.earliest)
                .readCompacted(request.get("compacted").asBoolean())
                .maxPendingChunkedMessage(1000)
                .expireTimeOfIncompleteChunkedMessage(1, TimeUnit.HOURS)
                .cryptoFailureAction(ConsumerCryptoFailureAction.CONSUME);
        if (Server.has(request, "decryption")) {
            builder.cryptoKeyReader(new Keys(request.get("decryption")));
        }
        ArrayNode rows = Server.array();
        int idle = request.get("idle_ms").asInt();
        try (Reader<?> reader = builder.create()) {
            // Markers and incomplete chunks may be behind the last message: then nothing follows.
            while (reader.hasMessageAvailable()) {
                Message<?> next = null;
                for (int n = 0; next == null && n < ANSWERS; n++) {
                    next = reader.readNext(idle / ANSWERS, TimeUnit.MILLISECONDS);
                    if (next == null) {
                        reader.getLastMessageIds();
                    }
                }
                if (next == null) {
                    break;
                }
                rows.add(row(next));
            }
        }
        return rows;
    }

    private static ObjectNode row(Message<?> given) {
        Message<?> inner = given;
        while (inner instanceof TopicMessageImpl) { // of a partitioned topic
            inner = ((TopicMessageImpl<?>) inner).getMessage();
        }
        MessageImpl<?> message = (MessageImpl<?>) inner;
        MessageIdAdv id = (MessageIdAdv) message.getMessageId();
        ObjectNode row = Server.JSON.createObjectNode();
        row.put("ledger", id.getLedgerId());
        row.put("entry", id.getEntryId());
        MessageIdAdv first = id.getFirstChunkMessageId();
        row.put("first_chunk_ledger", first == null ? null : first.getLedgerId());
        row.put("first_chunk_entry", first == null ? null : first.getEntryId());
        row.put("partition", id.getPartitionIndex());
        row.put("batch", id.getBatchIndex());
        row.put("has_key", message.hasKey());
        row.put("key", message.hasKey() ? message.getKey() : null);
        row.put("key_base64", message.hasBase64EncodedKey());
        row.put("ordering_key", message.hasOrderingKey() ? message.getOrderingKey() : null);
        row.set("properties", Server.JSON.valueToTree(message.getProperties()));
        row.put("publish_time", message.getPublishTime());
        row.put("event_time", message.getEventTime());
        row.put("deliver_at", message.getDeliverAtTime());
        row.put("index", message.getIndex().orElse(null));
        row.put("broker_publish_time", message.getBrokerPublishTime().orElse(null));
        row.put("producer", message.getProducerName());
        row.put("replicated_from", message.getReplicatedFrom());
        row.put("sequence_id", message.getSequenceId());
        byte[] version = message.getSchemaVersion();
        row.put("schema_version", version == null || version.length != 8 ? null : ByteBuffer.wrap(version).getLong());
        row.put("null", message.getMessageBuilder().isNullValue());
        row.put("encrypted", message.getEncryptionCtx().map(one -> one.isEncrypted()).orElse(false));
        byte[] metadata = message.getMessageBuilder().toByteArray();
        row.set("encryption",
                message.getEncryptionCtx().map(one -> encryption(one, metadata)).orElse(null));
        row.put("data", message.getData());
        try {
            row.set("value", Schemas.toJson(given.getValue()));
        } catch (Throwable error) {
            row.put("value_error", error.toString());
        }
        return row;
    }

    private static JsonNode encryption(EncryptionContext context, byte[] metadata) {
        ObjectNode found = Server.JSON.createObjectNode();
        ArrayNode keys = found.putArray("keys");
        context.getKeys().forEach((name, key) -> {
            ObjectNode one = keys.addObject().put("name", name).put("value", key.getKeyValue());
            one.set("metadata", Server.JSON.valueToTree(key.getMetadata()));
        });
        found.put("param", context.getParam()).put("algorithm", context.getAlgorithm());
        found.put("compression", context.getCompressionType().name());
        found.put("uncompressed_size", context.getUncompressedMessageSize());
        found.put("batch_size", context.getBatchSize().orElse(null));
        return found.put("metadata", metadata);
    }
}
