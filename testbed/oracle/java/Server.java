import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.SizeUnit;
import org.apache.pulsar.client.api.transaction.Transaction;
import org.apache.pulsar.common.compression.CompressionCodecProvider;

/**
 * One request per line of standard input, one answer per line of standard output; JSON. Requests
 * run side by side; an answer has the number of its request.
 */
public final class Server {
    static final ObjectMapper JSON = new ObjectMapper();

    private final String serviceUrl;
    private final PulsarClient client;
    private final Map<String, Transaction> transactions = new ConcurrentHashMap<>();

    private Server(String serviceUrl) throws Exception {
        this.serviceUrl = serviceUrl;
        client = PulsarClient.builder()
                .serviceUrl(serviceUrl)
                .enableTransaction(true)
                .ioThreads(1)
                .listenerThreads(1)
                .memoryLimit(64, SizeUnit.MEGA_BYTES)
                .build();
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        System.setOut(System.err); // whatever else prints does not disturb the answers
        Server server = new Server(arguments[0]);
        BufferedReader requests =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        ExecutorService workers = Executors.newCachedThreadPool();
        for (String line; (line = requests.readLine()) != null; ) {
            JsonNode request = JSON.readTree(line);
            workers.execute(() -> {
                ObjectNode answer = JSON.createObjectNode();
                answer.set("number", request.get("number"));
                try {
                    answer.set("result", server.answer(request));
                } catch (Throwable error) {
                    StringWriter trace = new StringWriter();
                    error.printStackTrace(new PrintWriter(trace));
                    answer.put("error", trace.toString());
                }
                String text = answer.toString();
                synchronized (answers) {
                    answers.println(text);
                    answers.flush();
                }
            });
        }
        Runtime.getRuntime().halt(0); // not waiting for producers of open transactions
    }

    private JsonNode answer(JsonNode request) throws Exception {
        switch (request.get("op").asText()) {
            case "write":
                return Writer.write(client, transactions, request);
            case "read":
                return Rows.read(client, request);
            case "raw_chunk":
                return RawChunk.send(serviceUrl, request);
            case "make_keys":
                return Keys.make(request);
            case "decrypt":
                return JSON.getNodeFactory().binaryNode(Keys.decrypt(request));
            case "compress":
                return JSON.getNodeFactory().binaryNode(compress(request));
            case "begin": {
                Transaction begun = client.newTransaction()
                        .withTransactionTimeout(1, TimeUnit.HOURS)
                        .build()
                        .get(60, TimeUnit.SECONDS);
                String id = begun.getTxnID().toString();
                transactions.put(id, begun);
                return JSON.getNodeFactory().textNode(id);
            }
            case "commit":
                take(request).commit().get(60, TimeUnit.SECONDS);
                return null;
            case "abort":
                take(request).abort().get(60, TimeUnit.SECONDS);
                return null;
            default:
                throw new IllegalArgumentException("no such op: " + request.get("op"));
        }
    }

    private Transaction take(JsonNode request) {
        Transaction found = transactions.remove(request.get("id").asText());
        if (found == null) {
            throw new IllegalArgumentException("no such open transaction: " + request.get("id"));
        }
        return found;
    }

    private static byte[] compress(JsonNode request) throws Exception {
        byte[] data = request.get("data").binaryValue();
        io.netty.buffer.ByteBuf packed = CompressionCodecProvider.getCompressionCodec(
                        org.apache.pulsar.common.api.proto.CompressionType.valueOf(
                                request.get("compression").asText()))
                .encode(io.netty.buffer.Unpooled.directBuffer().writeBytes(data));
        return io.netty.buffer.ByteBufUtil.getBytes(packed);
    }

    static ArrayNode array() {
        return JSON.createArrayNode();
    }

    static boolean has(JsonNode node, String name) {
        return node.hasNonNull(name);
    }
}
