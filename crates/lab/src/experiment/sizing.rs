//! Burger et al. 2019, §6: a model of the CPU from the application's profile, and two plants that it sizes.

use super::{Experiment, Plan, Wish, stack_name, stacks};
use crate::chart::{Axis, Chart, Mark, Point, Series};
use crate::figures;
use crate::measurement::{Group, Measurement, group};
use crate::model::{ALLOWED, Fit, Form, Model, Noise, Observation, Split, Trial, median_abs};
use crate::outcome::{Grid, Outcome};
use std::fmt::Write;

pub(super) static ALL: [&dyn Experiment; 2] = [&Modelling, &Sizing];

struct Modelling;
struct Sizing;

fn observations(measurements: &[Measurement], stack: &str) -> Vec<Observation> {
    measurements.iter().filter(|one| one.condition.stack == stack).filter_map(Observation::of).collect()
}

/// The same, load by load.
fn by_load(measurements: &[Measurement], stack: &str) -> Vec<Vec<Observation>> {
    let own = measurements.iter().filter(|one| one.condition.stack == stack);
    let valid = |load: &Group<'_>| load.valid.iter().filter_map(|one| Observation::of(one)).collect();
    group(own).iter().map(valid).filter(|load: &Vec<_>| !load.is_empty()).collect()
}

fn with_clients(data: &[Observation], clients: &[f64]) -> Vec<Observation> {
    data.iter().copied().filter(|one| clients.contains(&one.clients)).collect()
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "–".to_owned(), |share| format!("{} %", figures::number(share * 100.0)))
}

/// What a trial came to, in words.
fn told(trial: &Trial) -> String {
    let between = trial.interval.map_or_else(
        || "too few loads to say how sure that is".to_owned(),
        |(low, high)| format!("{} to {} with other loads", percent(Some(low)), percent(Some(high))),
    );
    let known = trial.floor.map_or_else(
        || "each load was measured once, and what it is off by itself is not known".to_owned(),
        |floor| format!("who knew what each load costs would be off by {}", percent(Some(floor))),
    );
    format!("{} ({between}) with the form '{}'; {known}", percent(Some(trial.error)), trial.form)
}

/// The weights with their units, for CPU in percent of a core.
fn weights(fit: &Fit) -> String {
    let terms = fit.form.terms().iter().zip(&fit.weights);
    let shown =
        terms.filter(|(_, weight)| **weight != 0.0).map(|(term, weight)| format!("{weight:.3e} · {term}"));
    shown.collect::<Vec<_>>().join(" + ")
}

impl Experiment for Modelling {
    fn id(&self) -> &'static str {
        "burger-model"
    }
    fn question(&self) -> &'static str {
        "Can the CPU be predicted for numbers of clients that were not measured?"
    }
    fn source(&self) -> &'static str {
        "Burger et al. 2019, §6, Figures 13 to 15: trained on 10 clients, validated on 5 and 20"
    }
    fn data(&self) -> &'static str {
        "burger-cpu"
    }
    fn plan(&self, wish: &Wish<'_>) -> Plan {
        super::find("burger-cpu").map(|experiment| experiment.plan(wish)).unwrap_or_default()
    }
    fn evaluate(&self, measurements: &[Measurement], outcome: &mut Outcome) {
        let mut grid = Grid::new(
            "Median absolute error of predictions for loads that were not used for fitting",
            2,
            &["stack", "form", "10 → 5", "10 → 20", "1, 10, 30 → 5, 20", "random third", "10-fold", "R²"],
        );
        for stack in stacks(measurements) {
            let data = observations(measurements, &stack);
            let name = stack_name(&stack);
            let Some(model) = Model::new(&stack, &data) else {
                outcome.skipped.push(format!("{name}: too few valid measurements for a model"));
                continue;
            };
            let by_load = by_load(measurements, &stack);
            let from = |train: &[f64], test: &[f64]| {
                let is_one_of = |clients: &[f64], one: &Observation| clients.contains(&one.clients);
                [Split::new(&by_load, |one| is_one_of(train, one), |one| is_one_of(test, one))]
            };
            let from_ten = from(&[10.0], &[5.0, 20.0]);
            let from_others = from(&[1.0, 10.0, 30.0], &[5.0, 20.0]);
            let thirds = Split::thirds(&by_load);
            for candidate in &model.candidates {
                let form = candidate.fit.form;
                let errors =
                    |split: &Split| Some(Fit::new(form, &split.train)?.errors(&split.test(&by_load)));
                let error = |splits: &[Split]| {
                    median_abs(&splits.iter().map(errors).collect::<Option<Vec<_>>>()?.concat())
                };
                grid.row([
                    name.to_owned(),
                    form.to_string(),
                    percent(error(&from(&[10.0], &[5.0]))),
                    percent(error(&from(&[10.0], &[20.0]))),
                    percent(error(&from_others)),
                    percent(error(&thirds)),
                    percent(Some(candidate.error)),
                    format!("{:.4}", candidate.fit.r2),
                ]);
            }
            let chosen = &model.fit;
            // All of these choose the form on the data they are fitted to, without looking at what they predict.
            let splits = [
                ("5 and 20 clients", "10 clients, as in the paper", &from_ten[..]),
                ("5 and 20 clients", "1, 10 and 30 clients", &from_others[..]),
                ("a random third of the loads, eight times,", "the rest", &thirds[..]),
            ];
            for (what, from, splits) in splits {
                let Some(trial) = Trial::of(&stack, &by_load, splits) else {
                    outcome.skipped.push(format!(
                        "{name}: {what} are not predicted from {from}: too few loads were measured for that"
                    ));
                    continue;
                };
                outcome.finding(
                    &format!("{what} predicted within 10 % (median) from {from}"),
                    trial.holds(),
                    format!("{name}: {}", told(&trial)),
                );
            }
            let noise = Noise::of(&by_load);
            if let Some(noise) = noise {
                let most = by_load.iter().map(Vec::len).max().unwrap_or(0);
                outcome.remark(format!(
                    "{name}: the same load measured once more is off by {} (median) from what was measured before: that is the \
                     machine, and no model can be better at a single window. The median over the repetitions (up to {most}) is \
                     off by {} itself; four times as many halve that.",
                    percent(Some(noise.again)),
                    percent(Some(noise.floor))
                ));
            }
            outcome.remark(format!(
                "{name}: chosen form '{}', CPU % = {}; R² {:.4}; nine of ten measurements lie between {} and {} of the \
                 prediction (cross-validation).",
                chosen.form,
                weights(chosen),
                chosen.r2,
                times(model.ratio90.0),
                times(model.ratio90.1)
            ));
            if let Some(paper) = model.candidates.iter().find(|one| one.fit.form == Form::Paper) {
                outcome.remark(format!(
                    "{name}: the paper's form, CPU % = {}; R² {:.4}; trained on 10 clients alone it sees one value of nc and \
                     must trust its exponent of 0.3.",
                    weights(&paper.fit),
                    paper.fit.r2
                ));
            }
            charts(name, &data, &model, outcome);
        }
        outcome.grids.insert(0, grid);
        outcome.remark(
            "Errors are those of the median over the repetitions of each load; the fit sees single measurements. Loads that the \
             server did not keep up with are left out: its CPU is full then, whatever it delivers. Comparable: \
             the method, R² and the relative errors (the paper shows curves and calls them close). Not comparable: weights, which are \
             the prices of a stack on a machine. Trained on 10 clients \
             alone, CPU cannot tell what a message costs from what the server costs at rest, nor whether the price of a signal \
             grows with the clients: our forms share what both explain together, the former by how often the server is woken per \
             message, the latter evenly; the paper's trusts its exponent of 0.3.",
        );
    }
}

fn times(ratio: f64) -> String {
    format!("{} times", figures::number(ratio))
}

fn charts(name: &str, data: &[Observation], model: &Model, outcome: &mut Outcome) {
    let mut series = Vec::new();
    for (colour, clients) in [1.0, 10.0, 30.0].into_iter().enumerate() {
        let dots: Vec<Point> = data
            .iter()
            .filter(|one| one.clients == clients)
            .map(|one| Point::new(one.signals_per_s, one.cpu_percent))
            .collect();
        let most = dots.iter().map(|point| point.x).fold(0.0, f64::max);
        let line: Vec<Point> = (0..=24)
            .map(|step| {
                let items = most / 10.0 * f64::from(step) / 24.0;
                let load = Observation::planned(items, clients, 100.0, false);
                let predicted = model.predict(&load);
                Point {
                    x: load.signals_per_s,
                    y: predicted.cpu_percent,
                    interval: Some(predicted.interval90),
                }
            })
            .collect();
        let label = super::clients(clients as u32);
        series.push(Series { name: label.clone(), mark: Mark::Band(line.clone()), colour });
        let centre = line.into_iter().map(|point| Point::new(point.x, point.y)).collect();
        series.push(Series { name: label.clone(), mark: Mark::Line(centre), colour });
        series.push(Series { name: label, mark: Mark::Dots(dots), colour });
    }
    outcome.charts.push(Chart::plane(
        &format!("Measured and fitted: {name}"),
        "Dots are measurements, lines the fitted model, shaded where nine of ten measurements should lie.",
        Axis::linear("signals/s"),
        Axis::linear("CPU, % of one core"),
        series,
    ));
    outcome.charts.push(unseen(name, data));
}

/// The harder split: numbers of clients that the fit has not seen.
fn unseen(name: &str, data: &[Observation]) -> Chart {
    let train = with_clients(data, &[1.0, 10.0, 30.0]);
    let test = with_clients(data, &[5.0, 20.0]);
    // Which form it is must not be known from what is predicted either.
    let chosen = Model::new(name, &train).map(|model| model.fit.form);
    let forms = [(Some(Form::Paper).filter(|paper| chosen != Some(*paper)), 1), (chosen, 0)];
    let mut without_place = 0;
    let mut series: Vec<Series> = forms
        .into_iter()
        .filter_map(|(form, colour)| {
            let form = form?;
            let fit = Fit::new(form, &train)?;
            let dots = test.iter().map(|one| Point::new(one.cpu_percent, fit.predict(one)));
            // A logarithmic axis has no place for less than nothing.
            let (dots, below): (Vec<Point>, Vec<Point>) = dots.partition(|dot| dot.x > 0.0 && dot.y > 0.0);
            without_place += below.len();
            Some(Series { name: format!("form '{form}'"), mark: Mark::Dots(dots), colour })
        })
        .collect();
    let most = data.iter().map(|one| one.cpu_percent).fold(0.0, f64::max);
    let least = data.iter().map(|one| one.cpu_percent).fold(f64::MAX, f64::min);
    let band =
        [least, most].map(|x| Point { x, y: x, interval: Some((x * (1.0 - ALLOWED), x * (1.0 + ALLOWED))) });
    series.insert(0, Series { name: "within 10 %".into(), mark: Mark::Band(band.into()), colour: 7 });
    let mut reading = "Each dot is a measurement with a number of clients that neither the fit nor the choice of its form has \
                       seen: within the shaded band the prediction is within 10 %."
        .to_owned();
    if without_place > 0 {
        let _ = write!(reading, " {without_place} predictions of zero or less have no place here.");
    }
    Chart::plane(
        &format!("Predicted against measured, 5 and 20 clients: {name}"),
        &reading,
        Axis::log("measured CPU, %"),
        Axis::log("predicted CPU, %"),
        series,
    )
}

impl Experiment for Sizing {
    fn id(&self) -> &'static str {
        "burger-sizing"
    }
    fn question(&self) -> &'static str {
        "Will two plants with 6 000 IO points fit on their nodes?"
    }
    fn source(&self) -> &'static str {
        "Burger et al. 2019, §6.2, Figure 16, for a Raspberry Pi Zero with 1 GHz"
    }
    fn data(&self) -> &'static str {
        "burger-cpu"
    }
    fn plan(&self, wish: &Wish<'_>) -> Plan {
        Modelling.plan(wish)
    }
    fn evaluate(&self, measurements: &[Measurement], outcome: &mut Outcome) {
        let nodes = [
            ("1: 2 controllers", 3_000.0, 4.0, 100.0, "unreliable on this CPU"),
            ("1: 8 FCIs", 750.0, 2.0, 100.0, "about 40 %"),
            ("2: 10 controllers", 600.0, 4.0, 100.0, "about 0.4 GHz of 1 GHz"),
            ("2: 40 FCIs", 150.0, 5.0, 50.0, "about 35 %"),
        ];
        for stack in stacks(measurements) {
            let name = stack_name(&stack);
            let Some(model) = Model::new(&stack, &observations(measurements, &stack)) else {
                outcome.skipped.push(format!("{name}: too few valid measurements for a model"));
                continue;
            };
            let mut grid = Grid::new(
                &format!("CPU of each node of the two plants: {name} on one core of this machine"),
                1,
                &[
                    "case and node",
                    "IO points",
                    "clients",
                    "ms",
                    "CPU %",
                    "90 % interval",
                    "headroom",
                    "published",
                ],
            );
            let mut predicted = Vec::new();
            for (node, points, clients, interval, published) in nodes {
                let load = Observation::planned(points, clients, interval, false);
                let prediction = model.predict(&load);
                let (low, high) = prediction.interval90;
                let mark = if prediction.extrapolated { " (extrapolated)" } else { "" };
                grid.row([
                    node.to_owned(),
                    figures::thousands(points as i64),
                    clients.to_string(),
                    interval.to_string(),
                    figures::number(prediction.cpu_percent),
                    format!("{} to {}{mark}", figures::number(low), figures::number(high)),
                    // The paper finds that cycles are kept up to 75 %.
                    format!("{} times", figures::number(75.0 / high)),
                    published.to_owned(),
                ]);
                predicted.push(high);
            }
            outcome.grids.push(grid);
            let fits = predicted.iter().all(|high| *high < 75.0);
            outcome.finding(
                "every node stays below 75 % of one core, above which the paper saw cycles missed",
                Some(fits),
                format!(
                    "{name}: the busiest needs {} %",
                    figures::number(predicted.iter().copied().fold(0.0, f64::max))
                ),
            );
            if let [large, small, ..] = predicted[..] {
                outcome.finding(
                    "the controller of case 1 is the node under strain, as in the paper",
                    Some(large > small),
                    format!(
                        "{name}: {} % against {} % of the FCI",
                        figures::number(large),
                        figures::number(small)
                    ),
                );
            }
        }
        outcome.remark(
            "Comparable: which node is under strain and in which order they stand. Not comparable: percent; the headroom here is \
             that of one core of this machine. For another machine, run `taktwerk lab calibrate` there.",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_predicted_has_no_part_in_choosing_the_form() {
        let measured = |clients: f64, items: f64, cpu: f64| Observation {
            cpu_percent: cpu,
            ..Observation::planned(items, clients, 100.0, false)
        };
        // A CPU that grows faster than the signals: a straight line through it begins below zero.
        let loads = [1.0, 5.0, 10.0, 20.0, 30.0].into_iter().flat_map(|clients| {
            [100.0, 300.0, 1_000.0, 3_000.0, 10_000.0, 30_000.0]
                .map(|items: f64| measured(clients, items, 0.05 + items * items * 1e-7))
        });
        let data: Vec<Observation> = loads.collect();
        let chart = unseen("t", &data);
        let crate::chart::Content::Plane { series, .. } = &chart.content else { panic!() };
        let dots = series.iter().filter_map(|one| match &one.mark {
            Mark::Dots(dots) => Some((one.name.clone(), dots.len())),
            _ => None,
        });
        let dots: Vec<(String, usize)> = dots.collect();
        assert!(dots[0].0.contains("paper") && dots[0].1 < 12, "{dots:?}");
        assert!(
            chart
                .reading
                .ends_with(&format!("{} predictions of zero or less have no place here.", 12 - dots[0].1))
        );
        // With 5 and 20 clients everything costs something else: the form stays that of the others.
        let chosen = dots[1].0.clone();
        let odd = data.iter().map(|one| Observation {
            cpu_percent: if [5.0, 20.0].contains(&one.clients) { 50.0 } else { one.cpu_percent },
            ..*one
        });
        let crate::chart::Content::Plane { series, .. } = unseen("t", &odd.collect::<Vec<_>>()).content
        else {
            panic!()
        };
        assert!(series.iter().any(|one| one.name == chosen), "{chosen}");
    }
}
