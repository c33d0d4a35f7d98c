//! On which processors threads run.

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The processors that the calling thread may run on, in ascending order, as the system counts them.
///
/// A machine with more than [`PROCESSORS_MAX`] is refused with an error.
pub fn allowed() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..PROCESSORS_MAX).filter(|it| set.is_set(*it)).collect())
}

/// Lets the calling thread run on these alone. Threads and processes that it starts from now on inherit that.
///
/// Processors that are not there, or not for this process, are passed over; it is an error if none is left. One from
/// [`PROCESSORS_MAX`] on is refused.
pub fn stay_on(processors: &[usize]) -> io::Result<()> {
    if let Some(beyond) = processors.iter().find(|it| PROCESSORS_MAX <= **it) {
        let error = format!("processor {beyond}: allowed are those below {PROCESSORS_MAX}");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, error));
    }
    let mut set = CpuSet::new();
    processors.iter().for_each(|it| set.set(*it));
    Ok(sched_setaffinity(None, &set)?)
}

/// As many processors as can be told apart.
pub const PROCESSORS_MAX: usize = CpuSet::MAX_CPU;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::thread;

    use super::*;

    #[test]
    fn a_thread_stays_where_it_is_told_and_others_do_not() {
        let before = allowed().unwrap();
        let one = *before.last().unwrap();
        let (told, inherited) = thread::spawn(move || {
            stay_on(&[one]).unwrap();
            let status = fs::read_to_string("/proc/thread-self/status").unwrap();
            let told = status.lines().find_map(|it| it.strip_prefix("Cpus_allowed_list:"));
            (told.unwrap().trim().to_owned(), thread::spawn(allowed).join().unwrap().unwrap())
        })
        .join()
        .unwrap();
        assert_eq!((told, inherited), (one.to_string(), vec![one]));
        assert_eq!(allowed().unwrap(), before);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        assert_eq!(stay_on(&[PROCESSORS_MAX]).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert_eq!(stay_on(&[]).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
