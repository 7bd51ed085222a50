/* Load from bare sockets: many connections, each with one request in flight: a one-record Produce,
 * or an OffsetCommit.
 *
 * A librdkafka client has several threads per connection, so a thousand of them would measure the
 * client. Here one thread and epoll drive all connections, and each repeats the same bytes: so the
 * load measures the broker's cost of a request and of a connection.
 *
 *   wire --port P[,P...] --topic T [--partitions P] [--connections C] [--size BYTES] [--seconds S]
 *        [--warmup S] [--rate PER_SECOND]     rate 0: each connection as fast as it is answered
 *        [--commit N]     commit offsets of N partitions, for a group of its own a connection
 *        [--tls] [--certificate FILE --key FILE] [--user NAME --password TEXT]     SASL PLAIN
 *        [--handshakes]   instead of requests: connect until ApiVersions is answered, close, repeat
 *
 * Of several ports, the first is that of partition 0's leader, and so on in turn.
 *
 * Produce and OffsetCommit are version 7, the last forms before flexible versions and topic ids. All
 * that is produced is acks=all; commits are those of a group without members.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sample.h"
#include "tls.h"

#define REPLY_MAX 1024
#define PORTS_MAX 1024
#define UNKNOWN_TOPIC 3
#define NOT_LEADER 6
#define COORDINATOR_LOADING 14
#define NOT_COORDINATOR 16
#define CONNECTING_MAX 32 /* below any listen backlog, so that no SYN is lost and sent again */
#define CONNECT_LIMIT_NS (30 * SECOND_NS)
#define STALL_NS (15 * SECOND_NS)
#define NEW_LIMIT_NS (10 * SECOND_NS)
#define SECRET_MAX 256

static struct {
    const char *topic, *certificate, *key, *user, *password;
    int tls, handshakes;
    int ports[PORTS_MAX], port_count, partitions, connections, commit;
    size_t size;
    double seconds, warmup, rate;
} options = {.partitions = 1, .connections = 16, .size = 100, .seconds = 3, .warmup = 0.5};

/* The states in the order in which a connection has them; without TLS or a user some are left out. */
enum state { CONNECTING, SHAKING, GREETING, NAMING, PROVING, IDLE, WAITING };

struct connection {
    int fd, port;
    SSL *tls; /* NULL without TLS */
    enum state state;
    int64_t begun_ns;
    int64_t due_ns; /* when the request in flight, or else the next one, was to be sent */
    uint8_t *request;
    size_t request_size, reply_size;
    uint8_t reply[REPLY_MAX];
};

static struct connection *connections;
static SSL_CTX *tls;
static int epoll_fd;
static int64_t start_ns, measure_from_ns, stop_ns, interval_ns;
static struct samples samples;
static int64_t total; /* of requests or handshakes, those of the warm-up as well */

/* --- bytes ----------------------------------------------------------------------------------- */

struct writer {
    uint8_t *at;
};

static void put(struct writer *writer, const void *bytes, size_t size) {
    memcpy(writer->at, bytes, size);
    writer->at += size;
}

static void put_int(struct writer *writer, int64_t value, int width) {
    for (int shift = (width - 1) * 8; shift >= 0; shift -= 8) *writer->at++ = (uint8_t)(value >> shift);
}

static void put_string(struct writer *writer, const char *text) {
    put_int(writer, (int64_t)strlen(text), 2);
    put(writer, text, strlen(text));
}

static void put_varint(struct writer *writer, int64_t value) {
    uint64_t zigzag = ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
    for (; zigzag > 127; zigzag >>= 7) *writer->at++ = (uint8_t)(zigzag | 128);
    *writer->at++ = (uint8_t)zigzag;
}

static int64_t get_int(const uint8_t *at, int width) {
    int64_t value = 0;
    for (int i = 0; i < width; i++) value = value << 8 | at[i];
    return value;
}

static uint32_t crc32c(const uint8_t *bytes, size_t size) {
    uint32_t crc = ~0u;
    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0);
    }
    return ~crc;
}

static void put_header(struct writer *writer, int api_key, int version) {
    put_int(writer, 0, 4); /* the frame's size, known later */
    put_int(writer, api_key, 2);
    put_int(writer, version, 2);
    put_int(writer, 1, 4);
    put_string(writer, "bench");
}

static void put_record(struct writer *writer, const char *value) {
    uint8_t scratch[32];
    struct writer fields = {scratch};
    put(&fields, "\0\0\0", 3);  /* attributes, timestamp delta, offset delta */
    put_varint(&fields, -1);    /* no key */
    put_varint(&fields, (int64_t)options.size);
    size_t head = (size_t)(fields.at - scratch);
    put_varint(writer, (int64_t)(head + options.size + 1));
    put(writer, scratch, head);
    put(writer, value, options.size);
    put_varint(writer, 0); /* no headers */
}

static void put_batch(struct writer *writer, const char *value) {
    struct timespec wall;
    clock_gettime(CLOCK_REALTIME, &wall);
    int64_t now_ms = wall.tv_sec * 1000 + wall.tv_nsec / 1000000;
    uint8_t *start = writer->at;
    put_int(writer, 0, 8);  /* base offset */
    put_int(writer, 0, 4);  /* batch length, known later */
    put_int(writer, -1, 4); /* leader epoch */
    put_int(writer, 2, 1);  /* magic */
    put_int(writer, 0, 4);  /* crc, known later */
    put_int(writer, 0, 2);  /* attributes */
    put_int(writer, 0, 4);  /* last offset delta */
    put_int(writer, now_ms, 8);
    put_int(writer, now_ms, 8);
    put_int(writer, -1, 8); /* producer id, epoch, sequence: not idempotent */
    put_int(writer, -1, 2);
    put_int(writer, -1, 4);
    put_int(writer, 1, 4);
    put_record(writer, value);
    put_int(&(struct writer){start + 8}, writer->at - start - 12, 4);
    put_int(&(struct writer){start + 17}, crc32c(start + 21, (size_t)(writer->at - start - 21)), 4);
}

static size_t finish_frame(uint8_t *start, struct writer *writer) {
    put_int(&(struct writer){start}, writer->at - start - 4, 4);
    return (size_t)(writer->at - start);
}

static void build_commit(struct connection *connection, int number) {
    char group[32];
    snprintf(group, sizeof group, "bench-%d", number);
    connection->request = malloc(strlen(options.topic) + 128 + 32 * (size_t)options.commit);
    if (!connection->request) fail("out of memory for a request");
    struct writer writer = {connection->request};
    put_header(&writer, 8, 7);
    put_string(&writer, group);
    put_int(&writer, -1, 4); /* no generation, no member, no instance */
    put_string(&writer, "");
    put_int(&writer, -1, 2);
    put_int(&writer, 1, 4);
    put_string(&writer, options.topic);
    put_int(&writer, options.commit, 4);
    for (int i = 0; i < options.commit; i++) {
        put_int(&writer, (number + i) % options.partitions, 4);
        put_int(&writer, 1000 + i, 8);
        put_int(&writer, -1, 4); /* leader epoch */
        put_string(&writer, "");
    }
    connection->request_size = finish_frame(connection->request, &writer);
}

static void build_produce(struct connection *connection, int partition) {
    char *value = filler(options.size);
    connection->request = malloc(options.size + strlen(options.topic) + 256);
    if (!connection->request) fail("out of memory for a request");
    struct writer writer = {connection->request};
    put_header(&writer, 0, 7);
    put_int(&writer, -1, 2);    /* no transactional id */
    put_int(&writer, -1, 2);    /* acks=all */
    put_int(&writer, 30000, 4); /* timeout */
    put_int(&writer, 1, 4);
    put_string(&writer, options.topic);
    put_int(&writer, 1, 4);
    put_int(&writer, partition, 4);
    uint8_t *size_at = writer.at;
    put_int(&writer, 0, 4);
    put_batch(&writer, value);
    put_int(&(struct writer){size_at}, writer.at - size_at - 4, 4);
    connection->request_size = finish_frame(connection->request, &writer);
    free(value);
}

/* --- one connection -------------------------------------------------------------------------- */

static void send_whole(struct connection *connection, const uint8_t *bytes, size_t size) {
    /* A few hundred bytes on a connection with nothing in flight always fit the socket's buffer. */
    if (tls_send(connection->tls, connection->fd, bytes, size) != (ssize_t)size)
        fail("send: %s", strerror(errno));
    connection->reply_size = 0;
}

static void watch(struct connection *connection, uint32_t events) {
    struct epoll_event event = {.events = events, .data.ptr = connection};
    epoll_ctl(epoll_fd, EPOLL_CTL_MOD, connection->fd, &event);
}

static void greet(struct connection *connection) {
    uint8_t frame[64];
    struct writer writer = {frame};
    put_header(&writer, 18, 0);
    send_whole(connection, frame, finish_frame(frame, &writer));
    connection->state = GREETING;
    watch(connection, EPOLLIN);
}

static void name_mechanism(struct connection *connection) {
    uint8_t frame[64];
    struct writer writer = {frame};
    put_header(&writer, 17, 1);
    put_string(&writer, "PLAIN");
    send_whole(connection, frame, finish_frame(frame, &writer));
    connection->state = NAMING;
}

static void prove(struct connection *connection) {
    uint8_t frame[SECRET_MAX + 64];
    struct writer writer = {frame};
    size_t user = strlen(options.user), password = strlen(options.password);
    put_header(&writer, 36, 0);
    put_int(&writer, (int64_t)(user + password + 2), 4);
    put(&writer, "", 1);
    put(&writer, options.user, user);
    put(&writer, "", 1);
    put(&writer, options.password, password);
    send_whole(connection, frame, finish_frame(frame, &writer));
    connection->state = PROVING;
}

static void request(struct connection *connection) {
    send_whole(connection, connection->request, connection->request_size);
    connection->state = WAITING;
}

static int reply_is_whole(struct connection *connection) {
    ssize_t got = tls_receive(connection->tls, connection->fd,
                              connection->reply + connection->reply_size,
                              REPLY_MAX - connection->reply_size);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    if (got <= 0) fail("the broker closed a connection: %s", got ? strerror(errno) : "end of file");
    connection->reply_size += (size_t)got;
    if (connection->reply_size < 4) return 0;
    size_t size = (size_t)get_int(connection->reply, 4) + 4;
    if (size > REPLY_MAX) fail("a reply of %zu bytes is larger than expected", size);
    return connection->reply_size >= size;
}

/* A topic or group just made may be announced before its leader is at work: any client tries again.
 * The measurement begins again from its warm-up, unless that lasts too long. */
static int postpone(void) {
    int64_t now = now_ns(), later_ns = now + (int64_t)(options.warmup * 1e9) - measure_from_ns;
    if (now - start_ns > NEW_LIMIT_NS) return 0;
    if (later_ns > 0) {
        measure_from_ns += later_ns;
        stop_ns += later_ns;
        samples.count = 0;
    }
    return 1;
}

static void check_committed(const struct connection *connection) {
    /* size, correlation id, throttle time, topic count, name, partition count; index and error each */
    const uint8_t *at = connection->reply + 16 + 2 + strlen(options.topic) + 4;
    for (int i = 0; i < options.commit; i++) {
        int64_t error = (int16_t)get_int(at + 6 * i + 4, 2);
        if (error >= COORDINATOR_LOADING && error <= NOT_COORDINATOR && postpone()) return;
        if (error) fail("a commit was answered with error code %ld", (long)error);
    }
}

static void check_produced(const struct connection *connection) {
    /* size, correlation id, topic count, name, partition count, index, error */
    int64_t error = (int16_t)get_int(connection->reply + 12 + 2 + strlen(options.topic) + 8, 2);
    if ((error == UNKNOWN_TOPIC || error == NOT_LEADER) && postpone()) return;
    if (error) fail("produce was answered with error code %ld", (long)error);
}

static void answered(struct connection *connection, int64_t now) {
    (options.commit ? check_committed : check_produced)(connection);
    total++;
    if (connection->due_ns >= measure_from_ns) samples_add(&samples, now - connection->due_ns);
    connection->state = IDLE;
    connection->due_ns = interval_ns ? connection->due_ns + interval_ns : now;
    if (connection->due_ns <= now && now < stop_ns) request(connection);
}

/* --- the run --------------------------------------------------------------------------------- */

static void start_connecting(struct connection *connection) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)connection->port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int on = 1;
    connection->state = CONNECTING;
    connection->begun_ns = now_ns();
    connection->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (connection->fd < 0) fail("socket: %s", strerror(errno));
    setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(connection->fd, (struct sockaddr *)&address, sizeof address) && errno != EINPROGRESS)
        fail("connect: %s", strerror(errno));
    struct epoll_event event = {.events = EPOLLOUT, .data.ptr = connection};
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, connection->fd, &event);
}

static int wait_events(struct epoll_event *events, int room, int64_t until_ns) {
    int64_t wait_ns = until_ns - now_ns();
    if (wait_ns < 0) wait_ns = 0;
    struct timespec wait = {.tv_sec = wait_ns / SECOND_NS, .tv_nsec = wait_ns % SECOND_NS};
    int count = epoll_pwait2(epoll_fd, events, room, &wait, NULL);
    if (count < 0 && errno != EINTR) fail("epoll: %s", strerror(errno));
    return count < 0 ? 0 : count;
}

/* Of both answers to a login, the error follows the size and the correlation id. */
static void check_login(const struct connection *connection) {
    int64_t error = (int16_t)get_int(connection->reply + 8, 2);
    if (error) fail("a login was answered with error code %ld", (long)error);
}

static void shake_hands(struct connection *connection) {
    uint32_t wanted = tls_shake(connection->tls);
    if (wanted) watch(connection, wanted);
    else greet(connection);
}

/* A connection counts once ApiVersions was answered on it, or its login, as for a real client. */
static int is_ready(struct connection *connection, uint32_t events) {
    if (events & (EPOLLERR | EPOLLHUP)) fail("a connection was refused");
    switch (connection->state) {
    case CONNECTING:
        if (!tls) {
            greet(connection);
            return 0;
        }
        connection->tls = tls_begin(tls, connection->fd);
        connection->state = SHAKING;
        /* fall through */
    case SHAKING: shake_hands(connection); return 0;
    default: break;
    }
    if (!reply_is_whole(connection)) return 0;
    if (connection->state >= NAMING) check_login(connection);
    if (options.user && connection->state == GREETING) name_mechanism(connection);
    else if (connection->state == NAMING) prove(connection);
    else connection->state = IDLE;
    return connection->state == IDLE;
}

static double connect_all(void) {
    struct epoll_event events[CONNECTING_MAX];
    int64_t start = now_ns();
    int begun = 0, ready = 0;
    while (ready < options.connections) {
        while (begun < options.connections && begun - ready < CONNECTING_MAX)
            start_connecting(&connections[begun++]);
        int count = wait_events(events, CONNECTING_MAX, now_ns() + SECOND_NS / 10);
        for (int i = 0; i < count; i++) ready += is_ready(events[i].data.ptr, events[i].events);
        if (now_ns() - start > CONNECT_LIMIT_NS)
            fail("%d of %d connections were ready after 30 s", ready, options.connections);
    }
    return (double)(now_ns() - start) / 1e6;
}

/* Closes without waiting for the broker, and without a port that stays in use (TIME_WAIT). */
static void hang_up(struct connection *connection) {
    struct linger none = {.l_onoff = 1};
    setsockopt(connection->fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    SSL_free(connection->tls);
    connection->tls = NULL;
    close(connection->fd);
}

/* Each connection is opened, closed once it is ready, and opened again. */
static void drive_handshakes(void) {
    struct epoll_event events[256];
    int64_t progress_ns = now_ns();
    for (int i = 0; i < options.connections; i++) start_connecting(&connections[i]);
    for (int64_t now = progress_ns; now < stop_ns; now = now_ns()) {
        int count = wait_events(events, 256, stop_ns);
        for (int i = 0; i < count; i++) {
            struct connection *connection = events[i].data.ptr;
            if (!is_ready(connection, events[i].events)) continue;
            progress_ns = now_ns();
            if (connection->begun_ns >= measure_from_ns)
                samples_add(&samples, progress_ns - connection->begun_ns);
            total++;
            hang_up(connection);
            start_connecting(connection);
        }
        if (now - progress_ns > STALL_NS) fail("no handshake was completed for 15 s");
    }
}

/* Connection i is due at the start + i * interval / C: requests are spread evenly over time. */
static void schedule(void) {
    start_ns = now_ns();
    interval_ns = options.rate > 0 ? (int64_t)(options.connections * 1e9 / options.rate) : 0;
    measure_from_ns = start_ns + (int64_t)(options.warmup * 1e9);
    stop_ns = measure_from_ns + (int64_t)(options.seconds * 1e9);
    for (int i = 0; i < options.connections; i++)
        connections[i].due_ns = start_ns + interval_ns / options.connections * i;
}

/* Sends what is due and returns when the next is. A connection that is still waiting is passed
 * over: it sends by itself once it is answered, and its latency counts from when it was due. */
static int64_t send_due(int64_t *tick) {
    for (;; ++*tick) {
        struct connection *connection = &connections[*tick % options.connections];
        int64_t at = start_ns + interval_ns / options.connections * (*tick % options.connections)
                     + interval_ns * (*tick / options.connections);
        if (at > now_ns()) return at;
        if (connection->state == IDLE) request(connection);
    }
}

static void drive(void) {
    struct epoll_event events[256];
    int64_t progress_ns = now_ns(), wake_ns = INT64_MAX, tick = 0;
    if (!interval_ns)
        for (int i = 0; i < options.connections; i++) request(&connections[i]);
    while (now_ns() < stop_ns) {
        if (interval_ns) wake_ns = send_due(&tick);
        int count = wait_events(events, 256, wake_ns < stop_ns ? wake_ns : stop_ns);
        int64_t now = now_ns();
        for (int i = 0; i < count; i++)
            if (reply_is_whole(events[i].data.ptr)) answered(events[i].data.ptr, now_ns());
        if (count) progress_ns = now;
        else if (now - progress_ns > STALL_NS) fail("no request was answered for 15 s");
    }
}

static void read_ports(char *list) {
    for (char *word = strtok(list, ","); word; word = strtok(NULL, ",")) {
        if (options.port_count == PORTS_MAX) fail("too many ports");
        options.ports[options.port_count++] = atoi(word);
    }
}

static void read_options(int count, char **words) {
    static const struct option known[] = {
        {"port", 1, 0, 'P'},    {"topic", 1, 0, 't'},  {"partitions", 1, 0, 'p'}, {"connections", 1, 0, 'c'},
        {"size", 1, 0, 's'},    {"seconds", 1, 0, 'd'}, {"warmup", 1, 0, 'w'},     {"rate", 1, 0, 'r'},
        {"commit", 1, 0, 'o'},  {"tls", 0, 0, 'T'},     {"certificate", 1, 0, 'C'}, {"key", 1, 0, 'K'},
        {"user", 1, 0, 'u'},    {"password", 1, 0, 'x'}, {"handshakes", 0, 0, 'H'},  {0, 0, 0, 0},
    };
    for (int flag; (flag = getopt_long(count, words, "", known, NULL)) != -1;) switch (flag) {
        case 'P': read_ports(optarg); break;
        case 't': options.topic = optarg; break;
        case 'p': options.partitions = atoi(optarg); break;
        case 'c': options.connections = atoi(optarg); break;
        case 's': options.size = (size_t)atoll(optarg); break;
        case 'd': options.seconds = atof(optarg); break;
        case 'w': options.warmup = atof(optarg); break;
        case 'r': options.rate = atof(optarg); break;
        case 'o': options.commit = atoi(optarg); break;
        case 'T': options.tls = 1; break;
        case 'C': options.certificate = optarg; break;
        case 'K': options.key = optarg; break;
        case 'u': options.user = optarg; break;
        case 'x': options.password = optarg; break;
        case 'H': options.handshakes = 1; break;
        default: fail("see the head of wire.c for the options");
    }
    if (!options.port_count || !options.topic) fail("--port and --topic are needed");
    if (options.partitions < 1 || options.connections < 1) fail("counts start at 1");
    if (options.commit > options.partitions) fail("--commit names more partitions than there are");
    if (!options.certificate != !options.key) fail("--certificate and --key go together");
    if (!options.user != !options.password) fail("--user and --password go together");
    if (options.user && strlen(options.user) + strlen(options.password) > SECRET_MAX)
        fail("--user and --password are too long");
}

static void make_requests(void) {
    for (int i = 0; i < options.connections; i++) {
        if (options.commit) build_commit(&connections[i], i);
        else build_produce(&connections[i], i % options.partitions);
        connections[i].port = options.ports[i % options.partitions % options.port_count];
    }
}

int main(int count, char **words) {
    read_options(count, words);
    epoll_fd = epoll_create1(0);
    connections = calloc((size_t)options.connections, sizeof *connections);
    if (epoll_fd < 0 || !connections) fail("set-up: %s", strerror(errno));
    if (options.tls) tls = tls_context(options.certificate, options.key);
    make_requests();
    double connect_ms = options.handshakes ? 0 : connect_all();
    schedule();
    (options.handshakes ? drive_handshakes : drive)();
    printf("{\"connect_ms\": %.3f, \"per_second\": %.1f, \"total\": %ld, ", connect_ms,
           (double)samples.count / options.seconds, (long)total);
    print_percentiles(&samples);
    printf("}\n");
    return 0;
}
