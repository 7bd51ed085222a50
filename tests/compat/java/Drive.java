import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.DescribeConfigsOptions;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicCollection;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.InvalidConfigurationException;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Many dialogues of Apache Kafka's client with one broker; prints "pass name" or "fail name why". */
public class Drive {
    private static final long FIRST_MS = 1_700_000_000_000L;
    private static final int COUNT = 60;
    private static String bootstrap;
    private static Admin admin;

    public static void main(String[] arguments) {
        bootstrap = arguments[0];
        try (Admin opened = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            admin = opened;
            for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
                for (String acks : List.of("0", "1", "all")) {
                    String name = "records-" + codec + "-" + acks;
                    attempt(name, () -> recordsComeBack("java-" + name, codec, acks));
                }
            }
            attempt("idempotent", Drive::idempotent);
            attempt("on-demand", Drive::onDemand);
            attempt("read-committed", Drive::readCommitted);
            attempt("append-time", Drive::appendTime);
            attempt("made-again", Drive::madeAgain);
            attempt("topics", Drive::topics);
            attempt("configs", Drive::configs);
            attempt("offsets", Drive::offsets);
            attempt("cluster", Drive::cluster);
            attempt("refusals", Drive::refusals);
        }
        System.exit(0);
    }

    private static void attempt(String name, Callable<?> scenario) {
        try {
            scenario.call();
            System.out.println("pass " + name);
        } catch (Exception | AssertionError problem) {
            System.out.println("fail " + name + " " + problem + " at " + problem.getStackTrace()[0]);
            problem.printStackTrace();
        }
    }

    private static Object recordsComeBack(String topic, String codec, String acks) throws Exception {
        create(new NewTopic(topic, 1, (short) 1));
        boolean idempotent = acks.equals("all");
        produce(topic, Map.of("compression.type", codec, "acks", acks,
                "enable.idempotence", String.valueOf(idempotent)));
        TopicPartition place = new TopicPartition(topic, 0);
        try (var consumer = consumer(Map.of())) {
            consumer.assign(List.of(place));
            consumer.seekToBeginning(List.of(place));
            compare(read(consumer, COUNT), 0);
            consumer.seek(place, 37);
            compare(read(consumer, COUNT - 37), 37);
            long wanted = FIRST_MS + 200 - 9;
            var found = consumer.offsetsForTimes(Map.of(place, wanted)).get(place);
            same(20L, found.offset());
            same(FIRST_MS + 200, found.timestamp());
            same(0L, consumer.beginningOffsets(List.of(place)).get(place));
            same((long) COUNT, consumer.endOffsets(List.of(place)).get(place));
        }
        return null;
    }

    private static Object idempotent() throws Exception {
        create(new NewTopic("java-idempotent", 1, (short) 1));
        List<RecordMetadata> reports = produce("java-idempotent", Map.of("batch.size", "500"));
        for (int number = 0; number < COUNT; number++) {
            same((long) number, reports.get(number).offset());
        }
        return null;
    }

    private static Object onDemand() throws Exception {
        produce("java-on-demand", Map.of());
        check(admin.listTopics().names().get().contains("java-on-demand"), "it is not listed");
        return null;
    }

    private static Object readCommitted() throws Exception {
        produce("java-read-committed", Map.of());
        TopicPartition place = new TopicPartition("java-read-committed", 0);
        try (var consumer = consumer(Map.of("isolation.level", "read_committed"))) {
            consumer.assign(List.of(place));
            consumer.seek(place, 0);
            compare(read(consumer, COUNT), 0);
        }
        return null;
    }

    private static Object appendTime() throws Exception {
        var config = Map.of("message.timestamp.type", "LogAppendTime", "compression.type", "zstd");
        create(new NewTopic("java-append-time", 1, (short) 1).configs(config));
        long before = System.currentTimeMillis();
        var reports = produce("java-append-time", Map.of("compression.type", "gzip"));
        check(reports.get(0).timestamp() >= before, "the report tells the producer's time");
        try (var consumer = consumer(Map.of("check.crcs", "true"))) {
            TopicPartition place = new TopicPartition("java-append-time", 0);
            consumer.assign(List.of(place));
            consumer.seek(place, 0);
            for (ConsumerRecord<byte[], byte[]> record : read(consumer, COUNT)) {
                check(record.timestamp() >= before, "a record tells the producer's time");
                same("LogAppendTime", record.timestampType().toString());
            }
        }
        return null;
    }

    /** A consumer continues with a topic that was deleted and recreated while it was waiting. */
    private static Object madeAgain() throws Exception {
        // On the same broker both times: a new leader would be asked where the old records end
        // (KIP-320), and the position would be moved there instead of being reset.
        NewTopic again = new NewTopic("java-made-again", Map.of(0, List.of(1)));
        create(again);
        TopicPartition place = new TopicPartition("java-made-again", 0);
        try (var consumer = consumer(Map.of("auto.offset.reset", "earliest",
                "metadata.max.age.ms", "1000"))) {
            consumer.assign(List.of(place));
            produce("java-made-again", Map.of());
            compare(read(consumer, COUNT), 0);
            consumer.poll(Duration.ofMillis(100));
            admin.deleteTopics(List.of("java-made-again")).all().get();
            create(again);
            // Fewer than before, so that the old position is outside and is reset.
            produce("java-made-again", Map.of(), COUNT / 2);
            compare(read(consumer, COUNT / 2), 0);
        }
        return null;
    }

    private static Object topics() throws Exception {
        var made = admin.createTopics(List.of(
                new NewTopic("java-topics", Optional.empty(), Optional.empty()),
                new NewTopic("java-placed", Map.of(0, List.of(1), 1, List.of(1)))
                        .configs(Map.of("retention.ms", "60000"))));
        made.all().get();
        same(1, made.numPartitions("java-topics").get());
        same(brokers(), made.replicationFactor("java-topics").get());
        same("60000", made.config("java-placed").get().get("retention.ms").value());
        admin.createPartitions(Map.of("java-topics", NewPartitions.increaseTo(4))).all().get();
        // Any broker is asked, and another one may learn of it a little later.
        until(() -> brokers() == 1 || admin.describeTopics(List.of("java-topics"))
                .allTopicNames().get().get("java-topics").partitions().size() == 4);
        var described = admin.describeTopics(List.of("java-topics", "java-placed"))
                .allTopicNames().get();
        same(4, described.get("java-topics").partitions().size());
        same(2, described.get("java-placed").partitions().size());
        same(1, described.get("java-placed").partitions().get(0).leader().id());
        Uuid id = described.get("java-topics").topicId();
        same(id, made.topicId("java-topics").get());
        var byId = admin.describeTopics(TopicCollection.ofTopicIds(List.of(id))).allTopicIds().get();
        same("java-topics", byId.get(id).name());
        admin.deleteTopics(TopicCollection.ofTopicIds(List.of(id))).all().get();
        until(() -> brokers() == 1 || !admin.listTopics().names().get().contains("java-topics"));
        check(!admin.listTopics().names().get().contains("java-topics"), "it is still listed");
        return null;
    }

    private static Object configs() throws Exception {
        create(new NewTopic("java-configs", 1, (short) 1));
        var topic = new ConfigResource(ConfigResource.Type.TOPIC, "java-configs");
        var broker = new ConfigResource(ConfigResource.Type.BROKER, "1");
        alter(topic, "cleanup.policy", "compact", AlterConfigOp.OpType.APPEND);
        alter(topic, "retention.ms", "5000", AlterConfigOp.OpType.SET);
        Config now = describe(topic);
        same("delete,compact", now.get("cleanup.policy").value());
        same(ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG, now.get("retention.ms").source());
        check(now.get("retention.ms").synonyms().size() >= 2, "there are no synonyms");
        check(now.get("retention.ms").documentation() != null, "there is no documentation");
        same(ConfigEntry.ConfigType.LONG, now.get("retention.ms").type());
        alter(topic, "cleanup.policy", "delete", AlterConfigOp.OpType.SUBTRACT);
        alter(topic, "retention.ms", "", AlterConfigOp.OpType.DELETE);
        now = describe(topic);
        same("compact", now.get("cleanup.policy").value());
        same(ConfigEntry.ConfigSource.DEFAULT_CONFIG, now.get("retention.ms").source());
        same("1", describe(broker).get("node.id").value());
        check(describe(broker).get("node.id").isReadOnly(), "node.id can be altered");
        return null;
    }

    private static Object offsets() throws Exception {
        create(new NewTopic("java-offsets", 1, (short) 1));
        produce("java-offsets", Map.of("compression.type", "gzip", "linger.ms", "50"));
        TopicPartition place = new TopicPartition("java-offsets", 0);
        same(0L, offset(place, OffsetSpec.earliest()));
        same((long) COUNT, offset(place, OffsetSpec.latest()));
        same(COUNT - 1L, offset(place, OffsetSpec.maxTimestamp()));
        same(0L, offset(place, OffsetSpec.earliestLocal()));
        same(-1L, offset(place, OffsetSpec.latestTiered()));
        same(11L, offset(place, OffsetSpec.forTimestamp(FIRST_MS + 101)));
        same(-1L, offset(place, OffsetSpec.forTimestamp(FIRST_MS + 1_000_000)));
        var deleted = admin.deleteRecords(Map.of(place, RecordsToDelete.beforeOffset(5)));
        same(5L, deleted.lowWatermarks().get(place).get().lowWatermark());
        same(5L, offset(place, OffsetSpec.earliest()));
        return null;
    }

    private static Object cluster() throws Exception {
        var described = admin.describeCluster();
        same(brokers(), described.nodes().get().size());
        check(described.nodes().get().contains(described.controller().get()), "no controller");
        check(!described.clusterId().get().isEmpty(), "the cluster has no id");
        var folders = admin.describeLogDirs(List.of(1)).allDescriptions().get().get(1);
        same(1, folders.size());
        check(folders.values().iterator().next().totalBytes().getAsLong() > 0, "no bytes");
        check(admin.describeFeatures().featureMetadata().get() != null, "there are no features");
        return null;
    }

    private static Object refusals() throws Exception {
        NewTopic small = new NewTopic("java-refusals", 1, (short) 1)
                .configs(Map.of("max.message.bytes", "1000"));
        create(small);
        refused(TopicExistsException.class, () -> { create(small); return null; });
        refused(InvalidConfigurationException.class, () -> {
            create(new NewTopic("java-bad", 1, (short) 1).configs(Map.of("retention.ms", "soon")));
            return null;
        });
        refused(RecordTooLargeException.class, () -> produce("java-refusals", Map.of()));
        return null;
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

    private static long offset(TopicPartition place, OffsetSpec spec) throws Exception {
        return admin.listOffsets(Map.of(place, spec)).partitionResult(place).get().offset();
    }

    private static Config describe(ConfigResource resource) throws Exception {
        var all = new DescribeConfigsOptions().includeSynonyms(true).includeDocumentation(true);
        return admin.describeConfigs(List.of(resource), all).all().get().get(resource);
    }

    private static void alter(ConfigResource resource, String name, String value,
            AlterConfigOp.OpType operation) throws Exception {
        Collection<AlterConfigOp> changes =
                List.of(new AlterConfigOp(new ConfigEntry(name, value), operation));
        admin.incrementalAlterConfigs(Map.of(resource, changes)).all().get();
    }

    private static void create(NewTopic topic) throws Exception {
        admin.createTopics(List.of(topic)).all().get();
    }

    private static List<RecordMetadata> produce(String topic, Map<String, String> config)
            throws Exception {
        return produce(topic, config, COUNT);
    }

    private static List<RecordMetadata> produce(
            String topic, Map<String, String> config, int count) throws Exception {
        var properties = new java.util.HashMap<String, Object>(config);
        properties.put("bootstrap.servers", bootstrap);
        List<Future<RecordMetadata>> reports = new ArrayList<>();
        try (var producer = new KafkaProducer<>(
                properties, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (int number = 0; number < count; number++) {
                long time = FIRST_MS + 10L * number;
                reports.add(producer.send(new ProducerRecord<>(
                        topic, 0, time, key(number), value(number), headers(number))));
            }
        }
        List<RecordMetadata> done = new ArrayList<>();
        for (Future<RecordMetadata> report : reports) {
            done.add(report.get());
        }
        return done;
    }

    private static KafkaConsumer<byte[], byte[]> consumer(Map<String, String> config) {
        var properties = new java.util.HashMap<String, Object>(config);
        properties.put("bootstrap.servers", bootstrap);
        properties.put("fetch.max.wait.ms", "50");
        return new KafkaConsumer<>(
                properties, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private static List<ConsumerRecord<byte[], byte[]>> read(
            KafkaConsumer<byte[], byte[]> consumer, int count) {
        List<ConsumerRecord<byte[], byte[]>> found = new ArrayList<>();
        long deadline = System.currentTimeMillis() + 30_000;
        while (found.size() < count) {
            check(System.currentTimeMillis() < deadline, "only " + found.size() + " came");
            consumer.poll(Duration.ofMillis(500)).forEach(found::add);
        }
        same(count, found.size());
        return found;
    }

    private static int brokers() {
        return bootstrap.split(",").length;
    }

    private static void until(Callable<Boolean> look) throws Exception {
        long deadline = System.currentTimeMillis() + 30_000;
        while (!look.call() && System.currentTimeMillis() < deadline) {
            Thread.sleep(20);
        }
    }

    private static void compare(List<ConsumerRecord<byte[], byte[]>> found, int from) {
        for (int number = from; number < from + found.size(); number++) {
            var record = found.get(number - from);
            same((long) number, record.offset());
            same(FIRST_MS + 10L * number, record.timestamp());
            check(Arrays.equals(key(number), record.key()), "another key at " + number);
            check(Arrays.equals(value(number), record.value()), "another value at " + number);
            same(headers(number), List.of(record.headers().toArray()));
        }
    }

    private static byte[] key(int number) {
        return number % 5 == 0 ? null : ("key" + number % 7).getBytes(StandardCharsets.UTF_8);
    }

    private static byte[] value(int number) {
        if (number % 5 == 2) {
            return null;
        }
        return "value ".repeat(number % 5 == 4 ? 3000 : number).getBytes(StandardCharsets.UTF_8);
    }

    private static List<Header> headers(int number) {
        byte[] content = {(byte) number};
        return number % 3 == 0 ? List.of() : List.of(new RecordHeader("one", content));
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
