import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.Readable;

/**
 * Says how Apache Kafka's own classes write and read the messages that a test made up; for Kafka 3.9 and 4.3.
 *
 * <p>One JSON object a line comes in on standard input, one goes out for each. Its "ask" is one of:
 *
 * <ul>
 *   <li>apis: every API with its versions, stable or not, and the header versions of each;
 *   <li>versions: the first and last version of the message class "name";
 *   <li>errors: every error code;
 *   <li>hash: String.hashCode() of each of "texts";
 *   <li>messages: for each of "messages" of class "name" and "version": the bytes Kafka makes of its "json", the
 *       bytes it writes after reading its "hex" and how many it left unread, the bytes it writes after reading its
 *       "tagged" (null: not asked), and which of its "cuts", the first so many bytes of the hex, it reads all the same.
 * </ul>
 */
public final class Oracle {
    static final ObjectMapper JSON = new ObjectMapper();
    static final HexFormat HEX = HexFormat.of();
    private static final String MESSAGES = "org.apache.kafka.common.message.";
    private static final String METADATA = "org.apache.kafka.common.metadata.";

    /** What answers a question: it fills the answer in. */
    interface Answerer {
        void answer(JsonNode question, ObjectNode answer) throws Exception;
    }

    private interface Action {
        void run() throws Exception;
    }

    public static void main(String[] arguments) throws IOException {
        serve(Oracle::answer);
    }

    static void serve(Answerer answerer) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode question = JSON.readTree(line);
            ObjectNode answer = JSON.createObjectNode();
            attempt(answer, () -> answerer.answer(question, answer));
            out.println(JSON.writeValueAsString(answer));
        }
    }

    /** Run an action; what it throws becomes the "error" of the answer. */
    private static void attempt(ObjectNode answer, Action action) {
        try {
            action.run();
        } catch (InvocationTargetException problem) {
            answer.put("error", problem.getCause().toString());
        } catch (Exception problem) {
            answer.put("error", problem.toString());
        }
    }

    static void answer(JsonNode question, ObjectNode out) throws Exception {
        switch (question.get("ask").asText()) {
            case "apis" -> apis(out.putArray("apis"));
            case "versions" -> versions(question.get("name").asText(), out);
            case "errors" -> errors(out.putObject("errors"));
            case "hash" -> question.get("texts").forEach(text -> out.withArray("hashes").add(text.asText().hashCode()));
            case "messages" -> messages(question, out.putArray("messages"));
            default -> throw new IllegalArgumentException("unknown question");
        }
    }

    private static void apis(ArrayNode out) {
        for (ApiKeys api : ApiKeys.values()) {
            ObjectNode node = out.addObject();
            short first = api.oldestVersion();
            short last = api.latestVersion(true);
            node.put("key", api.id).put("name", api.messageType.name).put("first", first).put("last", last);
            ArrayNode request = node.putArray("request_headers");
            ArrayNode response = node.putArray("response_headers");
            for (short version = first; version <= last; version++) {
                request.add(api.requestHeaderVersion(version));
                response.add(api.responseHeaderVersion(version));
            }
        }
    }

    private static void versions(String name, ObjectNode out) throws ReflectiveOperationException {
        Class<?> data = MessageType.find(name);
        out.put("first", data.getField("LOWEST_SUPPORTED_VERSION").getShort(null));
        out.put("last", data.getField("HIGHEST_SUPPORTED_VERSION").getShort(null));
    }

    private static void errors(ObjectNode out) {
        for (Errors error : Errors.values()) {
            out.put(error.name(), error.code());
        }
    }

    private static void messages(JsonNode question, ArrayNode out) throws Exception {
        MessageType type = new MessageType(question.get("name").asText(), (short) question.get("version").asInt());
        for (JsonNode message : question.get("messages")) {
            ObjectNode node = out.addObject();
            attempt(node, () -> judge(type, message, node));
        }
    }

    private static void judge(MessageType type, JsonNode message, ObjectNode out) throws ReflectiveOperationException {
        byte[] ours = HEX.parseHex(message.get("hex").asText());
        ByteBuffer buffer = ByteBuffer.wrap(ours);
        out.put("written", HEX.formatHex(type.write(type.fromJson(message.get("json")))));
        out.put("written_again", HEX.formatHex(type.write(type.read(buffer)))).put("left", buffer.remaining());
        JsonNode tagged = message.get("tagged");
        out.put("tagged_again", tagged.isNull() ? null : HEX.formatHex(type.write(type.read(bytes(tagged)))));
        ArrayNode accepted = out.putArray("accepted_cuts");
        for (JsonNode cut : message.get("cuts")) {
            if (type.reads(Arrays.copyOf(ours, cut.asInt()))) {
                accepted.add(cut);
            }
        }
    }

    /** One generated class in one version. */
    private record MessageType(Class<?> data, Class<?> converter, short version) {
        MessageType(String name, short version) throws ClassNotFoundException {
            this(find(name), Class.forName(find(name).getName() + "JsonConverter"), version);
        }

        static Class<?> find(String name) throws ClassNotFoundException {
            boolean ofApi = name.endsWith("Request") || name.endsWith("Response") || name.endsWith("Header");
            return Class.forName((name.endsWith("Record") ? METADATA : MESSAGES) + name + (ofApi ? "Data" : ""));
        }

        Message fromJson(JsonNode json) throws ReflectiveOperationException {
            return (Message) converter.getMethod("read", JsonNode.class, short.class).invoke(null, json, version);
        }

        Message read(ByteBuffer buffer) throws ReflectiveOperationException {
            Readable readable = new ByteBufferAccessor(buffer);
            return (Message) data.getConstructor(Readable.class, short.class).newInstance(readable, version);
        }

        boolean reads(byte[] content) throws ReflectiveOperationException {
            try {
                read(ByteBuffer.wrap(content));
                return true;
            } catch (InvocationTargetException refusal) {
                return false;
            }
        }

        byte[] write(Message message) {
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
            message.write(new ByteBufferAccessor(buffer), cache, version);
            return buffer.array();
        }
    }

    static ByteBuffer bytes(JsonNode hex) {
        return ByteBuffer.wrap(HEX.parseHex(hex.asText()));
    }
}
