import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.pulsar.client.api.CompressionType;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.Schema;

/**
 * Each line of standard input is `load topic count`, which keeps so many messages of a topic, or
 * `write topic batch`, which sends them to another one in batches of so many, and waits for each
 * receipt. It answers how many there were.
 */
public final class TimedWriter {
    private record Kept(byte[] payload, String key, long at) {}

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err); // whatever else prints does not disturb the answers
        List<Kept> kept = new ArrayList<>();
        try (PulsarClient client = PulsarClient.builder().serviceUrl(arguments[0]).build()) {
            BufferedReader lines =
                    new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
            for (String line; (line = lines.readLine()) != null; ) {
                String[] words = line.split(" ");
                if (words[0].equals("load")) {
                    kept.clear();
                    load(client, words[1], Integer.parseInt(words[2]), kept);
                    answers.println(kept.size());
                } else {
                    answers.println(write(client, words[1], Integer.parseInt(words[2]), kept));
                }
            }
        }
    }

    private static void load(PulsarClient client, String topic, int count, List<Kept> kept)
            throws Exception {
        try (Reader<byte[]> reader = client.newReader(Schema.BYTES)
                .topic(topic)
                .startMessageId(MessageId.earliest)
                .receiverQueueSize(10_000)
                .create()) {
            for (int number = 0; number < count; number++) {
                Message<byte[]> message = reader.readNext();
                kept.add(new Kept(message.getData(), message.getKey(), message.getEventTime()));
            }
        }
    }

    private static long write(PulsarClient client, String topic, int batch, List<Kept> kept)
            throws Exception {
        AtomicLong stored = new AtomicLong();
        try (Producer<byte[]> producer = client.newProducer(Schema.BYTES)
                .topic(topic)
                .compressionType(CompressionType.LZ4)
                .batchingMaxMessages(batch)
                .batchingMaxBytes(4 << 20)
                .blockIfQueueFull(true)
                .maxPendingMessages(20_000)
                .create()) {
            for (Kept one : kept) {
                producer.newMessage().key(one.key()).eventTime(one.at()).value(one.payload())
                        .sendAsync()
                        .thenRun(stored::incrementAndGet);
            }
            producer.flush();
        }
        return stored.get();
    }
}
