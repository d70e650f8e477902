//! Objects compiled from C with the header that users have: what is refused, and what an instance does.

use std::path::{Path, PathBuf};
use std::process::Command;

use elephan_abi::foreign::Object;
use elephan_cc::governor::{Fault, Report, Told};
use elephan_cc::{Cause, Controller, Quantisation, SlowStart};
use tempfile::TempDir;

/// What every object here begins with: a state that holds its parameter, its seed, and a copy of both.
const BEGINNING: &str = r#"
#include "elephan-cc.h"
#include <math.h>
#include <stdlib.h>

struct state { double step; uint64_t seed; int copies; };

static void *create(const double *values, uint64_t seed)
{
	struct state *state = calloc(1, sizeof(*state));
	state->step = values[0];
	state->seed = seed;
	return state;
}
static void *clone(const void *from)
{
	struct state *state = malloc(sizeof(*state));
	*state = *(const struct state *)from;
	state->copies++;
	return state;
}
static void on_ack(void *state, struct elephan_cc_window *window, const struct elephan_cc_ack *ack)
{
	window->cwnd += ((struct state *)state)->step * ack->acked;
}
static void on_congestion(void *state, struct elephan_cc_window *window, const struct elephan_cc_ack *ack, uint32_t cause)
{
	(void)state; (void)ack;
	window->ssthresh = window->cwnd / (2 + cause);
}
static const struct elephan_cc_parameter parameters[] = { { "step", "Growth for each segment.", 0.5, 0, 2 }, {} };
"#;

/// The table of the object, with changes.
const TABLE: &str = r#"
const struct elephan_cc elephan_cc = {
	.abi = ELEPHAN_CC_ABI, .size = sizeof(struct elephan_cc), .name = "steps", .title = "In steps",
	.source = "None 2026", .parameters = parameters,
	.create = create, .clone = clone, .destroy = free, .on_ack = on_ack, .on_congestion = on_congestion,
};
"#;

/// Compiles a source, and opens the object.
fn open(folder: &TempDir, name: &str, source: &str) -> Result<Object, String> {
    let [text, object] = ["c", "so"].map(|end| folder.path().join(format!("{name}.{end}")));
    std::fs::write(&text, source).unwrap();
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/elephan/foreign/include");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-I"]);
    let compiled = compiler.arg(header).arg(&text).arg("-o").arg(&object).output().unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    Object::open(&object)
        .map_err(|mistake| mistake.to_string().replace(&object.display().to_string(), "OBJECT"))
}

fn with(from: &str, to: &str) -> String {
    assert!(TABLE.contains(from), "{from}");
    format!("{BEGINNING}{}", TABLE.replace(from, to))
}

fn controller(object: &Object, values: &[f64]) -> Controller {
    Controller::new(object.build(values), SlowStart::Standard, Quantisation::None, 10.0)
}

#[test]
fn an_object_describes_itself_and_sets_the_window() {
    let folder = TempDir::new().unwrap();
    let object = open(&folder, "good", &format!("{BEGINNING}{TABLE}")).unwrap();
    let known = object.description();
    assert_eq!([object.name(), &known.title, &known.source], ["steps", "In steps", "None 2026"]);
    let parameters = &known.parameters;
    assert_eq!(parameters.len(), 1);
    assert_eq!((&*parameters[0].name, parameters[0].default.as_f64()), ("step", Some(0.5)));
    assert_eq!(parameters[0].range.to_string(), "a number from 0 to 2");

    let mut one = controller(&object, &[2.0]);
    one.tell(Told::Ack, &Report { acked: 3, ..Report::default() });
    assert_eq!(one.cwnd(), 16.0);
    let mut other = one.clone();
    other.on_governed_congestion(Cause::Loss, &Report::default());
    assert_eq!((one.cwnd(), other.cwnd(), other.ssthresh()), (16.0, 8.0, 8.0));
    one.on_governed_congestion(Cause::Ecn, &Report::default());
    assert_eq!(one.ssthresh(), 16.0 / 3.0);
    assert!(one.fault().is_none() && other.fault().is_none());
}

#[test]
fn each_connection_has_a_seed_of_its_own() {
    let folder = TempDir::new().unwrap();
    let seeded = "static void on_start(void *state, struct elephan_cc_window *window, const struct elephan_cc_ack *ack)
        { (void)ack; window->cwnd = ((struct state *)state)->seed; }\n";
    let source = with(".on_ack", ".on_start = on_start, .on_ack");
    let object = open(
        &folder,
        "seeded",
        &source.replace(TABLE.lines().nth(1).unwrap(), &format!("{seeded}{}", TABLE.lines().nth(1).unwrap())),
    )
    .unwrap();
    let prototype = controller(&object, &[0.5]);
    let windows = [7, 9].map(|seed| {
        let mut controller = prototype.fresh(seed);
        controller.tell(Told::Start, &Report::default());
        controller.cwnd()
    });
    assert_eq!(windows, [7.0, 9.0]);
}

#[test]
fn what_is_no_object_is_refused() {
    let folder = TempDir::new().unwrap();
    let refused = |name: &str, source: &str| open(&folder, name, source).err().expect(name);
    let opened = |path: PathBuf| Object::open(&path).err().expect("an error").to_string();
    let none = opened(folder.path().join("none.so"));
    assert!(none.contains("none.so: expected a shared object that can be loaded, found"), "{none}");
    let text = folder.path().join("text.so");
    std::fs::write(&text, "no object").unwrap();
    assert!(opened(text).contains("expected a shared object that can be loaded"));
    let incomplete = with(".on_ack = on_ack", ".on_ack = nothing");
    let declared = "struct elephan_cc_window; struct elephan_cc_ack;\n\
        void nothing(void *, struct elephan_cc_window *, const struct elephan_cc_ack *);\n\
        #pragma GCC diagnostic ignored \"-Wunused-function\"\n";
    let error = refused("incomplete", &format!("{declared}{incomplete}"));
    assert!(
        error.contains("expected a shared object that can be loaded") && error.contains("nothing"),
        "{error}"
    );

    assert_eq!(
        refused("empty", "int nothing;"),
        "OBJECT: expected the symbol elephan_cc (elephan-cc.h), found an object without it"
    );
    assert_eq!(
        refused("abi", &with(".abi = ELEPHAN_CC_ABI", ".abi = 7")),
        "OBJECT: expected an object of ABI 1 (elephan-cc.h), found one of ABI 7"
    );
    let small = refused("small", &with(".size = sizeof(struct elephan_cc)", ".size = 16"));
    assert!(
        small.starts_with("OBJECT: expected a struct elephan_cc of ") && small.ends_with("found 16 bytes")
    );
    for (name, from, to) in [
        ("create", ".create = create, ", ""),
        ("clone", ".clone = clone, ", ""),
        ("destroy", ".destroy = free, ", ""),
        ("on_ack", ".on_ack = on_ack, ", ""),
        ("on_congestion", ".on_congestion = on_congestion,", ""),
    ] {
        // What is not called is not used, either.
        let source = format!("#pragma GCC diagnostic ignored \"-Wunused-function\"\n{}", with(from, to));
        let error = refused(name, &source);
        assert!(error.contains("expected the functions create, clone, destroy, on_ack and on_congestion"));
    }
    for (number, name) in ["\"\"", "\"a b\"", "0"].into_iter().enumerate() {
        let error = refused(&format!("name{number}"), &with(".name = \"steps\"", &format!(".name = {name}")));
        assert!(error.contains("expected a name of letters, digits, _ and -"), "{error}");
    }
    for (number, (row, expected)) in [
        (
            "\"step\", \"\", 3, 0, 2",
            "OBJECT.step: expected a default from 0 to 2, which are its range, found 3",
        ),
        ("\"step\", \"\", NAN, 0, 2", "found NaN"),
        ("\"step\", \"\", 1, 2, 0", "OBJECT.step: expected a default from 2 to 0"),
        ("\"a step\", \"\", 1, 0, 2", "OBJECT.parameters: expected parameters with names of their own"),
        ("\"step\", \"\", 1, 0, 2 }, { \"step\", \"\", 1, 0, 2", "found \"step\""),
    ]
    .into_iter()
    .enumerate()
    {
        let source =
            format!("{BEGINNING}{TABLE}").replace("\"step\", \"Growth for each segment.\", 0.5, 0, 2", row);
        let error = refused(&format!("row{number}"), &source);
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_bad_window_and_a_missing_state_are_faults() {
    let folder = TempDir::new().unwrap();
    let nan = format!("{BEGINNING}{TABLE}").replace("window->cwnd +=", "window->cwnd = NAN *");
    let mut one = controller(&open(&folder, "nan", &nan).unwrap(), &[0.5]);
    one.tell(Told::Ack, &Report { acked: 1, ..Report::default() });
    assert_eq!(one.fault().map(Fault::text), Some("cwnd: expected 1 to 2^31 segments, found NaN"));
    assert_eq!(one.cwnd(), 10.0);

    let none = format!("{BEGINNING}{TABLE}").replace(
        "return state;\n}\nstatic void *clone",
        "free(state);\n\treturn NULL;\n}\nstatic void *clone",
    );
    let mut one = controller(&open(&folder, "null", &none).unwrap(), &[0.5]);
    one.clone().tell(Told::Ack, &Report::default());
    one.tell(Told::Ack, &Report::default());
    assert_eq!(
        one.fault().map(Fault::text),
        Some(
            "create: expected a state, found NULL: it refuses the values of the parameters, or has no memory"
        )
    );
}
