import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.opensearch.common.settings.Settings;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.transport.Netty4Plugin;

/** OpenSearch in one process, until it is ended. Arguments: its folder, the port of its REST API. */
public class SearchServer extends Node {
    private SearchServer(Settings settings) {
        super(
            InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), null, () -> "search"),
            List.of(Netty4Plugin.class),
            false);
    }

    public static void main(String[] arguments) throws Exception {
        Settings settings = Settings.builder()
            .put("path.home", arguments[0])
            .put("network.host", "127.0.0.1")
            .put("http.port", arguments[1])
            .put("transport.port", "0")
            .put("transport.type", "netty4")
            .put("http.type", "netty4")
            .put("discovery.type", "single-node")
            // A disk that is nearly full refuses no documents.
            .put("cluster.routing.allocation.disk.threshold_enabled", false)
            .build();
        new SearchServer(settings).start();
        // All threads of the node are daemons.
        new CountDownLatch(1).await();
    }
}
