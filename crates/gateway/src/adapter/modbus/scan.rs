//! Which units answer on a line, and what they say they are.

use super::Modbus;
use super::address::Table;
use super::link::{Link, Way};
use crate::fault::Fault;
use crate::offer::{Offer, Question};
use core::time::Duration;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio_modbus::ExceptionCode;

/// A unit that has answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// Its number.
    pub number: u8,
    /// What it says it is, by the number of the object (function 43/14); empty if it does not say.
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

/// Asks units one after the other: reads a register, because every device knows that, then asks who it is.
///
/// # Errors
/// There is no connection at all.
pub async fn units(
    way: &Way,
    numbers: &[u8],
    deadline: Duration,
    stop: &AtomicBool,
) -> Result<Vec<Unit>, Fault> {
    let mut link = Some(Link::connect(way, deadline).await?);
    let mut found = Vec::new();
    for number in numbers {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        // After an error the connection is made anew: a late answer must not be taken for that of the next unit.
        let mut open = match link.take() {
            Some(open) => open,
            None => match Link::connect(way, deadline).await {
                Ok(open) => open,
                Err(_) => continue,
            },
        };
        let exception = match open.read(*number, Table::Holding, 0, 1).await {
            Err(_) => continue,
            // A gateway says that there is no such unit behind it.
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

/// What the units of a source say they are.
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
                offers.push(offer("", "answers, but does not say what it is".to_owned()));
            }
            Some(unit) => {
                offers.extend(unit.identity.iter().map(|(id, text)| offer(object_name(*id), text.clone())));
            }
        }
    }
    Ok(offers)
}
