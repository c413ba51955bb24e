//! The server's NamespaceArray (Part 5 §6.3.13), and translation of indexes between two arrays.

use std::sync::Arc;
use taktwerk_types::UaString;

/// A NamespaceArray as it was read. Clones share it. Reading an equal array again keeps the old one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespaces(Arc<[UaString]>);

impl Default for Namespaces {
    fn default() -> Self {
        Self(Arc::from([]))
    }
}

impl From<Vec<UaString>> for Namespaces {
    fn from(uris: Vec<UaString>) -> Self {
        Self(uris.into())
    }
}

impl core::ops::Deref for Namespaces {
    type Target = [UaString];

    fn deref(&self) -> &[UaString] {
        &self.0
    }
}

impl Namespaces {
    /// The index of a namespace URI.
    #[must_use]
    pub fn index(&self, uri: &str) -> Option<u16> {
        u16::try_from(self.iter().position(|known| known == uri)?).ok()
    }

    /// Whether it is the same shared array.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Translates an index of `self` to the index of the same URI in `to`. The index does not change if an array was
    /// not read or the index is beyond its end, because its meaning is unknown.
    ///
    /// # Errors
    /// The URI, if `to` does not contain it.
    pub(crate) fn renumber(&self, index: u16, to: &Self) -> Result<u16, UaString> {
        let uri = self.get(usize::from(index)).filter(|_| index > 0 && !to.is_empty());
        match uri {
            Some(uri) => to.index(uri.as_str()).ok_or_else(|| uri.clone()),
            None => Ok(index),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(uris: &[&str]) -> Namespaces {
        uris.iter().map(|uri| UaString::from(*uri)).collect::<Vec<_>>().into()
    }

    #[test]
    fn an_index_follows_its_uri() {
        let before = array(&["ua", "urn:server", "urn:plant", "urn:gone"]);
        let after = array(&["ua", "urn:server", "urn:new", "urn:plant"]);
        let renumbered: Vec<_> = (0..5).map(|index| before.renumber(index, &after)).collect();
        assert_eq!(renumbered, [Ok(0), Ok(1), Ok(3), Err("urn:gone".into()), Ok(4)]);
        let unread = Namespaces::default();
        assert_eq!((before.renumber(2, &unread), unread.renumber(2, &after)), (Ok(2), Ok(2)));
        assert_eq!(after.index("urn:plant"), Some(3));
    }
}
