//! `taktwerk model`: CPU cost models, fitted to measurements.

use super::lab::StoreArgs;
use crate::failure::Failure;
use crate::hosts;
use crate::output::Output;
use crate::overwrite::Overwrite;
use crate::span;
use clap::{Args, Subcommand};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;
use taktwerk_lab::figures;
use taktwerk_lab::measurement::Measurement;
use taktwerk_lab::model::{Candidate, Form, Model, Observation, Origin};
use taktwerk_lab::outcome::wrapped;
use taktwerk_lab::report::date;
use taktwerk_lab::store::{Run, StoreError};
use taktwerk_lab::table::{Align, Table};

/// The subcommand.
#[derive(Debug, Subcommand)]
pub(crate) enum ModelCommand {
    /// Fit a model to a run of `lab calibrate` or `lab reproduce burger-cpu`.
    Fit(FitArgs),
    /// Predict what a load costs.
    Predict(PredictArgs),
}

/// Arguments of `taktwerk model fit`.
#[derive(Debug, Args)]
pub(crate) struct FitArgs {
    /// Name or number of the run. Default: the last complete one of `lab calibrate` or `lab reproduce burger-cpu`.
    #[arg(value_name = "RUN")]
    run: Option<String>,

    /// Write the models to a file, for use on other machines.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    overwrite: Overwrite,

    #[command(flatten)]
    store: StoreArgs,
}

/// Arguments of `taktwerk model predict`.
#[derive(Debug, Args)]
pub(crate) struct PredictArgs {
    /// Monitored items over all clients; all change in every interval.
    #[arg(long, value_name = "N")]
    items: f64,

    /// Clients with one subscription each.
    #[arg(short = 'c', long, value_name = "N", default_value_t = 1.0)]
    clients: f64,

    /// Publishing interval in milliseconds.
    #[arg(short = 'I', long, value_name = "MS", default_value = "1000", value_parser = span::millis)]
    interval: Duration,

    /// Use SignAndEncrypt.
    #[arg(long)]
    encrypted: bool,

    #[command(flatten)]
    source: ModelArgs,
}

/// Where a model comes from.
#[derive(Debug, Args)]
pub(super) struct ModelArgs {
    /// Which stack.
    #[arg(long, value_name = "NAME", default_value = "own")]
    stack: String,

    /// File with models (written by `model fit -o`) instead of a run, or epyc-vm, whose models come with taktwerk.
    #[arg(long, value_name = "FILE", conflicts_with = "run")]
    model: Option<PathBuf>,

    /// Name or number of the run to fit. Default: the last complete one of `lab calibrate` or `lab reproduce
    /// burger-cpu`.
    #[arg(long, value_name = "RUN")]
    run: Option<String>,

    #[command(flatten)]
    store: StoreArgs,
}

/// Runs a command.
pub(crate) fn run(command: &ModelCommand, output: Output) -> Result<(), Failure> {
    match command {
        ModelCommand::Fit(arguments) => fit(arguments, output),
        ModelCommand::Predict(arguments) => predict(arguments, output),
    }
}

/// Fits a model for each stack in the measurements.
pub(crate) fn fit_all(measurements: &[Measurement]) -> Result<Vec<Model>, Failure> {
    let mut stacks: Vec<&str> = Vec::new();
    for measurement in measurements {
        let stack = measurement.condition.stack.as_str();
        if !stacks.contains(&stack) {
            stacks.push(stack);
        }
    }
    let models: Vec<Model> =
        stacks.iter().filter_map(|stack| taktwerk_lab::model::fit(stack, measurements)).collect();
    if models.is_empty() {
        return Err(Failure::Usage(
            "this run has too few valid measurements of subscriptions for a model: run taktwerk lab calibrate --quick"
                .to_owned(),
        ));
    }
    Ok(models)
}

/// The experiments with measurements for models.
const DATA: [&str; 2] = [super::lab::CALIBRATE, "burger-cpu"];

/// The models of a run, and the run.
fn of_run(store: &StoreArgs, wanted: Option<&str>) -> Result<(Vec<Model>, Run), Failure> {
    let store = store.open_to_read()?;
    let run = store.choose_of(wanted, &DATA).map_err(|error| match error {
        StoreError::NoRun { path, .. } if wanted.is_none() => Failure::Usage(format!(
            "{} has no measurements for a model yet. Run `taktwerk lab calibrate --quick` (about two minutes) to measure \
             this machine, or add `--model epyc-vm` to use the models of another machine",
            path.display()
        )),
        other => other.into(),
    })?;
    let mut models = fit_all(&store.measurements(run.id)?)?;
    let text = |pointer: &str| {
        run.fingerprint.pointer(pointer).and_then(serde_json::Value::as_str).unwrap_or_default().to_owned()
    };
    let origin = Origin {
        machine: text("/machine/cpu"),
        version: text("/version"),
        measured: date(run.started_unix_ms),
    };
    models.iter_mut().for_each(|model| model.origin = Some(origin.clone()));
    Ok((models, run))
}

impl ModelArgs {
    /// Whether the user has specified the model.
    pub(super) fn is_named(&self) -> bool {
        self.model.is_some() || self.run.is_some()
    }

    /// The stack's model, from the file or from the run.
    pub(super) fn load(&self) -> Result<Model, Failure> {
        match &self.model {
            None => self.choose(of_run(&self.store, self.run.as_deref())?.0),
            Some(path) => self.read(Path::new(""), path),
        }
    }

    /// The stack's model from a file (from `model fit -o`).
    pub(super) fn read(&self, directory: &Path, path: &Path) -> Result<Model, Failure> {
        self.choose(hosts::models(directory, path)?)
    }

    fn choose(&self, mut models: Vec<Model>) -> Result<Model, Failure> {
        let Some(at) = models.iter().position(|model| model.stack == self.stack) else {
            let known: Vec<&str> = models.iter().map(|model| model.stack.as_str()).collect();
            return Err(Failure::Usage(format!(
                "there is no model of {:?}; available: {}",
                self.stack,
                known.join(", ")
            )));
        };
        Ok(models.swap_remove(at))
    }
}

fn fit(arguments: &FitArgs, output: Output) -> Result<(), Failure> {
    arguments.output.as_deref().map_or(Ok(()), |path| arguments.overwrite.check(path))?;
    let (models, run) = of_run(&arguments.store, arguments.run.as_deref())?;
    if let Some(path) = &arguments.output {
        let text = serde_json::to_string_pretty(&models).unwrap_or_default();
        super::lab::write_whole(path, &text)?;
    }
    if !output.is_json() {
        output
            .text(&format!("fitted to run {} ({}, {} measurements)", run.id, run.name, run.measurements))?;
    }
    print(&models, output)?;
    match &arguments.output {
        Some(path) if !output.is_json() => output.text(&format!("\nwritten to {}", path.display())),
        _ => Ok(()),
    }
}

/// Prints models: all forms, the selected one first.
pub(crate) fn print(models: &[Model], output: Output) -> Result<(), Failure> {
    if output.is_json() {
        return output.document(&json!(models));
    }
    models.iter().try_for_each(|model| output.text(&format!("\n{}", text(model))))
}

fn text(model: &Model) -> String {
    let [least_clients, most_clients] = [model.clients.0, model.clients.1].map(figures::count);
    let [least, most] = [model.signals_per_s.0, model.signals_per_s.1].map(figures::number);
    let mut text = wrapped(
        &format!("{}: ", model.name()),
        &format!(
            "{} measurements, {least_clients} to {most_clients} clients, {least} to {most} signals/s, {} encryption",
            model.observations,
            if model.encrypted { "with and without" } else { "without" },
        ),
    );
    let mut table = Table::new(&[
        ("form", Align::Left),
        ("median error", Align::Right),
        ("R²", Align::Right),
        ("", Align::Left),
    ]);
    for (at, candidate) in model.candidates.iter().enumerate() {
        table.row([
            candidate.fit.form.to_string(),
            format!("{} %", figures::number(candidate.error * 100.0)),
            format!("{:.4}", candidate.fit.r2),
            if at == 0 { "used".to_owned() } else { String::new() },
        ]);
    }
    text.push_str(&format!("\n{table}\nweights, CPU of one core:\n"));
    for Candidate { fit, .. } in &model.candidates {
        let prices = fit.form.terms().iter().zip(&fit.weights).filter(|(_, weight)| **weight != 0.0);
        let prices: Vec<String> = prices.map(|(term, weight)| Form::price(term, *weight)).collect();
        text.push_str(&wrapped(&format!("  {:<17}", fit.form.to_string()), &prices.join(" + ")));
    }
    if let [rest, item, client] = model.memory[..] {
        let [rest, item, client] = [rest, item, client].map(figures::bytes);
        text.push_str(&wrapped(
            &format!("  {:<17}", "memory"),
            &format!("{rest} at rest + {item} per item + {client} per client"),
        ));
    }
    if let [signal, message] = model.wire[..] {
        let [signal, message] = [signal, message].map(figures::bytes);
        text.push_str(&wrapped(
            &format!("  {:<17}", "wire"),
            &format!("{signal} per signal + {message} per message"),
        ));
    }
    let (low, high) = model.ratio90;
    let [low, high] = [low, high].map(figures::number);
    text.push('\n');
    text.push_str(&wrapped(
        "",
        &format!(
            "Nine of ten measurements are between {low} and {high} times the prediction of '{}' without them \
             (tenfold cross-validation).",
            model.fit.form
        ),
    ));
    text.truncate(text.trim_end().len());
    text
}

fn predict(arguments: &PredictArgs, output: Output) -> Result<(), Failure> {
    let model = arguments.source.load()?;
    let interval = arguments.interval.as_secs_f64() * 1e3;
    let is_load = arguments.items >= 0.0 && arguments.clients > 0.0 && interval > 0.0;
    if !(is_load && arguments.items.is_finite() && arguments.clients.is_finite()) {
        return Err(Failure::Usage(
            "give --items a number from 0 on, and -c and -I numbers greater than zero".to_owned(),
        ));
    }
    let load = Observation::planned(arguments.items, arguments.clients, interval, arguments.encrypted);
    let prediction = model.predict(&load);
    let outside = model.outside(&load);
    let (memory, wire) = (model.memory(arguments.items, arguments.clients), model.wire(&load));
    if output.is_json() {
        return output.document(&json!({"stack": model.stack, "load": {
            "items": arguments.items, "clients": arguments.clients, "publishing_ms": interval,
            "encrypted": arguments.encrypted, "signals_per_s": load.signals_per_s,
            "messages_per_s": load.messages_per_s,
        }, "prediction": prediction, "outside": outside, "memory_bytes": memory, "wire_bytes_per_s": wire,
        "memory_ratio90": model.memory_ratio90, "wire_ratio90": model.wire_ratio90,
        "form": model.fit.form}));
    }
    let (low, high) = prediction.interval90;
    let [signals, messages] = [load.signals_per_s, load.messages_per_s].map(figures::number);
    let [cpu, low, high] = [prediction.cpu_percent, low, high].map(figures::number);
    output
        .text(&format!("{signals} signals/s in {messages} messages/s, by the model of {}", model.name()))?;
    output.text(&format!("CPU     {cpu} % of one core, nine of ten between {low} and {high} %"))?;
    let between = |value: f64, (low, high): (f64, f64)| {
        format!("nine of ten between {} and {}", figures::number(value * low), figures::number(value * high))
    };
    if let Some(bytes) = memory {
        let megabytes = bytes / 1e6;
        let interval = between(megabytes, model.memory_ratio90);
        output.text(&format!("memory  {} MB, {interval} MB", figures::number(megabytes)))?;
    }
    if let Some(bytes) = wire {
        let megabits = bytes * 8.0 / 1e6;
        let interval = between(megabits, model.wire_ratio90);
        output.text(&format!("wire    {} Mbit/s, {interval} Mbit/s", figures::number(megabits)))?;
    }
    if outside.is_empty() {
        return Ok(());
    }
    let said = format!("outside the measured range, so the interval is too narrow: {}", outside.join("; "));
    output.text(wrapped("note    ", &said).trim_end())
}
