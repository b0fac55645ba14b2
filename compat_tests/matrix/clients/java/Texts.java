/** The texts of record n, as compat_tests/matrix/records.py has them. */
final class Texts {
    private static final String FILL = new String(new char[100]).replace('\0', 'x');

    private Texts() {}

    static String key(int number) {
        return "key-" + number % 50;
    }

    static String value(int number) {
        return "value-" + number + "-" + FILL;
    }

    static String header(int number) {
        return "header-" + number / 100;
    }
}
