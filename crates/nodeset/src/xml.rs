//! XML with line numbers: owned elements for values, and lookups on the rest of the document.

use crate::error::{NodeSetError, Problem};
use roxmltree::{Document, Error, Node, ParsingOptions};

/// Maximum nesting of elements; real values are not that deep.
const DEPTH_MAX: usize = 100;

/// An XML element of a value, kept until the required types are known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Element {
    /// The local name.
    pub name: Box<str>,
    /// The text directly inside.
    pub text: Box<str>,
    /// Range of the inner XML in the file, for values of type XmlElement.
    pub(crate) inner: core::ops::Range<usize>,
    /// The elements inside.
    pub children: Vec<Element>,
    /// The line it starts in, from 1.
    pub line: u32,
}

impl Element {
    /// The first child of a name.
    #[must_use]
    pub fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| &*child.name == name)
    }

    /// The text of the first child of a name.
    #[must_use]
    pub fn child_text(&self, name: &str) -> Option<&str> {
        self.child(name).map(|child| &*child.text)
    }
}

/// A parsed document with positions.
pub(crate) struct Source<'t> {
    file: &'t str,
    text: &'t str,
    line_starts: Vec<usize>,
}

impl<'t> Source<'t> {
    pub(crate) fn new(file: &'t str, text: &'t str) -> Self {
        let line_starts = core::iter::once(0)
            .chain(text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1))
            .collect();
        Self { file, text, line_starts }
    }

    /// Parses the text. Document type definitions are refused, because entities can expand without bound.
    pub(crate) fn document(&self) -> Result<Document<'t>, NodeSetError> {
        self.check_depth()?;
        let options = ParsingOptions { allow_dtd: false, ..ParsingOptions::default() };
        Document::parse_with_options(self.text, options).map_err(|error| {
            let problem = Problem::Xml(error.to_string());
            match error {
                // The parser reports no position for these; the end of the file is where something is missing.
                Error::UnclosedRootNode | Error::UnexpectedEndOfStream | Error::NoRootNode => {
                    self.error_at(self.text.len(), problem)
                }
                _ => self.error_at_line(error.pos().row, problem),
            }
        })
    }

    /// The parser recurses per element, so nesting is limited before it runs. Tags inside comments and CDATA count,
    /// too, so a document with hundreds of unclosed tags there is refused.
    fn check_depth(&self) -> Result<(), NodeSetError> {
        let bytes = self.text.as_bytes();
        let mut depth = 0usize;
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            at += 1;
            match (byte, bytes.get(at)) {
                (b'<', Some(b'/')) => depth = depth.saturating_sub(1),
                (b'<', Some(b'!' | b'?')) => at = self.skip_markup(at),
                (b'<', Some(_)) => depth += 1,
                (b'/', Some(b'>')) => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth > DEPTH_MAX {
                return Err(self.error_at(at, Problem::TooDeep { limit: DEPTH_MAX }));
            }
        }
        Ok(())
    }

    fn skip_markup(&self, at: usize) -> usize {
        let rest = self.text.get(at..).unwrap_or("");
        let end = if rest.starts_with("!--") {
            rest.find("-->").map(|end| end + 3)
        } else if rest.starts_with("![CDATA[") {
            rest.find("]]>").map(|end| end + 3)
        } else {
            rest.find('>').map(|end| end + 1)
        };
        at + end.unwrap_or(rest.len())
    }

    fn line_at(&self, offset: usize) -> u32 {
        u32::try_from(self.line_starts.partition_point(|start| *start <= offset)).unwrap_or(u32::MAX)
    }

    pub(crate) fn line(&self, node: Node<'_, '_>) -> u32 {
        self.line_at(node.range().start)
    }

    fn error_at(&self, offset: usize, problem: Problem) -> NodeSetError {
        self.error_at_line(self.line_at(offset), problem)
    }

    fn error_at_line(&self, line: u32, problem: Problem) -> NodeSetError {
        NodeSetError { file: self.file.to_owned(), line, problem: Box::new(problem) }
    }

    pub(crate) fn error(&self, node: Node<'_, '_>, problem: Problem) -> NodeSetError {
        self.error_at(node.range().start, problem)
    }

    /// Copies an element out of the document.
    pub(crate) fn element(&self, node: Node<'_, '_>) -> Element {
        let children: Vec<Element> =
            node.children().filter(Node::is_element).map(|child| self.element(child)).collect();
        let text: String = node.children().filter(Node::is_text).filter_map(|child| child.text()).collect();
        let inner = match (node.first_child(), node.last_child()) {
            (Some(first), Some(last)) => first.range().start..last.range().end,
            _ => 0..0,
        };
        Element {
            name: node.tag_name().name().into(),
            text: text.into(),
            inner,
            children,
            line: self.line(node),
        }
    }
}

/// The child elements of a name.
pub(crate) fn children<'a, 'i: 'a>(
    node: Node<'a, 'i>,
    name: &'static str,
) -> impl Iterator<Item = Node<'a, 'i>> {
    node.children().filter(move |child| child.is_element() && child.tag_name().name() == name)
}

/// The text inside, trimmed.
pub(crate) fn text<'a>(node: Node<'a, '_>) -> &'a str {
    node.text().unwrap_or("").trim()
}
