/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * o6-server: an open62541 server for comparison and interop. N numeric variables that change
 * together every MS milliseconds, and the interop test node set. */
#define _GNU_SOURCE
#include "common.h"
#include "history.h"
#include "testnodes.h"

#include <open62541/plugin/accesscontrol_default.h>
#include <open62541/plugin/certificategroup_default.h>
#include <open62541/server.h>
#include <open62541/server_config_default.h>

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define APPLICATION_URI "urn:taktwerk:peer:open62541:server"
#define FIRST_SIGNAL 100000u
#define SIGNAL_FOLDER 99999u

typedef struct {
    unsigned port, variables, max_sessions, events, history;
    double update_ms;
    bool secure, trust_all, exit_with_stdin, external_values, time_values;
    const char *bind, *cert, *key, *trust;
} Options;

static volatile UA_Boolean running = true;

static void on_signal(int sig) {
    (void)sig;
    running = false;
}

/* --- signals ------------------------------------------------------------------------------- */

static struct {
    unsigned count;
    double tick;
    /* Values are the time of their write, in seconds since 1970. */
    bool time_values;
    /* With --values external the server reads straight from here; otherwise unused. */
    UA_Double *value;
    UA_DataValue *data;
    UA_DataValue **slot;
} signals;

static void fill_value(UA_DataValue *dv, UA_Double *storage, UA_DateTime now) {
    UA_Variant_setScalar(&dv->value, storage, &UA_TYPES[UA_TYPES_DOUBLE]);
    dv->value.storageType = UA_VARIANT_DATA_NODELETE;
    dv->hasValue = true;
    dv->sourceTimestamp = now;
    dv->hasSourceTimestamp = true;
}

static double next_value(unsigned i, UA_DateTime *now) {
    if(!signals.time_values)
        return signals.tick + (double)i;
    *now = UA_DateTime_now();
    return (double)(*now - UA_DATETIME_UNIX_EPOCH) / UA_DATETIME_SEC;
}

static void write_signals(UA_Server *server, void *data) {
    (void)data;
    UA_DateTime now = UA_DateTime_now();
    signals.tick += 1.0;
    if(signals.data) {
        for(unsigned i = 0; i < signals.count; i++) {
            signals.value[i] = next_value(i, &now);
            signals.data[i].sourceTimestamp = now;
        }
        return;
    }
    UA_Double v;
    UA_DataValue dv;
    UA_DataValue_init(&dv);
    fill_value(&dv, &v, now);
    for(unsigned i = 0; i < signals.count; i++) {
        v = next_value(i, &now);
        dv.sourceTimestamp = now;
        UA_Server_writeDataValue(server, UA_NODEID_NUMERIC(1, FIRST_SIGNAL + i), dv);
    }
}

static void add_signals(UA_Server *server, const Options *o) {
    UA_ObjectAttributes folder = UA_ObjectAttributes_default;
    folder.displayName = UA_LOCALIZEDTEXT("", "signals");
    UA_NodeId parent = UA_NODEID_NUMERIC(1, SIGNAL_FOLDER);
    UA_Server_addObjectNode(server, parent, UA_NS0ID(OBJECTSFOLDER), UA_NS0ID(ORGANIZES),
                            UA_QUALIFIEDNAME(1, "signals"), UA_NS0ID(FOLDERTYPE), folder, NULL,
                            NULL);

    signals.count = o->variables;
    signals.time_values = o->time_values;
    if(o->external_values && o->variables > 0) {
        signals.value = calloc(o->variables, sizeof *signals.value);
        signals.data = calloc(o->variables, sizeof *signals.data);
        signals.slot = calloc(o->variables, sizeof *signals.slot);
    }

    UA_VariableAttributes attr = UA_VariableAttributes_default;
    UA_Double zero = 0;
    UA_Variant_setScalar(&attr.value, &zero, &UA_TYPES[UA_TYPES_DOUBLE]);
    attr.dataType = UA_TYPES[UA_TYPES_DOUBLE].typeId;
    attr.valueRank = UA_VALUERANK_SCALAR;
    attr.accessLevel = UA_ACCESSLEVELMASK_READ | UA_ACCESSLEVELMASK_WRITE;
    for(unsigned i = 0; i < o->variables; i++) {
        char name[24];
        snprintf(name, sizeof name, "signal%u", i);
        attr.displayName = UA_LOCALIZEDTEXT("", name);
        UA_NodeId id = UA_NODEID_NUMERIC(1, FIRST_SIGNAL + i);
        UA_StatusCode rc = UA_Server_addVariableNode(
            server, id, parent, UA_NS0ID(HASCOMPONENT), UA_QUALIFIEDNAME(1, name),
            UA_NS0ID(BASEDATAVARIABLETYPE), attr, NULL, NULL);
        if(rc == UA_STATUSCODE_GOOD && signals.data) {
            signals.value[i] = (double)i;
            fill_value(&signals.data[i], &signals.value[i], UA_DateTime_now());
            signals.slot[i] = &signals.data[i];
            rc = UA_Server_setVariableNode_externalValueSource(server, id, &signals.slot[i], NULL);
        }
        if(rc != UA_STATUSCODE_GOOD) {
            fprintf(stderr, "cannot add signal %u: %s\n", i, UA_StatusCode_name(rc));
            exit(1);
        }
    }
    /* Values with a source timestamp from the start, so that the first sample has one too. */
    write_signals(server, NULL);
    if(o->update_ms > 0)
        UA_Server_addRepeatedCallback(server, write_signals, NULL, o->update_ms, NULL);
}

/* --- test node set --------------------------------------------------------------------------- */

static UA_UInt16 ns;
static UA_UInt32 counter;

static UA_NodeId sid(const char *s) {
    return UA_NODEID_STRING(ns, (char *)(uintptr_t)s);
}

static const char *last_part(const char *id) {
    const char *slash = strrchr(id, '/');
    return slash ? slash + 1 : id;
}

static void must(UA_StatusCode rc, const char *what) {
    if(rc != UA_STATUSCODE_GOOD) {
        fprintf(stderr, "cannot add %s: %s\n", what, UA_StatusCode_name(rc));
        exit(1);
    }
}

static void add_object(UA_Server *server, const char *id, UA_NodeId parent, UA_NodeId type) {
    UA_ObjectAttributes attr = UA_ObjectAttributes_default;
    char *name = (char *)(uintptr_t)last_part(id);
    attr.displayName = UA_LOCALIZEDTEXT("", name);
    must(UA_Server_addObjectNode(server, sid(id), parent, UA_NS0ID(ORGANIZES),
                                 UA_QUALIFIEDNAME(ns, name), type, attr, NULL, NULL),
         id);
}

/* Takes over `value`. */
static void add_variable(UA_Server *server, const char *id, const char *parent, UA_Variant value,
                         UA_NodeId data_type, UA_Int32 rank, UA_Byte access, UA_NodeId type) {
    UA_VariableAttributes attr = UA_VariableAttributes_default;
    char *name = (char *)(uintptr_t)last_part(id);
    /* Zero is a dimension of any length: writes of longer and shorter arrays are welcome. */
    UA_UInt32 dims[2] = {rank == 2 ? 2 : 0, 3};
    attr.displayName = UA_LOCALIZEDTEXT("", name);
    attr.value = value;
    attr.dataType = data_type;
    attr.valueRank = rank;
    attr.accessLevel = access;
    if(rank > 0) {
        attr.arrayDimensions = dims;
        attr.arrayDimensionsSize = (size_t)rank;
    }
    must(UA_Server_addVariableNode(server, sid(id), sid(parent), UA_NS0ID(HASCOMPONENT),
                                   UA_QUALIFIEDNAME(ns, name), type, attr, NULL, NULL),
         id);
    UA_Variant_clear(&value);
}

static UA_Variant int32(UA_Int32 v) {
    UA_Variant out;
    UA_Variant_setScalarCopy(&out, &v, &UA_TYPES[UA_TYPES_INT32]);
    return out;
}

static void count_up(UA_Server *server, void *data) {
    (void)data;
    counter++;
    UA_DataValue dv;
    UA_DataValue_init(&dv);
    UA_Variant_setScalar(&dv.value, &counter, &UA_TYPES[UA_TYPES_UINT32]);
    dv.hasValue = true;
    dv.sourceTimestamp = UA_DateTime_now();
    dv.hasSourceTimestamp = true;
    UA_Server_writeDataValue(server, sid("counter"), dv);
}

#define METHOD(NAME)                                                                               \
    static UA_StatusCode NAME(UA_Server *server, const UA_NodeId *session, void *session_context, \
                              const UA_NodeId *method, void *method_context,                       \
                              const UA_NodeId *object, void *object_context, size_t in_size,       \
                              const UA_Variant *in, size_t out_size, UA_Variant *out)
#define UNUSED_ARGUMENTS                                                                           \
    (void)server, (void)session, (void)session_context, (void)method, (void)method_context,       \
        (void)object, (void)object_context, (void)in_size, (void)in, (void)out_size, (void)out

METHOD(method_add) {
    UNUSED_ARGUMENTS;
    UA_Int64 wide = (UA_Int64)*(UA_Int32 *)in[0].data + *(UA_Int32 *)in[1].data;
    UA_Int32 sum = (UA_Int32)(UA_UInt32)wide; /* wraps, as the test node set says */
    return UA_Variant_setScalarCopy(out, &sum, &UA_TYPES[UA_TYPES_INT32]);
}

METHOD(method_hello) {
    UNUSED_ARGUMENTS;
    UA_String text = UA_STRING_NULL;
    UA_StatusCode rc = UA_String_format(&text, "Hello, %S!", *(UA_String *)in[0].data);
    if(rc == UA_STATUSCODE_GOOD)
        rc = UA_Variant_setScalarCopy(out, &text, &UA_TYPES[UA_TYPES_STRING]);
    UA_String_clear(&text);
    return rc;
}

METHOD(method_none) {
    UNUSED_ARGUMENTS;
    return UA_STATUSCODE_GOOD;
}

METHOD(method_fail) {
    UNUSED_ARGUMENTS;
    return UA_STATUSCODE_BADINVALIDSTATE;
}

static UA_Argument argument(const char *name, size_t type) {
    UA_Argument a;
    UA_Argument_init(&a);
    a.name = UA_STRING((char *)(uintptr_t)name);
    a.dataType = UA_TYPES[type].typeId;
    a.valueRank = UA_VALUERANK_SCALAR;
    return a;
}

static void add_method(UA_Server *server, const char *id, UA_MethodCallback cb, size_t ins,
                       const UA_Argument *in, size_t outs, const UA_Argument *out) {
    UA_MethodAttributes attr = UA_MethodAttributes_default;
    char *name = (char *)(uintptr_t)last_part(id);
    attr.displayName = UA_LOCALIZEDTEXT("", name);
    attr.executable = true;
    attr.userExecutable = true;
    must(UA_Server_addMethodNode(server, sid(id), sid("methods"), UA_NS0ID(HASCOMPONENT),
                                 UA_QUALIFIEDNAME(ns, name), attr, cb, ins, in, outs, out, NULL,
                                 NULL),
         id);
}

static void add_test_nodes(UA_Server *server) {
    const UA_Byte rw = UA_ACCESSLEVELMASK_READ | UA_ACCESSLEVELMASK_WRITE;
    const UA_NodeId plain = UA_NS0ID(BASEDATAVARIABLETYPE);
    UA_Variant v;
    char id[64];

    ns = UA_Server_addNamespace(server, TN_URI);
    add_object(server, "interop", UA_NS0ID(OBJECTSFOLDER), UA_NS0ID(FOLDERTYPE));
    const char *const folders[] = {"scalar", "array", "matrix", "struct"};
    for(size_t i = 0; i < 4; i++)
        add_object(server, folders[i], sid("interop"), UA_NS0ID(FOLDERTYPE));

    for(size_t t = 0; t < TN_TYPES; t++) {
        snprintf(id, sizeof id, "scalar/%s", tn_names[t]);
        tn_scalar(t, ns, &v);
        add_variable(server, id, "scalar", v, tn_data_type(t),
                     t == TN_VARIANT ? UA_VALUERANK_ANY : UA_VALUERANK_SCALAR, rw, plain);
        snprintf(id, sizeof id, "array/%s", tn_names[t]);
        tn_array(t, ns, &v);
        add_variable(server, id, "array", v, tn_data_type(t), UA_VALUERANK_ONE_DIMENSION, rw,
                     plain);
    }
    tn_matrix(&v);
    add_variable(server, "matrix/Double", "matrix", v, UA_TYPES[UA_TYPES_DOUBLE].typeId, 2, rw,
                 plain);
    tn_range(&v);
    add_variable(server, "struct/Range", "struct", v, UA_TYPES[UA_TYPES_RANGE].typeId,
                 UA_VALUERANK_SCALAR, rw, plain);
    tn_unit(&v);
    add_variable(server, "struct/EUInformation", "struct", v,
                 UA_TYPES[UA_TYPES_EUINFORMATION].typeId, UA_VALUERANK_SCALAR, rw, plain);

    const UA_NodeId int32_type = UA_TYPES[UA_TYPES_INT32].typeId;
    add_variable(server, "the.answer", "interop", int32(43), int32_type, UA_VALUERANK_SCALAR, rw,
                 plain);
    add_variable(server, "readonly", "interop", int32(17), int32_type, UA_VALUERANK_SCALAR,
                 UA_ACCESSLEVELMASK_READ, plain);
    add_variable(server, "writeonly", "interop", int32(0), int32_type, UA_VALUERANK_SCALAR,
                 UA_ACCESSLEVELMASK_WRITE, plain);
    UA_Variant_setScalarCopy(&v, &counter, &UA_TYPES[UA_TYPES_UINT32]);
    add_variable(server, "counter", "interop", v, UA_TYPES[UA_TYPES_UINT32].typeId,
                 UA_VALUERANK_SCALAR, UA_ACCESSLEVELMASK_READ, plain);
    UA_Server_addRepeatedCallback(server, count_up, NULL, 100.0, NULL);

    /* An instance of AnalogItemType brings its mandatory EURange along under an id of the
     * library's choosing; the test node set names that id, so begin the node, add the property
     * ourselves and only then let the library finish it. */
    UA_VariableAttributes attr = UA_VariableAttributes_default;
    UA_Double half = 50.0;
    attr.displayName = UA_LOCALIZEDTEXT("", "analog");
    UA_Variant_setScalar(&attr.value, &half, &UA_TYPES[UA_TYPES_DOUBLE]);
    attr.dataType = UA_TYPES[UA_TYPES_DOUBLE].typeId;
    attr.valueRank = UA_VALUERANK_SCALAR;
    attr.accessLevel = rw;
    must(UA_Server_addNode_begin(server, UA_NODECLASS_VARIABLE, sid("analog"), sid("interop"),
                                 UA_NS0ID(HASCOMPONENT), UA_QUALIFIEDNAME(ns, "analog"),
                                 UA_NS0ID(ANALOGITEMTYPE), &attr,
                                 &UA_TYPES[UA_TYPES_VARIABLEATTRIBUTES], NULL, NULL),
         "analog");
    UA_VariableAttributes range = UA_VariableAttributes_default;
    tn_range(&v);
    range.displayName = UA_LOCALIZEDTEXT("", "EURange");
    range.value = v;
    range.dataType = UA_TYPES[UA_TYPES_RANGE].typeId;
    range.valueRank = UA_VALUERANK_SCALAR;
    range.accessLevel = rw;
    must(UA_Server_addVariableNode(server, sid("analog/EURange"), sid("analog"),
                                   UA_NS0ID(HASPROPERTY), UA_QUALIFIEDNAME(0, "EURange"),
                                   UA_NS0ID(PROPERTYTYPE), range, NULL, NULL),
         "analog/EURange");
    UA_Variant_clear(&v);
    must(UA_Server_addNode_finish(server, sid("analog")), "analog");

    add_object(server, "methods", sid("interop"), UA_NS0ID(BASEOBJECTTYPE));
    UA_Argument ab[2] = {argument("a", UA_TYPES_INT32), argument("b", UA_TYPES_INT32)};
    UA_Argument sum = argument("sum", UA_TYPES_INT32);
    UA_Argument name = argument("name", UA_TYPES_STRING);
    UA_Argument greeting = argument("greeting", UA_TYPES_STRING);
    add_method(server, "method/add", method_add, 2, ab, 1, &sum);
    add_method(server, "method/hello", method_hello, 1, &name, 1, &greeting);
    add_method(server, "method/none", method_none, 0, NULL, 0, NULL);
    add_method(server, "method/fail", method_fail, 0, NULL, 0, NULL);
}

/* --- configuration --------------------------------------------------------------------------- */

static void replace(UA_String *s, const char *text) {
    UA_String_clear(s);
    *s = UA_STRING_ALLOC(text);
}

static bool add_security(UA_ServerConfig *config, const Options *o) {
    UA_ByteString cert, key;
    if(!peer_certificate(o->cert, o->key, APPLICATION_URI, &cert, &key))
        return false;
    UA_StatusCode rc = UA_STATUSCODE_GOOD;
    if(!o->trust_all) {
        UA_TrustListDataType list;
        UA_TrustListDataType_init(&list);
        UA_ByteString trusted = UA_BYTESTRING_NULL;
        if(o->trust && !peer_read_file(o->trust, &trusted))
            return false;
        list.specifiedLists = UA_TRUSTLISTMASKS_ALL;
        list.trustedCertificates = &trusted;
        list.trustedCertificatesSize = o->trust ? 1 : 0;
        config->secureChannelPKI.clear(&config->secureChannelPKI);
        UA_NodeId group =
            UA_NS0ID(SERVERCONFIGURATION_CERTIFICATEGROUPS_DEFAULTAPPLICATIONGROUP);
        rc = UA_CertificateGroup_Memorystore(&config->secureChannelPKI, &group, &list,
                                             config->logging, NULL);
        UA_ByteString_clear(&trusted);
    }
    if(rc == UA_STATUSCODE_GOOD)
        rc = UA_ServerConfig_addAllSecurityPolicies(config, &cert, &key);
    /* The library leaves these out of "all"; whether they are offered depends on the certificate. */
    if(rc == UA_STATUSCODE_GOOD) {
        UA_ServerConfig_addSecurityPolicyEccNistP256(config, &cert, &key);
        UA_ServerConfig_addSecurityPolicyEccNistP384(config, &cert, &key);
    }
    UA_ByteString_clear(&cert);
    UA_ByteString_clear(&key);
    if(rc != UA_STATUSCODE_GOOD)
        fprintf(stderr, "cannot set up security: %s\n", UA_StatusCode_name(rc));
    return rc == UA_STATUSCODE_GOOD;
}

static UA_Server *new_server(const Options *o) {
    UA_ServerConfig config;
    memset(&config, 0, sizeof config);
    config.logging = peer_logger();
    if(UA_ServerConfig_setBasics_withPort(&config, (UA_UInt16)o->port) != UA_STATUSCODE_GOOD)
        return NULL;

    char url[128];
    snprintf(url, sizeof url, "opc.tcp://%s:%u", o->bind, o->port);
    replace(&config.serverUrls[0], url);
    replace(&config.applicationDescription.applicationUri, APPLICATION_URI);

    /* Deprecated policies come along with "all": a test of another stack needs them. */
    if(o->secure ? !add_security(&config, o)
                 : UA_ServerConfig_addSecurityPolicyNone(&config, NULL) != UA_STATUSCODE_GOOD)
        return NULL;

    UA_UsernamePasswordLogin users[2] = {{UA_STRING("user1"), UA_STRING("password")},
                                         {UA_STRING("user2"), UA_STRING("password1")}};
    config.allowNonePolicyPassword = true;
    if(UA_AccessControl_default(&config, true, NULL, 2, users) != UA_STATUSCODE_GOOD ||
       UA_ServerConfig_addAllEndpoints(&config) != UA_STATUSCODE_GOOD)
        return NULL;

    /* Limits so high that the library itself is what is measured. */
    config.maxSecureChannels = (UA_UInt16)(o->max_sessions + 100 > 65000 ? 65000
                                                                        : o->max_sessions + 100);
    config.maxSessions = (UA_UInt16)(o->max_sessions > 65000 ? 65000 : o->max_sessions);
    config.maxSubscriptions = 0;
    config.maxSubscriptionsPerSession = 0;
    config.maxMonitoredItems = 0;
    config.maxMonitoredItemsPerSubscription = 0;
    config.publishingIntervalLimits.min = 1.0;
    config.samplingIntervalLimits.min = 1.0;
    config.queueSizeLimits.max = 100000;
    /* Zero would mean "no limit" in the protocol, but this library then sends nothing. */
    config.maxNotificationsPerPublish = 10000000;
    config.maxPublishReqPerSession = 10000;
    /* The default is unlimited, which a client that never acknowledges could turn into a leak. */
    config.maxRetransmissionQueueSize = 100;
    if(o->history > 0)
        history_configure(&config);
    return UA_Server_newWithConfig(&config);
}

/* --- command line ---------------------------------------------------------------------------- */

/* Diagnostics are a build-time choice of the library, so a second build of this program stands
 * beside the first one. */
static void run_without_diagnostics(char **argv) {
#ifdef UA_ENABLE_DIAGNOSTICS
    char self[PATH_MAX], other[PATH_MAX + 32];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if(n > 0) {
        self[n] = 0;
        snprintf(other, sizeof other, "%s/o6-server-nodiag", dirname(self));
        execv(other, argv);
    }
    fprintf(stderr, "cannot start o6-server-nodiag: %s\n", strerror(errno));
    exit(1);
#else
    (void)argv;
#endif
}

static void usage(FILE *f) {
    fputs("o6-server [--port P] [--bind ADDR] [--variables N] [--update MS] [--type double]\n"
          "          [--values write|external] [--signal-values count|time] [--policies none|all] [--cert FILE --key FILE]\n"
          "          [--trust FILE | --trust-all] [--max-sessions N] [--no-diagnostics]\n"
          "          [--events N] [--history N] [--exit-with-stdin] [--cpu N] [--verbose]\n",
          f);
}

static Options parse(int argc, char **argv) {
    enum { PORT = 1, BIND, VARIABLES, UPDATE, TYPE, VALUES, SIGNAL_VALUES, POLICIES, CERT, KEY, TRUST, TRUST_ALL,
           SESSIONS, NO_DIAG, STDIN, CPU, VERBOSE, EVENTS, HISTORY, HELP };
    static const struct option names[] = {
        {"port", 1, 0, PORT},           {"bind", 1, 0, BIND},
        {"variables", 1, 0, VARIABLES}, {"update", 1, 0, UPDATE},
        {"type", 1, 0, TYPE},           {"values", 1, 0, VALUES},
        {"signal-values", 1, 0, SIGNAL_VALUES},
        {"policies", 1, 0, POLICIES},   {"cert", 1, 0, CERT},
        {"key", 1, 0, KEY},             {"trust", 1, 0, TRUST},
        {"trust-all", 0, 0, TRUST_ALL}, {"max-sessions", 1, 0, SESSIONS},
        {"no-diagnostics", 0, 0, NO_DIAG}, {"exit-with-stdin", 0, 0, STDIN},
        {"cpu", 1, 0, CPU},             {"verbose", 0, 0, VERBOSE},
        {"events", 1, 0, EVENTS},       {"history", 1, 0, HISTORY},
        {"help", 0, 0, HELP},
        {0, 0, 0, 0}};
    Options o = {.port = 4840, .variables = 0, .max_sessions = 10000, .update_ms = 0,
                 .bind = "127.0.0.1"};
    bool no_diagnostics = false;
    for(int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        switch(c) {
        case PORT: o.port = (unsigned)atoi(optarg); break;
        case BIND: o.bind = optarg; break;
        case VARIABLES: o.variables = (unsigned)atoi(optarg); break;
        case UPDATE: o.update_ms = atof(optarg); break;
        case TYPE:
            if(strcmp(optarg, "double") != 0) {
                fprintf(stderr, "--type: only double is implemented\n");
                exit(2);
            }
            break;
        case VALUES: o.external_values = strcmp(optarg, "external") == 0; break;
        case SIGNAL_VALUES: o.time_values = strcmp(optarg, "time") == 0; break;
        case POLICIES: o.secure = strcmp(optarg, "all") == 0; break;
        case CERT: o.cert = optarg; break;
        case KEY: o.key = optarg; break;
        case TRUST: o.trust = optarg; break;
        case TRUST_ALL: o.trust_all = true; break;
        case SESSIONS: o.max_sessions = (unsigned)atoi(optarg); break;
        case NO_DIAG: no_diagnostics = true; break;
        case STDIN: o.exit_with_stdin = true; break;
        case CPU: peer_pin(atoi(optarg)); break;
        case EVENTS: o.events = (unsigned)atoi(optarg); break;
        case HISTORY: o.history = (unsigned)atoi(optarg); break;
        case VERBOSE: peer_log_level = UA_LOGLEVEL_INFO; break;
        case HELP: usage(stdout); exit(0);
        default: usage(stderr); exit(2);
        }
    }
    if(no_diagnostics)
        run_without_diagnostics(argv);
    if(o.port == 0)
        o.port = peer_free_port();
    return o;
}

static void check_stdin(UA_Server *server, void *data) {
    (void)server;
    (void)data;
    struct pollfd p = {.fd = 0, .events = POLLIN};
    char sink[256];
    if(poll(&p, 1, 0) > 0 && read(0, sink, sizeof sink) <= 0)
        running = false;
}

/* As `taktwerk serve --events`: so many each second, with severities of 300 and 700 in turn. */
#define EVENTS_EVERY_MS 10.0

static void raise_events(UA_Server *server, void *data) {
    const Options *o = data;
    static unsigned long cycle, raised;
    unsigned long due = (unsigned long)((double)++cycle * EVENTS_EVERY_MS * o->events / 1e3);
    for(; raised < due; raised++) {
        char text[32];
        snprintf(text, sizeof text, "event %lu", raised);
        UA_StatusCode rc =
            UA_Server_createEvent(server, UA_NS0ID(SERVER), UA_NS0ID(BASEEVENTTYPE), raised % 2 ? 700 : 300,
                                  UA_LOCALIZEDTEXT("", text), NULL, NULL, NULL);
        if(rc != UA_STATUSCODE_GOOD) {
            fprintf(stderr, "an event cannot be raised: %s\n", UA_StatusCode_name(rc));
            exit(1);
        }
    }
}

int main(int argc, char **argv) {
    Options o = parse(argc, argv);
    struct sigaction sa = {.sa_handler = on_signal};
    sigaction(SIGTERM, &sa, NULL);
    sigaction(SIGINT, &sa, NULL);
    signal(SIGPIPE, SIG_IGN);
    peer_raise_file_limit();

    UA_Server *server = new_server(&o);
    if(!server) {
        fprintf(stderr, "cannot configure the server\n");
        return 1;
    }
    add_test_nodes(server);
    add_signals(server, &o);
    UA_StatusCode recorded = o.history > 0 ? history_add(server, o.history) : UA_STATUSCODE_GOOD;
    if(recorded != UA_STATUSCODE_GOOD) {
        fprintf(stderr, "cannot add a history: %s\n", UA_StatusCode_name(recorded));
        return 1;
    }
    if(o.events > 0)
        UA_Server_addRepeatedCallback(server, raise_events, &o, EVENTS_EVERY_MS, NULL);
    if(o.exit_with_stdin)
        UA_Server_addRepeatedCallback(server, check_stdin, NULL, 250.0, NULL);

    UA_StatusCode rc = UA_Server_run_startup(server);
    if(rc != UA_STATUSCODE_GOOD) {
        fprintf(stderr, "cannot start on port %u: %s\n", o.port, UA_StatusCode_name(rc));
        UA_Server_delete(server);
        return 1;
    }
    printf("READY opc.tcp://%s:%u\n", o.bind, o.port);
    fflush(stdout);
    while(running)
        UA_Server_run_iterate(server, true);
    UA_Server_run_shutdown(server);
    UA_Server_delete(server);
    free(signals.value);
    free(signals.data);
    free(signals.slot);
    return 0;
}
