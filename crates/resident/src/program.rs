//! The code that a start ran and that nobody needs now.
//!
//! The kernel maps 64 KiB of the program around each page that is touched, and a start touches
//! something nearly everywhere: every route, every setting, every table. Those pages stay in the
//! kernel's cache of files, but they count as the process's own until it says that it is done.

use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::{fs, io, ptr};

use rustix::mm::{Advice, madvise};

/// A part of the address space.
#[derive(Debug, PartialEq, Eq)]
struct Mapping {
    start: usize,
    length: usize,
}

/// Gives the pages of this program's code back and says how many bytes were resident. What is run
/// again comes back from the kernel's cache, or from the file.
///
/// # Errors
///
/// Of reading `/proc/self`, and of `madvise`; the pages stay then.
pub fn give_back() -> io::Result<usize> {
    let program = fs::read_link("/proc/self/exe")?;
    let smaps = fs::read_to_string("/proc/self/smaps")?;
    let mut bytes = 0;
    for (mapping, resident) in code_of(&program, &smaps) {
        drop_pages(&mapping)?;
        bytes += resident;
    }
    Ok(bytes)
}

/// The mappings of the program that hold code just as its file does, and what is resident of each.
///
/// Not those that can be written, nor those that could: what the loader filled in is read-only now
/// but in no file. Nor code with a page of its own, which is a debugger's.
fn code_of(program: &Path, smaps: &str) -> Vec<(Mapping, usize)> {
    let mut found = Vec::new();
    let mut lines = smaps.lines().peekable();
    while let Some(line) = lines.next() {
        let Some((mapping, permissions, path)) = heading(line) else { continue };
        let (mut resident, mut own) = (None, None);
        while let Some(line) = lines.next_if(|line| heading(line).is_none()) {
            resident = resident.or_else(|| amount(line, "Rss:"));
            own = own.or_else(|| amount(line, "Anonymous:"));
        }
        if permissions == "r-xp" && path == program && own == Some(0) {
            found.push((mapping, resident.unwrap_or(0)));
        }
    }
    found
}

/// `start-end permissions offset device inode path`, which begins the lines of a mapping.
fn heading(line: &str) -> Option<(Mapping, &str, PathBuf)> {
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let start = usize::from_str_radix(start, 16).ok()?;
    let length = usize::from_str_radix(end, 16).ok()?.checked_sub(start)?;
    let (permissions, rest) = rest.split_once(' ')?;
    let path = rest.splitn(4, ' ').nth(3)?.trim_start();
    Some((Mapping { start, length }, permissions, path.into()))
}

/// `name: count kB`, in bytes.
fn amount(line: &str, name: &str) -> Option<usize> {
    let count = line.strip_prefix(name)?.trim().strip_suffix(" kB")?;
    count.parse::<usize>().ok()?.checked_mul(1 << 10)
}

#[expect(unsafe_code, reason = "decision 0014: there is no other way to say it")]
fn drop_pages(mapping: &Mapping) -> io::Result<()> {
    let start = ptr::with_exposed_provenance_mut::<c_void>(mapping.start);
    // SAFETY: the mapping is the program's own code, which lives as long as the process. It is
    // private, cannot be written and has no page that differs from the file, so a page that is
    // dropped and touched again, by any thread at any time, is read from the file and holds the
    // same bytes.
    unsafe { madvise(start, mapping.length, Advice::LinuxDontNeed) }?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: &str = "/opt/wind lass (deleted)";

    fn code_in(smaps: &str) -> Vec<(Mapping, usize)> {
        code_of(Path::new(PROGRAM), smaps)
    }

    #[test]
    fn only_code_that_is_as_the_file_has_it_is_given_back() {
        let of = |range: &str, permissions: &str, path: &str, own: &str| {
            format!(
                "{range} {permissions} 00828000 fe:00 1847      {path}\n\
                 Size:               8 kB\nRss:                4 kB\nAnonymous:          {own} kB\n\
                 VmFlags: rd ex mr mw me\n"
            )
        };
        let code = of("1000-3000", "r-xp", PROGRAM, "0");
        let expected = vec![(Mapping { start: 0x1000, length: 0x2000 }, 4 << 10)];
        assert_eq!(code_in(&code), expected);

        let others = [
            of("1000-3000", "r-xp", "/lib/libc.so.6", "0"),
            of("1000-3000", "r-xp", "", "0"),
            of("1000-3000", "r--p", PROGRAM, "0"),
            of("1000-3000", "rw-p", PROGRAM, "0"),
            of("1000-3000", "rwxp", PROGRAM, "0"),
            of("1000-3000", "r-xs", PROGRAM, "0"),
            of("1000-3000", "r-xp", PROGRAM, "4"),
        ];
        for other in &others {
            assert_eq!(code_in(other), [], "{other}");
            assert_eq!(code_in(&format!("{other}{code}{other}")), expected, "beside {other}");
        }
    }

    #[test]
    fn a_kernel_that_does_not_say_what_is_written_gets_no_advice() {
        assert_eq!(code_in(&format!("1000-3000 r-xp 0 fe:00 1 {PROGRAM}\nRss: 4 kB\n")), []);
        assert_eq!(code_in(&format!("1000-0 r-xp 0 fe:00 1 {PROGRAM}\nAnonymous: 0 kB\n")), []);
        assert_eq!(code_in("x\n\n1-2\n1-2 r-xp\n"), []);
    }

    /// Resident pages of files.
    fn of_files() -> usize {
        let statm = fs::read_to_string("/proc/self/statm").expect("it is there");
        statm.split_ascii_whitespace().nth(2).expect("the third").parse().expect("a number")
    }

    #[test]
    fn the_program_goes_on_with_fewer_pages() {
        let before = of_files();
        let bytes = give_back().expect("it can be said");
        let after = of_files();
        assert!(bytes >= 64 << 10, "{bytes} bytes were resident");
        assert!(after < before, "{after} pages of files, {before} before");
    }
}
