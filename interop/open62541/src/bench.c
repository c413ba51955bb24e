/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The measuring commands. Each prints one JSON object. */
#include "client.h"

#include <stdlib.h>
#include <string.h>

static void head(const Options *o) {
    printf("{\"tool\":\"o6-client\",\"library\":\"open62541 %s\",\"command\":\"%s\",\"url\":",
           UA_OPEN62541_VERSION, o->command);
    json_string(stdout, o->url);
    putchar(',');
}

static int failed(const Options *o, const char *what, UA_StatusCode rc) {
    head(o);
    printf("\"ok\":false,\"error\":\"%s: %s\"}\n", what, UA_StatusCode_name(rc));
    return 1;
}

int run_read_rtt(Options *o) {
    unsigned k = o->nodes ? o->nodes : 1;
    UA_Client *c = client_new(o, NULL, true);
    if(!c)
        return 1;
    UA_StatusCode rc = UA_Client_connect(c, o->url);
    if(rc != UA_STATUSCODE_GOOD) {
        UA_Client_delete(c);
        return failed(o, "connect", rc);
    }

    UA_ReadRequest req;
    UA_ReadRequest_init(&req);
    req.timestampsToReturn = o->timestamps;
    req.nodesToRead = UA_Array_new(k, &UA_TYPES[UA_TYPES_READVALUEID]);
    req.nodesToReadSize = k;
    for(unsigned i = 0; i < k; i++) {
        req.nodesToRead[i].nodeId = signal_id(o, i);
        req.nodesToRead[i].attributeId = UA_ATTRIBUTEID_VALUE;
    }

    uint64_t *took = calloc(o->requests ? o->requests : 1, sizeof *took);
    uint64_t begin = 0, begin_cpu = 0, bad = 0;
    for(unsigned i = 0; i < o->warmup + o->requests && rc == UA_STATUSCODE_GOOD; i++) {
        if(i == o->warmup) {
            begin = peer_now_ns();
            begin_cpu = peer_cpu_ns();
        }
        uint64_t t = peer_now_ns();
        UA_ReadResponse resp = UA_Client_Service_read(c, req);
        uint64_t end = peer_now_ns();
        rc = resp.responseHeader.serviceResult;
        for(size_t j = 0; j < resp.resultsSize; j++)
            bad += !resp.results[j].hasValue || (resp.results[j].status >> 30) != 0;
        if(rc == UA_STATUSCODE_GOOD && resp.resultsSize != k)
            bad++;
        if(i >= o->warmup)
            took[i - o->warmup] = end - t;
        UA_ReadResponse_clear(&resp);
    }
    uint64_t seconds = peer_now_ns() - begin, cpu = peer_cpu_ns() - begin_cpu;
    UA_ReadRequest_clear(&req);
    UA_Client_disconnect(c);
    UA_Client_delete(c);
    if(rc != UA_STATUSCODE_GOOD) {
        free(took);
        return failed(o, "read", rc);
    }
    head(o);
    printf("\"ok\":%s,\"nodes\":%u,\"requests\":%u,\"warmup\":%u,\"bad_results\":%llu,",
           bad ? "false" : "true", k, o->requests, o->warmup, (unsigned long long)bad);
    json_latency(stdout, took, o->requests);
    printf(",\"seconds\":%.6f,\"client_cpu_s\":%.6f}\n", (double)seconds / 1e9,
           (double)cpu / 1e9);
    free(took);
    return bad != 0;
}

/* Reads one value over and over while the library renews the channel's token as it sees fit, at 75 %
 * of its lifetime. The clock's seconds make sure that what arrives is not an old answer. */
int run_renew(Options *o) {
    UA_Client *c = client_new(o, NULL, true);
    if(!c)
        return 1;
    UA_StatusCode rc = UA_Client_connect(c, o->url);
    if(rc != UA_STATUSCODE_GOOD) {
        UA_Client_delete(c);
        return failed(o, "connect", rc);
    }
    uint64_t begin = peer_now_ns(), end = begin + o->seconds * 1000000000ull, reads = 0;
    UA_DateTime last = 0;
    while(peer_now_ns() < end && rc == UA_STATUSCODE_GOOD) {
        UA_Variant v;
        UA_Variant_init(&v);
        rc = UA_Client_readValueAttribute(c, UA_NS0ID(SERVER_SERVERSTATUS_CURRENTTIME), &v);
        if(rc == UA_STATUSCODE_GOOD) {
            if(!UA_Variant_hasScalarType(&v, &UA_TYPES[UA_TYPES_DATETIME]) ||
               *(UA_DateTime *)v.data < last)
                rc = UA_STATUSCODE_BADUNEXPECTEDERROR;
            else
                last = *(UA_DateTime *)v.data;
            reads++;
        }
        UA_Variant_clear(&v);
        /* Timers, among them that of the renewal, run only here. */
        if(rc == UA_STATUSCODE_GOOD)
            rc = UA_Client_run_iterate(c, 0);
    }
    uint64_t took = peer_now_ns() - begin;
    UA_Client_disconnect(c);
    UA_Client_delete(c);
    if(rc != UA_STATUSCODE_GOOD)
        return failed(o, "read", rc);
    head(o);
    printf("\"ok\":true,\"reads\":%llu,\"renewals\":%u,\"seconds\":%.3f,\"lifetime_ms\":%u}\n",
           (unsigned long long)reads, peer_renewals, (double)took / 1e9, o->lifetime_ms);
    return 0;
}

int run_connect(Options *o) {
    uint64_t *up = calloc(o->count ? o->count : 1, sizeof *up);
    uint64_t *down = calloc(o->count ? o->count : 1, sizeof *down);
    for(unsigned i = 0; i < o->count; i++) {
        /* Configuration (which may load keys) is not part of connecting. */
        UA_Client *c = client_new(o, NULL, true);
        if(!c)
            return 1;
        uint64_t t = peer_now_ns();
        UA_StatusCode rc = UA_Client_connect(c, o->url);
        up[i] = peer_now_ns() - t;
        if(rc != UA_STATUSCODE_GOOD) {
            UA_Client_delete(c);
            free(up);
            free(down);
            return failed(o, "connect", rc);
        }
        t = peer_now_ns();
        UA_Client_disconnect(c);
        down[i] = peer_now_ns() - t;
        UA_Client_delete(c);
    }
    head(o);
    printf("\"ok\":true,\"connect\":{");
    json_latency(stdout, up, o->count);
    printf("},\"disconnect\":{");
    json_latency(stdout, down, o->count);
    printf("}}\n");
    free(up);
    free(down);
    return 0;
}

/* --- subscribe ------------------------------------------------------------------------------ */

typedef struct {
    uint64_t count, bad;
    uint64_t last_ns, max_gap_ns; /* kept for the first item of each client only */
    bool timed;
} Item;

static bool counting;

static void on_value(UA_Client *c, UA_UInt32 sub, void *sub_context, UA_UInt32 mon, void *context,
                     UA_DataValue *value) {
    (void)c;
    (void)sub;
    (void)sub_context;
    (void)mon;
    Item *it = context;
    if(!counting)
        return;
    it->count++;
    if(value->hasStatus && (value->status >> 30) != 0)
        it->bad++;
    if(it->timed) {
        uint64_t now = peer_now_ns();
        if(it->last_ns && now - it->last_ns > it->max_gap_ns)
            it->max_gap_ns = now - it->last_ns;
        it->last_ns = now;
    }
}

/* One CreateMonitoredItems call for items [first, first+n). */
static UA_StatusCode create_items(const Options *o, UA_Client *c, UA_UInt32 sub, Item *items,
                                  unsigned first, unsigned n, double *sampling) {
    UA_CreateMonitoredItemsRequest req;
    UA_CreateMonitoredItemsRequest_init(&req);
    req.subscriptionId = sub;
    req.timestampsToReturn = o->timestamps;
    req.itemsToCreate = UA_Array_new(n, &UA_TYPES[UA_TYPES_MONITOREDITEMCREATEREQUEST]);
    req.itemsToCreateSize = n;
    void **contexts = calloc(n, sizeof *contexts);
    UA_Client_DataChangeNotificationCallback *cb = calloc(n, sizeof *cb);
    UA_Client_DeleteMonitoredItemCallback *del = calloc(n, sizeof *del);
    for(unsigned i = 0; i < n; i++) {
        unsigned node = o->nodes ? (first + i) % o->nodes : first + i;
        req.itemsToCreate[i] = UA_MonitoredItemCreateRequest_default(signal_id(o, node));
        req.itemsToCreate[i].requestedParameters.samplingInterval = o->interval_ms;
        contexts[i] = &items[first + i];
        cb[i] = on_value;
    }
    UA_CreateMonitoredItemsResponse resp =
        UA_Client_MonitoredItems_createDataChanges(c, req, contexts, cb, del);
    UA_StatusCode rc = resp.responseHeader.serviceResult;
    for(size_t i = 0; i < resp.resultsSize && rc == UA_STATUSCODE_GOOD; i++) {
        rc = resp.results[i].statusCode;
        *sampling = resp.results[i].revisedSamplingInterval;
    }
    UA_CreateMonitoredItemsResponse_clear(&resp);
    UA_CreateMonitoredItemsRequest_clear(&req);
    free(contexts);
    free(cb);
    free(del);
    return rc;
}

static UA_EventLoop *new_loop(void) {
    UA_EventLoop *loop = UA_EventLoop_new_POSIX(NULL);
    UA_ConnectionManager *tcp = UA_ConnectionManager_new_POSIX_TCP(UA_STRING("tcp"));
    loop->registerEventSource(loop, (UA_EventSource *)tcp);
    return loop->start(loop) == UA_STATUSCODE_GOOD ? loop : NULL;
}

static void run_until(UA_EventLoop *loop, uint64_t deadline) {
    for(uint64_t now; (now = peer_now_ns()) < deadline;) {
        uint64_t left_ms = (deadline - now) / 1000000u + 1;
        loop->run(loop, (UA_UInt32)(left_ms > 100 ? 100 : left_ms));
    }
}

int run_subscribe(Options *o) {
    unsigned per_client = o->items / o->clients, total = per_client * o->clients;
    Item *items = calloc(total ? total : 1, sizeof *items);
    UA_Client **clients = calloc(o->clients, sizeof *clients);
    /* One loop for all sessions: otherwise a round over C idle loops would cost more than the
     * library's own work. */
    UA_EventLoop *loop = new_loop();
    UA_StatusCode rc = UA_STATUSCODE_GOOD;
    const char *step = "connect";
    double publishing = 0, sampling = 0;
    unsigned opened = 0;
    for(; loop && opened < o->clients && rc == UA_STATUSCODE_GOOD; opened++) {
        UA_Client *c = clients[opened] = client_new(o, loop, true);
        step = "connect";
        rc = c ? UA_Client_connect(c, o->url) : UA_STATUSCODE_BADINTERNALERROR;
        if(rc != UA_STATUSCODE_GOOD)
            continue;
        step = "CreateSubscription";
        UA_CreateSubscriptionRequest req = UA_CreateSubscriptionRequest_default();
        req.requestedPublishingInterval = o->interval_ms;
        UA_CreateSubscriptionResponse sub = UA_Client_Subscriptions_create(c, req, NULL, NULL, NULL);
        rc = sub.responseHeader.serviceResult;
        publishing = sub.revisedPublishingInterval;
        step = "CreateMonitoredItems";
        for(unsigned i = 0; i < per_client && rc == UA_STATUSCODE_GOOD; i += 1000) {
            unsigned n = per_client - i < 1000 ? per_client - i : 1000;
            rc = create_items(o, c, sub.subscriptionId, items, opened * per_client + i, n,
                              &sampling);
        }
        if(per_client)
            items[opened * per_client].timed = true;
        UA_CreateSubscriptionResponse_clear(&sub);
    }

    uint64_t wall = 0, cpu = 0;
    if(rc == UA_STATUSCODE_GOOD) {
        /* The first values, and the last sessions to settle, are not part of the window. */
        run_until(loop, peer_now_ns() + 1000000000u);
        counting = true;
        uint64_t begin = peer_now_ns(), begin_cpu = peer_cpu_ns();
        run_until(loop, begin + (uint64_t)o->seconds * 1000000000u);
        wall = peer_now_ns() - begin;
        cpu = peer_cpu_ns() - begin_cpu;
        counting = false;
    }
    unsigned alive = 0;
    for(unsigned i = 0; i < opened; i++) {
        UA_SessionState state;
        if(!clients[i])
            continue;
        UA_Client_getState(clients[i], NULL, &state, NULL);
        alive += state == UA_SESSIONSTATE_ACTIVATED;
        /* The blocking call waits a whole round of the loop for each session. */
        UA_Client_disconnectAsync(clients[i]);
    }
    if(loop && opened > 0)
        run_until(loop, peer_now_ns() + 200000000u);
    for(unsigned i = 0; i < opened; i++)
        if(clients[i])
            UA_Client_delete(clients[i]);
    if(loop) {
        loop->stop(loop);
        while(loop->state != UA_EVENTLOOPSTATE_STOPPED &&
              loop->run(loop, 10) == UA_STATUSCODE_GOOD) {
        }
        loop->free(loop);
    }
    free(clients);
    if(rc != UA_STATUSCODE_GOOD) {
        free(items);
        return failed(o, step, rc);
    }

    uint64_t sum = 0, bad = 0, least = UINT64_MAX, most = 0, gap = 0;
    unsigned worst = 0;
    for(unsigned i = 0; i < total; i++) {
        sum += items[i].count;
        bad += items[i].bad;
        if(items[i].count < least) {
            least = items[i].count;
            worst = i;
        }
        if(items[i].count > most)
            most = items[i].count;
        if(items[i].max_gap_ns > gap)
            gap = items[i].max_gap_ns;
    }
    double seconds = (double)wall / 1e9;
    double expected = seconds * 1000.0 / o->interval_ms;
    bool ok = total > 0 && least > 0 && bad == 0 && alive == o->clients;
    head(o);
    printf("\"ok\":%s,\"items\":%u,\"clients\":%u,\"sessions_alive_at_end\":%u,"
           "\"interval_ms\":%g,\"revised_publishing_ms\":%g,\"revised_sampling_ms\":%g,"
           "\"seconds\":%.6f,\"notifications\":%llu,\"per_second\":%.1f,"
           "\"expected_per_item\":%.1f,\"mean_per_item\":%.3f,\"min_per_item\":%llu,"
           "\"max_per_item\":%llu,\"worst_item\":%u,\"received_ratio\":%.4f,"
           "\"worst_gap_ms\":%.3f,\"bad_status\":%llu,\"client_cpu_s\":%.6f}\n",
           ok ? "true" : "false", total, o->clients, alive, o->interval_ms, publishing, sampling,
           seconds, (unsigned long long)sum, (double)sum / seconds, expected,
           total ? (double)sum / total : 0.0, (unsigned long long)(total ? least : 0),
           (unsigned long long)most, worst, total ? (double)sum / (expected * total) : 0.0,
           (double)gap / 1e6, (unsigned long long)bad, (double)cpu / 1e9);
    free(items);
    return ok ? 0 : 1;
}
