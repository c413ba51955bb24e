/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * o6-client: an open62541 client for comparison and interop. One JSON document on stdout, logs on
 * stderr; exit code 0 when everything held, 1 when not, 2 for a wrong command line. */
#define _GNU_SOURCE
#include "client.h"

#include <open62541/plugin/certificategroup_default.h>
#include <open62541/plugin/securitypolicy_default.h>

#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define APPLICATION_URI "urn:taktwerk:peer:open62541:client"

/* The library leaves the elliptic-curve policies without AEAD out of its default set. Those that the
 * certificate does not fit are not added. */
static bool add_curves(UA_SecurityPolicy **policies, size_t *size, UA_ByteString cert,
                       UA_ByteString key, UA_Logger *logger) {
    typedef UA_StatusCode (*Make)(UA_SecurityPolicy *, const UA_ApplicationType,
                                  const UA_ByteString, const UA_ByteString, const UA_Logger *);
    static const Make makers[] = {(Make)UA_SecurityPolicy_EccNistP256,
                                  (Make)UA_SecurityPolicy_EccNistP384};
    for(size_t i = 0; i < sizeof makers / sizeof *makers; i++) {
        UA_SecurityPolicy *more = UA_realloc(*policies, (*size + 1) * sizeof *more);
        if(!more)
            return false;
        *policies = more;
        memset(&more[*size], 0, sizeof *more);
        if(makers[i](&more[*size], UA_APPLICATIONTYPE_CLIENT, cert, key, logger) ==
           UA_STATUSCODE_GOOD)
            (*size)++;
    }
    return true;
}

static bool set_user(UA_ClientConfig *config, const Options *o) {
    UA_ByteString cert, key;
    if(!peer_certificate(o->user_cert, o->user_key, NULL, &cert, &key))
        return false;
    bool ok = UA_ClientConfig_setAuthenticationCert(config, cert, key) == UA_STATUSCODE_GOOD &&
              add_curves(&config->authSecurityPolicies, &config->authSecurityPoliciesSize, cert,
                         key, config->logging);
    UA_ByteString_clear(&cert);
    UA_ByteString_clear(&key);
    return ok;
}

static bool set_security(UA_ClientConfig *config, Options *o) {
    if(o->mode == UA_MESSAGESECURITYMODE_NONE) {
        config->securityMode = UA_MESSAGESECURITYMODE_NONE;
        return true;
    }
    if(o->cert_der.length == 0 &&
       !peer_certificate(o->cert, o->key, APPLICATION_URI, &o->cert_der, &o->key_der))
        return false;
    UA_StatusCode rc = UA_ClientConfig_setDefaultEncryption(config, o->cert_der, o->key_der, NULL,
                                                            0, NULL, 0);
    if(rc != UA_STATUSCODE_GOOD ||
       !add_curves(&config->securityPolicies, &config->securityPoliciesSize, o->cert_der,
                   o->key_der, config->logging) ||
       !add_curves(&config->authSecurityPolicies, &config->authSecurityPoliciesSize, o->cert_der,
                   o->key_der, config->logging))
        return false;
    /* A peer for tests on loopback: whatever certificate the server shows is fine. */
    config->certificateVerification.clear(&config->certificateVerification);
    UA_CertificateGroup_AcceptAll(&config->certificateVerification);
    char uri[160];
    snprintf(uri, sizeof uri, "http://opcfoundation.org/UA/SecurityPolicy#%s", o->policy);
    UA_String_clear(&config->securityPolicyUri);
    config->securityPolicyUri = UA_STRING_ALLOC(uri);
    config->securityMode = o->mode;
    return true;
}

UA_Client *client_new(Options *o, UA_EventLoop *loop, bool login) {
    UA_ClientConfig config;
    memset(&config, 0, sizeof config);
    config.logging = peer_logger();
    if(loop) {
        config.eventLoop = loop;
        config.externalEventLoop = true;
    }
    config.clientDescription.applicationUri = UA_STRING_ALLOC(APPLICATION_URI);
    config.clientDescription.applicationName = UA_LOCALIZEDTEXT_ALLOC("en", "o6-client");
    config.allowNonePolicyPassword = true;
    config.timeout = 20000;
    if(UA_ClientConfig_setDefault(&config) != UA_STATUSCODE_GOOD || !set_security(&config, o)) {
        fprintf(stderr, "cannot configure the client\n");
        return NULL;
    }
    if(o->lifetime_ms)
        config.secureChannelLifeTime = o->lifetime_ms;
    if(login && o->user_cert && !set_user(&config, o)) {
        fprintf(stderr, "cannot use the user's certificate\n");
        return NULL;
    }
    if(login && o->user)
        UA_ClientConfig_setAuthenticationUsername(&config, o->user, o->password);
    return UA_Client_newWithConfig(&config);
}

UA_NodeId signal_id(const Options *o, unsigned i) {
    UA_NodeId id;
    if(UA_NodeId_parse(&id, UA_STRING((char *)(uintptr_t)o->node)) != UA_STATUSCODE_GOOD) {
        fprintf(stderr, "--node %s is not a node id\n", o->node);
        exit(2);
    }
    if(id.identifierType == UA_NODEIDTYPE_NUMERIC)
        id.identifier.numeric += i;
    return id;
}

static void usage(FILE *f) {
    fputs("o6-client COMMAND URL [options]\n"
          "  smoke      all services against a server with the interop test nodes\n"
          "  operate    events, alarms, history and nodes of a Taktwerk server, see events.sh\n"
          "  change     its history\n"
          "  read-rtt   --nodes K --requests N --warmup N [--node ns=1;i=100000]\n"
          "             [--timestamps both|source|server|neither]\n"
          "  connect    --count N\n"
          "  renew      --seconds S --lifetime MS: reads without a pause while tokens are renewed\n"
          "  subscribe  --items K --clients C --interval MS --seconds S [--node ID] [--nodes N]\n"
          "common: --mode none|sign|encrypt --policy Basic256Sha256 [--cert FILE --key FILE]\n"
          "        --user NAME --password TEXT | --user-cert FILE --user-key FILE\n"
          "        --lifetime MS --cpu N --verbose\n",
          f);
}

static UA_MessageSecurityMode parse_mode(const char *s) {
    if(strcmp(s, "sign") == 0)
        return UA_MESSAGESECURITYMODE_SIGN;
    if(strcmp(s, "encrypt") == 0)
        return UA_MESSAGESECURITYMODE_SIGNANDENCRYPT;
    return UA_MESSAGESECURITYMODE_NONE;
}

static UA_TimestampsToReturn parse_timestamps(const char *s) {
    if(strcmp(s, "source") == 0)
        return UA_TIMESTAMPSTORETURN_SOURCE;
    if(strcmp(s, "server") == 0)
        return UA_TIMESTAMPSTORETURN_SERVER;
    if(strcmp(s, "neither") == 0)
        return UA_TIMESTAMPSTORETURN_NEITHER;
    return UA_TIMESTAMPSTORETURN_BOTH;
}

static Options parse(int argc, char **argv) {
    enum { NODE = 1, NODES, REQUESTS, WARMUP, COUNT, ITEMS, CLIENTS, INTERVAL, SECONDS, MODE,
           POLICY, CERT, KEY, USER, PASSWORD, USER_CERT, USER_KEY, LIFETIME, TIMESTAMPS, CPU, VERBOSE, HELP };
    static const struct option names[] = {
        {"node", 1, 0, NODE},         {"nodes", 1, 0, NODES},
        {"requests", 1, 0, REQUESTS}, {"warmup", 1, 0, WARMUP},
        {"count", 1, 0, COUNT},       {"items", 1, 0, ITEMS},
        {"clients", 1, 0, CLIENTS},   {"interval", 1, 0, INTERVAL},
        {"seconds", 1, 0, SECONDS},   {"mode", 1, 0, MODE},
        {"policy", 1, 0, POLICY},     {"cert", 1, 0, CERT},
        {"key", 1, 0, KEY},           {"user", 1, 0, USER},
        {"user-cert", 1, 0, USER_CERT}, {"user-key", 1, 0, USER_KEY},
        {"lifetime", 1, 0, LIFETIME},
        {"password", 1, 0, PASSWORD}, {"timestamps", 1, 0, TIMESTAMPS},
        {"cpu", 1, 0, CPU},           {"verbose", 0, 0, VERBOSE},
        {"help", 0, 0, HELP},         {0, 0, 0, 0}};
    Options o = {.password = "", .policy = "Basic256Sha256", .node = "ns=1;i=100000",
                 .mode = UA_MESSAGESECURITYMODE_NONE, .timestamps = UA_TIMESTAMPSTORETURN_BOTH,
                 .requests = 10000, .warmup = 1000, .count = 20, .items = 1000, .clients = 1,
                 .interval_ms = 100, .seconds = 10};
    for(int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        switch(c) {
        case NODE: o.node = optarg; break;
        case NODES: o.nodes = (unsigned)atoi(optarg); break;
        case REQUESTS: o.requests = (unsigned)atoi(optarg); break;
        case WARMUP: o.warmup = (unsigned)atoi(optarg); break;
        case COUNT: o.count = (unsigned)atoi(optarg); break;
        case ITEMS: o.items = (unsigned)atoi(optarg); break;
        case CLIENTS: o.clients = (unsigned)atoi(optarg); break;
        case INTERVAL: o.interval_ms = atof(optarg); break;
        case SECONDS: o.seconds = (unsigned)atoi(optarg); break;
        case MODE: o.mode = parse_mode(optarg); break;
        case POLICY: o.policy = optarg; break;
        case CERT: o.cert = optarg; break;
        case KEY: o.key = optarg; break;
        case USER: o.user = optarg; break;
        case PASSWORD: o.password = optarg; break;
        case USER_CERT: o.user_cert = optarg; break;
        case USER_KEY: o.user_key = optarg; break;
        case LIFETIME: o.lifetime_ms = (unsigned)atoi(optarg); break;
        case TIMESTAMPS: o.timestamps = parse_timestamps(optarg); break;
        case CPU: peer_pin(atoi(optarg)); break;
        case VERBOSE: peer_log_level = UA_LOGLEVEL_INFO; break;
        case HELP: usage(stdout); exit(0);
        default: usage(stderr); exit(2);
        }
    }
    if(argc - optind != 2) {
        usage(stderr);
        exit(2);
    }
    o.command = argv[optind];
    o.url = argv[optind + 1];
    if(o.clients == 0)
        o.clients = 1;
    return o;
}

int main(int argc, char **argv) {
    /* A broken connection is an error to report, not a signal to die of. */
    signal(SIGPIPE, SIG_IGN);
    peer_raise_file_limit();
    /* The library warns about every unencrypted connection, which is the normal case here. */
    peer_log_level = UA_LOGLEVEL_ERROR;
    Options o = parse(argc, argv);
    int rc = 2;
    if(strcmp(o.command, "smoke") == 0)
        rc = run_smoke(&o);
    else if(strcmp(o.command, "operate") == 0)
        rc = run_operate(&o);
    else if(strcmp(o.command, "change") == 0)
        rc = run_change(&o);
    else if(strcmp(o.command, "read-rtt") == 0)
        rc = run_read_rtt(&o);
    else if(strcmp(o.command, "connect") == 0)
        rc = run_connect(&o);
    else if(strcmp(o.command, "renew") == 0)
        rc = run_renew(&o);
    else if(strcmp(o.command, "subscribe") == 0)
        rc = run_subscribe(&o);
    else
        usage(stderr);
    UA_ByteString_clear(&o.cert_der);
    UA_ByteString_clear(&o.key_der);
    return rc;
}
