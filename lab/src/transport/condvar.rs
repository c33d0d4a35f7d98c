//! A queue behind a mutex and a condition variable: the least that hands an `Arc` to a sleeping
//! thread.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use crate::picture::Pictures;
use crate::probe::Arrivals;
use crate::transport::{End, Ends, Receiver, Sender, Spec, Transport};

pub(crate) fn ends(spec: &Spec, arrivals: Arc<Arrivals>) -> Ends {
    let shared = Arc::<Shared>::default();
    let sender = Sending {
        shared: Arc::clone(&shared),
        pictures: Pictures::new(spec.size),
        clones: spec.transport == Transport::CondvarClone,
        frames: (0..FRAMES).map(|_| Arc::new(vec![0; spec.size])).collect(),
    };
    (Box::new(sender), Box::new(Receiving { shared, arrivals }))
}

/// Frames in rotation; one is free again when the receiver has dropped it.
const FRAMES: usize = 4;

#[derive(Default)]
struct Shared {
    queue: Mutex<VecDeque<Arc<Vec<u8>>>>,
    news: Condvar,
}

struct Sending {
    shared: Arc<Shared>,
    pictures: Pictures,
    clones: bool,
    frames: VecDeque<Arc<Vec<u8>>>,
}

impl Sender for Sending {
    fn prepare(&mut self) -> Result<(), String> {
        self.frames.rotate_left(1);
        if Arc::get_mut(&mut self.frames[0]).is_none() {
            self.frames[0] = Arc::new(vec![0; self.pictures.size()]);
        }
        Ok(())
    }

    fn draw(&mut self, number: u64) -> Result<(), String> {
        let frame = Arc::get_mut(&mut self.frames[0]).ok_or("the frame is in use")?;
        self.pictures.draw(number, frame);
        Ok(())
    }

    fn publish(&mut self) -> Result<(), String> {
        let frame = &self.frames[0];
        let sent = if self.clones { Arc::new(Vec::clone(frame)) } else { Arc::clone(frame) };
        self.shared.queue.lock().unwrap_or_else(PoisonError::into_inner).push_back(sent);
        self.shared.news.notify_one();
        Ok(())
    }
}

struct Receiving {
    shared: Arc<Shared>,
    arrivals: Arc<Arrivals>,
}

impl Receiver for Receiving {
    fn run(self: Box<Self>, end: &End) -> Result<(), String> {
        let shared = Arc::clone(&self.shared);
        end.on_end(move || {
            // Whoever looks and whoever sleeps both find the end.
            drop(shared.queue.lock());
            shared.news.notify_all();
        });
        let mut queue = self.shared.queue.lock().unwrap_or_else(PoisonError::into_inner);
        while !end.is_over() {
            if let Some(frame) = queue.pop_front() {
                drop(queue);
                self.arrivals.arrived(&frame);
                drop(frame);
                queue = self.shared.queue.lock().unwrap_or_else(PoisonError::into_inner);
            } else {
                queue = self.shared.news.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
        }
        Ok(())
    }
}
