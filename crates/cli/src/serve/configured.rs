//! A server as its configuration file says.

use super::Content;
use crate::config::load;
use crate::failure::Failure;
use std::path::Path;
use std::sync::Arc;
use taktwerk::Server;
use taktwerk::server::{AuditSink, ServerBuilder};
use taktwerk_gateway::audit::AuditFile;
use taktwerk_gateway::config::ConfigFile;
use taktwerk_gateway::tokens::{JwtVerifier, TokenAuthority};
use taktwerk_gateway::users::{PasswordVerifier, UserStore};
use taktwerk_net::server::audit::AuditTracing;
use taktwerk_server::{Authorization, ServerShared};

/// A configuration with the users that it names.
pub(super) struct Configured {
    file: ConfigFile,
    users: Option<Arc<UserStore>>,
    tokens: Option<(Arc<TokenAuthority>, String)>,
}

impl Configured {
    /// Reads the file and that with the users.
    pub(super) fn load(path: &Path) -> Result<Self, Failure> {
        let file = load(path)?;
        let users = match &file.config().identities.users_file {
            None => None,
            Some(users) => {
                let users = file.resolve(users);
                Some(UserStore::open(&users).map_err(|error| Failure::Usage(error.to_string()))?)
            }
        };
        let usage = |error: &dyn core::fmt::Display| Failure::Usage(error.to_string());
        let tokens = match file.tokens().map_err(|error| usage(&error))? {
            None => None,
            Some(tokens) => {
                let authority =
                    TokenAuthority::open(tokens.settings, tokens.keys).map_err(|error| usage(&error))?;
                Some((Arc::new(authority), tokens.issuer_endpoint))
            }
        };
        Ok(Self { file, users, tokens })
    }

    /// The roles of the configuration and of the users.
    fn authorization(&self) -> Result<Authorization, Failure> {
        let mut authorization =
            self.file.authorization().map_err(|error| Failure::Usage(error.to_string()))?;
        if let Some(users) = &self.users {
            for role in users.grant(&mut authorization) {
                tracing::warn!(role, "a user has a role that there is not");
            }
        }
        Ok(authorization)
    }

    /// The server, without its nodes.
    pub(super) fn builder(&self) -> Result<ServerBuilder, Failure> {
        let config = self.file.config();
        let sink: Arc<dyn AuditSink> = match &config.audit.file {
            None => Arc::new(AuditTracing),
            Some(path) => {
                let path = self.file.resolve(path);
                Arc::new(
                    AuditFile::open(&path)
                        .map_err(|error| Failure::Environment(format!("{}: {error}", path.display())))?,
                )
            }
        };
        let mut builder = Server::builder()
            .application_name(&config.server.application_name)
            .shards(config.server.threads)
            .limits(|limits| self.file.apply_limits(limits))
            .authorization(self.authorization()?)
            .audit(self.file.audit(), sink);
        for bind in self.file.binds() {
            builder = builder.bind(bind);
        }
        if let Some(uri) = &config.server.application_uri {
            builder = builder.application_uri(uri);
        }
        if let Some(host) = &config.server.host_name {
            builder = builder.host_name(host);
        }
        if !config.identities.anonymous {
            builder = builder.no_anonymous();
        }
        if let Some(users) = &self.users {
            builder = builder.users(PasswordVerifier::new(Arc::clone(users)));
        }
        if let Some((authority, issuer)) = &self.tokens {
            builder = builder.issued_tokens(issuer, JwtVerifier::new(Arc::clone(authority)));
        }
        if config.identities.clear_passwords {
            builder = builder.allow_clear_passwords();
        }
        Ok(builder)
    }

    /// What is in the address space.
    pub(super) fn content(&self) -> Content {
        let server = &self.file.config().server;
        Content {
            nodesets: server.nodesets.iter().map(|path| self.file.resolve(path)).collect(),
            plant: server.simulated_plant,
        }
    }

    /// Takes over changed files. One that is wrong is said once, and everything stays as it was.
    pub(super) fn refresh(&self, shared: &ServerShared) {
        if let Some((authority, _)) = &self.tokens {
            match authority.reload() {
                Ok(false) => {}
                Ok(true) => tracing::info!("the keys of the authorization service were read again"),
                Err(error) => {
                    tracing::error!(%error, "the keys of the authorization service stay as they were")
                }
            }
        }
        let Some(users) = &self.users else { return };
        match users.reload() {
            Ok(false) => {}
            Ok(true) => match self.authorization() {
                Ok(authorization) => {
                    shared.set_authorization(authorization, taktwerk_net::clock::wall());
                    tracing::info!(users = users.users().iter().len(), "the users file was read again");
                }
                Err(error) => tracing::error!(%error, "the users stay as they were"),
            },
            Err(error) => tracing::error!(%error, "the users stay as they were"),
        }
    }

    /// One line on who can do what.
    pub(super) fn summary(&self) -> String {
        let config = self.file.config();
        let reach = if self.file.is_loopback() { "loopback only" } else { "open to the network" };
        let users = self.users.as_ref().map_or(0, |users| users.users().iter().len());
        let anonymous = if config.identities.anonymous { "anonymous clients let in" } else { "users only" };
        let tokens = if self.tokens.is_some() { ", access tokens" } else { "" };
        format!("{reach}, SecurityPolicy None (readable on the network), {anonymous}, {users} users{tokens}")
    }
}
