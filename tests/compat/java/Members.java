import java.io.BufferedReader;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Members of consumer groups, each on a thread of its own. Reads "join NAME LOG name=value..." and
 * "leave NAME" from stdin, with tabs between words; all leave at the end of the input. The log of a
 * member is described in tests/support/members/membership_log.py.
 */
public class Members {
    private static final int BATCH = 50;
    private static final Duration POLL = Duration.ofMillis(50);

    public static void main(String[] arguments) throws Exception {
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Map<String, Member> members = new HashMap<>();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            List<String> words = List.of(line.split("\t"));
            if (words.get(0).equals("join")) {
                Member member = new Member(words.get(1), words.get(2), words.subList(3, words.size()));
                members.put(words.get(1), member);
                member.start();
            } else {
                leave(List.of(members.remove(words.get(1))));
            }
        }
        leave(members.values());
        System.exit(0);
    }

    private static void leave(Collection<Member> going) throws InterruptedException {
        going.forEach(member -> member.leaving = true);
        for (Member member : going) {
            member.join();
        }
    }

    private static class Member extends Thread implements ConsumerRebalanceListener {
        private final Map<String, String> settings = new HashMap<>();
        private final Map<Integer, Long> positions = new TreeMap<>();
        private final Set<Integer> owned = new HashSet<>();
        private final FileOutputStream log;
        private final String life;
        private volatile boolean leaving;
        private KafkaConsumer<byte[], byte[]> consumer;

        Member(String name, String path, List<String> words) throws IOException {
            super(name);
            for (String word : words) {
                String[] pair = word.split("=", 2);
                settings.put(pair[0], pair[1]);
            }
            log = new FileOutputStream(path, true);
            String file = path.substring(path.lastIndexOf('/') + 1);
            life = file.substring(0, file.lastIndexOf('.'));
        }

        @Override
        public void run() {
            String instance = settings.getOrDefault("instance", "");
            write("joined " + (instance.isEmpty() ? life : instance));
            try {
                takePart();
            } catch (Exception problem) {
                write("failed " + problem);
            }
            write("left");
        }

        private void takePart() {
            consumer = new KafkaConsumer<>(
                    properties(), new ByteArrayDeserializer(), new ByteArrayDeserializer());
            consumer.subscribe(List.of(settings.get("topic")), this);
            while (!leaving) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(POLL);
                records.forEach(this::process);
                if (!records.isEmpty()) {
                    commit(owned);
                }
            }
            consumer.close();
        }

        private Map<String, Object> properties() {
            Map<String, Object> made = new HashMap<>();
            made.put("bootstrap.servers", settings.get("bootstrap"));
            made.put("group.id", settings.get("group"));
            made.put("group.protocol", settings.get("protocol"));
            made.put("client.id", getName());
            made.put("enable.auto.commit", "false");
            made.put("auto.offset.reset", "earliest");
            made.put("max.poll.records", String.valueOf(BATCH));
            made.put("fetch.max.wait.ms", "50");
            if (!settings.getOrDefault("instance", "").isEmpty()) {
                made.put("group.instance.id", settings.get("instance"));
            }
            if (settings.get("protocol").equals("consumer")) {
                made.put("group.remote.assignor", settings.get("assignor"));
            } else {
                made.put("partition.assignment.strategy", assignor(settings.get("assignor")));
                made.put("session.timeout.ms", settings.get("session_ms"));
                made.put("heartbeat.interval.ms", settings.get("heartbeat_ms"));
            }
            return made;
        }

        private static String assignor(String name) {
            return "org.apache.kafka.clients.consumer." + Map.of(
                    "range", "RangeAssignor",
                    "roundrobin", "RoundRobinAssignor",
                    "sticky", "StickyAssignor",
                    "cooperative-sticky", "CooperativeStickyAssignor").get(name);
        }

        private void process(ConsumerRecord<byte[], byte[]> record) {
            String number = new String(record.value(), StandardCharsets.UTF_8);
            write("processed " + record.partition() + " " + record.offset() + " " + number);
            positions.put(record.partition(), record.offset() + 1);
        }

        /** Commits; returns whether this is still a member. */
        private boolean commit(Set<Integer> partitions) {
            Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
            List<String> words = new ArrayList<>();
            positions.forEach((partition, next) -> {
                if (partitions.contains(partition)) {
                    offsets.put(new TopicPartition(settings.get("topic"), partition),
                            new OffsetAndMetadata(next));
                    words.add(partition + ":" + next);
                }
            });
            if (offsets.isEmpty()) {
                return true;
            }
            long sent = System.nanoTime();
            try {
                consumer.commitSync(offsets);
                write("committed " + sent + " " + String.join(",", words));
                return true;
            } catch (KafkaException problem) {
                write("refused " + sent + " " + problem.getClass().getSimpleName());
                return problem instanceof RebalanceInProgressException;
            }
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> places) {
            int generation = consumer.groupMetadata().generationId();
            write("assigned " + generation + " " + listed(places));
            owned.addAll(numbers(places));
            positions.keySet().removeAll(numbers(places));
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> places) {
            boolean isMember = commit(numbers(places));
            write((isMember ? "revoked " : "lost ") + listed(places));
            owned.removeAll(numbers(places));
        }

        @Override
        public void onPartitionsLost(Collection<TopicPartition> places) {
            write("lost " + listed(places));
            owned.removeAll(numbers(places));
        }

        private static Set<Integer> numbers(Collection<TopicPartition> places) {
            return places.stream().map(TopicPartition::partition)
                    .collect(Collectors.toCollection(TreeSet::new));
        }

        private static String listed(Collection<TopicPartition> places) {
            return places.isEmpty() ? "-" : numbers(places).stream().map(String::valueOf)
                    .collect(Collectors.joining(","));
        }

        private void write(String text) {
            String line = System.nanoTime() + " " + text.replace('\n', ' ') + "\n";
            try {
                log.write(line.getBytes(StandardCharsets.UTF_8));
            } catch (IOException problem) {
                throw new UncheckedIOException(problem);
            }
        }
    }
}
