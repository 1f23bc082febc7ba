//! Attempts to make memory executable or shared, and to change the machine.

use libc::{
    MAP_ANONYMOUS, MAP_FIXED, MAP_PRIVATE, MAP_SHARED, MREMAP_FIXED, MREMAP_MAYMOVE, PROT_EXEC,
    PROT_READ, PROT_WRITE,
};

use crate::attempt::{
    Attempt, PAGE_BYTES,
    Refusal::{Always, ExecutableMemory},
    Scenery, flag,
};

const DATA: usize = flag(PROT_READ | PROT_WRITE);
const PRIVATE: usize = flag(MAP_PRIVATE | MAP_ANONYMOUS);
const NO_FILE: usize = usize::MAX;

pub(crate) const ATTEMPTS: &[Attempt] = &[
    Attempt::new("mmap_executable", libc::SYS_mmap, |_| {
        [0, PAGE_BYTES, flag(PROT_READ | PROT_EXEC), PRIVATE, NO_FILE, 0]
    })
    .possible(),
    Attempt::new("mmap_writable_executable", libc::SYS_mmap, |_| {
        [0, PAGE_BYTES, DATA | flag(PROT_EXEC), PRIVATE, NO_FILE, 0]
    })
    .possible()
    .refused(ExecutableMemory),
    Attempt::new("mmap_shared", libc::SYS_mmap, |_| {
        [0, PAGE_BYTES, DATA, flag(MAP_SHARED | MAP_ANONYMOUS), NO_FILE, 0]
    })
    .possible(),
    Attempt::new("mmap_fixed", libc::SYS_mmap, |s| {
        [s.page(), PAGE_BYTES, DATA, PRIVATE | flag(MAP_FIXED), NO_FILE, 0]
    })
    .possible(),
    Attempt::new("mmap_file", libc::SYS_mmap, |_| {
        [0, PAGE_BYTES, flag(PROT_READ), flag(MAP_PRIVATE), Scenery::FILE_DESCRIPTOR, 0]
    })
    .possible()
    .refused(Always),
    Attempt::new("mmap_socket", libc::SYS_mmap, |_| {
        [0, PAGE_BYTES, flag(PROT_READ), flag(MAP_PRIVATE), 0, 0]
    })
    .refused(Always),
    Attempt::new("mprotect_executable", libc::SYS_mprotect, |s| {
        [s.page(), PAGE_BYTES, flag(PROT_READ | PROT_EXEC), 0, 0, 0]
    })
    .possible()
    .refused(ExecutableMemory),
    Attempt::new("pkey_mprotect_executable", libc::SYS_pkey_mprotect, |s| {
        [s.page(), PAGE_BYTES, flag(PROT_READ | PROT_EXEC), usize::MAX, 0, 0]
    })
    .possible()
    .refused(ExecutableMemory),
    Attempt::new("mremap_fixed", libc::SYS_mremap, |s| {
        let target = s.page() + PAGE_BYTES;
        [s.page(), PAGE_BYTES, PAGE_BYTES, flag(MREMAP_MAYMOVE | MREMAP_FIXED), target, 0]
    })
    .possible(),
    Attempt::new("mremap_dontunmap", libc::SYS_mremap, |s| {
        let flags = flag(MREMAP_MAYMOVE | libc::MREMAP_DONTUNMAP);
        [s.page(), PAGE_BYTES, PAGE_BYTES, flags, 0, 0]
    })
    .possible(),
    Attempt::new("remap_file_pages", libc::SYS_remap_file_pages, |s| {
        [s.page(), PAGE_BYTES, 0, 0, 0, 0]
    }),
    Attempt::new("madvise_mergeable", libc::SYS_madvise, |s| {
        [s.page(), PAGE_BYTES, flag(libc::MADV_WILLNEED), 0, 0, 0]
    })
    .possible(),
    Attempt::new("mlock", libc::SYS_mlock, |s| [s.page(), PAGE_BYTES, 0, 0, 0, 0]).refused(Always),
    Attempt::new("shmget", libc::SYS_shmget, |_| [0, PAGE_BYTES, 0o600, 0, 0, 0]),
    Attempt::new("shmat", libc::SYS_shmat, |_| [usize::MAX, 0, 0, 0, 0, 0]),
    Attempt::new("msgget", libc::SYS_msgget, |_| [0, 0o600, 0, 0, 0, 0]),
    Attempt::new("semget", libc::SYS_semget, |_| [0, 1, 0o600, 0, 0, 0]),
    Attempt::new("mq_open", libc::SYS_mq_open, |s| [s.file(), 0, 0, 0, 0, 0]).refused(Always),
    Attempt::new("futex_requeue", libc::SYS_futex, |s| {
        [s.page(), flag(libc::FUTEX_REQUEUE), 0, 0, s.page() + 64, 0]
    })
    .possible(),
    Attempt::new("userfaultfd", libc::SYS_userfaultfd, |_| [1, 0, 0, 0, 0, 0]).refused(Always),
    Attempt::new("io_uring_setup", libc::SYS_io_uring_setup, |s| [1, s.page(), 0, 0, 0, 0])
        .refused(Always),
    Attempt::new("io_uring_enter", libc::SYS_io_uring_enter, |_| [3, 0, 0, 0, 0, 0])
        .refused(Always),
    Attempt::new("io_setup", libc::SYS_io_setup, |s| [1, s.page(), 0, 0, 0, 0]),
    Attempt::new("bpf", libc::SYS_bpf, |s| {
        // A map with four bytes for key and value, and one entry.
        [0, s.stored([2 | 4 << 32, 4 | 1 << 32]), 16, 0, 0, 0]
    })
    .refused(Always),
    Attempt::new("perf_event_open", libc::SYS_perf_event_open, |s| {
        [s.stored([1 | 64 << 32, 0]), 0, usize::MAX, usize::MAX, 0, 0]
    })
    .refused(Always),
    Attempt::new("keyctl", libc::SYS_keyctl, |_| [0, flag(-3), 0, 0, 0, 0]),
    Attempt::new("add_key", libc::SYS_add_key, |s| [s.file(), s.file(), s.file(), 1, flag(-1), 0]),
    Attempt::new("request_key", libc::SYS_request_key, |s| [s.file(), s.file(), 0, 0, 0, 0]),
    Attempt::new("reboot", libc::SYS_reboot, |_| [0; 6]).refused(Always),
    Attempt::new("kexec_load", libc::SYS_kexec_load, |_| [0, 0, 0, 1, 0, 0]).refused(Always),
    Attempt::new("init_module", libc::SYS_init_module, |s| [s.page(), 1, s.page(), 0, 0, 0])
        .refused(Always),
    Attempt::new("finit_module", libc::SYS_finit_module, |s| [3, s.page(), 0, 0, 0, 0])
        .refused(Always),
    Attempt::new("delete_module", libc::SYS_delete_module, |s| [s.file(), 0, 0, 0, 0, 0])
        .refused(Always),
    Attempt::new("swapon", libc::SYS_swapon, |s| [s.file(), 0, 0, 0, 0, 0]).refused(Always),
    Attempt::new("swapoff", libc::SYS_swapoff, |s| [s.file(), 0, 0, 0, 0, 0]).refused(Always),
    Attempt::new("acct", libc::SYS_acct, |s| [s.missing(), 0, 0, 0, 0, 0]).refused(Always),
    Attempt::new("quotactl", libc::SYS_quotactl, |s| [0, s.file(), 0, s.page(), 0, 0])
        .refused(Always),
    Attempt::new("sethostname", libc::SYS_sethostname, |s| [s.missing(), 0, 0, 0, 0, 0])
        .refused(Always),
    Attempt::new("syslog", libc::SYS_syslog, |s| [5, s.page(), 0, 0, 0, 0]).refused(Always),
    Attempt::new("clock_settime", libc::SYS_clock_settime, |s| {
        [flag(libc::CLOCK_MONOTONIC), s.page(), 0, 0, 0, 0]
    })
    .refused(Always),
    Attempt::new("vhangup", libc::SYS_vhangup, |_| [0; 6]).refused(Always),
];
