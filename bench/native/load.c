/* Load from librdkafka: bulk produce, bulk consume, both at once, and two kinds of latency.
 *
 * One process, one mode, one JSON line on stdout. Consumers use the simple API (a queue that
 * partitions are started on), so no group coordinator takes part. Every mode is bounded by a
 * number of messages, by seconds, or both, and gives up after STALL_NS without progress.
 *
 *   load produce|consume|both|latency|ack --bootstrap HOST:PORT --topic T [--partitions P]
 *        [--messages N] [--size BYTES] [--seconds S] [--warmup S] [--rate PER_SECOND]
 *        [--interval-ms MS] [--property name=value]... [--client-property name=value]...
 *
 * Properties are the producer's, client properties those of every client.
 * With an interval, latency is that of transactions that are committed each MS.
 */
#include <getopt.h>
#include <librdkafka/rdkafka.h>
#include <pthread.h>
#include <stdatomic.h>

#include "sample.h"

#define STALL_NS (15 * SECOND_NS)
#define CALL_MS 30000
#define CHUNK 500 /* messages in a row to one partition, so that batches fill */
#define PROPERTIES_MAX 32
#define POLL_MS "500" /* librdkafka's default */
#define PASS_POLL_MS "100"
static const struct timespec PASS_PAUSE = {.tv_nsec = 200 * 1000 * 1000};

static struct {
    const char *bootstrap, *topic;
    const char *properties[PROPERTIES_MAX], *client_properties[PROPERTIES_MAX];
    int property_count, client_property_count;
    int partitions, interval_ms;
    int64_t messages;
    size_t size;
    double seconds, warmup, rate;
} options = {.partitions = 1, .messages = INT64_MAX, .size = 1024, .seconds = 1e6, .rate = 1000};

static atomic_llong delivery_failures;
static atomic_int last_failure;

/* --- set-up -------------------------------------------------------------------------------- */

static void set(rd_kafka_conf_t *conf, const char *name, const char *value) {
    char why[256];
    if (rd_kafka_conf_set(conf, name, value, why, sizeof why) != RD_KAFKA_CONF_OK)
        fail("%s=%s: %s", name, value, why);
}

static void set_pairs(rd_kafka_conf_t *conf, const char **pairs, int count) {
    for (int i = 0; i < count; i++) {
        char *pair = strdup(pairs[i]), *equals = strchr(pair, '=');
        if (!equals) fail("a property is name=value, not %s", pair);
        *equals = 0;
        set(conf, pair, equals + 1);
        free(pair);
    }
}

static void on_delivery(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque) {
    (void)client;
    (void)opaque;
    if (message->err) {
        atomic_store(&last_failure, message->err);
        atomic_fetch_add(&delivery_failures, 1);
    }
    if (message->_private) *(int *)message->_private = 1;
}

static rd_kafka_t *new_client(rd_kafka_type_t type, rd_kafka_conf_t *conf) {
    char why[256];
    set(conf, "bootstrap.servers", options.bootstrap);
    set(conf, "socket.nagle.disable", "true");
    set(conf, "log_level", "3");
    set_pairs(conf, options.client_properties, options.client_property_count);
    rd_kafka_t *client = rd_kafka_new(type, conf, why, sizeof why);
    if (!client) fail("cannot make a client: %s", why);
    return client;
}

static rd_kafka_t *new_producer(const char *linger_ms, const char *only_errors) {
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    set(conf, "linger.ms", linger_ms);
    set(conf, "delivery.report.only.error", only_errors);
    set_pairs(conf, options.properties, options.property_count);
    return new_client(RD_KAFKA_PRODUCER, conf);
}

/* Metadata is fetched before the clock starts: the rows measure a client that is at work. */
static rd_kafka_topic_t *open_topic(rd_kafka_t *client) {
    const struct rd_kafka_metadata *metadata;
    rd_kafka_topic_t *topic = rd_kafka_topic_new(client, options.topic, NULL);
    rd_kafka_resp_err_t error = rd_kafka_metadata(client, 0, topic, &metadata, 10000);
    if (error) fail("metadata: %s", rd_kafka_err2str(error));
    rd_kafka_metadata_destroy(metadata);
    return topic;
}

static void check_deliveries(void) {
    if (atomic_load(&delivery_failures))
        fail("%lld deliveries failed, the last with: %s", atomic_load(&delivery_failures),
             rd_kafka_err2str(atomic_load(&last_failure)));
}

/* --- producing in bulk ----------------------------------------------------------------------- */

static void send_one(rd_kafka_t *client, rd_kafka_topic_t *topic, int partition, void *bytes,
                     int flags, void *opaque) {
    int64_t give_up = now_ns() + STALL_NS;
    while (rd_kafka_produce(topic, partition, flags, bytes, options.size, NULL, 0, opaque)) {
        rd_kafka_resp_err_t error = rd_kafka_last_error();
        if (error != RD_KAFKA_RESP_ERR__QUEUE_FULL) fail("produce: %s", rd_kafka_err2str(error));
        if (now_ns() > give_up) fail("no produce request was answered for 15 s");
        rd_kafka_poll(client, 1);
    }
}

/* Sends at full speed until the messages or the seconds are used up; waits until all are acked. */
static int64_t produce_all(rd_kafka_t *client, rd_kafka_topic_t *topic) {
    char *payload = filler(options.size); /* never freed: the client reads it until the end */
    int64_t sent = 0, stop = now_ns() + (int64_t)(options.seconds * 1e9);
    for (; sent < options.messages; sent++) {
        if (sent % CHUNK == 0) {
            rd_kafka_poll(client, 0);
            if (now_ns() > stop) break;
        }
        send_one(client, topic, (int)(sent / CHUNK % options.partitions), payload, 0, NULL);
    }
    rd_kafka_resp_err_t error = rd_kafka_flush(client, 30000);
    if (error) fail("flush: %s", rd_kafka_err2str(error));
    check_deliveries();
    return sent;
}

static int produce(void) {
    rd_kafka_t *client = new_producer("10", "true");
    rd_kafka_topic_t *topic = open_topic(client);
    int64_t start = now_ns(), sent = produce_all(client, topic);
    double seconds = (double)(now_ns() - start) / 1e9;
    printf("{\"messages\": %ld, \"seconds\": %.6f}\n", (long)sent, seconds);
    return 0;
}

/* --- consuming ------------------------------------------------------------------------------- */

struct reader {
    rd_kafka_t *client;
    rd_kafka_topic_t *topic;
    rd_kafka_queue_t *queue;
    int64_t seen, first_ns, last_ns;
    int64_t measure_from_ns; /* latency: stamps before it are warm-up */
    struct samples *samples; /* NULL unless latency is measured */
};

static void on_message(rd_kafka_message_t *message, void *opaque) {
    struct reader *reader = opaque;
    if (message->err) {
        if (message->err != RD_KAFKA_RESP_ERR__PARTITION_EOF)
            fail("consume: %s", rd_kafka_message_errstr(message));
        return;
    }
    if (message->len != options.size) fail("a message of %zu bytes came back", message->len);
    if (!reader->seen++) reader->first_ns = now_ns();
    if (!reader->samples) return;
    int64_t stamp;
    memcpy(&stamp, message->payload, sizeof stamp);
    if (stamp >= reader->measure_from_ns) samples_add(reader->samples, now_ns() - stamp);
}

/* `poll_ms` is how long a broker may keep a fetch at the end of the log. */
static void reader_open(struct reader *reader, const char *poll_ms) {
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "fetch.wait.max.ms", poll_ms);
    /* At its defaults librdkafka 2.0 pauses fetching for up to a second when its queue is full:
     * that would measure the pause. */
    set(conf, "queued.min.messages", "2000000");
    set(conf, "queued.max.messages.kbytes", "524288");
    reader->client = new_client(RD_KAFKA_CONSUMER, conf);
    reader->topic = open_topic(reader->client);
}

static void reader_start(struct reader *reader) {
    reader->queue = rd_kafka_queue_new(reader->client);
    reader->seen = reader->first_ns = 0;
    for (int p = 0; p < options.partitions; p++)
        if (rd_kafka_consume_start_queue(reader->topic, p, RD_KAFKA_OFFSET_BEGINNING, reader->queue))
            fail("consume_start: %s", rd_kafka_err2str(rd_kafka_last_error()));
}

static void reader_stop(struct reader *reader) {
    for (int p = 0; p < options.partitions; p++) rd_kafka_consume_stop(reader->topic, p);
    rd_kafka_queue_destroy(reader->queue);
}

/* Reads until `wanted` messages were seen; a producer still at work lowers it to its true value. */
static void read_until(struct reader *reader, atomic_llong *wanted) {
    int64_t progress_ns = now_ns();
    while (reader->seen < atomic_load(wanted)) {
        int64_t before = reader->seen;
        rd_kafka_consume_callback_queue(reader->queue, 100, on_message, reader);
        int64_t now = now_ns();
        if (reader->seen != before) {
            reader->last_ns = progress_ns = now;
        } else if (now - progress_ns > STALL_NS) {
            fail("stalled: %ld messages came back and no more for 15 s", (long)reader->seen);
        }
    }
}

/* Reads the whole topic again and again. A pass counts from its first message, and begins when the
 * long polls are over that the one before left at the end of the log, one with each broker: what
 * waits for its broker's poll while another's partitions are read would count as slow. */
static int consume(void) {
    struct reader reader = {0};
    atomic_llong wanted = options.messages;
    int64_t busy_ns = 0, total = 0, stop = now_ns() + (int64_t)(options.seconds * 1e9);
    reader_open(&reader, PASS_POLL_MS);
    do {
        reader_start(&reader);
        read_until(&reader, &wanted);
        busy_ns += reader.last_ns - reader.first_ns;
        total += reader.seen;
        reader_stop(&reader);
        nanosleep(&PASS_PAUSE, NULL);
    } while (now_ns() < stop);
    printf("{\"messages\": %ld, \"seconds\": %.6f}\n", (long)total, (double)busy_ns / 1e9);
    return 0;
}

/* --- both at once ---------------------------------------------------------------------------- */

static atomic_llong wanted_by_reader = INT64_MAX;

static void *read_in_thread(void *opaque) {
    read_until(opaque, &wanted_by_reader);
    return NULL;
}

static int both(void) {
    struct reader reader = {0};
    pthread_t thread;
    reader_open(&reader, POLL_MS);
    reader_start(&reader);
    rd_kafka_t *client = new_producer("10", "true");
    rd_kafka_topic_t *topic = open_topic(client);
    pthread_create(&thread, NULL, read_in_thread, &reader);
    int64_t start = now_ns(), sent = produce_all(client, topic), acked = now_ns();
    atomic_store(&wanted_by_reader, sent);
    pthread_join(thread, NULL);
    int64_t end = reader.last_ns > acked ? reader.last_ns : acked;
    printf("{\"messages\": %ld, \"seconds\": %.6f, \"produce_seconds\": %.6f}\n", (long)sent,
           (double)(end - start) / 1e9, (double)(acked - start) / 1e9);
    return 0;
}

/* --- latency --------------------------------------------------------------------------------- */

static void transact(const char *what, rd_kafka_error_t *error) {
    if (error) fail("%s: %s", what, rd_kafka_error_string(error));
}

/* Commits what was sent, if any, and says when to come again. */
static int64_t next_transaction(rd_kafka_t *client, int is_open) {
    if (is_open) transact("commit", rd_kafka_commit_transaction(client, CALL_MS));
    transact("begin", rd_kafka_begin_transaction(client));
    return now_ns() + options.interval_ms * 1000000LL;
}

/* Each message carries the time at which it was due, so that a stall counts against every message
 * that it held up, not against one of them (no coordinated omission). */
static int64_t produce_at_rate(rd_kafka_t *client, rd_kafka_topic_t *topic, int64_t start) {
    int64_t count = (int64_t)((options.warmup + options.seconds) * options.rate);
    char *payload = filler(options.size);
    int64_t commit_at = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t due = start + (int64_t)((double)i * 1e9 / options.rate);
        sleep_until_ns(due);
        if (options.interval_ms && now_ns() >= commit_at) commit_at = next_transaction(client, i > 0);
        memcpy(payload, &due, sizeof due);
        send_one(client, topic, (int)(i % options.partitions), payload, RD_KAFKA_MSG_F_COPY, NULL);
        if (i % 64 == 0) rd_kafka_poll(client, 0);
    }
    if (options.interval_ms) transact("commit", rd_kafka_commit_transaction(client, CALL_MS));
    if (rd_kafka_flush(client, 30000)) fail("flush: not all messages were acked within 30 s");
    check_deliveries();
    return count;
}

static int latency(void) {
    struct samples samples = {0};
    struct reader reader = {.samples = &samples};
    pthread_t thread;
    if (options.size < sizeof(int64_t)) fail("latency needs messages of at least 8 bytes");
    reader_open(&reader, POLL_MS);
    reader_start(&reader);
    rd_kafka_t *client = new_producer("0", "true");
    if (options.interval_ms) transact("init", rd_kafka_init_transactions(client, CALL_MS));
    rd_kafka_topic_t *topic = open_topic(client);
    int64_t start = now_ns() + SECOND_NS / 10;
    reader.measure_from_ns = start + (int64_t)(options.warmup * 1e9);
    pthread_create(&thread, NULL, read_in_thread, &reader);
    atomic_store(&wanted_by_reader, produce_at_rate(client, topic, start));
    pthread_join(thread, NULL);
    printf("{");
    print_percentiles(&samples);
    printf("}\n");
    return 0;
}

/* One message in flight: send, wait for its ack, send the next. */
static int ack(void) {
    struct samples samples = {0};
    rd_kafka_t *client = new_producer("0", "false");
    rd_kafka_topic_t *topic = open_topic(client);
    char *payload = filler(options.size);
    int64_t measure_from = now_ns() + (int64_t)(options.warmup * 1e9);
    int64_t stop = measure_from + (int64_t)(options.seconds * 1e9), now = 0;
    while (now < stop) {
        int acked = 0;
        int64_t sent = now_ns();
        send_one(client, topic, 0, payload, 0, &acked);
        while (!acked) {
            rd_kafka_poll(client, 1000);
            if (now_ns() - sent > STALL_NS) fail("no ack for 15 s");
        }
        now = now_ns();
        if (sent >= measure_from) samples_add(&samples, now - sent);
    }
    check_deliveries();
    printf("{\"per_second\": %.1f, ", (double)samples.count / ((double)(now - measure_from) / 1e9));
    print_percentiles(&samples);
    printf("}\n");
    return 0;
}

/* --- the command line ------------------------------------------------------------------------ */

static void read_options(int count, char **words) {
    static const struct option known[] = {
        {"bootstrap", 1, 0, 'b'}, {"topic", 1, 0, 't'},    {"partitions", 1, 0, 'p'},
        {"messages", 1, 0, 'n'},  {"size", 1, 0, 's'},     {"seconds", 1, 0, 'd'},
        {"warmup", 1, 0, 'w'},    {"rate", 1, 0, 'r'},     {"property", 1, 0, 'c'},
        {"interval-ms", 1, 0, 'i'}, {"client-property", 1, 0, 'k'}, {0, 0, 0, 0},
    };
    for (int flag; (flag = getopt_long(count, words, "", known, NULL)) != -1;) switch (flag) {
        case 'b': options.bootstrap = optarg; break;
        case 't': options.topic = optarg; break;
        case 'p': options.partitions = atoi(optarg); break;
        case 'n': options.messages = atoll(optarg); break;
        case 's': options.size = (size_t)atoll(optarg); break;
        case 'd': options.seconds = atof(optarg); break;
        case 'w': options.warmup = atof(optarg); break;
        case 'r': options.rate = atof(optarg); break;
        case 'i': options.interval_ms = atoi(optarg); break;
        case 'c':
            if (options.property_count == PROPERTIES_MAX) fail("too many --property");
            options.properties[options.property_count++] = optarg;
            break;
        case 'k':
            if (options.client_property_count == PROPERTIES_MAX) fail("too many --client-property");
            options.client_properties[options.client_property_count++] = optarg;
            break;
        default: fail("see the head of load.c for the options");
    }
    if (!options.bootstrap || !options.topic) fail("--bootstrap and --topic are needed");
    if (options.partitions < 1) fail("--partitions must be at least 1");
}

int main(int count, char **words) {
    static const struct { const char *name; int (*run)(void); } modes[] = {
        {"produce", produce}, {"consume", consume}, {"both", both}, {"latency", latency}, {"ack", ack},
    };
    if (count < 2) fail("usage: load produce|consume|both|latency|ack --bootstrap ... --topic ...");
    read_options(count - 1, words + 1);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (!strcmp(words[1], modes[i].name)) {
            /* Leaving without destroying the clients: their shutdown is not what is measured. */
            int status = modes[i].run();
            fflush(stdout);
            _Exit(status);
        }
    fail("no such mode: %s", words[1]);
}
