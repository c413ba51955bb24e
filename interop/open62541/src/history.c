/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A variable with a history in memory: ns=1;s=Ramp with the values 0, 1, 2 … that are one second
 * apart and begin ten minutes ago. */
#include "history.h"

#include <open62541/plugin/historydata/history_data_backend_memory.h>
#include <open62541/plugin/historydata/history_data_gathering_default.h>
#include <open62541/plugin/historydata/history_database_default.h>

static UA_HistoryDataGathering gathering;

void history_configure(UA_ServerConfig *config) {
    gathering = UA_HistoryDataGathering_Default(1);
    config->historyDatabase = UA_HistoryDatabase_default(gathering);
}

UA_StatusCode history_add(UA_Server *server, unsigned values) {
    UA_NodeId id = UA_NODEID_STRING(1, "Ramp");
    UA_VariableAttributes attr = UA_VariableAttributes_default;
    double number = 0;
    UA_Variant_setScalar(&attr.value, &number, &UA_TYPES[UA_TYPES_DOUBLE]);
    attr.dataType = UA_TYPES[UA_TYPES_DOUBLE].typeId;
    attr.displayName = UA_LOCALIZEDTEXT("", "Ramp");
    attr.accessLevel = UA_ACCESSLEVELMASK_READ | UA_ACCESSLEVELMASK_HISTORYREAD;
    attr.historizing = true;
    UA_StatusCode rc = UA_Server_addVariableNode(
        server, id, UA_NS0ID(OBJECTSFOLDER), UA_NS0ID(ORGANIZES), UA_QUALIFIEDNAME(1, "Ramp"),
        UA_NS0ID(BASEDATAVARIABLETYPE), attr, NULL, NULL);
    if(rc != UA_STATUSCODE_GOOD)
        return rc;
    UA_HistorizingNodeIdSettings setting = {
        .historizingBackend = UA_HistoryDataBackend_Memory(1, values),
        .maxHistoryDataResponseSize = 50,
        .historizingUpdateStrategy = UA_HISTORIZINGUPDATESTRATEGY_USER};
    rc = gathering.registerNodeId(server, gathering.context, &id, setting);
    UA_DateTime start = UA_DateTime_now() - 600 * UA_DATETIME_SEC;
    for(unsigned i = 0; i < values && rc == UA_STATUSCODE_GOOD; i++) {
        UA_DataValue v;
        UA_DataValue_init(&v);
        number = i;
        UA_Variant_setScalar(&v.value, &number, &UA_TYPES[UA_TYPES_DOUBLE]);
        v.hasValue = v.hasSourceTimestamp = v.hasServerTimestamp = true;
        v.sourceTimestamp = v.serverTimestamp = start + (UA_DateTime)i * UA_DATETIME_SEC;
        rc = setting.historizingBackend.serverSetHistoryData(
            server, setting.historizingBackend.context, NULL, NULL, &id, true, &v);
    }
    return rc;
}
