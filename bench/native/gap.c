/* Measures the largest pause of a producer while a cluster has faults.
 *
 * One idempotent producer (acks=all, linger 0) sends to all partitions in turn at a fixed rate, until
 * stdin is closed. It prints "ready" once every partition acked for a while, so that the program
 * that reads it can begin its faults; at the end one JSON line: the longest time between two acks on
 * the worst partition, and how many messages were acked and how many failed.
 *
 *   gap --bootstrap HOST:PORT,... --topic T [--partitions P] [--size BYTES] [--rate PER_SECOND]
 */
#include <getopt.h>
#include <poll.h>
#include <unistd.h>

#include "client.h"

#define PARTITIONS_MAX 1024
#define STEADY_NS (SECOND_NS / 2)
#define START_LIMIT_NS (30 * SECOND_NS)
#define FLUSH_MS 60000

static struct {
    const char *bootstrap, *topic;
    int partitions;
    size_t size;
    double rate;
} options = {.partitions = 1, .size = 100, .rate = 600};

static struct {
    int64_t last_ns, gap_ns;
} seen[PARTITIONS_MAX];

static int64_t acked, failed;
static int is_measuring;
static char last_failure[256];

static void on_delivery(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque) {
    (void)client;
    (void)opaque;
    if (message->err) {
        failed++;
        snprintf(last_failure, sizeof last_failure, "%s", rd_kafka_err2str(message->err));
        return;
    }
    int64_t now = now_ns(), gap = now - seen[message->partition].last_ns;
    acked++;
    if (is_measuring && gap > seen[message->partition].gap_ns) seen[message->partition].gap_ns = gap;
    seen[message->partition].last_ns = now;
}

static int all_acked(void) {
    for (int p = 0; p < options.partitions; p++)
        if (!seen[p].last_ns) return 0;
    return 1;
}

static int stdin_is_closed(void) {
    char byte;
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&input, 1, 0) > 0 && read(STDIN_FILENO, &byte, 1) <= 0;
}

static void send_next(rd_kafka_t *client, rd_kafka_topic_t *topic, char *payload, int64_t number) {
    int partition = (int)(number % options.partitions);
    /* A full queue drops the message: the pause is seen by those before it. */
    if (rd_kafka_produce(topic, partition, RD_KAFKA_MSG_F_COPY, payload, options.size, NULL, 0, NULL)
        && rd_kafka_last_error() != RD_KAFKA_RESP_ERR__QUEUE_FULL)
        fail("produce: %s", rd_kafka_err2str(rd_kafka_last_error()));
    rd_kafka_poll(client, 0);
}

/* Pauses count from half a second after the last partition acked for the first time. */
static void begin_when_steady(int64_t start, int64_t *steady_from) {
    if (is_measuring) return;
    int64_t now = now_ns();
    if (!*steady_from && all_acked()) *steady_from = now + STEADY_NS;
    if (*steady_from && now >= *steady_from) {
        is_measuring = 1;
        printf("ready\n");
        fflush(stdout);
    } else if (now - start > START_LIMIT_NS) {
        fail("not every partition acked within 30 s");
    }
}

static void drive(rd_kafka_t *client, rd_kafka_topic_t *topic) {
    char *payload = filler(options.size);
    int64_t start = now_ns(), steady_from = 0;
    for (int64_t number = 0; !stdin_is_closed(); number++) {
        int64_t due = start + (int64_t)((double)number * 1e9 / options.rate);
        while (now_ns() < due) {
            rd_kafka_poll(client, 1);
            if (due - now_ns() < 1000000) sleep_until_ns(due);
        }
        send_next(client, topic, payload, number);
        begin_when_steady(start, &steady_from);
    }
    rd_kafka_flush(client, FLUSH_MS);
}

static void answer(rd_kafka_t *client) {
    int64_t worst = 0;
    for (int p = 0; p < options.partitions; p++)
        if (seen[p].gap_ns > worst) worst = seen[p].gap_ns;
    if (failed) fprintf(stderr, "the last failure: %s\n", last_failure);
    printf("{\"gap_ms\": %.3f, \"acked\": %ld, \"failed\": %ld}\n", (double)worst / 1e6, (long)acked,
           (long)failed + rd_kafka_outq_len(client));
}

static void read_options(int count, char **words) {
    static const struct option known[] = {
        {"bootstrap", 1, 0, 'b'}, {"topic", 1, 0, 't'}, {"partitions", 1, 0, 'p'},
        {"size", 1, 0, 's'},      {"rate", 1, 0, 'r'},  {0, 0, 0, 0},
    };
    for (int flag; (flag = getopt_long(count, words, "", known, NULL)) != -1;) switch (flag) {
        case 'b': options.bootstrap = optarg; break;
        case 't': options.topic = optarg; break;
        case 'p': options.partitions = atoi(optarg); break;
        case 's': options.size = (size_t)atoll(optarg); break;
        case 'r': options.rate = atof(optarg); break;
        default: fail("see the head of gap.c for the options");
    }
    if (!options.bootstrap || !options.topic) fail("--bootstrap and --topic are needed");
    if (options.partitions < 1 || options.partitions > PARTITIONS_MAX) fail("1 to 1024 partitions");
}

int main(int count, char **words) {
    read_options(count, words);
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    set(conf, "enable.idempotence", "true");
    set(conf, "linger.ms", "0");
    rd_kafka_t *client = new_client(RD_KAFKA_PRODUCER, conf, options.bootstrap);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(client, options.topic, NULL);
    if (!topic) fail("topic: %s", rd_kafka_err2str(rd_kafka_last_error()));
    drive(client, topic);
    answer(client);
    return 0;
}
