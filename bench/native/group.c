/* Measures how long a group takes until it is stable: many consumers in one process, on a topic without
 * messages. A group is stable when every member owns its equal share of the partitions, according to
 * its rebalance callback. A while later some leave at once, and the rest becomes stable again.
 *
 *   group --bootstrap HOST:PORT --topic T --group G --partitions P --members N [--leavers L]
 *         [--apart-ms MS] [--calm-ms MS] [--property name=value]...
 *
 * Clients are created before the clock starts with the first subscription. The others follow with
 * MS between them, or all at once with 0. librdkafka joins at most once a second, so that a group
 * that formed quickly would have to wait: no member leaves until the group was stable for a while.
 */
#include <getopt.h>
#include <pthread.h>

#include "client.h"

#define MEMBERS_MAX 100
#define PROPERTIES_MAX 32
#define LIMIT_NS (60 * SECOND_NS)

static struct {
    const char *bootstrap, *topic, *group;
    const char *properties[PROPERTIES_MAX];
    int property_count, partitions, members, leavers, apart_ms, calm_ms;
} options = {.partitions = 100, .members = 20, .calm_ms = 2000};

struct member {
    rd_kafka_t *client;
    pthread_t thread;
    int64_t join_ns;
    int owned, present, leaving; /* under the lock */
};

static struct member members[MEMBERS_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static int64_t changed_ns;

static void own(struct member *member, int count) {
    pthread_mutex_lock(&lock);
    member->owned = count;
    changed_ns = now_ns();
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

/* Incremental protocols tell what comes and goes, the others all at once. */
static void on_rebalance(rd_kafka_t *client, rd_kafka_resp_err_t event,
                         rd_kafka_topic_partition_list_t *partitions, void *opaque) {
    struct member *member = opaque;
    int comes = event == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;
    if (!strcmp(rd_kafka_rebalance_protocol(client), "COOPERATIVE")) {
        check_error("assign", comes ? rd_kafka_incremental_assign(client, partitions)
                                    : rd_kafka_incremental_unassign(client, partitions));
        own(member, member->owned + (comes ? partitions->cnt : -partitions->cnt));
    } else {
        rd_kafka_resp_err_t error = rd_kafka_assign(client, comes ? partitions : NULL);
        if (error) fail("assign: %s", rd_kafka_err2str(error));
        own(member, comes ? partitions->cnt : 0);
    }
}

static int is_leaving(struct member *member) {
    pthread_mutex_lock(&lock);
    int leaving = member->leaving;
    pthread_mutex_unlock(&lock);
    return leaving;
}

static void subscribe(struct member *member) {
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, options.topic, RD_KAFKA_PARTITION_UA);
    rd_kafka_resp_err_t error = rd_kafka_subscribe(member->client, topics);
    if (error) fail("subscribe: %s", rd_kafka_err2str(error));
    rd_kafka_topic_partition_list_destroy(topics);
}

static void *take_part(void *opaque) {
    struct member *member = opaque;
    sleep_until_ns(member->join_ns);
    subscribe(member);
    while (!is_leaving(member)) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(member->client, 100);
        if (!message) continue;
        if (message->err && message->err != RD_KAFKA_RESP_ERR__PARTITION_EOF)
            fail("poll: %s", rd_kafka_message_errstr(message));
        rd_kafka_message_destroy(message);
    }
    rd_kafka_consumer_close(member->client);
    return NULL;
}

static void make_member(struct member *member) {
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "group.id", options.group);
    set(conf, "enable.auto.commit", "false");
    for (int i = 0; i < options.property_count; i++) set_pair(conf, options.properties[i]);
    rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
    rd_kafka_conf_set_opaque(conf, member);
    member->client = new_client(RD_KAFKA_CONSUMER, conf, options.bootstrap);
    rd_kafka_poll_set_consumer(member->client);
    member->present = 1;
}

static int is_stable(void) {
    int present = 0, total = 0;
    for (int i = 0; i < options.members; i++) present += members[i].present;
    for (int i = 0; i < options.members; i++) {
        if (!members[i].present) continue;
        if (members[i].owned < options.partitions / present) return 0;
        total += members[i].owned;
    }
    return total == options.partitions;
}

static double stable_after_ms(int64_t start_ns) {
    struct timespec until = {.tv_sec = (start_ns + LIMIT_NS) / SECOND_NS};
    pthread_mutex_lock(&lock);
    while (!is_stable())
        if (pthread_cond_timedwait(&changed, &lock, &until)) fail("the group was not stable after 60 s");
    double ms = (double)(changed_ns - start_ns) / 1e6;
    pthread_mutex_unlock(&lock);
    return ms;
}

static void leave(int from, int to) {
    pthread_mutex_lock(&lock);
    for (int i = from; i < to; i++) {
        members[i].leaving = 1;
        members[i].present = 0;
    }
    pthread_mutex_unlock(&lock);
}

static void read_options(int count, char **words) {
    static const struct option known[] = {
        {"bootstrap", 1, 0, 'b'}, {"topic", 1, 0, 't'},   {"group", 1, 0, 'g'},    {"partitions", 1, 0, 'p'},
        {"members", 1, 0, 'm'},   {"leavers", 1, 0, 'l'}, {"apart-ms", 1, 0, 'a'}, {"property", 1, 0, 'c'},
        {"calm-ms", 1, 0, 'q'},
        {0, 0, 0, 0},
    };
    for (int flag; (flag = getopt_long(count, words, "", known, NULL)) != -1;) switch (flag) {
        case 'b': options.bootstrap = optarg; break;
        case 't': options.topic = optarg; break;
        case 'g': options.group = optarg; break;
        case 'p': options.partitions = atoi(optarg); break;
        case 'm': options.members = atoi(optarg); break;
        case 'l': options.leavers = atoi(optarg); break;
        case 'a': options.apart_ms = atoi(optarg); break;
        case 'q': options.calm_ms = atoi(optarg); break;
        case 'c':
            if (options.property_count == PROPERTIES_MAX) fail("too many --property");
            options.properties[options.property_count++] = optarg;
            break;
        default: fail("see the head of group.c for the options");
    }
    if (!options.bootstrap || !options.topic || !options.group)
        fail("--bootstrap, --topic and --group are needed");
    if (options.members < 1 || options.members > MEMBERS_MAX || options.leavers >= options.members)
        fail("from 1 to %d members, and not all may leave", MEMBERS_MAX);
}

int main(int count, char **words) {
    pthread_condattr_t monotonic;
    read_options(count, words);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &monotonic);
    for (int i = 0; i < options.members; i++) make_member(&members[i]);
    int64_t start = now_ns();
    for (int i = 0; i < options.members; i++) {
        members[i].join_ns = start + i * options.apart_ms * 1000000LL;
        if (pthread_create(&members[i].thread, NULL, take_part, &members[i])) fail("no thread for a member");
    }
    printf("{\"join_ms\": %.3f", stable_after_ms(start));
    if (options.leavers) {
        sleep_until_ns(now_ns() + options.calm_ms * 1000000LL);
        start = now_ns();
        leave(0, options.leavers);
        printf(", \"leave_ms\": %.3f", stable_after_ms(start));
    }
    printf("}\n");
    leave(0, options.members);
    for (int i = 0; i < options.members; i++) pthread_join(members[i].thread, NULL);
    fflush(stdout);
    _Exit(0);
}
