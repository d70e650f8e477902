//! Sequential reading and writing of a disk, through the page cache and around it.
//!
//! A test of writing never has a name to overwrite: its file is made without one (`O_TMPFILE`), or, where the file system cannot
//! do that, under a new name that is removed at once. The kernel gives its space back when the descriptor closes, also when the process is
//! killed. A given file is opened for reading only.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;

use rustix::fs::{Advice as Told, Mode, OFlags, fadvise, fdatasync, open};
use rustix::rand::{GetRandomFlags, getrandom};
use serde::Deserialize;

use crate::{Error, Moved, Stop, Stopwatch, refused, together};

/// What reads and writes around the page cache are aligned to: the largest logical block of common disks.
pub const ALIGNMENT: usize = 4096;
/// Blocks in which the file is made.
const FILLING: usize = 1 << 20;
/// Attempts to find a name that does not exist.
const ATTEMPTS: usize = 16;

/// A test of a folder's disk, or of a file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disk {
    /// A folder, in which a file without a name is written and read; or a file, which is only read.
    pub place: PathBuf,
    /// Bytes of the file that is made, or at most so many of the one that is read.
    pub bytes: u64,
    /// What is done, in this order.
    pub passes: Vec<Pass>,
    /// The time of each pass at most, s.
    pub seconds: f64,
}

/// Once through the file.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_field_names, reason = "the kernel's words")]
pub struct Pass {
    /// Writes it, otherwise reads.
    #[serde(default)]
    pub write: bool,
    /// Around the page cache.
    #[serde(default)]
    pub direct: bool,
    /// A read through the page cache that may find there what an earlier pass left; otherwise the file's pages are dropped before.
    #[serde(default)]
    pub warm: bool,
    /// Bytes of each call, a multiple of 4096.
    pub block: usize,
    /// Threads, each with a part of the file.
    pub threads: usize,
    /// What the kernel is promised about the reads to come.
    #[serde(default)]
    pub advice: Advice,
}

/// What the kernel is promised about the reads to come (posix_fadvise(2)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Advice {
    /// Nothing: its read-ahead window is that of the device.
    #[default]
    Normal,
    /// That they are random: it reads nothing ahead.
    Random,
}

impl Disk {
    /// What each pass moved.
    pub fn measure(&self, stop: Stop<'_>) -> Result<Vec<Moved>, Error> {
        let shown = self.place.display().to_string();
        let unfit = |text: String| Err(Error::Unfit(format!("{shown}: {text}")));
        let folder = fs::metadata(&self.place).map_err(refused(&shown))?;
        for pass in &self.passes {
            if pass.block == 0 || !pass.block.is_multiple_of(ALIGNMENT) || pass.threads == 0 {
                return unfit(format!(
                    "expected blocks of a multiple of {ALIGNMENT} bytes and a thread, found {} bytes, {} threads",
                    pass.block, pass.threads
                ));
            }
            if pass.write && !folder.is_dir() {
                return unfit(
                    "expected a folder for a test of writing, found a file, which is only read".into(),
                );
            }
        }
        if !folder.is_dir() && !folder.is_file() {
            return unfit("expected a folder or a file, found something else".into());
        }
        let (file, length) = if folder.is_dir() {
            let file = unnamed(&self.place).map_err(refused(&shown))?;
            fill(&file, self.bytes, stop, &shown)?;
            (file, self.bytes)
        } else {
            let file = OpenOptions::new()
                .read(true)
                .custom_flags(libc::O_NONBLOCK)
                .open(&self.place)
                .map_err(refused(&shown))?;
            (file, self.bytes.min(folder.len()))
        };
        self.passes.iter().map(|pass| self.once(pass, &file, length, stop)).collect()
    }

    fn once(&self, pass: &Pass, file: &File, length: u64, stop: Stop<'_>) -> Result<Moved, Error> {
        let what = || {
            let (how, cache) = (
                if pass.write { "writing" } else { "reading" },
                if pass.direct { "around" } else { "through" },
            );
            format!("{}: {how} {cache} the page cache", self.place.display())
        };
        if !pass.write && !pass.warm {
            // Pages that are not yet on the disk cannot be dropped.
            fdatasync(file).or_else(ignore_read_only).map_err(|error| refused(what())(error.into()))?;
            fadvise(file, 0, None, Told::DontNeed).map_err(|error| refused(what())(error.into()))?;
        }
        let blocks = length / pass.block as u64;
        let share = blocks.div_ceil(pass.threads as u64) * pass.block as u64;
        let watch = Stopwatch::start();
        let parts: Vec<io::Result<Moved>> = thread::scope(|scope| {
            let threads: Vec<_> = (0..pass.threads as u64)
                .map(|number| {
                    let (from, to) = (number * share, ((number + 1) * share).min(blocks * pass.block as u64));
                    scope.spawn(move || part(pass, file, from, to, self.seconds, stop))
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("it does not panic")).collect()
        });
        let parts = parts.into_iter().collect::<io::Result<Vec<_>>>().map_err(refused(what()))?;
        if stop() {
            return Err(Error::Cancelled);
        }
        let all = together(parts);
        if pass.write {
            // What is in the page cache alone has not been written.
            fdatasync(file).map_err(|error| refused(what())(error.into()))?;
        }
        Ok(Moved { seconds: watch.seconds(), cpu_seconds: all.cpu_seconds, ..all })
    }
}

/// A descriptor for reading only needs no synchronisation.
fn ignore_read_only(error: rustix::io::Errno) -> Result<(), rustix::io::Errno> {
    if matches!(error, rustix::io::Errno::BADF | rustix::io::Errno::INVAL | rustix::io::Errno::ROFS) {
        Ok(())
    } else {
        Err(error)
    }
}

/// One thread's part of a pass.
fn part(pass: &Pass, file: &File, from: u64, to: u64, seconds: f64, stop: Stop<'_>) -> io::Result<Moved> {
    // An open file description of its own: whether it goes around the cache belongs to that.
    let way = format!("/proc/self/fd/{}", file.as_raw_fd());
    let file = OpenOptions::new()
        .read(true)
        .write(pass.write)
        .custom_flags(if pass.direct { libc::O_DIRECT } else { 0 })
        .open(way)?;
    let told = match pass.advice {
        Advice::Normal => Told::Normal,
        Advice::Random => Told::Random,
    };
    fadvise(&file, 0, None, told)?;
    let mut memory = random(pass.block + ALIGNMENT)?;
    let start = memory.as_ptr().align_offset(ALIGNMENT);
    let block = &mut memory[start..start + pass.block];
    let (watch, mut at) = (Stopwatch::start(), from);
    while at < to && watch.seconds() < seconds && !stop() {
        if pass.write {
            file.write_all_at(block, at)?;
        } else {
            file.read_exact_at(block, at)?;
        }
        at += pass.block as u64;
    }
    Ok(watch.moved(at.saturating_sub(from)))
}

/// Bytes that no file system can compress.
fn random(length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    let mut rest = bytes.as_mut_slice();
    while !rest.is_empty() {
        let got = getrandom(&mut *rest, GetRandomFlags::empty())?;
        rest = &mut rest[got..];
    }
    Ok(bytes)
}

/// A new file in a folder that has no name, for reading and writing.
pub fn unnamed(folder: &Path) -> io::Result<File> {
    let mode = Mode::RUSR | Mode::WUSR;
    match open(folder, OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, mode) {
        Ok(file) => Ok(file.into()),
        // Kernels and file systems that do not have it report it in these ways (open(2)).
        Err(
            rustix::io::Errno::OPNOTSUPP
            | rustix::io::Errno::ISDIR
            | rustix::io::Errno::NOENT
            | rustix::io::Errno::INVAL,
        ) => named_and_removed(folder),
        Err(error) => Err(error.into()),
    }
}

/// The same where files need a name: a new one, removed at once.
fn named_and_removed(folder: &Path) -> io::Result<File> {
    for _ in 0..ATTEMPTS {
        let number = random(8)?.into_iter().fold(0_u64, |number, byte| (number << 8) | u64::from(byte));
        let path = folder.join(format!(".elephan-{number:016x}"));
        match OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path) {
            Ok(file) => {
                fs::remove_file(path)?;
                return Ok(file);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Makes a file of `bytes`: its blocks exist from then on.
pub fn fill(file: &File, bytes: u64, stop: Stop<'_>, shown: &str) -> Result<(), Error> {
    let what = || format!("{shown}: writing");
    let block = random(FILLING).map_err(refused(what()))?;
    let mut at = 0;
    while at < bytes {
        if stop() {
            return Err(Error::Cancelled);
        }
        let length = (bytes - at).min(block.len() as u64);
        file.write_all_at(&block[..length as usize], at).map_err(refused(what()))?;
        at += length;
    }
    fdatasync(file).map_err(|error| refused(what())(error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn pass() -> Pass {
        Pass { write: false, direct: false, warm: false, block: 1 << 16, threads: 1, advice: Advice::Normal }
    }

    fn disk(place: &Path, passes: Vec<Pass>) -> Disk {
        Disk { place: place.into(), bytes: 4 * MIB, passes, seconds: 60.0 }
    }

    /// A folder of a file system that can go around the page cache.
    fn folder() -> tempfile::TempDir {
        tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap()
    }

    #[test]
    fn all_bytes_are_written_and_read_and_none_is_left() {
        let folder = folder();
        let every =
            [(false, 1), (false, 3), (true, 2)].map(|(write, threads)| Pass { write, threads, ..pass() });
        for moved in disk(folder.path(), every.to_vec()).measure(&|| false).unwrap() {
            assert_eq!(moved.bytes, 4 * MIB);
            assert!(moved.seconds > 0.0);
        }
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    }

    #[test]
    fn reads_and_writes_around_the_cache_are_aligned() {
        let folder = folder();
        let passes =
            vec![Pass { direct: true, block: 4096, ..pass() }, Pass { direct: true, write: true, ..pass() }];
        match disk(folder.path(), passes).measure(&|| false) {
            Ok(moved) => assert!(moved.iter().all(|one| one.bytes == 4 * MIB)),
            // A file system that has no way around its cache.
            Err(Error::System(what, error)) => {
                assert_eq!(error.raw_os_error(), Some(libc::EINVAL), "{what}");
                assert!(what.contains("around the page cache"));
            }
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn a_file_is_only_read() {
        let folder = folder();
        let path = folder.path().join("data");
        let content: Vec<u8> = (0..3 * MIB + 17).map(|k| k as u8).collect();
        fs::write(&path, &content).unwrap();
        let before = fs::metadata(&path).unwrap().modified().unwrap();
        let moved = disk(&path, vec![pass()]).measure(&|| false).unwrap();
        // Whole blocks: the rest of the file would be a shorter read.
        assert_eq!(moved[0].bytes, 3 * MIB);
        let error = disk(&path, vec![Pass { write: true, ..pass() }]).measure(&|| false).unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("expected a folder for a test of writing, found a file, which is only read")
        );
        assert_eq!(fs::read(&path).unwrap(), content);
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), before);
    }

    #[test]
    fn a_name_for_a_moment_is_a_new_one() {
        let folder = folder();
        let file = named_and_removed(folder.path()).unwrap();
        fill(&file, 10_000, &|| false, "here").unwrap();
        assert_eq!(file.metadata().unwrap().len(), 10_000);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    }

    #[test]
    fn what_cannot_be_measured_is_named() {
        let folder = folder();
        let odd = disk(folder.path(), vec![Pass { block: 1000, ..pass() }]).measure(&|| false).unwrap_err();
        assert!(
            odd.to_string()
                .contains("expected blocks of a multiple of 4096 bytes and a thread, found 1000 bytes")
        );
        let nowhere = disk(&folder.path().join("none"), vec![pass()]).measure(&|| false).unwrap_err();
        assert!(matches!(nowhere, Error::System(_, error) if error.kind() == io::ErrorKind::NotFound));
        let device = disk(Path::new("/dev/null"), vec![pass()]).measure(&|| false).unwrap_err();
        assert!(device.to_string().contains("expected a folder or a file"));
        let stopped = disk(folder.path(), vec![pass()]).measure(&|| true).unwrap_err();
        assert!(matches!(stopped, Error::Cancelled));
    }
}
