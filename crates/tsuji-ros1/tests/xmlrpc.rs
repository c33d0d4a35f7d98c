//! Values go round, and no bytes do harm.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use proptest::prelude::*;
use tsuji_ros1::http::{HttpError, encode_request, encode_response, take_request, take_response};
use tsuji_ros1::uri::Uri;
use tsuji_ros1::xmlrpc::{Call, NESTING_MAX, Reply, Value};

/// Texts as XML can have them. A carriage return becomes a line feed in XML, so there is none.
const TEXT: &str = "[ -~\n\téß日🤖]{0,12}";

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<i32>().prop_map(Value::Int),
        any::<bool>().prop_map(Value::Bool),
        any::<f64>().prop_filter("equal to itself", |it| !it.is_nan()).prop_map(Value::Double),
        TEXT.prop_map(Value::String),
        "[0-9]{8}T[0-9]{2}:[0-9]{2}:[0-9]{2}".prop_map(Value::DateTime),
        prop::collection::vec(any::<u8>(), 0..20).prop_map(Value::Base64),
        Just(Value::Nil),
    ];
    leaf.prop_recursive(6, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            prop::collection::btree_map(TEXT, inner, 0..5)
                .prop_map(|it| Value::Struct(it.into_iter().collect())),
        ]
    })
}

/// Something like XML-RPC.
fn scraps() -> impl Strategy<Value = String> {
    let scrap = prop_oneof![
        prop::sample::select(vec![
            "<methodCall>",
            "</methodCall>",
            "<methodName>",
            "</methodName>",
            "<params>",
            "</params>",
            "<param>",
            "</param>",
            "<value>",
            "</value>",
            "<array>",
            "</array>",
            "<data>",
            "</data>",
            "<struct>",
            "</struct>",
            "<member>",
            "</member>",
            "<name>",
            "</name>",
            "<int>",
            "</int>",
            "<string>",
            "</string>",
            "<nil/>",
            "<value/>",
            "<!--",
            "-->",
            "<![CDATA[",
            "]]>",
            "<?",
            "?>",
            "<!DOCTYPE",
            "&amp;",
            "&#x0;",
            "&x;",
            "<methodResponse>",
            "</methodResponse>",
            "<fault>",
            "</fault>",
            "<",
            ">",
            "é",
            "1",
        ])
        .prop_map(str::to_owned),
        TEXT,
    ];
    prop::collection::vec(scrap, 0..60).prop_map(|it| it.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn values_go_round(params in prop::collection::vec(value(), 0..4), method in "[a-zA-Z.]{1,20}") {
        let call = Call::new(&method, params);
        prop_assert_eq!(&Call::parse(call.encode().as_bytes()).unwrap(), &call);
        for value in call.params {
            let reply = Reply::success("a & b", value);
            prop_assert_eq!(&Reply::parse(reply.encode().as_bytes()).unwrap(), &reply);
        }
    }

    #[test]
    fn any_bytes_are_a_call_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = (Call::parse(&bytes), Reply::parse(&bytes));
    }

    #[test]
    fn any_scraps_are_a_call_or_refused(text in scraps()) {
        for text in [text.clone(), format!("<methodCall><methodName>m</methodName><params>{text}</params></methodCall>")] {
            if let Ok(call) = Call::parse(text.as_bytes()) {
                prop_assert_eq!(Call::parse(call.encode().as_bytes()), Ok(call));
            }
            let _ = Reply::parse(text.as_bytes());
        }
    }

    #[test]
    fn any_bytes_are_http_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), is_closed: bool) {
        let (mut requests, mut responses) = (bytes.clone(), bytes);
        while matches!(take_request(&mut requests), Ok(Some(_))) {}
        while matches!(take_response(&mut responses, is_closed), Ok(Some(_))) {}
    }

    #[test]
    fn http_goes_round_however_it_is_cut(bodies in prop::collection::vec(TEXT, 1..4), cut in 1_usize..50, is_chunked: bool) {
        let mut bytes = Vec::new();
        for body in &bodies {
            if is_chunked {
                bytes.extend(b"POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
                for chunk in body.as_bytes().chunks(3) {
                    bytes.extend(format!("{:x}\r\n", chunk.len()).bytes());
                    bytes.extend(chunk);
                    bytes.extend(b"\r\n");
                }
                bytes.extend(b"0\r\n\r\n");
            } else {
                bytes.extend(encode_request("h:1", "/x", body));
            }
        }
        let (mut buffer, mut taken) = (Vec::new(), Vec::new());
        for part in bytes.chunks(cut) {
            buffer.extend_from_slice(part);
            while let Some(request) = take_request(&mut buffer).unwrap() {
                taken.push(String::from_utf8(request.body).unwrap());
            }
        }
        prop_assert_eq!(&taken, &bodies);
        prop_assert!(buffer.is_empty());
        let mut response = encode_response(200, &bodies[0], true);
        let last = response.pop().unwrap();
        prop_assert_eq!(take_response(&mut response.clone(), true), Err(HttpError::Closed));
        response.push(last);
        prop_assert_eq!(take_response(&mut response, false).unwrap().unwrap().body, bodies[0].as_bytes());
    }

    #[test]
    fn addresses_go_round(text in "(http|rosrpc)://([a-z.0-9]{1,10}|\\[::1\\]):[0-9]{1,5}(/[a-z/]{0,5})?|[ -~é]{0,30}") {
        if let Ok(uri) = text.parse::<Uri>() {
            prop_assert_eq!(uri.to_string().parse::<Uri>(), Ok(uri));
        }
    }
}

#[test]
fn a_billion_laughs_are_refused() {
    let text = "<?xml version=\"1.0\"?><!DOCTYPE a [<!ENTITY a \"ha\"><!ENTITY b \"&a;&a;&a;\">]>\
                <methodCall><methodName>&b;</methodName></methodCall>";
    let error = Call::parse(text.as_bytes()).unwrap_err().to_string();
    assert_eq!(error, "this is not XML-RPC: it has a document type");
}

#[test]
fn neither_depth_nor_number_of_tags_does_harm() {
    for tag in [
        "<value>",
        "<value><array><data>",
        "<!--",
        "<![CDATA[",
        "<?x",
        "<a/>",
        "<a></a>",
        "<",
        "&amp;",
    ] {
        let text = tag.repeat(2_000_000 / tag.len());
        assert!(Call::parse(text.as_bytes()).is_err());
        let within = format!("<methodCall>{text}");
        assert!(Call::parse(within.as_bytes()).is_err());
    }
    let attributes: String = (0..20_000).map(|it| format!(" a{it}=\"\"")).collect();
    assert!(Call::parse(format!("<methodCall{attributes}/>").as_bytes()).is_err());
    let deep =
        (0..NESTING_MAX + 1).fold(Value::Int(1), |it, _| Value::Struct(vec![("a".to_owned(), it)]));
    assert!(Reply::parse(Reply::Value(deep).encode().as_bytes()).is_err());
}
