import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import org.apache.kafka.common.utils.Exit;
import org.slf4j.LoggerFactory;

/**
 * Runs the main classes of Apache Kafka's command-line tools in one JVM. Reads lines of
 * "class TAB input TAB argument ..." and answers each with its exit code and its output in base64.
 */
public class RunTools {
    private static final List<Runnable> hooks = new ArrayList<>();
    private static Integer exitCode;

    public static void main(String[] ignored) throws Exception {
        PrintStream answers = System.out;
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        LoggerFactory.getLogger(RunTools.class); // says now, not later, that it logs nowhere
        Exit.setExitProcedure((code, message) -> exit(code));
        Exit.setHaltProcedure((code, message) -> exit(code));
        Exit.setShutdownHookAdder((name, hook) -> hooks.add(hook));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split("\t");
            var output = new ByteArrayOutputStream();
            System.setIn(new ByteArrayInputStream(Base64.getDecoder().decode(words[1])));
            System.setOut(new PrintStream(output, true));
            System.setErr(new PrintStream(output, true));
            int code = run(words[0], Arrays.copyOfRange(words, 2, words.length));
            hooks.forEach(Runnable::run); // the console producer sends its last records in one
            hooks.clear();
            answers.println(code + " " + Base64.getEncoder().encodeToString(output.toByteArray()));
            answers.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    /** Ends a tool. Some catch everything and exit again; the output of that is ignored. */
    private static void exit(int code) {
        if (exitCode == null) {
            exitCode = code;
            System.setOut(new PrintStream(OutputStream.nullOutputStream()));
            System.setErr(System.out);
        }
        throw new IllegalStateException("exit");
    }

    private static int run(String name, String[] arguments) throws ReflectiveOperationException {
        exitCode = null;
        try {
            Class.forName(name).getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException thrown) {
            thrown.getCause().printStackTrace();
            return exitCode == null ? -1 : exitCode;
        }
        return exitCode == null ? 0 : exitCode;
    }
}
