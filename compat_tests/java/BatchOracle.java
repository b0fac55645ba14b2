import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.CloseableIterator;
import org.apache.kafka.common.utils.PrimitiveRef;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogValidator;
import org.apache.kafka.storage.internals.log.RecordValidationException;

/**
 * Answers all that Oracle does, and says how Apache Kafka writes and reads record batches; for Kafka 4.3.
 *
 * <ul>
 *   <li>read: the batches in "hex", checked and with their records;
 *   <li>build: one batch of "records", in the form that read gives;
 *   <li>judge: for each of "batches" (hex) the error code with which the broker's validation refuses it ("broker"), the
 *       one with which a consumer's iterator does ("consumer"), NONE where it is accepted, the largest timestamp that the
 *       broker found, and whether the offsets count up by one. With "keys" the topic is compacted.
 * </ul>
 */
public final class BatchOracle {
    private static final LogValidator.MetricsRecorder NO_METRICS = new LogValidator.MetricsRecorder() {
        public void recordInvalidMagic() {}

        public void recordInvalidOffset() {}

        public void recordInvalidSequence() {}

        public void recordInvalidChecksums() {}

        public void recordNoKeyCompactedTopic() {}
    };

    public static void main(String[] arguments) throws IOException {
        Oracle.serve(BatchOracle::answer);
    }

    private static void answer(JsonNode question, ObjectNode out) throws Exception {
        switch (question.get("ask").asText()) {
            case "read" -> read(Oracle.bytes(question.get("hex")), out.putArray("batches"));
            case "judge" -> judge(question, out.putArray("verdicts"));
            case "build" -> out.put("hex", Oracle.HEX.formatHex(build(question)));
            default -> Oracle.answer(question, out);
        }
    }

    private static void read(ByteBuffer data, ArrayNode out) {
        for (RecordBatch batch : MemoryRecords.readableRecords(data).batches()) {
            batch.ensureValid();
            ObjectNode node = out.addObject();
            node.put("base_offset", batch.baseOffset()).put("last_offset", batch.lastOffset()).put("size_bytes", batch.sizeInBytes());
            node.put("codec", batch.compressionType().id).put("max_timestamp", batch.maxTimestamp());
            node.put("producer_id", batch.producerId()).put("producer_epoch", batch.producerEpoch());
            node.put("base_sequence", batch.baseSequence()).put("leader_epoch", batch.partitionLeaderEpoch());
            node.put("transactional", batch.isTransactional()).put("control", batch.isControlBatch());
            ArrayNode records = node.putArray("records");
            for (Record record : batch) {
                record.ensureValid();
                records.add(toJson(record));
            }
        }
    }

    private static ObjectNode toJson(Record record) {
        ObjectNode node = Oracle.JSON.createObjectNode().put("offset", record.offset()).put("timestamp", record.timestamp());
        node.put("key", hex(record.key())).put("value", hex(record.value()));
        ArrayNode headers = node.putArray("headers");
        for (Header header : record.headers()) {
            headers.addArray().add(header.key()).add(header.value() == null ? null : Oracle.HEX.formatHex(header.value()));
        }
        return node;
    }

    private static void judge(JsonNode question, ArrayNode out) {
        boolean keys = question.get("keys").asBoolean();
        for (JsonNode hex : question.get("batches")) {
            ObjectNode node = out.addObject();
            node.put("broker", verdict(() -> node.put("max_timestamp", validate(memoryRecords(hex), keys))));
            node.put("consumer", verdict(() -> node.put("counts_up", countsUp(memoryRecords(hex)))));
        }
    }

    private static MemoryRecords memoryRecords(JsonNode hex) {
        return MemoryRecords.readableRecords(Oracle.bytes(hex));
    }

    private static String verdict(Runnable action) {
        try {
            action.run();
            return Errors.NONE.name();
        } catch (RuntimeException problem) {
            boolean namesRecords = problem instanceof RecordValidationException;
            return Errors.forException(namesRecords ? ((RecordValidationException) problem).invalidException() : problem).name();
        } catch (OutOfMemoryError problem) {
            return "OUT_OF_MEMORY"; // a consumer allocates the length that a compressed record claims
        }
    }

    private static long validate(MemoryRecords records, boolean keys) {
        CompressionType codec = records.batches().iterator().next().compressionType();
        LogValidator validator = new LogValidator(records, new TopicPartition("topic", 0), Time.SYSTEM, codec,
            Compression.of(codec).build(), keys, RecordBatch.MAGIC_VALUE_V2, TimestampType.CREATE_TIME, Long.MAX_VALUE,
            Long.MAX_VALUE, 0, AppendOrigin.CLIENT);
        return validator.validateMessagesAndAssignOffsets(PrimitiveRef.ofLong(0), NO_METRICS, BufferSupplier.NO_CACHING)
            .maxTimestampMs();
    }

    private static boolean countsUp(MemoryRecords records) {
        long expected = 0;
        boolean countsUp = true;
        RecordBatch batch = records.batches().iterator().next();
        try (CloseableIterator<Record> iterator = batch.streamingIterator(BufferSupplier.NO_CACHING)) {
            while (iterator.hasNext()) {
                Record record = iterator.next();
                toJson(record);
                countsUp &= record.offset() == expected++;
            }
        }
        return countsUp;
    }

    private static byte[] build(JsonNode question) {
        Compression codec = Compression.of(CompressionType.forId(question.get("codec").asInt())).build();
        MemoryRecordsBuilder builder = MemoryRecords.builder(
            ByteBuffer.allocate(1024), RecordBatch.MAGIC_VALUE_V2, codec, TimestampType.CREATE_TIME,
            question.get("base_offset").asLong(), RecordBatch.NO_TIMESTAMP, question.get("producer_id").asLong(),
            (short) question.get("producer_epoch").asInt(), question.get("base_sequence").asInt(),
            question.get("transactional").asBoolean(), question.get("leader_epoch").asInt());
        for (JsonNode record : question.get("records")) {
            List<Header> headers = new ArrayList<>();
            record.get("headers").forEach(pair -> headers.add(new RecordHeader(pair.get(0).asText(), array(pair.get(1)))));
            builder.append(record.get("timestamp").asLong(), array(record.get("key")), array(record.get("value")),
                headers.toArray(new Header[0]));
        }
        ByteBuffer built = builder.build().buffer();
        byte[] out = new byte[built.remaining()];
        built.get(out);
        return out;
    }

    private static byte[] array(JsonNode hex) {
        return hex.isNull() ? null : Oracle.HEX.parseHex(hex.asText());
    }

    private static String hex(ByteBuffer buffer) {
        if (buffer == null) {
            return null;
        }
        byte[] out = new byte[buffer.remaining()];
        buffer.duplicate().get(out);
        return Oracle.HEX.formatHex(out);
    }
}
