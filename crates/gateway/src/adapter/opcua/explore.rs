//! Explores the mirrors of a server: their nodes, and the types that these need. It changes nothing of the connection, so that values
//! are taken meanwhile.

use super::OpcUa;
use super::budget::Budget;
use super::mirror::{self, Subtree};
use super::types;
use crate::catalogue::Learning;
use crate::fault::Fault;
use crate::feed::Feed;
use crate::statistics::Count;
use core::future::Future;
use core::pin::Pin;
use core::time::Duration;
use taktwerk::Client;
use taktwerk::client::ToNodeId;
use tokio::time::Instant;

/// What to explore.
#[derive(Debug)]
pub(super) struct Explorer {
    mirrors: Vec<String>,
    depth_max: usize,
    limits: (usize, Duration),
}

/// What was found.
#[derive(Debug)]
pub(super) struct Explored<'a> {
    /// When it began.
    pub(super) begin: Instant,
    /// The nodes of each mirror.
    pub(super) trees: Vec<Subtree>,
    /// Whether these are all nodes.
    pub(super) is_complete: bool,
    /// What is missing: nodes or types.
    pub(super) incomplete: Option<String>,
    /// The types are kept until it is known which of them are used.
    pub(super) learning: Learning<'a>,
}

impl Explorer {
    pub(super) fn of(server: &OpcUa) -> Self {
        Self { mirrors: server.mirrors.clone(), depth_max: server.depth_max, limits: server.limits }
    }

    /// Reads all nodes, and adds the types that they need to this server.
    ///
    /// # Errors
    /// The connection fails, or the node of a mirror is not valid for this server.
    pub(super) async fn explore<'a>(
        self,
        client: &Client,
        feed: &'a Feed,
        target: &str,
    ) -> Result<Explored<'a>, Fault> {
        let begin = Instant::now();
        let namespaces = client.namespaces();
        let learning = feed.plant().catalogue().learning();
        let mut budget = Budget::new(self.limits.0, self.limits.1);
        let mut incomplete: Option<String> = None;
        let mut trees = Vec::new();
        for root in self.mirrors {
            let root = root.to_node_id(&namespaces).map_err(|error| Fault::other(target, error))?;
            let most = feed.settings().nodes_max;
            let found = mirror::subtree(client, target, root, (self.depth_max, most), &mut budget).await?;
            feed.statistics().add(Count::Requests, 1);
            if found.is_cut {
                let reason = format!("there are more than nodes_max = {most} variables or methods");
                feed.failed(&Fault::other(target, &reason));
                incomplete = Some(reason);
            }
            trees.push(found);
        }
        let is_complete = incomplete.is_none() && budget.exceeded().is_none();
        for found in &trees {
            // Values work without the types.
            if let Err(fault) = types::learn(client, target, feed.plant(), found.types(), &mut budget).await {
                feed.failed(&fault);
                incomplete = Some(fault.to_string());
            }
        }
        if let Some(reason) = budget.exceeded() {
            feed.failed(&Fault::other(target, reason));
            incomplete = Some(reason.to_owned());
        }
        Ok(Explored { begin, trees, is_complete, incomplete, learning })
    }
}

/// Waits for an exploration; for ever if there is none.
pub(super) async fn explored<F: Future>(running: &mut Option<Pin<Box<F>>>) -> F::Output {
    match running {
        Some(running) => running.as_mut().await,
        None => core::future::pending().await,
    }
}
