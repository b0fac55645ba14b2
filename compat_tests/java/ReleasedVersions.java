import java.lang.reflect.Array;
import java.lang.reflect.Method;
import java.util.Collection;
import java.util.List;
import java.util.TreeMap;

/**
 * Prints the APIs that a broker of one Kafka release serves, a line "key first last" each, by that release's clients
 * jar on the class path. The argument names the kind of broker: zkBroker, broker, or any where there was but one.
 */
public final class ReleasedVersions {
    private static final String PROTOCOL = "org.apache.kafka.common.protocol.";

    private ReleasedVersions() {
    }

    public static void main(String[] arguments) throws Exception {
        TreeMap<Integer, String> ranges = new TreeMap<>();
        for (Object key : keys(arguments[0])) {
            int id = ((Number) key.getClass().getField("id").get(key)).intValue();
            int first = first(key, id);
            int last = last(key, id);
            if (first <= last) {
                ranges.put(id, id + " " + first + " " + last);
            }
        }
        ranges.values().forEach(System.out::println);
    }

    private static Collection<?> keys(String broker) throws Exception {
        Class<?> apiKeys = Class.forName(PROTOCOL + "ApiKeys");
        for (Method method : apiKeys.getMethods()) {
            if (method.getName().equals("apisForListener")) {
                Class<?> type = method.getParameterTypes()[0];
                for (Object listener : type.getEnumConstants()) {
                    if (listener.toString().replace("_", "").equalsIgnoreCase(broker)) {
                        return (Collection<?>) method.invoke(null, listener);
                    }
                }
                throw new IllegalArgumentException("no listener is called " + broker);
            }
        }
        for (Method method : apiKeys.getMethods()) {
            if (method.getName().equals("enabledApis")) {
                return (Collection<?>) method.invoke(null);
            }
        }
        return List.of(apiKeys.getEnumConstants());
    }

    private static int first(Object key, int id) throws Exception {
        for (Method method : key.getClass().getMethods()) {
            if (method.getName().equals("oldestVersion")) {
                return ((Number) method.invoke(key)).intValue();
            }
        }
        Object versions = Array.get(table("REQUESTS"), id);
        for (int version = 0; version < Array.getLength(versions); version++) {
            if (Array.get(versions, version) != null) {
                return version;
            }
        }
        return Integer.MAX_VALUE;
    }

    private static int last(Object key, int id) throws Exception {
        Method plain = null;
        for (Method method : key.getClass().getMethods()) {
            if (method.getName().equals("latestVersion")) {
                if (method.getParameterCount() == 1) {
                    return ((Number) method.invoke(key, false)).intValue();
                }
                plain = method;
            }
        }
        if (plain != null) {
            return ((Number) plain.invoke(key)).intValue();
        }
        Class<?> utilities = Class.forName(PROTOCOL + "ProtoUtils");
        return ((Number) utilities.getMethod("latestVersion", int.class).invoke(null, id)).intValue();
    }

    private static Object table(String name) throws Exception {
        return Class.forName(PROTOCOL + "Protocol").getField(name).get(null);
    }
}
