//! Every interleaving, and every stale value that the memory model allows, of ringing, draining
//! and falling asleep.
#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

use tsuji_platform::memory::Backing;
use tsuji_transport::bell::{Bell, Bells, Cell};

/// Data that the bells must make visible: nothing else orders it.
fn flag() -> Arc<AtomicBool> {
    Arc::new(AtomicBool::new(false))
}

fn ringer(cell: &std::sync::Arc<Cell>, data: &Arc<AtomicBool>) -> thread::JoinHandle<()> {
    let (cell, data) = (std::sync::Arc::clone(cell), Arc::clone(data));
    thread::spawn(move || {
        data.store(true, Ordering::Relaxed);
        cell.ring();
    })
}

fn cell(bells: &std::sync::Arc<Bells>, bell: &Bell, entity: u16) -> std::sync::Arc<Cell> {
    let cell = bells.claim_cell().unwrap();
    cell.attach(bell, entity);
    bell.drain(|_| ());
    std::sync::Arc::new(cell)
}

/// A thread that looks, finds nothing and sleeps; loom reports it if it is never woken.
fn sleep_until(bell: &Bell, all: &[Arc<AtomicBool>]) {
    loop {
        bell.drain(|_| ());
        if all.iter().all(|it| it.load(Ordering::Relaxed)) {
            return;
        }
        bell.wait(None);
    }
}

#[test]
fn loom_a_ring_is_not_lost() {
    loom::model(|| {
        let bells = Bells::create(&Backing::Anonymous).unwrap();
        let bell = bells.claim_bell().unwrap();
        let (cell, data) = (cell(&bells, &bell, 0), flag());
        let ringer = ringer(&cell, &data);
        sleep_until(&bell, &[data]);
        ringer.join().unwrap();
    });
}

#[test]
fn loom_two_rings_of_one_cell_are_not_lost() {
    loom::model(|| {
        let bells = Bells::create(&Backing::Anonymous).unwrap();
        let bell = bells.claim_bell().unwrap();
        let (cell, data) = (cell(&bells, &bell, 3), [flag(), flag()]);
        let ringers = data.each_ref().map(|data| ringer(&cell, data));
        sleep_until(&bell, &data);
        ringers.into_iter().for_each(|it| it.join().unwrap());
    });
}

#[test]
fn loom_rings_of_two_cells_are_not_lost() {
    loom::model(|| {
        let bells = Bells::create(&Backing::Anonymous).unwrap();
        let bell = bells.claim_bell().unwrap();
        // Their marks are in different words.
        let near = cell(&bells, &bell, 1);
        let _between = bells.claim_cell().unwrap();
        let far = cell(&bells, &bell, 100);
        let data = [flag(), flag()];
        let ringers = [ringer(&near, &data[0]), ringer(&far, &data[1])];
        sleep_until(&bell, &data);
        ringers.into_iter().for_each(|it| it.join().unwrap());
    });
}

/// A ringer may be killed or delayed between any two steps; another's ring must wake all the same.
#[test]
fn loom_what_was_not_seen_is_marked() {
    loom::model(|| {
        let bells = Bells::create(&Backing::Anonymous).unwrap();
        let bell = bells.claim_bell().unwrap();
        let (cell, data) = (cell(&bells, &bell, 3), [flag(), flag()]);
        let ringers = data.each_ref().map(|data| ringer(&cell, data));
        let mut drained = false;
        bell.drain(|_| drained = true);
        let seen = data.each_ref().map(|it| drained && it.load(Ordering::Relaxed));
        ringers.into_iter().for_each(|it| it.join().unwrap());
        assert!(bell.is_rung() || seen == [true; 2], "seen {seen:?} and nothing is marked");
    });
}

#[test]
fn loom_a_cell_that_moves_loses_nothing() {
    loom::model(|| {
        let bells = Bells::create(&Backing::Anonymous).unwrap();
        let (one, two) = (bells.claim_bell().unwrap(), bells.claim_bell().unwrap());
        let (cell, data) = (cell(&bells, &one, 0), flag());
        let ringer = ringer(&cell, &data);
        cell.attach(&two, 1);
        sleep_until(&two, &[data]);
        ringer.join().unwrap();
    });
}

/// Who sleeps at each of its bells is woken by one ring.
#[test]
fn loom_a_cell_with_two_bells_rings_both() {
    loom::model(|| {
        let bells = Bells::create(&Backing::Anonymous).unwrap();
        let (one, two) = (bells.claim_bell().unwrap(), bells.claim_bell().unwrap());
        let (cell, data) = (cell(&bells, &one, 0), flag());
        cell.attach(&two, 1);
        two.drain(|_| ());
        let ringer = ringer(&cell, &data);
        sleep_until(&one, std::slice::from_ref(&data));
        sleep_until(&two, &[data]);
        ringer.join().unwrap();
    });
}

#[test]
fn loom_two_threads_wake_each_other() {
    loom::model(|| {
        let bells = Bells::create(&Backing::Anonymous).unwrap();
        let (one, two) = (bells.claim_bell().unwrap(), bells.claim_bell().unwrap());
        let (at_one, at_two) = (cell(&bells, &one, 0), cell(&bells, &two, 0));
        let (ping, pong) = (flag(), flag());
        let answer = {
            let (ping, pong) = (Arc::clone(&ping), Arc::clone(&pong));
            let at_one = std::sync::Arc::clone(&at_one);
            thread::spawn(move || {
                sleep_until(&two, &[ping]);
                pong.store(true, Ordering::Relaxed);
                at_one.ring();
            })
        };
        ping.store(true, Ordering::Relaxed);
        at_two.ring();
        sleep_until(&one, &[pong]);
        answer.join().unwrap();
    });
}

#[test]
fn loom_a_page_that_is_shared_meanwhile_loses_no_ring() {
    loom::model(|| {
        let bells = Bells::create(&Backing::Anonymous).unwrap();
        let bell = bells.claim_bell().unwrap();
        let data = flag();
        let cell = cell(&bells, &bell, 0);
        let sharer = {
            let bells = std::sync::Arc::clone(&bells);
            thread::spawn(move || bells.share())
        };
        let ringer = ringer(&cell, &data);
        sleep_until(&bell, &[data]);
        sharer.join().unwrap();
        ringer.join().unwrap();
    });
}
