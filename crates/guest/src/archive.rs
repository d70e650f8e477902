//! The guest's file system: an archive of its first program and its devices, in the format of cpio(5) that the
//! kernel unpacks (Documentation/driver-api/early-userspace/buffer-format.rst).

const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const DEVICE: u32 = 0o020_600;

/// The archive. `init` is the first program.
pub fn archive(init: &[u8]) -> Vec<u8> {
    let mut made = Vec::with_capacity(init.len() + 4096);
    for folder in ["dev", "dev/net", "proc", "sys", "root"] {
        entry(&mut made, folder, FOLDER, (0, 0), &[]);
    }
    entry(&mut made, "dev/console", DEVICE, (5, 1), &[]);
    entry(&mut made, "dev/null", DEVICE, (1, 3), &[]);
    // A misc device of a number that is reserved for local use (`ELEPHAN_MINOR` in kernel/guest/network.c).
    entry(&mut made, "dev/elephan", DEVICE, (10, 240), &[]);
    // TUN_MINOR of include/linux/miscdevice.h.
    entry(&mut made, "dev/net/tun", DEVICE, (10, 200), &[]);
    entry(&mut made, "init", PROGRAM, (0, 0), init);
    entry(&mut made, "TRAILER!!!", 0, (0, 0), &[]);
    made
}

fn entry(to: &mut Vec<u8>, name: &str, mode: u32, device: (u32, u32), content: &[u8]) {
    let number = to.len() as u32;
    let length = name.len() as u32 + 1;
    // Magic number, inode, mode, user, group, links, time, size, device, device of the file, length of the name.
    let fields = [number, mode, 0, 0, 1, 0, content.len() as u32, 0, 0, device.0, device.1, length, 0];
    to.extend(b"070701");
    for field in fields {
        to.extend(format!("{field:08x}").bytes());
    }
    to.extend(name.bytes());
    to.push(0);
    pad(to);
    to.extend(content);
    pad(to);
}

fn pad(to: &mut Vec<u8>) {
    to.resize(to.len().next_multiple_of(4), 0);
}
