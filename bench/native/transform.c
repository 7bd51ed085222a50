/* Consume, transform, produce: exactly once, with librdkafka.
 *
 *   transform --bootstrap HOST:PORT --topic IN --output OUT --group G [--interval-ms MS]
 *             [--messages N] [--seconds S] [--warmup S] [--property name=value]...
 *
 * One consumer in a group and one transactional producer. The messages of MS are changed, sent
 * and committed together with the consumer's offsets in one transaction. The messages of
 * transactions that were committed after the warm-up count. After N messages, which is all of the
 * input, it starts again.
 */
#include <getopt.h>

#include "client.h"

#define BATCH 1000
#define CALL_MS 30000
#define PROPERTIES_MAX 32
#define STALL_NS (15 * SECOND_NS)

static struct {
    const char *bootstrap, *topic, *output, *group;
    const char *properties[PROPERTIES_MAX];
    int property_count, interval_ms;
    int64_t messages;
    double seconds, warmup;
} options = {.messages = INT64_MAX, .interval_ms = 100, .seconds = 3, .warmup = 1};

static rd_kafka_t *consumer, *producer;
static rd_kafka_queue_t *queue;
static rd_kafka_topic_t *output;

static void open_consumer(void) {
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "group.id", options.group);
    set(conf, "enable.auto.commit", "false");
    set(conf, "auto.offset.reset", "earliest");
    /* At its default the client pauses for a second when it has fetched ahead: not what is measured. */
    set(conf, "fetch.queue.backoff.ms", "10");
    set(conf, "fetch.wait.max.ms", "10"); /* or a new beginning waits for the poll at the end */
    for (int i = 0; i < options.property_count; i++) set_pair(conf, options.properties[i]);
    consumer = new_client(RD_KAFKA_CONSUMER, conf, options.bootstrap);
    rd_kafka_poll_set_consumer(consumer);
    queue = rd_kafka_queue_get_consumer(consumer);
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, options.topic, RD_KAFKA_PARTITION_UA);
    rd_kafka_resp_err_t error = rd_kafka_subscribe(consumer, topics);
    if (error) fail("subscribe: %s", rd_kafka_err2str(error));
    rd_kafka_topic_partition_list_destroy(topics);
}

static void open_producer(void) {
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "transactional.id", options.group);
    set(conf, "linger.ms", "5");
    producer = new_client(RD_KAFKA_PRODUCER, conf, options.bootstrap);
    check_error("init", rd_kafka_init_transactions(producer, CALL_MS));
    output = rd_kafka_topic_new(producer, options.output, NULL);
}

static void send_on(rd_kafka_message_t *message) {
    if (message->err) fail("consume: %s", rd_kafka_message_errstr(message));
    char *bytes = message->payload;
    for (size_t i = 0; i < message->len; i++)
        if (bytes[i] >= 'a' && bytes[i] <= 'z') bytes[i] = (char)(bytes[i] - 32);
    while (rd_kafka_produce(output, message->partition, RD_KAFKA_MSG_F_COPY, bytes, message->len,
                            message->key, message->key_len, NULL)) {
        rd_kafka_resp_err_t error = rd_kafka_last_error();
        if (error != RD_KAFKA_RESP_ERR__QUEUE_FULL) fail("produce: %s", rd_kafka_err2str(error));
        rd_kafka_poll(producer, 1);
    }
}

/* Reads and sends on until the interval is over; returns how many messages that were. */
static int64_t work(int64_t until_ns) {
    rd_kafka_message_t *messages[BATCH];
    int64_t done = 0;
    for (int64_t now = now_ns(); now < until_ns; now = now_ns()) {
        int wait_ms = (int)((until_ns - now) / 1000000) + 1;
        ssize_t count = rd_kafka_consume_batch_queue(queue, wait_ms < 10 ? wait_ms : 10, messages, BATCH);
        if (count < 0) fail("consume: %s", rd_kafka_err2str(rd_kafka_last_error()));
        for (ssize_t i = 0; i < count; i++) {
            send_on(messages[i]);
            rd_kafka_message_destroy(messages[i]);
        }
        rd_kafka_poll(producer, 0);
        done += count;
    }
    return done;
}

static void commit(void) {
    rd_kafka_topic_partition_list_t *places;
    rd_kafka_resp_err_t error = rd_kafka_assignment(consumer, &places);
    if (!error) error = rd_kafka_position(consumer, places);
    if (error) fail("position: %s", rd_kafka_err2str(error));
    for (int i = places->cnt - 1; i >= 0; i--)
        if (places->elems[i].offset < 0) rd_kafka_topic_partition_list_del_by_idx(places, i);
    rd_kafka_consumer_group_metadata_t *group = rd_kafka_consumer_group_metadata(consumer);
    check_error("offsets", rd_kafka_send_offsets_to_transaction(producer, places, group, CALL_MS));
    check_error("commit", rd_kafka_commit_transaction(producer, CALL_MS));
    rd_kafka_consumer_group_metadata_destroy(group);
    rd_kafka_topic_partition_list_destroy(places);
}

static void read_options(int count, char **words) {
    static const struct option known[] = {
        {"bootstrap", 1, 0, 'b'}, {"topic", 1, 0, 't'},   {"output", 1, 0, 'o'},   {"group", 1, 0, 'g'},
        {"seconds", 1, 0, 'd'},   {"messages", 1, 0, 'n'}, {"warmup", 1, 0, 'w'},  {"interval-ms", 1, 0, 'i'}, {"property", 1, 0, 'c'},
        {0, 0, 0, 0},
    };
    for (int flag; (flag = getopt_long(count, words, "", known, NULL)) != -1;) switch (flag) {
        case 'b': options.bootstrap = optarg; break;
        case 't': options.topic = optarg; break;
        case 'o': options.output = optarg; break;
        case 'g': options.group = optarg; break;
        case 'd': options.seconds = atof(optarg); break;
        case 'n': options.messages = atoll(optarg); break;
        case 'w': options.warmup = atof(optarg); break;
        case 'i': options.interval_ms = atoi(optarg); break;
        case 'c':
            if (options.property_count == PROPERTIES_MAX) fail("too many --property");
            options.properties[options.property_count++] = optarg;
            break;
        default: fail("see the head of transform.c for the options");
    }
    if (!options.bootstrap || !options.topic || !options.output || !options.group)
        fail("--bootstrap, --topic, --output and --group are needed");
}

static void begin_again(void) {
    rd_kafka_topic_partition_list_t *places;
    rd_kafka_resp_err_t error = rd_kafka_assignment(consumer, &places);
    if (error) fail("assignment: %s", rd_kafka_err2str(error));
    for (int i = 0; i < places->cnt; i++) places->elems[i].offset = 0;
    check_error("seek", rd_kafka_seek_partitions(consumer, places, CALL_MS));
    rd_kafka_topic_partition_list_destroy(places);
}

/* One transaction; returns how many messages it had. */
static int64_t transact(void) {
    check_error("begin", rd_kafka_begin_transaction(producer));
    int64_t some = work(now_ns() + options.interval_ms * 1000000LL);
    if (some) commit();
    else check_error("abort", rd_kafka_abort_transaction(producer, CALL_MS));
    return some;
}

int main(int count, char **words) {
    int64_t total = 0, pass = 0, measured = 0, first_ns = 0, from_ns = 0, last_ns = now_ns(), stop = INT64_MAX;
    read_options(count, words);
    open_producer();
    open_consumer();
    while (now_ns() < stop) {
        int64_t some = transact(), now = now_ns();
        if (!some && now - last_ns > STALL_NS) fail("nothing to consume for 15 s");
        if (!some) continue;
        last_ns = now;
        total += some;
        pass += some;
        if (!first_ns) {
            first_ns = now;
            stop = now + (int64_t)((options.warmup + options.seconds) * 1e9);
        }
        if (from_ns) measured += some;
        else if (now - first_ns >= (int64_t)(options.warmup * 1e9)) from_ns = now;
        if (pass >= options.messages) begin_again(), pass = 0;
    }
    if (!measured) fail("no transaction was committed after the warm-up");
    printf("{\"messages\": %ld, \"seconds\": %.6f, \"total\": %ld}\n", (long)measured,
           (double)(last_ns - from_ns) / 1e9, (long)total);
    fflush(stdout);
    rd_kafka_consumer_close(consumer);
    _Exit(0);
}
