import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.Schema;

/**
 * Each line of standard input is `topic JSON|AVRO count`: reads so many messages from the
 * earliest on, decodes each, and answers `count sumOfIds sumOfCents nanoseconds`.
 */
public final class TimedReader {
    public static void main(String[] arguments) throws Exception {
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err); // whatever else prints does not disturb the answers
        try (PulsarClient client = PulsarClient.builder().serviceUrl(arguments[0]).build()) {
            BufferedReader lines =
                    new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
            for (String line; (line = lines.readLine()) != null; ) {
                String[] words = line.split(" ");
                Schema<Event> schema =
                        words[1].equals("JSON") ? Schema.JSON(Event.class) : Schema.AVRO(Event.class);
                answers.println(read(client, words[0], schema, Long.parseLong(words[2])));
            }
        }
    }

    private static String read(PulsarClient client, String topic, Schema<Event> schema, long count)
            throws Exception {
        long begun = System.nanoTime();
        long ids = 0;
        long cents = 0;
        try (Reader<Event> reader = client.newReader(schema)
                .topic(topic)
                .startMessageId(MessageId.earliest)
                .receiverQueueSize(10_000)
                .create()) {
            for (long number = 0; number < count; number++) {
                Event event = reader.readNext().getValue();
                ids += event.id;
                cents += event.cents;
            }
        }
        return count + " " + ids + " " + cents + " " + (System.nanoTime() - begun);
    }
}

/** As `benchmarks/data/events.py` makes it. */
class Event {
    public long id;
    public long at;
    public long user;
    public String session;
    public String kind;
    public String country;
    public long cents;
    public double score;
    public String url;
    public String agent;
}
