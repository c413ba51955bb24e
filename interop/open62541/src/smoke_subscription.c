/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * smoke: subscriptions. Everything goes over the low-level service interface, so that each
 * Publish, acknowledgement and sequence number is ours to see; the library's own subscription
 * client is exercised by the subscribe command. */
#include "smoke.h"

#include <stdlib.h>
#include <string.h>

/* Client handles, which are also the indices into Feed.item. */
enum { COUNTER, ABSOLUTE, PERCENT, PLAIN, CLOCK, ANSWER, UNKNOWN, ITEMS };

typedef struct {
    unsigned count;
    UA_Variant last;
} Watch;

/* One session's stream of Publish responses. */
typedef struct {
    UA_Client *c;
    UA_UInt32 subscription;
    unsigned outstanding, messages, keepalives;
    bool hold_acks, transferred;
    UA_SubscriptionAcknowledgement ack[64];
    size_t acks;
    UA_UInt32 last_sequence;
    UA_StatusCode error;
    Watch item[ITEMS];
    UA_UInt32 id[ITEMS];
} Feed;

static void take_data(Feed *f, const UA_DataChangeNotification *n) {
    for(size_t i = 0; i < n->monitoredItemsSize; i++) {
        const UA_MonitoredItemNotification *m = &n->monitoredItems[i];
        if(m->clientHandle >= ITEMS)
            continue;
        Watch *w = &f->item[m->clientHandle];
        w->count++;
        UA_Variant_clear(&w->last);
        UA_Variant_copy(&m->value.value, &w->last);
    }
}

static void on_publish(UA_Client *c, void *userdata, UA_UInt32 id, void *response) {
    (void)c;
    (void)id;
    Feed *f = userdata;
    UA_PublishResponse *r = response;
    f->outstanding--;
    if(r->responseHeader.serviceResult != UA_STATUSCODE_GOOD) {
        f->error = r->responseHeader.serviceResult;
        return;
    }
    UA_NotificationMessage *m = &r->notificationMessage;
    if(m->notificationDataSize == 0) {
        f->keepalives++;
        return;
    }
    f->messages++;
    f->last_sequence = m->sequenceNumber;
    if(!f->hold_acks && f->acks < 64) {
        f->ack[f->acks].subscriptionId = r->subscriptionId;
        f->ack[f->acks++].sequenceNumber = m->sequenceNumber;
    }
    for(size_t i = 0; i < m->notificationDataSize; i++) {
        UA_ExtensionObject *e = &m->notificationData[i];
        if(e->encoding != UA_EXTENSIONOBJECT_DECODED)
            continue;
        if(e->content.decoded.type == &UA_TYPES[UA_TYPES_DATACHANGENOTIFICATION])
            take_data(f, e->content.decoded.data);
        else if(e->content.decoded.type == &UA_TYPES[UA_TYPES_STATUSCHANGENOTIFICATION])
            f->transferred |= ((UA_StatusChangeNotification *)e->content.decoded.data)->status ==
                              UA_STATUSCODE_GOODSUBSCRIPTIONTRANSFERRED;
    }
}

static bool send_publish(Feed *f) {
    UA_PublishRequest req;
    UA_PublishRequest_init(&req);
    req.requestHeader.timeoutHint = 60000;
    req.subscriptionAcknowledgements = f->ack;
    req.subscriptionAcknowledgementsSize = f->acks;
    UA_StatusCode rc =
        __UA_Client_AsyncService(f->c, &req, &UA_TYPES[UA_TYPES_PUBLISHREQUEST], on_publish,
                                 &UA_TYPES[UA_TYPES_PUBLISHRESPONSE], f, NULL);
    if(rc != UA_STATUSCODE_GOOD)
        return false;
    f->acks = 0;
    f->outstanding++;
    return true;
}

/* Publishes for `ms` milliseconds, or until `*counter` has reached `until`. */
static bool pump(Feed *f, unsigned ms, const unsigned *counter, unsigned until) {
    uint64_t deadline = peer_now_ns() + (uint64_t)ms * 1000000u;
    while(peer_now_ns() < deadline) {
        if(counter && *counter >= until)
            return true;
        while(f->outstanding < 3)
            if(!send_publish(f))
                return false;
        UA_Client_run_iterate(f->c, 10);
    }
    return counter && *counter >= until;
}

static UA_StatusCode create_subscription(Feed *f, double interval, double *revised) {
    UA_CreateSubscriptionRequest req = UA_CreateSubscriptionRequest_default();
    req.requestedPublishingInterval = interval;
    req.requestedLifetimeCount = 600;
    req.requestedMaxKeepAliveCount = 5;
    UA_CreateSubscriptionResponse resp;
    UA_StatusCode rc = SERVICE(f->c, CREATESUBSCRIPTION, req, resp);
    f->subscription = resp.subscriptionId;
    *revised = resp.revisedPublishingInterval;
    UA_CreateSubscriptionResponse_clear(&resp);
    return rc;
}

static UA_MonitoredItemCreateRequest item(UA_NodeId id, UA_UInt32 handle, double sampling,
                                          UA_UInt32 queue) {
    UA_MonitoredItemCreateRequest r = UA_MonitoredItemCreateRequest_default(id);
    r.requestedParameters.clientHandle = handle;
    r.requestedParameters.samplingInterval = sampling;
    r.requestedParameters.queueSize = queue;
    return r;
}

static void set_filter(UA_MonitoredItemCreateRequest *r, UA_DataChangeFilter *f, UA_UInt32 type,
                       double value, UA_DataChangeTrigger trigger) {
    UA_DataChangeFilter_init(f);
    f->trigger = trigger;
    f->deadbandType = type;
    f->deadbandValue = value;
    UA_ExtensionObject_setValueNoDelete(&r->requestedParameters.filter, f,
                                        &UA_TYPES[UA_TYPES_DATACHANGEFILTER]);
}

static void create_items(Smoke *s, Feed *f) {
    UA_MonitoredItemCreateRequest r[ITEMS];
    UA_DataChangeFilter absolute, percent, stamps;
    r[COUNTER] = item(test_id(s, "counter"), COUNTER, 100, 10);
    r[ABSOLUTE] = item(test_id(s, "analog"), ABSOLUTE, 50, 1);
    set_filter(&r[ABSOLUTE], &absolute, UA_DEADBANDTYPE_ABSOLUTE, 5,
               UA_DATACHANGETRIGGER_STATUSVALUE);
    r[PERCENT] = item(test_id(s, "analog"), PERCENT, 50, 1);
    set_filter(&r[PERCENT], &percent, UA_DEADBANDTYPE_PERCENT, 10,
               UA_DATACHANGETRIGGER_STATUSVALUE);
    r[PLAIN] = item(test_id(s, "scalar/Double"), PLAIN, 50, 5);
    r[CLOCK] = item(UA_NODEID_NUMERIC(0, UA_NS0ID_SERVER_SERVERSTATUS_CURRENTTIME), CLOCK, 100, 1);
    r[ANSWER] = item(test_id(s, "the.answer"), ANSWER, 100, 1);
    set_filter(&r[ANSWER], &stamps, UA_DEADBANDTYPE_NONE, 0,
               UA_DATACHANGETRIGGER_STATUSVALUETIMESTAMP);
    r[UNKNOWN] = item(test_id(s, "no such node"), UNKNOWN, 100, 1);

    UA_CreateMonitoredItemsRequest req;
    UA_CreateMonitoredItemsRequest_init(&req);
    req.subscriptionId = f->subscription;
    req.timestampsToReturn = UA_TIMESTAMPSTORETURN_BOTH;
    req.itemsToCreate = r;
    req.itemsToCreateSize = ITEMS;
    UA_CreateMonitoredItemsResponse resp;
    UA_StatusCode rc = SERVICE(f->c, CREATEMONITOREDITEMS, req, resp);
    bool all = resp.resultsSize == ITEMS;
    check(s, "create-monitored-items", all, "%s, %zu results", UA_StatusCode_name(rc),
          resp.resultsSize);
    static const char *const names[ITEMS] = {
        "item counter",        "item absolute deadband", "item percent deadband", "item plain",
        "item server time",    "item timestamp trigger", "item of an unknown node"};
    for(size_t i = 0; i < ITEMS && all; i++) {
        UA_MonitoredItemCreateResult *x = &resp.results[i];
        f->id[i] = x->monitoredItemId;
        check(s, names[i],
              x->statusCode == (i == UNKNOWN ? UA_STATUSCODE_BADNODEIDUNKNOWN : UA_STATUSCODE_GOOD),
              "%s, revised sampling %g ms, queue %u", UA_StatusCode_name(x->statusCode),
              x->revisedSamplingInterval, x->revisedQueueSize);
    }
    UA_CreateMonitoredItemsResponse_clear(&resp);
}

static UA_StatusCode write_double(Smoke *s, const char *id, double d) {
    UA_Variant v;
    UA_Variant_setScalar(&v, &d, &UA_TYPES[UA_TYPES_DOUBLE]);
    return write_value(s, test_id(s, id), &v, NULL);
}

static bool last_is(const Watch *w, double d) {
    return UA_Variant_hasScalarType(&w->last, &UA_TYPES[UA_TYPES_DOUBLE]) &&
           *(UA_Double *)w->last.data == d;
}

static void notifications(Smoke *s, Feed *f) {
    pump(f, 1000, NULL, 0);
    unsigned missing = 0;
    for(size_t i = 0; i < UNKNOWN; i++)
        missing += f->item[i].count == 0;
    check(s, "initial-values", missing == 0, "%u of %d items without a first value", missing,
          (int)UNKNOWN);

    unsigned before = f->item[COUNTER].count;
    UA_UInt32 from = before ? *(UA_UInt32 *)f->item[COUNTER].last.data : 0;
    pump(f, 1000, NULL, 0);
    unsigned got = f->item[COUNTER].count - before;
    UA_UInt32 to = f->item[COUNTER].count ? *(UA_UInt32 *)f->item[COUNTER].last.data : 0;
    check(s, "counter-notifications", got >= 7 && got <= 13 && to - from >= 7,
          "%u in 1 s, %u -> %u", got, from, to);

    /* 50 -> 52 is inside both deadbands, 61 outside both, 67 outside the absolute one only. */
    unsigned a = f->item[ABSOLUTE].count, p = f->item[PERCENT].count;
    write_double(s, "analog", 52);
    pump(f, 500, NULL, 0);
    check(s, "deadband inside", f->item[ABSOLUTE].count == a && f->item[PERCENT].count == p,
          "absolute +%u, percent +%u", f->item[ABSOLUTE].count - a, f->item[PERCENT].count - p);
    a = f->item[ABSOLUTE].count, p = f->item[PERCENT].count;
    write_double(s, "analog", 61);
    pump(f, 500, NULL, 0);
    check(s, "deadband absolute", f->item[ABSOLUTE].count == a + 1 && last_is(&f->item[ABSOLUTE], 61),
          "+%u", f->item[ABSOLUTE].count - a);
    check(s, "deadband percent", f->item[PERCENT].count == p + 1 && last_is(&f->item[PERCENT], 61),
          "+%u", f->item[PERCENT].count - p);
    a = f->item[ABSOLUTE].count, p = f->item[PERCENT].count;
    write_double(s, "analog", 67);
    pump(f, 500, NULL, 0);
    check(s, "deadband between", f->item[ABSOLUTE].count == a + 1 && f->item[PERCENT].count == p,
          "absolute +%u, percent +%u", f->item[ABSOLUTE].count - a, f->item[PERCENT].count - p);
    write_double(s, "analog", 50);

    UA_StatusCode rc = write_double(s, "scalar/Double", 1234.5);
    pump(f, 500, NULL, 0);
    check(s, "change-notification", last_is(&f->item[PLAIN], 1234.5), "write %s, last %s",
          UA_StatusCode_name(rc), show(&f->item[PLAIN].last));
}

static UA_StatusCode set_mode(Feed *f, UA_UInt32 item_id, UA_MonitoringMode mode) {
    UA_SetMonitoringModeRequest req;
    UA_SetMonitoringModeRequest_init(&req);
    req.subscriptionId = f->subscription;
    req.monitoringMode = mode;
    req.monitoredItemIds = &item_id;
    req.monitoredItemIdsSize = 1;
    UA_SetMonitoringModeResponse resp;
    UA_StatusCode rc = SERVICE(f->c, SETMONITORINGMODE, req, resp);
    if(rc == UA_STATUSCODE_GOOD)
        rc = resp.resultsSize == 1 ? resp.results[0] : UA_STATUSCODE_BADUNEXPECTEDERROR;
    UA_SetMonitoringModeResponse_clear(&resp);
    return rc;
}

/* What item `i` receives in `ms` once the cycle under way has passed. */
static unsigned received_in(Feed *f, size_t i, unsigned ms) {
    pump(f, 400, NULL, 0);
    unsigned before = f->item[i].count;
    pump(f, ms, NULL, 0);
    return f->item[i].count - before;
}

static void monitoring_modes(Smoke *s, Feed *f) {
    UA_StatusCode rc = set_mode(f, f->id[COUNTER], UA_MONITORINGMODE_DISABLED);
    unsigned n = received_in(f, COUNTER, 600);
    check(s, "set-monitoring-mode disabled", rc == UA_STATUSCODE_GOOD && n == 0,
          "%s, %u notifications", UA_StatusCode_name(rc), n);
    rc = set_mode(f, f->id[COUNTER], UA_MONITORINGMODE_SAMPLING);
    n = received_in(f, COUNTER, 600);
    check(s, "set-monitoring-mode sampling", rc == UA_STATUSCODE_GOOD && n == 0,
          "%s, %u notifications", UA_StatusCode_name(rc), n);
    rc = set_mode(f, f->id[COUNTER], UA_MONITORINGMODE_REPORTING);
    n = received_in(f, COUNTER, 600);
    check(s, "set-monitoring-mode reporting", rc == UA_STATUSCODE_GOOD && n >= 3,
          "%s, %u notifications", UA_StatusCode_name(rc), n);
    rc = set_mode(f, 4000000000u, UA_MONITORINGMODE_REPORTING);
    check(s, "set-monitoring-mode of an unknown item", rc == UA_STATUSCODE_BADMONITOREDITEMIDINVALID,
          "%s", UA_StatusCode_name(rc));
}

static void modify_items(Smoke *s, Feed *f) {
    UA_MonitoredItemModifyRequest m;
    UA_MonitoredItemModifyRequest_init(&m);
    m.monitoredItemId = f->id[COUNTER];
    m.requestedParameters.clientHandle = COUNTER;
    m.requestedParameters.samplingInterval = 250;
    m.requestedParameters.queueSize = 3;
    m.requestedParameters.discardOldest = true;
    UA_ModifyMonitoredItemsRequest req;
    UA_ModifyMonitoredItemsRequest_init(&req);
    req.subscriptionId = f->subscription;
    req.timestampsToReturn = UA_TIMESTAMPSTORETURN_BOTH;
    req.itemsToModify = &m;
    req.itemsToModifySize = 1;
    UA_ModifyMonitoredItemsResponse resp;
    UA_StatusCode rc = SERVICE(f->c, MODIFYMONITOREDITEMS, req, resp);
    UA_MonitoredItemModifyResult *r = resp.resultsSize == 1 ? resp.results : NULL;
    if(r)
        rc = r->statusCode;
    bool ok = rc == UA_STATUSCODE_GOOD && r && r->revisedQueueSize == 3;
    double sampling = r ? r->revisedSamplingInterval : 0;
    UA_UInt32 queue = r ? r->revisedQueueSize : 0;
    UA_ModifyMonitoredItemsResponse_clear(&resp);
    unsigned n = received_in(f, COUNTER, 1000);
    check(s, "modify-monitored-items", ok && n >= 2 && n <= 6,
          "%s, revised sampling %g ms, queue %u, then %u notifications in 1 s",
          UA_StatusCode_name(rc), sampling, queue, n);
}

static UA_StatusCode set_triggering(Feed *f, bool add) {
    UA_SetTriggeringRequest req;
    UA_SetTriggeringRequest_init(&req);
    req.subscriptionId = f->subscription;
    req.triggeringItemId = f->id[COUNTER];
    if(add) {
        req.linksToAdd = &f->id[PLAIN];
        req.linksToAddSize = 1;
    } else {
        req.linksToRemove = &f->id[PLAIN];
        req.linksToRemoveSize = 1;
    }
    UA_SetTriggeringResponse resp;
    UA_StatusCode rc = SERVICE(f->c, SETTRIGGERING, req, resp);
    if(rc == UA_STATUSCODE_GOOD) {
        if(add)
            rc = resp.addResultsSize == 1 ? resp.addResults[0] : UA_STATUSCODE_BADUNEXPECTEDERROR;
        else
            rc = resp.removeResultsSize == 1 ? resp.removeResults[0]
                                             : UA_STATUSCODE_BADUNEXPECTEDERROR;
    }
    UA_SetTriggeringResponse_clear(&resp);
    return rc;
}

static void triggering(Smoke *s, Feed *f) {
    set_mode(f, f->id[PLAIN], UA_MONITORINGMODE_SAMPLING);
    pump(f, 300, NULL, 0);
    unsigned before = f->item[PLAIN].count;
    write_double(s, "scalar/Double", 7.25);
    pump(f, 600, NULL, 0);
    unsigned untriggered = f->item[PLAIN].count - before;
    UA_StatusCode rc = set_triggering(f, true);
    write_double(s, "scalar/Double", 7.75);
    pump(f, 1500, &f->item[PLAIN].count, before + untriggered + 1);
    pump(f, 300, NULL, 0);
    check(s, "set-triggering",
          rc == UA_STATUSCODE_GOOD && untriggered == 0 && last_is(&f->item[PLAIN], 7.75),
          "%s, %u before the link, last value %s", UA_StatusCode_name(rc), untriggered,
          show(&f->item[PLAIN].last));
    rc = set_triggering(f, false);
    before = f->item[PLAIN].count;
    write_double(s, "scalar/Double", 8.25);
    unsigned after = received_in(f, PLAIN, 400);
    check(s, "set-triggering remove", rc == UA_STATUSCODE_GOOD && after == 0,
          "%s, %u notifications after", UA_StatusCode_name(rc), after);
    UA_StatusCode again = set_triggering(f, false);
    check(s, "set-triggering remove twice", again == UA_STATUSCODE_BADMONITOREDITEMIDINVALID, "%s",
          UA_StatusCode_name(again));
    set_mode(f, f->id[PLAIN], UA_MONITORINGMODE_REPORTING);
    write_double(s, "scalar/Double", 2.718281828459045);
}

static UA_StatusCode set_publishing(Feed *f, bool on) {
    UA_SetPublishingModeRequest req;
    UA_SetPublishingModeRequest_init(&req);
    req.publishingEnabled = on;
    req.subscriptionIds = &f->subscription;
    req.subscriptionIdsSize = 1;
    UA_SetPublishingModeResponse resp;
    UA_StatusCode rc = SERVICE(f->c, SETPUBLISHINGMODE, req, resp);
    if(rc == UA_STATUSCODE_GOOD)
        rc = resp.resultsSize == 1 ? resp.results[0] : UA_STATUSCODE_BADUNEXPECTEDERROR;
    UA_SetPublishingModeResponse_clear(&resp);
    return rc;
}

static void modify_subscription(Smoke *s, Feed *f) {
    UA_ModifySubscriptionRequest req;
    UA_ModifySubscriptionRequest_init(&req);
    req.subscriptionId = f->subscription;
    req.requestedPublishingInterval = 200;
    req.requestedLifetimeCount = 600;
    req.requestedMaxKeepAliveCount = 3;
    UA_ModifySubscriptionResponse resp;
    UA_StatusCode rc = SERVICE(f->c, MODIFYSUBSCRIPTION, req, resp);
    check(s, "modify-subscription",
          rc == UA_STATUSCODE_GOOD && resp.revisedPublishingInterval == 200.0,
          "%s, revised publishing %g ms, lifetime %u, keep-alive %u", UA_StatusCode_name(rc),
          resp.revisedPublishingInterval, resp.revisedLifetimeCount, resp.revisedMaxKeepAliveCount);
    UA_ModifySubscriptionResponse_clear(&resp);

    rc = set_publishing(f, false);
    pump(f, 400, NULL, 0);
    unsigned messages = f->messages, alive = f->keepalives;
    pump(f, 1600, NULL, 0);
    check(s, "set-publishing-mode off",
          rc == UA_STATUSCODE_GOOD && f->messages == messages && f->keepalives > alive,
          "%s, %u messages, %u keep-alives", UA_StatusCode_name(rc), f->messages - messages,
          f->keepalives - alive);
    messages = f->messages;
    rc = set_publishing(f, true);
    pump(f, 1000, NULL, 0);
    check(s, "set-publishing-mode on", rc == UA_STATUSCODE_GOOD && f->messages > messages,
          "%s, %u messages", UA_StatusCode_name(rc), f->messages - messages);
}

static UA_StatusCode republish(Feed *f, UA_UInt32 sequence, UA_UInt32 *got) {
    UA_RepublishRequest req;
    UA_RepublishRequest_init(&req);
    req.subscriptionId = f->subscription;
    req.retransmitSequenceNumber = sequence;
    UA_RepublishResponse resp;
    UA_StatusCode rc = SERVICE(f->c, REPUBLISH, req, resp);
    *got = resp.notificationMessage.sequenceNumber;
    UA_RepublishResponse_clear(&resp);
    return rc;
}

static void retransmission(Smoke *s, Feed *f) {
    UA_UInt32 got = 0;
    UA_StatusCode rc = republish(f, 3000000000u, &got);
    check(s, "republish unavailable", rc == UA_STATUSCODE_BADMESSAGENOTAVAILABLE, "%s",
          UA_StatusCode_name(rc));
    f->hold_acks = true;
    unsigned messages = f->messages;
    pump(f, 2000, &f->messages, messages + 1);
    UA_UInt32 want = f->last_sequence;
    rc = republish(f, want, &got);
    check(s, "republish", rc == UA_STATUSCODE_GOOD && got == want, "%s, asked %u, got %u",
          UA_StatusCode_name(rc), want, got);
    f->hold_acks = false;
    f->ack[0].subscriptionId = f->subscription;
    f->ack[0].sequenceNumber = want;
    f->acks = 1;
    /* Two rounds: the acknowledgement travels with the first Publish sent after this one. */
    pump(f, 1000, NULL, 0);
    rc = republish(f, want, &got);
    check(s, "republish acknowledged", rc == UA_STATUSCODE_BADMESSAGENOTAVAILABLE, "%s",
          UA_StatusCode_name(rc));
}

static UA_CallMethodResult call_server(Smoke *s, UA_UInt32 method, UA_UInt32 subscription) {
    UA_Variant in;
    UA_Variant_setScalar(&in, &subscription, &UA_TYPES[UA_TYPES_UINT32]);
    UA_CallMethodRequest item;
    UA_CallMethodRequest_init(&item);
    item.objectId = UA_NODEID_NUMERIC(0, UA_NS0ID_SERVER);
    item.methodId = UA_NODEID_NUMERIC(0, method);
    item.inputArguments = &in;
    item.inputArgumentsSize = 1;
    UA_CallRequest req;
    UA_CallRequest_init(&req);
    req.methodsToCall = &item;
    req.methodsToCallSize = 1;
    UA_CallResponse resp = UA_Client_Service_call(s->c, req);
    UA_CallMethodResult r;
    UA_CallMethodResult_init(&r);
    r.statusCode = resp.responseHeader.serviceResult;
    if(resp.resultsSize == 1) {
        r = resp.results[0];
        UA_CallMethodResult_init(&resp.results[0]);
    }
    UA_CallResponse_clear(&resp);
    return r;
}

static void server_methods(Smoke *s, Feed *f) {
    UA_CallMethodResult r = call_server(s, UA_NS0ID_SERVER_GETMONITOREDITEMS, f->subscription);
    size_t n = r.outputArgumentsSize == 2 ? r.outputArguments[0].arrayLength : 0;
    check(s, "get-monitored-items", r.statusCode == UA_STATUSCODE_GOOD && n == UNKNOWN,
          "%s, %zu items", UA_StatusCode_name(r.statusCode), n);
    UA_CallMethodResult_clear(&r);

    unsigned before = f->item[ANSWER].count;
    r = call_server(s, UA_NS0ID_SERVER_RESENDDATA, f->subscription);
    pump(f, 1000, &f->item[ANSWER].count, before + 1);
    check(s, "resend-data", r.statusCode == UA_STATUSCODE_GOOD && f->item[ANSWER].count > before,
          "%s, %u notifications", UA_StatusCode_name(r.statusCode), f->item[ANSWER].count - before);
    UA_CallMethodResult_clear(&r);
}

/* --- transfer between two sessions ----------------------------------------------------------- */

static void feed_close(Feed *f) {
    if(f->c) {
        UA_Client_disconnect(f->c);
        UA_Client_delete(f->c);
    }
    for(size_t i = 0; i < ITEMS; i++)
        UA_Variant_clear(&f->item[i].last);
    free(f);
}

static Feed *feed_open(Smoke *s) {
    Feed *f = calloc(1, sizeof *f);
    f->c = client_new(s->o, NULL, true);
    if(f->c && UA_Client_connect(f->c, s->o->url) == UA_STATUSCODE_GOOD)
        return f;
    feed_close(f);
    return NULL;
}

typedef struct {
    UA_StatusCode result;
    unsigned values;
    bool told;
    size_t available;
} Transfer;

static Transfer transfer(Smoke *s) {
    Transfer t = {.result = UA_STATUSCODE_BADCONNECTIONREJECTED};
    Feed *from = feed_open(s), *to = feed_open(s);
    if(!from || !to)
        goto out;
    double revised;
    t.result = create_subscription(from, 100, &revised);
    if(t.result != UA_STATUSCODE_GOOD)
        goto out;
    to->subscription = from->subscription;
    UA_MonitoredItemCreateRequest r = item(test_id(s, "counter"), COUNTER, 100, 10);
    UA_CreateMonitoredItemsRequest create;
    UA_CreateMonitoredItemsRequest_init(&create);
    create.subscriptionId = from->subscription;
    create.timestampsToReturn = UA_TIMESTAMPSTORETURN_BOTH;
    create.itemsToCreate = &r;
    create.itemsToCreateSize = 1;
    UA_CreateMonitoredItemsResponse created;
    SERVICE(from->c, CREATEMONITOREDITEMS, create, created);
    UA_CreateMonitoredItemsResponse_clear(&created);
    from->hold_acks = true;
    pump(from, 1000, &from->messages, 2);
    while(from->outstanding < 3 && send_publish(from)) {
    }

    UA_TransferSubscriptionsRequest req;
    UA_TransferSubscriptionsRequest_init(&req);
    req.subscriptionIds = &from->subscription;
    req.subscriptionIdsSize = 1;
    req.sendInitialValues = true;
    UA_TransferSubscriptionsResponse resp;
    t.result = SERVICE(to->c, TRANSFERSUBSCRIPTIONS, req, resp);
    if(resp.resultsSize == 1) {
        t.result = resp.results[0].statusCode;
        t.available = resp.results[0].availableSequenceNumbersSize;
    }
    UA_TransferSubscriptionsResponse_clear(&resp);
    if(t.result == UA_STATUSCODE_GOOD) {
        pump(to, 2000, &to->item[COUNTER].count, 3);
        t.values = to->item[COUNTER].count;
        for(int i = 0; i < 50 && !from->transferred; i++)
            UA_Client_run_iterate(from->c, 10);
        t.told = from->transferred;
    }
out:
    if(from)
        feed_close(from);
    if(to)
        feed_close(to);
    return t;
}

static void transfer_subscriptions(Smoke *s) {
    Transfer t = transfer(s);
    const char *who = s->o->user ? s->o->user : "anonymous";
    char first[64] = "";
    if(t.result != UA_STATUSCODE_GOOD && !s->o->user) {
        /* A server may refuse this to anonymous sessions: the user of the test node set then
         * shows whether it can transfer at all. */
        snprintf(first, sizeof first, "%s as anonymous, then ", UA_StatusCode_name(t.result));
        s->o->user = "user1";
        s->o->password = "password";
        t = transfer(s);
        s->o->user = NULL;
        who = "user1";
    }
    check(s, "transfer-subscriptions", t.result == UA_STATUSCODE_GOOD && t.values >= 2,
          "%s%s as %s, %zu messages available, %u values after", first,
          UA_StatusCode_name(t.result), who, t.available, t.values);
    check(s, "transfer status-change", t.told, "old session %s", t.told ? "was told" : "heard nothing");
}

/* --- end ------------------------------------------------------------------------------------- */

static void delete_all(Smoke *s, Feed *f) {
    UA_UInt32 ids[3] = {f->id[CLOCK], f->id[ANSWER], 4000000000u};
    UA_DeleteMonitoredItemsRequest req;
    UA_DeleteMonitoredItemsRequest_init(&req);
    req.subscriptionId = f->subscription;
    req.monitoredItemIds = ids;
    req.monitoredItemIdsSize = 3;
    UA_DeleteMonitoredItemsResponse resp;
    UA_StatusCode rc = SERVICE(f->c, DELETEMONITOREDITEMS, req, resp);
    bool ok = resp.resultsSize == 3 && resp.results[0] == UA_STATUSCODE_GOOD &&
              resp.results[1] == UA_STATUSCODE_GOOD &&
              resp.results[2] == UA_STATUSCODE_BADMONITOREDITEMIDINVALID;
    UA_DeleteMonitoredItemsResponse_clear(&resp);
    unsigned n = received_in(f, CLOCK, 500);
    check(s, "delete-monitored-items", ok && n == 0, "%s, %u notifications after",
          UA_StatusCode_name(rc), n);

    UA_UInt32 subs[2] = {f->subscription, 4000000000u};
    UA_DeleteSubscriptionsRequest del;
    UA_DeleteSubscriptionsRequest_init(&del);
    del.subscriptionIds = subs;
    del.subscriptionIdsSize = 2;
    UA_DeleteSubscriptionsResponse deleted;
    rc = SERVICE(f->c, DELETESUBSCRIPTIONS, del, deleted);
    ok = deleted.resultsSize == 2 && deleted.results[0] == UA_STATUSCODE_GOOD &&
         deleted.results[1] == UA_STATUSCODE_BADSUBSCRIPTIONIDINVALID;
    check(s, "delete-subscriptions", ok, "%s, %zu results", UA_StatusCode_name(rc),
          deleted.resultsSize);
    UA_DeleteSubscriptionsResponse_clear(&deleted);

    /* What was queued must come back, and a new Publish must not be accepted. */
    f->acks = 0;
    f->error = UA_STATUSCODE_GOOD;
    for(int i = 0; i < 100 && f->outstanding > 0; i++)
        UA_Client_run_iterate(f->c, 10);
    unsigned left = f->outstanding;
    UA_StatusCode queued = f->error;
    f->error = UA_STATUSCODE_GOOD;
    send_publish(f);
    for(int i = 0; i < 100 && f->outstanding > left; i++)
        UA_Client_run_iterate(f->c, 10);
    check(s, "publish without subscription",
          left == 0 && f->error == UA_STATUSCODE_BADNOSUBSCRIPTION,
          "%u queued requests unanswered, queued: %s, new: %s", left, UA_StatusCode_name(queued),
          UA_StatusCode_name(f->error));
}

void smoke_subscription(Smoke *s) {
    Feed *f = calloc(1, sizeof *f);
    f->c = s->c;
    double revised = 0;
    UA_StatusCode rc = create_subscription(f, 100, &revised);
    if(check(s, "create-subscription", rc == UA_STATUSCODE_GOOD && revised > 0,
             "%s, id %u, revised publishing %g ms", UA_StatusCode_name(rc), f->subscription,
             revised)) {
        create_items(s, f);
        notifications(s, f);
        monitoring_modes(s, f);
        modify_items(s, f);
        triggering(s, f);
        modify_subscription(s, f);
        retransmission(s, f);
        server_methods(s, f);
        transfer_subscriptions(s);
        delete_all(s, f);
    }
    for(size_t i = 0; i < ITEMS; i++)
        UA_Variant_clear(&f->item[i].last);
    /* Requests that were never answered still point here until the client is deleted. */
    if(f->outstanding == 0)
        free(f);
}
