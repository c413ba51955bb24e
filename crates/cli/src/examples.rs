//! The end of `--help`: examples and exit codes.

mod subcommands;

pub(crate) use subcommands::with_examples;

pub(crate) const EXIT_CODES: &str = "\
Exit codes:
    0  success
    2  wrong command line or file
    3  no connection, or refused by security
    4  a result has a Bad status
    5  measurement invalid
    6  something is missing on this machine
   99  a threshold does not hold
  130  interrupted; partial results are kept
  141  broken pipe

`taktwerk COMMAND --help` shows the options and examples of a command. Set TAKTWERK_ENDPOINT to
leave out the URL of the server.";

pub(crate) const SERVE: &str = "\
Examples:
  taktwerk serve                                              the demo plant on loopback
  taktwerk serve --port 4841 --no-plant --signals 100000 --update 100
      a load to measure
  taktwerk config init server.toml && taktwerk serve --config server.toml
      a server for other machines";

pub(crate) const ENDPOINTS: &str = "\
Examples:
  taktwerk endpoints localhost
  taktwerk endpoints opc.tcp://plc7:4840 --json";

pub(crate) const BROWSE: &str = "\
Examples:
  taktwerk browse localhost
  taktwerk browse localhost /Objects/2:Plant --recursive
  taktwerk browse localhost 'ns=2;s=Plant' --list";

pub(crate) const READ: &str = "\
Examples:
  taktwerk read localhost i=2258
  taktwerk read localhost 'ns=2;s=Plant/Mode' '/Objects/2:Plant/2:Boiler/*'
  taktwerk read localhost 'ns=2;s=Plant/ShiftLeaders#Value[0:1]' --json";

pub(crate) const HISTORY: &str = "\
Examples:
  taktwerk history localhost /Objects/2:Plant/2:Boiler/2:Temperature --from -10m --plot
  taktwerk history localhost 'ns=2;s=Plant/Boiler/Level' --aggregate Average --every 1m
  taktwerk history localhost 'ns=2;s=Plant/Boiler/Level' --from -1h --csv";

pub(crate) const WRITE: &str = "\
Examples:
  taktwerk write localhost 'ns=2;s=Plant/TemperatureSetpoint' 65.5";

pub(crate) const NODE: &str = "\
The server has to allow it: taktwerk serve --node-management, or [node_management] in its configuration.

Examples:
  taktwerk node add localhost /Objects Line
  taktwerk node add localhost /Objects/1:Line Speed 1.5 --writable
  taktwerk node delete localhost /Objects/1:Line";

pub(crate) const NODE_ADD: &str = "\
Examples:
  taktwerk node add localhost /Objects Line                           a folder
  taktwerk node add localhost /Objects/1:Line Speed 1.5 --writable    a Variable
  taktwerk node add localhost /Objects/1:Line Level 0 --type-definition i=2368
      an AnalogItemType with its EURange";

pub(crate) const NODE_DELETE: &str = "\
Examples:
  taktwerk node delete localhost /Objects/1:Line
  taktwerk node delete localhost 'ns=1;s=Line/Speed' 'ns=1;s=Line/Level'";

pub(crate) const NODE_LINK: &str = "\
Examples:
  taktwerk node link localhost /Objects/1:Line i=35 /Objects/1:Pump      add Line Organizes Pump
  taktwerk node unlink localhost /Objects/1:Line i=35 /Objects/1:Pump    delete it";

pub(crate) const NODESET_EXPORT: &str = "\
Examples:
  taktwerk nodeset export localhost /Objects/2:Plant --to plant.xml
  taktwerk serve --port 4841 --no-plant --nodeset plant.xml";

pub(crate) const NODESET_LOAD: &str = "\
Examples:
  taktwerk nodeset load plant.example line.xml --check --user admin      would the server load it?
  taktwerk nodeset load plant.example line.xml --user admin";

pub(crate) const NODESET_UNLOAD: &str = "\
Examples:
  taktwerk nodeset unload plant.example urn:line --user admin";

pub(crate) const CALL: &str = "\
Examples:
  taktwerk call localhost 'ns=2;s=Plant/Methods/Add' 19 23";

pub(crate) const WATCH: &str = "\
Examples:
  taktwerk watch localhost '/Objects/2:Plant/2:Robot/*' -I 500
  taktwerk watch localhost i=2258 -n 10 --json";

pub(crate) const QUERY: &str = "\
Examples:
  taktwerk query localhost AnalogItemType --select EURange,#Value
  taktwerk query localhost AnalogItemType --where \"#Value > 50 and #BrowseName like '%Level%'\"
  taktwerk query localhost /Types/ObjectTypes/BaseObjectType/2:PumpType --where \"2:Speed >= 10\" -j";

pub(crate) const EVENTS: &str = "\
Examples:
  taktwerk events localhost
  taktwerk events localhost --filter \"severity >= 300 and message like '%rejected%'\"
  taktwerk events localhost /Objects/2:Plant/2:Conveyor -n 1 --json";

pub(crate) const ALARMS: &str = "\
Examples:
  taktwerk alarms localhost                                    follow them; Ctrl-C ends it
  taktwerk alarms localhost --list --json
  taktwerk alarms localhost --acknowledge Boiler/Temperature --comment 'on my way'
  taktwerk alarms localhost --shelve Boiler/Level --for 10m";

pub(crate) const PKI: &str = "\
Examples:
  taktwerk pki show                        certificates and trust lists of the client
  taktwerk pki doctor opc.tcp://plc7:4840  why a server is refused, and what to do
  taktwerk pki show --serve                the same for the demo server";

pub(crate) const CONFIG: &str = "\
Examples:
  taktwerk config init server.toml
  taktwerk config init /etc/taktwerk/server.toml --state /var/lib/taktwerk
  taktwerk config init gateway.toml --modbus plc7:502         a gateway that runs as it is
  taktwerk config init gateway.toml --mqtt mqtt://broker --opcua opc.tcp://plc8:4840
  taktwerk config init gateway.toml --modbus plc7:502 --web 127.0.0.1:8080   with a dashboard
  taktwerk config init gateway.toml --replay oven.csv         a tag for each column of a recording
  taktwerk config check server.toml
  taktwerk config apply server.toml        to the server that runs with it";

#[cfg(feature = "gateway")]
pub(crate) const GATEWAY: &str = "\
Examples:
  taktwerk gateway check gateway.toml
  taktwerk gateway browse mqtt://broker --for 30s
  taktwerk gateway scan --modbus 10.0.0.1-20:502
  taktwerk gateway import publishednodes.json --to gateway.toml";

#[cfg(feature = "gateway")]
pub(crate) const GATEWAY_CHECK: &str = "\
Examples:
  taktwerk gateway check gateway.toml
  taktwerk gateway check gateway.toml --strict --json";

#[cfg(feature = "gateway")]
pub(crate) const GATEWAY_BROWSE: &str = "\
Examples:
  taktwerk gateway browse gateway.toml oven        the source of a file, with its user and keys
  taktwerk gateway browse mqtt://broker --for 30s --below 'line/#'
  taktwerk gateway browse opc.tcp://plc8 --toml    tags to paste into the file
  taktwerk gateway browse modbus://plc7:502";

#[cfg(feature = "gateway")]
pub(crate) const GATEWAY_SCAN: &str = "\
Examples:
  taktwerk gateway scan --modbus plc7 --units 1-32
  taktwerk gateway scan --modbus 10.0.0.1-20:502 --json
  taktwerk gateway scan --opcua opc.tcp://discovery:4840";

#[cfg(feature = "gateway")]
pub(crate) const GATEWAY_IMPORT: &str = "\
Examples:
  taktwerk gateway import publishednodes.json --to gateway.toml
  taktwerk gateway import tags.csv --address plc7:502 --name plc7";

#[cfg(feature = "gateway")]
pub(crate) const GATEWAY_EXPORT: &str = "\
Examples:
  taktwerk gateway export gateway.toml --to tags.csv";

#[cfg(feature = "gateway")]
pub(crate) const GATEWAY_ADAPTER: &str = "\
Example:
  taktwerk gateway adapter        in the configuration of a gateway:
    [[source]]
    name = \"machine\"
    type = \"program\"
    command = [\"taktwerk\", \"gateway\", \"adapter\"]
    interval = \"100 ms\"

    [[tag]]
    source = \"machine\"
    name = \"Load\"
    address = \"sine\"             # or \"random\"; without it, the value counts (integers from 0 to 99)";

pub(crate) const BACKUP: &str = "\
Example:
  taktwerk backup server.toml backup.tar.gz";

pub(crate) const RESTORE: &str = "\
Examples:
  taktwerk restore backup.tar.gz restored --dry-run
  taktwerk restore backup.tar.gz /etc/taktwerk --outside --force";

pub(crate) const USER: &str = "\
Examples:
  taktwerk user add olaf --role Operator
  taktwerk user list --json";

pub(crate) const PUBSUB: &str = "\
Examples:
  taktwerk pubsub publish & taktwerk pubsub listen            over UDP multicast
  taktwerk pubsub publish mqtt+json://127.0.0.1 --embedded-broker
      over MQTT, without installing a broker";

pub(crate) const BENCH: &str = "\
Examples:
  taktwerk bench read localhost -c 10 -d 10s
  taktwerk bench subscribe localhost --items 1000 -I 100 -d 10s
  taktwerk bench gateway --devices 50 --registers 200 --poll 100
  taktwerk bench gateway --against asyncua-pymodbus,node-red
  taktwerk bench gateway-mqtt --rate 10000
  taktwerk bench gateway-opcua --servers 20 --items 500 -c 50
  taktwerk bench gateway-apply --changed 10000";

pub(crate) const LAB: &str = "\
Examples:
  taktwerk lab reproduce all --quick  all experiments in twelve minutes
  taktwerk lab run scenario.toml      a scenario of your own
  taktwerk lab compare BASE RUN       two runs";

pub(crate) const MODEL: &str = "\
Examples:
  taktwerk lab calibrate --quick && taktwerk model fit
  taktwerk model predict --items 3000 -c 4 -I 100";

pub(crate) const SIZE: &str = "\
Examples:
  taktwerk size docs/lab/plants/burger-case-1.toml";

pub(crate) const SIM: &str = "\
Examples:
  taktwerk sim docs/lab/plants/two-lines.toml
  taktwerk sim docs/lab/plants/two-lines.toml --set link.0.rate=256k --seeds 20
  taktwerk lab calibrate --host here.toml && taktwerk sim plant.toml --host-profile here.toml
  taktwerk sim docs/lab/plants/burger-case-1.toml --report plant.html
  taktwerk sim docs/lab/plants/fieldbus.toml  # PubSub over UDP and MQTT
  taktwerk sim docs/lab/plants/two-lines.toml --trace plant.json  # for ui.perfetto.dev
  taktwerk sim docs/lab/plants/two-lines.toml --pcap 'leased line=line.pcap'  # for Wireshark";

pub(crate) const TUNE: &str = "\
Examples:
  taktwerk tune docs/lab/plants/cavalieri.toml
  taktwerk tune docs/lab/plants/cavalieri.toml --set link.rate=10M --json
  taktwerk tune docs/lab/plants/cavalieri.toml --constraint 'delay_p99_ms <= 30' -o tuned
  taktwerk tune docs/lab/plants/cavalieri.toml --measure
  taktwerk tune localhost --set link=ppp-2m";

pub(crate) const LAB_TRUTH: &str = "\
Examples:
  taktwerk lab truth
  taktwerk lab truth --links loopback,ppp-2m --repetitions 5
  taktwerk lab truth --host-profile here.toml --json
  taktwerk lab truth --stored truth --host-profile other.toml";

pub(crate) const LAB_HEADROOM: &str = "\
Examples:
  taktwerk lab headroom
  taktwerk lab headroom --steps 4 --until 40
  taktwerk lab headroom --model models.json --json";

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    /// Splits a line into words as a shell does. Supports what the examples use.
    fn words(line: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        let mut quote = None;
        for character in line.chars() {
            match character {
                '\'' | '"' if quote == Some(character) => quote = None,
                '\'' | '"' if quote.is_none() => quote = Some(character),
                ' ' if quote.is_none() => words.push(String::new()),
                other => words.last_mut().unwrap().push(other),
            }
        }
        words.retain(|word| !word.is_empty());
        words
    }

    /// The commands without subcommands, with their paths.
    fn leaves(command: &clap::Command, path: &str, found: &mut Vec<(String, clap::Command)>) {
        let mut children = command.get_subcommands().filter(|child| !child.is_hide_set()).peekable();
        if children.peek().is_none() {
            found.push((path.to_owned(), command.clone()));
        }
        for child in children {
            leaves(child, &format!("{path} {}", child.get_name()), found);
        }
    }

    /// The command lines of an example, without its explanation and without shell operators.
    fn command_lines(example: &str) -> impl Iterator<Item = &str> {
        let line = example.trim_start().split("  ").next().unwrap_or_default();
        line.split('&')
            .map(|part| part.split(" > ").next().unwrap_or_default().trim())
            .filter(|part| !part.is_empty())
    }

    #[test]
    fn every_command_has_examples_that_parse() {
        let cli = super::with_examples(crate::Cli::command());
        let mut commands = Vec::new();
        leaves(&cli, "taktwerk", &mut commands);
        for child in cli.get_subcommands() {
            commands.push((format!("taktwerk {}", child.get_name()), child.clone()));
        }
        assert!(commands.len() > 80, "only {} commands", commands.len());
        for (path, command) in commands {
            let help = command.get_after_help().or_else(|| command.get_after_long_help());
            let help = help.map(ToString::to_string).unwrap_or_default();
            let examples: Vec<&str> = help.lines().filter(|line| line.starts_with("  taktwerk")).collect();
            assert!(!examples.is_empty(), "{path} has no examples");
            assert!(examples.iter().any(|example| example.contains(&path)), "{path}: none shows it: {help}");
            // `--help` shows the long text if there is one.
            if let Some(long) = command.get_after_long_help() {
                let long = long.to_string();
                assert!(examples.iter().all(|example| long.contains(example)), "{path}");
            }
            for part in examples.iter().flat_map(|example| command_lines(example)) {
                if part.starts_with("man ") {
                    continue;
                }
                let parsed = crate::Cli::try_parse_from(words(part));
                assert!(parsed.is_ok(), "{part}: {}", parsed.err().unwrap());
            }
        }
    }

    #[test]
    fn help_fits_a_hundred_columns() {
        let mut cli = super::with_examples(crate::Cli::command());
        cli.build();
        let mut commands: Vec<&clap::Command> = vec![&cli];
        while let Some(command) = commands.pop() {
            commands.extend(command.get_subcommands());
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            // Prose is wrapped; commands must not be.
            let mut examples = help.lines().filter(|line| line.starts_with(' '));
            assert!(examples.all(|line| line.chars().count() <= 100), "{}: {help}", command.get_name());
        }
    }
}
