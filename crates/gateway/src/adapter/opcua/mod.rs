//! Other OPC UA servers: single nodes, and whole subtrees that are mirrored.
//!
//! - `mirror`: which nodes a subtree has and what they are; `session`: one connection with one subscription;
//!   `offers`: the variables of a server.
//!
//! However many clients the gateway has, the other server sees one session with one subscription.

mod mirror;
mod offers;
mod session;

use crate::fault::Fault;
use crate::feed::{Feed, Writes};
use crate::fields::{Fields, Mistake};
use crate::offer::{Offer, Question};
use crate::settings::SourceSettings;
use crate::source::{Adapter, Placement};
use crate::tag::Tag;
use crate::value::Kind;
use core::time::Duration;
use futures_util::future::BoxFuture;
use std::collections::HashMap;
use std::path::PathBuf;
use taktwerk_types::ExpandedNodeId;

/// How connections are secured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Security {
    None,
    Best,
}

/// Another server.
#[derive(Debug)]
pub struct OpcUa {
    url: String,
    security: Security,
    pki: PathBuf,
    user: Option<(String, PathBuf)>,
    publishing_interval: Duration,
    sampling_interval: Option<Duration>,
    writable: bool,
    depth_max: usize,
    mirrors: Vec<String>,
    /// Tags that are named one by one: their node, and their position if they have one.
    tags: Vec<(Tag, String, Option<usize>)>,
    /// The positions of variables that were found, by their node with the URI of its namespace.
    known: HashMap<String, usize>,
}

impl OpcUa {
    /// Takes the settings of a source.
    ///
    /// # Errors
    /// The first mistake.
    pub fn take(fields: &mut Fields, _: &SourceSettings) -> Result<Self, Mistake> {
        let (line, url) = fields.required("url", "\"opc.tcp://plc:4840\"")?;
        if !url.starts_with("opc.tcp://") || url.len() < 11 || url.contains(char::is_whitespace) {
            let problem = format!("{url:?} is no URL of an OPC UA server");
            return Err(fields.mistake_in(line, "url", problem, "write \"opc.tcp://host:4840\""));
        }
        if url.contains('@') {
            let hint = "write user = \"NAME\" and password_file = \"FILE\"";
            return Err(fields.mistake_in(line, "url", "users do not belong into the URL", hint));
        }
        let pki = fields.text("pki")?;
        let security = fields.word("security", &[("none", Security::None), ("best", Security::Best)])?;
        let user = fields.text("user")?;
        let password_file = fields.text("password_file")?;
        let user = match (user, password_file) {
            (Some(user), Some(file)) => Some((user, beside(fields, &file))),
            (None, None) => None,
            _ => {
                return Err(
                    fields.mistake("a user needs a name and a password", "set user and password_file")
                );
            }
        };
        let security = security.unwrap_or(if pki.is_some() { Security::Best } else { Security::None });
        if user.is_some() && security == Security::None {
            let hint = "set security = \"best\" and pki = \"FOLDER\"";
            return Err(fields.mistake("the password would cross the network readably", hint));
        }
        let mirrors = fields.texts("mirror")?.unwrap_or_default();
        for node in &mirrors {
            check_node(fields, fields.line(), "mirror", node)?;
        }
        Ok(Self {
            url,
            security,
            pki: beside(fields, pki.as_deref().unwrap_or("pki-gateway")),
            user,
            publishing_interval: fields.span("publishing_interval")?.unwrap_or(Duration::from_millis(500)),
            sampling_interval: fields.span("sampling_interval")?,
            writable: fields.flag("writable")?.unwrap_or(true),
            depth_max: fields.integer("depth_max", 1, 100)?.unwrap_or(20) as usize,
            mirrors,
            tags: Vec::new(),
            known: HashMap::new(),
        })
    }
}

/// A path that starts from the folder of the configuration file.
fn beside(fields: &Fields, path: &str) -> PathBuf {
    fields.path().parent().map(|folder| folder.join(path)).unwrap_or_else(|| PathBuf::from(path))
}

fn check_node(fields: &Fields, line: usize, key: &str, text: &str) -> Result<(), Mistake> {
    text.parse::<ExpandedNodeId>().map(drop).map_err(|error| {
        let hint = "write nsu=URI;s=NAME, ns=2;s=NAME or i=85; `taktwerk browse URL` shows nodes";
        fields.mistake_in(line, key, format!("{text:?} is no NodeId ({error})"), hint)
    })
}

impl Adapter for OpcUa {
    fn describe(&self) -> String {
        format!("OPC UA {}", self.url)
    }

    fn add_tag(&mut self, tag: &Tag, fields: &mut Fields, position: usize) -> Result<Placement, Mistake> {
        let (line, node) = fields.required("address", "\"nsu=urn:example:plc;s=Temperature\"")?;
        check_node(fields, line, "address", &node)?;
        // Without a type the variable is added when the server has said it.
        let placement = tag.kind.map_or(Placement::Later, |kind| Placement::Variable(Kind::scalar(kind)));
        let position = tag.kind.map(|_| position);
        self.tags.push((tag.clone(), node, position));
        Ok(placement)
    }

    fn finds_variables(&self) -> bool {
        !self.mirrors.is_empty()
    }

    fn offers<'a>(&'a mut self, question: &'a Question) -> BoxFuture<'a, Result<Vec<Offer>, Fault>> {
        Box::pin(offers::offers(self, question))
    }

    fn run<'a>(&'a mut self, feed: &'a Feed, writes: &'a mut Writes) -> BoxFuture<'a, Result<(), Fault>> {
        Box::pin(session::run(self, feed, writes))
    }
}
