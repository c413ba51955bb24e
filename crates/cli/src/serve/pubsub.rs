//! PubSub in a server: publishes and receives as configured, and stores changes by clients.

use crate::failure::Failure;
use crate::pubsub::{KeyFile, Side, fixed_keys, read_configuration, secured};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;
use taktwerk::pubsub::config::{Configuration, DataSetSource, SubscribedDataSet};
use taktwerk::pubsub::{
    ActionResponders, GroupIndex, KeyRequest, KeySource, MqttOptions, PubSubError, PubSubStartError,
    Publisher, ReaderIndex, SecurityKeys, StaticKeys, Subscriber, describe_methods,
};
use taktwerk::pubsub_model::{KeyServiceClient, PubSubModel, SavedConfiguration, load, not_permitted};
use taktwerk::{Client, Server, StatusCode};
use taktwerk_client::config::Security;
use taktwerk_crypto::Provider;
use taktwerk_pubsub::action::ActionError;
use taktwerk_pubsub::component::Component;
use taktwerk_schema::ids::object_ids;
use taktwerk_types::NodeId;

/// The PubSub files: configuration, changes, keys.
#[derive(Debug, Default)]
pub(super) struct Files {
    pub(super) configuration: Option<PathBuf>,
    pub(super) save_to: Option<PathBuf>,
    /// Key files of security groups without a key service.
    pub(super) keys: Vec<PathBuf>,
    /// Whether Actions are answered without message security.
    pub(super) unsecured_actions: bool,
    /// Whether passwords are sent to brokers without TLS.
    pub(super) plaintext_password: bool,
    /// The file for received sequence numbers.
    pub(super) replay: Option<PathBuf>,
}

/// Running PubSub. Dropping it stops it.
pub(super) struct PubSub {
    _publisher: Arc<Publisher>,
    subscriber: Arc<Subscriber>,
    responders: Arc<ActionResponders>,
}

impl PubSub {
    /// What must be written when the process ends.
    pub(super) fn receivers(&self) -> Receivers {
        Receivers {
            subscriber: Arc::downgrade(&self.subscriber),
            responders: Arc::downgrade(&self.responders),
        }
    }
}

/// The receivers of secured messages, which save the received sequence numbers each second and at their end.
#[derive(Debug, Clone, Default)]
pub(super) struct Receivers {
    subscriber: Weak<Subscriber>,
    responders: Weak<ActionResponders>,
}

impl Receivers {
    /// Stops them for a process that ends while [`PubSub`] cannot be dropped, each within a time. Returns whether all sequence
    /// numbers are saved.
    pub(super) fn end_within(&self, most: Duration) -> bool {
        let is_saved =
            self.subscriber.upgrade().is_none_or(|subscriber| subscriber.driver().end_within(most));
        self.responders.upgrade().is_none_or(|responders| responders.end_within(most)) && is_saved
    }
}

/// Keys of the server's own security groups, and of groups with key services in the configuration.
struct Keys {
    model: PubSubModel,
    files: StaticKeys,
    services: KeyServiceClient,
}

impl Keys {
    /// The server connects to key services with its own certificate, which they must trust.
    fn new(
        model: &PubSubModel,
        files: StaticKeys,
        provider: Arc<dyn Provider>,
        uri: String,
    ) -> std::io::Result<Self> {
        let connect = move |url: &str| {
            Client::builder(url)
                .application_uri(&uri)
                .application_name("taktwerk")
                .provider(Arc::clone(&provider))
                .security(Security::Best)
        };
        Ok(Self { model: model.clone(), files, services: KeyServiceClient::new(connect)? })
    }
}

impl KeySource for Keys {
    fn fetch(&mut self, request: &KeyRequest) -> Result<SecurityKeys, StatusCode> {
        let own = self.model.local_keys(&request.security_group_id, request.requested_key_count);
        if own != Err(StatusCode::BAD_NOT_FOUND) {
            return own;
        }
        match self.files.fetch(request) {
            Err(StatusCode::BAD_NOT_FOUND) if !request.services.is_empty() => self.services.fetch(request),
            given => given,
        }
    }
}

/// Parts of a configuration that refer to missing Variables. They are not run. A saved configuration may be older than
/// the nodes of the server.
#[derive(Default)]
struct Missing {
    data_sets: Vec<String>,
    readers: Vec<ReaderIndex>,
}

impl Missing {
    fn of(configuration: &Configuration, trusted: Option<&Configuration>, server: &Server) -> Self {
        let mut absent = Self::default();
        let refused = not_permitted(configuration, trusted, server.space());
        for (data_set, node, status) in refused.data_sets {
            tracing::warn!(
                data_set, %node, %status,
                "the roles that configure PubSub may not read this Variable, or not with this message security: \
                 its data set is not published"
            );
            absent.data_sets.push(data_set);
        }
        for (index, node, status) in refused.readers {
            tracing::warn!(
                ?index, %node, %status,
                "the roles that configure PubSub may not write this Variable, or not with this message security: \
                 nothing is received for it"
            );
            absent.readers.push(index);
        }
        let missing = |id: &NodeId| !id.is_null() && server.space().variable(id).is_err();
        for set in &configuration.data_sets {
            let DataSetSource::Items(items) = &set.source else { continue };
            if let Some(item) = items.iter().find(|item| missing(&item.published_variable)) {
                let (data_set, node) = (&set.name, &item.published_variable);
                tracing::warn!(data_set, %node, "the Variable does not exist: its data set is not published");
                absent.data_sets.push(set.name.clone());
            }
        }
        for (connection, of) in configuration.connections.iter().enumerate() {
            for (group, of_group) in of.reader_groups.iter().enumerate() {
                for (position, reader) in of_group.readers.iter().enumerate() {
                    let SubscribedDataSet::TargetVariables(targets) = &reader.subscribed_data_set else {
                        continue;
                    };
                    let found =
                        targets.target_variables.iter().find(|target| missing(&target.target_node_id));
                    if let Some(target) = found {
                        let (reader, node) = (&reader.name, &target.target_node_id);
                        tracing::warn!(reader, %node, "the Variable does not exist: nothing is received for it");
                        absent.readers.push(ReaderIndex { connection, group, reader: position });
                    }
                }
            }
        }
        absent
    }

    /// Disables the parts in a configuration. The others keep their positions.
    fn remove_from(&self, configuration: &mut Configuration) {
        for set in configuration.data_sets.iter_mut().filter(|set| self.data_sets.contains(&set.name)) {
            // Without a source, nothing is sampled or sent.
            set.source = DataSetSource::Actions(Box::default());
        }
        for index in &self.readers {
            let connection = configuration.connections.get_mut(index.connection);
            let group = connection.and_then(|connection| connection.reader_groups.get_mut(index.group));
            if let Some(reader) = group.and_then(|group| group.readers.get_mut(index.reader)) {
                reader.enabled = false;
                reader.subscribed_data_set = SubscribedDataSet::None;
            }
        }
    }

    /// Shows the parts in the state Error.
    fn report(&self, model: &PubSubModel, configuration: &Configuration) {
        for (connection, of) in configuration.connections.iter().enumerate() {
            for (group, of_group) in of.writer_groups.iter().enumerate() {
                for (writer, of_writer) in of_group.writers.iter().enumerate() {
                    if self.data_sets.contains(&of_writer.data_set_name) {
                        let group = GroupIndex { connection, group };
                        model.cannot_run(Component::DataSetWriter { group, writer });
                    }
                }
            }
        }
        for index in &self.readers {
            model.cannot_run(Component::DataSetReader(*index));
        }
    }
}

/// Warns about parts that can never have keys, and refuses unused keys.
fn check_keys(configuration: &Configuration, files: &[KeyFile]) -> Result<(), Failure> {
    let own =
        |group: &str| configuration.security_groups.iter().any(|own| own.security_group_id.as_str() == group);
    if let Some(file) = files.iter().find(|file| own(&file.group)) {
        return Err(Failure::Usage(format!(
            "PubSub: the keys of {:?} are in a file (--pubsub-keys, keys), but this server generates its own, because the \
             configuration has a security group of that name: remove one of the two",
            file.group
        )));
    }
    for side in [Side::Writers, Side::Readers] {
        for one in secured(configuration, side) {
            let is_known =
                own(&one.group) || one.has_services || files.iter().any(|file| file.group == one.group);
            if !is_known {
                let (element, group) = (&one.element, &one.group);
                tracing::warn!(
                    "PubSub: {element} has message security with the group {group:?}, but no keys for it are known: nothing is \
                     sent or received. Pass a key file (--pubsub-keys; create it with: taktwerk pubsub keys {group}), \
                     let this server generate keys ([[security-group]] with id = {group:?}), or set key-services"
                );
            }
        }
    }
    Ok(())
}

fn cannot(what: &str, path: &Path, error: &dyn core::fmt::Display) -> Failure {
    Failure::Environment(format!("cannot {what} {}: {error}", path.display()))
}

impl Files {
    /// The initial configuration: the saved one, else the configured one, else an empty one.
    fn begin(&self) -> Result<Configuration, Failure> {
        if let Some(path) = &self.save_to
            && let Some(saved) = load(path).map_err(|error| cannot("read", path, &error))?
        {
            if let Some(configured) = &self.configuration {
                let (saved, configured) = (path.display(), configured.display());
                tracing::info!("using the saved PubSub configuration {saved}; {configured} is not read");
            }
            return Ok(saved);
        }
        match &self.configuration {
            Some(path) => read_configuration(path),
            None => Ok(Configuration { enabled: true, ..Configuration::default() }),
        }
    }

    /// The operator's own configuration, which is always allowed. Without a saved one, that is everything.
    fn trusted(&self, begun: &Configuration) -> Result<Option<Configuration>, Failure> {
        match &self.save_to {
            Some(path) if path.exists() => self.configuration.as_deref().map(read_configuration).transpose(),
            _ => Ok(Some(begun.clone())),
        }
    }

    /// Reads everything as [`Self::start`] does. Returns the number of connections, if PubSub is configured.
    pub(super) fn check(&self) -> Result<Option<usize>, Failure> {
        if self.configuration.is_none() && self.save_to.is_none() {
            return Ok(None);
        }
        let configuration = self.begin()?;
        self.key_files(&configuration)?;
        Ok(Some(configuration.connections.len()))
    }

    /// Checks the Variables in the operator's own file, which must exist. A saved configuration may be older than the
    /// nodes, so missing ones are only logged. `find` returns the problem of a node and a hint.
    pub(super) fn check_nodes<T>(
        &self,
        find: impl Fn(&str) -> Result<T, (String, String)>,
    ) -> Result<(), Failure> {
        let Some(path) = &self.configuration else { return Ok(()) };
        let configuration = read_configuration(path)?;
        let missing = |what: String, id: &NodeId| {
            if id.is_null() {
                return Ok(());
            }
            let written = id.to_string();
            let Err((problem, hint)) = find(&written) else { return Ok(()) };
            // A TOML file contains the NodeId as written. A binary one has no lines.
            let text = std::fs::read_to_string(path).unwrap_or_default();
            let line = text.lines().position(|line| line.contains(&format!("\"{written}\"")));
            let line = line.map_or(String::new(), |at| format!(":{}", at + 1));
            Err(Failure::Usage(format!("{}{line}: {what}: {problem}; {hint}", path.display())))
        };
        for set in &configuration.data_sets {
            let DataSetSource::Items(items) = &set.source else { continue };
            for (item, field) in items.iter().zip(&set.meta_data.fields) {
                let what = format!("data set {:?} / field {:?}", set.name, field.name.as_str());
                missing(what, &item.published_variable)?;
            }
        }
        let groups = configuration.connections.iter().flat_map(|connection| &connection.reader_groups);
        for reader in groups.flat_map(|group| &group.readers) {
            let SubscribedDataSet::TargetVariables(targets) = &reader.subscribed_data_set else { continue };
            for target in &targets.target_variables {
                missing(format!("reader {:?}", reader.name), &target.target_node_id)?;
            }
        }
        Ok(())
    }

    fn key_files(&self, configuration: &Configuration) -> Result<Vec<KeyFile>, Failure> {
        let files = self.keys.iter().map(|path| KeyFile::read(path)).collect::<Result<Vec<_>, _>>()?;
        check_keys(configuration, &files)?;
        let sending = secured(configuration, Side::Writers);
        for file in files.iter().filter(|file| sending.iter().any(|one| one.group == file.group)) {
            file.check_nonces()?;
        }
        Ok(files)
    }

    /// Starts PubSub, if it is configured.
    pub(super) fn start(&self, server: &Server) -> Result<Option<PubSub>, Failure> {
        if self.configuration.is_none() && self.save_to.is_none() {
            return Ok(None);
        }
        // Before the file is read and anything is sent: another server may use it.
        let saved = self.save_to.as_ref().map(|path| {
            SavedConfiguration::open(path).map_err(|error| {
                Failure::Environment(format!("the PubSub configuration cannot be saved: {error}"))
            })
        });
        let saved = saved.transpose()?;
        let mut configuration = self.begin()?;
        let key_files = self.key_files(&configuration)?;
        describe_methods(&mut configuration, server.space());
        let usage = |error: &dyn core::fmt::Display| Failure::Usage(format!("PubSub: {error}"));
        let start = |error: PubSubStartError| {
            match error {
            PubSubStartError::NoValues { data_set } => Failure::Usage(format!(
                "PubSub: the fields of the data set {data_set:?} name no Variables: give each its node = \"…\""
            )),
            PubSubStartError::UnsecuredActions | PubSubStartError::Actions(ActionError::JsonSecured) => {
                Failure::Usage(
                    "PubSub: Actions without message security: anyone who can reach the address could call Methods \
                     of this server. Give their WriterGroups a security group (UADP), or allow it with \
                     --pubsub-unsecured-actions or unsecured_actions = true"
                        .to_owned(),
                )
            }
            PubSubStartError::PubSub(PubSubError::PlaintextPassword { url }) => Failure::Usage(format!(
                "PubSub: {url}: the password would be sent unencrypted. Write mqtts://, or allow it: \
                 --pubsub-allow-plaintext-password, in a configuration file allow_plaintext_password = true"
            )),
            error => usage(&error),
        }
        };
        let mut mqtt = MqttOptions::default();
        mqtt.allow_plaintext_password = self.plaintext_password;
        let model = PubSubModel::add_to(server, &configuration).map_err(|error| usage(&error))?;
        model.serve_security_keys().map_err(|error| usage(&error))?;
        let config = server.config();
        let (of_model, provider) = (model.clone(), Arc::clone(&config.provider));
        let uri = config.application_uri.to_string();
        let fixed = fixed_keys(&key_files);
        let keys = move || Keys::new(&of_model, fixed.clone(), Arc::clone(&provider), uri.clone());
        let source = || keys().map_err(|error| Failure::Environment(error.to_string()));
        let absent = Missing::of(&configuration, self.trusted(&configuration)?.as_ref(), server);
        let mut runnable = configuration.clone();
        absent.remove_from(&mut runnable);
        let publisher = Publisher::of(runnable.clone())
            .space(server.space())
            .keys(source()?)
            .on_event(model.publisher_events())
            .mqtt(mqtt.clone())
            .start()
            .map_err(start)?;
        let mut tell = model.subscriber_events();
        let mut subscriber = Subscriber::of(runnable)
            .space(server.space())
            .keys(source()?)
            .on_event(move |event| tell(&event))
            .mqtt(mqtt.clone());
        if let Some(path) = &self.replay {
            subscriber = subscriber.replay_floor(path);
        }
        let subscriber = subscriber.start().map_err(start)?;
        // Actions have the rights of anonymous clients.
        let roles = [NodeId::from(object_ids::WELL_KNOWN_ROLE_ANONYMOUS)];
        let mut responders = ActionResponders::builder(server.space())
            .roles(&roles)
            .keys(keys)
            .allow_unsecured(self.unsecured_actions)
            .mqtt(mqtt);
        if let Some(path) = &self.replay {
            responders = responders.replay_floor(path);
        }
        let responders = responders.start(&configuration).map_err(start)?;
        absent.report(&model, &configuration);
        let (publisher, subscriber) = (Arc::new(publisher), Arc::new(subscriber));
        let responders = Arc::new(responders);
        model.attach_publisher(&publisher);
        model.attach_subscriber(&subscriber);
        model.attach_responders(&responders);
        if let (Some(path), Some(saved)) = (&self.save_to, saved) {
            model.save_to(saved).map_err(|error| cannot("write", path, &error))?;
        }
        Ok(Some(PubSub { _publisher: publisher, subscriber, responders }))
    }
}
