/** Lines of JSON for the harness. Record texts are plain ASCII; what an error says is made so. */
final class Tell {
    private Tell() {}

    static void record(int partition, long offset, String key, String value, Long timestamp, String header) {
        line("{\"partition\":" + partition + ",\"offset\":" + offset + ",\"key\":" + quoted(key) + ",\"value\":"
                + quoted(value) + ",\"timestamp\":" + timestamp + ",\"header\":" + quoted(header) + "}");
    }

    static void assigned(Iterable<Integer> partitions) {
        StringBuilder numbers = new StringBuilder();
        for (int partition : partitions) {
            numbers.append(numbers.length() == 0 ? "" : ",").append(partition);
        }
        line("{\"assigned\":[" + numbers + "]}");
    }

    static void done() {
        line("{\"done\":true}");
    }

    /** Tells of a problem and its causes, without wrappers that only repeat what they wrap. */
    static void error(Throwable problem) {
        Throwable first = problem;
        while (first.getCause() != null && first.getCause().toString().equals(first.getMessage())) {
            first = first.getCause();
        }
        StringBuilder words = new StringBuilder(first.toString());
        for (Throwable cause = first.getCause(); cause != null; cause = cause.getCause()) {
            words.append(" <- ").append(cause);
        }
        line("{\"error\":" + quoted(words.toString()) + "}");
    }

    private static String quoted(String text) {
        return text == null ? "null" : "\"" + text.replaceAll("[^ !#-\\[\\]-~]", " ") + "\"";
    }

    private static void line(String json) {
        System.out.println(json);
        System.out.flush();
    }
}
