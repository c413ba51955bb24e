/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "common.h"

#include <open62541/plugin/create_certificate.h>
#include <open62541/util.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

UA_LogLevel peer_log_level = UA_LOGLEVEL_WARNING;
unsigned peer_renewals;

static void log_stderr(void *context, UA_LogLevel level, UA_LogCategory category, const char *msg,
                       va_list args) {
    (void)context;
    (void)category;
    if(strstr(msg, "renewed with a revised lifetime"))
        peer_renewals++;
    if(level < peer_log_level)
        return;
    /* The library has its own conversions for its own types, so plain vfprintf will not do. */
    UA_String text = UA_STRING_NULL;
    if(UA_String_vformat(&text, msg, args) == UA_STATUSCODE_GOOD)
        fprintf(stderr, "[%d] %.*s\n", (int)level / 100, (int)text.length, (char *)text.data);
    UA_String_clear(&text);
}

static void log_clear(UA_Logger *logger) {
    free(logger);
}

UA_Logger *peer_logger(void) {
    UA_Logger *l = calloc(1, sizeof *l);
    l->log = log_stderr;
    l->clear = log_clear;
    return l;
}

bool peer_read_file(const char *path, UA_ByteString *out) {
    UA_ByteString_init(out);
    FILE *f = fopen(path, "rb");
    if(!f) {
        fprintf(stderr, "cannot read %s\n", path);
        return false;
    }
    fseek(f, 0, SEEK_END);
    long size = ftell(f);
    rewind(f);
    bool ok = size > 0 && UA_ByteString_allocBuffer(out, (size_t)size) == UA_STATUSCODE_GOOD &&
              fread(out->data, 1, (size_t)size, f) == (size_t)size;
    fclose(f);
    if(!ok)
        fprintf(stderr, "cannot read %s\n", path);
    return ok;
}

bool peer_certificate(const char *cert_path, const char *key_path, const char *application_uri,
                      UA_ByteString *cert, UA_ByteString *key) {
    UA_ByteString_init(cert);
    UA_ByteString_init(key);
    if(cert_path || key_path) {
        if(!cert_path || !key_path) {
            fprintf(stderr, "--cert and --key belong together\n");
            return false;
        }
        return peer_read_file(cert_path, cert) && peer_read_file(key_path, key);
    }

    char uri[256];
    snprintf(uri, sizeof uri, "URI:%s", application_uri);
    UA_String subject[2] = {UA_STRING("O=interop"), UA_STRING("CN=open62541 peer")};
    UA_String alt[3] = {UA_STRING("DNS:localhost"), UA_STRING("IP:127.0.0.1"), UA_STRING(uri)};
    UA_KeyValueMap *params = UA_KeyValueMap_new();
    UA_UInt16 bits = 2048, days = 30;
    UA_KeyValueMap_setScalar(params, UA_QUALIFIEDNAME(0, "key-size-bits"), &bits,
                             &UA_TYPES[UA_TYPES_UINT16]);
    UA_KeyValueMap_setScalar(params, UA_QUALIFIEDNAME(0, "expires-in-days"), &days,
                             &UA_TYPES[UA_TYPES_UINT16]);
    UA_Logger *logger = peer_logger();
    UA_StatusCode rc = UA_CreateCertificate(logger, subject, 2, alt, 3, UA_CERTIFICATEFORMAT_DER,
                                            params, key, cert);
    logger->clear(logger);
    UA_KeyValueMap_delete(params);
    if(rc != UA_STATUSCODE_GOOD)
        fprintf(stderr, "cannot make a certificate: %s\n", UA_StatusCode_name(rc));
    return rc == UA_STATUSCODE_GOOD;
}

static uint64_t clock_ns(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t peer_now_ns(void) { return clock_ns(CLOCK_MONOTONIC); }
uint64_t peer_cpu_ns(void) { return clock_ns(CLOCK_PROCESS_CPUTIME_ID); }

bool peer_pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((unsigned)cpu, &set);
    if(sched_setaffinity(0, sizeof set, &set) == 0)
        return true;
    fprintf(stderr, "cannot pin to cpu %d\n", cpu);
    return false;
}

void peer_raise_file_limit(void) {
    struct rlimit l;
    if(getrlimit(RLIMIT_NOFILE, &l) == 0) {
        l.rlim_cur = l.rlim_max;
        setrlimit(RLIMIT_NOFILE, &l);
    }
}

unsigned peer_free_port(void) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    int s = socket(AF_INET, SOCK_STREAM, 0);
    if(s < 0 || bind(s, (struct sockaddr *)&a, sizeof a) || getsockname(s, (void *)&a, &len))
        return 0;
    close(s);
    return ntohs(a.sin_port);
}

void json_string(FILE *f, const char *s) {
    fputc('"', f);
    for(; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if(c == '"' || c == '\\')
            fprintf(f, "\\%c", c);
        else if(c < 0x20)
            fprintf(f, "\\u%04x", c);
        else
            fputc(c, f);
    }
    fputc('"', f);
}

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static double quantile_us(const uint64_t *sorted, size_t n, double q) {
    size_t i = (size_t)(q * (double)n);
    return (double)sorted[i < n ? i : n - 1] / 1e3;
}

void json_latency(FILE *f, uint64_t *samples, size_t n) {
    if(n == 0) {
        fprintf(f, "\"count\":0");
        return;
    }
    double sum = 0;
    for(size_t i = 0; i < n; i++)
        sum += (double)samples[i];
    qsort(samples, n, sizeof *samples, by_value);
    fprintf(f,
            "\"count\":%zu,\"p50_us\":%.3f,\"p90_us\":%.3f,\"p99_us\":%.3f,\"p999_us\":%.3f,"
            "\"mean_us\":%.3f,\"min_us\":%.3f,\"max_us\":%.3f",
            n, quantile_us(samples, n, 0.5), quantile_us(samples, n, 0.9),
            quantile_us(samples, n, 0.99), quantile_us(samples, n, 0.999), sum / (double)n / 1e3,
            (double)samples[0] / 1e3, (double)samples[n - 1] / 1e3);
}
