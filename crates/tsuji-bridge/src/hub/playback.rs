//! The recording that is played, as clients of rosbridge ask for it and control it.

use serde_json::{Value, json};

use super::service::read_args;
use crate::body::OwnedBody;
use crate::playback::{Playback, PlaybackWish, check_rate};

/// How far it is. Times are in seconds since 1970.
pub(super) fn told(playback: &dyn Playback) -> Value {
    let (state, (start_ns, end_ns)) = (playback.state(), playback.span_ns());
    let seconds = |ns: u64| ns as f64 / 1e9;
    json!({
        "status": state.status.word(),
        "time": seconds(state.time_ns),
        "start": seconds(start_ns),
        "end": seconds(end_ns),
        "rate": state.rate,
    })
}

/// Does what a call of `/rosapi/tsuji_set_playback` says, and returns how far it is then; or why it was not done.
pub(super) fn change(playback: &dyn Playback, args: &OwnedBody) -> Result<Value, String> {
    let wish = wish(&read_args(args)?).map_err(|why| format!("tsuji_set_playback: {why}"))?;
    playback.control(&wish);
    Ok(told(playback))
}

fn wish(args: &Value) -> Result<PlaybackWish, String> {
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
            // Before 1970 is before the recording, behind what fits is behind it.
            "time" => wish.seek_ns = Some((number()? * 1e9) as u64),
            other => return Err(format!("found {other:?}; {ALLOWED}")),
        }
    }
    Ok(wish)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wished_is_read() {
        let read = |args: Value| wish(&args);
        let (plays, rate, seek_ns) = (Some(false), Some(0.5), Some(1_500_000_000));
        assert_eq!(
            read(json!({ "playing": false, "rate": 0.5, "time": 1.5 })),
            Ok(PlaybackWish { plays, rate, seek_ns })
        );
        let seek_ns = Some(0);
        assert_eq!(read(json!({ "time": -3 })), Ok(PlaybackWish { seek_ns, ..Default::default() }));
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
