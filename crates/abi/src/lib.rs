//! The kernel's algorithms, compiled for the host; and algorithms from outside ([`foreign`]).
//!
//! `kernel/*.bpf.c` are the sources of the eBPF programs that `elephan kernel load` loads into a running
//! kernel. The same files are compiled here by the host's C compiler. So tests compare their integer
//! arithmetic with the floating point of `elephan-cc`, and the simulator runs them as `cc =
//! "kernel:scalable"`.

#![allow(unsafe_code, reason = "C is called: the safety of each call is stated there")]

pub mod foreign;
pub mod linux;
pub mod registered;
mod table;
#[cfg(test)]
mod tests;

use elephan_cc::registry::{self, AnyAlgorithm};
use elephan_units::Mistake;
use elephan_units::entry::{Parameter, Range, Value};

use crate::foreign::Object;
use crate::table::{Row, Table};

/// The prefix of a name in a scenario that selects the kernel's arithmetic in the simulator.
pub const PREFIX: &str = "kernel:";

/// A file of `kernel/`: its name and its text.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// The name of the file.
    pub name: &'static str,
    /// Its content.
    pub text: &'static str,
}

/// An algorithm that the kernel can load.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Its name in this crate, with [`PREFIX`].
    pub name: &'static str,
    /// Its name in the registry of `elephan-cc`.
    pub cc: &'static str,
    /// Its parameters: those of `elephan-cc`, except for `form`, because it has the published rule.
    pub parameters: fn() -> Vec<Parameter>,
    /// The file of `kernel/` that contains it.
    pub source: &'static str,
    /// The name under which it registers with the kernel.
    pub registered: &'static str,
    /// The address of its `struct elephan_cc`.
    algorithm: fn() -> usize,
    table: Table,
}

macro_rules! algorithms {
    ($( $cc:literal $file:ident $algorithm:ident $table:ident; )+) => {
        unsafe extern "C" {
            $( static $algorithm: u8; static $table: Row; )+
        }

        /// Every algorithm of `kernel/`.
        pub static ALL: &[Entry] = &[ $( Entry {
            name: concat!("kernel:", $cc),
            cc: $cc,
            parameters: || parameters($cc),
            source: concat!(stringify!($file), ".bpf.c"),
            registered: concat!("el_", stringify!($file)),
            algorithm: || (&raw const $algorithm).expose_provenance(),
            table: Table(&raw const $table),
        }, )+ ];

        /// The sources, for the loader.
        pub const SOURCES: &[Source] = &[
            Source { name: "elephan.h", text: include_str!("../sources/elephan.h") },
            Source { name: "hstcp.h", text: include_str!("../sources/hstcp.h") },
            Source { name: "logarithm.h", text: include_str!("../sources/logarithm.h") },
            Source { name: "round.h", text: include_str!("../sources/round.h") },
            $( Source {
                name: concat!(stringify!($file), ".bpf.c"),
                text: include_str!(concat!("../sources/", stringify!($file), ".bpf.c")),
            }, )+
        ];
    };
}

/// The files that are added to the source of a kernel that runs as a process, besides [`SOURCES`]: the driver.
pub const GUEST: &[Source] = include!(concat!(env!("OUT_DIR"), "/guest.rs"));

algorithms! {
    "reno" reno el_reno_cc el_reno_parameters;
    "hstcp" hstcp el_hstcp_cc el_hstcp_parameters;
    "hstcp-fc" hstcp_fc el_hstcp_fc_cc el_hstcp_fc_parameters;
    "scalable" scalable el_scalable_cc el_scalable_parameters;
    "htcp" htcp el_htcp_cc el_htcp_parameters;
    "bic" bic el_bic_cc el_bic_parameters;
    "fast" fast el_fast_cc el_fast_parameters;
    "ltcp" ltcp el_ltcp_cc el_ltcp_parameters;
    "westwood" westwood el_westwood_cc el_westwood_parameters;
    "veno" veno el_veno_cc el_veno_parameters;
    "illinois" illinois el_illinois_cc el_illinois_parameters;
    "yeah" yeah el_yeah_cc el_yeah_parameters;
    "compound" compound el_compound_cc el_compound_parameters;
    "dctcp" dctcp el_dctcp_cc el_dctcp_parameters;
}

/// The parameter of `elephan-cc` that selects whose computation of a rule is used.
const FORM: &str = "form";

/// The parameters of the published rule of this name.
fn parameters(cc: &str) -> Vec<Parameter> {
    let entry = registry::find(cc).expect("every algorithm of kernel/ is one of elephan-cc");
    (entry.parameters)().into_iter().filter(|parameter| parameter.name != FORM).collect()
}

/// The algorithm of that name, with [`PREFIX`] or without.
pub fn find(name: &str) -> Option<&'static Entry> {
    let name = name.strip_prefix(PREFIX).unwrap_or(name);
    ALL.iter().find(|entry| entry.cc == name)
}

impl Entry {
    /// Its description in `elephan-cc`: title, source and parameters.
    pub fn described(&self) -> &'static registry::Entry {
        registry::find(self.cc).expect("every algorithm of kernel/ is one of elephan-cc")
    }

    /// An instance with its published parameters, except for those in `settings`, for the simulator.
    pub fn build(&self, settings: &[(&str, Value)]) -> Result<AnyAlgorithm, Mistake> {
        let values = self.values(settings)?;
        let number = |(value, row): (u64, &Row)| value as f64 * libm::exp2(-(row.bits as f64));
        let numbers: Vec<f64> = values.into_iter().zip(self.table.rows()).map(number).collect();
        // SAFETY: the table of bpf.c, which never changes.
        let object = unsafe { Object::at((self.algorithm)()) }?;
        Ok(object.build(&numbers))
    }

    /// The values of its table in fixed point, in the table's order, with these settings.
    pub fn values(&self, settings: &[(&str, Value)]) -> Result<Vec<u64>, Mistake> {
        // The kernel refuses the settings that elephan-cc refuses.
        self.described().build(settings)?;
        if settings.contains(&(FORM, Value::Word("linux"))) {
            let expected = "\"published\", which the file of kernel/ has (linux:NAME is Linux's own)";
            return Err(Mistake::new(FORM, expected, "\"linux\""));
        }
        let parameters = (self.parameters)();
        let value = |row: &Row| {
            let name = row.name();
            let setting = settings.iter().rev().find(|(set, _)| *set == name);
            setting.map_or(row.value, |(_, value)| fixed(*value, row.bits, &parameters, name))
        };
        Ok(self.table.rows().iter().map(value).collect())
    }
}

/// A value in fixed point. A word is given by its number, and infinity by the largest value.
fn fixed(value: Value, bits: u64, parameters: &[Parameter], name: &str) -> u64 {
    match value {
        Value::Number(number) => libm::floor(number * libm::exp2(bits as f64) + 0.5) as u64,
        Value::Flag(flag) => u64::from(flag),
        Value::Word(word) => parameters
            .iter()
            .find(|parameter| parameter.name == name)
            .and_then(|parameter| match parameter.range {
                Range::Word(words) => words.iter().position(|known| *known == word),
                _ => None,
            })
            .expect("elephan-cc knows the word") as u64,
    }
}
