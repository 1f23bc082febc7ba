//! The descriptors that a confined process keeps.

use std::io;

use rustix::fs::{FileType, fstat, major, minor};

use super::kernel_calls::close_descriptors;

/// The device number of `/dev/null`. Source: devices.txt of the Linux kernel.
const NULL_DEVICE: (u32, u32) = (1, 3);

/// Closes all descriptors except for 0, and 2 if it is `/dev/null`.
///
/// # Errors
///
/// [`io::Error`] if the kernel refuses.
pub(super) fn close_inherited() -> io::Result<()> {
    let first_after_output = if is_null(io::stderr()) { 3 } else { 2 };
    close_descriptors(1..=1)?;
    close_descriptors(first_after_output..=u32::MAX)
}

/// Returns whether an open descriptor is `/dev/null`.
fn is_null(descriptor: impl std::os::fd::AsFd) -> bool {
    fstat(descriptor).is_ok_and(|stat| {
        FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice
            && (major(stat.st_rdev), minor(stat.st_rdev)) == NULL_DEVICE
    })
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn only_the_null_device_is_kept() {
        assert!(is_null(File::open("/dev/null").unwrap()));
        assert!(!is_null(File::open("/dev/zero").unwrap()));
        assert!(!is_null(tempfile::tempfile().unwrap()));
    }
}
