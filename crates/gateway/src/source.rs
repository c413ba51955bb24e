//! The interface between the gateway and a source.

use crate::fault::Fault;
use crate::feed::{Feed, Writes};
use crate::fields::{Fields, Mistake};
use crate::offer::{Offer, Question};
use crate::settings::SourceSettings;
use crate::tag::Tag;
use crate::value::Kind;
use futures_util::future::BoxFuture;

/// How a tag is represented when the gateway starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// As a variable, of this type unless the tag sets another one.
    Variable(Kind),
    /// The source adds variables for it while running.
    Later,
}

/// A warning about a setting that is valid but probably unintended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    /// The tag's position; `None` for the source as a whole.
    pub position: Option<usize>,
    /// The key.
    pub key: &'static str,
    /// What is suspicious.
    pub problem: String,
    /// The suggested change.
    pub hint: String,
}

/// A source of some kind.
///
/// The gateway calls [`Adapter::add_tag`] for each tag, then runs the source in its own task. After a failure or panic it runs it
/// again after a pause.
pub trait Adapter: Send {
    /// A short description for users: `Modbus TCP plc:502`.
    fn describe(&self) -> String;

    /// The path of a device that only one source can use.
    fn device(&self) -> Option<&str> {
        None
    }

    /// Takes the tag's settings that are specific to the source, such as its address. Readings go to `position` in the [`Feed`].
    ///
    /// # Errors
    /// The first mistake.
    fn add_tag(&mut self, tag: &Tag, fields: &mut Fields, position: usize) -> Result<Placement, Mistake>;

    /// Fills in unit and range of a tag from the source's own knowledge where the tag sets none.
    fn complete(&self, _position: usize, _tag: &mut Tag) {}

    /// Whether the source may add variables without a tag.
    fn finds_variables(&self) -> bool {
        false
    }

    /// What it adds without a tag when it is connected, for messages.
    fn adds(&self) -> Option<&'static str> {
        None
    }

    /// Warnings about the settings; `names` are the tag names by position.
    fn review(&self, _settings: &SourceSettings, _names: &[String]) -> Vec<Advice> {
        Vec::new()
    }

    /// The path names of the tags from which the tag at a position is calculated.
    fn inputs(&self, _position: usize) -> &[String] {
        &[]
    }

    /// Lists what the source offers.
    ///
    /// # Errors
    /// The source does not answer, or its kind cannot be explored.
    fn offers<'a>(&'a mut self, _question: &'a Question) -> BoxFuture<'a, Result<Vec<Offer>, Fault>> {
        let fault = Fault::other(self.describe(), "a source of this type cannot list what it offers");
        Box::pin(core::future::ready(Err(fault)))
    }

    /// Connects, delivers readings to the feed, and carries out writes, until it fails. It must never block the thread.
    fn run<'a>(&'a mut self, feed: &'a Feed, writes: &'a mut Writes) -> BoxFuture<'a, Result<(), Fault>>;
}
