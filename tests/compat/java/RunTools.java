import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs the main classes of Apache Kafka's command-line tools in one JVM. Reads lines of
 * "class TAB input TAB argument ..." and answers each with its exit code and its output in base64.
 */
public class RunTools {
    public static void main(String[] ignored) throws Exception {
        PrintStream answers = System.out;
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Exit.setExitProcedure((code, message) -> { throw new Exited(code); });
        Exit.setHaltProcedure((code, message) -> { throw new Exited(code); });
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split("\t");
            var output = new ByteArrayOutputStream();
            System.setIn(new ByteArrayInputStream(Base64.getDecoder().decode(words[1])));
            System.setOut(new PrintStream(output, true));
            System.setErr(new PrintStream(output, true));
            int code = run(words[0], Arrays.copyOfRange(words, 2, words.length));
            answers.println(code + " " + Base64.getEncoder().encodeToString(output.toByteArray()));
            answers.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    private static int run(String name, String[] arguments) {
        try {
            Class.forName(name).getMethod("main", String[].class).invoke(null, (Object) arguments);
            return 0;
        } catch (InvocationTargetException thrown) {
            for (Throwable cause = thrown; cause != null; cause = cause.getCause()) {
                if (cause instanceof Exited exited) {
                    return exited.code;
                }
            }
            thrown.getCause().printStackTrace();
            return -1;
        } catch (ReflectiveOperationException problem) {
            problem.printStackTrace();
            return -1;
        }
    }

    private static final class Exited extends RuntimeException {
        private final int code;

        private Exited(int code) {
            this.code = code;
        }
    }
}
