//! The recording that is played, as clients of rosbridge ask for it and control it.

use serde_json::{Value, json};
use tsuji_rosbridge::access::{Access, UserKey};

use super::service::read_args;
use crate::body::OwnedBody;
use crate::playback::{Playback, PlaybackWish, check_rate, may_control};

/// How far it is, and whether this user may control it. Times are in seconds since 1970.
pub(super) fn told(playback: &dyn Playback, access: &Access, user: Option<UserKey>) -> Value {
    let (state, (start_ns, end_ns)) = (playback.state(), playback.span_ns());
    json!({
        "status": state.status.word(),
        "time": seconds(state.time_ns),
        "start": seconds(start_ns),
        "end": seconds(end_ns),
        "rate": state.rate,
        "trouble": playback.trouble(),
        "may_set": may_control(access, user),
    })
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Does what a call of `/rosapi/tsuji_set_playback` says, or returns why not.
pub(super) fn change(playback: &dyn Playback, args: &OwnedBody) -> Result<(), String> {
    const SERVICE: &str = "tsuji_set_playback";
    let span_ns = playback.span_ns();
    let wish = wish(&read_args(args)?, span_ns).map_err(|why| format!("{SERVICE}: {why}"))?;
    if let Some(why) = playback.trouble() {
        return Err(format!("{SERVICE}: {why}"));
    }
    playback.control(&wish);
    Ok(())
}

/// The time that is meant by one in seconds: what is told of the beginning and of the end is a little beside them, and means them.
fn time_ns(time: f64, (start_ns, end_ns): (u64, u64)) -> u64 {
    match time {
        _ if time <= seconds(start_ns) => start_ns,
        _ if seconds(end_ns) <= time => end_ns,
        _ => (time * 1e9) as u64,
    }
}

fn wish(args: &Value, span_ns: (u64, u64)) -> Result<PlaybackWish, String> {
    const ALLOWED: &str = "expected an object with some of playing, rate and time";
    let fields = args.as_object().ok_or_else(|| format!("found {args}; {ALLOWED}"))?;
    if fields.is_empty() {
        return Err(format!("found nothing; {ALLOWED}"));
    }
    let mut wish = PlaybackWish::default();
    for (name, value) in fields {
        let number =
            || value.as_f64().ok_or_else(|| format!("{name}: found {value}; expected a number"));
        match &**name {
            "playing" => {
                let plays = value.as_bool();
                wish.plays =
                    Some(plays.ok_or_else(|| {
                        format!("playing: found {value}; expected true or false")
                    })?);
            }
            "rate" => wish.rate = Some(check_rate(number()?)?),
            "time" => wish.seek_ns = Some(time_ns(number()?, span_ns)),
            other => return Err(format!("found {other:?}; {ALLOWED}")),
        }
    }
    Ok(wish)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_of_the_beginning_and_the_end_means_them() {
        // As seconds of 64 bits they are a hundred nanoseconds beside what they are.
        for at in 0..1000 {
            let span_ns = (1_700_000_000_123_456_000 + at, 1_700_000_100_123_456_000 + at);
            assert_eq!(time_ns(seconds(span_ns.0), span_ns), span_ns.0);
            assert_eq!(time_ns(seconds(span_ns.1), span_ns), span_ns.1);
        }
    }

    #[test]
    fn what_is_wished_is_read() {
        let read = |args: Value| wish(&args, (1_000_000_000, 2_000_000_000));
        let (plays, rate, seek_ns) = (Some(false), Some(0.5), Some(1_500_000_000));
        assert_eq!(
            read(json!({ "playing": false, "rate": 0.5, "time": 1.5 })),
            Ok(PlaybackWish { plays, rate, seek_ns })
        );
        for (time, seek_ns) in [(-3.0, 1_000_000_000), (1e300, 2_000_000_000)] {
            let seek_ns = Some(seek_ns);
            let wish = PlaybackWish { seek_ns, ..PlaybackWish::default() };
            assert_eq!(read(json!({ "time": time })), Ok(wish));
        }
        for (args, why) in [
            (json!([]), "found []; expected an object"),
            (json!({}), "found nothing; expected an object with some of playing, rate and time"),
            (json!({ "playing": 1 }), "playing: found 1; expected true or false"),
            (json!({ "rate": 0 }), "rate: found 0; expected a number above 0"),
            (json!({ "rate": "2" }), "rate: found \"2\"; expected a number"),
            (json!({ "time": null }), "time: found null; expected a number"),
            (json!({ "paused": true }), "found \"paused\"; expected an object with some of"),
        ] {
            let found = read(args).unwrap_err();
            assert!(found.starts_with(why), "{found}");
        }
    }
}
