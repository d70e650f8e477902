//! Blocks of a file that are read and hashed, or hashed and written: by one thread in turn, by two threads with a queue between them, as
//! a transfer does it, and by io_uring.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::mpsc;
use std::thread;

use io_uring::{IoUring, opcode, squeue, types};
use rustix::fs::{Advice, Mode, OFlags, fadvise, fdatasync, open};

use crate::{AHEAD, BLOCK, Took, Way, table};

/// What memory and offsets have to be aligned to around the page cache.
const ALIGNMENT: usize = 4096;

/// Memory of a block that may go around the page cache.
struct Room {
    memory: Vec<u8>,
    start: usize,
}

impl Room {
    fn new() -> Self {
        let memory = vec![0x5a; BLOCK + ALIGNMENT];
        let start = memory.as_ptr().align_offset(ALIGNMENT);
        Self { memory, start }
    }

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + BLOCK]
    }
}

/// What the processor does with each block in a transfer. The result is used, so that the compiler keeps the work.
fn hash(block: &[u8]) {
    std::hint::black_box(blake3::hash(block));
}

fn in_turn(file: &File, blocks: u64, write: bool) -> io::Result<()> {
    let mut room = Room::new();
    for block in 0..blocks {
        if write {
            hash(room.bytes());
            file.write_all_at(room.bytes(), block * BLOCK as u64)?;
        } else {
            file.read_exact_at(room.bytes(), block * BLOCK as u64)?;
            hash(room.bytes());
        }
    }
    Ok(())
}

/// One thread reads or writes, the other hashes.
fn threads(file: &File, blocks: u64, write: bool) -> io::Result<()> {
    let (filled, to_do) = mpsc::sync_channel::<(u64, Room)>(AHEAD);
    let (returned, free) = mpsc::channel();
    for _ in 0..=AHEAD {
        let _ = returned.send(Room::new());
    }
    thread::scope(|scope| {
        let first = scope.spawn(move || {
            for block in 0..blocks {
                // The other thread has failed.
                let Ok(mut room) = free.recv() else { break };
                if write {
                    hash(room.bytes());
                } else {
                    file.read_exact_at(room.bytes(), block * BLOCK as u64)?;
                }
                if filled.send((block, room)).is_err() {
                    break;
                }
            }
            Ok(())
        });
        for (block, mut room) in to_do {
            if write {
                file.write_all_at(room.bytes(), block * BLOCK as u64)?;
            } else {
                hash(room.bytes());
            }
            let _ = returned.send(room);
        }
        first.join().expect("it does not panic")
    })
}

/// Reads or writes of as many blocks as the threads have room for are under way; one thread hashes meanwhile. `flags` say who carries
/// out what would wait.
fn ring(file: &File, blocks: u64, write: bool, flags: squeue::Flags) -> io::Result<()> {
    let mut rooms: Vec<Room> = (0..=AHEAD).map(|_| Room::new()).collect();
    // The block of each room, and how much of it is done.
    let mut state = vec![(0_u64, 0_usize); rooms.len()];
    let mut ring = IoUring::new(rooms.len() as u32)?;
    let fd = types::Fd(file.as_raw_fd());
    let submit = |ring: &mut IoUring, rooms: &mut [Room], index: usize, (block, done): (u64, usize)| {
        let rest = &mut rooms[index].bytes()[done..];
        let (start, length, at) = (rest.as_mut_ptr(), rest.len() as u32, block * BLOCK as u64 + done as u64);
        let entry = if write {
            opcode::Write::new(fd, start, length).offset(at).build()
        } else {
            opcode::Read::new(fd, start, length).offset(at).build()
        };
        #[expect(unsafe_code, reason = "the kernel uses the memory until the call completes")]
        // SAFETY: a room is not touched before its call has completed, and all have when this function returns.
        unsafe { ring.submission().push(&entry.flags(flags).user_data(index as u64)) }
            .expect("a place for each room");
    };
    let mut next = 0;
    let mut under_way = 0;
    for index in 0..rooms.len().min(blocks as usize) {
        if write {
            hash(rooms[index].bytes());
        }
        state[index] = (next, 0);
        submit(&mut ring, &mut rooms, index, state[index]);
        ring.submit()?;
        (next, under_way) = (next + 1, under_way + 1);
    }
    let mut failed = None;
    while under_way > 0 {
        ring.submit_and_wait(1)?;
        let Some(done) = ring.completion().next() else { continue };
        let (index, result) = (done.user_data() as usize, done.result());
        under_way -= 1;
        if result <= 0 {
            failed = Some(io::Error::from_raw_os_error(-result));
        }
        if failed.is_some() {
            continue;
        }
        state[index].1 += result as usize;
        if state[index].1 == BLOCK {
            if !write {
                hash(rooms[index].bytes());
            }
            if next == blocks {
                continue;
            }
            if write {
                hash(rooms[index].bytes());
            }
            state[index] = (next, 0);
            next += 1;
        }
        submit(&mut ring, &mut rooms, index, state[index]);
        ring.submit()?;
        under_way += 1;
    }
    failed.map_or(Ok(()), Err)
}

/// The file, by another description of its own that goes around the page cache.
fn around(file: &File) -> io::Result<File> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    OpenOptions::new().read(true).write(true).custom_flags(libc::O_DIRECT).open(path)
}

fn drop_pages(file: &File) -> io::Result<()> {
    fdatasync(file)?;
    Ok(fadvise(file, 0, None, Advice::DontNeed)?)
}

type Work<'a> = &'a dyn Fn(&File) -> io::Result<()>;

/// Prints the tables of reading and of writing.
pub fn measure(folder: &Path, blocks: u64, runs: usize) -> io::Result<()> {
    let file: File =
        open(folder, OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR)?.into();
    let bytes = blocks * BLOCK as u64;
    // Not zeros: a disk might compress them.
    let mut content = Room::new();
    let mut random = blake3::Hasher::new().finalize_xof();
    for block in 0..blocks {
        random.fill(content.bytes());
        file.write_all_at(content.bytes(), block * BLOCK as u64)?;
    }
    let (own, workers) = (squeue::Flags::empty(), squeue::Flags::ASYNC);
    for (what, write) in [("read and hashed", false), ("hashed and written", true)] {
        let ways: [(&str, Work<'_>); 4] = [
            ("in turn, one thread", &|file| in_turn(file, blocks, write)),
            ("two threads", &|file| threads(file, blocks, write)),
            ("io_uring", &|file| ring(file, blocks, write, own)),
            ("io_uring, the kernel's threads (IOSQE_ASYNC)", &|file| ring(file, blocks, write, workers)),
        ];
        let direct = around(&file);
        for (name, cold, to) in [
            ("page cache hot", false, Ok(&file)),
            ("page cache cold", true, Ok(&file)),
            ("around the page cache", true, direct.as_ref()),
        ] {
            if write && !cold {
                continue;
            }
            let (file, Ok(to)) = (&file, to) else { continue };
            let title = match (write, name) {
                (true, "page cache cold") => format!("{what}, until the disk has it"),
                _ => format!("{what}, {name}"),
            };
            let ways = ways.iter().map(|&(name, work)| {
                Way::new(name, move || {
                    if cold {
                        drop_pages(file)?;
                    }
                    Took::of(bytes, || {
                        work(to)?;
                        if write { Ok(fdatasync(to)?) } else { Ok(()) }
                    })
                })
            });
            table(&title, runs, ways.collect());
        }
    }
    Ok(())
}
