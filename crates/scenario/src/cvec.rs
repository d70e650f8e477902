//! Connection vectors in the two formats of Tmix (the ns-2 manual, chapter "Tmix: Internet Traffic Generation"; Weigle et al. 2006,
//! section 3). Times are in microseconds.

use std::collections::VecDeque;
use std::fmt::Display;
use std::path::Path;

use elephan_traffic::{After, DataUnit, Side, Vector};
use elephan_units::{Mistake, Time};

use crate::csv::text;
use crate::error::Error;

/// The most lines of a file.
const MOST_LINES: usize = 10_000_000;

/// The lines of a file that say something, if its vectors are right.
pub(crate) fn read(path: &Path) -> Result<Vec<String>, Error> {
    let expected = "a file of connection vectors";
    let error = |mistake| Error { file: path.display().to_string(), mistakes: vec![mistake] };
    // A device or a pipe may have no end.
    if path.metadata().is_ok_and(|found| !found.is_file()) {
        return Err(error(Mistake::new("", expected, "no regular file")));
    }
    let text = text(path).map_err(|problem| error(Mistake::new("", expected, problem)))?;
    vectors(text.lines(), |number| format!("line {}", number + 1)).map_err(error)?;
    Ok(text.lines().map(said).filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

/// A line without its comment.
fn said(line: &str) -> &str {
    line.split('#').next().unwrap_or_default().trim()
}

/// The vectors of lines, in order of their starts. The key of a line in mistakes is what `key` says of its number from zero.
pub(crate) fn vectors<'a>(
    lines: impl Iterator<Item = &'a str>,
    key: impl Fn(usize) -> String,
) -> Result<Vec<Vector>, Mistake> {
    let mut vectors = Vec::new();
    let mut current: Option<Unfinished> = None;
    for (number, line) in lines.enumerate() {
        let line = said(line);
        if line.is_empty() {
            continue;
        }
        let at = |mistake: Mistake| mistake.below(&key(number));
        if number >= MOST_LINES {
            return Err(at(Mistake::new("", format_args!("at most {MOST_LINES} lines"), "more")));
        }
        let mut words: VecDeque<&str> = line.split_whitespace().collect();
        let word = words.pop_front().unwrap_or_default();
        if let Some((form, is_alternate)) = Form::of(word) {
            let start = numbers(line, &words, if form == Form::Concurrent { 5 } else { 4 }).map_err(at)?[0];
            vectors.extend(current.take().map(Unfinished::finish).transpose()?);
            current = Some(Unfinished::new(form, is_alternate, time(start).map_err(at)?, key(number)));
            continue;
        }
        let Some(current) = &mut current else {
            let expected = "a vector that begins with SEQ, CONC, S or C";
            return Err(at(Mistake::new("", expected, format_args!("\"{line}\""))));
        };
        current.line(line, word, &words).map_err(at)?;
    }
    vectors.extend(current.map(Unfinished::finish).transpose()?);
    if vectors.is_empty() {
        return Err(Mistake::new("", "a vector that begins with SEQ, CONC, S or C", "none"));
    }
    vectors.sort_by_key(|vector| vector.start);
    Ok(vectors)
}

/// Whole numbers, so many of them.
fn numbers(line: &str, words: &VecDeque<&str>, count: usize) -> Result<Vec<u64>, Mistake> {
    let numbers: Option<Vec<u64>> = words.iter().map(|word| word.parse().ok()).collect();
    numbers.filter(|numbers| numbers.len() == count).ok_or_else(|| {
        let form = if count == 1 { "a whole number".to_owned() } else { format!("{count} whole numbers") };
        let word = line.split_whitespace().next().unwrap_or_default();
        Mistake::new("", format_args!("{form} after {word}"), format_args!("\"{line}\""))
    })
}

/// A time of so many microseconds.
fn time(micros: u64) -> Result<Time, Mistake> {
    let picos = micros.checked_mul(1_000_000);
    picos.map(Time::from_picos).ok_or_else(|| Mistake::new("", "a time up to 1.8e13 us", micros))
}

/// Who waits for whom.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Requests and responses.
    Sequential,
    /// Each end writes by itself.
    Concurrent,
}

impl Form {
    /// The form that the first word of a vector names, and whether it is of the alternate format.
    fn of(word: &str) -> Option<(Self, bool)> {
        match word {
            "SEQ" => Some((Self::Sequential, false)),
            "CONC" => Some((Self::Concurrent, false)),
            "S" => Some((Self::Sequential, true)),
            "C" => Some((Self::Concurrent, true)),
            _ => None,
        }
    }
}

/// A vector whose lines are being read.
struct Unfinished {
    form: Form,
    is_alternate: bool,
    start: Time,
    /// The key of its first line.
    first: String,
    units: Vec<DataUnit>,
    /// Whether the initiator and the acceptor have a unit, and whether they close.
    writes: [bool; 2],
    closes: [bool; 2],
    /// Times that no data unit has followed yet: of a sequential vector the first, else of the initiator and the acceptor.
    waits: [Option<Time>; 2],
}

impl Unfinished {
    fn new(form: Form, is_alternate: bool, start: Time, first: String) -> Self {
        let (writes, closes) = ([false; 2], [false; 2]);
        Self { form, is_alternate, start, first, units: Vec::new(), writes, closes, waits: [None; 2] }
    }

    /// A line after the first, which begins with `word`.
    fn line(&mut self, line: &str, word: &str, words: &VecDeque<&str>) -> Result<(), Mistake> {
        use Form::{Concurrent, Sequential};
        use Side::{Acceptor, Initiator};
        let number = || numbers(line, words, 1).map(|numbers| numbers[0]);
        match (word, self.form, self.is_alternate) {
            // Segment sizes, windows, round-trip time and losses are those of the path and of `tcp`.
            ("m" | "w", ..) => numbers(line, words, 2).map(|_| ()),
            ("r", ..) => number().map(|_| ()),
            ("l", ..) => {
                let shares = words.iter().filter(|word| word.parse::<f64>().is_ok_and(|share| share >= 0.0));
                let is_right = words.len() == 2 && shares.count() == 2;
                is_right.then_some(()).ok_or_else(|| refused("two loss rates after l", line))
            }
            (">", Sequential, false) => self.sequential(Initiator, number()?, line),
            ("<", Sequential, false) => self.sequential(Acceptor, number()?, line),
            ("t", Sequential, false) => self.wait(0, !self.units.is_empty(), number()?, line),
            ("c>", Concurrent, false) => self.concurrent(Initiator, number()?, line),
            ("c<", Concurrent, false) => self.concurrent(Acceptor, number()?, line),
            ("t>", Concurrent, false) => self.wait(0, true, number()?, line),
            ("t<", Concurrent, false) => self.wait(1, true, number()?, line),
            ("I", _, true) => self.alternate(Initiator, words, line),
            ("A", _, true) => self.alternate(Acceptor, words, line),
            _ => {
                let expected = match (self.form, self.is_alternate) {
                    (Sequential, false) => "a line that begins with >, <, t, w, r, l or m",
                    (Concurrent, false) => "a line that begins with c>, c<, t>, t<, w, r, l or m",
                    (_, true) => "a line that begins with I, A, w, r, l or m",
                };
                Err(refused(expected, line))
            }
        }
    }

    /// A wait, which follows a data unit, and no other wait.
    fn wait(&mut self, place: usize, follows: bool, micros: u64, line: &str) -> Result<(), Mistake> {
        if !follows || self.waits[place].is_some() {
            return Err(refused("a data unit before the next time", line));
        }
        self.waits[place] = Some(time(micros)?);
        Ok(())
    }

    fn sequential(&mut self, side: Side, bytes: u64, line: &str) -> Result<(), Mistake> {
        let (last, wait) = (self.units.last().map(|unit| unit.side), self.waits[0].take());
        if last.is_some() && wait.is_none() {
            return Err(refused("a time t between two data units", line));
        }
        let after = if last.is_none_or(|last| last == side) { After::Sent } else { After::Received };
        self.add(DataUnit { side, after, wait: wait.unwrap_or(Time::ZERO), bytes }, line)
    }

    fn concurrent(&mut self, side: Side, bytes: u64, line: &str) -> Result<(), Mistake> {
        let wait = self.waits[place(side)].take();
        if self.writes[place(side)] && wait.is_none() {
            return Err(refused("a time between two data units of an end", line));
        }
        self.add(DataUnit { side, after: After::Sent, wait: wait.unwrap_or(Time::ZERO), bytes }, line)
    }

    fn alternate(&mut self, side: Side, words: &VecDeque<&str>, line: &str) -> Result<(), Mistake> {
        let numbers = numbers(line, words, 3)?;
        let (sent, received, bytes) = (time(numbers[0])?, time(numbers[1])?, numbers[2]);
        let own = |unit: &DataUnit| unit.side == side;
        let is_sequential = self.form == Form::Sequential;
        if self.closes[place(side)] || is_sequential && self.closes != [false; 2] {
            return Err(refused("nothing after the data unit of 0 bytes, which closes", line));
        }
        if received > Time::ZERO && (sent > Time::ZERO || !is_sequential) {
            let expected = "one wait above zero at most, and none after receiving in a concurrent vector";
            return Err(refused(expected, line));
        }
        let follows_other = is_sequential && self.units.last().is_some_and(|unit| !own(unit));
        let after = if received > Time::ZERO || follows_other && sent == Time::ZERO {
            After::Received
        } else {
            After::Sent
        };
        self.push(DataUnit { side, after, wait: sent.max(received), bytes });
        Ok(())
    }

    fn push(&mut self, unit: DataUnit) {
        let place = place(unit.side);
        self.writes[place] |= unit.bytes > 0;
        self.closes[place] |= unit.bytes == 0;
        self.units.push(unit);
    }

    fn add(&mut self, unit: DataUnit, line: &str) -> Result<(), Mistake> {
        if unit.bytes == 0 {
            return Err(refused("a data unit of a byte or more", line));
        }
        self.push(unit);
        Ok(())
    }

    /// The whole vector: the end that wrote last closes, of a concurrent one both.
    fn finish(mut self) -> Result<Vector, Mistake> {
        let Some(last) = self.units.last().map(|unit| unit.side).filter(|_| self.writes != [false; 2]) else {
            return Err(Mistake::new(self.first, "a vector with data units", "none"));
        };
        for side in [Side::Initiator, Side::Acceptor] {
            let (closes, place) = match self.form {
                Form::Sequential => (last == side && self.closes == [false; 2], 0),
                Form::Concurrent => (self.writes[place(side)] && !self.closes[place(side)], place(side)),
            };
            if closes {
                let wait = self.waits[place].unwrap_or(Time::ZERO);
                self.push(DataUnit { side, after: After::Sent, wait, bytes: 0 });
            }
        }
        Ok(Vector { start: self.start, units: self.units.into() })
    }
}

/// The place of an end in lists of both.
fn place(side: Side) -> usize {
    usize::from(side == Side::Acceptor)
}

fn refused(expected: impl Display, line: &str) -> Mistake {
    Mistake::new("", expected, format_args!("\"{line}\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use After::{Received, Sent};
    use Side::{Acceptor, Initiator};

    fn vectors(text: &str) -> Result<Vec<Vector>, Mistake> {
        super::vectors(text.lines(), |number| format!("line {}", number + 1))
    }

    /// The two vectors of the ns-2 manual's figures, in both formats.
    const ORIGINAL: &str = "SEQ 6851 1 21217 555382  # one epoch\nw 64800 6432\nr 1176194\nl 0.000000 0.000000\n\
        > 245\nt 51257\n< 510\nt 6304943\n\n\
        CONC 1429381 2 2 26876 793318\nw 65535 5840\nr 36556\nl 0.000000 0.000000\n\
        c> 222\nt> 62436302\nc< 726\nt< 62400173\nc> 16\nt> 725\nc< 84\nt< 130\n";
    const ALTERNATE: &str = "C 1429381 2 2 26876 793318\nm 1460 1460\nI 0 0 222\nA 0 0 726\nI 62436302 0 16\nA 62400173 0 84\nI 725 0 0\n\
        A 130 0 0\nS 6851 1 21217 555382\nw 64800 6432\nI 0 0 245\nA 0 51257 510\nA 6304943 0 0\n";

    #[test]
    fn both_formats_say_the_same() {
        let original = vectors(ORIGINAL).unwrap();
        let alternate = vectors(ALTERNATE).unwrap();
        assert_eq!(original[0], alternate[0]);
        let unit =
            |side, after, micros, bytes| DataUnit { side, after, wait: Time::from_micros(micros), bytes };
        assert_eq!(original[0].start, Time::from_micros(6851));
        let expected = [
            unit(Initiator, Sent, 0, 245),
            unit(Acceptor, Received, 51_257, 510),
            unit(Acceptor, Sent, 6_304_943, 0),
        ];
        assert_eq!(original[0].units[..], expected);
        // The order of units of both ends means nothing in a concurrent vector.
        for side in [Initiator, Acceptor] {
            let of = |vector: &Vector| {
                vector.units.iter().filter(|unit| unit.side == side).copied().collect::<Vec<_>>()
            };
            assert_eq!(of(&original[1]), of(&alternate[1]));
        }
        assert_eq!(original[1].bytes(), [238, 810]);
    }

    #[test]
    fn an_end_may_write_several_units_in_a_row() {
        // As in the sample file of ns-2: the acceptor writes again at that offset from its last unit.
        let text = "SEQ 0 2 1 1\n> 250\nt 48877\n< 1024\nt 1082014\n< 1536\n";
        let read = &vectors(text).unwrap()[0].units;
        assert_eq!(read[2].after, After::Sent);
        assert_eq!((read[3].side, read[3].after, read[3].bytes), (Side::Acceptor, After::Sent, 0));
        assert_eq!(
            vectors("S 0 2 1 1\nI 0 0 250\nA 0 48877 1024\nA 1082014 0 1536\n").unwrap()[0].units,
            *read
        );
    }

    #[test]
    fn damage_is_told_with_its_line() {
        for (text, expected) in [
            ("", "expected a vector that begins with SEQ, CONC, S or C, found none"),
            ("# only a comment\n", "expected a vector that begins with SEQ, CONC, S or C, found none"),
            ("> 5\n", "line 1: expected a vector that begins with SEQ, CONC, S or C, found \"> 5\""),
            ("SEQ 1 1 1\n> 5\n", "line 1: expected 4 whole numbers after SEQ, found \"SEQ 1 1 1\""),
            ("CONC 1 1 1 1\n", "line 1: expected 5 whole numbers after CONC, found \"CONC 1 1 1 1\""),
            ("SEQ 1 1 1 1\n> -5\n", "line 2: expected a whole number after >, found \"> -5\""),
            ("SEQ 1 1 1 1\n> 0\n", "line 2: expected a data unit of a byte or more, found \"> 0\""),
            ("SEQ 1 1 1 1\n> 5\n< 6\n", "line 3: expected a time t between two data units, found \"< 6\""),
            ("SEQ 1 1 1 1\nt 5\n", "line 2: expected a data unit before the next time, found \"t 5\""),
            (
                "SEQ 1 1 1 1\n> 5\nt 5\nt 6\n",
                "line 4: expected a data unit before the next time, found \"t 6\"",
            ),
            ("SEQ 1 1 1 1\nl 0\n", "line 2: expected two loss rates after l, found \"l 0\""),
            ("SEQ 1 1 1 1\nw 1\n", "line 2: expected 2 whole numbers after w, found \"w 1\""),
            (
                "SEQ 1 1 1 1\nc> 1\n",
                "line 2: expected a line that begins with >, <, t, w, r, l or m, found \"c> 1\"",
            ),
            ("C 1 1 1 1 1\nI 0 5 1\n", "line 2: expected one wait above zero at most, and none after"),
            (
                "S 1 1 1 1\nI 0 0 1\nI 3 0 0\nA 0 0 1\n",
                "line 4: expected nothing after the data unit of 0 bytes",
            ),
            ("S 1 1 1 1\nI 0 0 0\n", "line 1: expected a vector with data units, found none"),
            ("SEQ 1 1 1 1\nSEQ 2 1 1 1\n> 1\n", "line 1: expected a vector with data units, found none"),
            ("CONC 1 1 1 1 1\nc> 5\nc> 6\n", "line 3: expected a time between two data units of an end"),
            (
                "SEQ 99999999999999999 1 1 1\n",
                "line 1: expected a time up to 1.8e13 us, found 99999999999999999",
            ),
        ] {
            let found = vectors(text).unwrap_err().to_string();
            assert!(found.starts_with(expected), "{text:?}:\n  {found}\n  {expected}");
        }
    }
}
