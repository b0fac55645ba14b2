import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;

/**
 * Prints offset, key and value (in hexadecimal, "null" for none) of so many records of partition 0; for clients from 0.9 on.
 *
 * <p>Arguments: bootstrap servers, topic, number of records, offset of the first.
 */
public final class OldConsumer {
    private static final long POLL_MS = 1000;

    public static void main(String[] arguments) {
        Properties config = new Properties();
        config.put("bootstrap.servers", arguments[0]);
        config.put("enable.auto.commit", "false");
        config.put("key.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
        config.put("value.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(config);
        TopicPartition partition = new TopicPartition(arguments[1], 0);
        List<TopicPartition> assigned = Collections.singletonList(partition);
        consumer.assign(assigned);
        consumer.seek(partition, Long.parseLong(arguments[3]));
        int missing = Integer.parseInt(arguments[2]);
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
