/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * o6-publisher: open62541's publisher as the laboratory measures it, UADP over UDP. One value changes
 * every --update milliseconds, whatever is published, and is published every --interval. A message says
 * when its value had changed (SourceTimestamp of the field), when that was sampled (its ServerTimestamp),
 * and when the message was ready (Timestamp of the NetworkMessage), all by this machine's clock. */
#define _GNU_SOURCE
#include "common.h"

#include <open62541/plugin/eventloop.h>
#include <open62541/server.h>
#include <open62541/server_config_default.h>
#include <open62541/server_pubsub.h>

#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PUBLISHER_ID 62541
#define VALUE UA_NODEID_NUMERIC(1, 100000)

typedef struct {
    const char *url, *interface;
    double interval_ms, update_ms;
    bool exit_with_stdin;
} Options;

static volatile UA_Boolean running = true;

static void on_signal(int sig) {
    (void)sig;
    running = false;
}

static void must(UA_StatusCode rc, const char *what) {
    if(rc == UA_STATUSCODE_GOOD)
        return;
    fprintf(stderr, "%s: %s\n", what, UA_StatusCode_name(rc));
    exit(1);
}

/* --- the value ------------------------------------------------------------------------------- */

static void change(UA_Server *server, void *data) {
    (void)data;
    static UA_Double value;
    value += 1.0;
    UA_DataValue dv;
    UA_DataValue_init(&dv);
    UA_Variant_setScalar(&dv.value, &value, &UA_TYPES[UA_TYPES_DOUBLE]);
    dv.hasValue = true;
    dv.sourceTimestamp = UA_DateTime_now();
    dv.hasSourceTimestamp = true;
    UA_Server_writeDataValue(server, VALUE, dv);
}

static void add_value(UA_Server *server) {
    UA_VariableAttributes attr = UA_VariableAttributes_default;
    UA_Double zero = 0;
    UA_Variant_setScalar(&attr.value, &zero, &UA_TYPES[UA_TYPES_DOUBLE]);
    attr.dataType = UA_TYPES[UA_TYPES_DOUBLE].typeId;
    attr.accessLevel = UA_ACCESSLEVELMASK_READ | UA_ACCESSLEVELMASK_WRITE;
    must(UA_Server_addVariableNode(server, VALUE, UA_NS0ID(OBJECTSFOLDER), UA_NS0ID(ORGANIZES),
                                   UA_QUALIFIEDNAME(1, "value"), UA_NS0ID(BASEDATAVARIABLETYPE),
                                   attr, NULL, NULL),
         "value");
    change(server, NULL);
}

/* --- when a message is ready ----------------------------------------------------------------- */

/* The library sends the Timestamp of its NetworkMessages as 0. It is filled in here, when the library
 * hands a message over to be sent: the last moment before the kernel has it. */
static UA_StatusCode (*hand_over)(UA_ConnectionManager *cm, uintptr_t connection,
                                  const UA_KeyValueMap *params, UA_ByteString *buf);
static size_t timestamp_at;
static unsigned long sent;

static UA_StatusCode stamp_and_send(UA_ConnectionManager *cm, uintptr_t connection,
                                    const UA_KeyValueMap *params, UA_ByteString *buf) {
    if(buf->length >= timestamp_at + sizeof(UA_DateTime)) {
        UA_UInt64 now = (UA_UInt64)UA_DateTime_now();
        for(unsigned i = 0; i < sizeof now; i++)
            buf->data[timestamp_at + i] = (UA_Byte)(now >> (8 * i));
    }
    UA_StatusCode rc = hand_over(cm, connection, params, buf);
    if(rc == UA_STATUSCODE_GOOD)
        sent++;
    return rc;
}

static void stamp_messages(UA_Server *server, UA_NodeId group) {
    UA_PubSubOffsetTable table;
    must(UA_Server_computeWriterGroupOffsetTable(server, group, &table), "layout of a message");
    for(size_t i = 0; i < table.offsetsSize; i++)
        if(table.offsets[i].offsetType == UA_PUBSUBOFFSETTYPE_NETWORKMESSAGE_TIMESTAMP)
            timestamp_at = table.offsets[i].offset;
    UA_PubSubOffsetTable_clear(&table);

    UA_String udp = UA_STRING("udp");
    for(UA_EventSource *source = UA_Server_getConfig(server)->eventLoop->eventSources; source;
        source = source->next) {
        UA_ConnectionManager *cm = (UA_ConnectionManager *)source;
        if(source->eventSourceType != UA_EVENTSOURCETYPE_CONNECTIONMANAGER ||
           !UA_String_equal(&cm->protocol, &udp))
            continue;
        hand_over = cm->sendWithConnection;
        cm->sendWithConnection = stamp_and_send;
    }
    if(!timestamp_at || !hand_over) {
        fprintf(stderr, "the library has no UDP, or no place for a Timestamp\n");
        exit(1);
    }
}

/* --- publisher ------------------------------------------------------------------------------- */

static UA_NodeId add_publisher(UA_Server *server, const Options *o) {
    UA_PubSubConnectionConfig c;
    memset(&c, 0, sizeof c);
    UA_NetworkAddressUrlDataType address = {UA_STRING((char *)(uintptr_t)o->interface),
                                            UA_STRING((char *)(uintptr_t)o->url)};
    c.name = UA_STRING("udp");
    c.transportProfileUri =
        UA_STRING("http://opcfoundation.org/UA-Profile/Transport/pubsub-udp-uadp");
    UA_Variant_setScalar(&c.address, &address, &UA_TYPES[UA_TYPES_NETWORKADDRESSURLDATATYPE]);
    c.publisherId.idType = UA_PUBLISHERIDTYPE_UINT16;
    c.publisherId.id.uint16 = PUBLISHER_ID;
    UA_NodeId connection, group, set;
    must(UA_Server_addPubSubConnection(server, &c, &connection), "connection");

    UA_UadpWriterGroupMessageDataType settings;
    UA_UadpWriterGroupMessageDataType_init(&settings);
    settings.networkMessageContentMask =
        UA_UADPNETWORKMESSAGECONTENTMASK_PUBLISHERID | UA_UADPNETWORKMESSAGECONTENTMASK_GROUPHEADER |
        UA_UADPNETWORKMESSAGECONTENTMASK_WRITERGROUPID |
        UA_UADPNETWORKMESSAGECONTENTMASK_SEQUENCENUMBER |
        UA_UADPNETWORKMESSAGECONTENTMASK_PAYLOADHEADER | UA_UADPNETWORKMESSAGECONTENTMASK_TIMESTAMP;
    UA_WriterGroupConfig wg;
    memset(&wg, 0, sizeof wg);
    wg.name = UA_STRING("group");
    wg.publishingInterval = o->interval_ms;
    wg.writerGroupId = 1;
    wg.encodingMimeType = UA_PUBSUB_ENCODING_UADP;
    wg.securityMode = UA_MESSAGESECURITYMODE_NONE;
    wg.maxEncapsulatedDataSetMessageCount = 1;
    UA_ExtensionObject_setValueNoDelete(&wg.messageSettings, &settings,
                                        &UA_TYPES[UA_TYPES_UADPWRITERGROUPMESSAGEDATATYPE]);
    must(UA_Server_addWriterGroup(server, connection, &wg, &group), "writer group");

    UA_PublishedDataSetConfig pds;
    memset(&pds, 0, sizeof pds);
    pds.publishedDataSetType = UA_PUBSUB_DATASET_PUBLISHEDITEMS;
    pds.name = UA_STRING("set");
    must(UA_Server_addPublishedDataSet(server, &pds, &set).addResult, "data set");
    UA_DataSetFieldConfig f;
    memset(&f, 0, sizeof f);
    f.dataSetFieldType = UA_PUBSUB_DATASETFIELD_VARIABLE;
    f.field.variable.fieldNameAlias = UA_STRING("value");
    f.field.variable.publishParameters.publishedVariable = VALUE;
    f.field.variable.publishParameters.attributeId = UA_ATTRIBUTEID_VALUE;
    must(UA_Server_addDataSetField(server, set, &f, NULL).result, "field");

    UA_UadpDataSetWriterMessageDataType message;
    UA_UadpDataSetWriterMessageDataType_init(&message);
    message.dataSetMessageContentMask = UA_UADPDATASETMESSAGECONTENTMASK_SEQUENCENUMBER;
    UA_DataSetWriterConfig dsw;
    memset(&dsw, 0, sizeof dsw);
    dsw.name = UA_STRING("writer");
    dsw.dataSetWriterId = 1;
    dsw.dataSetFieldContentMask =
        UA_DATASETFIELDCONTENTMASK_SOURCETIMESTAMP | UA_DATASETFIELDCONTENTMASK_SERVERTIMESTAMP;
    dsw.keyFrameCount = 1;
    UA_ExtensionObject_setValueNoDelete(&dsw.messageSettings, &message,
                                        &UA_TYPES[UA_TYPES_UADPDATASETWRITERMESSAGEDATATYPE]);
    must(UA_Server_addDataSetWriter(server, group, set, &dsw, NULL), "writer");
    return group;
}

/* --- main ------------------------------------------------------------------------------------ */

static void check_stdin(UA_Server *server, void *data) {
    (void)server;
    (void)data;
    struct pollfd p = {.fd = 0, .events = POLLIN};
    char sink[256];
    if(poll(&p, 1, 0) > 0 && read(0, sink, sizeof sink) <= 0)
        running = false;
}

static int usage(void) {
    fprintf(stderr, "o6-publisher [--url opc.udp://HOST:PORT] [--interface NAME] [--interval MS]\n"
                    "             [--update MS] [--exit-with-stdin] [--cpu N] [--verbose]\n");
    return 2;
}

int main(int argc, char **argv) {
    Options o = {.url = "opc.udp://239.192.0.2:14850", .interface = "lo", .interval_ms = 100,
                 .update_ms = 31};
    static const struct option options[] = {
        {"url", 1, 0, 'u'},    {"interface", 1, 0, 'i'},       {"interval", 1, 0, 'n'},
        {"update", 1, 0, 'p'}, {"exit-with-stdin", 0, 0, 's'}, {"cpu", 1, 0, 'c'},
        {"verbose", 0, 0, 'v'}, {0, 0, 0, 0}};
    for(int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch(c) {
        case 'u': o.url = optarg; break;
        case 'i': o.interface = optarg; break;
        case 'n': o.interval_ms = atof(optarg); break;
        case 'p': o.update_ms = atof(optarg); break;
        case 's': o.exit_with_stdin = true; break;
        case 'c':
            if(!peer_pin(atoi(optarg)))
                return 6;
            break;
        case 'v': peer_log_level = UA_LOGLEVEL_INFO; break;
        default: return usage();
        }
    }
    if(!(o.interval_ms > 0) || !(o.update_ms > 0))
        return usage();
    struct sigaction sa = {.sa_handler = on_signal};
    sigaction(SIGTERM, &sa, NULL);
    sigaction(SIGINT, &sa, NULL);

    UA_ServerConfig config;
    memset(&config, 0, sizeof config);
    config.logging = peer_logger();
    must(UA_ServerConfig_setMinimal(&config, 0, NULL), "configuration");
    /* PubSub needs a server here; it has no clients and accepts none. */
    UA_String_clear(&config.serverUrls[0]);
    config.serverUrls[0] = UA_STRING_ALLOC("opc.tcp://127.0.0.1:0");
    /* On by default. Key frames are what the other side of the comparison sends. */
    config.pubSubConfig.enableDeltaFrames = false;
    UA_Server *server = UA_Server_newWithConfig(&config);
    add_value(server);
    must(UA_Server_run_startup(server), "start");
    UA_NodeId group = add_publisher(server, &o);
    stamp_messages(server, group);
    must(UA_Server_addRepeatedCallback(server, change, NULL, o.update_ms, NULL), "timer");
    if(o.exit_with_stdin)
        must(UA_Server_addRepeatedCallback(server, check_stdin, NULL, 250.0, NULL), "timer");
    must(UA_Server_enableAllPubSubComponents(server), "enable");

    bool is_ready = false;
    UA_PubSubState state = UA_PUBSUBSTATE_OPERATIONAL;
    while(running && state != UA_PUBSUBSTATE_ERROR) {
        UA_Server_run_iterate(server, true);
        /* The library gives up sending by itself, and says so here. */
        must(UA_Server_getWriterGroupState(server, group, &state), "state");
        if(sent && !is_ready) {
            is_ready = true;
            printf("PUBLISHER %u\nREADY %s\n", (unsigned)PUBLISHER_ID, o.url);
            fflush(stdout);
        }
    }
    if(state == UA_PUBSUBSTATE_ERROR)
        fprintf(stderr, "cannot publish to %s on %s\n", o.url, o.interface);
    UA_Server_run_shutdown(server);
    UA_Server_delete(server);
    return state == UA_PUBSUBSTATE_ERROR ? 1 : 0;
}
