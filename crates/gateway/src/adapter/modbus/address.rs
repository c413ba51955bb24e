//! Addresses of tags in a Modbus device, and their encoding.

use crate::fields::{Fields, Mistake};
use crate::value::Kind;
use taktwerk_types::BuiltInType;

/// The four data tables of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Table {
    /// Read-write bits.
    Coil,
    /// Read-only bits.
    Discrete,
    /// Read-only registers.
    Input,
    /// Read-write registers.
    Holding,
}

impl Table {
    /// Whether it has bits instead of registers.
    #[must_use]
    pub fn is_bits(self) -> bool {
        matches!(self, Self::Coil | Self::Discrete)
    }

    /// Whether it can be written.
    #[must_use]
    pub fn is_writable(self) -> bool {
        matches!(self, Self::Coil | Self::Holding)
    }

    /// Its name in addresses.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Coil => "coil",
            Self::Discrete => "discrete",
            Self::Input => "input",
            Self::Holding => "holding",
        }
    }
}

/// How a value is encoded in registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A coil, or one bit of a register.
    Bit,
    /// A number of one to four registers.
    Number(BuiltInType),
    /// Text of so many bytes, filled up with zeros or spaces.
    Text(u16),
}

/// The order of halves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// The high half first, as in the specification.
    #[default]
    Big,
    /// The low half first.
    Little,
}

/// The configurable orders.
pub const ORDERS: [(&str, Order); 2] = [("big", Order::Big), ("little", Order::Little)];

const FORMATS: [(&str, Format); 10] = [
    ("bit", Format::Bit),
    ("int16", Format::Number(BuiltInType::Int16)),
    ("uint16", Format::Number(BuiltInType::UInt16)),
    ("int32", Format::Number(BuiltInType::Int32)),
    ("uint32", Format::Number(BuiltInType::UInt32)),
    ("int64", Format::Number(BuiltInType::Int64)),
    ("uint64", Format::Number(BuiltInType::UInt64)),
    ("float32", Format::Number(BuiltInType::Float)),
    ("float64", Format::Number(BuiltInType::Double)),
    ("string", Format::Text(0)),
];

/// Most registers per request (Modbus Application Protocol §6.3).
pub const REGISTERS_MAX: u16 = 125;
/// Most bits per request (§6.1).
pub const BITS_MAX: u16 = 2000;

/// The address and encoding of a tag.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// The unit id.
    pub unit: u8,
    /// The table.
    pub table: Table,
    /// The first register or bit, counted from 0.
    pub first: u16,
    /// How each element is encoded.
    pub format: Format,
    /// The bit within the register, counted from the least significant.
    pub bit: u8,
    /// Number of elements; `None` for a scalar.
    pub count: Option<u16>,
    /// The order of registers within a number.
    pub word_order: Order,
    /// The order of bytes within a register.
    pub byte_order: Order,
}

/// Default settings of tags.
#[derive(Debug, Clone, Copy)]
pub struct Defaults {
    /// The unit.
    pub unit: u8,
    /// The lowest and the highest unit.
    pub units: [u8; 2],
    /// The order of registers.
    pub word_order: Order,
    /// The order of bytes.
    pub byte_order: Order,
}

/// Units behind Modbus TCP: also devices that ignore the number, which use 0 or 255.
pub const UNITS_TCP: [u8; 2] = [0, 255];
/// Units of a serial line (Modbus over Serial Line §2.2): 0 is a broadcast, which nobody answers.
pub const UNITS_SERIAL: [u8; 2] = [1, 247];

/// Takes the unit of a source or tag.
pub(super) fn take_unit(fields: &mut Fields, [least, most]: [u8; 2]) -> Result<Option<u8>, Mistake> {
    let unit = fields.integer("unit", least.into(), most.into())?;
    Ok(unit.and_then(|unit| u8::try_from(unit).ok()))
}

impl Format {
    /// Number of registers or bits of one element.
    #[must_use]
    pub fn width(self) -> u16 {
        match self {
            Self::Bit | Self::Number(BuiltInType::Int16 | BuiltInType::UInt16) => 1,
            Self::Number(BuiltInType::Int64 | BuiltInType::UInt64 | BuiltInType::Double) => 4,
            Self::Number(_) => 2,
            Self::Text(bytes) => bytes.div_ceil(2),
        }
    }

    fn element(self) -> BuiltInType {
        match self {
            Self::Bit => BuiltInType::Boolean,
            Self::Number(kind) => kind,
            Self::Text(_) => BuiltInType::String,
        }
    }
}

impl Point {
    /// Number of registers or bits of all elements.
    #[must_use]
    pub fn width(&self) -> u16 {
        self.format.width().saturating_mul(self.count.unwrap_or(1))
    }

    /// The register or bit after the last one.
    #[must_use]
    pub fn end(&self) -> u32 {
        u32::from(self.first) + u32::from(self.width())
    }

    /// The data type of the value.
    #[must_use]
    pub fn kind(&self) -> Kind {
        Kind { element: self.format.element(), is_array: self.count.is_some() }
    }

    /// Takes the settings of a tag.
    ///
    /// # Errors
    /// The first mistake.
    pub fn take(
        fields: &mut Fields,
        wanted: Option<BuiltInType>,
        is_scaled: bool,
        defaults: Defaults,
    ) -> Result<Self, Mistake> {
        let (line, text) = fields.required("address", "\"holding:100\"")?;
        let Some((table, first, bit)) = parse(&text) else {
            return Err(fields.mistake_in(
                line,
                "address",
                format!("{text:?} is no Modbus address"),
                "write the table and the number from 0 on, such as \"holding:100\", \"holding:100.3\" for a bit, \
                 \"input:7\", \"coil:0\" or \"discrete:12\"; or the number of a manual, such as \"40101\"",
            ));
        };
        let mut format = match fields.word("format", &FORMATS)? {
            Some(format) => format,
            None if table.is_bits() || bit.is_some() => Format::Bit,
            // Without scaling, the tag's type determines the encoding.
            None => match wanted.filter(|_| !is_scaled) {
                Some(BuiltInType::String) => Format::Text(0),
                Some(kind @ (BuiltInType::Float | BuiltInType::Double)) => Format::Number(kind),
                Some(kind) if (BuiltInType::Int16..=BuiltInType::UInt64).contains(&kind) => {
                    Format::Number(kind)
                }
                _ => Format::Number(BuiltInType::UInt16),
            },
        };
        let length = fields.integer("length", 1, 250)?;
        match (&mut format, length) {
            (Format::Text(bytes), Some(length)) => *bytes = length as u16,
            (Format::Text(_), None) => {
                return Err(fields.mistake("a text needs its length in bytes", "write length = 16"));
            }
            (_, Some(_)) => {
                return Err(fields.mistake("only texts have a length", "write format = \"string\""));
            }
            (_, None) => {}
        }
        if table.is_bits() && format != Format::Bit {
            let hint = "leave format out, or read a register: \"holding:…\" or \"input:…\"";
            return Err(fields.mistake(format!("a {} is one bit", table.name()), hint));
        }
        if bit.is_some() != (format == Format::Bit && !table.is_bits()) {
            let problem = "a bit of a register needs its number, and only a bit has one";
            return Err(fields.mistake_in(
                line,
                "address",
                problem,
                "write \"holding:100.0\" for the lowest bit",
            ));
        }
        let count = fields.integer("count", 1, u64::from(BITS_MAX))?.map(|count| count as u16);
        if count.is_some() && bit.is_some() {
            return Err(
                fields.mistake("bits of registers cannot be arrays", "read the register, or use coils")
            );
        }
        let point = Self {
            unit: take_unit(fields, defaults.units)?.unwrap_or(defaults.unit),
            table,
            first,
            format,
            bit: bit.unwrap_or(0),
            count,
            word_order: fields.word("word_order", &ORDERS)?.unwrap_or(defaults.word_order),
            byte_order: fields.word("byte_order", &ORDERS)?.unwrap_or(defaults.byte_order),
        };
        let most = if table.is_bits() { BITS_MAX } else { REGISTERS_MAX };
        if point.width() > most {
            let problem =
                format!("the value has {} registers or bits, and one request {most}", point.width());
            return Err(fields.mistake(problem, "split it into several tags"));
        }
        if point.end() > 65_536 {
            return Err(fields.mistake_in(
                line,
                "address",
                "the value ends beyond 65535",
                "use a lower address",
            ));
        }
        Ok(point)
    }
}

/// Parses `table:number`, `table:number.bit`, or the five or six digits used in manuals.
#[must_use]
pub fn parse(text: &str) -> Option<(Table, u16, Option<u8>)> {
    let text = text.trim();
    let (table, rest) = match text.split_once(':') {
        Some((name, rest)) => {
            let table = match &*name.trim().to_ascii_lowercase() {
                "coil" | "co" => Table::Coil,
                "discrete" | "di" => Table::Discrete,
                "input" | "ir" => Table::Input,
                "holding" | "hr" => Table::Holding,
                _ => return None,
            };
            (table, rest.trim())
        }
        None => return classic(text),
    };
    let (number, bit) = match rest.split_once('.') {
        Some((number, bit)) => {
            let bit = bit.parse().ok().filter(|bit| *bit < 16)?;
            (number, Some(bit))
        }
        None => (rest, None),
    };
    let number = match number.strip_prefix("0x") {
        Some(digits) => u16::from_str_radix(digits, 16).ok()?,
        None => number.parse().ok()?,
    };
    Some((table, number, bit))
}

/// `40001` and `400001` are the first holding register; prefixes `0`, `1` and `3` mean coils, discrete inputs and input
/// registers.
fn classic(text: &str) -> Option<(Table, u16, Option<u8>)> {
    let (digits, bit) = match text.split_once('.') {
        Some((digits, bit)) => (digits, Some(bit.parse().ok().filter(|bit| *bit < 16)?)),
        None => (text, None),
    };
    if !matches!(digits.len(), 5 | 6) || !digits.chars().all(|char| char.is_ascii_digit()) {
        return None;
    }
    let table = match digits.get(..1)? {
        "0" => Table::Coil,
        "1" => Table::Discrete,
        "3" => Table::Input,
        "4" => Table::Holding,
        _ => return None,
    };
    let number: u32 = digits.get(1..)?.parse().ok()?;
    Some((table, u16::try_from(number.checked_sub(1)?).ok()?, bit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::Sections;
    use std::path::Path;

    #[test]
    fn addresses_are_parsed_as_in_manuals() {
        assert_eq!(parse("holding:100"), Some((Table::Holding, 100, None)));
        assert_eq!(parse("holding:0x10.15"), Some((Table::Holding, 16, Some(15))));
        assert_eq!(parse("Input: 7"), Some((Table::Input, 7, None)));
        assert_eq!(parse("40001"), Some((Table::Holding, 0, None)));
        assert_eq!(parse("465536"), Some((Table::Holding, 65_535, None)));
        assert_eq!(parse("30010.3"), Some((Table::Input, 9, Some(3))));
        for wrong in [
            "",
            "holding",
            "holding:",
            "holding:65536",
            "holding:1.16",
            "40000",
            "465537",
            "20001",
            "hold:1",
            "é0001",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    fn point(text: &str) -> Result<Point, Mistake> {
        let mut sections = Sections::parse(Path::new("g"), &format!("[[tag]]\n{text}\n")).unwrap();
        let defaults = Defaults { unit: 1, units: UNITS_TCP, word_order: Order::Big, byte_order: Order::Big };
        Point::take(&mut sections.tags[0], None, false, defaults)
    }

    #[test]
    fn points_have_a_width_limited_by_one_request() {
        let width = |text: &str| point(text).unwrap().width();
        assert_eq!(width("address = \"holding:1\""), 1);
        assert_eq!(width("address = \"holding:1\"\nformat = \"float64\"\ncount = 3"), 12);
        assert_eq!(width("address = \"holding:1\"\nformat = \"string\"\nlength = 5"), 3);
        assert_eq!(width("address = \"coil:1\"\ncount = 2000"), 2000);
        for (text, said) in [
            ("address = \"holding:1\"\nformat = \"float32\"\ncount = 63", "split it"),
            ("address = \"holding:65535\"\nformat = \"int32\"", "beyond 65535"),
            ("address = \"coil:1\"\nformat = \"int16\"", "one bit"),
            ("address = \"holding:1\"\nformat = \"string\"", "length"),
            ("address = \"holding:1\"\nformat = \"bit\"", "lowest bit"),
            ("address = \"holding:1.2\"\nformat = \"int16\"", "only a bit has one"),
            ("address = \"holding:1\"\nformat = \"flaot32\"", "did you mean \"float32\"?"),
        ] {
            let error = point(text).unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
