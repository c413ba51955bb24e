/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * o6-pubsub: open62541's publisher and subscriber for interop, UADP over UDP. Both sides of the
 * comparison know one data set: count (UInt32), x (Double), flag (Boolean), text (String). */
#define _GNU_SOURCE
#include "common.h"

#include <open62541/plugin/securitypolicy_default.h>
#include <open62541/server.h>
#include <open62541/server_config_default.h>
#include <open62541/server_pubsub.h>

#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIELDS 4
#define PUBLISHER_ID 2234
#define WRITER_GROUP_ID 100
#define DATA_SET_WRITER_ID 62541
#define TOKEN_ID 7
#define TEXT_MAX 16

typedef struct {
    const char *url;
    const char *layout, *mode, *policy;
    const char *after;
    double interval_ms, seconds;
    unsigned count;
} Options;

static volatile UA_Boolean running = true;

static void on_signal(int sig) {
    (void)sig;
    running = false;
}

static const struct {
    char *name;
    unsigned type;
} fields[FIELDS] = {{"count", UA_TYPES_UINT32},
                    {"x", UA_TYPES_DOUBLE},
                    {"flag", UA_TYPES_BOOLEAN},
                    {"text", UA_TYPES_STRING}};

static UA_NodeId field_node(unsigned i) { return UA_NODEID_NUMERIC(1, 50000 + i); }

static void must(UA_StatusCode rc, const char *what) {
    if(rc == UA_STATUSCODE_GOOD)
        return;
    fprintf(stderr, "%s: %s\n", what, UA_StatusCode_name(rc));
    exit(1);
}

/* --- values -------------------------------------------------------------------------------- */

static UA_UInt32 counter;

static void write_values(UA_Server *server) {
    UA_Double x = (UA_Double)counter + 0.5;
    UA_Boolean flag = counter % 2 == 1;
    char buffer[TEXT_MAX + 1];
    snprintf(buffer, sizeof buffer, "t%u", counter);
    UA_String text = UA_STRING(buffer);
    void *data[FIELDS] = {&counter, &x, &flag, &text};
    for(unsigned i = 0; i < FIELDS; i++) {
        UA_Variant v;
        UA_Variant_setScalar(&v, data[i], &UA_TYPES[fields[i].type]);
        must(UA_Server_writeValue(server, field_node(i), v), "write");
    }
}

static void add_nodes(UA_Server *server) {
    for(unsigned i = 0; i < FIELDS; i++) {
        UA_VariableAttributes attr = UA_VariableAttributes_default;
        attr.dataType = UA_TYPES[fields[i].type].typeId;
        attr.accessLevel = UA_ACCESSLEVELMASK_READ | UA_ACCESSLEVELMASK_WRITE;
        void *zero = UA_new(&UA_TYPES[fields[i].type]);
        UA_Variant_setScalar(&attr.value, zero, &UA_TYPES[fields[i].type]);
        must(UA_Server_addVariableNode(server, field_node(i),
                                       UA_NODEID_NUMERIC(0, UA_NS0ID_OBJECTSFOLDER),
                                       UA_NODEID_NUMERIC(0, UA_NS0ID_ORGANIZES),
                                       UA_QUALIFIEDNAME(1, fields[i].name),
                                       UA_NODEID_NUMERIC(0, UA_NS0ID_BASEDATAVARIABLETYPE), attr,
                                       NULL, NULL),
             "add node");
        UA_delete(zero, &UA_TYPES[fields[i].type]);
    }
}

/* --- what both roles configure --------------------------------------------------------------- */

static bool is(const char *a, const char *b) { return strcmp(a, b) == 0; }

static UA_UadpNetworkMessageContentMask network_mask(const Options *o) {
    if(is(o->layout, "fixed"))
        return UA_UADPNETWORKMESSAGECONTENTMASK_PUBLISHERID |
               UA_UADPNETWORKMESSAGECONTENTMASK_GROUPHEADER |
               UA_UADPNETWORKMESSAGECONTENTMASK_WRITERGROUPID |
               UA_UADPNETWORKMESSAGECONTENTMASK_GROUPVERSION |
               UA_UADPNETWORKMESSAGECONTENTMASK_NETWORKMESSAGENUMBER |
               UA_UADPNETWORKMESSAGECONTENTMASK_SEQUENCENUMBER;
    UA_UadpNetworkMessageContentMask mask =
        UA_UADPNETWORKMESSAGECONTENTMASK_PUBLISHERID | UA_UADPNETWORKMESSAGECONTENTMASK_PAYLOADHEADER;
    if(is(o->layout, "full"))
        mask |= UA_UADPNETWORKMESSAGECONTENTMASK_GROUPHEADER |
                UA_UADPNETWORKMESSAGECONTENTMASK_WRITERGROUPID |
                UA_UADPNETWORKMESSAGECONTENTMASK_SEQUENCENUMBER |
                UA_UADPNETWORKMESSAGECONTENTMASK_TIMESTAMP;
    return mask;
}

static UA_UadpDataSetMessageContentMask message_mask(const Options *o) {
    UA_UadpDataSetMessageContentMask mask =
        UA_UADPDATASETMESSAGECONTENTMASK_STATUS | UA_UADPDATASETMESSAGECONTENTMASK_SEQUENCENUMBER;
    if(is(o->layout, "dynamic"))
        mask |= UA_UADPDATASETMESSAGECONTENTMASK_TIMESTAMP |
                UA_UADPDATASETMESSAGECONTENTMASK_MINORVERSION;
    if(is(o->layout, "full"))
        /* Without the MajorVersion, which is a time here: the subscriber would ask for the metadata. */
        mask |= UA_UADPDATASETMESSAGECONTENTMASK_TIMESTAMP |
                UA_UADPDATASETMESSAGECONTENTMASK_MINORVERSION;
    return mask;
}

static UA_DataSetFieldContentMask field_mask(const Options *o) {
    if(is(o->layout, "fixed"))
        return UA_DATASETFIELDCONTENTMASK_RAWDATA;
    if(is(o->layout, "full"))
        return UA_DATASETFIELDCONTENTMASK_STATUSCODE | UA_DATASETFIELDCONTENTMASK_SOURCETIMESTAMP;
    return UA_DATASETFIELDCONTENTMASK_NONE;
}

static UA_MessageSecurityMode security_mode(const Options *o) {
    return is(o->mode, "none")   ? UA_MESSAGESECURITYMODE_NONE
           : is(o->mode, "sign") ? UA_MESSAGESECURITYMODE_SIGN
                                 : UA_MESSAGESECURITYMODE_SIGNANDENCRYPT;
}

/* Keys that everybody here knows: bytes that count up. */
static UA_Byte signing[32], encrypting[32], key_nonce[4];

static void make_keys(void) {
    for(unsigned i = 0; i < 32; i++) {
        signing[i] = (UA_Byte)i;
        encrypting[i] = (UA_Byte)(0x40 + i);
    }
    for(unsigned i = 0; i < 4; i++)
        key_nonce[i] = (UA_Byte)(0xa0 + i);
}

static void keys(const Options *o, UA_ByteString *s, UA_ByteString *e, UA_ByteString *n) {
    *s = (UA_ByteString){32, signing};
    *e = (UA_ByteString){is(o->policy, "aes128") ? 16 : 32, encrypting};
    *n = (UA_ByteString){4, key_nonce};
}

static UA_NodeId add_connection(UA_Server *server, const Options *o) {
    UA_PubSubConnectionConfig c;
    memset(&c, 0, sizeof c);
    UA_NetworkAddressUrlDataType address = {UA_STRING_NULL, UA_STRING((char *)(uintptr_t)o->url)};
    c.name = UA_STRING("udp");
    c.enabled = true;
    c.transportProfileUri =
        UA_STRING("http://opcfoundation.org/UA-Profile/Transport/pubsub-udp-uadp");
    UA_Variant_setScalar(&c.address, &address, &UA_TYPES[UA_TYPES_NETWORKADDRESSURLDATATYPE]);
    c.publisherId.idType = UA_PUBLISHERIDTYPE_UINT16;
    c.publisherId.id.uint16 = PUBLISHER_ID;
    UA_NodeId id;
    must(UA_Server_addPubSubConnection(server, &c, &id), "connection");
    return id;
}

/* --- publisher ------------------------------------------------------------------------------- */

static void publish(UA_Server *server, const Options *o) {
    UA_NodeId connection = add_connection(server, o), set, group;
    printf("READY %s\n", o->url);
    fflush(stdout);
    while(running && o->after && access(o->after, F_OK) != 0)
        usleep(10000);
    UA_PublishedDataSetConfig pds;
    memset(&pds, 0, sizeof pds);
    pds.publishedDataSetType = UA_PUBSUB_DATASET_PUBLISHEDITEMS;
    pds.name = UA_STRING("set");
    must(UA_Server_addPublishedDataSet(server, &pds, &set).addResult, "data set");
    for(unsigned i = 0; i < FIELDS; i++) {
        UA_DataSetFieldConfig f;
        memset(&f, 0, sizeof f);
        f.dataSetFieldType = UA_PUBSUB_DATASETFIELD_VARIABLE;
        f.field.variable.fieldNameAlias = UA_STRING(fields[i].name);
        f.field.variable.maxStringLength = fields[i].type == UA_TYPES_STRING ? TEXT_MAX : 0;
        f.field.variable.publishParameters.publishedVariable = field_node(i);
        f.field.variable.publishParameters.attributeId = UA_ATTRIBUTEID_VALUE;
        must(UA_Server_addDataSetField(server, set, &f, NULL).result, "field");
    }

    UA_UadpWriterGroupMessageDataType settings;
    UA_UadpWriterGroupMessageDataType_init(&settings);
    settings.networkMessageContentMask = network_mask(o);
    settings.groupVersion = 1;
    UA_WriterGroupConfig wg;
    memset(&wg, 0, sizeof wg);
    wg.name = UA_STRING("group");
    /* The cycles are ours, so that every value is sent once; this one never comes. */
    wg.publishingInterval = 3600e3;
    wg.writerGroupId = WRITER_GROUP_ID;
    wg.encodingMimeType = UA_PUBSUB_ENCODING_UADP;
    UA_ExtensionObject_setValueNoDelete(&wg.messageSettings, &settings,
                                        &UA_TYPES[UA_TYPES_UADPWRITERGROUPMESSAGEDATATYPE]);
    wg.securityMode = security_mode(o);
    wg.securityPolicy = UA_Server_getConfig(server)->pubSubConfig.securityPolicies;
    if(wg.securityMode == UA_MESSAGESECURITYMODE_NONE)
        wg.securityPolicy = NULL;
    must(UA_Server_addWriterGroup(server, connection, &wg, &group), "writer group");
    if(wg.securityPolicy) {
        UA_ByteString s, e, n;
        keys(o, &s, &e, &n);
        must(UA_Server_setWriterGroupEncryptionKeys(server, group, TOKEN_ID, s, e, n), "keys");
    }

    UA_UadpDataSetWriterMessageDataType message;
    UA_UadpDataSetWriterMessageDataType_init(&message);
    message.dataSetMessageContentMask = message_mask(o);
    UA_DataSetWriterConfig dsw;
    memset(&dsw, 0, sizeof dsw);
    dsw.name = UA_STRING("writer");
    dsw.dataSetWriterId = DATA_SET_WRITER_ID;
    dsw.dataSetFieldContentMask = field_mask(o);
    dsw.keyFrameCount = 1;
    UA_ExtensionObject_setValueNoDelete(&dsw.messageSettings, &message,
                                        &UA_TYPES[UA_TYPES_UADPDATASETWRITERMESSAGEDATATYPE]);
    must(UA_Server_addDataSetWriter(server, group, set, &dsw, NULL), "writer");
    write_values(server);
    must(UA_Server_enableAllPubSubComponents(server), "enable");

    uint64_t next = peer_now_ns();
    for(unsigned sent = 0; running && sent < o->count; sent++) {
        /* Time for the loop to open the socket and to send. */
        do
            UA_Server_run_iterate(server, false);
        while(peer_now_ns() < next && usleep(200) == 0);
        next += (uint64_t)(o->interval_ms * 1e6);
        counter++;
        write_values(server);
        must(UA_Server_triggerWriterGroupPublish(server, group), "publish");
    }
    for(unsigned i = 0; i < 20; i++) {
        UA_Server_run_iterate(server, false);
        usleep(1000);
    }
    printf("PUBLISHED %u\n", counter);
}

/* --- subscriber ------------------------------------------------------------------------------ */

static void print_values(UA_Server *server) {
    UA_Variant v[FIELDS];
    for(unsigned i = 0; i < FIELDS; i++)
        must(UA_Server_readValue(server, field_node(i), &v[i]), "read");
    UA_UInt32 count = *(UA_UInt32 *)v[0].data;
    if(count != counter) {
        counter = count;
        UA_String *text = v[3].data;
        printf("%u %.1f %s %.*s\n", count, *(UA_Double *)v[1].data,
               *(UA_Boolean *)v[2].data ? "true" : "false", (int)text->length, (char *)text->data);
        fflush(stdout);
    }
    for(unsigned i = 0; i < FIELDS; i++)
        UA_Variant_clear(&v[i]);
}

static void subscribe(UA_Server *server, const Options *o) {
    UA_NodeId connection = add_connection(server, o), group, reader;
    UA_ReaderGroupConfig rg;
    memset(&rg, 0, sizeof rg);
    rg.name = UA_STRING("group");
    rg.encodingMimeType = UA_PUBSUB_ENCODING_UADP;
    rg.securityMode = security_mode(o);
    rg.securityPolicy = UA_Server_getConfig(server)->pubSubConfig.securityPolicies;
    if(rg.securityMode == UA_MESSAGESECURITYMODE_NONE)
        rg.securityPolicy = NULL;
    must(UA_Server_addReaderGroup(server, connection, &rg, &group), "reader group");
    if(rg.securityPolicy) {
        UA_ByteString s, e, n;
        keys(o, &s, &e, &n);
        must(UA_Server_setReaderGroupEncryptionKeys(server, group, TOKEN_ID, s, e, n), "keys");
    }

    UA_FieldMetaData meta[FIELDS];
    for(unsigned i = 0; i < FIELDS; i++) {
        UA_FieldMetaData_init(&meta[i]);
        meta[i].name = UA_STRING(fields[i].name);
        meta[i].dataType = UA_TYPES[fields[i].type].typeId;
        meta[i].builtInType = (UA_Byte)(UA_TYPES[fields[i].type].typeKind + 1);
        meta[i].valueRank = -1;
        meta[i].maxStringLength = fields[i].type == UA_TYPES_STRING ? TEXT_MAX : 0;
    }
    UA_UadpDataSetReaderMessageDataType message;
    UA_UadpDataSetReaderMessageDataType_init(&message);
    message.networkMessageContentMask = network_mask(o);
    message.dataSetMessageContentMask = message_mask(o);
    UA_DataSetReaderConfig dsr;
    memset(&dsr, 0, sizeof dsr);
    dsr.name = UA_STRING("reader");
    dsr.publisherId.idType = UA_PUBLISHERIDTYPE_UINT16;
    dsr.publisherId.id.uint16 = PUBLISHER_ID;
    dsr.writerGroupId = WRITER_GROUP_ID;
    dsr.dataSetWriterId = DATA_SET_WRITER_ID;
    dsr.dataSetFieldContentMask = field_mask(o);
    dsr.dataSetMetaData.name = UA_STRING("set");
    dsr.dataSetMetaData.fieldsSize = FIELDS;
    dsr.dataSetMetaData.fields = meta;
    UA_ExtensionObject_setValueNoDelete(&dsr.messageSettings, &message,
                                        &UA_TYPES[UA_TYPES_UADPDATASETREADERMESSAGEDATATYPE]);
    must(UA_Server_addDataSetReader(server, group, &dsr, &reader), "reader");
    UA_FieldTargetDataType targets[FIELDS];
    for(unsigned i = 0; i < FIELDS; i++) {
        UA_FieldTargetDataType_init(&targets[i]);
        targets[i].attributeId = UA_ATTRIBUTEID_VALUE;
        targets[i].targetNodeId = field_node(i);
    }
    must(UA_Server_setDataSetReaderTargetVariables(server, reader, FIELDS, targets), "targets");
    must(UA_Server_enableAllPubSubComponents(server), "enable");

    uint64_t end = peer_now_ns() + (uint64_t)(o->seconds * 1e9);
    bool ready = false;
    while(running && peer_now_ns() < end && counter < o->count) {
        UA_Server_run_iterate(server, false);
        print_values(server);
        if(!ready) {
            ready = true;
            printf("READY %s\n", o->url);
            fflush(stdout);
        }
        usleep(200);
    }
}

/* --- main ------------------------------------------------------------------------------------ */

static int usage(void) {
    fprintf(stderr,
            "o6-pubsub publish|subscribe --url opc.udp://HOST:PORT [--layout dynamic|fixed|full]\n"
            "          [--mode none|sign|encrypt] [--policy aes128|aes256] [--interval MS]\n"
            "          [--count N] [--seconds S] [--after FILE] [--verbose]\n"
            "A publisher tries to listen at its own address when it starts, so it has to start before\n"
            "a subscriber on the same host; with --after it publishes once there is such a file.\n");
    return 2;
}

int main(int argc, char **argv) {
    Options o = {.layout = "dynamic", .mode = "none", .policy = "aes256", .interval_ms = 10,
                 .seconds = 10, .count = 100};
    static const struct option options[] = {
        {"url", 1, 0, 'u'},   {"layout", 1, 0, 'l'},  {"mode", 1, 0, 'm'},
        {"policy", 1, 0, 'p'}, {"interval", 1, 0, 'i'}, {"count", 1, 0, 'c'},
        {"seconds", 1, 0, 's'}, {"after", 1, 0, 'a'}, {"verbose", 0, 0, 'v'}, {0, 0, 0, 0}};
    if(argc < 2)
        return usage();
    bool publishes = is(argv[1], "publish");
    if(!publishes && !is(argv[1], "subscribe"))
        return usage();
    for(int c; (c = getopt_long(argc - 1, argv + 1, "", options, NULL)) != -1;) {
        switch(c) {
        case 'u': o.url = optarg; break;
        case 'l': o.layout = optarg; break;
        case 'm': o.mode = optarg; break;
        case 'p': o.policy = optarg; break;
        case 'i': o.interval_ms = atof(optarg); break;
        case 'c': o.count = (unsigned)atoi(optarg); break;
        case 's': o.seconds = atof(optarg); break;
        case 'a': o.after = optarg; break;
        case 'v': peer_log_level = UA_LOGLEVEL_INFO; break;
        default: return usage();
        }
    }
    if(!o.url)
        return usage();
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);

    UA_ServerConfig config;
    memset(&config, 0, sizeof config);
    config.logging = peer_logger();
    /* PubSub needs a server here; no client connects to it. */
    must(UA_ServerConfig_setMinimal(&config, 0, NULL), "configuration");
    UA_PubSubSecurityPolicy policy;
    memset(&policy, 0, sizeof policy);
    must(is(o.policy, "aes128") ? UA_PubSubSecurityPolicy_Aes128Ctr(&policy, config.logging)
                                : UA_PubSubSecurityPolicy_Aes256Ctr(&policy, config.logging),
         "policy");
    config.pubSubConfig.securityPolicies = UA_malloc(sizeof policy);
    config.pubSubConfig.securityPolicies[0] = policy;
    config.pubSubConfig.securityPoliciesSize = 1;
    /* On by default. Then it sends delta frames whatever the KeyFrameCount, and fails where RawData
     * forbids them. */
    config.pubSubConfig.enableDeltaFrames = !is(o.layout, "fixed");
    UA_Server *server = UA_Server_newWithConfig(&config);
    make_keys();
    add_nodes(server);
    must(UA_Server_run_startup(server), "start");
    if(publishes)
        publish(server, &o);
    else
        subscribe(server, &o);
    UA_Server_run_shutdown(server);
    UA_Server_delete(server);
    return 0;
}
