//! Runs a scenario in a guest: image, init, links, scenario (JSON), algorithms.
use elephan_guest::{Job, Launch, run};
fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let launch = Launch {
        image: (&words[0]).into(),
        init: (&words[1]).into(),
        links: (&words[2]).into(),
        memory: 1 << 30,
        seed: 1,
    };
    let job = Job { scenario: std::fs::read_to_string(&words[3]).unwrap(), algorithms: words[4..].to_vec() };
    match run(&launch, &job, &elephan_metrics::Uncontrolled) {
        Ok(m) => println!("{:#?}", m.outcome.summary),
        Err(e) => println!("{e}"),
    }
}
