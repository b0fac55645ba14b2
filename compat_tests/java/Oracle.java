import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.Readable;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;

/**
 * Says how Apache Kafka's own classes write and read what a test made up.
 *
 * <p>One JSON object a line comes in on standard input, one goes out for each. Its "ask" is one of:
 *
 * <ul>
 *   <li>apis: every API with its stable versions and the header version of each;
 *   <li>errors: every error code;
 *   <li>hash: String.hashCode() of each of "texts";
 *   <li>messages: for each of "messages" {json, hex} of class "name" and "version": the bytes Kafka makes
 *       of the JSON, the bytes it writes after reading the hex, and how many bytes it left unread;
 *   <li>read: the batches in "hex", checked and with their records;
 *   <li>build: one batch of "records", in the form that read gives.
 * </ul>
 */
public final class Oracle {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final HexFormat HEX = HexFormat.of();
    private static final String MESSAGES = "org.apache.kafka.common.message.";

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(JSON.writeValueAsString(answer(JSON.readTree(line))));
        }
    }

    private static ObjectNode answer(JsonNode question) {
        ObjectNode out = JSON.createObjectNode();
        try {
            switch (question.get("ask").asText()) {
                case "apis" -> apis(out.putArray("apis"));
                case "errors" -> errors(out.putObject("errors"));
                case "hash" -> question.get("texts").forEach(text -> out.withArray("hashes").add(text.asText().hashCode()));
                case "messages" -> messages(question, out.putArray("messages"));
                case "read" -> read(bytes(question.get("hex")), out.putArray("batches"));
                case "build" -> out.put("hex", HEX.formatHex(build(question)));
                default -> throw new IllegalArgumentException("unknown question");
            }
        } catch (InvocationTargetException problem) {
            out.put("error", problem.getCause().toString());
        } catch (Exception problem) {
            out.put("error", problem.toString());
        }
        return out;
    }

    private static void apis(ArrayNode out) {
        for (ApiKeys api : ApiKeys.values()) {
            short latest = api.latestVersion(false);
            ObjectNode node = out.addObject();
            node.put("key", api.id).put("name", api.messageType.name).put("first", api.oldestVersion()).put("last", latest);
            ArrayNode request = node.putArray("request_headers");
            ArrayNode response = node.putArray("response_headers");
            for (short version = api.oldestVersion(); version <= latest; version++) {
                request.add(api.requestHeaderVersion(version));
                response.add(api.responseHeaderVersion(version));
            }
        }
    }

    private static void errors(ObjectNode out) {
        for (Errors error : Errors.values()) {
            out.put(error.name(), error.code());
        }
    }

    private static void messages(JsonNode question, ArrayNode out) throws Exception {
        MessageType type = new MessageType(question.get("name").asText(), (short) question.get("version").asInt());
        for (JsonNode message : question.get("messages")) {
            ByteBuffer ours = bytes(message.get("hex"));
            ObjectNode node = out.addObject();
            node.put("written", HEX.formatHex(type.write(type.fromJson(message.get("json")))));
            node.put("written_again", HEX.formatHex(type.write(type.read(ours)))).put("left", ours.remaining());
        }
    }

    /** One generated class in one version. */
    private record MessageType(Class<?> data, Class<?> converter, short version) {
        MessageType(String name, short version) throws ClassNotFoundException {
            this(find(name), Class.forName(find(name).getName() + "JsonConverter"), version);
        }

        private static Class<?> find(String name) throws ClassNotFoundException {
            boolean ofApi = name.endsWith("Request") || name.endsWith("Response") || name.endsWith("Header");
            return Class.forName(MESSAGES + name + (ofApi ? "Data" : ""));
        }

        Message fromJson(JsonNode json) throws ReflectiveOperationException {
            return (Message) converter.getMethod("read", JsonNode.class, short.class).invoke(null, json, version);
        }

        Message read(ByteBuffer buffer) throws ReflectiveOperationException {
            Readable readable = new ByteBufferAccessor(buffer);
            return (Message) data.getConstructor(Readable.class, short.class).newInstance(readable, version);
        }

        byte[] write(Message message) {
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
            message.write(new ByteBufferAccessor(buffer), cache, version);
            return buffer.array();
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
        ObjectNode node = JSON.createObjectNode().put("offset", record.offset()).put("timestamp", record.timestamp());
        node.put("key", hex(record.key())).put("value", hex(record.value()));
        ArrayNode headers = node.putArray("headers");
        for (Header header : record.headers()) {
            headers.addArray().add(header.key()).add(header.value() == null ? null : HEX.formatHex(header.value()));
        }
        return node;
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

    private static ByteBuffer bytes(JsonNode hex) {
        return ByteBuffer.wrap(HEX.parseHex(hex.asText()));
    }

    private static byte[] array(JsonNode hex) {
        return hex.isNull() ? null : HEX.parseHex(hex.asText());
    }

    private static String hex(ByteBuffer buffer) {
        if (buffer == null) {
            return null;
        }
        byte[] out = new byte[buffer.remaining()];
        buffer.duplicate().get(out);
        return HEX.formatHex(out);
    }
}
