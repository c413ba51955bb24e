/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef PEER_CLIENT_H
#define PEER_CLIENT_H

#include "common.h"

#include <open62541/client.h>
#include <open62541/client_config_default.h>
#include <open62541/client_highlevel.h>
#include <open62541/client_highlevel_async.h>
#include <open62541/client_subscriptions.h>

#define FIRST_SIGNAL 100000u

typedef struct {
    const char *command, *url;
    const char *user, *password, *policy, *cert, *key, *user_cert, *user_key, *node;
    UA_MessageSecurityMode mode;
    UA_TimestampsToReturn timestamps;
    unsigned nodes, requests, warmup, count, items, clients, seconds, lifetime_ms;
    double interval_ms;
    bool verbose, browse_values;
    UA_ByteString cert_der, key_der; /* loaded once, shared by all sessions */
} Options;

/* A client that is configured but not connected. `loop` is shared between clients, or NULL for
 * one of its own. With `login` the user name of the options is used even if smoke itself runs
 * anonymously. */
UA_Client *client_new(Options *o, UA_EventLoop *loop, bool login);

/* The node id of signal number `i`: --node plus `i` when it is numeric. */
UA_NodeId signal_id(const Options *o, unsigned i);

int run_read_rtt(Options *o);
int run_connect(Options *o);
int run_renew(Options *o);
int run_subscribe(Options *o);
int run_smoke(Options *o);
int run_operate(Options *o);
int run_change(Options *o);

#endif
