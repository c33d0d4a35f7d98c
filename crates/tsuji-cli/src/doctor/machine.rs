//! What the kernel and the limits of this process give.
//!
//! Read from `/proc` and `/sys`, or tried for a moment.

use std::fs;
use std::io::Write;
use std::path::Path;

use tsuji::TransportReport;
use tsuji_core::Policy;
use tsuji_platform::limit::{Counted, Limit, limit};
use tsuji_platform::watch;

use super::{Finding, State};
use crate::figures;

/// Descriptors that 200 topics and 64 peers stay below by far.
const FILES_WANTED: u64 = 1024;

/// The kernels that brought what is used.
const MEMFD: (u32, u32) = (3, 17);
const POPULATE: (u32, u32) = (5, 14);

pub(super) fn examine(policy: &Policy, reports: &[TransportReport]) -> Vec<Finding> {
    let mut findings = vec![kernel(), open_files(), watches()];
    findings.extend(odd_limits());
    findings.extend(memory(reports));
    let settings = policy.transports().iter().flat_map(|it| &it.settings);
    // Transports say what their settings mean; a folder is a folder for all of them.
    for setting in settings.filter(|it| it.value.starts_with('/')) {
        findings.push(memory_folder(Path::new(&*setting.value)));
    }
    findings
}

/// The shared memory that transports may take, against what there is.
fn memory(reports: &[TransportReport]) -> Option<Finding> {
    let total = meminfo("MemTotal:")?;
    let limit = cgroup_limit().filter(|it| *it < total);
    let mut found = figures::bytes(total);
    if let Some(limit) = limit {
        found.push_str(&format!(", of which this cgroup may use {}", figures::bytes(limit)));
    }
    let there = limit.unwrap_or(total);
    let mut greedy = None;
    for report in reports {
        let figure = report.figures.iter().find(|(name, _)| name == "memory_bytes_max");
        let Some((_, most)) = figure else { continue };
        found.push_str(&format!("; {} takes at most {}", report.name, figures::bytes(*most)));
        if *most > there {
            greedy = Some(&report.name);
        }
    }
    let Some(name) = greedy else {
        return Some(Finding::new("machine", "memory", State::Good, found));
    };
    let half_mib = (there / 2) >> 20;
    Some(Finding::new("machine", "memory", State::Warning, found).mend(format!(
        "in the policy: <transport name=\"{name}\"><set key=\"memory_bytes_max\" value=\"{half_mib}MiB\"/></transport>"
    )))
}

fn kernel() -> Finding {
    let text = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let release = text.trim();
    let mut numbers = release.split(['.', '-']).map_while(|it| it.parse::<u32>().ok());
    let (Some(major), Some(minor)) = (numbers.next(), numbers.next()) else {
        return Finding::new("machine", "kernel", State::Note, "its version cannot be read");
    };
    let version = (major, minor);
    if version < MEMFD {
        let text = format!("{release}: no memfd; at least {}.{} is needed", MEMFD.0, MEMFD.1);
        return Finding::new("machine", "kernel", State::Broken, text)
            .mend("install a newer kernel");
    }
    if version < POPULATE {
        let text =
            format!("{release}: futex, memfd; no MADV_POPULATE, so the first samples are slower");
        return Finding::new("machine", "kernel", State::Note, text);
    }
    Finding::new(
        "machine",
        "kernel",
        State::Good,
        format!("{release}: futex, memfd, MADV_POPULATE"),
    )
}

fn open_files() -> Finding {
    let Limit { soft, hard } = limit(Counted::Descriptors);
    let Some(soft) = soft else {
        return Finding::new("machine", "open files", State::Good, "no limit");
    };
    let most = hard.unwrap_or(u64::MAX);
    let mut found = format!("at most {soft}");
    if soft < most {
        let most = hard.map_or_else(|| "no limit".to_owned(), |it| it.to_string());
        found.push_str(&format!("; a process that meets many raises it by itself, up to {most}"));
    }
    if FILES_WANTED <= most {
        return Finding::new("machine", "open files", State::Good, found);
    }
    let text = format!("{found}; a process needs one for each other one while it meets them");
    Finding::new("machine", "open files", State::Warning, text).mend(format!(
        "as root: echo '* hard nofile {FILES_WANTED}' > /etc/security/limits.d/tsuji.conf, then log in again"
    ))
}

/// Limits that most processes do not have.
fn odd_limits() -> Vec<Finding> {
    let limited = |counted, what, flag: &str, consequence: &str| {
        let bytes = limit(counted).soft?;
        let found =
            format!("at most {}, as `ulimit {flag}` says: {consequence}", figures::bytes(bytes));
        let finding = Finding::new("machine", what, State::Warning, found);
        Some(finding.mend(format!("ulimit {flag} unlimited")))
    };
    let limits = [
        limited(
            Counted::FileBytes,
            "file size",
            "-f",
            "shared memory and recordings beyond it are refused",
        ),
        limited(
            Counted::AddressBytes,
            "address space",
            "-v",
            "shared memory of others that does not fit is not mapped, and its samples wait",
        ),
    ];
    limits.into_iter().flatten().collect()
}

/// Instances of inotify. One process of a domain needs one, for all.
fn watches() -> Finding {
    const WHAT: &str = "inotify";
    if watch::is_to_be_had() {
        return Finding::new("machine", WHAT, State::Good, "files can be watched");
    }
    let most = fs::read_to_string("/proc/sys/fs/inotify/max_user_instances").unwrap_or_default();
    let text = format!(
        "this user has all instances that it may have (fs.inotify.max_user_instances {}): one process of each domain \
         looks every second at policy files and sockets instead",
        most.trim()
    );
    Finding::new("machine", WHAT, State::Note, text)
        .mend("as root: sysctl -w fs.inotify.max_user_instances=1024")
}

/// A folder that a transport takes its memory from.
fn memory_folder(folder: &Path) -> Finding {
    let name = folder.display().to_string();
    let size = mounted_size(folder);
    let size_text = size.map_or(String::new(), |it| format!(", {} in all", figures::bytes(it)));
    match probe(folder) {
        Ok(()) => Finding::new(
            "machine",
            "memory folder",
            State::Good,
            format!("{name}: writable{size_text}"),
        ),
        Err(error) => {
            let mend = match error.kind() {
                std::io::ErrorKind::StorageFull => format!("mount -o remount,size=50% {name}"),
                std::io::ErrorKind::NotFound => {
                    format!("mkdir -p {name} && mount -t tmpfs tmpfs {name}")
                }
                _ => {
                    format!("chmod u+rwx {name}, or name another folder as `backing` in the policy")
                }
            };
            Finding::new(
                "machine",
                "memory folder",
                State::Broken,
                format!("{name}: {error}{size_text}"),
            )
            .mend(mend)
        }
    }
}

/// Whether a page can be written there.
fn probe(folder: &Path) -> std::io::Result<()> {
    let path = folder.join(format!("tsuji-doctor-{}", std::process::id()));
    let mut file = fs::File::create_new(&path)?;
    let written = file.write_all(&[0; 4096]);
    fs::remove_file(&path)?;
    written
}

/// The size that a mount was given, if the folder is a mount of its own and was given one.
fn mounted_size(folder: &Path) -> Option<u64> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let folder = folder.to_str()?;
    let line = mounts.lines().rfind(|line| line.split(' ').nth(1) == Some(folder))?;
    let options = line.split(' ').nth(3)?;
    let size = options.split(',').find_map(|it| it.strip_prefix("size="))?;
    let kib: u64 = size.strip_suffix('k')?.parse().ok()?;
    Some(kib * 1024)
}

fn meminfo(field: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

/// The memory that the control group of this process may use, in either version of the groups.
fn cgroup_limit() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/");
    let own = Path::new("/sys/fs/cgroup").join(own.trim_start_matches('/'));
    // A group is bound by those above it too.
    let above = own.ancestors().take_while(|it| it.starts_with("/sys/fs/cgroup"));
    let two = above.filter_map(|it| fs::read_to_string(it.join("memory.max")).ok());
    let one = fs::read_to_string("/sys/fs/cgroup/memory/memory.limit_in_bytes").ok();
    two.chain(one).filter_map(|it| it.trim().parse().ok()).min()
}
