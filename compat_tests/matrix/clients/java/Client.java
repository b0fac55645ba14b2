import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Properties;
import java.util.TreeSet;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.TopicPartition;

/** Drives kafka-clients 0.9 to 4.x; what they do not have in common is in the class Era of three ages. */
public final class Client {
    private static final long PATIENCE_MS = 25_000;
    private static final String STRINGS = "org.apache.kafka.common.serialization.String";

    private final String bootstrap;
    private final BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));

    private Client(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    public static void main(String[] arguments) throws Exception {
        new Client(arguments[0]).serve();
        System.exit(0);
    }

    private void serve() throws Exception {
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            try {
                obey(line.split(" "));
                Tell.done();
            } catch (Exception | LinkageError problem) {
                Tell.error(problem);
            }
        }
    }

    private void obey(String[] words) throws Exception {
        switch (words[0]) {
            case "create":
                Era.create(bootstrap, words[1], Integer.parseInt(words[2]), producerSettings("none"));
                break;
            case "produce":
                int first = Integer.parseInt(words[4]);
                int last = first + Integer.parseInt(words[5]);
                produce(words[1], words[2], words[3], first, last, Long.parseLong(words[6]));
                break;
            case "consume":
                consume(words[1], words[2], Integer.parseInt(words[3]), Integer.parseInt(words[4]));
                break;
            default:
                join(words[1], words[2]);
        }
    }

    private void produce(String mode, String topic, String codec, int first, int last, long timestamp)
            throws Exception {
        Properties settings = producerSettings(codec);
        Era.setMode(settings, mode, topic);
        KafkaProducer<String, String> producer = new KafkaProducer<>(settings);
        try {
            Era.begin(producer, mode);
            List<Future<?>> sent = new ArrayList<>();
            for (int number = first; number < last; number++) {
                sent.add(producer.send(Era.record(topic, number, timestamp + number)));
            }
            for (Future<?> future : sent) {
                future.get(PATIENCE_MS, TimeUnit.MILLISECONDS);
            }
            Era.end(producer, mode);
        } finally {
            producer.close();
        }
    }

    private void consume(String isolation, String topic, int partitions, int count) throws Exception {
        Properties settings = consumerSettings();
        settings.put("isolation.level", isolation.equals("committed") ? "read_committed" : "read_uncommitted");
        List<TopicPartition> assigned = new ArrayList<>();
        for (int partition = 0; partition < partitions; partition++) {
            assigned.add(new TopicPartition(topic, partition));
        }
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings)) {
            consumer.assign(assigned);
            long deadline = System.currentTimeMillis() + PATIENCE_MS;
            for (int seen = 0; seen < count; ) {
                seen += tellNext(consumer);
                if (System.currentTimeMillis() > deadline) {
                    throw new IllegalStateException("only " + seen + " of " + count + " records came");
                }
            }
        }
    }

    private void join(String topic, String group) throws Exception {
        Properties settings = consumerSettings();
        settings.put("group.id", group);
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings)) {
            consumer.subscribe(Collections.singletonList(topic), new Listener(consumer));
            while (!commands.ready()) {
                tellNext(consumer);
            }
            commands.readLine();
            consumer.commitSync();
        }
    }

    private static int tellNext(KafkaConsumer<String, String> consumer) throws Exception {
        ConsumerRecords<String, String> records = poll(consumer);
        for (ConsumerRecord<String, String> record : records) {
            Tell.record(record.partition(), record.offset(), record.key(), record.value(), Era.timestamp(record),
                    Era.header(record));
        }
        return records.count();
    }

    /** poll(long) is gone since 4.0, poll(Duration) is there since 2.0. */
    @SuppressWarnings("unchecked")
    private static ConsumerRecords<String, String> poll(KafkaConsumer<String, String> consumer) throws Exception {
        Method poll;
        Object wait;
        try {
            poll = KafkaConsumer.class.getMethod("poll", Duration.class);
            wait = Duration.ofMillis(100);
        } catch (NoSuchMethodException older) {
            poll = KafkaConsumer.class.getMethod("poll", long.class);
            wait = 100L;
        }
        return (ConsumerRecords<String, String>) poll.invoke(consumer, wait);
    }

    private Properties producerSettings(String codec) {
        Properties settings = commonSettings();
        settings.put("key.serializer", STRINGS + "Serializer");
        settings.put("value.serializer", STRINGS + "Serializer");
        settings.put("acks", "all");
        settings.put("retries", "5");
        settings.put("linger.ms", "5");
        // Without it a producer that is not idempotent may change the order when it tries again.
        settings.put("max.in.flight.requests.per.connection", "1");
        settings.put("compression.type", codec);
        settings.put("max.block.ms", "20000");
        settings.put("delivery.timeout.ms", "20000");
        settings.put("request.timeout.ms", "15000");
        return settings;
    }

    private Properties consumerSettings() {
        Properties settings = commonSettings();
        settings.put("key.deserializer", STRINGS + "Deserializer");
        settings.put("value.deserializer", STRINGS + "Deserializer");
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("session.timeout.ms", "10000");
        settings.put("heartbeat.interval.ms", "500");
        settings.put("fetch.max.wait.ms", "100");
        settings.put("request.timeout.ms", "15000");
        return settings;
    }

    private Properties commonSettings() {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("client.id", "matrix");
        return settings;
    }

    private static final class Listener implements ConsumerRebalanceListener {
        private final KafkaConsumer<String, String> consumer;

        Listener(KafkaConsumer<String, String> consumer) {
            this.consumer = consumer;
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> revoked) {
            consumer.commitSync();
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> added) {
            TreeSet<Integer> partitions = new TreeSet<>();
            for (TopicPartition partition : consumer.assignment()) {
                partitions.add(partition.partition());
            }
            Tell.assigned(partitions);
        }
    }
}
