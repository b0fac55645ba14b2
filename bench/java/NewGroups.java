import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Prints the milliseconds from the creation of a consumer to its first record, a line for each new group. Arguments: topic, number
 * of groups, and the settings of the consumers as name=value. The first group loads the client's classes, too.
 */
public class NewGroups {
    public static void main(String[] arguments) {
        Properties settings = new Properties();
        settings.put("auto.offset.reset", "earliest");
        for (String setting : List.of(arguments).subList(2, arguments.length)) {
            String[] parts = setting.split("=", 2);
            settings.put(parts[0], parts[1]);
        }
        for (int group = 0; group < Integer.parseInt(arguments[1]); group++) {
            settings.put("group.id", "group-" + group);
            System.out.println(milliseconds(arguments[0], settings));
        }
    }

    private static double milliseconds(String topic, Properties settings) {
        StringDeserializer strings = new StringDeserializer();
        long begun = System.nanoTime();
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings, strings, strings)) {
            consumer.subscribe(List.of(topic));
            while (consumer.poll(Duration.ofSeconds(1)).isEmpty()) {
            }
            return (System.nanoTime() - begun) / 1e6;
        }
    }
}
