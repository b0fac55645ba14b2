import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;

/**
 * Sends "key n" and "value n" for n from 0 on to each topic in turn, and prints the offset of each; for clients from 0.8.2 on.
 *
 * <p>Arguments: bootstrap servers, number of records a topic, and for each topic its name and the compression.type.
 */
public final class OldProducer {
    public static void main(String[] arguments) throws Exception {
        int count = Integer.parseInt(arguments[1]);
        for (int index = 2; index < arguments.length; index += 2) {
            produce(arguments[0], arguments[index], arguments[index + 1], count);
        }
    }

    private static void produce(String servers, String topic, String codec, int count) throws Exception {
        Properties config = new Properties();
        config.put("bootstrap.servers", servers);
        config.put("compression.type", codec);
        config.put("acks", "all");
        config.put("linger.ms", "100");
        config.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        config.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        KafkaProducer<String, String> producer = new KafkaProducer<>(config);
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (int number = 0; number < count; number++) {
            sent.add(producer.send(new ProducerRecord<>(topic, 0, "key " + number, "value " + number)));
        }
        for (Future<RecordMetadata> future : sent) {
            System.out.println(future.get().offset());
        }
        producer.close();
    }
}
