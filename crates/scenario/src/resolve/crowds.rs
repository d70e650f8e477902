//! The crowds of short flows.

use elephan_traffic::{Arrivals, Demand, Distribution, Drawn, Sessions, Sizes, Vector, Web};
use elephan_units::{Bytes, Rate, Time};

use super::network::Network;
use super::topology::Topology;
use crate::cvec;
use crate::error::Mistake;
use crate::file::{ArrivalsFile, CrowdFile, Scenario, SessionsFile, SizesFile, VectorsFile};
use crate::plan::{Crowd, Flow, FlowTable, Members};
use crate::start::StartFile;

impl Scenario {
    /// Every crowd of the plan.
    pub(crate) fn crowds(&self, topology: &mut Topology<'_>, network: &mut Network) -> Vec<Crowd> {
        let mut crowds: Vec<Crowd> = Vec::new();
        for (key, file) in self.crowd_files() {
            let first = crowds.len() as u64;
            let name = |n: u64| format!("crowd {}", first + n);
            let common = file.common();
            let placed = topology.place(&common.place, common.count, &key, name, network);
            let (cc, slow_start, tcp) = file.sender();
            let tcp = self.stack(cc, tcp, &key, network);
            network.mistakes.extend(slow_start.refused_by(cc).map(|mistake| mistake.below(&key)));
            let start = start(file, &key, network);
            let start = self.start(start, common.stop, &key, network);
            let members = members(file, &key, network);
            let (Some((rtt, routes)), Some(tcp), Some(members)) = (placed, tcp, members) else { continue };
            let table = FlowTable {
                label: common.label.unwrap_or(file.kind()).to_owned(),
                cc: cc.0.clone(),
                slow_start: slow_start.of(cc, &tcp),
                tcp,
                rtt,
                start,
                stop: common.stop,
                demand: Demand::Drawn,
                host: None,
                dscp: common.dscp,
            };
            crowds.extend(Flow::on(&routes, table).map(|flow| Crowd { flow, members: members.clone() }));
        }
        crowds
    }
}

fn members(crowd: CrowdFile<'_>, key: &str, network: &mut Network) -> Option<Members> {
    let below = |name: &str| format!("{key}.{name}");
    match crowd {
        CrowdFile::Web(file) => {
            let think = network.note(file.think.distribution(&below("think"), true));
            let objects = network.note(file.objects.distribution(&below("objects"), false));
            let between = network.note(file.between.distribution(&below("between"), true));
            let size = network.note(file.size.distribution(&below("size"), false));
            let web = Web { think: think?, objects: objects?, between: between?, size: size? };
            Some(Members::Users(file.users, web))
        }
        CrowdFile::Arrivals(file) => {
            let sizes = network.note(sizes_of(&file.size, &below("size")))?;
            let per_second = network.note(per_second(file, &sizes, key))?;
            Some(Members::Arrivals(Arrivals { per_second, sizes }))
        }
        CrowdFile::Sessions(file) => match &file.vectors {
            Some(vectors) => network.note(listed(file, vectors, key)).map(Members::Sessions),
            None => drawn(file, key, network).map(|drawn| Members::Sessions(Sessions::Drawn(drawn))),
        },
    }
}

fn start(crowd: CrowdFile<'_>, key: &str, network: &mut Network) -> StartFile {
    match crowd {
        CrowdFile::Arrivals(file) => file.start,
        CrowdFile::Sessions(file) => file.start,
        CrowdFile::Web(file) => file.start.unwrap_or_else(|| {
            let mean = file.think.distribution(key, true).map_or(0.0, |think| think.mean());
            if mean.is_infinite() {
                let expected = "a start, because time to think has no mean within which users could start";
                network.wrong(format!("{key}.start"), expected, "nothing");
                return StartFile::default();
            }
            StartFile::Uniform(Time::ZERO, Time::from_secs_f64(mean))
        }),
    }
}

/// The most bins that are shuffled.
const MOST_BINS: f64 = 1e6;
/// The most requests of a session, on average, so that few draws reach [`Drawn::MOST_EPOCHS`].
const MOST_MEAN_EPOCHS: f64 = 1e4;

/// Sessions from connection vectors, with their starts as `load` and `shuffle` have them.
fn listed(file: &SessionsFile, vectors: &VectorsFile, key: &str) -> Result<Sessions, Mistake> {
    let below = |name: &str| format!("{key}.{name}");
    let given = [
        ("per_second", file.per_second.is_some()),
        ("epochs", file.epochs.is_some()),
        ("request", file.request.is_some()),
        ("response", file.response.is_some()),
        ("think", file.think.is_some()),
        ("serve", file.serve.is_some()),
    ];
    if let Some((name, _)) = given.into_iter().find(|(_, given)| *given) {
        return Err(Mistake::new(below(name), format_args!("no {name} beside vectors"), "one"));
    }
    if file.shuffle.is_some_and(|bin| bin == Time::ZERO) {
        return Err(Mistake::new(below("shuffle"), "a time above zero", "\"0 s\""));
    }
    let mut vectors = cvec::vectors(vectors.lines.iter().map(String::as_str), |number| number.to_string())
        .map_err(|mistake| mistake.below(&below("vectors.lines")))?;
    if let Some(load) = file.load {
        scale(&mut vectors, load).map_err(|mistake| mistake.below(&below("load")))?;
    }
    if let Some(bin) = file.shuffle
        && last_start_s(&vectors) / bin.secs_f64() > MOST_BINS
    {
        let least = last_start_s(&vectors) / MOST_BINS;
        let expected = format!("{least} s or more, with which there are at most a million bins");
        return Err(Mistake::new(below("shuffle"), expected, format_args!("\"{bin}\"")));
    }
    Ok(Sessions::Listed { vectors: vectors.into(), bin: file.shuffle })
}

/// When the last of vectors starts, which are in order of their starts, in s.
fn last_start_s(vectors: &[Vector]) -> f64 {
    vectors.last().map_or(0.0, |vector| vector.start.secs_f64())
}

/// Scales the starts of vectors so that from the first to the last the busier direction is offered `load`
/// (draft-irtf-iccrg-tcpeval-01, section 2.3.1).
fn scale(vectors: &mut [Vector], load: Rate) -> Result<(), Mistake> {
    let totals = vectors.iter().map(Vector::bytes).fold([0.0; 2], |sums: [f64; 2], [sent, received]| {
        [sums[0] + sent as f64, sums[1] + received as f64]
    });
    let last = last_start_s(vectors);
    let seconds = totals[0].max(totals[1]) * 8.0 / load.bits_per_sec() as f64;
    if !(last > 0.0 && seconds > 0.0 && seconds < 1e7) {
        let expected = "a rate above zero, and vectors that start at more than one time";
        return Err(Mistake::new("", expected, format_args!("\"{load}\", and {last} s until the last")));
    }
    for vector in vectors {
        vector.start = vector.start.mul_f64(seconds / last);
    }
    Ok(())
}

fn drawn(file: &SessionsFile, key: &str, network: &mut Network) -> Option<Drawn> {
    let below = |name: &str| format!("{key}.{name}");
    if file.shuffle.is_some() {
        network.wrong(
            below("shuffle"),
            "no shuffle without vectors, since a Poisson process is stationary",
            "one",
        );
    }
    for (name, given) in [
        ("epochs", file.epochs.is_some()),
        ("request", file.request.is_some()),
        ("response", file.response.is_some()),
        ("think", file.think.is_some()),
    ] {
        if !given {
            network.wrong(below(name), "a value, or vectors", "neither");
        }
    }
    let epochs = network.note(file.epochs.as_ref()?.distribution(&below("epochs"), false));
    let request = network.note(file.request.as_ref()?.distribution(&below("request"), false));
    let response = network.note(file.response.as_ref()?.distribution(&below("response"), false));
    let think = network.note(file.think.as_ref()?.distribution(&below("think"), true));
    let serve = file
        .serve
        .as_ref()
        .map_or(Ok(Distribution::Constant(0.0)), |serve| serve.distribution(&below("serve"), true));
    let (epochs, request, response) = (epochs?, request?, response?);
    if let Distribution::Pareto { shape, .. } = epochs
        && shape <= 1.0
    {
        network.wrong(below("epochs.pareto.shape"), "a shape above 1, with which there is a mean", shape);
        return None;
    }
    if epochs.mean() > MOST_MEAN_EPOCHS {
        network.wrong(below("epochs"), format_args!("a mean of {MOST_MEAN_EPOCHS} at most"), epochs.mean());
        return None;
    }
    let serve = network.note(serve);
    let mut drawn = Drawn { per_second: 0.0, epochs, request, response, think: think?, serve: serve? };
    let larger = if request.mean().is_infinite() { ("request", request) } else { ("response", response) };
    drawn.per_second = network.note(rate(file.per_second, file.load, drawn.mean_bytes(), larger, key))?;
    Some(drawn)
}

fn per_second(file: &ArrivalsFile, sizes: &Sizes, key: &str) -> Result<f64, Mistake> {
    let size = match sizes {
        Sizes::Drawn(size) => *size,
        Sizes::Listed(_) => Distribution::Constant(sizes.mean()),
    };
    rate(file.per_second, file.load, sizes.mean(), ("size", size), key)
}

/// How many arrive in a second, if each brings `mean` bytes, of which those at `name` are the most.
fn rate(
    per_second: Option<f64>,
    load: Option<Rate>,
    mean: f64,
    (name, size): (&str, Distribution),
    key: &str,
) -> Result<f64, Mistake> {
    let below = |name: &str| format!("{key}.{name}");
    match (per_second, load) {
        (Some(rate), None) if rate > 0.0 && rate <= 1e9 => Ok(rate),
        (Some(rate), None) => Err(Mistake::new(below("per_second"), "a number above 0, up to 1e9", rate)),
        (None, Some(load)) if load.bits_per_sec() == 0 => {
            Err(Mistake::new(below("load"), "a rate above zero", "\"0 bit/s\""))
        }
        (None, Some(_)) if mean.is_infinite() => {
            let expected = "sizes that have a mean, because load asks for it: a Pareto shape above 1";
            let shape = if let Distribution::Pareto { shape, .. } = size { shape } else { f64::NAN };
            Err(Mistake::new(below(&format!("{name}.pareto.shape")), expected, shape))
        }
        (None, Some(load)) => Ok(load.bits_per_sec() as f64 / 8.0 / mean),
        (Some(_), Some(_)) => Err(Mistake::new(key, "either per_second or load", "both")),
        (None, None) => Err(Mistake::new(key, "either per_second or load", "neither")),
    }
}

/// Sizes of flows or chunks, at `key`.
pub(super) fn sizes_of(file: &SizesFile, key: &str) -> Result<Sizes, Mistake> {
    match file {
        SizesFile::Drawn(drawn) => drawn.distribution(key, false).map(Sizes::Drawn),
        SizesFile::List(list) if list.is_empty() || list.contains(&Bytes::ZERO) => {
            Err(Mistake::new(format!("{key}.list"), "one or more sizes above zero", "none, or \"0 B\""))
        }
        SizesFile::List(list) => Ok(Sizes::Listed(list.iter().map(|size| size.get()).collect())),
    }
}
