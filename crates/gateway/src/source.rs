//! What a source is to the gateway: something that describes itself, takes tags, and runs.

use crate::fault::Fault;
use crate::feed::{Feed, Writes};
use crate::fields::{Fields, Mistake};
use crate::offer::{Offer, Question};
use crate::settings::SourceSettings;
use crate::tag::Tag;
use crate::value::Kind;
use futures_util::future::BoxFuture;

/// What becomes of a tag when the gateway starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// It is a variable, of this type unless the tag names another one.
    Variable(Kind),
    /// The source adds variables for it while it runs.
    Later,
}

/// Something that is allowed but probably not meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    /// The tag; `None` if it is about the source.
    pub position: Option<usize>,
    /// The key.
    pub key: &'static str,
    /// What is suspicious.
    pub problem: String,
    /// What would be better.
    pub hint: String,
}

/// A kind of source. One value is one source.
///
/// The gateway calls [`Adapter::add_tag`] for each tag of the source, then runs it in a task of its own, and again after
/// a pause whenever it fails, or panics.
pub trait Adapter: Send {
    /// What it is, in a few words for people: `Modbus TCP plc:502`.
    fn describe(&self) -> String;

    /// Takes a tag's own settings: its address in the source. Readings go to `position` in the [`Feed`].
    ///
    /// # Errors
    /// The first mistake.
    fn add_tag(&mut self, tag: &Tag, fields: &mut Fields, position: usize) -> Result<Placement, Mistake>;

    /// Adds what the source knows of a tag that was added at this position, where the tag says nothing: its unit and range.
    fn complete(&self, _position: usize, _tag: &mut Tag) {}

    /// Whether it may add variables that no tag names.
    fn finds_variables(&self) -> bool {
        false
    }

    /// What is allowed in its settings and tags but probably not meant; `names` are those of its tags by their positions.
    fn review(&self, _settings: &SourceSettings, _names: &[String]) -> Vec<Advice> {
        Vec::new()
    }

    /// The tags, by path and name, that the tag at a position is calculated from.
    fn inputs(&self, _position: usize) -> &[String] {
        &[]
    }

    /// Asks the source what it offers.
    ///
    /// # Errors
    /// It does not answer, or its kind cannot tell.
    fn offers<'a>(&'a mut self, _question: &'a Question) -> BoxFuture<'a, Result<Vec<Offer>, Fault>> {
        let fault = Fault::other(self.describe(), "a source of this type does not tell what it offers");
        Box::pin(core::future::ready(Err(fault)))
    }

    /// Connects, delivers readings to the feed, and carries out writes, until something fails. It never blocks the thread.
    fn run<'a>(&'a mut self, feed: &'a Feed, writes: &'a mut Writes) -> BoxFuture<'a, Result<(), Fault>>;
}
