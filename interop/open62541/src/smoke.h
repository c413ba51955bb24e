/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef PEER_SMOKE_H
#define PEER_SMOKE_H

#include "client.h"
#include "testnodes.h"

typedef struct {
    Options *o;
    UA_Client *c;
    UA_UInt16 ns; /* index of TN_URI on this server */
    FILE *checks; /* the JSON entries, comma separated */
    unsigned passed, failed;
} Smoke;

/* Records one check; returns `ok`. */
bool check(Smoke *s, const char *name, bool ok, const char *detail, ...)
    __attribute__((format(printf, 4, 5)));

/* A whole service call over the low-level interface, waiting for its response. Used wherever the
 * library's client has no call of its own or does more than we ask for. Returns the service
 * result; `resp` is always initialised and owned by the caller. */
UA_StatusCode service(UA_Client *c, const void *req, const UA_DataType *req_type, void *resp,
                      const UA_DataType *resp_type);
#define SERVICE(C, NAME, REQ, RESP)                                                                \
    service(C, &(REQ), &UA_TYPES[UA_TYPES_##NAME##REQUEST], &(RESP),                               \
            &UA_TYPES[UA_TYPES_##NAME##RESPONSE])

/* A node id in the test namespace that borrows `id`. */
UA_NodeId test_id(const Smoke *s, const char *id);
UA_DataValue read_value(Smoke *s, UA_NodeId id, const char *range);
UA_StatusCode write_value(Smoke *s, UA_NodeId id, const UA_Variant *v, const char *range);
/* A Variant printed as JSON, shortened; points to one of a few static buffers. */
const char *show(const UA_Variant *v);

/* Connects, runs `steps` and prints the JSON document. `before` runs without a session. */
int run_checks(Options *o, const char *command, void (*before)(Smoke *), void (*steps)(Smoke *));

void smoke_browse(Smoke *s);
void smoke_read(Smoke *s);
void smoke_write(Smoke *s);
void smoke_ranges(Smoke *s);
void smoke_errors(Smoke *s);
void smoke_call(Smoke *s);
void smoke_subscription(Smoke *s);

#endif
