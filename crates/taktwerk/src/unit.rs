//! Engineering units by their UNECE codes (Part 8 §5.6.4).

use taktwerk_schema::EUInformation;
use taktwerk_types::LocalizedText;

/// The namespace of the UNECE codes.
const NAMESPACE: &str = "http://www.opcfoundation.org/UA/units/un/cefact";

/// An engineering unit of the UNECE list (Recommendation 20).
///
/// The constants are the most common units; any other unit of the list can be written as `Unit::new("MTK", "m²", "square
/// metre")`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unit {
    code: &'static str,
    symbol: &'static str,
    name: &'static str,
}

macro_rules! units {
    ($($constant:ident = $code:literal $symbol:literal $name:literal),* $(,)?) => {
        impl Unit {
            $(#[doc = concat!("The ", $name, ", ", $symbol, " (", $code, ").")]
            pub const $constant: Self = Self::new($code, $symbol, $name);)*

            /// The units above.
            pub const ALL: &[Self] = &[$(Self::$constant),*];
        }
    };
}

units! {
    AMPERE = "AMP" "A" "ampere",
    BAR = "BAR" "bar" "bar",
    CELSIUS = "CEL" "°C" "degree Celsius",
    CUBIC_METRE = "MTQ" "m³" "cubic metre",
    CUBIC_METRE_PER_HOUR = "MQH" "m³/h" "cubic metre per hour",
    DEGREE = "DD" "°" "degree",
    GRAM = "GRM" "g" "gram",
    HERTZ = "HTZ" "Hz" "hertz",
    HOUR = "HUR" "h" "hour",
    KELVIN = "KEL" "K" "kelvin",
    KILOGRAM = "KGM" "kg" "kilogram",
    KILOWATT = "KWT" "kW" "kilowatt",
    KILOWATT_HOUR = "KWH" "kWh" "kilowatt hour",
    LITRE = "LTR" "l" "litre",
    LITRE_PER_MINUTE = "L2" "l/min" "litre per minute",
    METRE = "MTR" "m" "metre",
    METRE_PER_SECOND = "MTS" "m/s" "metre per second",
    MILLIMETRE = "MMT" "mm" "millimetre",
    MILLISECOND = "C26" "ms" "millisecond",
    MINUTE = "MIN" "min" "minute",
    NEWTON = "NEW" "N" "newton",
    NEWTON_METRE = "NU" "N·m" "newton metre",
    OHM = "OHM" "Ω" "ohm",
    PASCAL = "PAL" "Pa" "pascal",
    PERCENT = "P1" "%" "percent",
    PIECE = "H87" "pc" "piece",
    RADIAN = "C81" "rad" "radian",
    REVOLUTIONS_PER_MINUTE = "RPM" "r/min" "revolutions per minute",
    SECOND = "SEC" "s" "second",
    TONNE = "TNE" "t" "tonne",
    VOLT = "VLT" "V" "volt",
    WATT = "WTT" "W" "watt",
}

impl Unit {
    /// A unit by its UNECE common code, with its symbol and its name.
    #[must_use]
    pub const fn new(code: &'static str, symbol: &'static str, name: &'static str) -> Self {
        Self { code, symbol, name }
    }

    /// The UNECE common code.
    #[must_use]
    pub const fn code(self) -> &'static str {
        self.code
    }

    /// The symbol.
    #[must_use]
    pub const fn symbol(self) -> &'static str {
        self.symbol
    }

    /// The code as the number in EUInformation: its characters are the bytes of an Int32, the last one the least significant
    /// (Part 8 §5.6.4.3).
    #[must_use]
    pub fn id(self) -> i32 {
        self.code.bytes().fold(0, |id, byte| id << 8 | i32::from(byte))
    }

    /// The EUInformation structure.
    #[must_use]
    pub fn information(self) -> EUInformation {
        EUInformation {
            namespace_uri: NAMESPACE.into(),
            unit_id: self.id(),
            display_name: LocalizedText::new("en", self.symbol),
            description: LocalizedText::new("en", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_of_the_published_list() {
        assert_eq!(Unit::CELSIUS.id(), 4_408_652);
        assert_eq!(Unit::PERCENT.id(), 20_529);
        assert_eq!(Unit::METRE.information().unit_id, 5_067_858);
    }
}
