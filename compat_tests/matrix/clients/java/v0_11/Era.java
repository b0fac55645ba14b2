import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.Header;

/** kafka-clients 0.11 and later: headers, idempotent producers, transactions, an admin client. */
final class Era {
    private Era() {}

    static void create(String bootstrap, String topic, int partitions, Properties settings) throws Exception {
        Properties admin = new Properties();
        admin.put("bootstrap.servers", bootstrap);
        admin.put("request.timeout.ms", "15000");
        admin.put("default.api.timeout.ms", "20000");
        try (AdminClient client = AdminClient.create(admin)) {
            NewTopic wanted = new NewTopic(topic, partitions, (short) 1);
            client.createTopics(Collections.singleton(wanted)).all().get(20, TimeUnit.SECONDS);
        }
    }

    static ProducerRecord<String, String> record(String topic, int number, long timestamp) {
        ProducerRecord<String, String> record =
                new ProducerRecord<>(topic, null, timestamp, Texts.key(number), Texts.value(number));
        record.headers().add("n", Texts.header(number).getBytes(StandardCharsets.UTF_8));
        return record;
    }

    static Long timestamp(ConsumerRecord<String, String> record) {
        return record.timestamp();
    }

    static String header(ConsumerRecord<String, String> record) {
        Header header = record.headers().lastHeader("n");
        return header == null ? null : new String(header.value(), StandardCharsets.UTF_8);
    }

    static void setMode(Properties settings, String mode, String id) {
        if (!mode.equals("plain")) {
            settings.put("enable.idempotence", "true");
        }
        if (isTransaction(mode)) {
            settings.put("transactional.id", id);
        }
    }

    static void begin(KafkaProducer<String, String> producer, String mode) {
        if (isTransaction(mode)) {
            producer.initTransactions();
            producer.beginTransaction();
        }
    }

    static void end(KafkaProducer<String, String> producer, String mode) {
        if (mode.equals("aborted")) {
            producer.abortTransaction();
        } else if (mode.equals("committed")) {
            producer.commitTransaction();
        }
    }

    private static boolean isTransaction(String mode) {
        return mode.equals("aborted") || mode.equals("committed");
    }
}
