//! `taktwerk lab links`: emulated networks.

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::progress::Waiting;
use clap::{Args, Subcommand};
use serde_json::json;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use taktwerk_lab::links::{Effort, Link, Method, Probed, Profile, probe, tcp};
use taktwerk_lab::orphans;
use taktwerk_lab::outcome::wrapped;
use taktwerk_lab::program::{Program, Running};
use taktwerk_lab::table::{Align, Table};
use taktwerk_netem::emulator::Counters;
use taktwerk_netem::emulator::loss::Loss;
use taktwerk_netem::profile::{NAMES, ParseProfileError, named, rate_text, short};
use taktwerk_netem::tcp::Exchange;

/// Parses a link. Shared, because it is much larger than other arguments.
fn profile(text: &str) -> Result<Arc<Profile>, ParseProfileError> {
    text.parse().map(Arc::new)
}

/// The subcommand.
#[derive(Debug, Subcommand)]
pub(crate) enum LinksCommand {
    /// List the named links with their figures.
    List,
    /// Create a link, verify its properties, and remove it.
    Probe(ProbeArgs),
    /// Compare the simulator's TCP with the TCP of this kernel, over the same link with the same losses. Needs root.
    Tcp(TcpArgs),
    /// Run a program, and a server if wanted, at the two ends of a link.
    Run(RunArgs),
    /// Relay TCP and UDP over a link until interrupted; needs no privileges.
    Proxy(ProxyArgs),
    /// Remove leftovers of killed laboratories: programs, control groups, governors.
    Clean,
}

/// Which link, and how it is made.
#[derive(Debug, Args)]
pub(crate) struct LinkArgs {
    /// A name (see `lab links list`), NAME+vpn, NAME,key=value, or rate=…,delay=…,jitter=…,loss=….
    #[arg(value_name = "LINK", value_parser = profile)]
    link: Arc<Profile>,
    /// kernel, tun or proxy. Default: the most exact one that works here.
    #[arg(long, value_name = "METHOD")]
    method: Option<Method>,
    /// Seed of the emulator: the same seed loses and delays the same packets.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
}

impl LinkArgs {
    fn up(&self) -> Result<Link, Failure> {
        taktwerk_lab::leftovers::clean_up();
        let link = match self.method {
            Some(method) => Link::by(method, &self.link, self.seed),
            None => Link::up(&self.link, self.seed),
        };
        let link = link.map_err(|error| Failure::Environment(error.to_string()))?;
        link.notes().iter().for_each(|note| tracing::info!("{note}"));
        Ok(link)
    }
}

/// Arguments of `lab links probe`.
#[derive(Debug, Args)]
pub(crate) struct ProbeArgs {
    #[command(flatten)]
    link: LinkArgs,
}

/// Arguments of `lab links tcp`.
#[derive(Debug, Args)]
pub(crate) struct TcpArgs {
    /// A name (see `lab links list`), NAME+vpn, NAME,key=value, or rate=…,delay=…,jitter=…,loss=….
    #[arg(value_name = "LINK", value_parser = profile)]
    link: Arc<Profile>,
    /// Losses in percent, separated by commas, instead of the link's.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_values_t = [0.0, 1.0, 3.0])]
    loss: Vec<f64>,
    /// Bytes of the bulk transfer.
    #[arg(long, value_name = "BYTES", default_value_t = 2_000_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    bulk: u32,
    /// Requests of 100 bytes with responses of 1 000 bytes in each repetition.
    #[arg(long, value_name = "NUMBER", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    requests: u32,
    /// Repetitions, each with other losses.
    #[arg(long, value_name = "NUMBER", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    repetitions: u32,
    /// Seed of the first repetition.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
}

/// Arguments of `lab links run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    link: LinkArgs,
    /// Server to run at the far end, by the shell. $LINK_SERVER has the address to listen on; print READY when it is
    /// ready.
    #[arg(long, value_name = "COMMAND")]
    server: Option<String>,
    /// Skip the verification of the link.
    #[arg(long)]
    unverified: bool,
    /// Program at the near end. $LINK_SERVER has the address of the far end.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Arguments of `lab links proxy`.
#[derive(Debug, Args)]
pub(crate) struct ProxyArgs {
    /// A name (see `lab links list`), NAME+vpn, NAME,key=value, or rate=…,delay=…,jitter=…,loss=….
    #[arg(value_name = "LINK", value_parser = profile)]
    link: Arc<Profile>,
    /// Address for clients.
    #[arg(value_name = "ADDRESS:PORT")]
    listen: SocketAddr,
    /// Address of the server.
    #[arg(value_name = "ADDRESS:PORT")]
    server: SocketAddr,
    /// Seed of the emulator.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Verify the link first.
    #[arg(long)]
    verify: bool,
    /// Exit when stdin closes (for supervisors).
    #[arg(long, hide = true)]
    exit_with_stdin: bool,
}

/// Runs a command.
pub(crate) fn run(command: &LinksCommand, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    match command {
        LinksCommand::List => list(output),
        LinksCommand::Probe(arguments) => probe_link(arguments, output),
        LinksCommand::Tcp(arguments) => compare_tcp(arguments, output, interrupt),
        LinksCommand::Run(arguments) => run_over(arguments, output, interrupt),
        LinksCommand::Proxy(arguments) => relay(arguments, output, interrupt),
        LinksCommand::Clean => clean(output),
    }
}

fn list(output: Output) -> Result<(), Failure> {
    let profiles: Vec<_> = NAMES.iter().filter_map(|name| named(name)).collect();
    if output.is_json() {
        return output.document(&json!(profiles));
    }
    let mut table = Table::new(&[
        ("link", Align::Left),
        ("round trip", Align::Right),
        ("up", Align::Left),
        ("down", Align::Left),
    ]);
    for profile in &profiles {
        let round_trip = format!(
            "{} ± {} ms",
            short(profile.round_trip(100) * 1e3),
            short(profile.round_trip_std() * 1e3)
        );
        let down = if profile.up == profile.down { "the same".to_owned() } else { profile.down.to_string() };
        table.row([profile.name.clone(), round_trip, profile.up.to_string(), down]);
    }
    output.text(&table.to_string())?;
    output.text(
        "\nAlso NAME+vpn (WireGuard), NAME,key=value and rate=…,delay=…,jitter=…,loss=…: see docs/lab/links.md.",
    )
}

fn failed(error: std::io::Error) -> Failure {
    Failure::Environment(format!("cannot probe the link: {error}"))
}

/// Probes a link, with a progress bar.
fn look(link: &Link) -> Result<Probed, Failure> {
    let effort = Effort::default();
    let expected = Duration::try_from_secs_f64(effort.seconds(link.profile())).unwrap_or_default();
    let _bar = Waiting::of_time("probing the link", expected);
    probe(link, &effort).map_err(failed)
}

fn compare_tcp(arguments: &TcpArgs, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    taktwerk_lab::leftovers::clean_up();
    if let Some(loss) = arguments.loss.iter().find(|loss| !(0.0..=50.0).contains(*loss)) {
        return Err(Failure::Usage(format!("--loss {loss}: write a percentage from 0 to 50")));
    }
    let bulk = Exchange { request: arguments.bulk as usize, response: 1, count: 1 };
    let requests = Exchange { request: 100, response: 1_000, count: arguments.requests as usize };
    let mut table = Table::new(&[
        ("transfer", Align::Left),
        ("loss", Align::Right),
        ("kernel", Align::Right),
        ("model", Align::Right),
        ("error", Align::Right),
    ]);
    let mut documents = Vec::new();
    let wrong = |error: std::io::Error| Failure::Environment(format!("cannot compare TCP: {error}"));
    let late = tcp::lateness(&arguments.link, arguments.seed).map_err(wrong)?;
    for (what, name) in [(bulk, "bulk"), (requests, "request and response")] {
        for loss in &arguments.loss {
            if interrupt.flag().load(std::sync::atomic::Ordering::Relaxed) {
                return Err(Failure::Environment("interrupted".to_owned()));
            }
            let mut profile = (*arguments.link).clone();
            for way in [&mut profile.up, &mut profile.down] {
                way.loss = match loss {
                    0.0 => Loss::None,
                    loss => Loss::Independent { probability: loss / 100.0 },
                };
            }
            let compared =
                tcp::compare(&profile, &what, arguments.repetitions, arguments.seed, late).map_err(wrong)?;
            let shown = |seconds: f64| match name {
                "bulk" => rate_text(Some(f64::from(arguments.bulk) * 8.0 / seconds)),
                _ => format!("{} ms", short(seconds * 1e3 / f64::from(arguments.requests))),
            };
            let (kernel, model) = (compared.kernel_mean(), compared.model_mean());
            let error = format!("{:+.1} %", compared.error() * 100.0);
            table.row([name.to_owned(), format!("{loss} %"), shown(kernel), shown(model), error]);
            documents.push(json!({
                "transfer": name, "loss_percent": loss, "kernel_mean_s": kernel, "model_mean_s": model,
                "error": compared.error(), "details": compared,
            }));
        }
    }
    if output.is_json() {
        return output.document(
            &json!({"link": *arguments.link, "late_ms": late.as_secs_f64() * 1e3, "compared": documents}),
        );
    }
    output.text(&format!(
        "{}: {} repetitions, CUBIC, error of the time. Packets are {} ms late in each direction, in the model too",
        arguments.link.name,
        arguments.repetitions,
        short(late.as_secs_f64() * 1e3)
    ))?;
    output.text(&table.to_string())
}

fn probe_link(arguments: &ProbeArgs, output: Output) -> Result<(), Failure> {
    let link = arguments.link.up()?;
    let probed = look(&link)?;
    if output.is_json() {
        let mut document = json!(probed);
        if let Some(object) = document.as_object_mut() {
            object.insert("verified".to_owned(), json!(probed.is_verified()));
            object.insert("notes".to_owned(), json!(link.notes()));
        }
        output.document(&document)?;
    } else {
        output.text(&table(&probed))?;
    }
    verdict(&probed)
}

/// Fails if the link does not have the requested properties.
fn verdict(probed: &Probed) -> Result<(), Failure> {
    if probed.is_verified() {
        return Ok(());
    }
    Err(Failure::Environment(format!(
        "the link does not have the requested properties: {}. The machine may be busy",
        probed.deviations.join("; ")
    )))
}

/// Requested and measured properties.
fn table(probed: &Probed) -> String {
    let mut table = Table::new(&[("link", Align::Left), ("asked", Align::Right), ("measured", Align::Right)]);
    let (asked, seen) = (&probed.expected, &probed.round_trips);
    table.row([format!("{} by {}", probed.asked.name, probed.method), String::new(), String::new()]);
    for (what, asked, seen) in [
        ("round trip, mean", asked.mean_ms, seen.mean_ms),
        ("  standard deviation", asked.std_ms, seen.std_ms),
        ("  shortest", asked.min_ms, seen.min_ms),
        ("  median", asked.p50_ms, seen.p50_ms),
        ("  95 %", asked.p95_ms, seen.p95_ms),
    ] {
        table.row([what.to_owned(), format!("{} ms", short(asked)), format!("{} ms", short(seen))]);
    }
    let ways = [
        ("up", &probed.asked.up, &probed.expected_up, &probed.up),
        ("down", &probed.asked.down, &probed.expected_down, &probed.down),
    ];
    for (way, conditions, expected, seen) in ways {
        if let Some(rate) = seen.rate {
            let asked = rate_text(conditions.usable_rate());
            let what = format!("{way}, IP packets of {} B", probed.packet_bytes);
            table.row([what, asked, rate_text(Some(rate))]);
        }
        if let (Some(expected), Some(seen)) = (expected.queue_ms, seen.queue_ms) {
            let ms = |ms| format!("{} ms", short(ms));
            table.row([format!("{way}, waiting in a full queue"), ms(expected), ms(seen)]);
        }
        for (what, share, count) in [
            ("lost", conditions.loss.share(), seen.lost),
            ("arriving twice", conditions.duplicate, seen.doubled),
            ("overtaking", conditions.reorder, seen.overtook),
        ] {
            if share > 0.0 && seen.sent > 0 {
                let percent = |share: f64| format!("{} %", short(share * 100.0));
                let found = percent(count as f64 / seen.sent as f64);
                table.row([
                    format!("{way}, {what}"),
                    percent(share),
                    format!("{found} ({count} of {})", seen.sent),
                ]);
            }
        }
    }
    let unseen: String = probed.not_looked_at.iter().map(|what| wrapped("not verified  ", what)).collect();
    format!("{table}{unseen}")
}

fn run_over(arguments: &RunArgs, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    let link = arguments.link.up()?;
    if !arguments.unverified {
        let probed = look(&link)?;
        if !output.is_json() {
            tell!("{}", table(&probed));
        }
        verdict(&probed)?;
    }
    let address = link.server_address();
    let server = arguments.server.as_deref().map(|command| far(&link, command)).transpose()?;
    let mut target = address.to_string();
    if let Some(server) = &server {
        tell!("at the far end: {}", server.url());
        // A proxy has another address than the server.
        if link.method() == Method::Proxy {
            let port =
                server.url().rsplit(':').next().and_then(|port| port.trim_end_matches('/').parse().ok());
            let port: u16 = port.ok_or_else(|| {
                Failure::Usage(format!("the server said READY {}, which has no port", server.url()))
            })?;
            target = link.reach((address, port).into()).map_err(failed)?.to_string();
        }
    }
    let status = near(&link, &arguments.command, &target, interrupt)?;
    drop(server);
    let [up, down] = link.counters();
    tell!("over the link up:   {}\n              down: {}", carried(&up), carried(&down));
    if interrupt.asked() {
        return Err(Failure::Interrupted);
    }
    if status.success() {
        return Ok(());
    }
    Err(Failure::Ended { line: arguments.command.join(" "), status })
}

fn carried(counters: &Counters) -> String {
    let lost = if counters.lost + counters.dropped > 0 {
        format!(" ({} lost, {} dropped)", counters.lost, counters.dropped)
    } else {
        String::new()
    };
    format!("{} packets, {} bytes{lost}", counters.packets, counters.bytes)
}

/// Starts the server at the far end.
fn far(link: &Link, command: &str) -> Result<Running, Failure> {
    let address = link.server_address();
    let mut program = Program::new("/bin/sh")
        .args(["-c", &format!("LINK_SERVER={address}; export LINK_SERVER; {command}")]);
    if let Some(place) = link.server_place() {
        program = program.within(place);
    }
    program.serve(Duration::from_secs(120)).map_err(|error| Failure::Environment(error.to_string()))
}

/// Runs the program at the near end in this terminal until it ends. An interrupt ends it too.
fn near(
    link: &Link,
    command: &[String],
    target: &str,
    interrupt: &Interrupt,
) -> Result<std::process::ExitStatus, Failure> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(Failure::Usage("there is no program to run".to_owned()));
    };
    let start = || {
        let mut command = Command::new(program);
        command.args(arguments).env("LINK_SERVER", target).env(orphans::OWNER, orphans::owner());
        command.spawn()
    };
    let child = match link.client_place() {
        Some(place) => place.inside(start).and_then(|child| child),
        None => start(),
    };
    let failed = |error: std::io::Error| Failure::Environment(format!("cannot run {program}: {error}"));
    super::wait(&mut child.map_err(failed)?, interrupt).map_err(failed)
}

fn relay(arguments: &ProxyArgs, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    let failed_listen =
        |error: std::io::Error| Failure::Environment(format!("{}: {error}", arguments.listen));
    if arguments.exit_with_stdin {
        crate::supervised::end_with_stdin()?;
    } else {
        taktwerk_lab::leftovers::clean_up();
    }
    let link = Link::by(Method::Proxy, &arguments.link, arguments.seed)
        .map_err(|error| Failure::Environment(error.to_string()))?;
    if arguments.verify {
        let probed = probe(&link, &Effort::BRIEF).map_err(failed)?;
        verdict(&probed)?;
        if !output.is_json() {
            output.text(&format!("PROBED {}", json!(probed)))?;
        }
    }
    let listening = link.reach_at(Some(arguments.listen), arguments.server).map_err(failed_listen)?;
    link.reach_udp_at(Some(listening), arguments.server).map_err(failed_listen)?;
    if !output.is_json() {
        output.text(&format!(
            "READY {listening} to {} over {}; Ctrl-C ends it",
            arguments.server, arguments.link.name
        ))?;
    }
    while !interrupt.asked() {
        std::thread::sleep(Duration::from_millis(50));
    }
    let [up, down] = link.counters();
    if output.is_json() {
        return output.document(&json!({ "link": *arguments.link, "up": up, "down": down }));
    }
    output.text(&format!("up {}, down {}", carried(&up), carried(&down)))
}

fn clean(output: Output) -> Result<(), Failure> {
    let cleaned = taktwerk_lab::leftovers::clean();
    if output.is_json() {
        return output.document(&json!({ "cleaned": cleaned }));
    }
    if cleaned.is_empty() {
        return output.text("nothing to clean up");
    }
    output.text(&cleaned.join("\n"))
}
