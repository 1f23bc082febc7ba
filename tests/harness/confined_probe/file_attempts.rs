//! Attempts to reach files.

use libc::{AT_FDCWD, O_CREAT, O_RDWR, O_WRONLY};

use crate::attempt::{
    Attempt,
    Refusal::{Always, Landlock},
    Scenery, flag,
};

/// The descriptor of the working directory.
const HERE: usize = flag(AT_FDCWD);
const FILE: usize = Scenery::FILE_DESCRIPTOR;
/// The result of `eventfd2` and others is a descriptor, which `RLIMIT_NOFILE` refuses.
pub(crate) const ATTEMPTS: &[Attempt] = &[
    Attempt::new("openat", libc::SYS_openat, |s| [HERE, s.file(), 0, 0, 0, 0])
        .possible()
        .refused(Always),
    Attempt::new("openat_creates", libc::SYS_openat, |s| {
        [HERE, s.missing(), flag(O_CREAT | O_RDWR), 0o600, 0, 0]
    })
    .possible()
    .refused(Always),
    Attempt::new("openat2", libc::SYS_openat2, |s| [HERE, s.file(), s.stored([0, 0, 0]), 24, 0, 0])
        .possible()
        .refused(Always),
    Attempt::new("unlinkat", libc::SYS_unlinkat, |s| [HERE, s.file(), 0, 0, 0, 0])
        .possible()
        .refused(Always),
    Attempt::new("renameat2", libc::SYS_renameat2, |s| [HERE, s.file(), HERE, s.missing(), 0, 0])
        .possible()
        .refused(Always),
    Attempt::new("mkdirat", libc::SYS_mkdirat, |s| [HERE, s.missing(), 0o700, 0, 0, 0])
        .possible()
        .refused(Always),
    Attempt::new("symlinkat", libc::SYS_symlinkat, |s| [s.file(), HERE, s.missing(), 0, 0, 0])
        .possible()
        .refused(Always),
    Attempt::new("linkat", libc::SYS_linkat, |s| [HERE, s.file(), HERE, s.missing(), 0, 0])
        .possible(),
    Attempt::new("mknodat", libc::SYS_mknodat, |s| {
        [HERE, s.missing(), libc::S_IFIFO as usize | 0o600, 0, 0, 0]
    })
    .possible()
    .refused(Always),
    Attempt::new("truncate", libc::SYS_truncate, |s| [s.file(), 1, 0, 0, 0, 0])
        .possible()
        .refused(Landlock(3)),
    Attempt::new("fchmodat", libc::SYS_fchmodat, |s| [HERE, s.file(), 0, 0, 0, 0]).possible(),
    Attempt::new("fchownat", libc::SYS_fchownat, |s| [HERE, s.file(), 1, 1, 0, 0]).refused(Always),
    Attempt::new("utimensat", libc::SYS_utimensat, |s| [HERE, s.file(), 0, 0, 0, 0]).possible(),
    Attempt::new("setxattr", libc::SYS_setxattr, |s| [s.file(), s.file(), s.file(), 1, 0, 0]),
    Attempt::new("newfstatat", libc::SYS_newfstatat, |s| [HERE, s.file(), s.page(), 0, 0, 0])
        .possible(),
    Attempt::new("statx", libc::SYS_statx, |s| [HERE, s.file(), 0, 0x7ff, s.page(), 0]).possible(),
    Attempt::new("readlinkat", libc::SYS_readlinkat, |s| [HERE, s.link(), s.page(), 64, 0, 0])
        .possible(),
    Attempt::new("getdents64", libc::SYS_getdents64, |s| [FILE, s.page(), 4096, 0, 0, 0])
        .refused(Always),
    Attempt::new("getcwd", libc::SYS_getcwd, |s| [s.page(), 4096, 0, 0, 0, 0]).possible(),
    Attempt::new("chdir", libc::SYS_chdir, |s| [s.directory(), 0, 0, 0, 0, 0]).possible(),
    Attempt::new("chroot", libc::SYS_chroot, |s| [s.directory(), 0, 0, 0, 0, 0]).refused(Always),
    Attempt::new("mount", libc::SYS_mount, |s| [s.directory(), s.directory(), 0, 4096, 0, 0])
        .refused(Always),
    Attempt::new("umount2", libc::SYS_umount2, |s| [s.directory(), 0, 0, 0, 0, 0]).refused(Always),
    Attempt::new("pivot_root", libc::SYS_pivot_root, |s| {
        [s.directory(), s.directory(), 0, 0, 0, 0]
    })
    .refused(Always),
    Attempt::new("open_tree", libc::SYS_open_tree, |s| [HERE, s.directory(), 0, 0, 0, 0])
        .refused(Always),
    Attempt::new("fsopen", libc::SYS_fsopen, |s| [s.file(), 0, 0, 0, 0, 0]).refused(Always),
    Attempt::new("move_mount", libc::SYS_move_mount, |s| {
        [HERE, s.directory(), HERE, s.directory(), 0, 0]
    })
    .refused(Always),
    Attempt::new("name_to_handle_at", libc::SYS_name_to_handle_at, |s| {
        [HERE, s.file(), s.stored([128, 0]), s.page() + 256, 0, 0]
    }),
    Attempt::new("open_by_handle_at", libc::SYS_open_by_handle_at, |s| {
        [HERE, s.stored([8, 0]), 0, 0, 0, 0]
    })
    .refused(Always),
    Attempt::new("inotify_init1", libc::SYS_inotify_init1, |_| [0; 6]).possible().refused(Always),
    Attempt::new("fanotify_init", libc::SYS_fanotify_init, |_| [0; 6]).refused(Always),
    Attempt::new("memfd_create", libc::SYS_memfd_create, |s| [s.file(), 0, 0, 0, 0, 0])
        .possible()
        .refused(Always),
    Attempt::new("execve", libc::SYS_execve, |s| [s.file(), 0, 0, 0, 0, 0]).refused(Always),
    // With an empty path, the descriptor is executed.
    Attempt::new("execveat", libc::SYS_execveat, |s| {
        [FILE, s.stored([0]), 0, 0, flag(libc::AT_EMPTY_PATH), 0]
    })
    .refused(Always),
    Attempt::new("read_3", libc::SYS_read, |s| [FILE, s.page(), 1, 0, 0, 0])
        .possible()
        .refused(Always),
    Attempt::new("write_1", libc::SYS_write, |s| [1, s.file(), 1, 0, 0, 0])
        .possible()
        .refused(Always),
    Attempt::new("write_2", libc::SYS_write, |s| [2, s.file(), 1, 0, 0, 0])
        .possible()
        .refused(Always),
    Attempt::new("write_3", libc::SYS_write, |s| [FILE, s.file(), 1, 0, 0, 0])
        .possible()
        .refused(Always),
    Attempt::new("pread64", libc::SYS_pread64, |s| [FILE, s.page(), 1, 0, 0, 0])
        .possible()
        .refused(Always),
    Attempt::new("sendfile", libc::SYS_sendfile, |_| [1, FILE, 0, 1, 0, 0])
        .possible()
        .refused(Always),
    Attempt::new("copy_file_range", libc::SYS_copy_file_range, |_| [FILE, 0, 1, 0, 1, 0])
        .refused(Always),
    Attempt::new("splice", libc::SYS_splice, |_| [0, 0, 1, 0, 1, 0]).refused(Always),
    Attempt::new("dup", libc::SYS_dup, |_| [0; 6]).possible().refused(Always),
    Attempt::new("fcntl_dupfd", libc::SYS_fcntl, |_| [0, flag(libc::F_DUPFD), 0, 0, 0, 0])
        .possible()
        .refused(Always),
    Attempt::new("fcntl_setfl", libc::SYS_fcntl, |_| [0, flag(libc::F_GETFL), 0, 0, 0, 0])
        .possible(),
    Attempt::new("ioctl_tiocsti", libc::SYS_ioctl, |s| {
        [0, libc::TIOCSTI as usize, s.file(), 0, 0, 0]
    })
    .refused(Always),
    Attempt::new("ioctl_fionread", libc::SYS_ioctl, |s| {
        [0, libc::FIONREAD as usize, s.page(), 0, 0, 0]
    })
    .possible(),
    Attempt::new("pipe2", libc::SYS_pipe2, |s| [s.page(), 0, 0, 0, 0, 0])
        .possible()
        .refused(Always),
    Attempt::new("eventfd2", libc::SYS_eventfd2, |_| [0; 6]).possible().refused(Always),
    Attempt::new("epoll_create1", libc::SYS_epoll_create1, |_| [0; 6]).possible().refused(Always),
];

/// The calls that later architectures have under other names only.
#[cfg(target_arch = "x86_64")]
pub(crate) const LEGACY_ATTEMPTS: &[Attempt] = &[
    Attempt::new("open", libc::SYS_open, |s| [s.file(), flag(O_WRONLY), 0, 0, 0, 0])
        .possible()
        .refused(Always),
    Attempt::new("creat", libc::SYS_creat, |s| [s.missing(), 0o600, 0, 0, 0, 0])
        .possible()
        .refused(Always),
    Attempt::new("unlink", libc::SYS_unlink, |s| [s.file(), 0, 0, 0, 0, 0])
        .possible()
        .refused(Always),
    Attempt::new("rename", libc::SYS_rename, |s| [s.file(), s.missing(), 0, 0, 0, 0])
        .possible()
        .refused(Always),
    Attempt::new("mkdir", libc::SYS_mkdir, |s| [s.missing(), 0o700, 0, 0, 0, 0])
        .possible()
        .refused(Always),
    Attempt::new("chmod", libc::SYS_chmod, |s| [s.file(), 0, 0, 0, 0, 0]).possible(),
    Attempt::new("stat", libc::SYS_stat, |s| [s.file(), s.page(), 0, 0, 0, 0]).possible(),
    Attempt::new("access", libc::SYS_access, |s| [s.file(), 0, 0, 0, 0, 0]).possible(),
    Attempt::new("readlink", libc::SYS_readlink, |s| [s.link(), s.page(), 64, 0, 0, 0]).possible(),
    Attempt::new("getdents", libc::SYS_getdents, |s| [FILE, s.page(), 4096, 0, 0, 0])
        .refused(Always),
    Attempt::new("dup2", libc::SYS_dup2, |_| [0, 9, 0, 0, 0, 0]).possible().refused(Always),
    Attempt::new("fork", libc::SYS_fork, |_| [0; 6]),
    Attempt::new("vfork", libc::SYS_vfork, |_| [0; 6]),
    Attempt::new("alarm", libc::SYS_alarm, |_| [1000, 0, 0, 0, 0, 0]).possible(),
    Attempt::new("poll", libc::SYS_poll, |_| [0; 6]).possible(),
    Attempt::new("iopl", libc::SYS_iopl, |_| [3, 0, 0, 0, 0, 0]).refused(Always),
    Attempt::new("modify_ldt", libc::SYS_modify_ldt, |s| [0, s.page(), 16, 0, 0, 0]),
    Attempt::new("getpid_of_x32", 0x4000_0000 + libc::SYS_getpid, |_| [0; 6]),
];

/// No call has another name here.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) const LEGACY_ATTEMPTS: &[Attempt] = &[];
