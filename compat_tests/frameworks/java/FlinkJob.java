import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Properties;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.FlatMapFunction;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.serialization.SerializationSchema;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.Collector;

/**
 * A word count of Flink, until it is ended: it reads the lines of NAME and writes every new count to NAME-out, exactly once.
 *
 * <p>Arguments: the bootstrap servers, NAME, the URI of a folder for checkpoints, and optionally the URI of the
 * checkpoint from which it goes on.
 */
public class FlinkJob {
    public static void main(String[] arguments) throws Exception {
        String name = arguments[1];
        Configuration settings = new Configuration();
        settings.setString("execution.checkpointing.interval", "500 ms");
        settings.setString("execution.checkpointing.dir", arguments[2]);
        settings.setString("execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION");
        settings.setString("restart-strategy.type", "disable");
        settings.setString("parallelism.default", "2");
        if (arguments.length > 3) {
            settings.setString("execution.state-recovery.path", arguments[3]);
        }
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.getExecutionEnvironment(settings);
        environment.fromSource(source(arguments[0], name), WatermarkStrategy.noWatermarks(), "lines").uid("lines")
            .flatMap(new Split()).uid("words")
            .keyBy(word -> word)
            .map(new Count()).uid("counts")
            .sinkTo(sink(arguments[0], name)).uid("out");
        environment.execute(name);
    }

    private static KafkaSource<String> source(String bootstrap, String name) {
        return KafkaSource.<String>builder()
            .setBootstrapServers(bootstrap)
            .setTopics(name)
            .setGroupId(name)
            .setStartingOffsets(OffsetsInitializer.earliest())
            .setValueOnlyDeserializer(new SimpleStringSchema())
            .build();
    }

    private static KafkaSink<String> sink(String bootstrap, String name) {
        Properties properties = new Properties();
        properties.setProperty("transaction.timeout.ms", "600000");
        return KafkaSink.<String>builder()
            .setBootstrapServers(bootstrap)
            .setKafkaProducerConfig(properties)
            .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
            .setTransactionalIdPrefix(name)
            .setRecordSerializer(KafkaRecordSerializationSchema.<String>builder()
                .setTopic(name + "-out")
                .setKeySerializationSchema(new Part(0))
                .setValueSerializationSchema(new Part(1))
                .build())
            .build();
    }

    /** The word, which is part 0 of a count, or its number, which is part 1. */
    public record Part(int part) implements SerializationSchema<String> {
        @Override
        public byte[] serialize(String count) {
            return count.split(" ")[part].getBytes(StandardCharsets.UTF_8);
        }
    }

    /** Splits a line into words. */
    public static class Split implements FlatMapFunction<String, String> {
        @Override
        public void flatMap(String line, Collector<String> out) {
            Arrays.stream(line.split(" ")).forEach(out::collect);
        }
    }

    /** Returns each word with the number of times it has come so far. */
    public static class Count extends RichMapFunction<String, String> {
        private transient ValueState<Long> total;

        @Override
        public void open(OpenContext context) {
            total = getRuntimeContext().getState(new ValueStateDescriptor<>("total", Long.class));
        }

        @Override
        public String map(String word) throws Exception {
            long next = total.value() == null ? 1 : total.value() + 1;
            total.update(next);
            return word + " " + next;
        }
    }
}
