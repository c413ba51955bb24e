//! Alarms of the demo plant: they come and go with its sensors.

use super::super::ServeError;
use super::sensors::SENSORS;
use super::waveform::Signal;
use std::time::Duration;
use taktwerk::{AlarmBuilder, Node, Variable};

/// Adds the alarms.
pub(super) fn add(plant: &Node, sensors: &[(Variable<f64>, Signal)]) -> Result<(), ServeError> {
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
    // The level rises from 0 to 100 % in four minutes and falls back at once.
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
    plant
        .dialog("MaintenanceDialog", "May the conveyor be stopped for maintenance?", &["Yes", "No"])
        .add()?;
    Ok(())
}
