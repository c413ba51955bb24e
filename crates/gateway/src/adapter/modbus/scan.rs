//! Finds the units on a line, with their identification.

use super::Modbus;
use super::address::Table;
use super::link::{Link, Way};
use crate::fault::Fault;
use crate::offer::{Offer, Question};
use core::time::Duration;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio_modbus::ExceptionCode;

/// A unit that answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// Its unit id.
    pub number: u8,
    /// Its identification by object number (function 43/14); empty if it has none.
    pub identity: Vec<(u8, String)>,
    /// The exception to a read of its first holding register, if there was one.
    pub exception: Option<String>,
}

/// The name of an object of the device identification (Modbus Application Protocol §6.21).
#[must_use]
pub fn object_name(number: u8) -> &'static str {
    match number {
        0 => "VendorName",
        1 => "ProductCode",
        2 => "MajorMinorRevision",
        3 => "VendorUrl",
        4 => "ProductName",
        5 => "ModelName",
        6 => "UserApplicationName",
        _ => "other",
    }
}

/// Scans units one after the other: reads a register, which every device supports, then the identification.
///
/// # Errors
/// The connection failed.
pub async fn units(
    way: &Way,
    numbers: &[u8],
    deadline: Duration,
    stop: &AtomicBool,
) -> Result<Vec<Unit>, Fault> {
    let mut link = Some(Link::connect(way, deadline, false).await?);
    let mut found = Vec::new();
    for number in numbers {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        // After an error, use a new connection: a late answer must not be matched with the next unit.
        let mut open = match link.take() {
            Some(open) => open,
            None => match Link::connect(way, deadline, true).await {
                Ok(open) => open,
                Err(_) => continue,
            },
        };
        let exception = match open.read(*number, Table::Holding, 0, 1).await {
            Err(_) => continue,
            // A Modbus gateway reports that the unit does not exist.
            Ok(Err(ExceptionCode::GatewayPathUnavailable | ExceptionCode::GatewayTargetDevice)) => {
                link = Some(open);
                continue;
            }
            Ok(Err(exception)) => Some(exception.to_string()),
            Ok(Ok(_)) => None,
        };
        let identity = match open.identify(*number).await {
            Ok(answer) => {
                link = Some(open);
                answer.unwrap_or_default()
            }
            Err(_) => Vec::new(),
        };
        found.push(Unit { number: *number, identity, exception });
    }
    Ok(found)
}

/// The identifications of a source's units.
pub(super) async fn offers(modbus: &Modbus, question: &Question) -> Result<Vec<Offer>, Fault> {
    let mut numbers: BTreeSet<u8> = modbus.points.iter().map(|point| point.unit).collect();
    if numbers.is_empty() {
        numbers.insert(modbus.defaults.unit);
    }
    let numbers: Vec<u8> = numbers.into_iter().collect();
    let found = units(&modbus.way, &numbers, question.settings.deadline, &question.stop).await?;
    let mut offers = Vec::new();
    for number in numbers {
        let offer = |name: &str, value: String| Offer {
            address: format!("unit {number}"),
            name: name.to_owned(),
            kind: "String".to_owned(),
            value,
            ..Offer::default()
        };
        match found.iter().find(|unit| unit.number == number) {
            None => offers.push(offer("", "does not answer".to_owned())),
            Some(unit) if unit.identity.is_empty() => {
                offers.push(offer("", "answers, but has no identification".to_owned()));
            }
            Some(unit) => {
                offers.extend(unit.identity.iter().map(|(id, text)| offer(object_name(*id), text.clone())));
            }
        }
    }
    Ok(offers)
}
