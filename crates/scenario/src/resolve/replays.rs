//! Links that follow a trace.

use std::sync::Arc;

use elephan_net::{Loss, Opportunities, Rates, Schedule};
use elephan_units::{Mistake, Rate, Time};

use super::network::Network;
use crate::file::{EventFile, ReplayFile, Scenario};
use crate::plan::{Replay, ReplayStep};
use crate::replay::{check_end, check_opportunity, check_step};

impl Scenario {
    /// Gives links the schedules of their traces; returns what else changes on them.
    pub(crate) fn replays(&self, network: &mut Network) -> Vec<Replay> {
        let path = self.path.iter().flat_map(|path| {
            [
                ("path".to_owned(), "bottleneck", path.trace.as_ref()),
                ("path.reverse".to_owned(), "bottleneck.reverse", path.reverse.trace.as_ref()),
            ]
        });
        let links = self.link.iter().enumerate();
        let links =
            links.map(|(number, link)| (format!("link.{number}"), link.name.as_str(), link.trace.as_ref()));
        let mut replays = Vec::new();
        for (key, name, file) in path.chain(links) {
            let (Some(file), Some(link)) = (file, network.links.iter().position(|link| link.name == name))
            else {
                continue;
            };
            let made = replay(file, link, network);
            match made {
                Ok(replay) => replays.extend(replay),
                Err(mistake) => network.mistakes.push(mistake.below(&format!("{key}.trace"))),
            }
        }
        replays
    }

    /// Whether a trace says what an event wants to change.
    pub(super) fn check_replayed(&self, event: &EventFile, key: &str, network: &mut Network) {
        let file = match (&self.path, event.link.as_str()) {
            (Some(path), "bottleneck") => path.trace.as_ref(),
            (Some(path), "bottleneck.reverse") => path.reverse.trace.as_ref(),
            (_, name) => self.link.iter().find(|link| link.name == name).and_then(|link| link.trace.as_ref()),
        };
        let Some(file) = file else { return };
        let steps = |has: fn(&crate::file::StepFile) -> bool| file.steps.iter().any(has);
        for (name, both) in [
            (
                "rate",
                event.rate.is_some() && (!file.opportunities.is_empty() || steps(|step| step.rate.is_some())),
            ),
            ("delay", event.delay.is_some() && steps(|step| step.delay.is_some())),
            ("loss", event.loss.is_some() && steps(|step| step.loss.is_some())),
        ] {
            if both {
                let expected = format!("no {name}, since the link has it from its trace");
                network.wrong(format!("{key}.{name}"), expected, "one");
            }
        }
    }
}

/// Gives a link the schedule of its trace; returns what else changes on it.
fn replay(file: &ReplayFile, link: usize, network: &mut Network) -> Result<Option<Replay>, Mistake> {
    let config = &mut network.links[link].config;
    let given = [file.file.is_some(), !file.steps.is_empty(), !file.opportunities.is_empty()];
    if given.iter().filter(|&&given| given).count() != 1 {
        let names = ["file", "steps", "opportunities"];
        let found: Vec<&str> =
            names.iter().zip(given).filter(|(_, given)| *given).map(|(name, _)| *name).collect();
        let found = if found.is_empty() { "none".to_owned() } else { found.join(" and ") };
        return Err(Mistake::new("", "one of file, steps, opportunities", found));
    }
    let has_rate = config.rate.is_some();
    let needs_rate = || {
        let expected = "a trace without rates, or a rate of the link that its buffer refers to";
        if has_rate { Ok(()) } else { Err(Mistake::new("", expected, "rates on a link without one")) }
    };
    if file.steps.is_empty() {
        let millis = &file.opportunities;
        for number in 0..millis.len() {
            let key = format!("opportunities.{number}");
            check_opportunity(millis, number).map_err(|mistake| mistake.below(&key))?;
        }
        check_end(millis).map_err(|mistake| mistake.below("opportunities"))?;
        needs_rate()?;
        let opportunities = Opportunities::new(millis.clone(), file.repeats);
        config.schedule = Some(Schedule::Opportunities(Arc::new(opportunities)));
        return Ok(None);
    }
    for number in 0..file.steps.len() {
        check_step(&file.steps, number).map_err(|mistake| mistake.below(&format!("steps.{number}")))?;
    }
    // The last time is that at which all begins again: what is there holds only if it does not.
    let (last, before) = file.steps.split_last().expect("there are steps");
    let (period, steps) = if file.repeats && !before.is_empty() {
        (Some(last.time), before)
    } else {
        (None, file.steps.as_slice())
    };
    if file.steps.iter().any(|step| step.rate.is_some()) {
        needs_rate()?;
        let mut rate = config.rate.unwrap_or_default();
        let rates: Vec<(Time, Rate)> = steps
            .iter()
            .map(|step| {
                rate = step.rate.unwrap_or(rate);
                (step.time, rate)
            })
            .collect();
        if rates.iter().all(|(_, rate)| rate.bits_per_sec() == 0) {
            return Err(Mistake::new("steps", "a rate above zero in one of them", "none"));
        }
        config.schedule = Some(Schedule::Rates(Arc::new(Rates::new(&rates, period))));
    }
    let has_delay = file.steps.iter().any(|step| step.delay.is_some());
    let has_loss = file.steps.iter().any(|step| step.loss.is_some());
    if has_loss && config.loss.is_some() {
        return Err(Mistake::new("", "losses either of the link or of its trace", "both"));
    }
    // What does not change is left out.
    let (mut delay, mut loss) = (config.delay, 0.0);
    let mut changes = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        let (new_delay, new_loss) = (step.delay.unwrap_or(delay), step.loss.unwrap_or(loss));
        let differs = |has: bool, changed: bool| has && (number == 0 || changed);
        let change = ReplayStep {
            at: step.time,
            delay: differs(has_delay, new_delay != delay).then_some(new_delay),
            loss: differs(has_loss, new_loss.to_bits() != loss.to_bits())
                .then_some(Loss::Random { probability: new_loss }),
        };
        (delay, loss) = (new_delay, new_loss);
        if change.delay.is_some() || change.loss.is_some() {
            changes.push(change);
        }
    }
    let replay = Replay { link: link as u32, steps: changes.into(), period };
    Ok((!replay.steps.is_empty()).then_some(replay))
}
