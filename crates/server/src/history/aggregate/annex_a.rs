//! The example tables of Part 13 Annex A.
//!
//! A row has a time in seconds after 12:00:00, a value or `-`, and a status: `G` Good, `U` Uncertain, `S`
//! Uncertain_DataSubNormal, `N` Bad_NoData, with the bits `c` Calculated, `i` Interpolated, `p` Partial, `m`
//! MultiValue.

use super::bound::{self, Rules};
use super::*;
use crate::history::store::HistoryValue;
use taktwerk_types::{UtcTime, Variant};

const SECOND: i64 = 10_000_000;

fn time(seconds: f64) -> UtcTime {
    UtcTime::from_ticks(133_000_000_000_000_000 + (seconds * SECOND as f64).round() as i64)
}

/// The raw values of a historian (A.1), and the rules of its examples.
fn historian(number: u8) -> (Vec<HistoryValue>, Rules) {
    const DATA_1: &str = "10 10 G; 20 20 G; 30 30 G; 40 40 B; 50 50 G; 60 60 G; 70 70 U; 80 80 G; 90 90 G";
    const DATA_2: &str = "2 10 G; 25 20 G; 28 25 G; 39 30 G; 42 - B; 48 40 G; 52 50 G; 72 60 G; 77 70 U; 83 70 G; \
                          86 80 G; 90 90 G";
    const DATA_4: &str =
        "2 1 G; 25 0 G; 28 1 G; 39 1 G; 42 - B; 48 1 G; 52 0 G; 72 0 G; 77 1 U; 83 1 G; 86 0 G; 90 1 G";
    let (data, stepped, treat_uncertain_as_bad, percent) = match number {
        1 => (DATA_1, false, false, 100),
        2 => (DATA_2, false, true, 100),
        3 => (DATA_2, true, true, 50),
        _ => (DATA_4, true, true, 100),
    };
    let values = data.split("; ").map(|row| {
        let mut parts = row.split_whitespace();
        let at = time(parts.next().unwrap().parse().unwrap());
        let value = match parts.next().unwrap() {
            "-" => Variant::Empty,
            text if number == 4 => Variant::Boolean(text == "1"),
            text => Variant::Double(text.parse().unwrap()),
        };
        let status = match parts.next().unwrap() {
            "G" => StatusCode::GOOD,
            "U" => StatusCode::UNCERTAIN,
            _ => StatusCode::BAD,
        };
        HistoryValue { source: at, server: at, status, value }
    });
    let configuration = Configuration {
        treat_uncertain_as_bad,
        percent_data_bad: percent,
        percent_data_good: percent,
        use_sloped_extrapolation: false,
    };
    (values.collect(), Rules::new(stepped, configuration))
}

fn status(text: &str) -> StatusCode {
    let (base, letters) = text.split_at(1);
    let base = match base {
        "G" => StatusCode::GOOD,
        "U" => StatusCode::UNCERTAIN,
        "S" => StatusCode::UNCERTAIN_DATA_SUB_NORMAL,
        "N" => StatusCode::BAD_NO_DATA,
        other => panic!("{other} is no status"),
    };
    let bit = |letter| match letter {
        'c' => bits::CALCULATED,
        'i' => bits::INTERPOLATED,
        'p' => bits::PARTIAL,
        'm' => bits::MULTI_VALUE,
        other => panic!("{other} is no bit"),
    };
    with_bits(base, letters.chars().map(bit).sum())
}

/// The table, the aggregate, the historian, the interval in seconds, and the rows.
type Table = (&'static str, Aggregate, u8, u32, &'static str);

use Aggregate as A;

#[rustfmt::skip]
const TABLES: &[Table] = &[
    ("A.2", A::Interpolative, 1, 5,
        "0 - N; 5 - N; 10 10 G; 15 15 Gi; 20 20 G; 25 25 Gi; 30 30 G; 35 35 Si; 40 40 Si; 45 45 Si; 50 50 G; 55 55 Gi; \
         60 60 G; 65 65 Si; 70 70 U; 75 75 Si; 80 80 G; 85 85 Gi; 90 90 G; 95 90 Si"),
    ("A.2", A::Interpolative, 2, 5, "0 - N; 5 11.304 Gi; 10 13.478 Gi; 15 15.652 Gi; 20 17.826 Gi; 25 20 G"),
    ("A.4", A::TimeAverage, 1, 5,
        "0 - N; 5 - N; 10 12.5 Gc; 15 17.5 Gc; 20 22.5 Gc; 25 27.5 Gc; 30 32.5 Sc; 35 37.5 Sc; 40 42.5 Sc; 45 47.5 Sc; \
         50 52.5 Gc; 55 57.5 Gc; 60 62.5 Sc; 65 67.5 Sc; 70 72.5 Sc; 75 77.5 Sc; 80 82.5 Gc; 85 87.5 Gc; 90 90 Sc; \
         95 90 Sc"),
    ("A.4", A::TimeAverage, 2, 5, "0 10.652 Scp"),
    ("A.5", A::TimeAverage2, 1, 5,
        "0 - N; 5 - N; 10 12.5 Gc; 15 17.5 Gc; 20 22.5 Gc; 25 27.5 Gc; 30 30 Sc; 35 30 Sc; 40 - N; 45 - N; 50 52.5 Gc; \
         55 57.5 Gc; 60 62.5 Sc; 65 67.5 Sc; 70 72.5 Sc; 75 77.5 Sc; 80 82.5 Gc; 85 87.5 Gc; 90 90 Scp; 95 - N"),
    ("A.5", A::TimeAverage2, 2, 5, "0 10.652 Scp; 5 12.391 Gc; 10 14.565 Gc; 15 16.739 Gc; 20 18.913 Gc"),
    ("A.10", A::MinimumActualTime, 1, 16, "10 10 Gp; 20 20 G; 32 - N; 50 50 G; 64 - N; 80 80 Gp; 96 - N"),
    ("A.10", A::MinimumActualTime, 2, 16, "2 10 Gp; 25 20 G; 39 30 S; 48 40 G; 72 60 S; 83 70 Gp; 96 - N"),
    ("A.10", A::MinimumActualTime, 3, 16, "2 10 Gp; 25 20 G; 39 30 S; 48 40 G; 72 60 S; 83 70 Gp; 96 - N"),
    ("A.11", A::MaximumActualTime, 1, 16, "10 10 Gp; 30 30 G; 32 - N; 60 60 G; 64 - N; 90 90 Gp; 96 - N"),
    ("A.11", A::MaximumActualTime, 2, 16, "2 10 Gp; 28 25 G; 39 30 S; 52 50 G; 72 60 S; 90 90 Gp; 96 - N"),
    ("A.11", A::MaximumActualTime, 3, 16, "2 10 Gp; 28 25 G; 39 30 S; 52 50 G; 72 60 S; 90 90 Gp; 96 - N"),
    ("A.13", A::Minimum2, 1, 16, "0 10 Scp; 16 16 Si; 32 30 Si; 48 50 Sc; 64 64 Si; 80 80 Sp; 96 - N"),
    ("A.13", A::Minimum2, 2, 16, "0 10 Scp; 16 16.087 Gi; 32 26.818 Si; 48 40 G; 64 56 Si; 80 70 Scp; 96 - N"),
    ("A.13", A::Minimum2, 3, 16, "0 10 Gcp; 16 10 Gi; 32 25 Gi; 48 40 G; 64 50 Gi; 80 70 Gcp; 96 - N"),
    ("A.15", A::MinimumActualTime2, 1, 16, "10 10 Sp; 16 16 Si; 32 30 Si; 50 50 S; 64 64 Si; 80 80 Sp; 96 - N"),
    ("A.15", A::MinimumActualTime2, 2, 16, "2 10 Sp; 16 16.087 Gi; 32 26.818 Si; 48 40 G; 64 56 Si; 83 70 Sp; 96 - N"),
    ("A.15", A::MinimumActualTime2, 3, 16, "2 10 Gp; 16 10 Gi; 32 25 Gi; 48 40 G; 64 50 Gi; 83 70 Gp; 96 - N"),
    ("A.16", A::MaximumActualTime2, 1, 16, "15.999 16 Sip; 30 30 Sm; 32 30 Si; 63.999 64 Si; 79.999 80 Si; 90 90 Sp; 96 - N"),
    ("A.16", A::MaximumActualTime2, 2, 16,
        "15.999 16.087 Sip; 31.999 26.818 Gi; 47.999 40 Si; 63.999 56 Gi; 72 60 S; 90 90 Sp; 96 - N"),
    ("A.16", A::MaximumActualTime2, 3, 16, "2 10 Gp; 28 25 G; 39 30 G; 52 50 G; 72 60 G; 90 90 Gp; 96 - N"),
    ("A.20", A::DurationInStateZero, 4, 16,
        "0 0 Scp; 16 3000 Gc; 32 0 Sc; 48 12000 Gc; 64 13000 Sc; 80 4000 Scp; 96 - N"),
    ("A.21", A::DurationInStateNonZero, 4, 16,
        "0 14000 Scp; 16 13000 Gc; 32 10000 Sc; 48 4000 Gc; 64 0 Sc; 80 3001 Scp; 96 - N"),
    ("A.25", A::StartBound, 1, 16, "0 - Np; 16 16 Gi; 32 30 Si; 48 - N; 64 64 Si; 80 80 Gp; 96 - N"),
    ("A.25", A::StartBound, 2, 16, "0 - Np; 16 16.087 Gi; 32 26.818 Gi; 48 40 G; 64 56 Gi; 80 - Np; 96 - N"),
    ("A.25", A::StartBound, 3, 16, "0 - Np; 16 10 Gi; 32 25 Gi; 48 40 G; 64 50 Gi; 80 - Np; 96 - N"),
    ("A.29", A::DurationGood, 1, 16, "0 6000 Gcp; 16 16000 Gc; 32 0 Gc; 48 14000 Gc; 64 0 Gc; 80 10001 Gcp; 96 - N"),
    ("A.29", A::DurationGood, 2, 16,
        "0 14000 Gcp; 16 16000 Gc; 32 10000 Gc; 48 16000 Gc; 64 13000 Gc; 80 7001 Gcp; 96 - N"),
    ("A.29", A::DurationGood, 3, 16,
        "0 14000 Gcp; 16 16000 Gc; 32 10000 Gc; 48 16000 Gc; 64 13000 Gc; 80 7001 Gcp; 96 - N"),
    ("A.29", A::DurationGood, 4, 16, "0 14000 Gcp"),
    ("A.36", A::VarianceSample, 1, 20, "0 0 Gcp; 20 50 Gc; 40 0 Sc; 60 0 Sc; 80 50 Gcp"),
    ("A.36", A::VarianceSample, 2, 20, "0 0 Gcp; 20 25 Gc; 40 50 Sc; 60 0 Sc; 80 100 Gcp"),
    ("A.36", A::VarianceSample, 3, 20, "0 0 Gcp; 20 25 Gc; 40 50 Sc; 60 0 Sc; 80 100 Gcp"),
];

/// The results of an aggregate from 12:00:00 to 12:01:40.
fn rows(aggregate: Aggregate, number: u8, seconds: u32) -> Vec<HistoryValue> {
    let (values, rules) = historian(number);
    let starts = (0..100).step_by(seconds as usize);
    let interval = |start: u32| Interval {
        values: &values,
        start: time(f64::from(start)),
        end: time(f64::from((start + seconds).min(100))),
        is_short: start + seconds > 100,
        annotations: 0,
        rules,
    };
    starts.map(|start| compute(aggregate, &interval(start))).collect()
}

#[test]
fn the_examples_of_the_specification() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for (table, aggregate, number, seconds, text) in TABLES {
        let found = rows(*aggregate, *number, *seconds);
        for (row, found) in text.split("; ").zip(&found) {
            count += 1;
            let mut parts = row.split_whitespace();
            let at = time(parts.next().unwrap().parse().unwrap());
            let value: Option<f64> = parts.next().and_then(|text| text.parse().ok());
            let status = status(parts.next().unwrap());
            let same = match (value, bound::number(&found.value)) {
                (Some(value), Some(found)) => (value - found).abs() < 0.000_51,
                (value, found) => value.is_none() && found.is_none(),
            };
            if !same || at != found.source || status != found.status {
                let seconds = (found.source.ticks() - time(0.0).ticks()) as f64 / SECOND as f64;
                let status = found.status;
                wrong.push(format!(
                    "{table} {aggregate:?} Historian{number}: {row}; is {seconds} {:?} {:08x}",
                    found.value, status.0
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {count} rows:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count > 240, "{count}");
}
