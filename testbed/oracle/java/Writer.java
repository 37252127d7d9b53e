import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.pulsar.client.api.CompressionType;
import org.apache.pulsar.client.api.HashingScheme;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.MessageIdAdv;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.ProducerBuilder;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.TypedMessageBuilder;
import org.apache.pulsar.client.api.transaction.Transaction;
import org.apache.pulsar.client.impl.ProducerBase;
import org.apache.pulsar.client.impl.TypedMessageBuilderImpl;
import org.apache.pulsar.client.impl.transaction.TransactionImpl;
import org.apache.pulsar.common.api.proto.MessageMetadata;

/** Sends messages with one producer. */
final class Writer {
    static JsonNode write(PulsarClient client, Map<String, Transaction> open, JsonNode request)
            throws Exception {
        Schema<Object> schema = Schemas.of(request.get("schema"));
        int batch = request.get("batch").asInt();
        ProducerBuilder<Object> builder = client.newProducer(schema)
                .topic(request.get("topic").asText())
                .sendTimeout(0, TimeUnit.SECONDS) // transactions want it so
                .blockIfQueueFull(true)
                .compressionMinMsgBodySize(0) // by default small ones are not compressed
                .compressionType(CompressionType.valueOf(request.get("compression").asText()))
                .enableBatching(batch > 0);
        if (Server.has(request, "producer")) {
            builder.producerName(request.get("producer").asText());
        }
        if (batch > 0) {
            builder.batchingMaxMessages(batch)
                    .batchingMaxBytes(4 << 20)
                    .batchingMaxPublishDelay(1, TimeUnit.HOURS);
        }
        if (Server.has(request, "hashing")) {
            builder.hashingScheme(HashingScheme.valueOf(request.get("hashing").asText()));
        }
        if (Server.has(request, "chunk_size")) {
            builder.enableChunking(true).chunkMaxMessageSize(request.get("chunk_size").asInt());
        }
        if (Server.has(request, "encryption")) {
            JsonNode keys = request.get("encryption");
            keys.fieldNames().forEachRemaining(builder::addEncryptionKey);
            builder.cryptoKeyReader(new Keys(keys));
        }
        register(client, open, request); // now, so that it does not disturb the batches
        ArrayNode ids = Server.array();
        try (Producer<Object> producer = builder.create()) {
            List<CompletableFuture<MessageId>> sent = new ArrayList<>();
            for (JsonNode message : request.get("messages")) {
                sent.add(build(producer, open, schema, request, message).sendAsync());
            }
            flush(producer, CompletableFuture.allOf(sent.toArray(CompletableFuture[]::new)));
            for (CompletableFuture<MessageId> one : sent) {
                MessageIdAdv id = (MessageIdAdv) one.get(60, TimeUnit.SECONDS);
                ids.addArray()
                        .add(id.getLedgerId())
                        .add(id.getEntryId())
                        .add(id.getPartitionIndex())
                        .add(id.getBatchIndex());
            }
        }
        return ids;
    }

    private static void register(PulsarClient client, Map<String, Transaction> open, JsonNode request)
            throws Exception {
        Set<String> ids = new HashSet<>();
        ids.add(request.path("transaction").asText());
        request.get("messages").forEach(one -> ids.add(one.path("transaction").asText()));
        for (Transaction one : open.values()) {
            if (ids.contains(one.getTxnID().toString())) {
                for (String topic : client.getPartitionsForTopic(request.get("topic").asText(), true)
                        .get(60, TimeUnit.SECONDS)) {
                    ((TransactionImpl) one).registerProducedTopic(topic).get(60, TimeUnit.SECONDS);
                }
            }
        }
    }

    /** In a transaction messages reach the producer only once the topic is registered in it. */
    private static void flush(Producer<Object> producer, CompletableFuture<?> sent) throws Exception {
        for (int attempt = 0; ; attempt++) {
            producer.flushAsync().get(60, TimeUnit.SECONDS);
            try {
                sent.get(100, TimeUnit.MILLISECONDS);
                return;
            } catch (TimeoutException error) {
                if (attempt == 600) {
                    throw error;
                }
            }
        }
    }

    private static TypedMessageBuilder<Object> build(
            Producer<Object> producer,
            Map<String, Transaction> open,
            Schema<Object> schema,
            JsonNode request,
            JsonNode message) {
        JsonNode id = (message.has("transaction") ? message : request).get("transaction");
        Transaction transaction = id == null || id.isNull() ? null : open.get(id.asText());
        if (transaction == null && id != null && !id.isNull()) {
            throw new IllegalArgumentException("no such open transaction: " + id);
        }
        Schema<Object> own = Server.has(message, "schema") ? Schemas.of(message.get("schema")) : null;
        TypedMessageBuilder<Object> built;
        if (transaction == null) {
            built = own == null ? producer.newMessage() : producer.newMessage(own);
        } else if (own == null) {
            built = producer.newMessage(transaction);
        } else { // newMessage takes one of them, the builder behind it takes both
            built = new TypedMessageBuilderImpl<>(
                    (ProducerBase<?>) producer, own, (TransactionImpl) transaction);
        }
        JsonNode spec = own == null ? request.get("schema") : message.get("schema");
        built.value(Schemas.toJava(own == null ? schema : own, spec, message.get("value")));
        if (Server.has(message, "key")) {
            built.key(message.get("key").asText());
        }
        if (Server.has(message, "key_bytes")) {
            built.keyBytes(bytes(message.get("key_bytes")));
        }
        if (message.has("key") && message.get("key").isNull()) {
            built.key(null);
        }
        if (Server.has(message, "ordering_key")) {
            built.orderingKey(bytes(message.get("ordering_key")));
        }
        if (Server.has(message, "properties")) {
            message.get("properties").fields()
                    .forEachRemaining(one -> built.property(one.getKey(), one.getValue().asText()));
        }
        if (Server.has(message, "event_time")) {
            built.eventTime(message.get("event_time").asLong());
        }
        if (Server.has(message, "sequence_id")) {
            built.sequenceId(message.get("sequence_id").asLong());
        }
        if (Server.has(message, "deliver_at")) {
            built.deliverAt(message.get("deliver_at").asLong());
        }
        if (Server.has(message, "replicated_from")) {
            metadata(built).setReplicatedFrom(message.get("replicated_from").asText());
        }
        if (Server.has(message, "marker_type")) {
            metadata(built).setMarkerType(message.get("marker_type").asInt());
        }
        if (Server.has(message, "marked")) {
            metadata(built)
                    .setTxnidMostBits(message.get("marked").get(0).asLong())
                    .setTxnidLeastBits(message.get("marked").get(1).asLong());
        }
        return built;
    }

    private static MessageMetadata metadata(TypedMessageBuilder<Object> built) {
        return ((TypedMessageBuilderImpl<Object>) built).getMetadataBuilder();
    }

    private static byte[] bytes(JsonNode base64) {
        return java.util.Base64.getDecoder().decode(base64.asText());
    }
}
