import io.debezium.embedded.Connect;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.RecordChangeEvent;
import io.debezium.engine.format.ChangeEventFormat;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.connect.source.SourceRecord;

/**
 * Debezium's embedded engine with Connect's file source: each line of a file goes to a topic, until the job is ended.
 * The engine keeps its position in a topic of Kafka.
 *
 * <p>Arguments: the bootstrap servers, the topic, the file.
 */
public class DebeziumJob {
    /** When a batch is full, the file source keeps the remaining lines back until the file grows again. */
    private static final int LINES_PER_BATCH = 100_000;

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.setProperty("bootstrap.servers", arguments[0]);
        KafkaProducer<String, String> producer =
            new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
        DebeziumEngine<RecordChangeEvent<SourceRecord>> engine =
            DebeziumEngine.create(ChangeEventFormat.of(Connect.class))
                .using(engineSettings(arguments))
                .notifying((events, committer) -> write(producer, events, committer))
                .using((success, message, problem) -> report(success, message, problem))
                .build();
        ExecutorService executor = Executors.newSingleThreadExecutor();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> close(engine)));
        executor.execute(engine);
    }

    private static void write(
            KafkaProducer<String, String> producer,
            List<RecordChangeEvent<SourceRecord>> events,
            DebeziumEngine.RecordCommitter<RecordChangeEvent<SourceRecord>> committer) throws InterruptedException {
        for (RecordChangeEvent<SourceRecord> event : events) {
            producer.send(new ProducerRecord<>(event.record().topic(), (String) event.record().value()));
        }
        producer.flush();
        for (RecordChangeEvent<SourceRecord> event : events) {
            committer.markProcessed(event);
        }
        committer.markBatchFinished();
    }

    private static Properties engineSettings(String[] arguments) {
        Properties settings = new Properties();
        settings.setProperty("name", arguments[1]);
        settings.setProperty("connector.class", "org.apache.kafka.connect.file.FileStreamSourceConnector");
        settings.setProperty("file", arguments[2]);
        settings.setProperty("topic", arguments[1]);
        settings.setProperty("topic.prefix", arguments[1]);
        settings.setProperty("batch.size", Integer.toString(LINES_PER_BATCH));
        settings.setProperty("offset.storage", "org.apache.kafka.connect.storage.KafkaOffsetBackingStore");
        settings.setProperty("offset.storage.topic", arguments[1] + "-offsets");
        settings.setProperty("offset.storage.partitions", "1");
        settings.setProperty("offset.storage.replication.factor", "1");
        settings.setProperty("offset.flush.interval.ms", "100");
        settings.setProperty("bootstrap.servers", arguments[0]);
        return settings;
    }

    private static void report(boolean success, String message, Throwable problem) {
        System.out.println("ended: " + success + " " + message);
        if (problem != null) {
            problem.printStackTrace();
            Runtime.getRuntime().halt(1);
        }
    }

    private static void close(DebeziumEngine<?> engine) {
        try {
            engine.close();
        } catch (Exception problem) {
            problem.printStackTrace();
        }
    }
}
