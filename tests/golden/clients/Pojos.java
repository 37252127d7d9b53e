import com.fasterxml.jackson.annotation.JsonFormat;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.*;
import java.util.*;
import org.apache.avro.reflect.AvroSchema;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.schema.SchemaDefinition;

/**
 * Writes java.jsonl: what Pulsar's Java client registers for POJOs by reflection, and how it writes
 * them. Payloads are text (JSON) or base64 (AVRO).
 *
 * <p>{@code java -cp "$JARS/*" Pojos.java > java.jsonl}, with the server's jars (testbed/server/jars.py).
 * A class more, and its line in main, is a line more.
 */
public class Pojos {
    public enum Colour { RED, GREEN }

    public static class Scalars {
        public int i = -1; public Integer boxed = 2; public long l = 1L << 60; public short s = 4; public byte b = 5;
        public char c = 'A'; public boolean t = true; public float f = 0.1f; public double d = 12345678.9;
        public double nan = Double.NaN; public double low = Double.NEGATIVE_INFINITY; public String str = "ä\u0001\"/";
        public byte[] raw = {1, 2, 3}; public Colour colour = Colour.GREEN; public int[] ints = {1};
        public Set<String> set = new TreeSet<>(Set.of("a", "b")); public char[] chars = {'a', 'b'}; public String none;
        public UUID uuid = new UUID(1, 2);
    }

    public static class Objects {
        public Map<String, Object> attributes = new TreeMap<>(Map.of("n", 1, "s", "x \n", "l", List.of(1, "y"), "b", true));
        public Object any = "text"; public List<Object> list = List.of(1, "a"); public Number number = 5.5;
        public Locale locale = Locale.US; public Optional<String> optional = Optional.of("x");
    }

    public static class Maps {
        public Map<Integer, String> ints = new TreeMap<>(Map.of(1, "a", -2, "b"));
        public Map<Long, Double> longs = Map.of(5L, 1.5); public Map<Colour, Integer> colours = Map.of(Colour.RED, 1);
        public Map<UUID, String> uuids = Map.of(new UUID(1, 2), "u"); public Map<Boolean, String> booleans = Map.of(true, "t");
        public Map<Double, String> doubles = Map.of(1.5, "d");
        public Map<Instant, String> instants = Map.of(Instant.ofEpochSecond(1_700_000_000L, 5000), "i");
        public Map<LocalDate, String> dates = Map.of(LocalDate.of(2023, 11, 14), "x");
        public Map<BigDecimal, String> decimals = Map.of(new BigDecimal("1.50"), "x");
        public Map<Character, String> chars = Map.of('c', "x"); public Map<Integer, Object> objects = Map.of(1, "o");
        public Map<String, Map<Integer, Long>> nested = Map.of("k", Map.of(1, 2L));
    }

    public static class IntMap { public Map<Integer, String> names = new TreeMap<>(Map.of(1, "a", 2, "b")); }

    public static class Times {
        public Instant at = Instant.ofEpochSecond(1_700_000_000L, 123_456_000);
        public LocalDate day = LocalDate.of(2023, 11, 14); public LocalTime clock = LocalTime.of(22, 13, 20, 123_000_000);
        public LocalDateTime local = LocalDateTime.of(2023, 11, 14, 22, 13, 20, 123_456_000);
        public LocalTime noon = LocalTime.of(12, 0); public Map<String, LocalDate> days = Map.of("a", LocalDate.of(-5, 1, 1));
        public List<Instant> ats = List.of(Instant.EPOCH, Instant.ofEpochSecond(-1), Instant.ofEpochSecond(1));
    }

    public static class Fine { public Instant at = Instant.ofEpochSecond(1_700_000_000L, 123_456_789); }

    public static class Negative { public Instant at = Instant.ofEpochSecond(-1, 999_999_999); }

    public static class Dates {
        public Date made = new Date(1_700_000_000_123L); public java.sql.Timestamp stamp = new java.sql.Timestamp(5);
        public ZonedDateTime zoned = ZonedDateTime.of(2023, 11, 14, 22, 13, 20, 0, ZoneId.of("Europe/Berlin"));
        public Duration duration = Duration.ofMillis(1500); public Period period = Period.ofDays(3);
        public YearMonth month = YearMonth.of(2023, 3); public OffsetTime offset = OffsetTime.of(1, 2, 3, 4, ZoneOffset.UTC);
    }

    public static class Decimals {
        public BigDecimal price = new BigDecimal("12.340"); public BigDecimal big = new BigDecimal("1E+20");
        public BigInteger integer = new BigInteger("123456789012345678901234567890");
        public List<BigDecimal> list = List.of(new BigDecimal("1.5"));
        @AvroSchema("{\"type\":\"bytes\",\"logicalType\":\"decimal\",\"precision\":10,\"scale\":2}")
        public BigDecimal exact = new BigDecimal("5.25");
        @AvroSchema("{\"type\":\"long\",\"logicalType\":\"timestamp-millis\"}") public long epoch = 1_700_000_000_123L;
        @AvroSchema("{\"type\":\"long\",\"logicalType\":\"time-micros\"}") public LocalTime clock = LocalTime.of(1, 2, 3, 4000);
    }

    /** As text, by annotation; a mapper with WRITE_DATES_AS_TIMESTAMPS off writes times so. */
    public static class Texts {
        @JsonFormat(shape = JsonFormat.Shape.STRING) public Instant at = Instant.ofEpochSecond(1_700_000_000L, 123_456_000);
        @JsonFormat(shape = JsonFormat.Shape.STRING) public LocalDate day = LocalDate.of(2023, 11, 14);
        @JsonFormat(shape = JsonFormat.Shape.STRING) public LocalTime clock = LocalTime.of(22, 13);
        @JsonFormat(shape = JsonFormat.Shape.STRING) public LocalDateTime local = LocalDateTime.of(2023, 11, 14, 22, 13);
        @JsonFormat(shape = JsonFormat.Shape.STRING) public BigDecimal price = new BigDecimal("1.50");
        @JsonFormat(shape = JsonFormat.Shape.STRING) public int number = 5;
        @JsonFormat(shape = JsonFormat.Shape.STRING) public double fraction = 0.1;
        @JsonFormat(shape = JsonFormat.Shape.NUMBER) public boolean flag = true;
        @JsonFormat(shape = JsonFormat.Shape.NUMBER) public Colour colour = Colour.GREEN;
        @JsonFormat(shape = JsonFormat.Shape.STRING) public Date made = new Date(1_700_000_000_123L);
    }

    /** Jackson writes a getter's name in lower case as far as it is in capitals; Avro has the field's. */
    public static class Getters {
        private String URL = "u"; private String xAxis = "x";
        public String getURL() { return URL; }
        public void setURL(String value) { URL = value; }
        public String getXAxis() { return xAxis; }
        public void setXAxis(String value) { xAxis = value; }
    }

    static <V> void json(V value) throws Exception {
        print(value, "", Schema.JSON(type(value)));
    }

    static <V> void print(V value, String kind, Schema<V> schema) throws Exception {
        byte[] payload = schema.encode(value);
        boolean text = schema.getSchemaInfo().getType().name().equals("JSON");
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("name", "java " + value.getClass().getSimpleName() + kind);
        line.put("type", schema.getSchemaInfo().getType().name());
        line.put("schema", new String(schema.getSchemaInfo().getSchema(), "UTF-8"));
        line.put("payload", text ? new String(payload, "UTF-8") : Base64.getEncoder().encodeToString(payload));
        System.out.println(new ObjectMapper().writeValueAsString(line));
    }

    @SuppressWarnings("unchecked")
    static <V> Class<V> type(V value) {
        return (Class<V>) value.getClass();
    }

    public static void main(String[] args) throws Exception {
        for (Object value : List.of(new Scalars(), new Objects(), new Maps(), new Times(), new Fine(), new Negative(),
                new Dates(), new Decimals(), new Texts(), new Getters())) {
            json(value);
        }
        print(new Times(), " with JSR-310 conversion",
            Schema.JSON(SchemaDefinition.<Times>builder().withPojo(Times.class).withJSR310ConversionEnabled(true).build()));
        print(new Times(), " AVRO", Schema.AVRO(Times.class));
        print(new IntMap(), " AVRO", Schema.AVRO(IntMap.class));
    }
}
