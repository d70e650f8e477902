//! The crowds of short flows.

use elephan_traffic::{Arrivals, Demand, Distribution, Sizes, Web};
use elephan_units::{Bytes, Time};

use super::network::Network;
use super::topology::Topology;
use crate::error::Mistake;
use crate::file::{ArrivalsFile, CrowdFile, Scenario, SizesFile};
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
            if let Some(expected) = slow_start.refused_by(cc) {
                network.wrong(format!("{key}.slow_start"), expected, format!("\"{}\"", slow_start.0.name));
            }
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
    }
}

fn start(crowd: CrowdFile<'_>, key: &str, network: &mut Network) -> StartFile {
    match crowd {
        CrowdFile::Arrivals(file) => file.start,
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

fn per_second(file: &ArrivalsFile, sizes: &Sizes, key: &str) -> Result<f64, Mistake> {
    let below = |name: &str| format!("{key}.{name}");
    match (file.per_second, file.load) {
        (Some(rate), None) if rate > 0.0 && rate <= 1e9 => Ok(rate),
        (Some(rate), None) => Err(Mistake::new(below("per_second"), "a number above 0, up to 1e9", rate)),
        (None, Some(load)) if load.bits_per_sec() == 0 => {
            Err(Mistake::new(below("load"), "a rate above zero", "\"0 bit/s\""))
        }
        (None, Some(_)) if sizes.mean().is_infinite() => {
            let expected = "sizes that have a mean, because load asks for it: a Pareto shape above 1";
            let shape = match sizes {
                Sizes::Drawn(Distribution::Pareto { shape, .. }) => *shape,
                _ => f64::NAN,
            };
            Err(Mistake::new(below("size.pareto.shape"), expected, shape))
        }
        (None, Some(load)) => Ok(load.bits_per_sec() as f64 / 8.0 / sizes.mean()),
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
