/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * smoke: every service once against a server that has the interop test nodes. This file connects,
 * reports and walks the address space; the other smoke_* files hold the service checks. */
#define _GNU_SOURCE
#include "smoke.h"

#include <open62541/util.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

bool check(Smoke *s, const char *name, bool ok, const char *detail, ...) {
    char text[512];
    va_list args;
    va_start(args, detail);
    vsnprintf(text, sizeof text, detail, args);
    va_end(args);
    if(s->passed + s->failed > 0)
        fputs(",\n", s->checks);
    fputs("  {\"name\":", s->checks);
    json_string(s->checks, name);
    fprintf(s->checks, ",\"ok\":%s,\"detail\":", ok ? "true" : "false");
    json_string(s->checks, text);
    fputc('}', s->checks);
    if(ok)
        s->passed++;
    else {
        s->failed++;
        fprintf(stderr, "FAILED %s: %s\n", name, text);
    }
    return ok;
}

/* On the heap, because the library may still answer after we have stopped waiting. */
typedef struct {
    bool done, abandoned;
    const UA_DataType *type;
    void *out;
} Pending;

static void on_response(UA_Client *c, void *userdata, UA_UInt32 id, void *response) {
    (void)c;
    (void)id;
    Pending *p = userdata;
    if(p->abandoned) {
        free(p);
        return;
    }
    UA_copy(response, p->out, p->type);
    p->done = true;
}

UA_StatusCode service(UA_Client *c, const void *req, const UA_DataType *req_type, void *resp,
                      const UA_DataType *resp_type) {
    UA_init(resp, resp_type);
    UA_ResponseHeader *header = resp;
    Pending *p = calloc(1, sizeof *p);
    p->type = resp_type;
    p->out = resp;
    UA_StatusCode rc =
        __UA_Client_AsyncService(c, req, req_type, on_response, resp_type, p, NULL);
    bool sent = rc == UA_STATUSCODE_GOOD;
    while(rc == UA_STATUSCODE_GOOD && !p->done)
        rc = UA_Client_run_iterate(c, 1000);
    if(p->done || !sent) {
        if(!sent)
            header->serviceResult = rc;
        free(p);
    } else {
        p->abandoned = true;
        header->serviceResult = rc;
    }
    return header->serviceResult;
}

UA_NodeId test_id(const Smoke *s, const char *id) {
    return UA_NODEID_STRING(s->ns, (char *)(uintptr_t)id);
}

UA_DataValue read_value(Smoke *s, UA_NodeId id, const char *range) {
    UA_DataValue out;
    UA_DataValue_init(&out);
    UA_ReadValueId item;
    UA_ReadValueId_init(&item);
    item.nodeId = id;
    item.attributeId = UA_ATTRIBUTEID_VALUE;
    if(range)
        item.indexRange = UA_STRING((char *)(uintptr_t)range);
    UA_ReadRequest req;
    UA_ReadRequest_init(&req);
    req.timestampsToReturn = UA_TIMESTAMPSTORETURN_BOTH;
    req.nodesToRead = &item;
    req.nodesToReadSize = 1;
    UA_ReadResponse resp = UA_Client_Service_read(s->c, req);
    if(resp.responseHeader.serviceResult != UA_STATUSCODE_GOOD || resp.resultsSize != 1) {
        out.hasStatus = true;
        out.status = resp.responseHeader.serviceResult ? resp.responseHeader.serviceResult
                                                       : UA_STATUSCODE_BADUNEXPECTEDERROR;
    } else {
        out = resp.results[0];
        UA_DataValue_init(&resp.results[0]);
    }
    UA_ReadResponse_clear(&resp);
    return out;
}

UA_StatusCode write_value(Smoke *s, UA_NodeId id, const UA_Variant *v, const char *range) {
    UA_WriteValue item;
    UA_WriteValue_init(&item);
    item.nodeId = id;
    item.attributeId = UA_ATTRIBUTEID_VALUE;
    item.value.value = *v;
    item.value.hasValue = true;
    if(range)
        item.indexRange = UA_STRING((char *)(uintptr_t)range);
    UA_WriteRequest req;
    UA_WriteRequest_init(&req);
    req.nodesToWrite = &item;
    req.nodesToWriteSize = 1;
    UA_WriteResponse resp = UA_Client_Service_write(s->c, req);
    UA_StatusCode rc = resp.responseHeader.serviceResult;
    if(rc == UA_STATUSCODE_GOOD)
        rc = resp.resultsSize == 1 ? resp.results[0] : UA_STATUSCODE_BADUNEXPECTEDERROR;
    UA_WriteResponse_clear(&resp);
    return rc;
}

const char *show(const UA_Variant *v) {
    static char ring[4][200];
    static unsigned turn;
    char *out = ring[turn++ % 4];
    UA_String text = UA_STRING_NULL;
    UA_print(v, &UA_TYPES[UA_TYPES_VARIANT], &text);
    size_t n = 0;
    bool space = false;
    for(size_t i = 0; i < text.length && n < sizeof ring[0] - 5; i++) {
        /* The library prints over several lines; one line is enough here. */
        bool blank = text.data[i] == ' ' || text.data[i] == '\n' || text.data[i] == '\t';
        if(!blank || !space)
            out[n++] = blank ? ' ' : (char)text.data[i];
        space = blank;
    }
    /* Never cut a character in the middle: the document must stay valid UTF-8. */
    while(n > 0 && n >= sizeof ring[0] - 5 && ((unsigned char)out[n - 1] & 0x80))
        n--;
    out[n] = 0;
    UA_String_clear(&text);
    return out;
}

/* --- discovery ------------------------------------------------------------------------------- */

static void smoke_discovery(Smoke *s) {
    UA_Client *c = client_new(s->o, NULL, false);
    size_t n = 0;
    UA_EndpointDescription *e = NULL;
    UA_StatusCode rc = UA_Client_getEndpoints(c, s->o->url, &n, &e);
    char list[300] = "";
    for(size_t i = 0; i < n; i++) {
        const UA_String *p = &e[i].securityPolicyUri;
        size_t at = 0;
        for(size_t j = 0; j < p->length; j++)
            if(p->data[j] == '#')
                at = j + 1;
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%.*s/%d", i ? " " : "",
                 (int)(p->length - at), (char *)p->data + at, (int)e[i].securityMode);
    }
    check(s, "get-endpoints", rc == UA_STATUSCODE_GOOD && n > 0, "%s: %zu endpoints: %s",
          UA_StatusCode_name(rc), n, list);
    UA_Array_delete(e, n, &UA_TYPES[UA_TYPES_ENDPOINTDESCRIPTION]);
    UA_Client_delete(c);

    c = client_new(s->o, NULL, false);
    UA_ApplicationDescription *a = NULL;
    n = 0;
    rc = UA_Client_findServers(c, s->o->url, 0, NULL, 0, NULL, &n, &a);
    check(s, "find-servers", rc == UA_STATUSCODE_GOOD && n > 0, "%s: %zu servers",
          UA_StatusCode_name(rc), n);
    UA_Array_delete(a, n, &UA_TYPES[UA_TYPES_APPLICATIONDESCRIPTION]);
    UA_Client_delete(c);
}

static void smoke_server_object(Smoke *s) {
    UA_DataValue v = read_value(s, UA_NODEID_NUMERIC(0, UA_NS0ID_SERVER_SERVERSTATUS), NULL);
    bool ok = v.hasValue && UA_Variant_hasScalarType(&v.value, &UA_TYPES[UA_TYPES_SERVERSTATUSDATATYPE]);
    UA_ServerStatusDataType *st = ok ? v.value.data : NULL;
    check(s, "server-status", ok && st->state == UA_SERVERSTATE_RUNNING,
          "%s, decoded: %s, state %d", UA_StatusCode_name(v.status), ok ? "yes" : "no",
          st ? (int)st->state : -1);
    UA_DataValue_clear(&v);

    v = read_value(s, UA_NODEID_NUMERIC(0, UA_NS0ID_SERVER_NAMESPACEARRAY), NULL);
    ok = v.hasValue && UA_Variant_hasArrayType(&v.value, &UA_TYPES[UA_TYPES_STRING]);
    UA_String want = UA_STRING(TN_URI);
    bool found = false;
    for(size_t i = 0; ok && i < v.value.arrayLength; i++) {
        if(UA_String_equal(&want, (UA_String *)v.value.data + i)) {
            s->ns = (UA_UInt16)i;
            found = true;
        }
    }
    check(s, "namespace-array", found, "%s: %s has index %u", UA_StatusCode_name(v.status), TN_URI,
          s->ns);
    UA_DataValue_clear(&v);
}

/* --- the whole address space ----------------------------------------------------------------- */

/* Nodes in the order of their discovery, with a hash set over them. */
typedef struct {
    UA_NodeId *list;
    size_t n, room;
    size_t *slot; /* index + 1 into list, 0 = free */
    size_t slots;
} NodeSet;

static void set_grow(NodeSet *set) {
    free(set->slot);
    set->slots = set->slots ? set->slots * 2 : 1 << 14;
    set->slot = calloc(set->slots, sizeof *set->slot);
    for(size_t i = 0; i < set->n; i++) {
        size_t at = UA_NodeId_hash(&set->list[i]) & (set->slots - 1);
        while(set->slot[at])
            at = (at + 1) & (set->slots - 1);
        set->slot[at] = i + 1;
    }
}

static bool set_add(NodeSet *set, const UA_NodeId *id) {
    if(set->n * 2 >= set->slots)
        set_grow(set);
    size_t at = UA_NodeId_hash(id) & (set->slots - 1);
    for(; set->slot[at]; at = (at + 1) & (set->slots - 1))
        if(UA_NodeId_equal(&set->list[set->slot[at] - 1], id))
            return false;
    if(set->n == set->room) {
        set->room = set->room ? set->room * 2 : 4096;
        set->list = realloc(set->list, set->room * sizeof *set->list);
    }
    UA_NodeId_copy(id, &set->list[set->n++]);
    set->slot[at] = set->n;
    return true;
}

typedef struct {
    size_t references, continued, errors;
    UA_StatusCode first_error;
} Walk;

static void note_error(Walk *w, UA_StatusCode rc) {
    if(rc == UA_STATUSCODE_GOOD)
        return;
    if(w->errors++ == 0)
        w->first_error = rc;
}

/* Adds what a BrowseResult names and follows its continuation point to the end. */
static void take_references(Smoke *s, NodeSet *set, Walk *w, UA_BrowseResult *first) {
    UA_BrowseResult r = *first;
    UA_BrowseResult_init(first);
    for(;;) {
        note_error(w, r.statusCode);
        w->references += r.referencesSize;
        for(size_t i = 0; i < r.referencesSize; i++)
            if(r.references[i].nodeId.serverIndex == 0)
                set_add(set, &r.references[i].nodeId.nodeId);
        if(r.continuationPoint.length == 0)
            break;
        w->continued++;
        UA_BrowseNextRequest req;
        UA_BrowseNextRequest_init(&req);
        req.continuationPoints = &r.continuationPoint;
        req.continuationPointsSize = 1;
        UA_BrowseNextResponse resp = UA_Client_Service_browseNext(s->c, req);
        UA_BrowseResult next;
        UA_BrowseResult_init(&next);
        if(resp.responseHeader.serviceResult == UA_STATUSCODE_GOOD && resp.resultsSize == 1) {
            next = resp.results[0];
            UA_BrowseResult_init(&resp.results[0]);
        } else {
            note_error(w, resp.responseHeader.serviceResult ? resp.responseHeader.serviceResult
                                                            : UA_STATUSCODE_BADUNEXPECTEDERROR);
        }
        UA_BrowseNextResponse_clear(&resp);
        UA_BrowseResult_clear(&r);
        r = next;
    }
    UA_BrowseResult_clear(&r);
}

static UA_BrowseResponse browse(Smoke *s, UA_NodeId id, UA_UInt32 max) {
    UA_BrowseDescription d;
    UA_BrowseDescription_init(&d);
    d.nodeId = id;
    d.browseDirection = UA_BROWSEDIRECTION_FORWARD;
    d.referenceTypeId = UA_NODEID_NUMERIC(0, UA_NS0ID_REFERENCES);
    d.includeSubtypes = true;
    d.resultMask = UA_BROWSERESULTMASK_ALL;
    UA_BrowseRequest req;
    UA_BrowseRequest_init(&req);
    req.requestedMaxReferencesPerNode = max;
    req.nodesToBrowse = &d;
    req.nodesToBrowseSize = 1;
    return UA_Client_Service_browse(s->c, req);
}

/* Every attribute of `n` nodes; counts what is neither good nor a refusal that a server may
 * rightly give. */
static void read_attributes(Smoke *s, const UA_NodeId *ids, size_t n, Walk *w, size_t *good) {
    enum { FIRST = UA_ATTRIBUTEID_NODEID, LAST = UA_ATTRIBUTEID_ACCESSLEVELEX };
    size_t per = LAST - FIRST + 1;
    UA_ReadRequest req;
    UA_ReadRequest_init(&req);
    req.timestampsToReturn = UA_TIMESTAMPSTORETURN_NEITHER;
    req.nodesToReadSize = n * per;
    req.nodesToRead = calloc(n * per, sizeof *req.nodesToRead);
    for(size_t i = 0; i < n * per; i++) {
        req.nodesToRead[i].nodeId = ids[i / per];
        req.nodesToRead[i].attributeId = (UA_UInt32)(FIRST + i % per);
    }
    UA_ReadResponse resp = UA_Client_Service_read(s->c, req);
    note_error(w, resp.responseHeader.serviceResult);
    for(size_t i = 0; i < resp.resultsSize; i++) {
        UA_DataValue *v = &resp.results[i];
        bool node_class = i % per == UA_ATTRIBUTEID_NODECLASS - FIRST;
        switch(v->hasStatus ? v->status : UA_STATUSCODE_GOOD) {
        case UA_STATUSCODE_BADATTRIBUTEIDINVALID:
        case UA_STATUSCODE_BADNOTREADABLE:
        case UA_STATUSCODE_BADUSERACCESSDENIED:
        case UA_STATUSCODE_BADWAITINGFORINITIALDATA:
        case UA_STATUSCODE_BADNOTSUPPORTED:
        case UA_STATUSCODE_BADOUTOFSERVICE:
        case UA_STATUSCODE_BADSECURITYMODEINSUFFICIENT:
            if(node_class)
                note_error(w, v->status);
            break;
        default:
            if(v->hasStatus && (v->status >> 30) == 2)
                note_error(w, v->status);
            else
                ++*good;
        }
    }
    UA_ReadResponse_clear(&resp);
    free(req.nodesToRead);
}

void smoke_browse(Smoke *s) {
    enum { MAX_NODES = 200000, MAX_ATTRIBUTE_NODES = 20000 };
    NodeSet set = {0};
    Walk w = {0};
    UA_NodeId root = UA_NODEID_NUMERIC(0, UA_NS0ID_ROOTFOLDER);
    uint64_t begin = peer_now_ns();
    set_add(&set, &root);
    for(size_t i = 0; i < set.n && i < MAX_NODES; i++) {
        /* Few references per answer, so that continuation points are needed all the time. */
        UA_BrowseResponse resp = browse(s, set.list[i], 10);
        UA_StatusCode rc = resp.responseHeader.serviceResult;
        if(rc == UA_STATUSCODE_GOOD && resp.resultsSize != 1)
            rc = UA_STATUSCODE_BADUNEXPECTEDERROR;
        note_error(&w, rc);
        if(rc == UA_STATUSCODE_GOOD)
            take_references(s, &set, &w, &resp.results[0]);
        UA_BrowseResponse_clear(&resp);
        UA_SessionState state;
        UA_Client_getState(s->c, NULL, &state, NULL);
        if(state != UA_SESSIONSTATE_ACTIVATED)
            break;
    }
    check(s, "browse-all", w.errors == 0 && set.n > 100,
          "%zu nodes, %zu references, %zu continuations, %zu errors (first %s), %.1f ms", set.n,
          w.references, w.continued, w.errors, UA_StatusCode_name(w.first_error),
          (double)(peer_now_ns() - begin) / 1e6);

    Walk a = {0};
    size_t good = 0, n = set.n < MAX_ATTRIBUTE_NODES ? set.n : MAX_ATTRIBUTE_NODES;
    begin = peer_now_ns();
    for(size_t i = 0; i < n; i += 20)
        read_attributes(s, &set.list[i], n - i < 20 ? n - i : 20, &a, &good);
    check(s, "read-all-attributes", a.errors == 0 && good > n * 4,
          "%zu nodes, %zu attributes read, %zu errors (first %s), %.1f ms", n, good, a.errors,
          UA_StatusCode_name(a.first_error), (double)(peer_now_ns() - begin) / 1e6);
    for(size_t i = 0; i < set.n; i++)
        UA_NodeId_clear(&set.list[i]);
    free(set.list);
    free(set.slot);

    /* One folder in steps of three, with a look at what each step returns. */
    UA_BrowseResponse resp = browse(s, test_id(s, "scalar"), 3);
    bool ok = resp.resultsSize == 1 && resp.results[0].referencesSize == 3 &&
              resp.results[0].continuationPoint.length > 0;
    size_t got = resp.resultsSize == 1 ? resp.results[0].referencesSize : 0;
    if(ok) {
        NodeSet one = {0};
        Walk steps = {0};
        take_references(s, &one, &steps, &resp.results[0]);
        /* The folder's type definition is one reference more. */
        ok = steps.errors == 0 && one.n == TN_TYPES + 1;
        got = one.n;
        for(size_t i = 0; i < one.n; i++)
            UA_NodeId_clear(&one.list[i]);
        free(one.list);
        free(one.slot);
    }
    check(s, "browse-next", ok, "%zu of %d references in steps of 3", got, TN_TYPES + 1);
    UA_BrowseResponse_clear(&resp);

    /* Releasing a continuation point makes it useless. */
    resp = browse(s, test_id(s, "scalar"), 3);
    ok = resp.resultsSize == 1 && resp.results[0].continuationPoint.length > 0;
    UA_StatusCode second = UA_STATUSCODE_GOOD;
    if(ok) {
        UA_BrowseNextRequest next;
        UA_BrowseNextRequest_init(&next);
        next.continuationPoints = &resp.results[0].continuationPoint;
        next.continuationPointsSize = 1;
        next.releaseContinuationPoints = true;
        UA_BrowseNextResponse released = UA_Client_Service_browseNext(s->c, next);
        ok = released.responseHeader.serviceResult == UA_STATUSCODE_GOOD;
        UA_BrowseNextResponse_clear(&released);
        next.releaseContinuationPoints = false;
        released = UA_Client_Service_browseNext(s->c, next);
        second = released.resultsSize == 1 ? released.results[0].statusCode
                                           : released.responseHeader.serviceResult;
        ok = ok && second == UA_STATUSCODE_BADCONTINUATIONPOINTINVALID;
        UA_BrowseNextResponse_clear(&released);
    }
    check(s, "browse-release", ok, "BrowseNext after release: %s", UA_StatusCode_name(second));
    UA_BrowseResponse_clear(&resp);
}

static void smoke(Smoke *s) {
    smoke_server_object(s);
    smoke_browse(s);
    smoke_read(s);
    smoke_write(s);
    smoke_ranges(s);
    smoke_errors(s);
    smoke_call(s);
    smoke_subscription(s);
}

int run_checks(Options *o, const char *command, void (*before)(Smoke *), void (*steps)(Smoke *)) {
    char *entries = NULL;
    size_t size = 0;
    Smoke s = {.o = o, .checks = open_memstream(&entries, &size)};
    if(before)
        before(&s);
    s.c = client_new(o, NULL, true);
    UA_StatusCode rc = s.c ? UA_Client_connect(s.c, o->url) : UA_STATUSCODE_BADINTERNALERROR;
    if(check(&s, "connect", rc == UA_STATUSCODE_GOOD, "%s", UA_StatusCode_name(rc))) {
        steps(&s);
        rc = UA_Client_disconnect(s.c);
        check(&s, "close-session", rc == UA_STATUSCODE_GOOD, "%s", UA_StatusCode_name(rc));
    }
    if(s.c)
        UA_Client_delete(s.c);
    fclose(s.checks);
    printf("{\"tool\":\"o6-client\",\"library\":\"open62541 %s\",\"command\":\"%s\",\"url\":",
           UA_OPEN62541_VERSION, command);
    json_string(stdout, o->url);
    printf(",\"ok\":%s,\"passed\":%u,\"failed\":%u,\"checks\":[\n%s\n]}\n",
           s.failed ? "false" : "true", s.passed, s.failed, entries);
    free(entries);
    return s.failed ? 1 : 0;
}

int run_smoke(Options *o) { return run_checks(o, "smoke", smoke_discovery, smoke); }
