import java.util.*;
import org.opensearch.common.settings.Settings;
import org.opensearch.node.*;

/** A node with the single plugin on the class path. The distribution, which loads plugins from folders, is in no jar. */
public class OpenSearchNode extends Node {
  OpenSearchNode(org.opensearch.env.Environment e) {
    super(e, List.of(org.opensearch.transport.Netty4Plugin.class), false);
  }

  public static void main(String[] args) throws Exception {
    Settings s = Settings.builder().put("path.home", args[0]).put("cluster.name", "kumo").put("node.name", "node")
        .put("http.port", "9200").put("transport.port", "9300").put("network.host", "127.0.0.1")
        .put("discovery.type", "single-node").put("transport.type", "netty4").put("http.type", "netty4")
        .put("cluster.routing.allocation.disk.threshold_enabled", false).build();
    new OpenSearchNode(InternalSettingsPreparer.prepareEnvironment(s, Collections.emptyMap(), null, () -> "node")).start();
    Thread.currentThread().join();
  }
}
