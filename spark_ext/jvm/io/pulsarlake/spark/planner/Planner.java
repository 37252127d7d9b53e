package io.pulsarlake.spark.planner;

import com.fasterxml.jackson.core.JacksonException;
import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.PropertyNamingStrategies;
import com.fasterxml.jackson.databind.SerializationFeature;
import com.fasterxml.jackson.databind.json.JsonMapper;
import io.pulsarlake.spark.planner.Messages.ErrorData;
import io.pulsarlake.spark.planner.Messages.Failure;
import io.pulsarlake.spark.planner.Messages.Question;
import io.pulsarlake.spark.planner.Messages.Reply;
import io.pulsarlake.spark.planner.Messages.Request;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A Python child process that answers one line of JSON with one line of JSON.
 *
 * <p>One per JVM and interpreter, however many sessions and catalogs there are. It is started when
 * needed, ends by itself when idle or when this JVM ends (its stdin closes), and is started again
 * when it is found dead: every request can be repeated, so a call tries twice. Not more often, as it
 * may be the request that ends it (it wants more memory than there is).
 */
public final class Planner {
  /** Of messages. An answer is as long as it has to be: it comes from our own process. */
  public static final ObjectMapper JSON =
      JsonMapper.builder(
              JsonFactory.builder()
                  .streamReadConstraints(
                      StreamReadConstraints.builder().maxStringLength(Integer.MAX_VALUE).build())
                  .build())
          .propertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE)
          .disable(SerializationFeature.FAIL_ON_EMPTY_BEANS)
          .enable(DeserializationFeature.FAIL_ON_NULL_FOR_PRIMITIVES)
          .enable(DeserializationFeature.FAIL_ON_MISSING_CREATOR_PROPERTIES)
          .build();
  private static final Logger LOG = LoggerFactory.getLogger(Planner.class);
  private static final Map<String, Planner> RUNNING = new ConcurrentHashMap<>();

  private final String python;
  private final AtomicLong questions = new AtomicLong();
  private Child child;

  private Planner(String python) {
    this.python = python;
  }

  public static Planner of(String python) {
    return RUNNING.computeIfAbsent(python, Planner::new);
  }

  Reply call(String config, Question<?> question) {
    JsonNode fields = JSON.valueToTree(question);
    String name = question.getClass().getSimpleName();
    try {
      return running().call(config, name, fields);
    } catch (GoneException gone) {
      LOG.info("The planner is started again: {}", gone.getMessage());
    }
    try {
      return running().call(config, name, fields);
    } catch (GoneException gone) {
      return new Reply(0, null, gone.failure());
    }
  }

  /** How many questions were asked; of each, once more where it was asked of a second process. */
  public long asked() {
    return questions.get();
  }

  /** Begins to start the process, so that the first call finds it ready sooner. */
  public void start() {
    try {
      running();
    } catch (GoneException failed) {
      throw Errors.of(failed.failure());
    }
  }

  private synchronized Child running() throws GoneException {
    if (child == null || !child.alive()) {
      try {
        child = new Child(python);
      } catch (IOException failed) {
        throw new GoneException(
            "ConfigurationError",
            "the planner cannot be started: " + failed.getMessage(),
            "the interpreter is the catalog's option python, else spark.pyspark.python");
      }
    }
    return child;
  }

  /** No planner answered; as an error of ours, its class is one of reader/errors.py. */
  private static final class GoneException extends Exception {
    private final String kind;
    private final String hint;

    private GoneException(String kind, String message, String hint) {
      super(message);
      this.kind = kind;
      this.hint = hint;
    }

    private Failure failure() {
      ErrorData data = new ErrorData(kind, getMessage(), hint, JSON.createObjectNode());
      return new Failure(getMessage() + " (" + hint + ")", false, data);
    }
  }

  /** One life of the process. */
  private final class Child {
    private static final String LOOK = "Spark's log has what it said";
    private final Process process;
    private final OutputStream requests;
    private final Map<Long, CompletableFuture<Reply>> waiting = new ConcurrentHashMap<>();
    private final Thread errors;
    private final Thread answers;
    private volatile boolean ending;
    private volatile GoneException gone; // Once it has ended.
    private volatile String lastLine = "";

    private Child(String python) throws IOException {
      // -P: no module comes out of the folder that Spark was started in.
      process = new ProcessBuilder(List.of(python, "-P", "-m", "spark_ext.planner.process")).start();
      requests = process.getOutputStream();
      errors = daemon("pulsar-planner-log", this::copyErrors);
      answers = daemon("pulsar-planner", this::readAnswers);
    }

    boolean alive() {
      return !ending && process.isAlive();
    }

    Reply call(String config, String name, JsonNode question) throws GoneException {
      long id = questions.incrementAndGet();
      CompletableFuture<Reply> answer = new CompletableFuture<>();
      waiting.put(id, answer);
      try {
        send(JSON.writeValueAsString(new Request(id, config, name, question)) + "\n");
        if (gone != null) { // It may have ended between the put and the reader's last look.
          throw gone;
        }
        return answer.get();
      } catch (JsonProcessingException never) {
        throw new IllegalStateException(never);
      } catch (ExecutionException failed) {
        throw gone;
      } catch (InterruptedException cancelled) {
        Thread.currentThread().interrupt();
        // Of this kind, Spark knows that a stream was stopped and has not failed.
        InterruptedIOException stopped =
            new InterruptedIOException("cancelled while the planner was asked");
        stopped.initCause(cancelled);
        throw new UncheckedIOException(stopped);
      } finally {
        waiting.remove(id);
      }
    }

    private void send(String line) throws GoneException, InterruptedException {
      try {
        synchronized (requests) {
          requests.write(line.getBytes(StandardCharsets.UTF_8));
          requests.flush();
        }
      } catch (IOException broken) {
        answers.join(3000); // Then it is known why.
        throw gone == null ? why(null) : gone;
      }
    }

    private void readAnswers() {
      String unreadable = null;
      try (BufferedReader lines = process.inputReader(StandardCharsets.UTF_8)) {
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
          Reply reply = JSON.readValue(line, Reply.class);
          CompletableFuture<Reply> asked = waiting.get(reply.id());
          if (asked != null) {
            asked.complete(reply);
          }
        }
      } catch (JacksonException broken) { // Half a line, too, of one that was killed.
        unreadable = broken.getOriginalMessage();
      } catch (IOException closed) {
        LOG.debug("the planner's answers are closed", closed);
      } finally {
        ending = true;
        try {
          if (process.waitFor(1, TimeUnit.SECONDS)) {
            errors.join(1000); // Its last line may say why.
          }
        } catch (InterruptedException cancelled) {
          Thread.currentThread().interrupt();
        } finally {
          gone = why(unreadable); // Before destroy(), whose signal is not why.
          waiting.values().forEach(asked -> asked.completeExceptionally(gone));
          process.destroy();
        }
      }
    }

    private void copyErrors() {
      try (BufferedReader lines = process.errorReader(StandardCharsets.UTF_8)) {
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
          LOG.warn("planner: {}", line);
          if (!line.isBlank()) {
            lastLine = ", its last line: " + line.strip();
          }
        }
      } catch (IOException closed) {
        LOG.debug("the planner's log is closed", closed);
      }
    }

    private GoneException why(String unreadable) {
      if (process.isAlive()) {
        return new GoneException(
            "PulsarLakeError",
            unreadable == null
                ? "the planner process gives no answers any more"
                : "an answer of the planner process cannot be read: " + unreadable,
            LOOK);
      }
      int code = process.exitValue();
      String signal = "the planner process has ended: signal " + (code - 128);
      if (code == 128 + 9 || code == 128 + 15) {
        return new GoneException(
            "UnavailableError", signal, "the kernel's log says whether memory was short; try again");
      }
      if (code > 128 && code <= 192) {
        return new GoneException("PulsarLakeError", signal, LOOK);
      }
      return new GoneException(
          "PulsarLakeError", "the planner process has ended: exit code " + code + lastLine, LOOK);
    }

    private static Thread daemon(String name, Runnable task) {
      Thread thread = new Thread(task, name);
      thread.setDaemon(true);
      thread.start();
      return thread;
    }
  }
}
