import java.util.Properties;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.storm.Config;
import org.apache.storm.LocalCluster;
import org.apache.storm.kafka.bolt.KafkaBolt;
import org.apache.storm.kafka.bolt.mapper.FieldNameBasedTupleToKafkaMapper;
import org.apache.storm.kafka.bolt.selector.DefaultTopicSelector;
import org.apache.storm.kafka.spout.FirstPollOffsetStrategy;
import org.apache.storm.kafka.spout.KafkaSpout;
import org.apache.storm.kafka.spout.KafkaSpoutConfig;
import org.apache.storm.topology.TopologyBuilder;

/**
 * A topology of Storm in one process, until it is ended: KafkaSpout reads NAME, and KafkaBolt writes to NAME-out, both at
 * least once.
 *
 * <p>Arguments: the bootstrap servers, NAME.
 */
public class StormJob {
    private static final long COMMIT_MS = 200;

    public static void main(String[] arguments) throws Exception {
        String bootstrap = arguments[0];
        String name = arguments[1];
        KafkaSpoutConfig<String, String> reading = KafkaSpoutConfig.builder(bootstrap, name)
            .setProp("group.id", name)
            .setProcessingGuarantee(KafkaSpoutConfig.ProcessingGuarantee.AT_LEAST_ONCE)
            .setFirstPollOffsetStrategy(FirstPollOffsetStrategy.UNCOMMITTED_EARLIEST)
            .setOffsetCommitPeriodMs(COMMIT_MS)
            .build();
        Properties writing = new Properties();
        writing.put("bootstrap.servers", bootstrap);
        writing.put("key.serializer", StringSerializer.class.getName());
        writing.put("value.serializer", StringSerializer.class.getName());
        KafkaBolt<String, String> bolt = new KafkaBolt<String, String>()
            .withProducerProperties(writing)
            .withTopicSelector(new DefaultTopicSelector(name + "-out"))
            .withTupleToKafkaMapper(new FieldNameBasedTupleToKafkaMapper<>("key", "value"));
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout("spout", new KafkaSpout<>(reading));
        builder.setBolt("bolt", bolt).shuffleGrouping("spout");
        LocalCluster cluster = new LocalCluster();
        cluster.submitTopology(name, new Config(), builder.createTopology());
    }
}
