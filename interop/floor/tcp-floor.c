/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * tcp-floor: what the machine alone costs, without any protocol.
 *
 *   ping-pong         a request and an answer of fixed size over loopback TCP, one at a time
 *   --send-recv-cost  CPU of a bare epoll loop per message received and message sent, with M
 *                     connections at a given overall rate
 *
 * One JSON object on stdout. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_MESSAGE = 65536 };

typedef struct {
    unsigned rounds, warmup, request, response, connections, seconds;
    double rate;
    int server_cpu, client_cpu;
    bool busy_poll, cost, server_first;
} Options;

/* What the server process leaves for its parent. */
typedef struct {
    uint64_t cpu_ns, messages, wakeups, switches;
    volatile int begin, end, ready;
    bool done;
} Shared;

static uint64_t clock_ns(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t now_ns(void) { return clock_ns(CLOCK_MONOTONIC); }

static void fail(const char *what) {
    fprintf(stderr, "tcp-floor: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void pin(int cpu) {
    if(cpu < 0)
        return;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((unsigned)cpu, &set);
    if(sched_setaffinity(0, sizeof set, &set))
        fail("pinning");
}

static void no_delay(int s) {
    int one = 1;
    setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static void non_blocking(int s) {
    fcntl(s, F_SETFL, fcntl(s, F_GETFL) | O_NONBLOCK);
}

static int listen_loopback(struct sockaddr_in *a) {
    *a = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof *a;
    int s = socket(AF_INET, SOCK_STREAM, 0);
    if(s < 0 || bind(s, (void *)a, sizeof *a) || listen(s, 4096) ||
       getsockname(s, (void *)a, &len))
        fail("listening");
    return s;
}

static int dial(const struct sockaddr_in *a) {
    int s = socket(AF_INET, SOCK_STREAM, 0);
    if(s < 0 || connect(s, (const void *)a, sizeof *a))
        fail("connecting");
    no_delay(s);
    return s;
}

/* Whole messages; with a non-blocking socket these spin, which is the busy-poll variant. */
static bool recv_all(int s, char *buf, size_t n) {
    for(size_t got = 0; got < n;) {
        ssize_t r = recv(s, buf + got, n - got, 0);
        if(r > 0)
            got += (size_t)r;
        else if(r == 0 || (errno != EAGAIN && errno != EINTR))
            return false;
    }
    return true;
}

static bool send_all(int s, const char *buf, size_t n) {
    for(size_t put = 0; put < n;) {
        ssize_t r = send(s, buf + put, n - put, MSG_NOSIGNAL);
        if(r > 0)
            put += (size_t)r;
        else if(r < 0 && errno != EAGAIN && errno != EINTR)
            return false;
    }
    return true;
}

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void print_latency(uint64_t *v, size_t n) {
    double sum = 0;
    for(size_t i = 0; i < n; i++)
        sum += (double)v[i];
    qsort(v, n, sizeof *v, by_value);
#define Q(q) ((double)v[(size_t)((q) * (double)n) < n ? (size_t)((q) * (double)n) : n - 1] / 1e3)
    printf("\"count\":%zu,\"p50_us\":%.3f,\"p90_us\":%.3f,\"p99_us\":%.3f,\"p999_us\":%.3f,"
           "\"mean_us\":%.3f,\"min_us\":%.3f,\"max_us\":%.3f",
           n, Q(0.5), Q(0.9), Q(0.99), Q(0.999), sum / (double)n / 1e3, (double)v[0] / 1e3,
           (double)v[n - 1] / 1e3);
#undef Q
}

/* The forked child never outlives us, whatever happens to us. */
static pid_t fork_server(void) {
    fflush(stdout);
    pid_t p = fork();
    if(p < 0)
        fail("fork");
    if(p == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    return p;
}

static Shared *new_shared(void) {
    Shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if(s == MAP_FAILED)
        fail("mmap");
    return s;
}

/* --- ping-pong ------------------------------------------------------------------------------- */

static int ping_pong(const Options *o) {
    static char buf[MAX_MESSAGE];
    struct sockaddr_in a;
    int listener = listen_loopback(&a);
    Shared *shared = new_shared();
    pid_t child = fork_server();
    if(child == 0) {
        pin(o->server_cpu);
        int s = accept(listener, NULL, NULL);
        no_delay(s);
        if(o->busy_poll)
            non_blocking(s);
        uint64_t n = 0, begin = 0;
        while(recv_all(s, buf, o->request) && send_all(s, buf, o->response))
            if(++n == o->warmup)
                begin = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
        shared->cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin;
        shared->done = true;
        _exit(0);
    }
    pin(o->client_cpu);
    int s = dial(&a);
    if(o->busy_poll)
        non_blocking(s);
    uint64_t *took = calloc(o->rounds ? o->rounds : 1, sizeof *took);
    uint64_t begin = 0, begin_cpu = 0;
    for(unsigned i = 0; i < o->warmup + o->rounds; i++) {
        if(i == o->warmup) {
            begin = now_ns();
            begin_cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
        }
        uint64_t t = now_ns();
        if(!send_all(s, buf, o->request) || !recv_all(s, buf, o->response))
            fail("ping-pong");
        if(i >= o->warmup)
            took[i - o->warmup] = now_ns() - t;
    }
    double seconds = (double)(now_ns() - begin) / 1e9;
    uint64_t cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_cpu;
    close(s);
    waitpid(child, NULL, 0);
    printf("{\"tool\":\"tcp-floor\",\"command\":\"ping-pong\",\"ok\":true,\"request_bytes\":%u,"
           "\"response_bytes\":%u,\"server_cpu\":%d,\"client_cpu\":%d,\"busy_poll\":%s,",
           o->request, o->response, o->server_cpu, o->client_cpu, o->busy_poll ? "true" : "false");
    print_latency(took, o->rounds);
    printf(",\"seconds\":%.6f,\"server_cpu_us_per_round\":%.4f,\"client_cpu_us_per_round\":%.4f}\n",
           seconds, (double)shared->cpu_ns / 1e3 / o->rounds, (double)cpu / 1e3 / o->rounds);
    free(took);
    return 0;
}

/* --- cost of a receive and a send ------------------------------------------------------------- */

/* When the n-th message is due; both sides use the same schedule arithmetic. */
static uint64_t due(uint64_t start, uint64_t n, double rate) {
    return start + (uint64_t)((double)n * 1e9 / rate);
}

static int wait_until(int ep, struct epoll_event *ev, int max, uint64_t when, bool timed) {
    if(!timed)
        return epoll_wait(ep, ev, max, 100);
    uint64_t now = now_ns();
    uint64_t left = when > now ? when - now : 0;
    struct timespec t = {(time_t)(left / 1000000000u), (long)(left % 1000000000u)};
    return epoll_pwait2(ep, ev, max, &t, NULL);
}

/* One side of the exchange. `first`: send on schedule and swallow the answers; otherwise answer
 * whatever comes in. Both are the least an event loop can do. */
static void exchange(const Options *o, const int *fd, bool first, unsigned out_size,
                     unsigned in_size, Shared *shared, bool is_server) {
    static char buf[MAX_MESSAGE];
    struct epoll_event ev[256];
    int ep = epoll_create1(0);
    unsigned *have = calloc(o->connections, sizeof *have);
    for(unsigned i = 0; i < o->connections; i++) {
        non_blocking(fd[i]);
        struct epoll_event e = {.events = EPOLLIN, .data.u32 = i};
        epoll_ctl(ep, EPOLL_CTL_ADD, fd[i], &e);
    }
    __atomic_add_fetch(&shared->ready, 1, __ATOMIC_SEQ_CST);
    while(__atomic_load_n(&shared->ready, __ATOMIC_SEQ_CST) < 2)
        usleep(1000);

    uint64_t start = now_ns(), n = 0, begin_cpu = 0, wakeups = 0, messages = 0;
    struct rusage ru;
    uint64_t begin_switches = 0;
    bool measuring = false;
    for(;;) {
        if(is_server && !measuring && shared->begin) {
            measuring = true;
            getrusage(RUSAGE_SELF, &ru);
            begin_switches = (uint64_t)(ru.ru_nvcsw + ru.ru_nivcsw);
            begin_cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
            wakeups = messages = 0;
        }
        if(shared->end)
            break;
        int k = wait_until(ep, ev, 256, first ? due(start, n, o->rate) : 0, first);
        wakeups++;
        for(int i = 0; i < k; i++) {
            unsigned c = ev[i].data.u32;
            ssize_t r = recv(fd[c], buf, sizeof buf, 0);
            if(r <= 0) {
                epoll_ctl(ep, EPOLL_CTL_DEL, fd[c], NULL);
                continue;
            }
            for(have[c] += (unsigned)r; have[c] >= in_size; have[c] -= in_size) {
                messages++;
                if(!first && !send_all(fd[c], buf, out_size))
                    break;
            }
        }
        if(first) {
            for(uint64_t now = now_ns(); due(start, n, o->rate) <= now; n++)
                send_all(fd[n % o->connections], buf, out_size);
        }
        if(!is_server) {
            /* The client side keeps the time: one second of warm-up, then the window. */
            uint64_t passed = now_ns() - start;
            if(passed > 1000000000u)
                shared->begin = 1;
            if(passed > (uint64_t)(o->seconds + 1) * 1000000000u)
                shared->end = 1;
        }
    }
    if(is_server) {
        shared->cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_cpu;
        getrusage(RUSAGE_SELF, &ru);
        shared->switches = (uint64_t)(ru.ru_nvcsw + ru.ru_nivcsw) - begin_switches;
        shared->messages = messages;
        shared->wakeups = wakeups;
        shared->done = true;
    }
    free(have);
    close(ep);
}

static int send_recv_cost(const Options *o) {
    struct rlimit l;
    if(getrlimit(RLIMIT_NOFILE, &l) == 0) {
        l.rlim_cur = l.rlim_max;
        setrlimit(RLIMIT_NOFILE, &l);
    }
    struct sockaddr_in a;
    int listener = listen_loopback(&a);
    Shared *shared = new_shared();
    int *fd = calloc(o->connections, sizeof *fd);
    pid_t child = fork_server();
    if(child == 0) {
        pin(o->server_cpu);
        for(unsigned i = 0; i < o->connections; i++) {
            if((fd[i] = accept(listener, NULL, NULL)) < 0)
                fail("accept");
            no_delay(fd[i]);
        }
        exchange(o, fd, o->server_first, o->response, o->request, shared, true);
        _exit(0);
    }
    pin(o->client_cpu);
    for(unsigned i = 0; i < o->connections; i++)
        fd[i] = dial(&a);
    exchange(o, fd, !o->server_first, o->request, o->response, shared, false);
    waitpid(child, NULL, 0);
    double achieved = (double)shared->messages / o->seconds;
    bool ok = shared->done && shared->messages > 0 && achieved > 0.95 * o->rate;
    printf("{\"tool\":\"tcp-floor\",\"command\":\"send-recv-cost\",\"ok\":%s,\"connections\":%u,"
           "\"rate\":%.1f,\"achieved_rate\":%.1f,\"initiator\":\"%s\",\"request_bytes\":%u,"
           "\"response_bytes\":%u,\"server_cpu\":%d,\"client_cpu\":%d,\"seconds\":%u,"
           "\"pairs\":%llu,\"wakeups\":%llu,\"context_switches\":%llu,\"server_cpu_s\":%.6f,"
           "\"server_cpu_us_per_pair\":%.4f}\n",
           ok ? "true" : "false", o->connections, o->rate, achieved,
           o->server_first ? "server" : "client", o->request, o->response, o->server_cpu,
           o->client_cpu, o->seconds, (unsigned long long)shared->messages,
           (unsigned long long)shared->wakeups, (unsigned long long)shared->switches,
           (double)shared->cpu_ns / 1e9,
           shared->messages ? (double)shared->cpu_ns / 1e3 / (double)shared->messages : 0.0);
    free(fd);
    return ok ? 0 : 1;
}

static void usage(FILE *f) {
    fputs("tcp-floor [--rounds N] [--warmup N] [--request BYTES] [--response BYTES] [--busy-poll]\n"
          "          [--same-cpu N | --server-cpu N --client-cpu N]\n"
          "tcp-floor --send-recv-cost [--connections M] [--rate PER_SECOND] [--seconds S]\n"
          "          [--initiator client|server] [--request BYTES] [--response BYTES] [cpu flags]\n",
          f);
}

int main(int argc, char **argv) {
    enum { ROUNDS = 1, WARMUP, REQUEST, RESPONSE, SAME, SERVER, CLIENT, BUSY, COST, CONNECTIONS,
           RATE, SECONDS, INITIATOR, HELP };
    static const struct option names[] = {
        {"rounds", 1, 0, ROUNDS},         {"warmup", 1, 0, WARMUP},
        {"request", 1, 0, REQUEST},       {"response", 1, 0, RESPONSE},
        {"same-cpu", 1, 0, SAME},         {"server-cpu", 1, 0, SERVER},
        {"client-cpu", 1, 0, CLIENT},     {"busy-poll", 0, 0, BUSY},
        {"send-recv-cost", 0, 0, COST},   {"connections", 1, 0, CONNECTIONS},
        {"rate", 1, 0, RATE},             {"seconds", 1, 0, SECONDS},
        {"initiator", 1, 0, INITIATOR},   {"help", 0, 0, HELP},
        {0, 0, 0, 0}};
    Options o = {.rounds = 100000, .warmup = 5000, .request = 120, .response = 110,
                 .connections = 30, .seconds = 5, .rate = 300, .server_cpu = -1, .client_cpu = -1};
    for(int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        switch(c) {
        case ROUNDS: o.rounds = (unsigned)atoi(optarg); break;
        case WARMUP: o.warmup = (unsigned)atoi(optarg); break;
        case REQUEST: o.request = (unsigned)atoi(optarg); break;
        case RESPONSE: o.response = (unsigned)atoi(optarg); break;
        case SAME: o.server_cpu = o.client_cpu = atoi(optarg); break;
        case SERVER: o.server_cpu = atoi(optarg); break;
        case CLIENT: o.client_cpu = atoi(optarg); break;
        case BUSY: o.busy_poll = true; break;
        case COST: o.cost = true; break;
        case CONNECTIONS: o.connections = (unsigned)atoi(optarg); break;
        case RATE: o.rate = atof(optarg); break;
        case SECONDS: o.seconds = (unsigned)atoi(optarg); break;
        case INITIATOR: o.server_first = strcmp(optarg, "server") == 0; break;
        case HELP: usage(stdout); return 0;
        default: usage(stderr); return 2;
        }
    }
    if(optind != argc || o.rounds == 0 || o.request == 0 || o.response == 0 || o.connections == 0 ||
       o.seconds == 0 || o.rate <= 0 || o.request > MAX_MESSAGE || o.response > MAX_MESSAGE) {
        usage(stderr);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    return o.cost ? send_recv_cost(&o) : ping_pong(&o);
}
