import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import kafka.api.ConsumerMetadataRequest;
import kafka.api.FetchRequestBuilder;
import kafka.common.OffsetAndMetadata;
import kafka.common.OffsetMetadataAndError;
import kafka.common.TopicAndPartition;
import kafka.javaapi.ConsumerMetadataResponse;
import kafka.javaapi.FetchResponse;
import kafka.javaapi.OffsetCommitRequest;
import kafka.javaapi.OffsetFetchRequest;
import kafka.javaapi.PartitionMetadata;
import kafka.javaapi.TopicMetadata;
import kafka.javaapi.TopicMetadataRequest;
import kafka.javaapi.consumer.SimpleConsumer;
import kafka.message.MessageAndOffset;
import kafka.network.BlockingChannel;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/**
 * Drives Kafka 0.8.2: its producer, and the SimpleConsumer, which knows no groups but can commit: to ZooKeeper
 * (version 0 of the offset requests) and to the broker (version 1). It does both and wants both to agree.
 */
public final class Client {
    private static final long PATIENCE_MS = 25_000;
    private static final String STRINGS = "org.apache.kafka.common.serialization.StringSerializer";
    private static final String ID = "matrix";
    private static final int FETCH_BYTES = 1 << 20;

    private final String bootstrap;
    private final String host;
    private final int port;
    private final BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));

    private Client(String bootstrap) {
        this.bootstrap = bootstrap;
        this.host = bootstrap.split(":")[0];
        this.port = Integer.parseInt(bootstrap.split(":")[1]);
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
                try (KafkaProducer<String, String> producer = new KafkaProducer<>(producerSettings("none"))) {
                    producer.partitionsFor(words[1]);
                }
                break;
            case "produce":
                produce(words[2], words[3], Integer.parseInt(words[4]), Integer.parseInt(words[5]));
                break;
            case "consume":
                consume(words[2], Integer.parseInt(words[3]), Integer.parseInt(words[4]));
                break;
            default:
                resume(words[1], words[2], 4);
        }
    }

    private void produce(String topic, String codec, int first, int count) throws Exception {
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(producerSettings(codec))) {
            List<Future<?>> sent = new ArrayList<>();
            for (int number = first; number < first + count; number++) {
                sent.add(producer.send(new ProducerRecord<>(topic, Texts.key(number), Texts.value(number))));
            }
            for (Future<?> future : sent) {
                future.get(PATIENCE_MS, TimeUnit.MILLISECONDS);
            }
        }
    }

    private void consume(String topic, int partitions, int count) throws Exception {
        Map<SimpleConsumer, List<Integer>> leaders = connectToLeaders(topic, partitions);
        try {
            long[] next = new long[partitions];
            long deadline = System.currentTimeMillis() + PATIENCE_MS;
            for (int seen = 0; seen < count; ) {
                seen += tellNext(leaders, topic, next);
                if (System.currentTimeMillis() > deadline) {
                    throw new IllegalStateException("only " + seen + " of " + count + " records came");
                }
            }
        } finally {
            leaders.keySet().forEach(SimpleConsumer::close);
        }
    }

    private void resume(String topic, String group, int partitions) throws Exception {
        SimpleConsumer consumer = connect(port);
        SimpleConsumer coordinator = connect(coordinatorPort(group));
        Map<SimpleConsumer, List<Integer>> leaders = connectToLeaders(topic, partitions);
        try {
            long[] next = committed(consumer, topic, group, partitions, 0);
            long[] stored = committed(coordinator, topic, group, partitions, 1);
            if (!java.util.Arrays.equals(next, stored)) {
                throw new IllegalStateException("what was committed to ZooKeeper is " + java.util.Arrays.toString(next)
                        + ", to the broker " + java.util.Arrays.toString(stored));
            }
            while (!commands.ready()) {
                tellNext(leaders, topic, next);
            }
            commands.readLine();
            commit(consumer, topic, group, next, 0);
            commit(coordinator, topic, group, next, 1);
        } finally {
            consumer.close();
            coordinator.close();
            leaders.keySet().forEach(SimpleConsumer::close);
        }
    }

    /** Finds the leaders as a program with a SimpleConsumer has to: by the metadata. Gives the partitions of each. */
    private Map<SimpleConsumer, List<Integer>> connectToLeaders(String topic, int partitions) throws Exception {
        long deadline = System.currentTimeMillis() + PATIENCE_MS;
        while (true) {
            Map<Integer, List<Integer>> byPort = leaderPorts(topic);
            if (byPort.values().stream().mapToInt(List::size).sum() == partitions) {
                Map<SimpleConsumer, List<Integer>> leaders = new HashMap<>();
                byPort.forEach((leaderPort, led) -> leaders.put(connect(leaderPort), led));
                return leaders;
            }
            if (System.currentTimeMillis() > deadline) {
                throw new IllegalStateException("the metadata names leaders of " + byPort + " only");
            }
            Thread.sleep(200);
        }
    }

    private Map<Integer, List<Integer>> leaderPorts(String topic) {
        SimpleConsumer consumer = connect(port);
        try {
            Map<Integer, List<Integer>> byPort = new HashMap<>();
            for (TopicMetadata described : consumer.send(new TopicMetadataRequest(List.of(topic))).topicsMetadata()) {
                for (PartitionMetadata partition : described.partitionsMetadata()) {
                    if (partition.leader() != null) {
                        byPort.computeIfAbsent(partition.leader().port(), unused -> new ArrayList<>())
                                .add(partition.partitionId());
                    }
                }
            }
            return byPort;
        } finally {
            consumer.close();
        }
    }

    private int tellNext(Map<SimpleConsumer, List<Integer>> leaders, String topic, long[] next) {
        int seen = 0;
        for (Map.Entry<SimpleConsumer, List<Integer>> leader : leaders.entrySet()) {
            seen += tellNext(leader.getKey(), leader.getValue(), topic, next);
        }
        return seen;
    }

    private int tellNext(SimpleConsumer consumer, List<Integer> partitions, String topic, long[] next) {
        FetchRequestBuilder request = new FetchRequestBuilder().clientId(ID).maxWait(100).minBytes(1);
        for (int partition : partitions) {
            request.addFetch(topic, partition, next[partition], FETCH_BYTES);
        }
        FetchResponse answer = consumer.fetch(request.build());
        int seen = 0;
        for (int partition : partitions) {
            refuse("Fetch", answer.errorCode(topic, partition));
            for (MessageAndOffset message : answer.messageSet(topic, partition)) {
                // A compressed message set begins before the offset that was asked for.
                if (message.offset() >= next[partition]) {
                    Tell.record(partition, message.offset(), text(message.message().key()), text(message.message().payload()),
                            null, null);
                    next[partition] = message.offset() + 1;
                    seen++;
                }
            }
        }
        return seen;
    }

    private int coordinatorPort(String group) throws Exception {
        long deadline = System.currentTimeMillis() + PATIENCE_MS;
        while (true) {
            BlockingChannel channel = new BlockingChannel(host, port, BlockingChannel.UseDefaultBufferSize(),
                    BlockingChannel.UseDefaultBufferSize(), 15_000);
            channel.connect();
            try {
                channel.send(new ConsumerMetadataRequest(group, ConsumerMetadataRequest.CurrentVersion(), 1, ID));
                ConsumerMetadataResponse answer =
                        ConsumerMetadataResponse.readFrom(channel.receive().buffer());
                if (answer.errorCode() == 0) {
                    return answer.coordinator().port();
                }
                if (System.currentTimeMillis() > deadline) {
                    refuse("ConsumerMetadata", answer.errorCode());
                }
            } finally {
                channel.disconnect();
            }
            Thread.sleep(200);
        }
    }

    private long[] committed(SimpleConsumer consumer, String topic, String group, int partitions, int version) {
        List<TopicAndPartition> asked = new ArrayList<>();
        for (int partition = 0; partition < partitions; partition++) {
            asked.add(new TopicAndPartition(topic, partition));
        }
        Map<TopicAndPartition, OffsetMetadataAndError> answers =
                consumer.fetchOffsets(new OffsetFetchRequest(group, asked, (short) version, 1, ID)).offsets();
        long[] offsets = new long[partitions];
        for (TopicAndPartition partition : asked) {
            OffsetMetadataAndError answer = answers.get(partition);
            // A broker without offsets in ZooKeeper says UNKNOWN_TOPIC_OR_PARTITION (3) where nothing was committed.
            refuse("OffsetFetch v" + version, answer.error() == 3 && version == 0 ? 0 : answer.error());
            offsets[partition.partition()] = Math.max(answer.offset(), 0);
        }
        return offsets;
    }

    private void commit(SimpleConsumer consumer, String topic, String group, long[] next, int version) {
        Map<TopicAndPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (int partition = 0; partition < next.length; partition++) {
            offsets.put(new TopicAndPartition(topic, partition), new OffsetAndMetadata(next[partition], "", -1L));
        }
        Map<TopicAndPartition, Object> errors = new HashMap<>(
                consumer.commitOffsets(new OffsetCommitRequest(group, offsets, 1, ID, (short) version)).errors());
        for (Object error : errors.values()) {
            refuse("OffsetCommit v" + version, ((Number) error).intValue());
        }
    }

    private SimpleConsumer connect(int brokerPort) {
        return new SimpleConsumer(host, brokerPort, 15_000, 64 * 1024, ID);
    }

    private Properties producerSettings(String codec) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("client.id", ID);
        settings.put("key.serializer", STRINGS);
        settings.put("value.serializer", STRINGS);
        settings.put("acks", "all");
        settings.put("retries", "5");
        settings.put("linger.ms", "5");
        // Without it a producer that is not idempotent may change the order when it tries again.
        settings.put("max.in.flight.requests.per.connection", "1");
        settings.put("compression.type", codec);
        settings.put("metadata.fetch.timeout.ms", "20000");
        return settings;
    }

    private static String text(ByteBuffer buffer) {
        return buffer == null ? null : StandardCharsets.UTF_8.decode(buffer).toString();
    }

    private static void refuse(String what, int error) {
        if (error != 0) {
            throw new IllegalStateException(what + " was answered with error " + error);
        }
    }
}
