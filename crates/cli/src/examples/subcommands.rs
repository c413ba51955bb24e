//! Examples of the commands below `pki`, `config`, `user`, `pubsub`, `bench`, `lab` and `model`.
//!
//! They are in one table, because some commands are defined in other crates that do not know the name of this program.

use clap::Command;

/// Paths of commands without `taktwerk`, and their examples.
const EXAMPLES: &[(&str, &str)] = &[
    (
        "pki init",
        "\
  taktwerk pki init --serve --host plc7.example.com
  taktwerk pki init --renew            new keys; the old ones move to own/previous",
    ),
    (
        "pki show",
        "\
  taktwerk pki show                    of the client commands
  taktwerk pki show --pki pki          of a server with pki = \"pki\" in its configuration",
    ),
    (
        "pki trust",
        "\
  taktwerk pki trust                   list the rejected certificates and ask
  taktwerk pki trust 413b6a5a --pki pki",
    ),
    (
        "pki reject",
        "\
  taktwerk pki reject 413b6a5a --pki pki",
    ),
    (
        "pki csr",
        "\
  taktwerk pki csr --out request.csr --host plc7.example.com",
    ),
    (
        "pki import",
        "\
  taktwerk pki import --own certificate.der    the certificate from an authority
  taktwerk pki import ca.der                   trust certificates of this authority
  taktwerk pki import ca.crl                   its revocation list",
    ),
    (
        "pki doctor",
        "\
  taktwerk pki doctor                  the last rejected certificate
  taktwerk pki doctor opc.tcp://plc7:4840
  taktwerk pki doctor boiler.der --as client",
    ),
    (
        "config check",
        "\
  taktwerk config check server.toml",
    ),
    (
        "config apply",
        "\
  taktwerk config apply server.toml",
    ),
    (
        "config init",
        "\
  taktwerk config init server.toml
  taktwerk config init gateway.toml --modbus plc7:502 --mqtt mqtt://broker
  taktwerk config init gateway.toml --opcua opc.tcp://plc8:4840",
    ),
    (
        "user add",
        "\
  taktwerk user add olaf --role Operator
  taktwerk user add anna --role Engineer --file /var/lib/taktwerk/users.toml",
    ),
    (
        "user list",
        "\
  taktwerk user list --file users.toml",
    ),
    (
        "user remove",
        "\
  taktwerk user remove olaf",
    ),
    (
        "user passwd",
        "\
  taktwerk user passwd olaf",
    ),
    (
        "user role",
        "\
  taktwerk user role olaf Operator Observer",
    ),
    (
        "pubsub publish",
        "\
  taktwerk pubsub publish                              simulated values over UDP multicast
  taktwerk pubsub publish mqtt+json://127.0.0.1 --embedded-broker
  taktwerk pubsub publish --from localhost --nodes '/Objects/2:Plant/2:Boiler/*' -I 500",
    ),
    (
        "pubsub listen",
        "\
  taktwerk pubsub listen
  taktwerk pubsub listen mqtt+json://127.0.0.1 --json",
    ),
    (
        "pubsub call",
        "\
  taktwerk pubsub call opc.udp://239.0.0.1:4840 --responder 7",
    ),
    (
        "pubsub keys",
        "\
  taktwerk pubsub keys plant > plant.keys",
    ),
    (
        "bench connect",
        "\
  taktwerk bench connect localhost -c 10 -d 10s",
    ),
    (
        "bench read",
        "\
  taktwerk bench read localhost -c 10 -d 10s",
    ),
    (
        "bench write",
        "\
  taktwerk bench write localhost --nodes 'ns=2;s=Plant/TemperatureSetpoint' -d 10s",
    ),
    (
        "bench browse",
        "\
  taktwerk bench browse localhost -c 10 -d 10s",
    ),
    (
        "bench subscribe",
        "\
  taktwerk bench subscribe localhost --items 1000 -I 100 -d 10s",
    ),
    (
        "bench mqtt",
        "\
  taktwerk bench mqtt --peer mosquitto -c 10",
    ),
    (
        "bench pubsub",
        "\
  taktwerk bench pubsub --signals 10000 -I 100 -d 10s",
    ),
    (
        "bench igmp",
        "\
  taktwerk bench igmp opc.udp://239.192.0.3:4840 -d 5s",
    ),
    (
        "bench roundtrip",
        "\
  taktwerk bench roundtrip localhost -d 10s            to a server of `taktwerk serve --interop`",
    ),
    (
        "bench fan",
        "\
  taktwerk bench fan localhost -c 10 -d 10s            to a server of `taktwerk serve --interop`",
    ),
    (
        "bench probe",
        "\
  taktwerk bench probe localhost --rate 100 -d 1m",
    ),
    (
        "bench update",
        "\
  taktwerk bench update --signals 100000 --threads 2",
    ),
    (
        "bench gateway",
        "\
  taktwerk bench gateway --devices 50 --registers 200 --poll 100 -I 100",
    ),
    (
        "bench gateway-mqtt",
        "\
  taktwerk bench gateway-mqtt --rate 10000 -I 1",
    ),
    (
        "bench gateway-opcua",
        "\
  taktwerk bench gateway-opcua --servers 20 --items 500 -c 50 -I 500",
    ),
    (
        "bench gateway-apply",
        "\
  taktwerk bench gateway-apply --changed 10000 --applies 5",
    ),
    (
        "lab list",
        "\
  taktwerk lab list --stacks own",
    ),
    (
        "lab reproduce",
        "\
  taktwerk lab reproduce all --quick
  taktwerk lab reproduce burger-cpu --stacks own,open62541 -o report.html",
    ),
    (
        "lab run",
        "\
  taktwerk lab run scenario.toml -o report.html",
    ),
    (
        "lab calibrate",
        "\
  taktwerk lab calibrate --quick
  taktwerk lab calibrate --host here.toml    processor costs for `taktwerk sim`",
    ),
    (
        "lab capacity",
        "\
  taktwerk lab capacity localhost --within 5m
  taktwerk lab capacity plc7 --safe          a plant in production",
    ),
    (
        "lab cpu show",
        "\
  taktwerk lab cpu show 4711",
    ),
    (
        "lab cpu run",
        "\
  taktwerk lab cpu run --cpus 1 --isolate -- taktwerk serve",
    ),
    (
        "lab links list",
        "\
  taktwerk lab links list",
    ),
    (
        "lab links probe",
        "\
  taktwerk lab links probe rate=2mbit,delay=20ms",
    ),
    (
        "lab links tcp",
        "\
  taktwerk lab links tcp rate=2mbit,delay=20ms --loss 0,1",
    ),
    (
        "lab links run",
        "\
  taktwerk lab links run rate=2mbit,delay=20ms -- sh -c 'ping -c 5 $LINK_SERVER'",
    ),
    (
        "lab links proxy",
        "\
  taktwerk lab links proxy rate=2mbit,delay=20ms 127.0.0.1:4850 127.0.0.1:4840",
    ),
    (
        "lab links clean",
        "\
  taktwerk lab links clean",
    ),
    (
        "lab flood",
        "\
  taktwerk lab flood connects --seconds 20",
    ),
    (
        "lab peers list",
        "\
  taktwerk lab peers list",
    ),
    (
        "lab peers install",
        "\
  taktwerk lab peers install open62541 asyncua",
    ),
    (
        "lab peers check",
        "\
  taktwerk lab peers check open62541",
    ),
    (
        "lab peers run",
        "\
  taktwerk lab peers run open62541 --port 4850",
    ),
    (
        "lab runs",
        "\
  taktwerk lab runs
  taktwerk lab runs --csv 3",
    ),
    (
        "lab compare",
        "\
  taktwerk lab compare 3 4",
    ),
    (
        "lab report",
        "\
  taktwerk lab report 3 -o report.html",
    ),
    (
        "model fit",
        "\
  taktwerk model fit -o here.json",
    ),
    (
        "model predict",
        "\
  taktwerk model predict --items 3000 -c 4 -I 100 --model epyc-vm",
    ),
];

/// Adds the examples of the table to the help of a program's commands.
pub(crate) fn with_examples(mut root: Command) -> Command {
    for (path, examples) in EXAMPLES {
        let mut names: Vec<&str> = path.split(' ').collect();
        root = add(root, &mut names, examples);
    }
    root
}

/// Adds examples to the command with this path. Does nothing if the build does not have it.
fn add(command: Command, names: &mut Vec<&str>, examples: &str) -> Command {
    if names.is_empty() {
        let heading = if examples.contains('\n') { "Examples" } else { "Example" };
        let before = command.get_after_help().map(|text| format!("{text}\n\n")).unwrap_or_default();
        // The first line needs its indentation: a continued string literal has none.
        return command.after_help(format!("{before}{heading}:\n  {}", examples.trim_start()));
    }
    let name = names.remove(0);
    if command.find_subcommand(name).is_none() {
        return command;
    }
    command.mut_subcommand(name, |child| add(child, names, examples))
}
