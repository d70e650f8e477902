//! The scenario parser is given text that was damaged: it never panics, what it refuses it refuses in lines that name the file, and what
//! it accepts stays the same when it is written and read again. `make fuzz` draws other damage, for longer.

use std::sync::LazyLock;

use bolero::{TypeGenerator, check};
use elephan_net::Loss;
use elephan_scenario::Scenario;
use proptest::prelude::*;

use crate::drawn::drawn;
use crate::{project_scenarios, speaks_of_rust};

/// What a careless or an evil hand does to a text.
#[derive(Clone, Debug, TypeGenerator)]
enum Damage {
    Byte { at: u16, to: u8 },
    Insert { at: u16, word: u8 },
    Remove { at: u16, count: u8 },
    Double { at: u16, count: u8 },
    Swap { at: u16, with: u16 },
}

const WORDS: [&str; 30] = [
    "[",
    "]",
    "{",
    "}",
    "\"",
    "'",
    "=",
    ".",
    ",",
    "\n",
    "#",
    "-1",
    "1e999",
    "nan",
    "inf",
    "18446744073709551616",
    "0 s",
    "1e400 s",
    "0 bit/s",
    "9999999999999 Tbit/s",
    "% bdp",
    "[[flow]]\n",
    "[path]\n",
    "\\u0000",
    "\u{feff}",
    "\u{1b}[31m",
    "true",
    "[[[[[[[[",
    "{ name = \"red\" }",
    "\"\"\"",
];

/// Every scenario of the project.
static TEXTS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let texts: Vec<_> = project_scenarios()
        .iter()
        .map(|file| std::fs::read_to_string(file).expect("a scenario is text"))
        .collect();
    assert!(!texts.is_empty());
    texts
});

fn damage(text: &str, all: &[Damage]) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for damage in all {
        let length = bytes.len();
        if length == 0 {
            break;
        }
        let place = |at: u16| usize::from(at) % length;
        match *damage {
            Damage::Byte { at, to } => bytes[place(at)] = to,
            Damage::Insert { at, word } => {
                let word = WORDS[usize::from(word) % WORDS.len()].bytes();
                bytes.splice(place(at)..place(at), word);
            }
            Damage::Remove { at, count } => {
                let from = place(at);
                bytes.drain(from..(from + usize::from(count)).min(length));
            }
            Damage::Double { at, count } => {
                let from = place(at);
                let part = bytes[from..(from + usize::from(count)).min(length)].to_vec();
                bytes.splice(from..from, part);
            }
            Damage::Swap { at, with } => bytes.swap(place(at), place(with)),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A damaged scenario of the project is refused or stays what it is.
fn survives((which, all, as_json): &(u8, Vec<Damage>, bool)) {
    let text = damage(&TEXTS[usize::from(*which) % TEXTS.len()], all);
    let read = if *as_json {
        Scenario::from_json(&text, "damaged", &[])
    } else {
        Scenario::from_toml(&text, "damaged", &[])
    };
    match read {
        Err(error) => {
            for mistake in &error.mistakes {
                assert!(!mistake.to_string().contains('\n'), "{error}");
                assert!(!speaks_of_rust(&mistake.expected), "{error}");
            }
            // Of a file with sizes its own name comes first.
            assert!(error.to_string().contains("damaged"), "{error}");
        }
        Ok(scenario) => {
            let json = serde_json::to_string(&scenario).expect("a scenario can be written");
            let again = Scenario::from_json(&json, "again", &[]).expect("what was written can be read");
            assert_eq!(serde_json::to_string(&again).expect("a scenario can be written"), json);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    #[test]
    fn a_damaged_scenario_is_refused_or_stays_what_it_is(case in drawn::<(u8, Vec<Damage>, bool)>()) {
        survives(&case);
    }
}

#[test]
#[ignore = "fresh seeds"]
fn another_damaged_scenario_is_refused_or_stays_what_it_is() {
    check!().with_type().for_each(survives);
}

#[test]
fn a_number_is_read_from_json_to_the_bit() {
    // Every 1/8191 from 0 to 1: a quick reader of decimal numbers is one unit in the last place off for some of them.
    for share in 0..=8191 {
        let number = f64::from(share) / 8191.0;
        let loss = format!(r#"{{ "name": "random", "probability": {number:?} }}"#);
        let path = format!(r#"{{ "rate": "1 Mbit/s", "rtt": "1 ms", "loss": {loss} }}"#);
        let json = format!(r#"{{ "duration": "1 s", "path": {path}, "flow": [{{ "cc": "reno" }}] }}"#);
        let scenario = Scenario::from_json(&json, "exact", &[]).expect("a scenario");
        let Some(Loss::Random { probability }) = scenario.path.and_then(|path| path.loss) else {
            panic!("{json}")
        };
        assert_eq!(probability.to_bits(), number.to_bits(), "{json}");
    }
}
