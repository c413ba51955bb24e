//! `taktwerk serve`: a server with the demo plant, test nodes, load, or a configuration.

#[cfg(feature = "gateway")]
mod adapters;
mod alarm_groups;
mod alarms;
mod configured;
pub(crate) mod control;
mod durable;
mod ending;
mod files;
pub(crate) mod gateway;
mod headroom;
mod history;
mod interop;
mod kept;
pub(crate) mod load;
#[cfg(feature = "web")]
mod otlp;
mod plant;
mod product;
mod profile;
mod pubsub;
mod reference;
mod rehearsal;
mod reload;
mod rules;
mod security;
mod supervisor;
mod updater;
#[cfg(feature = "web")]
mod web;

pub(crate) use configured::check_files;
pub(crate) use gateway::check as check_gateway;
pub(crate) use gateway::missing_files;
pub(crate) use rehearsal::check as check_nodes;
#[cfg(feature = "attack")]
pub(crate) use security::{APPLICATION_NAME, APPLICATION_URI};

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::span;
use crate::tell::StandardError;
use clap::Args;
use configured::Configured;
use ending::Ending;
use load::SignalValues;
use reference::References;
use reload::Reload;
use rules::Rules;
use serde_json::json;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use taktwerk::headroom::Admit;
use taktwerk::server::ServerBuilder;
use taktwerk::{RunningServer, Server, StatusCode};
use taktwerk_config::users::CertificateVerifier;
use taktwerk_generator::client::recording::Recording;
use taktwerk_lab::outcome::wrapped;
use taktwerk_lab::pin::CpuList;
use taktwerk_load::adapters::Adapters;
use taktwerk_load::signals::SignalSet;
use taktwerk_server::Limits;
use taktwerk_server::space::import::Batch;
use updater::Updater;

/// Arguments of `taktwerk serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Configuration file; `taktwerk config init` writes one.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["bind", "port", "no_plant", "nodeset", "max_sessions", "threads", "policy", "pki", "guarded"])]
    config: Option<PathBuf>,

    /// Apply the file of --config whenever it changes, as `taktwerk config apply` does.
    #[arg(long, requires = "config")]
    watch: bool,

    /// Address to listen on. Listening on a non-loopback address needs `--config`. For a public demo, pass `--policy`
    /// instead.
    #[arg(long, value_name = "ADDR", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    bind: IpAddr,

    /// Port to listen on; 0 for any free port.
    #[arg(long, value_name = "N", default_value_t = 4840)]
    port: u16,

    /// Offer only these policies: None, or names such as Basic256Sha256. Default: those that match the certificates,
    /// and None on loopback.
    #[arg(long, value_name = "POLICY", num_args = 1..)]
    policy: Vec<String>,

    /// Directory with the server's certificates and trust list; created if it is missing. Default:
    /// ~/.local/share/taktwerk/demo-server/pki.
    #[arg(long, value_name = "DIR", env = "TAKTWERK_SERVER_PKI")]
    pki: Option<PathBuf>,

    /// Add N signals ns=1;i=100000… that change together.
    #[arg(long, value_name = "N", default_value_t = 0)]
    signals: u32,

    /// Add a set of signals that change together: COUNT:MS:BYTES. Can be repeated, to have several intervals.
    #[arg(long, value_name = "SET", conflicts_with = "signals")]
    signal_set: Vec<SignalSet>,

    /// Add tags that child processes set, as a gateway's protocol adapters do: COUNT:TAGS:MS is COUNT processes with TAGS
    /// tags each, set every MS milliseconds.
    #[arg(long, value_name = "COUNT:TAGS:MS", conflicts_with = "config")]
    adapters: Option<Adapters>,

    /// Interval at which the signals change, in milliseconds; 0 for never.
    #[arg(long, value_name = "MS", default_value = "100", value_parser = span::millis)]
    update: Duration,

    /// Values of the signals.
    #[arg(long, value_enum, value_name = "WHAT", default_value = "count")]
    signal_values: SignalValues,

    /// Raise N events of the Server object each second, at most 100 000. Severities are 300 and 700 in turn.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=100_000))]
    events: u32,

    /// The type of the signals.
    #[arg(long, value_name = "TYPE", default_value = "double", value_parser = ["double"])]
    r#type: String,

    /// Leave out the demo plant.
    #[arg(long)]
    no_plant: bool,

    /// Add the interop test nodes, and the users user1 and user2.
    #[arg(long)]
    interop: bool,

    /// Add the folder Process with the CPU time per thread, memory and scheduling of this server and of the programs that are
    /// sources, updated each second.
    #[arg(long)]
    profile: bool,

    /// Show processes of this name there too, such as a VPN.
    #[arg(long, value_name = "NAME", requires = "profile")]
    profile_process: Vec<String>,

    /// Let clients add and delete nodes and references. Nodes that the server created stay protected.
    #[arg(long, conflicts_with = "config")]
    node_management: bool,

    /// Import NodeSet2 XML files; the order does not matter.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    nodeset: Vec<PathBuf>,

    /// PubSub configuration, TOML or the standard binary file. It is also shown in the address space.
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    pubsub: Option<PathBuf>,

    /// Save changes that clients make to the PubSub configuration in this file. If it exists, it is read instead of
    /// --pubsub.
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    pubsub_save: Option<PathBuf>,

    /// File with the keys of a security group of --pubsub that has no key service (`taktwerk pubsub keys` writes one).
    /// Can be repeated.
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    pubsub_keys: Vec<PathBuf>,

    /// Also answer Actions without message security (JSON has none). Anyone who can reach the address or the broker can
    /// then call their Methods with the rights of Anonymous.
    #[arg(long, conflicts_with = "config")]
    pubsub_unsecured_actions: bool,

    /// Send passwords in URLs of --pubsub to brokers without TLS on other machines.
    #[arg(long, conflicts_with = "config")]
    pubsub_allow_plaintext_password: bool,

    /// Save the sequence numbers of secured PubSub messages in this file, so that replayed messages are rejected after
    /// a restart. Those of Action requests are in FILE.actions-….
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    pubsub_replay_file: Option<PathBuf>,

    /// Record the plant's sensors and counters in this SQLite file. Without it, the history is kept in memory and
    /// starts with a generated hour.
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    history: Option<PathBuf>,

    /// Allow durable subscriptions and store them in this SQLite file. They survive restarts of the server.
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    durable: Option<PathBuf>,

    /// Also record the signals of --signals.
    #[arg(long, requires = "history")]
    history_signals: bool,

    /// Maximum number of sessions. Default: 10000 on loopback, else 1000.
    #[arg(long, value_name = "N")]
    max_sessions: Option<usize>,

    /// Serve a dashboard, /metrics, /healthz and /readyz over HTTP at this address, such as 127.0.0.1:8080.
    #[cfg(feature = "web")]
    #[arg(long, value_name = "ADDR:PORT", conflicts_with = "config")]
    web: Option<SocketAddr>,

    /// Apply the limits of a public server on loopback too: connections and their rate per address, budgets for all
    /// clients together.
    #[arg(long)]
    guarded: bool,

    /// Number of threads that serve connections.
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: usize,

    /// CPUs to run on, such as 0 or 0,2-3. Each serving thread is pinned to one of them.
    #[arg(long, value_name = "LIST")]
    cpu: Option<CpuList>,

    /// Busy-poll for this long before sleeping. Lower latency, higher CPU use.
    #[arg(long, value_name = "SPAN", default_value = "0", value_parser = span::micros)]
    busy_poll: Duration,

    /// Predict the CPU use of subscriptions with a cost model (written by `model fit -o`, or the name of a host that
    /// comes with taktwerk, such as epyc-vm) and show it below Headroom.
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    headroom: Option<PathBuf>,

    /// Raise publishing intervals and refuse items if the predicted CPU use exceeds --headroom-limit.
    #[arg(long, requires = "headroom")]
    admit_headroom: bool,

    /// Maximum share of the CPU for clients.
    #[arg(long, value_name = "SHARE", default_value_t = headroom::LIMIT, requires = "headroom")]
    headroom_limit: f64,

    /// Write channel keys to the file in OPCUA_KEYLOGFILE and messages to the file in OPCUA_PCAP_FILE, for Wireshark.
    /// Together they reveal everything that clients send, including passwords.
    #[arg(long)]
    allow_key_log: bool,

    /// Exit when stdin closes (for supervisors).
    #[arg(long)]
    exit_with_stdin: bool,
}

impl ServeArgs {
    /// Whether anything but SecurityPolicy None is wanted.
    fn offers_secured(&self) -> bool {
        self.policy.is_empty() || self.policy.iter().any(|policy| !policy.eq_ignore_ascii_case("None"))
    }
}

/// Why the server did not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServeError {
    #[error(transparent)]
    Build(#[from] taktwerk::BuildError),
    #[error(transparent)]
    Node(#[from] taktwerk_server::space::NodeError),
    #[error(transparent)]
    Import(#[from] taktwerk_server::space::import::ImportError),
    #[error(transparent)]
    Alarm(#[from] taktwerk::alarms::AlarmError),
    #[error("history: {0}")]
    History(String),
    #[error("cannot start a thread: {0}")]
    Thread(#[from] std::io::Error),
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Self {
        use taktwerk::BuildError;
        match &error {
            // A NodeSet that the user named.
            ServeError::Import(_) | ServeError::Build(BuildError::Import(_) | BuildError::File { .. }) => {
                Self::Usage(error.to_string())
            }
            _ => Self::Environment(error.to_string()),
        }
    }
}

/// How long sessions may take to end after a signal.
const GRACE: Duration = Duration::from_secs(1);

/// How long the second signal may take to save what PubSub has received.
const AT_ONCE: Duration = Duration::from_millis(200);

/// Serves until interrupted.
pub(crate) fn run(arguments: &ServeArgs, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    if let Some(cpus) = &arguments.cpu {
        // Threads inherit it, so those that update values and call methods stay on these CPUs too.
        cpus.pin().map_err(|error| Failure::Environment(error.to_string()))?;
    }
    taktwerk_lab::files::raise_limit();
    let mut configured = arguments.config.as_deref().map(Configured::load).transpose()?;
    if configured.is_none() && !arguments.bind.is_loopback() && arguments.policy.is_empty() {
        return Err(open_to_everybody(arguments.bind));
    }
    let environment = |error: taktwerk::StartError| Failure::Environment(error.to_string());
    let (builder, offer) = match &configured {
        Some(configured) => (tuned(configured.builder()?, arguments), None),
        None => {
            let (builder, offer) = security::offer(builder(arguments), arguments)?;
            let builder = durable::keep(builder, arguments)?;
            (history::keep(builder, arguments)?, Some(offer))
        }
    };
    let builder = match headroom_of(arguments, configured.as_ref())? {
        Some(headroom::Settings { prices, limit, admit }) => builder.headroom(prices, limit, admit),
        None => builder,
    };
    let server = recorded(builder, arguments)?.build().map_err(environment)?;
    server.show_headroom().map_err(ServeError::from)?;
    let content = match &configured {
        Some(configured) => configured.content(),
        None => Content {
            nodesets: arguments.nodeset.clone(),
            plant: !arguments.no_plant,
            pubsub: pubsub::Files {
                configuration: arguments.pubsub.clone(),
                save_to: arguments.pubsub_save.clone(),
                keys: arguments.pubsub_keys.clone(),
                unsecured_actions: arguments.pubsub_unsecured_actions,
                plaintext_password: arguments.pubsub_allow_plaintext_password,
                replay: arguments.pubsub_replay_file.clone(),
            },
        },
    };
    let others = profile::Others::default();
    let Filled { updaters, nodesets } = fill(&server, &content, arguments, &others)?;
    if let Some(configured) = &configured {
        gateway::register_namespace(configured.file(), &server)?;
        configured::nodeset_methods(configured.file(), &server)?;
    }
    let gateway = match &configured {
        Some(configured) => gateway::prepare(configured.file(), &server)?,
        None => match &arguments.adapters {
            Some(adapters) => gateway::prepare_adapters(adapters, &server)?,
            None => gateway::Prepared::default(),
        },
    };
    let pubsub = content.pubsub.start(&server)?;
    let (mut shares, mut rules) = (None, Rules::default());
    if let Some(configured) = &configured {
        configured.manage(&server)?;
        shares = files::Shares::start(configured.file(), &server)?;
        let references = References::new(configured.file(), server.space());
        rules = Rules::start(configured.file(), &server, &references)?;
        gateway.check(configured.file(), &references)?;
        configured::check_namespaces(configured.file(), &server.space().namespaces())?;
    }
    let nodes = server.space().node_count();
    taktwerk_memory::free_evenly();
    let running = server.spawn().map_err(environment)?;
    if let Some(configured) = &configured {
        configured.managed(running.shared());
    }
    let recorder = running.recorder().map(Arc::clone);
    let receivers = pubsub.as_ref().map(pubsub::PubSub::receivers).unwrap_or_default();
    let (last, stopper, recording) = (receivers.clone(), running.stopper(), recorder.clone());
    interrupt.say_at_end(move || {
        last.end_within(AT_ONCE);
        recording.as_ref().and_then(|recorder| history::unstored(stopper.unstored_history(), recorder))
    });
    let mut gateway = gateway.start()?;
    if arguments.adapters.is_some() {
        // Loads must not find variables without values.
        gateway.wait_for_values(interrupt)?;
    }
    let memory = taktwerk_memory::watch().map_err(|error| Failure::Environment(error.to_string()))?;
    #[cfg(feature = "web")]
    let mut extras = web::Extras::of_gateway(gateway.extras());
    #[cfg(feature = "web")]
    if let Some(recorder) = &recorder {
        extras.collectors.push(Arc::new(taktwerk_web::HistoryMetrics(Arc::clone(recorder))));
    }
    #[cfg(feature = "web")]
    let otlp = match &configured {
        Some(configured) => otlp::start(configured.file(), &running, &mut extras)?,
        None => None,
    };
    #[cfg(feature = "web")]
    let mut dashboard = {
        let web = match &configured {
            Some(configured) => configured.web_of(configured.file())?,
            None => arguments.web.map(web::Web::demo),
        };
        web::Dashboard::start(web, &running, extras)?
    };
    let mut reload = match (&configured, &arguments.config) {
        (Some(configured), Some(path)) => {
            Some(Reload::start(configured, path, arguments.watch, (nodesets, rules))?)
        }
        _ => None,
    };
    let watchdog = match running.addresses().first() {
        Some(&address) => supervisor::Watchdog::start(address, running.shared().shards())?,
        None => None,
    };
    let access = Access { configured: configured.as_ref(), offer: offer.as_ref() };
    announce(arguments, &access, &content, &running, nodes, output)?;
    supervisor::ready(&running.url());
    taktwerk_memory::forget_start();
    let mut watch = running.shared().config().headroom.clone().map(headroom::Watch::new);
    let end = Arc::new(AtomicBool::new(false));
    if arguments.exit_with_stdin {
        watch_stdin(Arc::clone(&end))?;
    }
    gateway.show_processes(&others);
    let ending = Ending::watch(interrupt, &end, (running.stopper(), receivers), recorder.clone())?;
    ending.keep(gateway.queues());
    while !interrupt.asked() && !end.load(Ordering::Relaxed) {
        // Signals end the sleep early only in the main thread, which this is; 100 ms is soon enough for the rest.
        std::thread::sleep(Duration::from_millis(100));
        if let Some(watch) = &mut watch {
            watch.tick();
        }
        if running.has_ended() {
            return Err(Failure::Environment(
                "the server ended by itself; see the log, then start it again".to_owned(),
            ));
        }
        if let Some(configured) = &mut configured {
            configured.refresh();
            if let Some(reload) = &mut reload {
                reload.tick(
                    configured,
                    &running,
                    &mut gateway,
                    #[cfg(feature = "web")]
                    &mut dashboard,
                );
                gateway.show_processes(&others);
                ending.keep(gateway.queues());
            }
        }
    }
    supervisor::stopping();
    drop(watchdog);
    drop(shares);
    drop(memory);
    #[cfg(feature = "web")]
    drop(dashboard);
    drop(updaters);
    drop(gateway);
    // Spans of the end, too.
    #[cfg(feature = "web")]
    drop(otlp);
    drop(pubsub);
    ending.claim();
    running.stop(GRACE);
    match recorder.and_then(|recorder| history::unstored(recorder.lost_at_stop(), &recorder)) {
        Some(lost) => Err(Failure::Environment(lost)),
        None => Ok(()),
    }
}

fn builder(arguments: &ServeArgs) -> ServerBuilder {
    let guarded = arguments.guarded || !arguments.bind.is_loopback();
    let builder = Server::builder()
        .application_name(security::APPLICATION_NAME)
        .application_uri(security::APPLICATION_URI)
        .build_info(product::build_info())
        .anonymous()
        .bind(&SocketAddr::new(arguments.bind, arguments.port).to_string())
        .shards(arguments.threads)
        .limits(|limits| {
            if !guarded {
                *limits = Limits::laboratory();
            }
            if let Some(sessions) = arguments.max_sessions {
                limits.sessions_max = sessions;
                // Clients without a session ask for endpoints, and reconnecting ones overlap for a moment.
                limits.connections_max = sessions + sessions / 10 + 100;
            }
            if !guarded {
                limits.connections_per_address_max = limits.connections_max;
            }
        });
    let mut builder = tuned(builder, arguments);
    if arguments.node_management {
        builder = builder.node_management();
    }
    if arguments.interop {
        let users = |name: &str, password: &[u8]| {
            let known = interop::USERS.iter().any(|user| user.0 == name && user.1.as_bytes() == password);
            if known { Ok(()) } else { Err(StatusCode::BAD_USER_ACCESS_DENIED) }
        };
        // The test users exist for every client.
        builder = builder.users(users).allow_clear_passwords();
        if arguments.offers_secured() {
            builder = builder.certificate_users(CertificateVerifier::new());
        }
    }
    builder
}

/// The headroom settings of the command line or the configuration.
fn headroom_of(
    arguments: &ServeArgs,
    configured: Option<&Configured>,
) -> Result<Option<headroom::Settings>, Failure> {
    if let Some(configured) = configured {
        return configured.headroom();
    }
    let Some(path) = &arguments.headroom else { return Ok(None) };
    let admit = if arguments.admit_headroom { Admit::Headroom } else { Admit::Always };
    // If clients can choose, most use no security, so predict without it.
    let is_encrypted = false;
    let wrong =
        |option: &str, problem: String, hint: &str| Failure::Usage(format!("--{option}: {problem}; {hint}"));
    let prices = headroom::prices(Path::new(""), path, is_encrypted)
        .map_err(|problem| wrong("headroom", problem, headroom::CALIBRATE))?;
    let limit = headroom::limit(arguments.headroom_limit, arguments.threads)
        .map_err(|problem| wrong("headroom-limit", problem, headroom::LIMITS))?;
    Ok(Some(headroom::Settings { prices, limit, admit }))
}

/// Applies the CPU options.
fn tuned(mut builder: ServerBuilder, arguments: &ServeArgs) -> ServerBuilder {
    builder = builder.busy_poll(arguments.busy_poll);
    if let Some(cpus) = &arguments.cpu {
        builder = builder.cpus(cpus.cpus());
    }
    builder
}

/// Opens the key log and the capture, if allowed.
fn recorded(mut builder: ServerBuilder, arguments: &ServeArgs) -> Result<ServerBuilder, Failure> {
    let recording = Recording::open(arguments.allow_key_log, &StandardError)?;
    if let Some(log) = recording.key_log {
        builder = builder.key_log(log);
    }
    if let Some(capture) = recording.capture {
        builder = builder.capture(capture);
    }
    Ok(builder)
}

/// Non-loopback addresses need an explicit choice of security.
fn open_to_everybody(bind: IpAddr) -> Failure {
    Failure::Usage(format!(
        "{bind} is not a loopback address, so a configuration must define who may do what. `taktwerk config init \
         server.toml` writes one: set bind there and run `taktwerk serve --config server.toml`. Or name the policies \
         to offer with --policy"
    ))
}

/// The content of the address space besides load and test nodes.
struct Content {
    nodesets: Vec<PathBuf>,
    plant: bool,
    pubsub: pubsub::Files,
}

/// The content that was added to an address space.
struct Filled {
    /// They update values while they exist.
    updaters: Vec<Updater>,
    /// The imported NodeSets.
    nodesets: Option<Batch>,
}

/// Adds the requested content.
fn fill(
    server: &Server,
    content: &Content,
    arguments: &ServeArgs,
    others: &profile::Others,
) -> Result<Filled, Failure> {
    let mut updaters = Vec::new();
    let mut nodesets = None;
    if !content.nodesets.is_empty() {
        let imported = server.import_nodesets(&content.nodesets).map_err(ServeError::from)?;
        for (index, uri) in &imported.namespaces {
            tracing::info!(index, uri, "imported");
        }
        tell!("imported {} nodes in {} namespaces", imported.node_count, imported.namespaces.len());
        nodesets = Some(imported.batch);
    }
    if content.plant {
        // Recorded history must be real, so none is generated.
        let is_kept = arguments.history.is_some() || arguments.config.is_some();
        updaters.push(plant::start(server, is_kept)?);
    }
    if arguments.interop {
        updaters.push(interop::start(server)?);
    }
    if arguments.profile {
        updaters.push(profile::start(server, others, &arguments.profile_process)?);
    }
    if arguments.signals > 0 {
        let period = u64::try_from(arguments.update.as_nanos()).unwrap_or(u64::MAX);
        updaters.extend(load::start(server, arguments.signals, period, arguments.signal_values)?);
        if arguments.history_signals {
            let now = taktwerk_net::clock::wall();
            let rule = taktwerk::history::Rule::default();
            server
                .space()
                .historize_below(&taktwerk_generator::signals::folder(), false, rule, now)
                .map_err(ServeError::from)?;
        }
    }
    updaters.extend(load::start_sets(server, &arguments.signal_set)?);
    updaters.extend(load::raise_events(server, arguments.events)?);
    Ok(Filled { updaters, nodesets })
}

/// The source of the access rules: a configuration, or the command line.
struct Access<'a> {
    configured: Option<&'a Configured>,
    offer: Option<&'a security::Offer>,
}

/// Prints the server's address and access rules.
fn announce(
    arguments: &ServeArgs,
    access: &Access<'_>,
    content: &Content,
    running: &RunningServer,
    nodes: usize,
    output: Output,
) -> Result<(), Failure> {
    let url = running.url();
    match (access.configured, access.offer) {
        (Some(configured), _) => tell_part!("{}", wrapped("", &configured.summary())),
        (None, Some(offer)) => offer.announce(arguments),
        (None, None) => {}
    }
    // Supervisors wait for exactly this line.
    output.text(&format!("READY {url}"))?;
    if output.is_json() {
        return output.line(&json!({
            "url": url,
            "pid": std::process::id(),
            "nodes": nodes,
            "plant": content.plant,
            "interop": arguments.interop,
            "signals": arguments.signals,
            "adapters": arguments.adapters,
            "events": arguments.events,
            "update_ms": arguments.update.as_secs_f64() * 1e3,
            "threads": arguments.threads,
            "security": access.offer.map(security::Offer::names),
        }));
    }
    let name = url.strip_prefix("opc.tcp://").unwrap_or(&url);
    tell!("{nodes} nodes; try: taktwerk browse {name}    (Ctrl-C ends the server)");
    Ok(())
}

/// Sets the flag when standard input is closed.
fn watch_stdin(end: Arc<AtomicBool>) -> Result<(), Failure> {
    let watch = move || {
        let mut sink = [0u8; 256];
        while matches!(std::io::stdin().read(&mut sink), Ok(1..)) {}
        end.store(true, Ordering::Relaxed);
    };
    let thread = std::thread::Builder::new().name("stdin".to_owned()).stack_size(64 << 10).spawn(watch);
    thread.map(drop).map_err(|error| Failure::Environment(format!("cannot start a thread: {error}")))
}
