//! `taktwerk model`: what a load will cost, learnt from what loads have cost.

use super::lab::StoreArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::span;
use clap::{Args, Subcommand};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;
use taktwerk_lab::figures;
use taktwerk_lab::measurement::Measurement;
use taktwerk_lab::model::{Model, Observation};
use taktwerk_lab::table::{Align, Table};

/// What can be done with a model.
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
    /// Name or number of the run; the last complete one by default.
    #[arg(value_name = "RUN")]
    run: Option<String>,

    /// Write the models to a file, for machines that have no results of their own.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    store: StoreArgs,
}

/// Arguments of `taktwerk model predict`.
#[derive(Debug, Args)]
pub(crate) struct PredictArgs {
    /// Monitored items over all clients, all of which change in every interval.
    #[arg(long, value_name = "N")]
    items: f64,

    /// Clients with one subscription each.
    #[arg(short = 'c', long, value_name = "N", default_value_t = 1.0)]
    clients: f64,

    /// Publishing interval in milliseconds.
    #[arg(short = 'I', long, value_name = "MS", default_value = "1000", value_parser = span::millis)]
    interval: Duration,

    /// With SignAndEncrypt.
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

    /// Models that `model fit -o` wrote, of this machine or of another one, instead of a run.
    #[arg(long, value_name = "FILE", conflicts_with = "run")]
    model: Option<PathBuf>,

    /// Name or number of the run to learn from; the last complete one by default.
    #[arg(long, value_name = "RUN")]
    run: Option<String>,

    #[command(flatten)]
    store: StoreArgs,
}

/// Runs one of them.
pub(crate) fn run(command: &ModelCommand, output: Output) -> Result<(), Failure> {
    match command {
        ModelCommand::Fit(arguments) => fit(arguments, output),
        ModelCommand::Predict(arguments) => predict(arguments, output),
    }
}

/// A model for each stack in the measurements.
pub(crate) fn fit_all(measurements: &[Measurement]) -> Result<Vec<Model>, Failure> {
    let mut stacks: Vec<&str> = Vec::new();
    for measurement in measurements {
        let stack = measurement.condition.stack.as_str();
        if !stacks.contains(&stack) {
            stacks.push(stack);
        }
    }
    let models: Vec<Model> = stacks.iter().filter_map(|stack| Model::of(stack, measurements)).collect();
    if models.is_empty() {
        return Err(Failure::Usage(
            "this run has too few valid measurements of subscriptions for a model: run taktwerk lab calibrate --quick"
                .to_owned(),
        ));
    }
    Ok(models)
}

fn of_run(store: &StoreArgs, wanted: Option<&str>) -> Result<Vec<Model>, Failure> {
    let store = store.open()?;
    let run = store.choose(wanted)?;
    fit_all(&store.measurements(run.id)?)
}

impl ModelArgs {
    /// The stack's model, from the file or else from the run.
    pub(super) fn load(&self) -> Result<Model, Failure> {
        match &self.model {
            None => self.choose(of_run(&self.store, self.run.as_deref())?),
            Some(path) => self.read(path),
        }
    }

    /// The stack's model from a file that `model fit -o` wrote.
    pub(super) fn read(&self, path: &Path) -> Result<Model, Failure> {
        let wrong = |error: &dyn std::fmt::Display| {
            Failure::Usage(format!("{} is no file of models: {error}", path.display()))
        };
        let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
        self.choose(serde_json::from_str(&text).map_err(|error| wrong(&error))?)
    }

    fn choose(&self, mut models: Vec<Model>) -> Result<Model, Failure> {
        let Some(at) = models.iter().position(|model| model.stack == self.stack) else {
            let known: Vec<&str> = models.iter().map(|model| model.stack.as_str()).collect();
            return Err(Failure::Usage(format!(
                "there is no model of {:?}, only of {}",
                self.stack,
                known.join(", ")
            )));
        };
        Ok(models.swap_remove(at))
    }
}

fn fit(arguments: &FitArgs, output: Output) -> Result<(), Failure> {
    let models = of_run(&arguments.store, arguments.run.as_deref())?;
    if let Some(path) = &arguments.output {
        let text = serde_json::to_string_pretty(&models).unwrap_or_default();
        super::lab::write_whole(path, &text)?;
    }
    print(&models, output)
}

/// Prints models: all forms, the best first.
pub(crate) fn print(models: &[Model], output: Output) -> Result<(), Failure> {
    if output.is_json() {
        return output.document(&json!(models));
    }
    for model in models {
        let mut table = Table::new(&[
            ("form", Align::Left),
            ("median error", Align::Right),
            ("R²", Align::Right),
            ("CPU % of one core", Align::Left),
        ]);
        for candidate in &model.candidates {
            let fit = &candidate.fit;
            let terms = fit.form.terms().iter().zip(&fit.weights).filter(|(_, weight)| **weight != 0.0);
            let terms: Vec<String> = terms.map(|(term, weight)| format!("{weight:.2e}·{term}")).collect();
            table.row([
                fit.form.to_string(),
                format!("{} %", figures::number(candidate.error * 100.0)),
                format!("{:.4}", fit.r2),
                terms.join(" + "),
            ]);
        }
        let (low, high) = model.ratio90;
        output.text(&format!(
            "{}: {} measurements, {} to {} clients, {} to {} signals/s\n\n{table}\nthe first is used; nine of ten \
             measurements lie between {} and {} of its prediction (cross-validation)",
            model.stack,
            model.observations,
            model.clients.0,
            model.clients.1,
            figures::number(model.signals_per_s.0),
            figures::number(model.signals_per_s.1),
            figures::number(low),
            figures::number(high),
        ))?;
    }
    Ok(())
}

fn predict(arguments: &PredictArgs, output: Output) -> Result<(), Failure> {
    let model = arguments.source.load()?;
    let interval = arguments.interval.as_secs_f64() * 1e3;
    if !(arguments.items >= 0.0 && arguments.clients > 0.0 && interval > 0.0) {
        return Err(Failure::Usage("give --items, -c and -I greater than zero".to_owned()));
    }
    let load = Observation::planned(arguments.items, arguments.clients, interval, arguments.encrypted);
    let prediction = model.predict(&load);
    if output.is_json() {
        return output.document(&json!({"stack": model.stack, "load": {
            "items": arguments.items, "clients": arguments.clients, "publishing_ms": interval,
            "encrypted": arguments.encrypted, "signals_per_s": load.signals_per_s,
            "messages_per_s": load.messages_per_s,
        }, "prediction": prediction, "form": model.fit.form}));
    }
    let (low, high) = prediction.interval90;
    output.text(&format!(
        "{} signals/s in {} messages/s: {} % of one core, 90 % interval {} to {} %",
        figures::number(load.signals_per_s),
        figures::number(load.messages_per_s),
        figures::number(prediction.cpu_percent),
        figures::number(low),
        figures::number(high)
    ))?;
    if prediction.extrapolated {
        output.text(
            "outside of what was measured: the interval promises too much (measure it with lab calibrate)",
        )?;
    }
    Ok(())
}
