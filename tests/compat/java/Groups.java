import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.regex.Pattern;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListGroupsOptions;
import org.apache.kafka.clients.admin.MemberToRemove;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.NoOffsetForPartitionException;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.FencedInstanceIdException;
import org.apache.kafka.common.errors.GroupIdNotFoundException;
import org.apache.kafka.common.errors.GroupNotEmptyException;
import org.apache.kafka.common.errors.UnreleasedInstanceIdException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Dialogues of Apache Kafka's consumer and admin client with groups of both protocols; prints
 * "pass name" or "fail name why". Each has a topic of two partitions with twenty records each.
 */
public class Groups {
    private static final int EACH = 20;
    private static String bootstrap;
    private static Admin admin;
    private static String protocol;
    private static String group;
    private static String topic;

    public static void main(String[] arguments) {
        bootstrap = arguments[0];
        try (Admin opened = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            admin = opened;
            for (String each : List.of("classic", "consumer")) {
                protocol = each;
                attempt("resume", Groups::resume);
                attempt("auto-commit", Groups::autoCommit);
                attempt("reset-latest", Groups::resetLatest);
                attempt("reset-none", Groups::resetNone);
                attempt("reset-by-duration", Groups::resetByDuration);
                attempt("note", Groups::note);
                attempt("pause", Groups::pause);
                attempt("by-hand", Groups::byHand);
                attempt("pattern", Groups::pattern);
                attempt("static", Groups::staticMember);
                attempt("describe", Groups::describe);
                attempt("offsets", Groups::offsets);
                attempt("delete", Groups::delete);
            }
            protocol = "consumer";
            attempt("server-pattern", Groups::serverPattern);
            attempt("upgrade", Groups::upgrade);
            protocol = "classic";
            attempt("remove-members", Groups::removeMembers);
        }
        System.exit(0);
    }

    private static void attempt(String name, Callable<?> scenario) {
        String title = protocol + "-" + name;
        try {
            group = title + "-" + UUID.randomUUID();
            topic = "t-" + group;
            admin.createTopics(List.of(new NewTopic(topic, 2, (short) 1))).all().get();
            produce(EACH);
            scenario.call();
            System.out.println("pass " + title);
        } catch (Exception | AssertionError problem) {
            System.out.println("fail " + title + " " + problem + " at " + where(problem));
            problem.printStackTrace();
        }
    }

    private static String where(Throwable problem) {
        for (StackTraceElement element : problem.getStackTrace()) {
            if (element.getClassName().equals("Groups") && !element.getMethodName().equals("check")
                    && !element.getMethodName().equals("same")) {
                return element.toString();
            }
        }
        return "?";
    }

    private static Object resume() throws Exception {
        try (var consumer = subscribed(Map.of())) {
            same(2 * EACH, read(consumer, 2 * EACH).size());
            consumer.commitSync(Map.of(
                    place(0), new OffsetAndMetadata(7), place(1), new OffsetAndMetadata(15)));
        }
        try (var consumer = subscribed(Map.of())) {
            Set<String> rest = new TreeSet<>();
            for (int offset = 7; offset < EACH; offset++) {
                rest.add("0:" + offset);
            }
            for (int offset = 15; offset < EACH; offset++) {
                rest.add("1:" + offset);
            }
            same(rest, new TreeSet<>(read(consumer, rest.size())));
        }
        return null;
    }

    private static Object autoCommit() throws Exception {
        try (var consumer = subscribed(Map.of("enable.auto.commit", "true"))) {
            read(consumer, 2 * EACH);
        }
        try (var consumer = open(Map.of())) {
            same((long) EACH, consumer.committed(Set.of(place(1))).get(place(1)).offset());
        }
        return null;
    }

    private static Object resetLatest() throws Exception {
        try (var consumer = subscribed(Map.of("auto.offset.reset", "latest"))) {
            List<String> found = new ArrayList<>();
            long deadline = deadline();
            while (found.isEmpty()) {
                check(System.currentTimeMillis() < deadline, "nothing came");
                produce(1);
                consumer.poll(Duration.ofMillis(300)).forEach(record -> found.add(name(record)));
            }
            check(Integer.parseInt(found.get(0).substring(2)) >= EACH, "an old record came");
        }
        return null;
    }

    private static Object resetNone() throws Exception {
        try (var consumer = subscribed(Map.of("auto.offset.reset", "none"))) {
            read(consumer, 1);
        } catch (NoOffsetForPartitionException expected) {
            return null;
        }
        throw new AssertionError("it began somewhere");
    }

    private static Object resetByDuration() throws Exception {
        long longAgo = System.currentTimeMillis() - 7_200_000;
        try (var producer = producer()) {
            producer.send(new ProducerRecord<>(topic, 0, longAgo, null, new byte[1])).get();
        }
        try (var consumer = subscribed(Map.of("auto.offset.reset", "by_duration:PT1H"))) {
            // The old record is the last; the first within the hour is the first of all.
            check(read(consumer, 2 * EACH).contains("0:0"), "it began elsewhere");
        }
        return null;
    }

    private static Object note() throws Exception {
        try (var consumer = open(Map.of())) {
            consumer.assign(List.of(place(0)));
            consumer.commitSync(Map.of(place(0), new OffsetAndMetadata(3, "a note: ä")));
        }
        try (var consumer = open(Map.of())) {
            OffsetAndMetadata back = consumer.committed(Set.of(place(0))).get(place(0));
            same(3L, back.offset());
            same("a note: ä", back.metadata());
        }
        return null;
    }

    private static Object pause() throws Exception {
        try (var consumer = subscribed(Map.of("max.poll.records", "1"))) {
            List<String> before = read(consumer, 1);
            consumer.pause(consumer.assignment());
            for (int times = 0; times < 5; times++) {
                check(consumer.poll(Duration.ofMillis(100)).isEmpty(), "a record came");
            }
            consumer.resume(consumer.assignment());
            Set<String> all = new TreeSet<>(before);
            all.addAll(read(consumer, 2 * EACH - 1));
            same(2 * EACH, all.size());
        }
        return null;
    }

    private static Object byHand() throws Exception {
        try (var consumer = open(Map.of("max.poll.records", "3"))) {
            consumer.assign(List.of(place(0)));
            consumer.seek(place(0), 4);
            same(List.of("0:4", "0:5", "0:6"), read(consumer, 3));
            consumer.commitSync();
        }
        try (var consumer = open(Map.of("max.poll.records", "1"))) {
            consumer.assign(List.of(place(0)));
            same(List.of("0:7"), read(consumer, 1));
        }
        return null;
    }

    private static Object pattern() throws Exception {
        try (var consumer = open(Map.of())) {
            consumer.subscribe(Pattern.compile(Pattern.quote(topic.substring(0, topic.length() - 3)) + ".*"));
            same(2 * EACH, read(consumer, 2 * EACH).size());
        }
        return null;
    }

    /** The pattern goes to the broker, which matches it (KIP-848). */
    private static Object serverPattern() throws Exception {
        try (var consumer = open(Map.of())) {
            consumer.subscribe(new SubscriptionPattern(topic.substring(0, topic.length() - 3) + ".*"));
            same(2 * EACH, read(consumer, 2 * EACH).size());
        }
        return null;
    }

    /** Classic groups fence the old holder of an instance id; consumer groups refuse the new one. */
    private static Object staticMember() throws Exception {
        Class<?> expected = protocol.equals("classic")
                ? FencedInstanceIdException.class : UnreleasedInstanceIdException.class;
        try (var first = subscribed(Map.of("group.instance.id", "one"));
                var second = open(Map.of("group.instance.id", "one"))) {
            read(first, 1);
            second.subscribe(List.of(topic));
            var refused = protocol.equals("classic") ? first : second;
            long deadline = deadline();
            while (System.currentTimeMillis() < deadline) {
                for (var consumer : List.of(second, first)) {
                    try {
                        consumer.poll(Duration.ofMillis(100));
                    } catch (FencedInstanceIdException | UnreleasedInstanceIdException problem) {
                        same(expected, problem.getClass());
                        check(consumer == refused, "the wrong one was refused");
                        return null;
                    }
                }
            }
        }
        throw new AssertionError("no member was refused");
    }

    private static Object describe() throws Exception {
        try (var consumer = subscribed(Map.of("client.id", "teller"))) {
            read(consumer, 2 * EACH);
            consumer.commitSync();
            GroupType type = protocol.equals("classic") ? GroupType.CLASSIC : GroupType.CONSUMER;
            var options = new ListGroupsOptions()
                    .inGroupStates(Set.of(GroupState.STABLE)).withTypes(Set.of(type));
            check(admin.listGroups(options).all().get().stream()
                    .anyMatch(found -> found.groupId().equals(group)), "it is not listed");
            var described = admin.describeConsumerGroups(List.of(group)).all().get().get(group);
            same(GroupState.STABLE, described.groupState());
            same(type, described.type());
            var member = described.members().iterator().next();
            same("teller", member.clientId());
            same(Set.of(place(0), place(1)), member.assignment().topicPartitions());
            var offsets = admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
            same(Map.of(place(0), (long) EACH, place(1), (long) EACH), plain(offsets));
        }
        var described = admin.describeConsumerGroups(List.of(group)).all().get().get(group);
        same(GroupState.EMPTY, described.groupState());
        return null;
    }

    private static Object offsets() throws Exception {
        admin.alterConsumerGroupOffsets(group, Map.of(
                place(0), new OffsetAndMetadata(3), place(1), new OffsetAndMetadata(4))).all().get();
        admin.deleteConsumerGroupOffsets(group, Set.of(place(1))).all().get();
        var left = admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
        same(Map.of(place(0), 3L), plain(left));
        return null;
    }

    private static Object delete() throws Exception {
        try (var consumer = subscribed(Map.of())) {
            read(consumer, 1);
            consumer.commitSync();
            refused(GroupNotEmptyException.class, () -> deleteGroup());
        }
        deleteGroup();
        refused(GroupIdNotFoundException.class, () -> deleteGroup());
        return null;
    }

    /** Offline migration: a group that has become empty changes its protocol with its next member. */
    private static Object upgrade() throws Exception {
        for (String each : List.of("classic", "consumer", "classic")) {
            protocol = each;
            try (var consumer = subscribed(Map.of("max.poll.records", "5"))) {
                read(consumer, 5);
                consumer.commitSync();
                GroupType type = each.equals("classic") ? GroupType.CLASSIC : GroupType.CONSUMER;
                same(type, admin.describeConsumerGroups(List.of(group)).all().get().get(group).type());
            }
        }
        long total = plain(admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get())
                .values().stream().mapToLong(Long::longValue).sum();
        same(15L, total);
        protocol = "consumer";
        return null;
    }

    private static Object removeMembers() throws Exception {
        try (var consumer = subscribed(Map.of("group.instance.id", "one"))) {
            read(consumer, 1);
        }
        // A static member does not leave when it is closed: an operator removes it.
        var one = new RemoveMembersFromConsumerGroupOptions(Set.of(new MemberToRemove("one")));
        admin.removeMembersFromConsumerGroup(group, one).all().get();
        same(GroupState.EMPTY,
                admin.describeConsumerGroups(List.of(group)).all().get().get(group).groupState());
        return null;
    }

    private static Object deleteGroup() throws Exception {
        return admin.deleteConsumerGroups(List.of(group)).all().get();
    }

    private static void refused(Class<?> expected, Callable<?> scenario) throws Exception {
        try {
            scenario.call();
        } catch (ExecutionException problem) {
            same(expected, problem.getCause().getClass());
            return;
        }
        throw new AssertionError("it was not refused with " + expected);
    }

    private static Map<TopicPartition, Long> plain(Map<TopicPartition, OffsetAndMetadata> offsets) {
        Map<TopicPartition, Long> found = new HashMap<>();
        offsets.forEach((where, offset) -> found.put(where, offset.offset()));
        return found;
    }

    private static TopicPartition place(int partition) {
        return new TopicPartition(topic, partition);
    }

    private static KafkaProducer<byte[], byte[]> producer() {
        return new KafkaProducer<>(Map.of("bootstrap.servers", bootstrap),
                new ByteArraySerializer(), new ByteArraySerializer());
    }

    private static void produce(int each) throws Exception {
        try (var producer = producer()) {
            for (int number = 0; number < each; number++) {
                byte[] value = String.valueOf(number).getBytes(StandardCharsets.UTF_8);
                producer.send(new ProducerRecord<>(topic, 0, null, value));
                producer.send(new ProducerRecord<>(topic, 1, null, value));
            }
        }
    }

    private static KafkaConsumer<byte[], byte[]> subscribed(Map<String, String> changes) {
        var consumer = open(changes);
        consumer.subscribe(List.of(topic));
        return consumer;
    }

    private static KafkaConsumer<byte[], byte[]> open(Map<String, String> changes) {
        Map<String, Object> properties = new HashMap<>();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("group.id", group);
        properties.put("group.protocol", protocol);
        properties.put("auto.offset.reset", "earliest");
        properties.put("enable.auto.commit", "false");
        properties.put("fetch.max.wait.ms", "50");
        properties.put("metadata.max.age.ms", "1000");
        if (protocol.equals("classic")) {
            properties.put("heartbeat.interval.ms", "300");
        }
        properties.putAll(changes);
        return new KafkaConsumer<>(
                properties, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    /** The next records, as "partition:offset". */
    private static List<String> read(KafkaConsumer<byte[], byte[]> consumer, int count) {
        List<String> found = new ArrayList<>();
        long deadline = deadline();
        while (found.size() < count) {
            check(System.currentTimeMillis() < deadline, "only " + found.size() + " came");
            consumer.poll(Duration.ofMillis(300)).forEach(record -> found.add(name(record)));
        }
        return found;
    }

    private static long deadline() {
        return System.currentTimeMillis() + 30_000;
    }

    private static String name(ConsumerRecord<byte[], byte[]> record) {
        return record.partition() + ":" + record.offset();
    }

    private static void same(Object wanted, Object found) {
        check(wanted.equals(found), found + " came, not " + wanted);
    }

    private static void check(boolean condition, String problem) {
        if (!condition) {
            throw new AssertionError(problem);
        }
    }
}
