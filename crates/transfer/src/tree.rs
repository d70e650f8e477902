//! The receiving folder. Nothing is opened, made or renamed outside it, whatever names a sender says and whatever others put
//! there meanwhile.
//!
//! Every path is resolved by `openat2` with `RESOLVE_BENEATH` and `RESOLVE_NO_SYMLINKS` (openat2(2)): the kernel itself
//! refuses a path that leaves the folder or crosses a symbolic link, at the moment of opening it, so there is no race between
//! a check and a use. What is made or renamed is named by an open folder and one component.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{
    self, AtFlags, FileType, FlockOperation, Mode, OFlags, RenameFlags, ResolveFlags, flock, openat2,
    renameat_with, unlinkat,
};
use rustix::io::Errno;

use crate::Error;
use crate::manifest::PARTIALS;

/// Folders are made for everybody whom the process's umask allows.
const FOLDER_MODE: Mode = Mode::from_raw_mode(0o777);

/// A receiving folder, and within it the folder of partial files.
pub struct Tree {
    path: PathBuf,
    root: OwnedFd,
    partials: OwnedFd,
}

/// What is at a name.
pub struct Found {
    /// What kind of file it is.
    pub kind: FileType,
    /// Its bytes.
    pub size: u64,
    /// Time of modification.
    pub modified: (i64, u32),
}

impl Tree {
    /// Opens a folder, which exists, and makes its folder of partial files. Another receiver may not use it at the same time.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let failed = |errno: Errno| Error::File(path.to_owned(), errno.into());
        let root = fs::open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
            .map_err(failed)?;
        let partials = make(&root, PARTIALS.as_bytes(), Mode::RWXU).and_then(|()| {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            Ok(fs::openat(&root, PARTIALS, flags, Mode::empty())?)
        });
        let partials = partials.map_err(Error::file(&path.join(PARTIALS)))?;
        if flock(&partials, FlockOperation::NonBlockingLockExclusive).is_err() {
            let text = format!("{}: expected no other receiver in this folder, found one", path.display());
            return Err(Error::Asked(text));
        }
        Ok(Self { path: path.to_owned(), root, partials })
    }

    /// The path of a partial file, for messages.
    pub fn partial_path(&self, name: &str) -> PathBuf {
        self.path.join(PARTIALS).join(name)
    }

    /// What is at a name; none if there is nothing, or no folder for it.
    pub fn look(&self, name: &[u8]) -> io::Result<Option<Found>> {
        let found = match self.resolve(name, OFlags::PATH | OFlags::NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(None),
            found => fs::fstat(found?)?,
        };
        Ok(Some(Found {
            kind: FileType::from_raw_mode(found.st_mode),
            size: found.st_size as u64,
            modified: (found.st_mtime as i64, found.st_mtime_nsec as u32),
        }))
    }

    /// Opens an existing file for reading.
    pub fn read(&self, name: &[u8]) -> io::Result<File> {
        // A pipe would wait for its writer.
        Ok(File::from(self.resolve(name, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK)?))
    }

    fn resolve(&self, name: &[u8], flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        loop {
            match openat2(&self.root, name, flags | OFlags::CLOEXEC, Mode::empty(), beneath) {
                // A rename elsewhere in the tree came between: openat2(2) says to try again.
                Err(Errno::AGAIN) => {}
                found => return found,
            }
        }
    }

    /// Makes a folder, and those that it is in; returns it.
    pub fn folder(&self, name: &[u8]) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        match self.resolve(name, flags) {
            Err(Errno::NOENT) => {}
            found => return Ok(found?),
        }
        let (parent, leaf) = split(name);
        match parent {
            None => make(&self.root, leaf, FOLDER_MODE)?,
            Some(parent) => make(&self.folder(parent)?, leaf, FOLDER_MODE)?,
        }
        Ok(self.resolve(name, flags)?)
    }

    /// Opens a partial file, for reading and writing; made if it does not exist.
    pub fn partial(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(File::from(fs::openat(&self.partials, name, flags, Mode::RUSR | Mode::WUSR)?))
    }

    /// Opens a partial file that exists.
    pub fn existing_partial(&self, name: &str) -> io::Result<Option<File>> {
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match fs::openat(&self.partials, name, flags, Mode::empty()) {
            Err(Errno::NOENT) => Ok(None),
            found => Ok(Some(File::from(found?))),
        }
    }

    /// Removes a partial file, if it exists.
    pub fn remove_partial(&self, name: &str) {
        let _ = unlinkat(&self.partials, name, AtFlags::empty());
    }

    /// Renames a partial file to its name. An existing file is only replaced if `replace` is set: the kernel decides, so one
    /// that has come meanwhile is kept, too.
    pub fn place(&self, partial: &str, name: &[u8], replace: bool) -> io::Result<()> {
        let flags = if replace { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
        let (parent, leaf) = split(name);
        match parent {
            None => renameat_with(&self.partials, partial, &self.root, leaf, flags)?,
            Some(parent) => renameat_with(&self.partials, partial, self.folder(parent)?, leaf, flags)?,
        }
        Ok(())
    }

    /// Waits until everything that was written to the filesystem is on the disk.
    pub fn sync(&self) -> io::Result<()> {
        Ok(fs::syncfs(&self.partials)?)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        // Only if it is empty.
        let _ = unlinkat(&self.root, PARTIALS, AtFlags::REMOVEDIR);
    }
}

fn make(parent: &OwnedFd, leaf: &[u8], mode: Mode) -> io::Result<()> {
    match fs::mkdirat(parent, leaf, mode) {
        Err(Errno::EXIST) => Ok(()),
        made => Ok(made?),
    }
}

/// The path of the folder of a name, if it is not the receiving folder, and the last component.
fn split(name: &[u8]) -> (Option<&[u8]>, &[u8]) {
    match name.iter().rposition(|&byte| byte == b'/') {
        None => (None, name),
        Some(at) => (Some(&name[..at]), &name[at + 1..]),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    use super::*;

    fn with(partial: &Tree) {
        drop(partial.partial("x").expect("a file"));
    }

    #[test]
    fn links_that_lead_out_are_not_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let (inside, outside) = (folder.path().join("in"), folder.path().join("out"));
        std::fs::create_dir(&inside).and_then(|()| std::fs::create_dir(&outside)).expect("folders");
        symlink(&outside, inside.join("link")).expect("a link");
        symlink("..", inside.join("up")).expect("a link");
        symlink(outside.join("file"), inside.join("file")).expect("a link");
        let tree = Tree::open(&inside).expect("a folder");
        for name in ["link/x", "up/out/x", "link/deep/x", "up/x"] {
            with(&tree);
            assert!(tree.place("x", name.as_bytes(), true).is_err(), "{name}");
            assert!(tree.look(name.as_bytes()).is_err(), "{name}");
        }
        with(&tree);
        // The link itself is replaced, not what it leads to.
        assert!(tree.place("x", b"file", false).is_err());
        tree.place("x", b"file", true).expect("replaced");
        assert!(std::fs::symlink_metadata(inside.join("file")).expect("there").is_file());
        assert_eq!(std::fs::read_dir(&outside).expect("a folder").count(), 0);
        assert!(tree.folder(b"link").is_err() && tree.folder(b"up/y").is_err());
        assert!(tree.folder(b"../y").is_err() && tree.folder(b"/tmp").is_err());
    }

    #[test]
    fn folders_are_made_and_the_partial_one_goes_when_it_is_empty() {
        let folder = tempfile::tempdir().expect("a folder");
        let tree = Tree::open(folder.path()).expect("a folder");
        assert!(matches!(Tree::open(folder.path()), Err(Error::Asked(_))));
        with(&tree);
        tree.place("x", b"a/b/\xff", false).expect("placed");
        let name = std::ffi::OsStr::from_bytes(b"a/b/\xff");
        assert!(folder.path().join(name).is_file());
        with(&tree);
        assert!(tree.place("x", b"a/b/\xff", false).is_err());
        tree.remove_partial("x");
        drop(tree);
        assert!(!folder.path().join(PARTIALS).exists());
    }
}
