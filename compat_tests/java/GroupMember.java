import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.StreamSupport;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.serialization.StringDeserializer;

/** A consumer that does what it is told: one command a line comes in, one line with what came of it goes out. */
public class GroupMember {
    public static void main(String[] settings) throws Exception {
        Properties properties = new Properties();
        for (String setting : settings) {
            String[] parts = setting.split("=", 2);
            properties.put(parts[0], parts[1]);
        }
        StringDeserializer strings = new StringDeserializer();
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(properties, strings, strings)) {
            String line;
            while ((line = commands.readLine()) != null) {
                System.out.println(answer(consumer, line.split(" ", 2)));
            }
        }
    }

    private static String answer(KafkaConsumer<String, String> consumer, String[] command) {
        try {
            switch (command[0]) {
                case "subscribe":
                    consumer.subscribe(Arrays.asList(command[1].split(",")));
                    return "";
                case "match":
                    consumer.subscribe(new SubscriptionPattern(command[1]));
                    return "";
                case "poll":
                    return StreamSupport.stream(
                            consumer.poll(Duration.ofMillis(Long.parseLong(command[1]))).spliterator(), false)
                        .map(record -> record.value())
                        .collect(Collectors.joining(" "));
                case "assignment":
                    return new TreeSet<>(consumer.assignment().stream().map(Object::toString).toList())
                        .stream().collect(Collectors.joining(" "));
                case "commit":
                    consumer.commitSync();
                    return "";
                case "close":
                    consumer.close();
                    return "";
                default:
                    return "! " + command[0] + " is no command";
            }
        } catch (Exception problem) {
            return "! " + problem;
        }
    }
}
