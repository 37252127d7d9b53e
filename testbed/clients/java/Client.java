import java.io.PrintStream;
import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.Date;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.UUID;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SchemaSerializationException;

/**
 * Random values of classes, as Schema.JSON and Schema.AVRO write them by reflection.
 *
 * <p>Arguments: seed, messages, service URL and topic prefix (both empty: nothing is sent), then
 * TYPE:CLASS for each topic. Prints a JSON line a message, as the Go client does; `value` is what
 * the client reads of the payload, or what it was given where its own reader fails.
 */
public class Client {
    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    private static final String LETTERS = "aZ09 _-\"\\/<>&'\u00e4\u0001\u001f\n\t\u2028\u20ac";
    private static final long[] EDGES = {
        0, 1, -1, 127, 128, 1L << 31, (1L << 53) + 1, Long.MAX_VALUE, Long.MIN_VALUE
    };
    private static final double[] DOUBLES = {
        0, -0.0, 1, 0.1, 1e21, 1e-7, Double.MIN_VALUE, Double.MAX_VALUE,
        Double.NaN, Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY
    };

    private static Random random;
    /** Nanoseconds of the finest time that is made: Avro's conversions cut what is finer. */
    private static int finest;
    /** Whether Jackson writes the value. */
    private static boolean json;

    public static void main(String[] arguments) throws Exception {
        int messages = Integer.parseInt(arguments[1]);
        String url = arguments[2];
        PulsarClient client = url.isEmpty() ? null : PulsarClient.builder().serviceUrl(url).build();
        for (int number = 0; number + 4 < arguments.length; number++) {
            String[] named = arguments[number + 4].split(":");
            random = new Random(Long.parseLong(arguments[0]) * 1_000_003 + number);
            json = named[0].equals("JSON");
            finest = named[0].equals("AVRO") ? 1_000_000 : new int[] {1_000_000, 1000, 1}[random.nextInt(3)];
            String topic = client == null ? "" : arguments[3] + number;
            write(number, named[0], Class.forName(named[1]), messages, client, topic);
        }
        if (client != null) {
            client.close();
        }
    }

    private static <T> void write(
            int number, String kind, Class<T> type, int messages, PulsarClient client, String topic)
            throws Exception {
        Schema<T> schema = kind.equals("AVRO") ? Schema.AVRO(type) : Schema.JSON(type);
        String definition = new String(schema.getSchemaInfo().getSchema(), StandardCharsets.UTF_8);
        Producer<T> producer =
                client == null ? null : client.newProducer(schema).topic(topic).create();
        for (int i = 0; i < messages; i++) {
            T value = type.cast(make(type));
            byte[] payload;
            try {
                payload = schema.encode(value);
            } catch (SchemaSerializationException refused) {
                continue; // Avro's reflection does not write all that it describes.
            }
            Object read = value;
            try {
                read = schema.decode(payload);
            } catch (RuntimeException unreadable) {
                // The client cannot read all that it writes; what it was given is the truth then.
            }
            String payloadText = Base64.getEncoder().encodeToString(payload);
            OUT.println(
                    "{\"schema\":" + number + ",\"type\":\"" + kind + "\",\"topic\":" + text(topic)
                            + ",\"definition\":" + text(definition)
                            + ",\"payload\":\"" + payloadText + "\",\"value\":" + show(read) + "}");
            if (producer != null) {
                producer.send(value);
            }
        }
        if (producer != null) {
            producer.close();
        }
    }

    private static List<Field> fields(Class<?> type) {
        List<Field> found = new ArrayList<>();
        for (Field field : type.getDeclaredFields()) {
            if (!Modifier.isStatic(field.getModifiers())) {
                found.add(field);
            }
        }
        return found;
    }

    private static long whole() {
        return random.nextBoolean()
                ? EDGES[random.nextInt(EDGES.length)]
                : random.nextLong() >> random.nextInt(63);
    }

    private static String letters() {
        StringBuilder made = new StringBuilder();
        for (int left = random.nextInt(8); left > 0; left--) {
            made.append(LETTERS.charAt(random.nextInt(LETTERS.length())));
        }
        return made.toString();
    }

    private static Instant instant() {
        long seconds = random.nextInt(2_000_000_000) * (random.nextBoolean() ? 1L : -30L);
        return Instant.ofEpochSecond(seconds, random.nextInt(1_000_000_000) / finest * finest);
    }

    private static Object make(Type type) throws Exception {
        if (type instanceof ParameterizedType generic) {
            Type[] of = generic.getActualTypeArguments();
            if (generic.getRawType() == List.class) {
                List<Object> made = new ArrayList<>();
                for (int left = random.nextInt(4); left > 0; left--) {
                    made.add(make(of[0]));
                }
                return made;
            }
            Map<Object, Object> made = new LinkedHashMap<>();
            for (int left = random.nextInt(4); left > 0; left--) {
                made.put(make(of[0]), make(of[1]));
            }
            return made;
        }
        Class<?> plain = (Class<?>) type;
        long whole = whole();
        if (plain == boolean.class || plain == Boolean.class) {
            return random.nextBoolean();
        } else if (plain == byte.class || plain == Byte.class) {
            return (byte) whole;
        } else if (plain == short.class || plain == Short.class) {
            return (short) whole;
        } else if (plain == int.class || plain == Integer.class) {
            return (int) whole;
        } else if (plain == long.class || plain == Long.class) {
            return whole;
        } else if (plain == float.class || plain == Float.class) {
            return (float) random.nextGaussian();
        } else if (plain == double.class || plain == Double.class) {
            return random.nextBoolean()
                    ? DOUBLES[random.nextInt(DOUBLES.length)]
                    : random.nextGaussian() * Math.pow(10, random.nextInt(40) - 20);
        } else if (plain == String.class) {
            return letters();
        } else if (plain == byte[].class) {
            byte[] made = new byte[random.nextInt(6)];
            random.nextBytes(made);
            return made;
        } else if (plain == BigInteger.class) {
            return BigInteger.valueOf(whole).shiftLeft(random.nextInt(40));
        } else if (plain == BigDecimal.class) {
            return BigDecimal.valueOf(whole, random.nextInt(12));
        } else if (plain == UUID.class) {
            return new UUID(random.nextLong(), random.nextLong());
        } else if (plain == Instant.class) {
            return instant();
        } else if (plain == LocalDate.class) {
            return instant().atZone(ZoneOffset.UTC).toLocalDate();
        } else if (plain == LocalTime.class) {
            return instant().atZone(ZoneOffset.UTC).toLocalTime();
        } else if (plain == LocalDateTime.class) {
            return instant().atZone(ZoneOffset.UTC).toLocalDateTime();
        } else if (plain == Date.class) {
            return new Date(instant().toEpochMilli());
        } else if (plain == Object.class) {
            return anything();
        } else if (plain.isEnum()) {
            return plain.getEnumConstants()[random.nextInt(plain.getEnumConstants().length)];
        } else if (plain.isArray()) {
            Object made = Array.newInstance(plain.getComponentType(), random.nextInt(4));
            for (int i = 0; i < Array.getLength(made); i++) {
                Array.set(made, i, make(plain.getComponentType()));
            }
            return made;
        }
        Object made = plain.getDeclaredConstructor().newInstance();
        for (Field field : fields(plain)) {
            if (field.getType().isPrimitive() || random.nextInt(4) > 0) {
                field.set(made, make(field.getGenericType()));
            }
        }
        return made;
    }

    /** What applications put into an Object: text, numbers, booleans, lists and maps of these. */
    private static Object anything() {
        return switch (random.nextInt(6)) {
            case 0 -> letters();
            case 1 -> (int) whole();
            case 2 -> random.nextBoolean();
            case 3 -> random.nextInt(1000) / 8.0;
            case 4 -> List.of(1, "a", List.of(true));
            default -> Map.of("key", random.nextInt());
        };
    }

    /** As the Go client shows its values; times in nanoseconds, days as their number. */
    private static String show(Object value) throws Exception {
        if (value == null) {
            return "null";
        } else if (value instanceof Boolean || value instanceof Long || value instanceof Integer
                || value instanceof Short || value instanceof Byte) {
            return value.toString();
        } else if (value instanceof byte[] bytes) {
            return text(Base64.getEncoder().encodeToString(bytes));
        } else if (value instanceof Instant at && json && at.getEpochSecond() < 0 && at.getNano() > 0) {
            // Jackson writes -1.3 s as "-2.700000000": seconds, a point, nanoseconds.
            return text("?");
        } else if (value instanceof Instant at) {
            return nanoseconds(at);
        } else if (value instanceof LocalDateTime at) {
            return nanoseconds(at.toInstant(ZoneOffset.UTC));
        } else if (value instanceof LocalTime at) {
            return Long.toString(at.toNanoOfDay());
        } else if (value instanceof LocalDate day) {
            return Long.toString(day.toEpochDay());
        } else if (value instanceof Date date) {
            return Long.toString(date.getTime());
        } else if (value instanceof Collection<?> items) {
            List<String> shown = new ArrayList<>();
            for (Object item : items) {
                shown.add(show(item));
            }
            return "[" + String.join(",", shown) + "]";
        } else if (value.getClass().isArray()) {
            List<String> shown = new ArrayList<>();
            for (int i = 0; i < Array.getLength(value); i++) {
                shown.add(show(Array.get(value, i)));
            }
            return "[" + String.join(",", shown) + "]";
        } else if (value instanceof Map<?, ?> map) {
            List<String> shown = new ArrayList<>();
            for (Map.Entry<?, ?> entry : map.entrySet()) {
                shown.add(text(entry.getKey().toString()) + ":" + show(entry.getValue()));
            }
            return "{" + String.join(",", shown) + "}";
        } else if (!value.getClass().getName().startsWith("Generated$") || value instanceof Enum) {
            return text(value.toString());
        }
        List<String> shown = new ArrayList<>();
        for (Field field : fields(value.getClass())) {
            shown.add(text(field.getName()) + ":" + show(field.get(value)));
        }
        return "{" + String.join(",", shown) + "}";
    }

    private static String nanoseconds(Instant at) {
        BigInteger seconds = BigInteger.valueOf(at.getEpochSecond());
        return seconds.multiply(BigInteger.TEN.pow(9)).add(BigInteger.valueOf(at.getNano())).toString();
    }

    private static String text(String value) {
        StringBuilder made = new StringBuilder("\"");
        for (char letter : value.toCharArray()) {
            if (letter < ' ' || letter > '~' || letter == '"' || letter == '\\') {
                made.append(String.format("\\u%04x", (int) letter));
            } else {
                made.append(letter);
            }
        }
        return made.append('"').toString();
    }
}
