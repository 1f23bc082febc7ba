//! The system calls of this module that have no safe interface.

#![expect(
    unsafe_code,
    reason = "no crate wraps close_range, PR_SET_MDWE, mallopt, localtime_r and the probes of Landlock and seccomp"
)]

use std::{ffi::c_long, io, mem::MaybeUninit, ops::RangeInclusive, ptr};

/// The flag with which landlock_create_ruleset(2) returns the version of its interface.
const LANDLOCK_VERSION: u32 = 1;

/// Closes all descriptors of this process that are in `range`.
///
/// # Errors
///
/// [`io::Error`] if the kernel refuses the call.
pub(super) fn close_descriptors(range: RangeInclusive<u32>) -> io::Result<()> {
    // SAFETY: the call takes numbers. The process owns no value for a descriptor in the range: that
    // is the contract of `confine`, which calls this first.
    let status = unsafe { libc::syscall(libc::SYS_close_range, *range.start(), *range.end(), 0) };
    checked(status).map(drop)
}

/// Makes the kernel refuse memory that was writable and becomes executable, for good. Returns
/// whether the kernel can do so: Linux 6.3 and later can. Source: prctl(2), `PR_SET_MDWE`.
///
/// # Errors
///
/// [`io::Error`] if the call fails for another reason than the kernel's age.
pub(super) fn refuse_executable_memory() -> io::Result<bool> {
    const ABSENT: libc::c_ulong = 0;
    let wanted = libc::c_ulong::from(libc::PR_MDWE_REFUSE_EXEC_GAIN);
    // SAFETY: the call takes numbers, and no code of this process is generated at run time.
    let status = unsafe { libc::prctl(libc::PR_SET_MDWE, wanted, ABSENT, ABSENT, ABSENT) };
    match checked(c_long::from(status)) {
        Ok(_) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns the version of Landlock's interface. Restricts nothing.
///
/// # Errors
///
/// `ENOSYS` if the kernel lacks Landlock, `EOPNOTSUPP` if it was disabled at boot, and the error of
/// a system call filter if one refuses the call.
pub(super) fn landlock_version() -> io::Result<i32> {
    // SAFETY: with this flag, the call takes no memory: the pointer is null and the size is 0.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            ptr::null::<libc::c_void>(),
            0_usize,
            LANDLOCK_VERSION,
        )
    };
    checked(version).map(|version| i32::try_from(version).unwrap_or(i32::MAX))
}

/// Succeeds if a system call filter may kill a process of this kernel. Restricts nothing.
///
/// # Errors
///
/// `ENOSYS` or `EINVAL` if the kernel lacks filters, `EOPNOTSUPP` if they cannot kill a process, and
/// the error of another filter if one refuses the call.
pub(super) fn probe_killing_filter() -> io::Result<()> {
    let action: u32 = libc::SECCOMP_RET_KILL_PROCESS;
    // SAFETY: the call reads one number from a live variable.
    let status = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0, ptr::from_ref(&action))
    };
    checked(status).map(drop)
}

/// Has the allocator of the C library keep freed memory in its heaps.
///
/// A process that has ever had two threads has several heaps. Before glibc shrinks one of the
/// others, it reads a file of `/proc`, and a process without files would be killed for it.
pub(super) fn keep_freed_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt takes numbers, and there is one thread.
    unsafe {
        libc::mallopt(libc::M_TRIM_THRESHOLD, -1);
    }
}

/// Has the C library read the time zone, which it does once.
///
/// It opens a file for any zone but UTC, also for one that `TZ` describes in full. A process without
/// files would be killed when it first converts a time to local time.
pub(super) fn read_time_zone() {
    let (start_of_1970, mut fields) = (0, MaybeUninit::<libc::tm>::uninit());
    // SAFETY: both pointers are to live variables, and the call initialises the second. It reads the
    // environment, which no other thread changes: there is one.
    unsafe {
        libc::localtime_r(&raw const start_of_1970, fields.as_mut_ptr());
    }
}

/// Returns the result of a system call, or the error that it left.
fn checked(status: c_long) -> io::Result<c_long> {
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(status) }
}
