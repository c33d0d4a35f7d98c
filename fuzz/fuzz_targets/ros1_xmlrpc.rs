//! Any bytes read as HTTP and XML-RPC of ROS 1, and any call answered by a master: no panic, and what is read is written so that
//! it is read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tsuji_ros1::http::{take_request, take_response};
use tsuji_ros1::master::Master;
use tsuji_ros1::xmlrpc::{Call, Reply};

fuzz_target!(|bytes: &[u8]| {
    let mut master = Master::new("http://robot:11311/".to_owned(), 1);
    let mut answer = |body: &[u8]| {
        let Ok(call) = Call::parse(body) else { return };
        // A carriage return comes back as a line feed, and a NaN is like nothing: so what is read once more is compared, as text.
        let round =
            |it: &Call| Call::parse(it.encode().as_bytes()).expect("what was read can be written");
        let once = round(&call);
        assert_eq!(round(&once).encode(), once.encode());
        let (reply, notices) = master.handle(&call);
        Reply::parse(reply.encode().as_bytes()).expect("an answer is a reply");
        for notice in notices {
            Call::parse(notice.to_call().encode().as_bytes()).expect("a notice is a call");
        }
    };
    answer(bytes);
    let mut buffer = bytes.to_vec();
    while let Ok(Some(request)) = take_request(&mut buffer) {
        answer(&request.body);
    }
    for is_closed in [false, true] {
        let mut buffer = bytes.to_vec();
        while let Ok(Some(response)) = take_response(&mut buffer, is_closed) {
            let _ = Reply::parse(&response.body);
        }
    }
});
