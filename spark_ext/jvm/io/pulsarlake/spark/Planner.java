package io.pulsarlake.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
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
final class Planner {
  static final ObjectMapper JSON = new ObjectMapper();
  private static final Logger LOG = LoggerFactory.getLogger(Planner.class);
  private static final Map<String, Planner> RUNNING = new ConcurrentHashMap<>();

  private final String python;
  private Child child;

  private Planner(String python) {
    this.python = python;
  }

  static Planner of(String python) {
    return RUNNING.computeIfAbsent(python, Planner::new);
  }

  /** The answer to a request, which is an object with "ok" or "error". */
  JsonNode call(ObjectNode request) {
    try {
      return running().call(request);
    } catch (IOException gone) {
      LOG.info("The planner is started again: {}", gone.getMessage());
    }
    try {
      return running().call(request);
    } catch (IOException gone) {
      return unavailable(gone.getMessage());
    }
  }

  /** The answer that a planner would give, with what spark_ext.session.errors reads. */
  private static JsonNode unavailable(String message) {
    String hint = "Spark's log has what it said, the kernel's who was killed; then try again";
    ObjectNode data = JSON.createObjectNode().put("class", "UnavailableError");
    data.put("message", message).put("hint", hint).putObject("context");
    ObjectNode answer = JSON.createObjectNode();
    answer
        .putObject("error")
        .put("kind", "error")
        .put("message", message + " (" + hint + ")")
        .put("data", data.toString());
    return answer;
  }

  /** Begins to start the process, so that the first call finds it ready sooner. */
  synchronized Child running() throws IOException {
    if (child == null || !child.alive()) {
      child = new Child(python);
    }
    return child;
  }

  /** One life of the process. */
  static final class Child {
    private final Process process;
    private final OutputStream requests;
    private final Map<Long, CompletableFuture<JsonNode>> waiting = new ConcurrentHashMap<>();
    private final AtomicLong lastId = new AtomicLong();
    private final Thread errors;
    private final Thread answers;
    private volatile boolean ended;
    private volatile String ending = "";

    private Child(String python) throws IOException {
      // -P: no module comes out of the folder that Spark was started in.
      process = new ProcessBuilder(List.of(python, "-P", "-m", "spark_ext.catalog.server")).start();
      requests = process.getOutputStream();
      errors = daemon("pulsar-planner-log", this::copyErrors);
      answers = daemon("pulsar-planner", this::readAnswers);
    }

    boolean alive() {
      return !ended && process.isAlive();
    }

    JsonNode call(ObjectNode request) throws IOException {
      long id = lastId.incrementAndGet();
      CompletableFuture<JsonNode> answer = new CompletableFuture<>();
      waiting.put(id, answer);
      byte[] line = (JSON.writeValueAsString(request.deepCopy().put("id", id)) + "\n")
          .getBytes(StandardCharsets.UTF_8);
      try {
        send(line);
        if (ended) { // It may have ended between the put and the reader's last look.
          throw gone();
        }
        return answer.get();
      } catch (ExecutionException failed) {
        throw new IOException(failed.getCause().getMessage(), failed.getCause());
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

    private void send(byte[] line) throws IOException, InterruptedException {
      try {
        synchronized (requests) {
          requests.write(line);
          requests.flush();
        }
      } catch (IOException broken) {
        answers.join(3000); // Then it is known why.
        throw gone();
      }
    }

    private void readAnswers() {
      try (BufferedReader lines = process.inputReader(StandardCharsets.UTF_8)) {
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
          JsonNode answer = JSON.readTree(line);
          CompletableFuture<JsonNode> asked = waiting.get(answer.path("id").asLong());
          if (asked != null) {
            asked.complete(answer);
          }
        }
      } catch (IOException broken) {
        ending = ", its answer cannot be read: " + broken.getMessage();
      } finally {
        try {
          errors.join(1000); // Its last line may say why; destroy() closes what is not read yet.
          if (process.waitFor(1, TimeUnit.SECONDS)) {
            int code = process.exitValue();
            ending = (code > 128 ? ": signal " + (code - 128) : ": exit code " + code) + ending;
          }
        } catch (InterruptedException cancelled) {
          Thread.currentThread().interrupt();
        }
        process.destroy();
        ended = true;
        waiting.values().forEach(asked -> asked.completeExceptionally(gone()));
      }
    }

    private void copyErrors() {
      try (BufferedReader lines = process.errorReader(StandardCharsets.UTF_8)) {
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
          LOG.warn("planner: {}", line);
          if (!line.isBlank()) {
            ending = ", its last line: " + line.strip();
          }
        }
      } catch (IOException closed) {
        LOG.debug("the planner's log is closed", closed);
      }
    }

    private IOException gone() {
      return new IOException("the planner process has ended" + ending);
    }

    private static Thread daemon(String name, Runnable task) {
      Thread thread = new Thread(task, name);
      thread.setDaemon(true);
      thread.start();
      return thread;
    }
  }
}
