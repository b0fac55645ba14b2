import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Prints the milliseconds from subscribe to the first record, a line for each pair of a bootstrap address and a topic given. The
 * first of them loads the client's classes, too.
 */
public class FirstRecord {
    public static void main(String[] arguments) {
        for (int index = 0; index < arguments.length; index += 2) {
            System.out.println(milliseconds(arguments[index], arguments[index + 1]));
        }
    }

    private static double milliseconds(String bootstrap, String topic) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("group.id", topic);
        settings.put("auto.offset.reset", "earliest");
        StringDeserializer strings = new StringDeserializer();
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings, strings, strings)) {
            long begun = System.nanoTime();
            consumer.subscribe(List.of(topic));
            while (consumer.poll(Duration.ofSeconds(1)).isEmpty()) {
            }
            return (System.nanoTime() - begun) / 1e6;
        }
    }
}
