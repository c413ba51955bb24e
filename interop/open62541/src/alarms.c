/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * o6-alarms: a server whose tank has an alarm. Clients write ns=1;s=Level: from 80 on, the alarm
 * TankAlarm (OffNormalAlarmType) of ns=1;s=Tank is active, with the severity 700. It is retained
 * until it is inactive, acknowledged and confirmed. Needs a build with the full namespace 0. */
#include "common.h"

#include <open62541/server.h>
#include <open62541/server_config_default.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define ALARM_FROM 80.0

static volatile sig_atomic_t running = 1;
static UA_NodeId alarm_id;
static UA_NodeId tank;

static void on_signal(int number) {
    (void)number;
    running = 0;
}

static void must(UA_StatusCode rc, const char *what) {
    if(rc != UA_STATUSCODE_GOOD) {
        fprintf(stderr, "%s: %s\n", what, UA_StatusCode_name(rc));
        exit(1);
    }
}

static UA_QualifiedName name(const char *text) { return UA_QUALIFIEDNAME(0, (char *)(uintptr_t)text); }

static void set(UA_Server *server, const char *field, void *data, const UA_DataType *type) {
    UA_Variant value;
    UA_Variant_setScalar(&value, data, type);
    must(UA_Server_setConditionField(server, alarm_id, &value, name(field)), field);
}

static void set_state(UA_Server *server, const char *field, UA_Boolean is_true) {
    UA_Variant value;
    UA_Variant_setScalar(&value, &is_true, &UA_TYPES[UA_TYPES_BOOLEAN]);
    must(UA_Server_setConditionVariableFieldProperty(server, alarm_id, &value, name(field), name("Id")), field);
}

static UA_Boolean state(UA_Server *server, const char *field) {
    const UA_QualifiedName path[] = {name(field), name("Id")};
    UA_BrowsePathResult found = UA_Server_browseSimplifiedBrowsePath(server, alarm_id, 2, path);
    must(found.statusCode, field);
    UA_Variant value;
    must(UA_Server_readValue(server, found.targets[0].targetId.nodeId, &value), field);
    UA_Boolean is_true = UA_Variant_hasScalarType(&value, &UA_TYPES[UA_TYPES_BOOLEAN]) && *(UA_Boolean *)value.data;
    UA_Variant_clear(&value);
    UA_BrowsePathResult_clear(&found);
    return is_true;
}

static void set_message(UA_Server *server, const char *text) {
    UA_LocalizedText message = UA_LOCALIZEDTEXT("en", (char *)(uintptr_t)text);
    set(server, "Message", &message, &UA_TYPES[UA_TYPES_LOCALIZEDTEXT]);
}

static void retain(UA_Server *server, UA_Boolean is_retained) {
    set(server, "Retain", &is_retained, &UA_TYPES[UA_TYPES_BOOLEAN]);
}

/* The library calls this before it reports the confirmation. */
static UA_StatusCode confirmed(UA_Server *server, const UA_NodeId *condition) {
    (void)condition;
    if(!state(server, "ActiveState"))
        retain(server, false);
    return UA_STATUSCODE_GOOD;
}

static void level_written(UA_Server *server, const UA_NodeId *session, void *session_context,
                          const UA_NodeId *node, void *node_context, const UA_NumericRange *range,
                          const UA_DataValue *data) {
    if(!UA_Variant_hasScalarType(&data->value, &UA_TYPES[UA_TYPES_DOUBLE]))
        return;
    UA_Boolean is_high = *(UA_Double *)data->value.data >= ALARM_FROM;
    if(is_high == state(server, "ActiveState"))
        return;
    UA_UInt16 severity = is_high ? 700 : 100;
    set(server, "Severity", &severity, &UA_TYPES[UA_TYPES_UINT16]);
    set_message(server, is_high ? "The tank is nearly full" : "The level is normal");
    if(is_high) {
        retain(server, true);
        set_state(server, "AckedState", false);
        set_state(server, "ConfirmedState", false);
        /* Also raises the event. */
        set_state(server, "ActiveState", true);
        return;
    }
    set_state(server, "ActiveState", false);
    if(state(server, "AckedState") && state(server, "ConfirmedState"))
        retain(server, false);
    must(UA_Server_triggerConditionEvent(server, alarm_id, tank, NULL), "the event");
}

static void add_plant(UA_Server *server) {
    UA_ObjectAttributes object = UA_ObjectAttributes_default;
    object.displayName = UA_LOCALIZEDTEXT("", "Tank");
    object.eventNotifier = 1;
    tank = UA_NODEID_STRING(1, "Tank");
    must(UA_Server_addObjectNode(server, tank, UA_NS0ID(OBJECTSFOLDER), UA_NS0ID(ORGANIZES),
                                 UA_QUALIFIEDNAME(1, "Tank"), UA_NS0ID(BASEOBJECTTYPE), object, NULL, NULL),
         "the tank");
    must(UA_Server_addReference(server, UA_NS0ID(SERVER), UA_NS0ID(HASNOTIFIER),
                                UA_EXPANDEDNODEID_STRING(1, "Tank"), true),
         "its events at the Server object");
    UA_VariableAttributes variable = UA_VariableAttributes_default;
    UA_Double level = 0;
    UA_Variant_setScalar(&variable.value, &level, &UA_TYPES[UA_TYPES_DOUBLE]);
    variable.dataType = UA_TYPES[UA_TYPES_DOUBLE].typeId;
    variable.displayName = UA_LOCALIZEDTEXT("", "Level");
    variable.accessLevel = UA_ACCESSLEVELMASK_READ | UA_ACCESSLEVELMASK_WRITE;
    must(UA_Server_addVariableNode(server, UA_NODEID_STRING(1, "Level"), tank, UA_NS0ID(HASCOMPONENT),
                                   UA_QUALIFIEDNAME(1, "Level"), UA_NS0ID(BASEDATAVARIABLETYPE), variable,
                                   NULL, NULL),
         "the level");
    must(UA_Server_createCondition(server, UA_NODEID_STRING(1, "TankAlarm"), UA_NS0ID(OFFNORMALALARMTYPE),
                                   UA_QUALIFIEDNAME(0, "TankAlarm"), tank, UA_NS0ID(HASCOMPONENT), &alarm_id),
         "the alarm");
    set_state(server, "EnabledState", true);
    must(UA_Server_setConditionTwoStateVariableCallback(server, alarm_id, tank, false, confirmed,
                                                        UA_ENTERING_CONFIRMEDSTATE),
         "the callback");
    UA_ValueCallback written = {.onWrite = level_written};
    must(UA_Server_setVariableNode_valueCallback(server, UA_NODEID_STRING(1, "Level"), written), "the callback");
}

int main(int argc, char **argv) {
    if(argc != 3 || strcmp(argv[1], "--port") != 0) {
        fputs("o6-alarms --port P\n", stderr);
        return 2;
    }
    unsigned port = (unsigned)atoi(argv[2]);
    if(port == 0)
        port = peer_free_port();
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);

    UA_ServerConfig config;
    memset(&config, 0, sizeof config);
    config.logging = peer_logger();
    must(UA_ServerConfig_setMinimal(&config, (UA_UInt16)port, NULL), "the configuration");
    char url[64];
    snprintf(url, sizeof url, "opc.tcp://127.0.0.1:%u", port);
    UA_Array_delete(config.serverUrls, config.serverUrlsSize, &UA_TYPES[UA_TYPES_STRING]);
    config.serverUrls = UA_String_new();
    config.serverUrlsSize = 1;
    config.serverUrls[0] = UA_STRING_ALLOC(url);
    UA_Server *server = UA_Server_newWithConfig(&config);
    if(!server) {
        fputs("cannot configure the server\n", stderr);
        return 1;
    }
    add_plant(server);
    must(UA_Server_run_startup(server), "cannot start");
    printf("READY %s\n", url);
    fflush(stdout);
    while(running)
        UA_Server_run_iterate(server, true);
    UA_Server_run_shutdown(server);
    UA_Server_delete(server);
    return 0;
}
