/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * operate: what an operator's client does on a Taktwerk server with the interop test nodes, the
 * demo plant and node management: events, an alarm that is raised by writing its input, history,
 * nodes. change: a history that may be written. */
#include "smoke.h"

#include <stdlib.h>
#include <string.h>

#define PLANT "urn:taktwerk:demo-plant"
#define PATIENCE_NS 15000000000ull
#define NUMERIC(N) UA_NODEID_NUMERIC(0, N)
#define ID(RC) UA_StatusCode_name(RC)

enum { EVENT_ID, MESSAGE, SEVERITY, RETAIN, ACTIVE, ACKED, CONFIRMED, CONDITION, EVENT_TYPE, FIELDS };
enum { REFRESH_START = 2787, REFRESH_END = 2788, LIMIT_ALARM = 9341 };

typedef struct {
    UA_ByteString id;
    char message[128];
    UA_UInt16 severity;
    bool retain, active, acked, confirmed, is_ours;
    UA_UInt32 type; /* of namespace 0 */
} Event;

typedef bool (*Wanted)(const Event *e);

/* The events of one item. */
typedef struct {
    UA_NodeId condition;
    Wanted wanted;
    bool found;
    Event event; /* the one that was wanted */
    /* All; retained with a severity below 500; of the alarm; starts of a refresh. */
    unsigned count, low, ours, starts;
} Feed;

static bool is_true(const UA_Variant *v) {
    return UA_Variant_hasScalarType(v, &UA_TYPES[UA_TYPES_BOOLEAN]) && *(UA_Boolean *)v->data;
}

static void on_event(UA_Client *c, UA_UInt32 subscription, void *context, UA_UInt32 item,
                     void *feed, const UA_KeyValueMap fields) {
    Feed *f = feed;
    f->count++;
    if(fields.mapSize != FIELDS)
        return;
    const UA_Variant *v[FIELDS];
    for(size_t i = 0; i < FIELDS; i++)
        v[i] = &fields.map[i].value;
    Event e = {.retain = is_true(v[RETAIN]), .active = is_true(v[ACTIVE]), .acked = is_true(v[ACKED]),
               .confirmed = is_true(v[CONFIRMED])};
    if(UA_Variant_hasScalarType(v[SEVERITY], &UA_TYPES[UA_TYPES_UINT16]))
        e.severity = *(UA_UInt16 *)v[SEVERITY]->data;
    if(UA_Variant_hasScalarType(v[MESSAGE], &UA_TYPES[UA_TYPES_LOCALIZEDTEXT])) {
        const UA_String *text = &((UA_LocalizedText *)v[MESSAGE]->data)->text;
        snprintf(e.message, sizeof e.message, "%.*s", (int)text->length, (char *)text->data);
    }
    if(UA_Variant_hasScalarType(v[CONDITION], &UA_TYPES[UA_TYPES_NODEID]))
        e.is_ours = UA_NodeId_equal(v[CONDITION]->data, &f->condition);
    if(UA_Variant_hasScalarType(v[EVENT_TYPE], &UA_TYPES[UA_TYPES_NODEID]))
        e.type = ((UA_NodeId *)v[EVENT_TYPE]->data)->identifier.numeric;
    /* An alarm that leaves the filter is reported once more, not retained (Part 9 §5.5.2). */
    f->low += e.retain && e.severity < 500;
    f->ours += e.is_ours;
    f->starts += e.type == REFRESH_START;
    if(f->found || !f->wanted || !f->wanted(&e))
        return;
    f->found = true;
    UA_ByteString_clear(&f->event.id);
    f->event = e;
    if(UA_Variant_hasScalarType(v[EVENT_ID], &UA_TYPES[UA_TYPES_BYTESTRING]))
        UA_ByteString_copy(v[EVENT_ID]->data, &f->event.id);
}

/* Waits for an event. Those that arrived before the call of `expect` do not count. */
static void expect(Feed *f, Wanted wanted) {
    f->found = false;
    f->wanted = wanted;
}

static bool await(Smoke *s, Feed *f) {
    uint64_t end = peer_now_ns() + PATIENCE_NS;
    while(!f->found && peer_now_ns() < end &&
          UA_Client_run_iterate(s->c, 50) == UA_STATUSCODE_GOOD)
        ;
    f->wanted = NULL;
    return f->found;
}

static bool raised(const Event *e) { return e->is_ours && e->active && e->retain; }
static bool acknowledged(const Event *e) { return e->is_ours && e->acked; }
static bool normal(const Event *e) { return e->is_ours && !e->active; }
static bool done(const Event *e) { return e->is_ours && e->confirmed; }
static bool refresh_end(const Event *e) { return e->type == REFRESH_END; }

static void select_field(UA_SimpleAttributeOperand *o, const char *first, const char *second) {
    UA_SimpleAttributeOperand_init(o);
    o->typeDefinitionId = NUMERIC(UA_NS0ID_BASEEVENTTYPE);
    o->attributeId = UA_ATTRIBUTEID_VALUE;
    o->browsePathSize = second ? 2 : 1;
    o->browsePath = UA_Array_new(2, &UA_TYPES[UA_TYPES_QUALIFIEDNAME]);
    o->browsePath[0] = UA_QUALIFIEDNAME(0, (char *)(uintptr_t)first);
    if(second)
        o->browsePath[1] = UA_QUALIFIEDNAME(0, (char *)(uintptr_t)second);
}

static UA_StatusCode monitor(Smoke *s, UA_UInt32 subscription, Feed *f, bool only_severe_alarms) {
    static const char *const names[EVENT_TYPE + 1][2] = {
        {"EventId"}, {"Message"}, {"Severity"}, {"Retain"}, {"ActiveState", "Id"},
        {"AckedState", "Id"}, {"ConfirmedState", "Id"}, {NULL}, {"EventType"}};
    UA_SimpleAttributeOperand select[FIELDS], severity;
    for(size_t i = 0; i < FIELDS; i++)
        if(i != CONDITION)
            select_field(&select[i], names[i][0], names[i][1]);
    UA_SimpleAttributeOperand_init(&select[CONDITION]);
    select[CONDITION].typeDefinitionId = NUMERIC(UA_NS0ID_CONDITIONTYPE);
    select[CONDITION].attributeId = UA_ATTRIBUTEID_NODEID;
    select_field(&severity, "Severity", NULL);

    UA_ElementOperand second = {1}, third = {2};
    UA_NodeId alarm = NUMERIC(LIMIT_ALARM);
    UA_UInt16 least = 500;
    UA_LiteralOperand type, number;
    UA_LiteralOperand_init(&type);
    UA_LiteralOperand_init(&number);
    UA_Variant_setScalar(&type.value, &alarm, &UA_TYPES[UA_TYPES_NODEID]);
    UA_Variant_setScalar(&number.value, &least, &UA_TYPES[UA_TYPES_UINT16]);
    UA_ExtensionObject both[2], kind[1], more[2];
    UA_ExtensionObject_setValueNoDelete(&both[0], &second, &UA_TYPES[UA_TYPES_ELEMENTOPERAND]);
    UA_ExtensionObject_setValueNoDelete(&both[1], &third, &UA_TYPES[UA_TYPES_ELEMENTOPERAND]);
    UA_ExtensionObject_setValueNoDelete(&kind[0], &type, &UA_TYPES[UA_TYPES_LITERALOPERAND]);
    UA_ExtensionObject_setValueNoDelete(&more[0], &severity,
                                        &UA_TYPES[UA_TYPES_SIMPLEATTRIBUTEOPERAND]);
    UA_ExtensionObject_setValueNoDelete(&more[1], &number, &UA_TYPES[UA_TYPES_LITERALOPERAND]);
    UA_ContentFilterElement elements[] = {{UA_FILTEROPERATOR_AND, 2, both},
                                          {UA_FILTEROPERATOR_OFTYPE, 1, kind},
                                          {UA_FILTEROPERATOR_GREATERTHANOREQUAL, 2, more}};
    UA_EventFilter filter;
    UA_EventFilter_init(&filter);
    filter.selectClauses = select;
    filter.selectClausesSize = FIELDS;
    if(only_severe_alarms) {
        filter.whereClause.elements = elements;
        filter.whereClause.elementsSize = 3;
    }
    UA_MonitoredItemCreateRequest item;
    UA_MonitoredItemCreateRequest_init(&item);
    item.itemToMonitor.nodeId = NUMERIC(UA_NS0ID_SERVER);
    item.itemToMonitor.attributeId = UA_ATTRIBUTEID_EVENTNOTIFIER;
    item.monitoringMode = UA_MONITORINGMODE_REPORTING;
    item.requestedParameters.queueSize = 1000;
    item.requestedParameters.discardOldest = true;
    UA_ExtensionObject_setValueNoDelete(&item.requestedParameters.filter, &filter,
                                        &UA_TYPES[UA_TYPES_EVENTFILTER]);
    UA_MonitoredItemCreateResult made = UA_Client_MonitoredItems_createEvent(
        s->c, subscription, UA_TIMESTAMPSTORETURN_BOTH, item, f, on_event, NULL);
    UA_StatusCode rc = made.statusCode;
    UA_MonitoredItemCreateResult_clear(&made);
    for(size_t i = 0; i < FIELDS; i++)
        UA_free(select[i].browsePath);
    UA_free(severity.browsePath);
    return rc;
}

static void set_input(Smoke *s, double value) {
    UA_Variant v;
    UA_Variant_setScalar(&v, &value, &UA_TYPES[UA_TYPES_DOUBLE]);
    UA_StatusCode rc = write_value(s, test_id(s, "alarms/input"), &v, NULL);
    if(rc != UA_STATUSCODE_GOOD)
        check(s, "write-input", false, "%s", ID(rc));
}

/* A method of the condition with an EventId and a comment. */
static UA_StatusCode comment(Smoke *s, UA_UInt32 method, const UA_ByteString *event, char *text) {
    UA_LocalizedText words = UA_LOCALIZEDTEXT("", text);
    UA_Variant in[2];
    UA_Variant_setScalar(&in[0], (void *)(uintptr_t)event, &UA_TYPES[UA_TYPES_BYTESTRING]);
    UA_Variant_setScalar(&in[1], &words, &UA_TYPES[UA_TYPES_LOCALIZEDTEXT]);
    return UA_Client_call(s->c, test_id(s, "alarms/input/LevelAlarm"), NUMERIC(method), 2, in, NULL,
                          NULL);
}

static void refresh(Smoke *s, UA_UInt32 subscription, Feed *f) {
    UA_Variant in;
    UA_Variant_setScalar(&in, &subscription, &UA_TYPES[UA_TYPES_UINT32]);
    f->ours = f->starts = 0;
    expect(f, refresh_end);
    UA_StatusCode rc = UA_Client_call(s->c, NUMERIC(UA_NS0ID_CONDITIONTYPE),
                                      NUMERIC(UA_NS0ID_CONDITIONTYPE_CONDITIONREFRESH), 1, &in,
                                      NULL, NULL);
    bool ok = rc == UA_STATUSCODE_GOOD && await(s, f) && f->starts == 1;
    check(s, "condition-refresh", ok, "%s, %u starts", ID(rc), f->starts);
    check(s, "condition-refresh-alarm", f->ours == 1, "%u events of the alarm", f->ours);
}

static void alarms(Smoke *s) {
    UA_CreateSubscriptionRequest wanted = UA_CreateSubscriptionRequest_default();
    wanted.requestedPublishingInterval = 50;
    UA_CreateSubscriptionResponse made = UA_Client_Subscriptions_create(s->c, wanted, NULL, NULL, NULL);
    UA_UInt32 subscription = made.subscriptionId;
    UA_CreateSubscriptionResponse_clear(&made);
    Feed all = {.condition = test_id(s, "alarms/input/LevelAlarm")}, severe = all;
    set_input(s, 0);
    UA_StatusCode rc = monitor(s, subscription, &all, false);
    check(s, "event-item", rc == UA_STATUSCODE_GOOD, "%s", ID(rc));
    rc = monitor(s, subscription, &severe, true);
    check(s, "event-item-where", rc == UA_STATUSCODE_GOOD, "%s", ID(rc));
    expect(&all, raised);
    expect(&severe, raised);
    set_input(s, 85);
    if(!check(s, "alarm-raised", await(s, &all), "no event"))
        return;
    check(s, "alarm-message", strstr(all.event.message, "High limit") != NULL, "%s", all.event.message);
    check(s, "alarm-where", await(s, &severe) && UA_ByteString_equal(&severe.event.id, &all.event.id),
          "no event, or another one");
    rc = comment(s, UA_NS0ID_CONDITIONTYPE_ADDCOMMENT, &all.event.id, "looked at");
    check(s, "alarm-add-comment", rc == UA_STATUSCODE_GOOD, "%s", ID(rc));
    expect(&all, acknowledged);
    rc = comment(s, UA_NS0ID_ACKNOWLEDGEABLECONDITIONTYPE_ACKNOWLEDGE, &all.event.id, "seen");
    check(s, "alarm-acknowledge", rc == UA_STATUSCODE_GOOD && await(s, &all), "%s", ID(rc));
    rc = comment(s, UA_NS0ID_ACKNOWLEDGEABLECONDITIONTYPE_ACKNOWLEDGE, &all.event.id, "again");
    check(s, "alarm-acknowledged-twice", rc == UA_STATUSCODE_BADCONDITIONBRANCHALREADYACKED, "%s", ID(rc));
    refresh(s, subscription, &all);
    expect(&all, normal);
    set_input(s, 0);
    check(s, "alarm-normal", await(s, &all) && all.event.retain, "no event, or not retained");
    expect(&all, done);
    rc = comment(s, UA_NS0ID_ACKNOWLEDGEABLECONDITIONTYPE_CONFIRM, &all.event.id, "repaired");
    check(s, "alarm-confirm", rc == UA_STATUSCODE_GOOD && await(s, &all) && !all.event.retain, "%s", ID(rc));
    check(s, "event-where-held-back", severe.count < all.count && severe.low == 0, "%u of %u, %u low",
          severe.count, all.count, severe.low);
    UA_ByteString_clear(&all.event.id);
    UA_ByteString_clear(&severe.event.id);
    UA_Client_Subscriptions_deleteSingle(s->c, subscription);
}

/* --- history --------------------------------------------------------------------------------- */

typedef struct {
    size_t values, pages, events;
    bool ordered;
    UA_DateTime last;
    double first_value, last_value;
} History;

static UA_Boolean on_history(UA_Client *c, const UA_NodeId *node, UA_Boolean more,
                             const UA_ExtensionObject *data, void *context) {
    History *h = context;
    h->pages++;
    if(data->content.decoded.type == &UA_TYPES[UA_TYPES_HISTORYEVENT]) {
        h->events += ((UA_HistoryEvent *)data->content.decoded.data)->eventsSize;
        return true;
    }
    /* HistoryModifiedData begins with the same members. */
    const UA_HistoryData *found = data->content.decoded.data;
    for(size_t i = 0; i < found->dataValuesSize; i++) {
        const UA_DataValue *v = &found->dataValues[i];
        h->ordered = h->ordered && v->sourceTimestamp >= h->last;
        h->last = v->sourceTimestamp;
        if(UA_Variant_hasScalarType(&v->value, &UA_TYPES[UA_TYPES_DOUBLE])) {
            h->last_value = *(double *)v->value.data;
            if(h->values == 0)
                h->first_value = h->last_value;
        }
        h->values++;
    }
    return true;
}

static UA_NodeId plant_id(Smoke *s, char *name) {
    UA_UInt16 ns = 0;
    UA_String uri = UA_STRING(PLANT);
    UA_Client_NamespaceGetIndex(s->c, &uri, &ns);
    return UA_NODEID_STRING(ns, name);
}

static void history(Smoke *s) {
    UA_NodeId level = plant_id(s, "Plant/Boiler/Level");
    UA_DateTime end = UA_DateTime_now(), start = end - 30 * 60 * UA_DATETIME_SEC;
    History whole = {.ordered = true}, paged = whole, events = whole;
    UA_StatusCode rc = UA_Client_HistoryRead_raw(s->c, &level, on_history, start, end, UA_STRING_NULL,
                                                 false, 0, UA_TIMESTAMPSTORETURN_BOTH, &whole);
    check(s, "history-raw", rc == UA_STATUSCODE_GOOD && whole.values > 100 && whole.ordered,
          "%s, %zu values", ID(rc), whole.values);
    rc = UA_Client_HistoryRead_raw(s->c, &level, on_history, start, end, UA_STRING_NULL, false, 50,
                                   UA_TIMESTAMPSTORETURN_BOTH, &paged);
    check(s, "history-continued",
          rc == UA_STATUSCODE_GOOD && paged.pages > 3 && paged.values == whole.values && paged.ordered,
          "%s, %zu values in %zu pages", ID(rc), paged.values, paged.pages);
    UA_NodeId folder = NUMERIC(UA_NS0ID_OBJECTSFOLDER);
    rc = UA_Client_HistoryRead_raw(s->c, &folder, on_history, start, end, UA_STRING_NULL, false, 0,
                                   UA_TIMESTAMPSTORETURN_BOTH, &events);
    check(s, "history-none", rc != UA_STATUSCODE_GOOD, "%s", ID(rc));
    UA_SimpleAttributeOperand fields[2];
    select_field(&fields[0], "EventId", NULL);
    select_field(&fields[1], "Message", NULL);
    UA_EventFilter filter;
    UA_EventFilter_init(&filter);
    filter.selectClauses = fields;
    filter.selectClausesSize = 2;
    UA_NodeId server = NUMERIC(UA_NS0ID_SERVER);
    /* The events of `alarms` are stored within a second. */
    for(int i = 0; i < 30 && events.events < 2; i++) {
        UA_Client_run_iterate(s->c, 100);
        rc = UA_Client_HistoryRead_events(s->c, &server, on_history, start, UA_DateTime_now(),
                                          UA_STRING_NULL, filter, 0, UA_TIMESTAMPSTORETURN_BOTH, &events);
    }
    check(s, "history-events", rc == UA_STATUSCODE_GOOD && events.events >= 2, "%s, %zu events", ID(rc),
          events.events);
    UA_free(fields[0].browsePath);
    UA_free(fields[1].browsePath);
}

static void change(Smoke *s) {
    UA_NodeId node = plant_id(s, "Plant/TemperatureSetpoint");
    UA_DateTimeStruct day = {.year = 2020, .month = 1, .day = 1};
    UA_DateTime start = UA_DateTime_fromStruct(day), second = UA_DATETIME_SEC;
    double number = 1;
    UA_DataValue v;
    UA_DataValue_init(&v);
    UA_Variant_setScalar(&v.value, &number, &UA_TYPES[UA_TYPES_DOUBLE]);
    v.hasValue = v.hasSourceTimestamp = v.hasServerTimestamp = true;
    v.sourceTimestamp = v.serverTimestamp = start;
    UA_StatusCode rc = UA_Client_HistoryUpdate_insert(s->c, &node, &v);
    check(s, "history-insert", rc == UA_STATUSCODE_GOODENTRYINSERTED, "%s", ID(rc));
    rc = UA_Client_HistoryUpdate_insert(s->c, &node, &v);
    check(s, "history-insert-twice", rc == UA_STATUSCODE_BADENTRYEXISTS, "%s", ID(rc));
    number = 5;
    rc = UA_Client_HistoryUpdate_replace(s->c, &node, &v);
    check(s, "history-replace", rc == UA_STATUSCODE_GOODENTRYREPLACED, "%s", ID(rc));
    v.sourceTimestamp = v.serverTimestamp = start + second;
    rc = UA_Client_HistoryUpdate_replace(s->c, &node, &v);
    check(s, "history-replace-missing", rc == UA_STATUSCODE_BADNOENTRYEXISTS, "%s", ID(rc));
    rc = UA_Client_HistoryUpdate_update(s->c, &node, &v);
    check(s, "history-update", rc == UA_STATUSCODE_GOODENTRYINSERTED, "%s", ID(rc));
    History found = {.ordered = true}, modified = found, left = found;
    UA_Client_HistoryRead_raw(s->c, &node, on_history, start, start + 10 * second, UA_STRING_NULL, false,
                              0, UA_TIMESTAMPSTORETURN_BOTH, &found);
    check(s, "history-changed", found.values == 2 && found.first_value == 5 && found.last_value == 5,
          "%zu values, %g", found.values, found.first_value);
    UA_Client_HistoryRead_modified(s->c, &node, on_history, start, start + 10 * second, UA_STRING_NULL,
                                   false, 0, UA_TIMESTAMPSTORETURN_BOTH, &modified);
    check(s, "history-modified", modified.values >= 1 && modified.first_value == 1, "%zu values, %g",
          modified.values, modified.first_value);
    rc = UA_Client_HistoryUpdate_deleteRaw(s->c, &node, start, start + 10 * second);
    check(s, "history-delete", rc == UA_STATUSCODE_GOOD, "%s", ID(rc));
    rc = UA_Client_HistoryRead_raw(s->c, &node, on_history, start, start + 10 * second, UA_STRING_NULL,
                                   false, 0, UA_TIMESTAMPSTORETURN_BOTH, &left);
    check(s, "history-deleted", left.values == 0, "%s, %zu values", ID(rc), left.values);
}

/* --- nodes ----------------------------------------------------------------------------------- */

static bool is_child(Smoke *s, UA_NodeId parent, UA_NodeId child) {
    UA_BrowseDescription what;
    UA_BrowseDescription_init(&what);
    what.nodeId = parent;
    what.referenceTypeId = NUMERIC(UA_NS0ID_HIERARCHICALREFERENCES);
    what.includeSubtypes = true;
    UA_BrowseResult result = UA_Client_browse(s->c, NULL, 0, &what);
    bool found = false;
    for(size_t i = 0; i < result.referencesSize; i++)
        found = found || UA_NodeId_equal(&result.references[i].nodeId.nodeId, &child);
    UA_BrowseResult_clear(&result);
    return found;
}

static void nodes(Smoke *s) {
    UA_NodeId line = UA_NODEID_STRING(1, "OLine"), speed = UA_NODEID_STRING(1, "OLine.Speed");
    UA_ObjectAttributes object = UA_ObjectAttributes_default;
    object.displayName = UA_LOCALIZEDTEXT("", "Line");
    UA_StatusCode rc = UA_Client_addObjectNode(
        s->c, line, NUMERIC(UA_NS0ID_OBJECTSFOLDER), NUMERIC(UA_NS0ID_ORGANIZES),
        UA_QUALIFIEDNAME(1, "OLine"), NUMERIC(UA_NS0ID_BASEOBJECTTYPE), object, NULL);
    check(s, "add-object", rc == UA_STATUSCODE_GOOD, "%s", ID(rc));
    rc = UA_Client_addObjectNode(s->c, line, NUMERIC(UA_NS0ID_OBJECTSFOLDER), NUMERIC(UA_NS0ID_ORGANIZES),
                                 UA_QUALIFIEDNAME(1, "Other"), NUMERIC(UA_NS0ID_BASEOBJECTTYPE), object,
                                 NULL);
    check(s, "add-object-twice", rc == UA_STATUSCODE_BADNODEIDEXISTS, "%s", ID(rc));
    double value = 1.5;
    UA_VariableAttributes variable = UA_VariableAttributes_default;
    UA_Variant_setScalar(&variable.value, &value, &UA_TYPES[UA_TYPES_DOUBLE]);
    variable.dataType = UA_TYPES[UA_TYPES_DOUBLE].typeId;
    variable.displayName = UA_LOCALIZEDTEXT("", "Speed");
    /* The library leaves the mask at 0, which means that no attribute is given (Part 4 §7.24). */
    variable.specifiedAttributes =
        UA_NODEATTRIBUTESMASK_DISPLAYNAME | UA_NODEATTRIBUTESMASK_VALUE | UA_NODEATTRIBUTESMASK_DATATYPE |
        UA_NODEATTRIBUTESMASK_VALUERANK | UA_NODEATTRIBUTESMASK_ACCESSLEVEL;
    rc = UA_Client_addVariableNode(s->c, speed, line, NUMERIC(UA_NS0ID_HASCOMPONENT),
                                   UA_QUALIFIEDNAME(1, "Speed"), NUMERIC(UA_NS0ID_BASEDATAVARIABLETYPE),
                                   variable, NULL);
    check(s, "add-variable", rc == UA_STATUSCODE_GOOD, "%s", ID(rc));
    UA_DataValue read = read_value(s, speed, NULL);
    check(s, "add-variable-value",
          UA_Variant_hasScalarType(&read.value, &UA_TYPES[UA_TYPES_DOUBLE]) && *(double *)read.value.data == value,
          "%s", show(&read.value));
    UA_DataValue_clear(&read);
    UA_NodeId chosen = UA_NODEID_NULL;
    rc = UA_Client_addObjectNode(s->c, UA_NODEID_NUMERIC(1, 0), NUMERIC(UA_NS0ID_OBJECTSFOLDER),
                                 NUMERIC(UA_NS0ID_ORGANIZES), UA_QUALIFIEDNAME(1, "Chosen"),
                                 NUMERIC(UA_NS0ID_FOLDERTYPE), object, &chosen);
    check(s, "add-object-chosen-id", rc == UA_STATUSCODE_GOOD && !UA_NodeId_isNull(&chosen), "%s", ID(rc));
    UA_ExpandedNodeId target = UA_EXPANDEDNODEID_STRING(1, "OLine");
    rc = UA_Client_addReference(s->c, chosen, NUMERIC(UA_NS0ID_ORGANIZES), true, UA_STRING_NULL, target,
                                UA_NODECLASS_OBJECT);
    check(s, "add-reference", rc == UA_STATUSCODE_GOOD && is_child(s, chosen, line), "%s", ID(rc));
    rc = UA_Client_deleteReference(s->c, chosen, NUMERIC(UA_NS0ID_ORGANIZES), true, target, true);
    check(s, "delete-reference", rc == UA_STATUSCODE_GOOD && !is_child(s, chosen, line), "%s", ID(rc));
    rc = UA_Client_deleteNode(s->c, line, true);
    check(s, "delete-node", rc == UA_STATUSCODE_GOOD, "%s", ID(rc));
    rc = UA_Client_deleteNode(s->c, speed, true);
    check(s, "delete-node-component", rc == UA_STATUSCODE_BADNODEIDUNKNOWN, "%s", ID(rc));
    rc = UA_Client_deleteNode(s->c, chosen, true);
    check(s, "delete-node-chosen-id", rc == UA_STATUSCODE_GOOD, "%s", ID(rc));
    rc = UA_Client_deleteNode(s->c, NUMERIC(UA_NS0ID_SERVER), true);
    check(s, "delete-node-of-server", rc != UA_STATUSCODE_GOOD, "%s", ID(rc));
    UA_NodeId_clear(&chosen);
}

static void operate(Smoke *s) {
    UA_String uri = UA_STRING(TN_URI);
    UA_Client_NamespaceGetIndex(s->c, &uri, &s->ns);
    alarms(s);
    history(s);
    nodes(s);
}

int run_operate(Options *o) { return run_checks(o, "operate", NULL, operate); }
int run_change(Options *o) { return run_checks(o, "change", NULL, change); }
