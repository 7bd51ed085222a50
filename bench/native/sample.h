/* What both load programs share: the clock, latency samples and a JSON line as the answer. */
#ifndef BENCH_SAMPLE_H
#define BENCH_SAMPLE_H

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECOND_NS 1000000000LL

/* The driver reads the last line of stderr as the reason. */
__attribute__((noreturn, format(printf, 1, 2))) static inline void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

static inline int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * SECOND_NS + now.tv_nsec;
}

static inline void sleep_until_ns(int64_t when) {
    struct timespec at = {.tv_sec = when / SECOND_NS, .tv_nsec = when % SECOND_NS};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR) {}
}

/* Every sample is kept: a run is seconds long, and exact percentiles need no explaining. */
struct samples {
    int64_t *ns;
    size_t count, room;
};

static inline void samples_add(struct samples *samples, int64_t ns) {
    if (samples->count == samples->room) {
        samples->room = samples->room ? samples->room * 2 : 1 << 16;
        samples->ns = realloc(samples->ns, samples->room * sizeof *samples->ns);
        if (!samples->ns) fail("out of memory for samples");
    }
    samples->ns[samples->count++] = ns;
}

static int compare_ns(const void *left, const void *right) {
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

static inline double percentile_ms(const struct samples *sorted, double share) {
    size_t index = (size_t)(share * (double)sorted->count);
    if (index >= sorted->count) index = sorted->count - 1;
    return (double)sorted->ns[index] / 1e6;
}

static inline void print_percentiles(struct samples *samples) {
    if (!samples->count) fail("no latency sample was taken");
    qsort(samples->ns, samples->count, sizeof *samples->ns, compare_ns);
    printf("\"p50_ms\": %.4f, \"p99_ms\": %.4f, \"p999_ms\": %.4f, \"max_ms\": %.4f, \"samples\": %zu",
           percentile_ms(samples, 0.50), percentile_ms(samples, 0.99), percentile_ms(samples, 0.999),
           percentile_ms(samples, 1.0), samples->count);
}

static inline char *filler(size_t size) {
    char *bytes = malloc(size);
    if (!bytes) fail("out of memory for a payload");
    for (size_t i = 0; i < size; i++) bytes[i] = (char)('a' + (i * 7 + i / 26) % 26);
    return bytes;
}

#endif
