import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.springframework.kafka.core.DefaultKafkaConsumerFactory;
import org.springframework.kafka.core.DefaultKafkaProducerFactory;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.kafka.listener.ConcurrentMessageListenerContainer;
import org.springframework.kafka.listener.ContainerProperties;
import org.springframework.kafka.listener.DeadLetterPublishingRecoverer;
import org.springframework.kafka.listener.DefaultAfterRollbackProcessor;
import org.springframework.kafka.listener.DefaultErrorHandler;
import org.springframework.kafka.listener.MessageListener;
import org.springframework.kafka.transaction.KafkaTransactionManager;
import org.springframework.util.backoff.FixedBackOff;

/**
 * A listener container of Spring Kafka that sends every value in capitals from NAME to NAME-out, until it is ended.
 *
 * <p>Arguments: a guarantee, the bootstrap servers, NAME. With "exactly-once" the container commits the record it sends and
 * the offset it has read in one transaction, and rolls back a failed one. With "at-least-once" the template has a
 * transaction of its own, the container commits the offset later, and a DefaultErrorHandler repeats a failed record. A
 * value with "poison" fails three times and goes to NAME-dead; a value with "shaky" fails once.
 */
public class SpringJob {
    private static final long REPETITIONS = 2;
    private static final Map<String, Integer> failures = new HashMap<>();

    public static void main(String[] arguments) {
        String bootstrap = arguments[1];
        String name = arguments[2];
        var factory = new DefaultKafkaProducerFactory<String, String>(producerSettings(bootstrap));
        factory.setTransactionIdPrefix(name + "-");
        var template = new KafkaTemplate<>(factory);
        template.setAllowNonTransactional(false);
        boolean exactlyOnce = arguments[0].equals("exactly-once");
        var properties = new ContainerProperties(name);
        properties.setGroupId(name);
        properties.setMessageListener((MessageListener<String, String>) record -> handle(template, record, exactlyOnce));
        if (exactlyOnce) {
            properties.setKafkaAwareTransactionManager(new KafkaTransactionManager<>(factory));
        }
        var consumers = new DefaultKafkaConsumerFactory<String, String>(consumerSettings(bootstrap));
        var container = new ConcurrentMessageListenerContainer<>(consumers, properties);
        container.setConcurrency(2);
        var backOff = new FixedBackOff(20, REPETITIONS);
        var dead = new DeadLetterPublishingRecoverer(
            template, (record, problem) -> new TopicPartition(name + "-dead", record.partition()));
        if (exactlyOnce) {
            container.setAfterRollbackProcessor(new DefaultAfterRollbackProcessor<>(dead, backOff, template, true));
        } else {
            container.setCommonErrorHandler(new DefaultErrorHandler(dead, backOff));
        }
        Runtime.getRuntime().addShutdownHook(new Thread(container::stop));
        container.start();
    }

    private static void handle(
            KafkaTemplate<String, String> template, ConsumerRecord<String, String> record, boolean inTransaction) {
        String out = record.topic() + "-out";
        String capitals = record.value().toUpperCase();
        if (inTransaction) {
            template.send(out, record.partition(), record.key(), capitals);
            refuse(record);
        } else {
            refuse(record);
            template.executeInTransaction(own -> own.send(out, record.partition(), record.key(), capitals));
        }
    }

    private static synchronized void refuse(ConsumerRecord<String, String> record) {
        String value = record.value();
        boolean shaky = value.contains("shaky") && failures.merge(value, 1, Integer::sum) == 1;
        if (shaky || value.contains("poison")) {
            throw new IllegalStateException("refused " + value);
        }
    }

    private static Map<String, Object> producerSettings(String bootstrap) {
        return Map.of(
            "bootstrap.servers", bootstrap,
            "transaction.timeout.ms", 10_000,
            "key.serializer", StringSerializer.class,
            "value.serializer", StringSerializer.class);
    }

    private static Map<String, Object> consumerSettings(String bootstrap) {
        return Map.of(
            "bootstrap.servers", bootstrap,
            "auto.offset.reset", "earliest",
            "isolation.level", "read_committed",
            "session.timeout.ms", 6000,
            "heartbeat.interval.ms", 1000,
            "key.deserializer", StringDeserializer.class,
            "value.deserializer", StringDeserializer.class);
    }
}
