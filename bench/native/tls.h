/* TLS on a non-blocking socket, or none: sending and receiving look the same either way.
 *
 * The client checks the version and the cipher, so that both brokers are measured with the same, and
 * never resumes a session: each handshake is a full one. It does not verify the certificate: that
 * would be the client's work, and load and broker share the cores.
 */
#ifndef BENCH_TLS_H
#define BENCH_TLS_H

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "sample.h"

#define TLS_CIPHER "TLS_AES_256_GCM_SHA384"

__attribute__((noreturn)) static inline void tls_fail(const char *what) {
    char why[256];
    ERR_error_string_n(ERR_get_error(), why, sizeof why);
    fail("%s: %s", what, why);
}

static inline SSL_CTX *tls_context(const char *certificate, const char *key) {
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    if (!context) tls_fail("TLS");
    SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_verify(context, SSL_VERIFY_NONE, NULL);
    if (!SSL_CTX_set_ciphersuites(context, TLS_CIPHER)) tls_fail(TLS_CIPHER);
    if (!certificate) return context;
    if (SSL_CTX_use_certificate_chain_file(context, certificate) != 1) tls_fail(certificate);
    if (SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1) tls_fail(key);
    return context;
}

static inline SSL *tls_begin(SSL_CTX *context, int fd) {
    SSL *tls = SSL_new(context);
    if (!tls || !SSL_set_fd(tls, fd)) tls_fail("TLS");
    SSL_set_connect_state(tls);
    return tls;
}

/* What OpenSSL waits for, as events of epoll; 0 if it does not wait. */
static inline uint32_t tls_wants(SSL *tls, int outcome, const char *what) {
    if (outcome > 0) return 0;
    switch (SSL_get_error(tls, outcome)) {
    case SSL_ERROR_WANT_READ: return EPOLLIN;
    case SSL_ERROR_WANT_WRITE: return EPOLLOUT;
    default: break;
    }
    if (ERR_peek_error()) tls_fail(what);
    fail("%s: the broker closed the connection", what);
}

/* The same for the next step of a handshake. */
static inline uint32_t tls_shake(SSL *tls) { return tls_wants(tls, SSL_do_handshake(tls), "handshake"); }

/* Like send and recv; `tls` is NULL where there is none. */
static inline ssize_t tls_send(SSL *tls, int fd, const void *bytes, size_t size) {
    if (!tls) return send(fd, bytes, size, MSG_NOSIGNAL);
    return SSL_write(tls, bytes, (int)size);
}

static inline ssize_t tls_receive(SSL *tls, int fd, void *room, size_t size) {
    if (!tls) return recv(fd, room, size, 0);
    int got = SSL_read(tls, room, (int)size);
    if (got > 0) return got;
    if (SSL_get_error(tls, got) == SSL_ERROR_ZERO_RETURN) return 0;
    tls_wants(tls, got, "read");
    errno = EAGAIN;
    return -1;
}

#endif
