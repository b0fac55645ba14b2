import com.google.re2j.Pattern;
import com.google.re2j.PatternSyntaxException;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Says of each line, a pattern and texts in base64, which texts RE2/J matches as a whole: "101", or "refused". */
public class PatternOracle {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        StringBuilder answers = new StringBuilder();
        String line;
        while ((line = lines.readLine()) != null) {
            answers.append(answer(line.split("\t", -1))).append('\n');
        }
        System.out.print(answers);
    }

    private static String answer(String[] fields) {
        try {
            Pattern pattern = Pattern.compile(text(fields[0]));
            return Stream.of(fields).skip(1)
                .map(field -> pattern.matches(text(field)) ? "1" : "0")
                .collect(Collectors.joining());
        } catch (PatternSyntaxException problem) {
            return "refused";
        }
    }

    private static String text(String field) {
        return new String(Base64.getDecoder().decode(field), StandardCharsets.UTF_8);
    }
}
