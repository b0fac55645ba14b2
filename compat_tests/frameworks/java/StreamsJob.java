import java.time.Duration;
import java.util.Arrays;
import java.util.Locale;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;

/**
 * One of two jobs over text, until it is told to end: "count" counts words and writes every new count; "join" writes a
 * line for every left and right of one key that are at most a second apart, however late they come.
 */
public class StreamsJob {
    private static final Duration APART = Duration.ofSeconds(1);
    private static final Duration LATE = Duration.ofDays(1);

    public static void main(String[] arguments) {
        Properties settings = new Properties();
        settings.put("default.key.serde", Serdes.String().getClass());
        settings.put("default.value.serde", Serdes.String().getClass());
        for (String argument : Arrays.asList(arguments).subList(2, arguments.length)) {
            String[] parts = argument.split("=", 2);
            settings.put(parts[0], parts[1]);
        }
        StreamsBuilder builder = new StreamsBuilder();
        if (arguments[0].equals("count")) {
            count(builder, arguments[1]);
        } else {
            join(builder, arguments[1]);
        }
        run(new KafkaStreams(builder.build(), settings));
    }

    private static void count(StreamsBuilder builder, String topic) {
        builder.<String, String>stream(topic)
            .flatMapValues(line -> Arrays.asList(line.toLowerCase(Locale.ROOT).split(" ")))
            .groupBy((key, word) -> word, Grouped.with(Serdes.String(), Serdes.String()))
            .count()
            .toStream()
            .mapValues(Object::toString)
            .to(topic + "-out");
    }

    private static void join(StreamsBuilder builder, String topic) {
        KStream<String, String> right = builder.stream(topic + "-right");
        builder.<String, String>stream(topic + "-left")
            .join(right, (one, other) -> one + "+" + other, JoinWindows.ofTimeDifferenceAndGrace(APART, LATE))
            .to(topic + "-out");
    }

    private static void run(KafkaStreams streams) {
        streams.setUncaughtExceptionHandler(problem -> {
            problem.printStackTrace();
            new Thread(() -> Runtime.getRuntime().halt(1)).start();
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.setStateListener((now, before) -> System.out.println("state " + now));
        Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(Duration.ofSeconds(30))));
        streams.start();
    }
}
