import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.Executors;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.AlreadyExistsException;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.exceptions.NoSuchNamespaceException;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.apache.iceberg.jdbc.JdbcCatalog;
import org.apache.iceberg.rest.CatalogHandlers;
import org.apache.iceberg.rest.RESTCatalogProperties.SnapshotMode;
import org.apache.iceberg.rest.RESTSerializers;
import org.apache.iceberg.rest.requests.CreateNamespaceRequest;
import org.apache.iceberg.rest.requests.CreateTableRequest;
import org.apache.iceberg.rest.requests.UpdateTableRequest;
import org.apache.iceberg.rest.responses.ConfigResponse;
import org.apache.iceberg.rest.responses.ErrorResponse;
import org.apache.iceberg.shaded.com.fasterxml.jackson.annotation.JsonAutoDetect;
import org.apache.iceberg.shaded.com.fasterxml.jackson.annotation.PropertyAccessor;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.DeserializationFeature;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.PropertyNamingStrategies;

/** Iceberg's REST catalog for tests: routes to Apache's own handlers, over a database in memory. */
public final class RestServer {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final JdbcCatalog CATALOG = new JdbcCatalog();

  /** Arguments: the warehouse. Prints the port once it listens. */
  public static void main(String[] arguments) throws IOException {
    JSON.setVisibility(PropertyAccessor.FIELD, JsonAutoDetect.Visibility.ANY);
    JSON.configure(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES, false);
    JSON.setPropertyNamingStrategy(PropertyNamingStrategies.KEBAB_CASE);
    RESTSerializers.registerAll(JSON);
    CATALOG.initialize(
        "rest",
        Map.of("warehouse", arguments[0], "uri", "jdbc:h2:mem:catalog;DB_CLOSE_DELAY=-1"));
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
    server.setExecutor(Executors.newFixedThreadPool(8));
    server.createContext("/", RestServer::answer);
    server.start();
    System.out.println(server.getAddress().getPort());
  }

  private static void answer(HttpExchange exchange) throws IOException {
    int status = 200;
    byte[] body;
    try {
      byte[] request = exchange.getRequestBody().readAllBytes();
      Object found = route(exchange, request);
      status = found == null ? 204 : 200;
      body = found == null ? new byte[0] : JSON.writeValueAsBytes(found);
    } catch (Exception error) {
      status = statusOf(error);
      body =
          JSON.writeValueAsBytes(
              ErrorResponse.builder()
                  .responseCode(status)
                  .withType(error.getClass().getSimpleName())
                  .withMessage(String.valueOf(error.getMessage()))
                  .build());
    }
    exchange.getResponseHeaders().set("Content-Type", "application/json");
    boolean none = status == 204 || exchange.getRequestMethod().equals("HEAD");
    exchange.sendResponseHeaders(status, none ? -1 : body.length);
    if (!none) {
      exchange.getResponseBody().write(body);
    }
    exchange.close();
  }

  private static Object route(HttpExchange exchange, byte[] body) throws IOException {
    String[] path = exchange.getRequestURI().getRawPath().substring(1).split("/");
    String method = exchange.getRequestMethod();
    if (path.length == 2 && path[1].equals("config")) {
      return ConfigResponse.builder().build();
    }
    if (path.length == 2 && method.equals("POST")) {
      return CatalogHandlers.createNamespace(
          CATALOG, JSON.readValue(body, CreateNamespaceRequest.class));
    }
    if (path.length == 2) {
      return CatalogHandlers.listNamespaces(CATALOG, Namespace.empty());
    }
    if (path.length < 3 || !path[1].equals("namespaces")) {
      throw new UnsupportedOperationException(method + " " + exchange.getRequestURI());
    }
    Namespace namespace = Namespace.of(decoded(path[2]).split("\u001f"));
    if (path.length == 3 && method.equals("DELETE")) {
      CatalogHandlers.dropNamespace(CATALOG, namespace);
      return null;
    }
    if (path.length == 3) {
      return CatalogHandlers.loadNamespace(CATALOG, namespace);
    }
    if (path.length == 4 && method.equals("GET")) {
      return CatalogHandlers.listTables(CATALOG, namespace);
    }
    if (path.length == 4) {
      CreateTableRequest request = JSON.readValue(body, CreateTableRequest.class);
      return request.stageCreate()
          ? CatalogHandlers.stageTableCreate(CATALOG, namespace, request)
          : CatalogHandlers.createTable(CATALOG, namespace, request);
    }
    TableIdentifier table = TableIdentifier.of(namespace, decoded(path[4]));
    switch (method) {
      case "POST":
        return CatalogHandlers.updateTable(
            CATALOG, table, JSON.readValue(body, UpdateTableRequest.class));
      case "DELETE":
        CatalogHandlers.dropTable(CATALOG, table);
        return null;
      default:
        return CatalogHandlers.loadTable(CATALOG, table, SnapshotMode.ALL);
    }
  }

  private static String decoded(String part) {
    return URLDecoder.decode(part, StandardCharsets.UTF_8);
  }

  private static int statusOf(Exception error) {
    if (error instanceof NoSuchTableException || error instanceof NoSuchNamespaceException) {
      return 404;
    }
    if (error instanceof AlreadyExistsException || error instanceof CommitFailedException) {
      return 409;
    }
    return error instanceof UnsupportedOperationException ? 406 : 500;
  }
}
