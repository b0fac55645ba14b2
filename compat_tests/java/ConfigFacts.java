import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.server.config.DynamicBrokerConfig;
import org.apache.kafka.server.config.QuotaConfig;
import org.apache.kafka.server.metrics.ClientMetricsConfigs;
import org.apache.kafka.storage.internals.log.LogConfig;

/**
 * Prints what Apache Kafka's own definitions say of every config, one line each, fields separated by tabs:
 * table, name, type, default (\N: null, \R: there is none), how it is changed while the broker runs
 * (cluster-wide, per-broker or nothing), "internal" or nothing, and the numbers of those lines of standard
 * input that Kafka takes as a value.
 */
public class ConfigFacts {
    public static void main(String[] arguments) throws Exception {
        List<String> samples;
        try (BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            samples = in.lines().toList();
        }
        Map<String, ConfigDef> tables = new TreeMap<>();
        tables.put("broker", AbstractKafkaConfig.CONFIG_DEF);
        tables.put("quota", QuotaConfig.brokerQuotaConfigs());
        tables.put("topic", LogConfig.configDefCopy());
        tables.put("group", GroupConfig.CONFIG_DEF);
        tables.put("client-metrics", ClientMetricsConfigs.configDef());
        tables.forEach((table, definition) -> new TreeSet<>(definition.names()).forEach(name ->
            System.out.println(table + "\t" + describe(definition.configKeys().get(name), samples))));
    }

    private static String describe(ConfigDef.ConfigKey key, List<String> samples) {
        String mode = DynamicBrokerConfig.dynamicConfigUpdateModes().getOrDefault(key.name, "");
        StringBuilder taken = new StringBuilder();
        for (int i = 0; i < samples.size(); i++) {
            if (takes(key, samples.get(i))) {
                taken.append(i).append(' ');
            }
        }
        return String.join("\t", key.name, key.type.toString().toLowerCase(), defaultOf(key), mode,
            key.internalConfig ? "internal" : "", taken.toString().trim());
    }

    private static String defaultOf(ConfigDef.ConfigKey key) {
        if (!key.hasDefault()) {
            return "\\R";
        }
        return key.defaultValue == null ? "\\N" : ConfigDef.convertToString(key.defaultValue, key.type);
    }

    private static boolean takes(ConfigDef.ConfigKey key, String text) {
        try {
            new ConfigDef().define(key).parse(Map.of(key.name, text));
            return true;
        } catch (ConfigException refusal) {
            return false;
        }
    }
}
