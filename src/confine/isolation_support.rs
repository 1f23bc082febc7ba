//! The ability of this host to confine a process.

use std::io;

use seccompiler::TargetArch;
use thiserror::Error;

use super::kernel_calls;

/// The isolation that this host offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IsolationSupport {
    /// The version of Landlock's interface: from 4 on it denies TCP, from 6 on signals and abstract
    /// sockets.
    pub landlock_version: i32,
}

/// The reason why this host cannot confine a process, with the remedy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum IsolationUnavailable {
    /// The processor is none that filters are written for.
    #[error(
        "system calls cannot be filtered on the architecture `{architecture}`: run metamcp on x86_64 or aarch64"
    )]
    Architecture {
        /// The architecture of this program.
        architecture: &'static str,
    },
    /// The kernel does not know Landlock.
    #[error(
        "the kernel has no Landlock: run Linux 5.13 or later, built with CONFIG_SECURITY_LANDLOCK=y"
    )]
    LandlockAbsent,
    /// The kernel knows Landlock, and its command line leaves it out.
    #[error(
        "Landlock was disabled when the kernel booted: add `landlock` to the list `lsm=` of the kernel command line"
    )]
    LandlockDisabled,
    /// A filter of the service manager or of a container refuses Landlock.
    #[error(
        "the system call landlock_create_ruleset is refused to this process: add `SystemCallFilter=landlock_create_ruleset landlock_add_rule landlock_restrict_self` to its unit, or allow these calls in the seccomp profile of its container"
    )]
    LandlockRefused,
    /// The kernel does not know system call filters.
    #[error(
        "the kernel cannot filter system calls: run one that is built with CONFIG_SECCOMP_FILTER=y"
    )]
    FilterAbsent,
    /// The kernel's filters cannot kill a process.
    #[error(
        "system call filters of this kernel cannot kill a process: run Linux 4.14 or later, without gVisor or another emulation"
    )]
    FilterIncomplete,
    /// A filter of the service manager or of a container refuses another filter.
    #[error(
        "the system call seccomp is refused to this process: add `SystemCallFilter=seccomp` to its unit, or allow the call in the seccomp profile of its container"
    )]
    FilterRefused,
    /// A probe failed in a way that the manuals do not list.
    #[error(
        "the probe of {facility} failed with `{reason}`: compare the kernel and the seccomp profile of this process with a host where it works"
    )]
    Unknown {
        /// The facility of the kernel.
        facility: &'static str,
        /// The error.
        reason: String,
    },
}

/// Returns the isolation that this host offers to this process and its children. Restricts nothing,
/// and takes two system calls.
///
/// # Errors
///
/// [`IsolationUnavailable`] if Landlock or the system call filter cannot be used.
pub fn isolation_support() -> Result<IsolationSupport, IsolationUnavailable> {
    architecture()?;
    let version = kernel_calls::landlock_version();
    let landlock_version = version.map_err(|error| landlock_failure(&error))?;
    kernel_calls::probe_killing_filter().map_err(|error| filter_failure(&error))?;
    Ok(IsolationSupport { landlock_version })
}

/// Returns the architecture of this program, as filters name it.
pub(super) fn architecture() -> Result<TargetArch, IsolationUnavailable> {
    let architecture = std::env::consts::ARCH;
    match architecture {
        "x86_64" => Ok(TargetArch::x86_64),
        "aarch64" => Ok(TargetArch::aarch64),
        _ => Err(IsolationUnavailable::Architecture { architecture }),
    }
}

/// Returns the meaning of an error of landlock_create_ruleset(2).
fn landlock_failure(error: &io::Error) -> IsolationUnavailable {
    match error.raw_os_error() {
        Some(libc::ENOSYS) => IsolationUnavailable::LandlockAbsent,
        Some(libc::EOPNOTSUPP) => IsolationUnavailable::LandlockDisabled,
        Some(libc::EPERM | libc::EACCES) => IsolationUnavailable::LandlockRefused,
        _ => unknown("Landlock", error),
    }
}

/// Returns the meaning of an error of seccomp(2).
fn filter_failure(error: &io::Error) -> IsolationUnavailable {
    match error.raw_os_error() {
        Some(libc::ENOSYS | libc::EINVAL) => IsolationUnavailable::FilterAbsent,
        Some(libc::EOPNOTSUPP) => IsolationUnavailable::FilterIncomplete,
        Some(libc::EPERM | libc::EACCES) => IsolationUnavailable::FilterRefused,
        _ => unknown("system call filters", error),
    }
}

fn unknown(facility: &'static str, error: &io::Error) -> IsolationUnavailable {
    IsolationUnavailable::Unknown { facility, reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_restricts_nothing_and_agrees_with_the_next_one() {
        let first = isolation_support();
        assert_eq!(first, isolation_support());
        if let Ok(support) = first {
            assert!(support.landlock_version >= 1, "{support:?}");
        }
        assert!(std::fs::metadata("/").is_ok(), "files are still readable");
    }

    #[test]
    fn a_refused_call_is_distinguished_from_one_that_the_kernel_lacks() {
        let landlock = |code| landlock_failure(&io::Error::from_raw_os_error(code));
        assert_eq!(landlock(libc::ENOSYS), IsolationUnavailable::LandlockAbsent);
        assert_eq!(landlock(libc::EOPNOTSUPP), IsolationUnavailable::LandlockDisabled);
        assert_eq!(landlock(libc::EPERM), IsolationUnavailable::LandlockRefused);
        let filter = |code| filter_failure(&io::Error::from_raw_os_error(code));
        assert_eq!(filter(libc::ENOSYS), IsolationUnavailable::FilterAbsent);
        assert_eq!(filter(libc::EINVAL), IsolationUnavailable::FilterAbsent);
        assert_eq!(filter(libc::EOPNOTSUPP), IsolationUnavailable::FilterIncomplete);
        assert_eq!(filter(libc::EPERM), IsolationUnavailable::FilterRefused);
        let unknown = landlock(libc::EIO).to_string();
        assert!(unknown.contains("probe of Landlock failed"), "{unknown}");
    }

    #[test]
    fn the_reason_names_the_directive_that_an_operator_can_change() {
        for (reason, remedy) in [
            (IsolationUnavailable::LandlockAbsent, "Linux 5.13"),
            (IsolationUnavailable::LandlockDisabled, "`lsm=`"),
            (IsolationUnavailable::LandlockRefused, "`SystemCallFilter=landlock_create_ruleset"),
            (IsolationUnavailable::FilterAbsent, "CONFIG_SECCOMP_FILTER=y"),
            (IsolationUnavailable::FilterRefused, "`SystemCallFilter=seccomp`"),
        ] {
            assert!(reason.to_string().contains(remedy), "{reason}");
        }
    }
}
