/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What the server and the client program share: logging to stderr (stdout carries only the READY
 * line or the JSON document), certificates, time and JSON output. */
#ifndef PEER_COMMON_H
#define PEER_COMMON_H

#include <open62541/types.h>
#include <open62541/plugin/log.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Messages below this level are dropped. Warnings and worse unless --verbose is given. */
extern UA_LogLevel peer_log_level;

/* How often a client has renewed its channel's token: the library says so in its log only. */
extern unsigned peer_renewals;

/* A new logger that writes to stderr; every owner frees its own. */
UA_Logger *peer_logger(void);

/* Certificate and key: read from the given files, or a fresh self-signed RSA-2048 pair when the
 * paths are NULL. False (with a message on stderr) when neither works. */
bool peer_certificate(const char *cert_path, const char *key_path, const char *application_uri,
                      UA_ByteString *cert, UA_ByteString *key);
bool peer_read_file(const char *path, UA_ByteString *out);

uint64_t peer_now_ns(void);
uint64_t peer_cpu_ns(void);
bool peer_pin(int cpu);
void peer_raise_file_limit(void);

/* A TCP port that is free now, because the library does not say which one it was given; 0 if there is none. */
unsigned peer_free_port(void);

/* JSON, straight to a stream. */
void json_string(FILE *f, const char *s);

/* p50, p90, p99, p99.9, mean, min and max of `samples` (nanoseconds, sorted in place), as the
 * members `p50_us` … without braces. */
void json_latency(FILE *f, uint64_t *samples, size_t n);

#endif
