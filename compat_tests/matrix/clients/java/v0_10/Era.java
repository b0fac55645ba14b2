import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/** kafka-clients 0.10: timestamps, no headers, no admin client. */
final class Era {
    private Era() {}

    static void create(String bootstrap, String topic, int partitions, Properties settings) {
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings)) {
            producer.partitionsFor(topic);
        }
    }

    static ProducerRecord<String, String> record(String topic, int number, long timestamp) {
        return new ProducerRecord<>(topic, null, timestamp, Texts.key(number), Texts.value(number));
    }

    static Long timestamp(ConsumerRecord<String, String> record) {
        return record.timestamp();
    }

    static String header(ConsumerRecord<String, String> record) {
        return null;
    }

    static void setMode(Properties settings, String mode, String id) {}

    static void begin(KafkaProducer<String, String> producer, String mode) {}

    static void end(KafkaProducer<String, String> producer, String mode) {}
}
