//! Alarms of the demo plant, triggered by its sensors, and a dialog that asks operators now and then.

use super::super::ServeError;
use super::sensors::SENSORS;
use super::waveform::Signal;
use std::time::Duration;
use taktwerk::{Alarm, AlarmBuilder, Node, UtcTime, Variable};

/// Adds the alarms.
pub(super) fn add(sensors: &[(Variable<f64>, Signal)]) -> Result<(), ServeError> {
    let sensor = |machine: &str, name: &str| {
        let at = SENSORS.iter().position(|sensor| sensor.machine == machine && sensor.name == name);
        at.and_then(|at| sensors.get(at)).map(|(variable, _)| variable)
    };
    let alarm = |machine, name, make: fn(AlarmBuilder) -> AlarmBuilder| -> Result<(), ServeError> {
        if let Some(variable) = sensor(machine, name) {
            make(variable.alarm()).add()?;
        }
        Ok(())
    };
    // The level rises from 0 to 100 % in four minutes, then drops at once.
    alarm("Boiler", "Level", |alarm| {
        alarm.low(10.0).high(80.0).high_high(95.0).deadband(1.0).max_shelving(Duration::from_secs(3600))
    })?;
    alarm("Boiler", "Temperature", |alarm| {
        alarm.high(140.0).high_high(165.0).deadband(3.0).on_delay(Duration::from_secs(2)).confirm()
    })?;
    alarm("Boiler", "Pressure", |alarm| {
        alarm.low_low(0.5).low(1.0).high(9.0).high_high(11.0).deadband(0.3).non_exclusive().branches()
    })?;
    // Every 90 seconds.
    alarm("Utilities", "CompressedAir", |alarm| {
        alarm.low(1.5).deadband(0.5).severity(700).latching().re_alarm(Duration::from_secs(300))
    })?;
    Ok(())
}

/// Seconds from the start to the first question, and from one question to the next.
const FIRST_QUESTION: u64 = 20;
const QUESTION_SECONDS: u64 = 300;
/// The responses to the question.
const RESPONSES: [&str; 2] = ["Yes", "No"];

/// A dialog about maintenance of the conveyor. The conveyor tells the answer as an event.
pub(super) struct Maintenance {
    dialog: Alarm,
    conveyor: Node,
    /// The question waits for an answer.
    is_open: bool,
}

impl Maintenance {
    /// Adds the dialog.
    pub(super) fn add(plant: &Node) -> Result<Self, ServeError> {
        let prompt = "May the conveyor be stopped for maintenance?";
        let dialog = plant.dialog("MaintenanceDialog", prompt, &RESPONSES).add()?;
        Ok(Self { dialog, conveyor: plant.child("Conveyor")?, is_open: false })
    }

    /// One second of the simulation: asks, unless the last question is still open.
    pub(super) fn second(&mut self, seconds: u64, now: UtcTime) {
        if self.is_open
            && let Some(answer) = self.dialog.response()
        {
            self.is_open = false;
            let answer = RESPONSES.get(answer).unwrap_or(&"none");
            let message = format!("Answer about maintenance: {answer}");
            self.conveyor.base_event().severity(100).message(&*message).time(now).emit();
        }
        if !self.is_open && seconds % QUESTION_SECONDS == FIRST_QUESTION {
            self.dialog.ask();
            self.is_open = true;
        }
    }
}
