//! The two ends agree on what is sent: the files are listed, and the receiver says what it has of them.

use std::path::PathBuf;
use std::time::Instant;

use elephan_session::Session;

use super::{IDLE, Sender};
use crate::Error;
use crate::manifest::{Entry, shown};
use crate::protocol::{Compared, Have, Holding, List};
use crate::source::Work;
use crate::store::hash_of;

/// Bytes of names in a message, about.
const LISTED: usize = 256 << 10;

impl Sender<'_> {
    /// Lists the files, and learns which parts of them are to be sent.
    pub(super) fn agree(&self, control: &mut Session) -> Result<Work, Error> {
        let source = self.source.expect("files");
        let mut rest = source.entries.as_slice();
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = |entry: &Entry| {
                bytes += entry.name.len() + 64;
                bytes < LISTED
            };
            let count = rest.iter().map(fits).take_while(|&fits| fits).count().max(1);
            let (part, after) = rest.split_at(count);
            control.send(&List::Entries(part.to_vec()))?;
            rest = after;
        }
        control.send(&List::End)?;
        let mut work = Work::files(&source.entries);
        let (mut others, mut differing) = (Vec::new(), Vec::new());
        loop {
            match control.receive("what the receiver has")? {
                Have::Looking => {}
                Have::Refused(why) => return Err(Error::Told(why)),
                Have::End => break,
                Have::Some(some) => {
                    for (file, holding) in some {
                        match holding {
                            Holding::Whole => work.skip(file),
                            Holding::Blocks(first, bits) => work.has(file, first, &bits),
                            Holding::Other(hash) => others.push((file, hash)),
                            Holding::Differs => differing.push(file),
                        }
                    }
                }
            }
        }
        let mut told = Instant::now();
        for (file, hash) in others {
            // What is wrong is found again when it is read, and told to the receiver.
            let Ok(opened) = source.open(file) else { continue };
            let mut looking = || {
                if told.elapsed() >= IDLE {
                    told = Instant::now();
                    control.send(&Compared::Looking)?;
                }
                Ok(())
            };
            let own = hash_of(opened, &mut looking);
            let name = || PathBuf::from(shown(&source.entries[file as usize].name));
            let own = own.map_err(|error| error.or_else(|error| Error::File(name(), error)))?;
            if own == hash {
                work.skip(file);
                control.send(&Compared::Equal(vec![file]))?;
            } else if !self.options.force {
                differing.push(file);
            }
        }
        if let Some(&first) = differing.first() {
            control.send(&Compared::GivenUp)?;
            let name = shown(&source.entries[first as usize].name);
            let more = match differing.len() {
                1 => String::new(),
                count => format!(" (and {} more)", count - 1),
            };
            return Err(Error::Asked(format!(
                "{name}{more}: expected none in the receiving folder, or an equal file, found another; --force replaces it"
            )));
        }
        control.send(&Compared::Start)?;
        Ok(work)
    }
}
