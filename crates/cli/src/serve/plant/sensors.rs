//! The sensors of the demo plant: names, ranges, units and waveforms.

use super::waveform::Waveform::{self, Noise, Ramp, Sine, Square, Step, Walk};
use taktwerk::Unit;

/// One simulated sensor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sensor {
    /// The machine of the sensor.
    pub(crate) machine: &'static str,
    /// Its name within the machine.
    pub(crate) name: &'static str,
    /// Minimum and maximum.
    pub(crate) range: (f64, f64),
    /// Its unit.
    pub(crate) unit: Unit,
    /// The waveform.
    pub(crate) waveform: Waveform,
}

const KILONEWTON: Unit = Unit::new("B47", "kN", "kilonewton");
const MILLIMETRE_PER_SECOND: Unit = Unit::new("C16", "mm/s", "millimetre per second");
const PARTS_PER_MILLION: Unit = Unit::new("59", "ppm", "part per million");
const PH: Unit = Unit::new("Q30", "pH", "pH (potential of Hydrogen)");

macro_rules! sensors {
    ($($machine:literal { $($name:ident $low:literal .. $high:literal $unit:path, $waveform:expr;)* })*) => {
        &[$($(Sensor {
            machine: $machine,
            name: stringify!($name),
            range: ($low, $high),
            unit: $unit,
            waveform: $waveform,
        }),*),*]
    };
}

/// All sensors. The papers that this project reproduces use 30.
pub(crate) const SENSORS: &[Sensor] = sensors! {
    "Boiler" {
        Temperature 20.0 .. 180.0 Unit::CELSIUS, Step { every: 45.0, lag: 12.0 };
        ReturnTemperature 20.0 .. 120.0 Unit::CELSIUS, Walk { pace: 0.01 };
        Pressure 0.0 .. 12.0 Unit::BAR, Step { every: 60.0, lag: 8.0 };
        Level 0.0 .. 100.0 Unit::PERCENT, Ramp { period: 240.0 };
        FeedFlow 0.0 .. 25.0 Unit::CUBIC_METRE_PER_HOUR, Sine { period: 40.0 };
        FlueGasOxygen 0.0 .. 21.0 Unit::PERCENT, Walk { pace: 0.02 };
        CarbonMonoxide 0.0 .. 400.0 PARTS_PER_MILLION, Noise;
        Power 0.0 .. 450.0 Unit::KILOWATT, Step { every: 45.0, lag: 4.0 };
    }
    "Conveyor" {
        Speed 0.0 .. 2.5 Unit::METRE_PER_SECOND, Step { every: 30.0, lag: 1.5 };
        MotorCurrent 0.0 .. 32.0 Unit::AMPERE, Walk { pace: 0.05 };
        MotorTemperature 10.0 .. 110.0 Unit::CELSIUS, Walk { pace: 0.005 };
        BeltPosition 0.0 .. 12000.0 Unit::MILLIMETRE, Ramp { period: 20.0 };
        BeltTension 0.0 .. 8.0 KILONEWTON, Sine { period: 7.0 };
        Load 0.0 .. 500.0 Unit::KILOGRAM, Square { period: 16.0 };
    }
    "Press" {
        Force 0.0 .. 630.0 KILONEWTON, Sine { period: 4.0 };
        RamPosition 0.0 .. 250.0 Unit::MILLIMETRE, Sine { period: 4.0 };
        OilTemperature 10.0 .. 90.0 Unit::CELSIUS, Walk { pace: 0.005 };
        OilPressure 0.0 .. 320.0 Unit::BAR, Square { period: 4.0 };
        Vibration 0.0 .. 28.0 MILLIMETRE_PER_SECOND, Noise;
        MotorTorque 0.0 .. 900.0 Unit::NEWTON_METRE, Sine { period: 4.0 };
    }
    "Robot" {
        Axis1 -180.0 .. 180.0 Unit::DEGREE, Sine { period: 9.0 };
        Axis2 -120.0 .. 120.0 Unit::DEGREE, Sine { period: 11.0 };
        Axis3 -150.0 .. 150.0 Unit::DEGREE, Sine { period: 13.0 };
        Axis4 -180.0 .. 180.0 Unit::DEGREE, Step { every: 6.0, lag: 0.4 };
        Axis5 -120.0 .. 120.0 Unit::DEGREE, Step { every: 6.0, lag: 0.4 };
        Axis6 -360.0 .. 360.0 Unit::DEGREE, Ramp { period: 6.0 };
        ToolSpeed 0.0 .. 2.0 Unit::METRE_PER_SECOND, Walk { pace: 0.2 };
    }
    "Utilities" {
        MainsVoltage 207.0 .. 253.0 Unit::VOLT, Walk { pace: 0.02 };
        MainsFrequency 49.8 .. 50.2 Unit::HERTZ, Walk { pace: 0.02 };
        CompressedAir 0.0 .. 10.0 Unit::BAR, Sine { period: 90.0 };
        CoolingFlow 0.0 .. 300.0 Unit::LITRE_PER_MINUTE, Walk { pace: 0.03 };
        CoolingTemperature 4.0 .. 40.0 Unit::CELSIUS, Sine { period: 300.0 };
        FanSpeed 0.0 .. 3000.0 Unit::REVOLUTIONS_PER_MINUTE, Step { every: 50.0, lag: 5.0 };
        WasteWaterPh 0.0 .. 14.0 PH, Walk { pace: 0.005 };
    }
};

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn enough_sensors_with_sound_ranges() {
        assert!(SENSORS.len() >= 30);
        assert!(SENSORS.iter().all(|sensor| sensor.range.0 < sensor.range.1));
        let names: BTreeSet<_> = SENSORS.iter().map(|sensor| (sensor.machine, sensor.name)).collect();
        assert_eq!(names.len(), SENSORS.len());
    }
}
