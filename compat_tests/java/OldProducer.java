import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;

/**
 * Sends "key n" and "value n" for n from 0 on and prints the offset of each; for clients from 0.8.2 on.
 *
 * <p>Arguments: bootstrap servers, topic, compression.type, number of records.
 */
public final class OldProducer {
    public static void main(String[] arguments) throws Exception {
        Properties config = new Properties();
        config.put("bootstrap.servers", arguments[0]);
        config.put("compression.type", arguments[2]);
        config.put("acks", "all");
        config.put("linger.ms", "100");
        config.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        config.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        KafkaProducer<String, String> producer = new KafkaProducer<>(config);
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (int number = 0; number < Integer.parseInt(arguments[3]); number++) {
            sent.add(producer.send(new ProducerRecord<>(arguments[1], 0, "key " + number, "value " + number)));
        }
        for (Future<RecordMetadata> each : sent) {
            System.out.println(each.get().offset());
        }
        producer.close();
    }
}
