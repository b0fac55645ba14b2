import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;

/**
 * Prints offset, key and value (in hexadecimal, "null" for none) of records of partition 0 of each topic in turn; for clients
 * from 0.9 on.
 *
 * <p>Arguments: bootstrap servers, number of records a topic, offset of the first, and the topics.
 */
public final class OldConsumer {
    private static final long POLL_MS = 1000;

    public static void main(String[] arguments) {
        for (int index = 3; index < arguments.length; index++) {
            consume(arguments[0], arguments[index], Integer.parseInt(arguments[1]), Long.parseLong(arguments[2]));
        }
    }

    private static void consume(String servers, String topic, int count, long offset) {
        Properties config = new Properties();
        config.put("bootstrap.servers", servers);
        config.put("enable.auto.commit", "false");
        config.put("key.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
        config.put("value.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(config);
        TopicPartition partition = new TopicPartition(topic, 0);
        List<TopicPartition> assigned = Collections.singletonList(partition);
        consumer.assign(assigned);
        consumer.seek(partition, offset);
        int missing = count;
        while (missing > 0) {
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(POLL_MS)) {
                System.out.println(record.offset() + " " + hex(record.key()) + " " + hex(record.value()));
                missing--;
            }
        }
        consumer.close();
    }

    private static String hex(byte[] bytes) {
        return bytes == null ? "null" : HexFormat.of().formatHex(bytes);
    }
}
