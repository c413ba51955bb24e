//! The attributes that most nodes do not have.

/// The attributes that only some nodes have. Decode once per node, because decoding walks all of them in order.
#[derive(Debug, Clone, Copy, Default)]
pub struct Extras {
    dimensions: &'static [u8],
    permissions: &'static [u8],
    /// MinimumSamplingInterval in ms; 0 if the NodeSet gives none.
    pub minimum_sampling_interval: f64,
    /// The Value as an encoded Variant.
    pub value: Option<&'static [u8]>,
    /// The DataTypeDefinition as an encoded ExtensionObject.
    pub definition: Option<&'static [u8]>,
    /// AccessRestrictions.
    pub access_restrictions: Option<u16>,
}

impl Extras {
    pub(super) fn read(flags: u8, bytes: &'static [u8]) -> Self {
        let mut extras = Self::default();
        // A generated blob is never truncated; a missing part would read as absent.
        let _ = extras.fill(flags, bytes);
        extras
    }

    fn fill(&mut self, flags: u8, mut rest: &'static [u8]) -> Option<()> {
        let has = |bit: u8| flags >> bit & 1 != 0;
        if has(2) {
            self.dimensions = counted(&mut rest, 4)?;
        }
        if has(3) {
            self.minimum_sampling_interval = f64::from_le_bytes(array(&mut rest)?);
        }
        if has(4) {
            self.value = Some(sized(&mut rest)?);
        }
        if has(5) {
            self.definition = Some(sized(&mut rest)?);
        }
        if has(6) {
            self.permissions = counted(&mut rest, 6)?;
        }
        if has(7) {
            self.access_restrictions = Some(u16::from_le_bytes(array(&mut rest)?));
        }
        Some(())
    }

    /// ArrayDimensions; empty if the attribute is missing.
    pub fn array_dimensions(&self) -> impl ExactSizeIterator<Item = u32> + Clone {
        let (lengths, _) = self.dimensions.as_chunks::<4>();
        lengths.iter().map(|length| u32::from_le_bytes(*length))
    }

    /// RolePermissions: role and PermissionType bits; empty if the attribute is missing.
    pub fn role_permissions(&self) -> impl ExactSizeIterator<Item = (u32, u32)> + Clone {
        let (entries, _) = self.permissions.as_chunks::<6>();
        entries.iter().map(|[low, high, permissions @ ..]| {
            (u32::from(u16::from_le_bytes([*low, *high])), u32::from_le_bytes(*permissions))
        })
    }
}

fn take(rest: &mut &'static [u8], len: usize) -> Option<&'static [u8]> {
    let (head, tail) = rest.split_at_checked(len)?;
    *rest = tail;
    Some(head)
}

fn array<const N: usize>(rest: &mut &'static [u8]) -> Option<[u8; N]> {
    take(rest, N)?.first_chunk().copied()
}

fn sized(rest: &mut &'static [u8]) -> Option<&'static [u8]> {
    let len = u32::from_le_bytes(array(rest)?);
    take(rest, usize::try_from(len).ok()?)
}

fn counted(rest: &mut &'static [u8], entry_len: usize) -> Option<&'static [u8]> {
    let [count] = array(rest)?;
    take(rest, usize::from(count) * entry_len)
}
