import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/**
 * Reads lines of "class version hex" and answers each with "hex json": what Apache Kafka's own
 * class decodes from the bytes, encoded again. A single "-" for the hex requests a new instance.
 */
public class Reencode {
    private static final String[] PACKAGES = {
        "org.apache.kafka.common.message.",
        "org.apache.kafka.coordinator.group.generated.",
        "org.apache.kafka.coordinator.transaction.generated.",
    };

    public static void main(String[] arguments) throws Exception {
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            String hex = words.length > 2 ? words[2] : "";
            out.println(answer(words[0], Short.parseShort(words[1]), hex));
        }
        out.flush();
    }

    private static String answer(String name, short version, String hex) {
        try {
            Class<?> type = find(name);
            Message message = (Message) type.getConstructor().newInstance();
            if (!hex.equals("-")) {
                var input = new ByteBufferAccessor(ByteBuffer.wrap(HexFormat.of().parseHex(hex)));
                message.read(input, version);
                if (input.remaining() > 0) {
                    return "! " + input.remaining() + " bytes left over";
                }
            }
            return written(message, version) + " " + json(type, message, version);
        } catch (ReflectiveOperationException | RuntimeException problem) {
            Throwable cause = problem.getCause() == null ? problem : problem.getCause();
            return "! " + cause;
        }
    }

    private static Class<?> find(String name) throws ClassNotFoundException {
        for (String place : PACKAGES) {
            try {
                return Class.forName(place + name);
            } catch (ClassNotFoundException elsewhere) {
                continue;
            }
        }
        throw new ClassNotFoundException(name);
    }

    private static String written(Message message, short version) {
        var cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        return HexFormat.of().formatHex(buffer.array());
    }

    private static Object json(Class<?> type, Message message, short version)
            throws ReflectiveOperationException {
        Class<?> converter = Class.forName(type.getName() + "JsonConverter");
        return converter.getMethod("write", type, short.class).invoke(null, message, version);
    }
}
