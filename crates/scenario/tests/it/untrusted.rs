//! Documents from strangers: no file of the disk is read for them, and none takes the reader down.

use elephan_scenario::{Files, Scenario, Syntax, parse};

const HEAD: &str = "duration = \"10 s\"\npath = { rate = \"10 Mbit/s\", rtt = \"20 ms\" }\n";

/// Forms of TOML 1.1 that older readers refuse: a check on another reader's document would not see what they name.
#[test]
fn no_file_is_read_unless_that_is_allowed() {
    let folder = std::env::temp_dir().join(format!("elephan-untrusted-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("sizes.csv");
    std::fs::write(&path, "bytes\n31415\n").unwrap();
    let path = path.display();
    for text in [
        format!("{HEAD}arrivals = [{{ cc = \"reno\", per_second = 1.0, size = {{ csv = \"{path}\" }} }}]"),
        format!(
            "\u{feff}{HEAD}arrivals = [{{ cc = \"reno\", per_second = 1.0, size = {{ csv = \"{path}\" }} }}]"
        ),
        format!(
            "{HEAD}name = \"\\x65\"\narrivals = [{{ cc = \"reno\", per_second = 1.0, size = {{ csv = \"{path}\" }} }}]"
        ),
        format!(
            "{HEAD}arrivals = [{{\n cc = \"reno\",\n per_second = 1.0,\n size = {{\n \"\\x63sv\" = \"{path}\",\n }},\n }}]"
        ),
        format!("{HEAD}[[arrivals]]\ncc = \"reno\"\nper_second = 1.0\nsize.csv = \"{path}\""),
        format!("{HEAD}[[flow]]\ncc = \"reno\"\n[sweep]\n\"flow.0.size\" = [{{ csv = \"{path}\" }}]"),
        format!("{HEAD}[[flow]]\ncc = \"reno\"\n[[sweep.points]]\nx = {{ y = {{ csv = \"{path}\" }} }}"),
    ] {
        let error = Scenario::from_toml(&text, "scenario", &[]).unwrap_err().to_string();
        assert!(error.contains("expected no file"), "{text}\n{error}");
        assert!(!error.contains("31415"), "{error}");
        // By JSON too, and by a setting.
        let document = parse(&text, "scenario", Syntax::Toml).unwrap();
        let error = Scenario::from_json(&document.to_string(), "scenario", &[]).unwrap_err().to_string();
        assert!(error.contains("expected no file"), "{error}");
        let allowed = Scenario::from_document(document, "scenario", &[], Files::Allowed);
        assert!(
            !allowed.map_or_else(|error| error.to_string(), |_| String::new()).contains("expected no file")
        );
    }
    let set = [("arrivals".to_owned(), format!("[{{ size = {{ csv = \"{path}\" }} }}]"))];
    let error = Scenario::from_toml(HEAD, "scenario", &set).unwrap_err().to_string();
    assert!(error.contains("expected no file"), "{error}");
    std::fs::remove_dir_all(folder).unwrap();
}

/// Heads of tables, each within the one before.
fn deeper_and_deeper(open: &str, close: &str) -> String {
    let heads: Vec<String> =
        (1..300).map(|depth| format!("{open}{}{close}", vec!["a"; depth].join("."))).collect();
    heads.join("\n")
}

#[test]
fn depth_is_refused_or_read_and_never_ends_the_process() {
    let n = 120_000;
    let dotted = vec!["a"; n].join(".");
    for text in [
        format!("{dotted} = 1"),
        format!("[{dotted}]\nx = 1"),
        format!("[[{dotted}]]\nx = 1"),
        format!("x = {{ {dotted} = 1 }}"),
        format!("x = {}1{}", "[".repeat(n), "]".repeat(n)),
        format!("x = {}1{}", "{a=".repeat(n / 3), "}".repeat(n / 3)),
        deeper_and_deeper("[", "]"),
        deeper_and_deeper("[[", "]]"),
    ] {
        if let Ok(document) = parse(&text, "scenario", Syntax::Toml) {
            // What is read is no deeper than what JSON may be.
            parse(&document.to_string(), "scenario", Syntax::Json).unwrap();
            assert!(Scenario::from_document(document, "scenario", &[], Files::Refused).is_err());
        }
    }
    for text in [
        format!("{}{}", "[".repeat(n), "]".repeat(n)),
        format!("{}1{}", "{\"a\":".repeat(n / 5), "}".repeat(n / 5)),
        "[".repeat(n),
    ] {
        assert!(parse(&text, "scenario", Syntax::Json).is_err());
    }
}
