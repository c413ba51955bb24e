/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * o6-pubsub-bench: what open62541's publisher costs. So many floats that all change in every cycle,
 * RawData in the periodic fixed layout, one data set per message, over UDP to a socket of this
 * program that counts what comes. The values lie in memory of ours (external value source), which
 * is the cheapest way in which the library takes values from variables. CPU time is that of the
 * library's thread; the counting thread's is not in it. */
#define _GNU_SOURCE
#include "common.h"

#include <open62541/server.h>
#include <open62541/server_config_default.h>
#include <open62541/server_pubsub.h>

#include <arpa/inet.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    const char *host;
    unsigned port, signals, per_message;
    double interval_ms, seconds, warmup;
    int cpu, receiver_cpu;
} Options;

static volatile bool receiving = true;
static volatile unsigned long received;

static void must(UA_StatusCode rc, const char *what) {
    if(rc == UA_STATUSCODE_GOOD)
        return;
    fprintf(stderr, "%s: %s\n", what, UA_StatusCode_name(rc));
    exit(1);
}

static uint64_t thread_cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* --- values -------------------------------------------------------------------------------- */

static unsigned count;
static UA_Float *values;
static UA_DataValue *data_values;
static UA_DataValue **pointers;
static uint64_t state = 0x9e3779b97f4a7c15u;

static void change(UA_Server *server, void *data) {
    (void)server;
    (void)data;
    for(unsigned i = 0; i < count; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        values[i] = (UA_Float)(state >> 40);
    }
}

static UA_NodeId node(unsigned i) { return UA_NODEID_NUMERIC(1, 100000 + i); }

static void add_nodes(UA_Server *server) {
    values = calloc(count, sizeof *values);
    data_values = calloc(count, sizeof *data_values);
    pointers = calloc(count, sizeof *pointers);
    if(!values || !data_values || !pointers)
        exit(1);
    change(server, NULL);
    for(unsigned i = 0; i < count; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%u", i);
        UA_VariableAttributes attr = UA_VariableAttributes_default;
        attr.dataType = UA_TYPES[UA_TYPES_FLOAT].typeId;
        UA_Variant_setScalar(&attr.value, &values[i], &UA_TYPES[UA_TYPES_FLOAT]);
        must(UA_Server_addVariableNode(server, node(i), UA_NODEID_NUMERIC(0, UA_NS0ID_OBJECTSFOLDER),
                                       UA_NODEID_NUMERIC(0, UA_NS0ID_ORGANIZES),
                                       UA_QUALIFIEDNAME(1, name),
                                       UA_NODEID_NUMERIC(0, UA_NS0ID_BASEDATAVARIABLETYPE), attr,
                                       NULL, NULL),
             "add node");
        UA_Variant_setScalar(&data_values[i].value, &values[i], &UA_TYPES[UA_TYPES_FLOAT]);
        data_values[i].value.storageType = UA_VARIANT_DATA_NODELETE;
        data_values[i].hasValue = true;
        pointers[i] = &data_values[i];
        must(UA_Server_setVariableNode_externalValueSource(server, node(i), &pointers[i], NULL),
             "external value");
    }
}

/* --- publisher ------------------------------------------------------------------------------- */

static unsigned add_publisher(UA_Server *server, const Options *o) {
    char url[80];
    snprintf(url, sizeof url, "opc.udp://%s:%u", o->host, o->port);
    UA_PubSubConnectionConfig c;
    memset(&c, 0, sizeof c);
    UA_NetworkAddressUrlDataType address = {UA_STRING_NULL, UA_STRING(url)};
    c.name = UA_STRING("udp");
    c.transportProfileUri =
        UA_STRING("http://opcfoundation.org/UA-Profile/Transport/pubsub-udp-uadp");
    UA_Variant_setScalar(&c.address, &address, &UA_TYPES[UA_TYPES_NETWORKADDRESSURLDATATYPE]);
    c.publisherId.idType = UA_PUBLISHERIDTYPE_UINT16;
    c.publisherId.id.uint16 = 1;
    UA_NodeId connection, group;
    must(UA_Server_addPubSubConnection(server, &c, &connection), "connection");

    UA_UadpWriterGroupMessageDataType settings;
    UA_UadpWriterGroupMessageDataType_init(&settings);
    settings.networkMessageContentMask =
        UA_UADPNETWORKMESSAGECONTENTMASK_PUBLISHERID | UA_UADPNETWORKMESSAGECONTENTMASK_GROUPHEADER |
        UA_UADPNETWORKMESSAGECONTENTMASK_WRITERGROUPID |
        UA_UADPNETWORKMESSAGECONTENTMASK_GROUPVERSION |
        UA_UADPNETWORKMESSAGECONTENTMASK_NETWORKMESSAGENUMBER |
        UA_UADPNETWORKMESSAGECONTENTMASK_SEQUENCENUMBER;
    settings.groupVersion = 1;
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

    unsigned messages = 0;
    for(unsigned first = 0; first < count; first += o->per_message, messages++) {
        char name[16];
        snprintf(name, sizeof name, "set%u", messages);
        UA_PublishedDataSetConfig pds;
        memset(&pds, 0, sizeof pds);
        pds.publishedDataSetType = UA_PUBSUB_DATASET_PUBLISHEDITEMS;
        pds.name = UA_STRING(name);
        UA_NodeId set;
        must(UA_Server_addPublishedDataSet(server, &pds, &set).addResult, "data set");
        for(unsigned i = first; i < count && i < first + o->per_message; i++) {
            UA_DataSetFieldConfig f;
            memset(&f, 0, sizeof f);
            f.dataSetFieldType = UA_PUBSUB_DATASETFIELD_VARIABLE;
            f.field.variable.fieldNameAlias = UA_STRING("s");
            f.field.variable.publishParameters.publishedVariable = node(i);
            f.field.variable.publishParameters.attributeId = UA_ATTRIBUTEID_VALUE;
            must(UA_Server_addDataSetField(server, set, &f, NULL).result, "field");
        }
        UA_UadpDataSetWriterMessageDataType message;
        UA_UadpDataSetWriterMessageDataType_init(&message);
        message.dataSetMessageContentMask = UA_UADPDATASETMESSAGECONTENTMASK_STATUS |
                                            UA_UADPDATASETMESSAGECONTENTMASK_SEQUENCENUMBER;
        UA_DataSetWriterConfig dsw;
        memset(&dsw, 0, sizeof dsw);
        dsw.name = UA_STRING(name);
        dsw.dataSetWriterId = (UA_UInt16)(messages + 1);
        dsw.dataSetFieldContentMask = UA_DATASETFIELDCONTENTMASK_RAWDATA;
        dsw.keyFrameCount = 1;
        UA_ExtensionObject_setValueNoDelete(&dsw.messageSettings, &message,
                                            &UA_TYPES[UA_TYPES_UADPDATASETWRITERMESSAGEDATATYPE]);
        must(UA_Server_addDataSetWriter(server, group, set, &dsw, NULL), "writer");
    }
    return messages;
}

/* --- receiver -------------------------------------------------------------------------------- */

static void *receive(void *argument) {
    const Options *o = argument;
    if(o->receiver_cpu >= 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET((unsigned)o->receiver_cpu, &set);
        sched_setaffinity(0, sizeof set, &set);
    }
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), on = 1, room = 8 << 20;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if(setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room) != 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    struct timeval patience = {.tv_usec = 100000};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)o->port)};
    inet_pton(AF_INET, o->host, &at.sin_addr);
    if(bind(fd, (struct sockaddr *)&at, sizeof at) != 0) {
        perror("bind");
        exit(1);
    }
    static char buffer[65536];
    while(receiving)
        if(recv(fd, buffer, sizeof buffer, 0) > 0)
            received++;
    close(fd);
    return NULL;
}

/* --- main ------------------------------------------------------------------------------------ */

static void run_until(UA_Server *server, uint64_t end) {
    while(peer_now_ns() < end)
        UA_Server_run_iterate(server, true);
}

static int usage(void) {
    fprintf(stderr, "o6-pubsub-bench [--host A.B.C.D] [--port N] [--signals N] [--per-message N]\n"
                    "                [--interval MS] [--seconds S] [--warmup S] [--cpu N]\n"
                    "                [--receiver-cpu N]\n");
    return 2;
}

int main(int argc, char **argv) {
    Options o = {.host = "127.0.0.1", .port = 14860, .signals = 10000, .per_message = 330,
                 .interval_ms = 100, .seconds = 5, .warmup = 1, .cpu = -1, .receiver_cpu = -1};
    static const struct option options[] = {
        {"host", 1, 0, 'h'},   {"port", 1, 0, 'p'},    {"signals", 1, 0, 'n'},
        {"per-message", 1, 0, 'm'}, {"interval", 1, 0, 'i'}, {"seconds", 1, 0, 's'},
        {"warmup", 1, 0, 'w'}, {"cpu", 1, 0, 'c'},     {"receiver-cpu", 1, 0, 'r'},
        {0, 0, 0, 0}};
    for(int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch(c) {
        case 'h': o.host = optarg; break;
        case 'p': o.port = (unsigned)atoi(optarg); break;
        case 'n': o.signals = (unsigned)atoi(optarg); break;
        case 'm': o.per_message = (unsigned)atoi(optarg); break;
        case 'i': o.interval_ms = atof(optarg); break;
        case 's': o.seconds = atof(optarg); break;
        case 'w': o.warmup = atof(optarg); break;
        case 'c': o.cpu = atoi(optarg); break;
        case 'r': o.receiver_cpu = atoi(optarg); break;
        default: return usage();
        }
    }
    if(!o.signals || !o.per_message || o.interval_ms <= 0)
        return usage();
    if(o.cpu >= 0 && !peer_pin(o.cpu))
        return 6;
    count = o.signals;

    UA_ServerConfig config;
    memset(&config, 0, sizeof config);
    config.logging = peer_logger();
    must(UA_ServerConfig_setMinimal(&config, 0, NULL), "configuration");
    /* On by default; RawData forbids delta frames. */
    config.pubSubConfig.enableDeltaFrames = false;
    UA_Server *server = UA_Server_newWithConfig(&config);
    add_nodes(server);
    must(UA_Server_run_startup(server), "start");
    unsigned messages = add_publisher(server, &o);
    must(UA_Server_addRepeatedCallback(server, change, NULL, o.interval_ms, NULL), "timer");
    must(UA_Server_enableAllPubSubComponents(server), "enable");
    /* It tries to listen at the address it sends to, so the receiver comes after it. */
    run_until(server, peer_now_ns() + 200000000u);
    pthread_t thread;
    if(pthread_create(&thread, NULL, receive, &o) != 0)
        return 1;
    run_until(server, peer_now_ns() + (uint64_t)(o.warmup * 1e9));

    uint64_t start = peer_now_ns(), cpu = thread_cpu_ns();
    unsigned long before = received;
    run_until(server, start + (uint64_t)(o.seconds * 1e9));
    uint64_t end = peer_now_ns();
    cpu = thread_cpu_ns() - cpu;
    usleep(1000);
    unsigned long datagrams = received - before;
    receiving = false;
    pthread_join(thread, NULL);

    double window = (double)(end - start) / 1e9;
    double cycles = (double)datagrams / messages, due = window * 1e3 / o.interval_ms;
    printf("{\"tool\": \"o6-pubsub-bench\", \"signals\": %u, \"datagrams_per_cycle\": %u, "
           "\"interval_ms\": %g, \"window_s\": %.6f, \"cycles\": %.2f, \"cycles_due\": %.2f, "
           "\"cycles_missed_percent\": %.3f, \"publisher_cpu_percent\": %.4f, "
           "\"publisher_cpu_ns_per_signal\": %.4f}\n",
           o.signals, messages, o.interval_ms, window, cycles, due,
           due > 0 && cycles < due ? (due - cycles) / due * 100 : 0.0,
           (double)cpu / (double)(end - start) * 100,
           cycles > 0 ? (double)cpu / (cycles * o.signals) : 0.0);
    UA_Server_run_shutdown(server);
    UA_Server_delete(server);
    free(values);
    free(data_values);
    free(pointers);
    return datagrams ? 0 : 1;
}
