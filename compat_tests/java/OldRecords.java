import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.ConvertedRecords;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.MutableRecordBatch;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.utils.Time;

/**
 * Says how Apache Kafka 3.9 converts, reads and writes message sets of formats 0 and 1.
 *
 * <ul>
 *   <li>down: the batches in "hex" as a message set of format "magic", from "first_offset" on;
 *   <li>read: the entries in "hex", checked, each wrapper with its records;
 *   <li>build: a message set of format "magic" with "codec", of "records" from offset 0 on.
 * </ul>
 */
public final class OldRecords {
    public static void main(String[] arguments) throws IOException {
        Oracle.serve(OldRecords::answer);
    }

    private static void answer(JsonNode question, ObjectNode out) throws Exception {
        switch (question.get("ask").asText()) {
            case "down" -> out.put("hex", hex(down(question)));
            case "read" -> read(Oracle.bytes(question.get("hex")), out.putArray("entries"));
            case "build" -> out.put("hex", hex(build(question)));
            default -> Oracle.answer(question, out);
        }
    }

    private static ByteBuffer down(JsonNode question) {
        MemoryRecords batches = MemoryRecords.readableRecords(Oracle.bytes(question.get("hex")));
        ConvertedRecords<MemoryRecords> converted =
            batches.downConvert((byte) question.get("magic").asInt(), question.get("first_offset").asLong(), Time.SYSTEM);
        return converted.records().buffer();
    }

    private static void read(ByteBuffer data, ArrayNode out) {
        for (MutableRecordBatch entry : MemoryRecords.readableRecords(data).batches()) {
            entry.ensureValid();
            ObjectNode node = out.addObject();
            node.put("offset", entry.lastOffset()).put("magic", entry.magic()).put("codec", entry.compressionType().id);
            node.put("log_append_time", entry.timestampType() == TimestampType.LOG_APPEND_TIME).put("timestamp", entry.maxTimestamp());
            ArrayNode records = node.putArray("records");
            for (Record record : entry) {
                record.ensureValid();
                records.addArray().add(record.offset()).add(record.timestamp()).add(hex(record.key())).add(hex(record.value()));
            }
        }
    }

    private static ByteBuffer build(JsonNode question) {
        Compression codec = Compression.of(CompressionType.forId(question.get("codec").asInt())).build();
        MemoryRecordsBuilder builder = MemoryRecords.builder(
            ByteBuffer.allocate(1024), (byte) question.get("magic").asInt(), codec, TimestampType.CREATE_TIME, 0L);
        for (JsonNode record : question.get("records")) {
            builder.append(record.get(0).asLong(), array(record.get(1)), array(record.get(2)));
        }
        return builder.build().buffer();
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
