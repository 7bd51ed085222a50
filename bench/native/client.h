/* What the programs with consumer groups share: making clients of librdkafka. */
#ifndef BENCH_CLIENT_H
#define BENCH_CLIENT_H

#include <librdkafka/rdkafka.h>

#include "sample.h"

static inline void set(rd_kafka_conf_t *conf, const char *name, const char *value) {
    char why[256];
    if (rd_kafka_conf_set(conf, name, value, why, sizeof why) != RD_KAFKA_CONF_OK)
        fail("%s=%s: %s", name, value, why);
}

/* "name=value" as it comes from the command line. */
static inline void set_pair(rd_kafka_conf_t *conf, const char *pair) {
    char *name = strdup(pair), *equals = name ? strchr(name, '=') : NULL;
    if (!equals) fail("--property wants name=value, not %s", pair);
    *equals = 0;
    set(conf, name, equals + 1);
    free(name);
}

static inline rd_kafka_t *new_client(rd_kafka_type_t type, rd_kafka_conf_t *conf, const char *bootstrap) {
    char why[256];
    set(conf, "bootstrap.servers", bootstrap);
    set(conf, "log_level", "3");
    rd_kafka_t *client = rd_kafka_new(type, conf, why, sizeof why);
    if (!client) fail("cannot make a client: %s", why);
    return client;
}

static inline void check_error(const char *what, rd_kafka_error_t *error) {
    if (error) fail("%s: %s", what, rd_kafka_error_string(error));
}

#endif
