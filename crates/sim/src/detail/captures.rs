//! Captures of links, each in a file of its own.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

use elephan_metrics::Control;
use elephan_scenario::Plan;
use elephan_units::Time;

use crate::detail::pcap::Capture;
use crate::error::Error;
use crate::packet::Packet;

/// The captures of a run.
pub struct Captures {
    /// The captures, by number of the link.
    links: Vec<Option<(PathBuf, Capture<BufWriter<File>>)>>,
    /// The first error in writing a capture.
    failed: Option<Error>,
}

impl Captures {
    /// The captures that the plan requests and for which the control has a file.
    pub fn new(plan: &Plan, control: &dyn Control) -> Result<Self, Error> {
        let begin = |path: PathBuf| {
            let made = File::create(&path).and_then(|file| Capture::new(BufWriter::new(file)));
            made.map_err(|error| Error::Pcap(path.clone(), error)).map(|capture| (path, capture))
        };
        let links = plan.links.iter().map(|link| {
            let path = plan.trace.pcap.contains(&link.name).then(|| control.pcap_file(&link.name)).flatten();
            path.map(begin).transpose()
        });
        Ok(Self { links: links.collect::<Result<_, _>>()?, failed: None })
    }

    /// A packet begins to cross a link.
    pub fn write(&mut self, link: u32, packet: &Packet, now: Time) {
        if let Some((path, capture)) = &mut self.links[link as usize]
            && let Err(error) = capture.write(packet, now)
        {
            self.failed.get_or_insert(Error::Pcap(path.clone(), error));
        }
    }

    /// The first error so far; returned once.
    pub fn check(&mut self) -> Result<(), Error> {
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Completes all files.
    pub fn finish(mut self) -> Result<(), Error> {
        for (path, capture) in self.links.drain(..).flatten() {
            if let Err(error) = capture.finish() {
                self.failed.get_or_insert(Error::Pcap(path, error));
            }
        }
        self.check()
    }
}
