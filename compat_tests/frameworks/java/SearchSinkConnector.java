import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.errors.RetriableException;
import org.apache.kafka.connect.sink.SinkConnector;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.sink.SinkTask;

/**
 * A sink into OpenSearch, by its REST API. Values are JSON objects and become documents. The id of a document is the topic,
 * the partition and the offset of its record, so that a repeated record replaces its document.
 *
 * <p>Settings: {@code url}, the URL of the index.
 */
public class SearchSinkConnector extends SinkConnector {
    private Map<String, String> settings;

    @Override
    public void start(Map<String, String> settings) {
        this.settings = settings;
    }

    @Override
    public Class<? extends Task> taskClass() {
        return SearchTask.class;
    }

    @Override
    public List<Map<String, String>> taskConfigs(int count) {
        return Collections.nCopies(count, settings);
    }

    @Override
    public void stop() {
    }

    @Override
    public ConfigDef config() {
        return new ConfigDef().define("url", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "The URL of the index.");
    }

    @Override
    public String version() {
        return "1";
    }

    /** Writes each batch of records by one request, and fails unless every document of it is accepted. */
    public static class SearchTask extends SinkTask {
        private static final int OK = 200;

        private final HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
        private URI bulk;

        @Override
        public void start(Map<String, String> settings) {
            bulk = URI.create(settings.get("url") + "/_bulk");
        }

        @Override
        public void put(Collection<SinkRecord> records) {
            if (records.isEmpty()) {
                return;
            }
            StringBuilder body = new StringBuilder();
            for (SinkRecord record : records) {
                String id = record.topic() + "-" + record.kafkaPartition() + "-" + record.kafkaOffset();
                body.append("{\"index\":{\"_id\":\"").append(id).append("\"}}\n").append(record.value()).append('\n');
            }
            HttpResponse<String> response = post(body.toString());
            if (response.statusCode() != OK || !response.body().contains("\"errors\":false")) {
                throw new ConnectException("the index rejects documents: " + response.body());
            }
        }

        private HttpResponse<String> post(String body) {
            HttpRequest request = HttpRequest.newBuilder(bulk)
                .header("Content-Type", "application/x-ndjson")
                .POST(HttpRequest.BodyPublishers.ofString(body))
                .build();
            try {
                return client.send(request, HttpResponse.BodyHandlers.ofString());
            } catch (IOException problem) {
                throw new RetriableException(problem);
            } catch (InterruptedException problem) {
                throw new ConnectException(problem);
            }
        }

        @Override
        public void stop() {
        }

        @Override
        public String version() {
            return "1";
        }
    }
}
