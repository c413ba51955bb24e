//! Searches from coarse to fine: formulas rule out combinations, a more accurate evaluator decides.

use super::analytic::Analytic;
use super::front::{Scale, front, knee};
use super::problem::Problem;
use super::settings::{Figures, Metric, Settings, Transport};
use serde::Serialize;
use std::collections::BTreeMap;

/// Evaluates settings: by formulas, a simulation, or a measurement.
pub trait Evaluate {
    /// Label of its results: "model", "simulation", "measurement".
    fn name(&self) -> &'static str;

    /// The figures of settings. The same settings and seed give the same figures.
    ///
    /// # Errors
    /// See [`EvaluateError`].
    fn evaluate(&self, settings: &Settings, seed: u64) -> Result<Figures, EvaluateError>;
}

/// Why settings have no figures.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EvaluateError {
    /// The link is saturated: the backlog would grow without limit.
    #[error("the link would be used to {:.0} %", share * 100.0)]
    Saturated {
        /// Load divided by the capacity of the link.
        share: f64,
    },
    /// It failed.
    #[error("{0}")]
    Failed(String),
}

/// Stages of the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Formulas for all combinations.
    Model,
    /// The remaining combinations, with few intervals.
    Coarse,
    /// Intervals around the knee.
    Fine,
    /// The knee and its neighbours with all seeds.
    Seeds,
    /// Effects of other choices.
    Alternatives,
}

/// Progress of the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Current stage.
    pub stage: Stage,
    /// Number of evaluations, in all stages except the first.
    pub done: usize,
    /// Expected total number of evaluations.
    pub expected: usize,
}

/// Settings with their figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    /// The settings.
    #[serde(flatten)]
    pub settings: Settings,
    /// The figures, as means over the seeds.
    #[serde(flatten)]
    pub figures: Figures,
    /// Name of the evaluator.
    pub by: &'static str,
    /// Number of seeds.
    pub seeds: u32,
    /// Whether all constraints hold.
    pub is_feasible: bool,
    /// Whether it is on the Pareto front.
    pub on_front: bool,
}

/// A different choice for one setting, all others as recommended.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Alternative {
    /// The setting.
    pub setting: &'static str,
    /// The point with the other choice.
    pub point: Point,
}

/// The result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tuned {
    /// Every point that was evaluated, by publishing interval.
    pub points: Vec<Point>,
    /// The knee of the front.
    pub recommended: Point,
    /// Effects of other choices.
    pub alternatives: Vec<Alternative>,
    /// The queue size that each item needs to lose no values, if the settings leave it open; otherwise 0.
    pub queue_size: u32,
    /// Number of combinations that the formulas ruled out.
    pub sorted_out: usize,
    /// Number of choices that exceed the link's capacity, with the first reason.
    pub impossible: Option<(usize, String)>,
    /// Number of evaluations.
    pub evaluations: usize,
}

/// Why there is no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum TuneError {
    /// All choices exceed the link's capacity.
    #[error(
        "{place}: the link has no capacity for this load: {reason}. Raise link.rate, lower link.busy, or widen \
         tune.search.publishing_ms"
    )]
    NoCapacity {
        /// Where the link has its rate.
        place: String,
        /// By how much it is exceeded.
        reason: String,
    },
    /// No choice meets a constraint.
    #[error(
        "{place}: no setting meets {constraint}: the best of {tried} reaches {best}. Relax it or widen the search"
    )]
    Infeasible {
        /// Where the constraint is.
        place: String,
        /// The constraint with the largest violation.
        constraint: String,
        /// The best value that was reached.
        best: String,
        /// Number of choices tried.
        tried: usize,
    },
    /// A figure to minimize is unknown.
    #[error(
        "{0} needs processors or a cost model: pass --host-profile epyc-vm, or --model FILE, or run `taktwerk lab calibrate \
         --quick` first"
    )]
    Unknown(Metric),
    /// The evaluator failed for every choice.
    #[error("no choice could be evaluated: {0}")]
    Failed(String),
    /// The caller stopped the search before there was a result.
    #[error("stopped before there was a result")]
    Stopped,
}

/// Number of publishing intervals in the coarse stage.
const COARSE: usize = 9;
/// The same for formulas.
const SKETCH: usize = 24;
/// Number of combinations of other settings that are simulated.
const KEPT: usize = 8;
/// The search ends when the neighbours of the knee are within this factor.
const FINE: f64 = 1.06;
/// Choices beyond this multiple of the link's capacity, by the formulas, are not simulated.
const HOPELESS: f64 = 1.25;

/// State of a search.
struct Search<'a> {
    problem: &'a Problem,
    formulas: &'a Analytic<'a>,
    evaluator: &'a dyn Evaluate,
    progress: &'a mut dyn FnMut(Progress) -> bool,
    stage: Stage,
    expected: usize,
    evaluations: usize,
    impossible: usize,
    reason: Option<EvaluateError>,
    /// By combination, and interval in microseconds.
    points: BTreeMap<(usize, u64), Point>,
}

/// Searches. `formulas` rule out combinations first; `evaluator` decides about the others. `progress` is called before
/// every evaluation and stops the search if it returns `false`; the result is then the best point so far.
///
/// # Errors
/// See [`TuneError`].
pub fn tune(
    problem: &Problem,
    formulas: &Analytic<'_>,
    evaluator: &dyn Evaluate,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Tuned, TuneError> {
    let (kept, sorted_out) = sketch(problem, formulas)?;
    let intervals = coarse(problem, COARSE);
    let expected = kept.len() * intervals.len() + 12 + 3 * problem.seeds as usize;
    let mut search = Search {
        problem,
        formulas,
        evaluator,
        progress,
        stage: Stage::Coarse,
        expected,
        evaluations: 0,
        impossible: 0,
        reason: None,
        points: BTreeMap::new(),
    };
    let mut goes_on = true;
    'coarse: for interval in &intervals {
        for combination in &kept {
            goes_on = search.add(*combination, *interval, 1);
            if !goes_on {
                break 'coarse;
            }
        }
    }
    if problem.space.is_range {
        search.stage = Stage::Fine;
        while goes_on {
            let Some((combination, intervals)) = search.finer() else { break };
            goes_on = intervals.into_iter().all(|interval| search.add(combination, interval, 1));
        }
    }
    search.stage = Stage::Seeds;
    if goes_on && problem.seeds > 1 {
        goes_on = search.all_seeds();
    }
    search.answer(sorted_out, goes_on)
}

/// Publishing intervals over the whole range, evenly spaced on a logarithmic scale; or those in the list.
fn coarse(problem: &Problem, count: usize) -> Vec<f64> {
    let space = &problem.space;
    let ([first, last], true) = (&space.publishing_ms[..], space.is_range) else {
        return space.publishing_ms.clone();
    };
    let step = (last / first).powf(1.0 / (count - 1) as f64);
    let mut all: Vec<f64> =
        (0..count).map(|at| rounded(problem, first * step.powi(at as i32)).clamp(*first, *last)).collect();
    all.dedup();
    all
}

/// Rounds intervals: to half milliseconds below 100 ms, otherwise to three digits. Above the shortest period of a
/// signal, to its multiples, so that all messages have the same number of values and are sent right after them.
fn rounded(problem: &Problem, ms: f64) -> f64 {
    let step = match ms {
        ms if ms < 5.0 => 0.1,
        ms if ms < 100.0 => 0.5,
        ms if ms < 1_000.0 => 1.0,
        _ => 10.0,
    };
    let period = problem.signals.iter().map(|one| one.period_ms).fold(f64::MAX, f64::min);
    let step = if ms >= 2.0 * period { f64::max(step, period) } else { step };
    (ms / step).round() * step
}

fn key(interval: f64) -> u64 {
    (interval * 1e3).round() as u64
}

fn no_capacity(problem: &Problem, reason: &EvaluateError) -> TuneError {
    TuneError::NoCapacity { place: problem.place_of_rate(), reason: reason.to_string() }
}

/// The combinations near the best trade-off according to the formulas, and the number ruled out.
fn sketch(problem: &Problem, formulas: &Analytic<'_>) -> Result<(Vec<usize>, usize), TuneError> {
    let intervals = coarse(problem, SKETCH);
    let mut owners = Vec::new();
    let mut figures = Vec::new();
    let mut saturated: Option<f64> = None;
    for (combination, others) in problem.space.others.iter().enumerate() {
        for publishing_ms in &intervals {
            match formulas.evaluate(&Settings { publishing_ms: *publishing_ms, ..others.clone() }, 0) {
                Ok(one) => {
                    owners.push(combination);
                    figures.push(one);
                }
                Err(EvaluateError::Saturated { share }) => {
                    saturated = Some(saturated.map_or(share, |least: f64| least.min(share)));
                }
                Err(_) => {}
            }
        }
    }
    let all = || (0..problem.space.others.len()).collect::<Vec<_>>();
    if figures.is_empty() {
        return match saturated {
            Some(share) if share > HOPELESS => Err(no_capacity(problem, &EvaluateError::Saturated { share })),
            _ => Ok((all().into_iter().take(KEPT).collect(), all().len().saturating_sub(KEPT))),
        };
    }
    let known: Vec<usize> = front(&figures, &problem.minimize);
    if known.is_empty() || problem.space.others.len() <= KEPT {
        let kept: Vec<usize> = all().into_iter().take(KEPT).collect();
        return Ok((kept, problem.space.others.len().saturating_sub(KEPT)));
    }
    let scale = Scale::new(&figures, &known, problem);
    let mut best: BTreeMap<usize, f64> = BTreeMap::new();
    for (owner, one) in owners.iter().zip(&figures) {
        // Violated constraints outweigh everything else.
        let missed =
            problem.constraints.iter().filter(|constraint| constraint.holds(one) == Some(false)).count();
        let score = scale.score(one).unwrap_or(f64::MAX / 4.0) + 1e3 * missed as f64;
        let entry = best.entry(*owner).or_insert(f64::MAX);
        *entry = entry.min(score);
    }
    let mut order: Vec<(usize, f64)> = best.into_iter().collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
    let mut kept: Vec<usize> = order.into_iter().take(KEPT).map(|(combination, _)| combination).collect();
    kept.sort_unstable();
    let sorted_out = problem.space.others.len() - kept.len();
    Ok((kept, sorted_out))
}

impl Search<'_> {
    /// Evaluates a combination at an interval, unless it is known. Returns whether to continue.
    fn add(&mut self, combination: usize, interval: f64, seeds: u32) -> bool {
        let Some(others) = self.problem.space.others.get(combination) else { return true };
        let settings = Settings { publishing_ms: interval, ..others.clone() };
        let known = self.points.get(&(combination, key(interval))).map_or(0, |point| point.seeds);
        if known >= seeds {
            return true;
        }
        match self.point(&settings, seeds) {
            Some(Ok(point)) => {
                self.points.insert((combination, key(interval)), point);
                true
            }
            Some(Err(error)) => {
                self.impossible += 1;
                self.reason.get_or_insert(error);
                true
            }
            None => false,
        }
    }

    /// A point as the mean over seeds; `None` if the caller stops.
    fn point(&mut self, settings: &Settings, seeds: u32) -> Option<Result<Point, EvaluateError>> {
        if let Err(EvaluateError::Saturated { share }) = self.formulas.evaluate(settings, 0) {
            if share > HOPELESS {
                return Some(Err(EvaluateError::Saturated { share }));
            }
        }
        let mut all = Vec::new();
        for seed in 1..=u64::from(seeds) {
            let expected = self.expected.max(self.evaluations + 1);
            if !(self.progress)(Progress { stage: self.stage, done: self.evaluations, expected }) {
                return None;
            }
            self.evaluations += 1;
            match self.evaluator.evaluate(settings, seed) {
                Ok(figures) => all.push(figures),
                Err(error) => return Some(Err(error)),
            }
        }
        Some(Ok(self.judged(settings.clone(), mean(&all), self.evaluator.name(), seeds)))
    }

    fn judged(&self, settings: Settings, figures: Figures, by: &'static str, seeds: u32) -> Point {
        let is_feasible = self.problem.constraints.iter().all(|one| one.holds(&figures) == Some(true));
        Point { settings, figures, by, seeds, is_feasible, on_front: false }
    }

    /// The knee of the points that meet the constraints.
    fn best(&self) -> Option<(usize, u64)> {
        let feasible: Vec<(&(usize, u64), &Point)> =
            self.points.iter().filter(|(_, point)| point.is_feasible).collect();
        let figures: Vec<Figures> = feasible.iter().map(|(_, point)| point.figures).collect();
        let at = knee(&figures, &front(&figures, &self.problem.minimize), self.problem)?;
        feasible.get(at).map(|(key, _)| **key)
    }

    /// The combination at the knee, with intervals halfway to its neighbours; `None` if they are close enough.
    fn finer(&self) -> Option<(usize, Vec<f64>)> {
        let (combination, at) = self.best()?;
        let own = || self.points.range((combination, 0)..=(combination, u64::MAX)).map(|((_, key), _)| *key);
        let left = own().filter(|key| *key < at).max();
        let right = own().filter(|key| *key > at).min();
        let between = |other: u64| {
            let (low, high) = (other.min(at) as f64, other.max(at) as f64);
            let middle = rounded(self.problem, (low * high).sqrt() / 1e3);
            (high / low > FINE && ![other, at].contains(&key(middle))).then_some(middle)
        };
        let found: Vec<f64> = [left, right].into_iter().flatten().filter_map(between).collect();
        // Impossible intervals would be tried repeatedly.
        let is_new = found.iter().any(|ms| !self.points.contains_key(&(combination, key(*ms))));
        (is_new && self.evaluations < self.expected + 40).then_some((combination, found))
    }

    /// Evaluates the knee and its neighbours with all seeds, until the knee is one of them.
    fn all_seeds(&mut self) -> bool {
        for _ in 0..4 {
            let Some((combination, at)) = self.best() else { return true };
            let own: Vec<u64> = self
                .points
                .range((combination, 0)..=(combination, u64::MAX))
                .map(|((_, key), _)| *key)
                .collect();
            let place = own.iter().position(|key| *key == at).unwrap_or(0);
            let around = own.iter().skip(place.saturating_sub(1)).take(if place == 0 { 2 } else { 3 });
            let around: Vec<u64> = around.copied().collect();
            let is_known = |key: &u64| {
                self.points.get(&(combination, *key)).is_some_and(|point| {
                    point.seeds >= self.problem.seeds || point.by != self.evaluator.name()
                })
            };
            if around.iter().all(is_known) {
                return true;
            }
            for key in around {
                if !self.add(combination, key as f64 / 1e3, self.problem.seeds) {
                    return false;
                }
            }
        }
        true
    }

    fn answer(mut self, sorted_out: usize, goes_on: bool) -> Result<Tuned, TuneError> {
        let Some(best) = self.best() else { return Err(self.no_answer(goes_on)) };
        let Some(mut recommended) = self.points.get(&best).cloned() else { return Err(TuneError::Stopped) };
        recommended.on_front = true;
        self.mark_front();
        self.stage = Stage::Alternatives;
        let mut queue_size = 0;
        let mut alternatives = Vec::new();
        if goes_on {
            queue_size = self.queue(&recommended.settings).unwrap_or(0);
            alternatives = self.alternatives(&recommended.settings);
        }
        let mut points: Vec<Point> = self.points.into_values().collect();
        points.sort_by(|a, b| a.settings.publishing_ms.total_cmp(&b.settings.publishing_ms));
        Ok(Tuned {
            points,
            recommended,
            alternatives,
            queue_size,
            sorted_out,
            impossible: self.reason.map(|reason| (self.impossible, reason.to_string())),
            evaluations: self.evaluations,
        })
    }

    /// Marks the points on the Pareto front, by publishing interval.
    fn mark_front(&mut self) {
        let mut feasible: Vec<&mut Point> =
            self.points.values_mut().filter(|point| point.is_feasible).collect();
        feasible.sort_by(|a, b| a.settings.publishing_ms.total_cmp(&b.settings.publishing_ms));
        let figures: Vec<Figures> = feasible.iter().map(|point| point.figures).collect();
        for at in front(&figures, &self.problem.minimize) {
            if let Some(point) = feasible.get_mut(at) {
                point.on_front = true;
            }
        }
    }

    /// Why there is no result.
    fn no_answer(&self, goes_on: bool) -> TuneError {
        if self.points.is_empty() {
            return match &self.reason {
                Some(reason @ EvaluateError::Saturated { .. }) => no_capacity(self.problem, reason),
                Some(reason) => TuneError::Failed(reason.to_string()),
                None if goes_on => TuneError::Failed("there was none".to_owned()),
                None => TuneError::Stopped,
            };
        }
        let of_points =
            |metric: Metric| self.points.values().filter_map(move |point| metric.of(&point.figures));
        let needed = self.problem.minimize.iter().copied();
        let needed = needed.chain(self.problem.constraints.iter().map(|one| one.metric));
        if let Some(unknown) = { needed }.find(|metric| of_points(*metric).next().is_none()) {
            return TuneError::Unknown(unknown);
        }
        let fulfilled = |one: &super::Constraint| {
            self.points.values().filter(|point| one.holds(&point.figures) == Some(true)).count()
        };
        let all = self.problem.constraints.iter().zip(&self.problem.constraint_places);
        let Some((missed, place)) = all.min_by_key(|(one, _)| fulfilled(one)) else {
            return TuneError::Stopped;
        };
        let best = if missed.at_most {
            of_points(missed.metric).fold(f64::MAX, f64::min)
        } else {
            of_points(missed.metric).fold(f64::MIN, f64::max)
        };
        let constraint = if fulfilled(missed) > 0 {
            let all: Vec<String> = self.problem.constraints.iter().map(ToString::to_string).collect();
            format!("{} at the same time", all.join(" and "))
        } else {
            missed.to_string()
        };
        let (place, best) = (place.clone(), missed.metric.text(best));
        TuneError::Infeasible { place, constraint, best, tried: self.points.len() }
    }

    /// The smallest queue that loses no values, if the settings leave it open.
    fn queue(&mut self, settings: &Settings) -> Option<u32> {
        if settings.queue_size > 0 || settings.transport != Transport::Session {
            return None;
        }
        let shortest = self.problem.signals.iter().map(|one| one.period_ms.max(settings.sampling_ms));
        let shortest = shortest.fold(f64::MAX, f64::min);
        // One value more than fits into an interval, then more for late messages.
        let mut queue_size = (settings.publishing_ms / shortest).ceil() as u32 + 1;
        for _ in 0..6 {
            let tried = Settings { queue_size, ..settings.clone() };
            match self.point(&tried, 1)? {
                Ok(point) if point.figures.loss <= 0.0 => return Some(queue_size),
                Ok(_) => queue_size += queue_size.div_ceil(2),
                Err(_) => return None,
            }
        }
        None
    }

    /// The effects of each other choice of one setting.
    fn alternatives(&mut self, chosen: &Settings) -> Vec<Alternative> {
        let mut tried: Vec<(&'static str, Settings)> = Vec::new();
        for other in &self.problem.space.others {
            let other = Settings { publishing_ms: chosen.publishing_ms, ..other.clone() };
            if let [setting] = different(chosen, &other)[..] {
                tried.push((setting, other));
            }
        }
        let around =
            self.points.values().filter(|point| different(chosen, &point.settings) == ["publishing_ms"]);
        let mut intervals: Vec<Point> = around.cloned().collect();
        intervals.sort_by(|a, b| a.settings.publishing_ms.total_cmp(&b.settings.publishing_ms));
        // Only choices that differ by at least a third are informative. Those on the front are shown to the user.
        let is_shorter = |one: &&Point| one.settings.publishing_ms <= chosen.publishing_ms * 0.75;
        let is_longer = |one: &&Point| one.settings.publishing_ms >= chosen.publishing_ms * 1.33;
        let shorter = intervals.iter().rev().filter(is_shorter);
        let longer = intervals.iter().filter(is_longer);
        let shorter = shorter.clone().find(|one| one.on_front).or_else(|| shorter.clone().next());
        let longer = longer.clone().find(|one| one.on_front).or_else(|| longer.clone().next());
        let mut all: Vec<Alternative> = shorter
            .into_iter()
            .chain(longer)
            .map(|point| Alternative { setting: "publishing_ms", point: point.clone() })
            .collect();
        for (setting, settings) in tried.into_iter().take(24) {
            match self.point(&settings, 1) {
                Some(Ok(point)) => all.push(Alternative { setting, point }),
                Some(Err(_)) => {}
                None => break,
            }
        }
        all
    }
}

/// Names of the settings in which two choices differ.
fn different(a: &Settings, b: &Settings) -> Vec<&'static str> {
    [
        ("publishing_ms", key(a.publishing_ms) != key(b.publishing_ms)),
        ("sampling_ms", key(a.sampling_ms) != key(b.sampling_ms)),
        ("queue_size", a.queue_size != b.queue_size),
        ("notifications_max", a.notifications_max != b.notifications_max),
        ("keep_alive_count", a.keep_alive_count != b.keep_alive_count),
        ("publish_requests", a.publish_requests != b.publish_requests),
        ("security", a.security != b.security),
        ("transport", a.transport != b.transport),
        ("busy_poll_us", a.busy_poll_us != b.busy_poll_us),
        ("threads", a.threads != b.threads),
    ]
    .into_iter()
    .filter(|(_, differs)| *differs)
    .map(|(name, _)| name)
    .collect()
}

/// The mean of each figure; for the largest delay, the maximum.
fn mean(all: &[Figures]) -> Figures {
    let count = all.len().max(1) as f64;
    let of = |value: fn(&Figures) -> f64| all.iter().map(value).sum::<f64>() / count;
    let known = |value: fn(&Figures) -> Option<f64>| {
        let values: Option<Vec<f64>> = all.iter().map(value).collect();
        values.filter(|values| !values.is_empty()).map(|values| values.iter().sum::<f64>() / count)
    };
    Figures {
        delay_mean_ms: of(|one| one.delay_mean_ms),
        delay_p99_ms: of(|one| one.delay_p99_ms),
        delay_max_ms: all.iter().map(|one| one.delay_max_ms).fold(0.0, f64::max),
        bandwidth_bits_s: of(|one| one.bandwidth_bits_s),
        utilisation: known(|one| one.utilisation),
        total_utilisation: known(|one| one.total_utilisation),
        loss: of(|one| one.loss),
        server_cpu: known(|one| one.server_cpu),
        client_cpu: known(|one| one.client_cpu),
        energy_w: known(|one| one.energy_w),
    }
}

#[cfg(test)]
mod tests {
    use super::super::problem::tests::problem;
    use super::super::settings::Security;
    use super::*;

    fn answer(sets: &[&str]) -> Result<Tuned, TuneError> {
        let problem = problem(sets);
        let formulas = Analytic::new(&problem, None);
        tune(&problem, &formulas, &formulas, &mut |_| true)
    }

    #[test]
    fn the_interval_follows_link_and_load() {
        let at = |sets: &[&str]| answer(sets).unwrap().recommended.settings.publishing_ms;
        let usual = at(&[]);
        assert!(at(&["link.rate=5M"]) < usual && at(&["link.rate=10M"]) < at(&["link.rate=5M"]));
        // Close rates can have the same result: the longest interval whose message fits into one packet.
        assert!(at(&["link.rate=1M"]) > usual, "{} {usual}", at(&["link.rate=1M"]));
        assert!(at(&["signals.0.count=50", "link.rate=10M"]) > at(&["link.rate=10M"]));
    }

    #[test]
    fn the_answer_is_the_best_of_a_fine_grid() {
        let given = problem(&[]);
        let formulas = Analytic::new(&given, None);
        let tuned = tune(&given, &formulas, &formulas, &mut |_| true).unwrap();
        let grid: Vec<f64> = (10..=500).map(|half| f64::from(half) / 2.0).collect();
        let figures: Vec<Figures> = grid
            .iter()
            .filter_map(|publishing_ms| {
                formulas.evaluate(&Settings { publishing_ms: *publishing_ms, ..Settings::usual() }, 0).ok()
            })
            .collect();
        let skipped = grid.len() - figures.len();
        let best = knee(&figures, &front(&figures, &given.minimize), &given).unwrap() + skipped;
        // Multiples of the shortest period, 5 ms, are searched. Points that are equally good depend on the points.
        let off = tuned.recommended.settings.publishing_ms - grid[best];
        assert!(off.abs() <= 5.0, "{} {}", tuned.recommended.settings.publishing_ms, grid[best]);
        assert!(
            tuned.points.iter().any(|point| point.on_front) && tuned.evaluations < 60,
            "{}",
            tuned.evaluations
        );
        assert!(tuned.queue_size >= 3, "{}", tuned.queue_size);
        let compared = tuned.alternatives.iter().filter(|one| one.setting == "publishing_ms");
        assert!(compared.clone().count() == 2 && { compared }.all(|one| one.point.on_front), "{tuned:?}");
        assert_eq!(tuned, tune(&given, &formulas, &formulas, &mut |_| true).unwrap());
    }

    #[test]
    fn constraints_move_the_answer_or_are_reported() {
        let tuned = answer(&["tune.constraints=[\"delay_mean_ms <= 12\"]"]).unwrap();
        assert!(tuned.recommended.figures.delay_mean_ms <= 12.0);
        let set = "tune.constraints=[\"delay_mean_ms <= 1\"]";
        let error = answer(&[set]).unwrap_err().to_string();
        let expected = format!("--set {set}: no setting meets delay_mean_ms <= 1: the best of ");
        assert!(error.starts_with(&expected), "{error}");
        let both = "tune.constraints=[\"delay_mean_ms <= 10\", \"utilisation <= 53%\"]";
        let error = answer(&[both]).unwrap_err().to_string();
        assert!(error.contains("at the same time"), "{error}");
        let error = answer(&["tune.constraints=[\"server_cpu <= 10\"]"]).unwrap_err();
        assert_eq!(error, TuneError::Unknown(Metric::ServerCpu));
    }

    #[test]
    fn saturated_links_are_reported() {
        let error = answer(&["link.rate=300k"]).unwrap_err();
        assert!(matches!(&error, TuneError::NoCapacity { .. }), "{error}");
        assert!(error.to_string().starts_with("--set link.rate=300k: the link has no capacity"), "{error}");
        // Of the file: its line.
        let error =
            answer(&["tune.search.publishing_ms=0.1", "signals.0.count=2000"]).unwrap_err().to_string();
        assert!(error.starts_with("p.toml:5: link.profile: the link has no capacity"), "{error}");
    }

    #[test]
    fn formulas_rule_out_many_combinations() {
        let tuned = answer(&[
            "tune.search.security=[\"none\", \"sign\", \"sign-and-encrypt\"]",
            "tune.search.notifications_max=[0, 5, 20, 50]",
            "tune.search.keep_alive_count=[5, 10]",
        ])
        .unwrap();
        assert_eq!(tuned.sorted_out, 2 * 3 * 4 * 2 - KEPT);
        assert_eq!(tuned.recommended.settings.security, Security::None);
        let names: Vec<&str> = tuned.alternatives.iter().map(|one| one.setting).collect();
        assert!(names.contains(&"security") && names.contains(&"publishing_ms"), "{names:?}");
    }

    #[test]
    fn lists_are_not_refined_and_stopping_keeps_results() {
        let tuned = answer(&["tune.search.publishing_ms=[10, 40, 200]"]).unwrap();
        assert!([10.0, 40.0, 200.0].contains(&tuned.recommended.settings.publishing_ms));
        let problem = problem(&[]);
        let formulas = Analytic::new(&problem, None);
        let mut left = 5;
        let mut stop = |_| {
            left -= 1;
            left >= 0
        };
        let tuned = tune(&problem, &formulas, &formulas, &mut stop).unwrap();
        assert_eq!((tuned.evaluations, tuned.alternatives.len()), (5, 0));
        assert_eq!(tune(&problem, &formulas, &formulas, &mut |_| false).unwrap_err(), TuneError::Stopped);
    }
}
