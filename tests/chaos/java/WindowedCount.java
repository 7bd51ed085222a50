import java.io.FileReader;
import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.TimeWindows;

/**
 * Counts records by key in windows, and writes each new count as "key@start of window".
 *
 * Records are grouped by a key that is made here, so that they pass through a topic of the
 * application's own before they reach the store. Arguments: a file of settings, the topic to read,
 * the topic to write, and the length of a window in milliseconds.
 */
public class WindowedCount {
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        try (FileReader file = new FileReader(arguments[0])) {
            settings.load(file);
        }
        Duration window = Duration.ofMillis(Long.parseLong(arguments[3]));
        KafkaStreams streams =
                new KafkaStreams(topology(arguments[1], arguments[2], window), settings);
        streams.setUncaughtExceptionHandler(
                problem -> StreamThreadExceptionResponse.REPLACE_THREAD);
        streams.setStateListener((now, before) -> System.out.println(now));
        Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
        streams.start();
    }

    private static Topology topology(String source, String target, Duration window) {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(source, Consumed.with(Serdes.String(), Serdes.String()))
                .groupBy((key, value) -> "count-" + key,
                        Grouped.with(Serdes.String(), Serdes.String()))
                .windowedBy(TimeWindows.ofSizeAndGrace(window, Duration.ofHours(1)))
                .count(Materialized.as("counts"))
                .toStream()
                .map((windowed, count) -> KeyValue.pair(
                        windowed.key() + "@" + windowed.window().start(), count.toString()))
                .to(target, Produced.with(Serdes.String(), Serdes.String()));
        return builder.build();
    }
}
