//! Turns the fuzzer's bytes into choices.

/// Reads choices from bytes. After the last byte, every choice is the first option.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    /// All of `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Whether no choices are left.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// What is left.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        let (byte, rest) = self.rest.split_first().unwrap_or((&0, &[]));
        self.rest = rest;
        *byte
    }

    /// The next two bytes.
    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// The next four bytes.
    pub fn u32(&mut self) -> u32 {
        u32::from(self.u16()) | u32::from(self.u16()) << 16
    }

    /// The next eight bytes as a Double: any bit pattern.
    pub fn f64(&mut self) -> f64 {
        f64::from_bits(u64::from(self.u32()) | u64::from(self.u32()) << 32)
    }

    /// One of `0..bound`, from one byte.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte()) % bound.clamp(1, 256)
    }

    /// One of the options.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// Yes or no.
    pub fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// True once in `count` times.
    pub fn one_in(&mut self, count: u8) -> bool {
        self.byte().is_multiple_of(count)
    }

    /// The next `len` bytes, or as many as there are.
    pub fn bytes(&mut self, len: usize) -> &'a [u8] {
        let (bytes, rest) = self.rest.split_at(len.min(self.rest.len()));
        self.rest = rest;
        bytes
    }

    /// A short byte string with a length prefix.
    pub fn piece(&mut self) -> &'a [u8] {
        let len = usize::from(self.byte());
        self.bytes(len)
    }

    /// A number that is often an edge case.
    pub fn edgy_u32(&mut self) -> u32 {
        match self.byte() {
            0xff => u32::MAX,
            0xfe => i32::MAX as u32,
            0xfd => i32::MIN as u32,
            0xfc => self.u32(),
            small => u32::from(small),
        }
    }
}
