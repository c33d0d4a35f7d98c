//! The request that a connection begins with: a WebSocket's handshake, a file of the page, the metrics, or whether the bridge is
//! there.

use std::borrow::Cow;
use std::net::IpAddr;

use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Version, header};
use httparse::Status;
use percent_encoding::percent_decode_str;
use tsuji_foxglove::{Negotiated, SUBPROTOCOLS, knows_playback, negotiate};
use tsuji_rosbridge::access::{Access, Act, UserKey};
use tungstenite::handshake::server::create_response;

use crate::connected_client::Dialect;
use crate::deflate::Agreed;
use crate::metrics::{self, Format};
use crate::page::{File, Page};
use crate::plain::Plain;

/// What came so far.
#[derive(Debug, Default)]
pub(super) struct Reading {
    bytes: Vec<u8>,
}

/// What a request is answered.
#[derive(Debug)]
pub(super) enum Answer {
    /// More has to come before anything can be said.
    Incomplete,
    /// The head of the response; from now on it is a WebSocket, of which `rest` has come.
    Upgraded {
        head: Vec<u8>,
        rest: Vec<u8>,
        deflate: Option<Agreed>,
        dialect: Dialect,
        /// Who has said so in the request; clients of rosbridge say it later.
        user: Option<UserKey>,
    },
    /// The whole response; then the connection ends.
    Response(Vec<u8>),
    /// The whole response to who may not have what was asked for, and why, for the log.
    Denied { response: Vec<u8>, why: String },
    /// The metrics are asked for. Their response is [`metrics_response`], once they are written.
    Metrics { request: metrics::Request, has_body: bool },
}

/// What a server allows.
#[derive(Debug)]
pub(super) struct Rules<'a> {
    /// Whether messages may be deflated, where the client offers it.
    pub(super) deflates: bool,
    /// Where WebSockets are, such as `/`.
    pub(super) url_path: &'a str,
    /// Pages of these may connect, and the own; of any, if there is none.
    pub(super) origins: &'a [String],
    /// What is served beside.
    pub(super) page: &'a Page,
    /// Whether the metrics are.
    pub(super) metrics: bool,
    /// Who may know of them.
    pub(super) access: &'a Access,
    /// Whether it is by TLS.
    pub(super) is_tls: bool,
    /// Whether messages are BSON.
    pub(super) bson_only: bool,
}

impl Reading {
    /// Takes what was read, and answers once the request is whole.
    pub(super) fn read(&mut self, bytes: &[u8], rules: &Rules<'_>) -> Answer {
        self.bytes.extend_from_slice(bytes);
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut parsed = httparse::Request::new(&mut headers);
        let len = match parsed.parse(&self.bytes) {
            Ok(Status::Complete(len)) => len,
            Ok(Status::Partial) if self.bytes.len() <= REQUEST_BYTES_MAX => {
                return Answer::Incomplete;
            }
            Ok(Status::Partial) => {
                let why = format!("a request of more than {REQUEST_BYTES_MAX} bytes");
                return refused(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, &why);
            }
            Err(error) => return refused(StatusCode::BAD_REQUEST, &error.to_string()),
        };
        let Some(request) = request(&parsed) else {
            return refused(StatusCode::BAD_REQUEST, "a header that is none");
        };
        let path = request.uri().path();
        let is_websocket = request
            .headers()
            .get("upgrade")
            .is_some_and(|it| it.as_bytes().eq_ignore_ascii_case(b"websocket"));
        if !is_websocket {
            return file(&request, rules);
        }
        if path.trim_end_matches('/') != rules.url_path.trim_end_matches('/') {
            let why = format!("no WebSocket is at {path}; it is at {}", rules.url_path);
            return refused(StatusCode::NOT_FOUND, &why);
        }
        if let Some(origin) = request.headers().get("origin").and_then(|it| it.to_str().ok())
            && is_of_elsewhere(origin, request.headers(), rules)
        {
            tracing::warn!(origin = %Plain(origin), "refused a WebSocket: its page is not among the origins");
            return refused(StatusCode::FORBIDDEN, "this origin may not connect");
        }
        let offers = request.headers().get_all(header::SEC_WEBSOCKET_PROTOCOL);
        let subprotocol = match negotiate(offers.iter().filter_map(|it| it.to_str().ok())) {
            Negotiated::None => None,
            Negotiated::Agreed(_) if rules.bson_only => {
                return refused(StatusCode::BAD_REQUEST, "this bridge speaks BSON alone");
            }
            Negotiated::Agreed(subprotocol) => Some(subprotocol),
            Negotiated::Unknown => {
                let why = format!("allowed subprotocols are {}", SUBPROTOCOLS.join(", "));
                return refused(StatusCode::BAD_REQUEST, &why);
            }
        };
        let (dialect, user) = match subprotocol {
            None => (Dialect::Rosbridge, None),
            Some(subprotocol) => match user_of(&request, rules) {
                Ok(user) => {
                    let knows_playback = knows_playback(subprotocol);
                    (Dialect::Foxglove { knows_playback }, user)
                }
                Err(why) => return denied(StatusCode::UNAUTHORIZED, why, true),
            },
        };
        match create_response(&request) {
            Ok(mut response) => {
                if let Some(subprotocol) = subprotocol {
                    let value = HeaderValue::from_static(subprotocol);
                    response.headers_mut().insert(header::SEC_WEBSOCKET_PROTOCOL, value);
                }
                let deflate = agreed(&request, rules);
                let answer = deflate.and_then(|it| HeaderValue::from_str(&it.answer()).ok());
                if let Some(answer) = answer {
                    response.headers_mut().insert(header::SEC_WEBSOCKET_EXTENSIONS, answer);
                }
                let mut head = Vec::new();
                match tungstenite::handshake::server::write_response(&mut head, &response) {
                    Ok(()) => {
                        let rest = self.bytes[len..].to_vec();
                        Answer::Upgraded { head, rest, deflate, dialect, user }
                    }
                    Err(error) => refused(StatusCode::BAD_REQUEST, &error.to_string()),
                }
            }
            Err(error) => refused(StatusCode::BAD_REQUEST, &error.to_string()),
        }
    }
}

/// What of the offers in a handshake is taken.
fn agreed(request: &Request<()>, rules: &Rules<'_>) -> Option<Agreed> {
    let lines = request.headers().get_all(header::SEC_WEBSOCKET_EXTENSIONS);
    Agreed::of(lines.iter().filter_map(|it| it.to_str().ok())).filter(|_| rules.deflates)
}

fn request(parsed: &httparse::Request<'_, '_>) -> Option<Request<()>> {
    let mut request = Request::new(());
    *request.method_mut() = Method::from_bytes(parsed.method?.as_bytes()).ok()?;
    *request.uri_mut() = parsed.path?.parse().ok()?;
    *request.version_mut() = if parsed.version? == 1 { Version::HTTP_11 } else { Version::HTTP_10 };
    let mut headers = HeaderMap::with_capacity(parsed.headers.len());
    for it in parsed.headers.iter() {
        let name = HeaderName::from_bytes(it.name.as_bytes()).ok()?;
        headers.append(name, HeaderValue::from_bytes(it.value).ok()?);
    }
    *request.headers_mut() = headers;
    Some(request)
}

/// Whether a page is this server's own, asked for by an address or as localhost. One that has another name may be a page of
/// elsewhere whose name was made to lead here.
fn is_own(origin: &str, headers: &HeaderMap, is_tls: bool) -> bool {
    let host = headers.get("host").and_then(|it| it.to_str().ok());
    let Some(host) = host.and_then(|it| it.parse::<Authority>().ok()) else { return false };
    let name = host.host().trim_start_matches('[').trim_end_matches(']');
    let is_no_name = name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok();
    is_no_name && origin.eq_ignore_ascii_case(&format!("{}://{host}", scheme(is_tls)))
}

fn file(request: &Request<()>, rules: &Rules<'_>) -> Answer {
    let is_head = request.method() == Method::HEAD;
    if request.method() != Method::GET && !is_head {
        return refused(StatusCode::METHOD_NOT_ALLOWED, "allowed are GET and HEAD");
    }
    let path = request.uri().path();
    match beside(path, rules) {
        "/healthz" => {
            return response(StatusCode::OK, "text/plain; charset=utf-8", "", b"ok\n", !is_head);
        }
        "/metrics" if rules.metrics => return ask_metrics(request, rules, !is_head),
        _ => {}
    }
    if let Some(place) = rules.page.moved(path) {
        let (status, more) = (StatusCode::PERMANENT_REDIRECT, format!("Location: {place}\r\n"));
        return response(status, "text/plain; charset=utf-8", &more, b"", true);
    }
    let Some(File { media_type, tag, bytes, .. }) = rules.page.file(path) else {
        let why = format!("nothing is at {path}");
        return Answer::Response(refusal(StatusCode::NOT_FOUND, &why, !is_head));
    };
    let more = format!("ETag: {tag}\r\n");
    let known = request.headers().get("if-none-match").and_then(|it| it.to_str().ok());
    let is_known =
        known.is_some_and(|it| it.split(',').any(|it| it.trim().trim_start_matches("W/") == tag));
    match is_known {
        true => response(StatusCode::NOT_MODIFIED, media_type, &more, bytes, false),
        false => response(StatusCode::OK, media_type, &more, bytes, !is_head),
    }
}

/// The path as it is below that of WebSockets, where a proxy hands it on whole.
fn beside<'a>(path: &'a str, rules: &Rules<'_>) -> &'a str {
    let prefix = rules.url_path.trim_end_matches('/');
    path.strip_prefix(prefix).filter(|it| it.starts_with('/')).unwrap_or(path)
}

/// Whoever may call the service that tells the routes may ask for the metrics. A token is said as `Authorization: Bearer TOKEN`.
fn ask_metrics(request: &Request<()>, rules: &Rules<'_>, has_body: bool) -> Answer {
    let headers = request.headers();
    if is_page_of_elsewhere(headers, rules) {
        return denied(StatusCode::FORBIDDEN, "metrics: a page of elsewhere".to_owned(), has_body);
    }
    let user = bearer(headers).map(|it| rules.access.user(it));
    if user == Some(None) || user.is_none() && rules.access.needs_user() {
        let found = if user.is_some() { "a token of nobody" } else { "who it is was not said" };
        let why = match rules.access.needs_user() {
            true => "they need `Authorization: Bearer TOKEN` of a user",
            false => "here they need none",
        };
        return denied(StatusCode::UNAUTHORIZED, format!("metrics: {found}; {why}"), has_body);
    }
    let user = user.flatten();
    if let Err(denial) = rules.access.decide(user, Act::CallService, ROUTES) {
        return denied(StatusCode::FORBIDDEN, format!("metrics: {denial}"), has_body);
    }
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|it| it.to_str().ok());
    let format = Format::accepted(accepted);
    Answer::Metrics { request: metrics::Request { format, user }, has_body }
}

/// The token that is said as `Authorization: Bearer TOKEN`.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let said = str::from_utf8(headers.get(header::AUTHORIZATION)?.as_bytes()).ok()?;
    let (scheme, token) = said.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Who says so in the request: by its header, or as `?token=TOKEN`, for programs whose user can give an address and no more.
fn user_of(request: &Request<()>, rules: &Rules<'_>) -> Result<Option<UserKey>, String> {
    const HOW: &str = "connect with ?token=TOKEN, or with `Authorization: Bearer TOKEN`";
    let said = request.uri().query().unwrap_or_default().split('&');
    let said = said.filter_map(|it| it.strip_prefix("token=")).next();
    let said = said.map(|it| percent_decode_str(it).decode_utf8_lossy());
    match bearer(request.headers()).map(Cow::Borrowed).or(said) {
        Some(token) => match rules.access.user(&token) {
            Some(user) => Ok(Some(user)),
            None => Err(format!("a token of nobody; {HOW} of a user")),
        },
        None if rules.access.needs_user() => Err(format!("who it is was not said; {HOW}")),
        None => Ok(None),
    }
}

/// Whether a browser asks for a page whose name was made to lead here. Programs that are no browsers say neither header.
fn is_page_of_elsewhere(headers: &HeaderMap, rules: &Rules<'_>) -> bool {
    let is_page = headers.contains_key(header::ORIGIN) || headers.contains_key("sec-fetch-site");
    let host = headers.get(header::HOST).and_then(|it| it.to_str().ok());
    host.filter(|_| is_page).is_some_and(|host| {
        is_of_elsewhere(&format!("{}://{host}", scheme(rules.is_tls)), headers, rules)
    })
}

/// Whether a page may not connect: pages of some origins alone may, and it is neither of them nor this server's own.
fn is_of_elsewhere(origin: &str, headers: &HeaderMap, rules: &Rules<'_>) -> bool {
    !rules.origins.is_empty()
        && !rules.origins.iter().any(|it| it.eq_ignore_ascii_case(origin))
        && !is_own(origin, headers, rules.is_tls)
}

fn scheme(is_tls: bool) -> &'static str {
    if is_tls { "https" } else { "http" }
}

fn denied(status: StatusCode, why: String, has_body: bool) -> Answer {
    Answer::Denied { response: refusal(status, &why, has_body), why }
}

/// The response with the metrics, or with the reason why there are none.
pub(super) fn metrics_response(
    written: Result<String, String>,
    format: Format,
    has_body: bool,
) -> Vec<u8> {
    match written {
        Ok(text) => bytes(StatusCode::OK, format.media_type(), "", text.as_bytes(), has_body),
        Err(why) => refusal(StatusCode::SERVICE_UNAVAILABLE, &why, has_body),
    }
}

fn refused(status: StatusCode, why: &str) -> Answer {
    Answer::Response(refusal(status, why, true))
}

fn refusal(status: StatusCode, why: &str, has_body: bool) -> Vec<u8> {
    let text = format!("{status}: {why}\n");
    let more = match status {
        StatusCode::METHOD_NOT_ALLOWED => "Allow: GET, HEAD\r\n",
        StatusCode::UNAUTHORIZED => "WWW-Authenticate: Bearer realm=\"tsuji bridge\"\r\n",
        _ => "",
    };
    bytes(status, "text/plain; charset=utf-8", more, text.as_bytes(), has_body)
}

fn response(
    status: StatusCode,
    media_type: &str,
    more: &str,
    body: &[u8],
    has_body: bool,
) -> Answer {
    Answer::Response(bytes(status, media_type, more, body, has_body))
}

/// A whole response.
fn bytes(status: StatusCode, media_type: &str, more: &str, body: &[u8], has_body: bool) -> Vec<u8> {
    // Nothing from elsewhere is run or shown, and no other page may put this one in a frame.
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {}\r\nConnection: close\r\n{more}\
         Cache-Control: no-cache\r\nX-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\n\
         Referrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\n\
         Content-Security-Policy: default-src 'self'; connect-src 'self' ws: wss:; img-src 'self' data: blob:; \
         object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n\r\n",
        body.len()
    );
    let mut bytes = head.into_bytes();
    if has_body {
        bytes.extend_from_slice(body);
    }
    bytes
}

/// The service that tells what the metrics tell.
const ROUTES: &str = "/rosapi/tsuji_routes";

const HEADERS_MAX: usize = 100;
const REQUEST_BYTES_MAX: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use tsuji_rosbridge::access::{Globs, ServerGlobs, Token, User};

    use super::*;
    use crate::settings::Settings;

    static SETTINGS: LazyLock<Settings> = LazyLock::new(Settings::default);
    static PAGE: LazyLock<Page> = LazyLock::new(|| Page::new(&SETTINGS));

    fn rules() -> Rules<'static> {
        let access = &SETTINGS.access;
        let (page, url_path) = (&*PAGE, "/");
        Rules {
            deflates: false,
            url_path,
            origins: &[],
            page,
            metrics: true,
            access,
            is_tls: false,
            bson_only: false,
        }
    }

    const HANDSHAKE: &str = "GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n\
                             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

    fn answer(text: &str, rules: &Rules<'_>) -> String {
        let whole = Reading::default().read(text.as_bytes(), rules);
        // In pieces it is the same.
        let mut reading = Reading::default();
        let mut last = Answer::Incomplete;
        for byte in text.as_bytes() {
            last = reading.read(&[*byte], rules);
            if !matches!(last, Answer::Incomplete) {
                break;
            }
        }
        let told = |answer| match answer {
            Answer::Incomplete => "incomplete".to_owned(),
            Answer::Upgraded { head, .. } => String::from_utf8(head).unwrap(),
            Answer::Response(bytes) | Answer::Denied { response: bytes, .. } => {
                String::from_utf8(bytes).unwrap()
            }
            Answer::Metrics { request, has_body } => {
                format!("{:?} {has_body} {}", request.format, request.user.is_some())
            }
        };
        let (whole, pieces) = (told(whole), told(last));
        assert_eq!(whole, pieces);
        whole
    }

    #[test]
    fn a_handshake_is_answered_as_rfc_6455_shows() {
        let told = answer(&format!("{HANDSHAKE}\r\n"), &rules()).to_lowercase();
        assert!(told.starts_with("http/1.1 101"), "{told}");
        assert!(told.contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo="), "{told}");
    }

    #[test]
    fn what_comes_behind_the_handshake_is_kept() {
        let text = format!("{HANDSHAKE}\r\n\u{1}\u{2}");
        let answer = Reading::default().read(text.as_bytes(), &rules());
        assert!(matches!(answer, Answer::Upgraded { rest, .. } if rest == [1, 2]));
    }

    #[test]
    fn what_is_refused_says_why() {
        let elsewhere = HANDSHAKE.replace("GET /", "GET /chat");
        for (text, expected) in [
            (format!("{elsewhere}\r\n"), "404 Not Found: no WebSocket is at /chat; it is at /"),
            (HANDSHAKE.replace("13", "8") + "\r\n", "400 Bad Request"),
            ("GET /x HTTP/1.1\r\n\r\n".to_owned(), "404 Not Found: nothing is at /x"),
            ("POST / HTTP/1.1\r\n\r\n".to_owned(), "405 Method Not Allowed"),
            ("\u{0}\u{1}\u{2}".to_owned(), "400 Bad Request"),
            ("{\"op\":\"publish\"}".to_owned(), "400 Bad Request"),
        ] {
            let told = answer(&text, &rules());
            assert!(told.contains(expected), "{told}");
        }
    }

    #[test]
    fn a_request_without_an_end_is_cut() {
        let mut reading = Reading::default();
        assert!(matches!(reading.read(b"GET / HTTP/1.1\r\nA: ", &rules()), Answer::Incomplete));
        let answer = reading.read(&[b'a'; REQUEST_BYTES_MAX], &rules());
        assert!(matches!(answer, Answer::Response(it) if it.starts_with(b"HTTP/1.1 431")));
    }

    #[test]
    fn a_page_of_elsewhere_may_not_connect_where_origins_are_named() {
        let origins = ["https://robot.example".to_owned()];
        let rules = Rules { origins: &origins, ..rules() };
        let of = |origin: &str| answer(&format!("{HANDSHAKE}Origin: {origin}\r\n\r\n"), &rules);
        assert!(of("https://robot.example").starts_with("HTTP/1.1 101"));
        assert!(of("https://evil.example").starts_with("HTTP/1.1 403"));
        // What is no page has no origin.
        assert!(answer(&format!("{HANDSHAKE}\r\n"), &rules).starts_with("HTTP/1.1 101"));
    }

    #[test]
    fn the_own_page_may_connect_unless_its_name_may_lead_anywhere() {
        let origins = ["https://robot.example".to_owned()];
        let check = |host: &str, origin: &str, is_tls: bool, expected: &str| {
            let rules = Rules { origins: &origins, is_tls, ..rules() };
            let request = HANDSHAKE.replace("Host: a", &format!("Host: {host}"));
            let told = answer(&format!("{request}Origin: {origin}\r\n\r\n"), &rules);
            assert!(told.starts_with(expected), "{host} {origin}: {told}");
        };
        const YES: &str = "HTTP/1.1 101";
        const NO: &str = "HTTP/1.1 403";
        check("127.0.0.1:9090", "http://127.0.0.1:9090", false, YES);
        check("[::1]:9090", "http://[::1]:9090", false, YES);
        check("localhost:9090", "http://localhost:9090", false, YES);
        check("192.0.2.7", "https://192.0.2.7", true, YES);
        // Another port is another server's page, and so is another scheme.
        check("127.0.0.1:9090", "http://127.0.0.1:8080", false, NO);
        check("127.0.0.1:9090", "https://127.0.0.1:9090", false, NO);
        check("evil.example:9090", "http://evil.example:9090", false, NO);
        check("localhost.evil.example", "http://localhost.evil.example", false, NO);
        check("127.0.0.1:9090", "null", false, NO);
    }

    #[test]
    fn messages_are_deflated_where_both_want_it() {
        let willing = Rules { deflates: true, ..rules() };
        let offer = "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n";
        let told = answer(&format!("{HANDSHAKE}{offer}\r\n"), &willing).to_lowercase();
        let expected = "sec-websocket-extensions: permessage-deflate; server_no_context_takeover; \
                        client_no_context_takeover\r\n";
        assert!(told.contains(expected), "{told}");
        let unknown = offer.replace("client_max_window_bits", "what");
        for (offer, rules) in [(offer, &rules()), (&*unknown, &willing), ("", &willing)] {
            let told = answer(&format!("{HANDSHAKE}{offer}\r\n"), rules).to_lowercase();
            assert!(told.starts_with("http/1.1 101") && !told.contains("extensions"), "{told}");
        }
    }

    #[test]
    fn the_page_is_served_and_its_head_alone_if_wanted() {
        let page = answer("GET / HTTP/1.1\r\n\r\n", &rules());
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && page.ends_with("</html>\n"), "{page}");
        for (request, status) in [("/none", "404"), ("/metrics", "401")] {
            let access = Access::new(ServerGlobs::default(), vec![User::unrestricted("a", None)]);
            let rules = Rules { access: &access, ..rules() };
            let head = answer(&format!("HEAD {request} HTTP/1.1\r\n\r\n"), &rules);
            assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{head}");
            assert!(head.ends_with("\r\n\r\n") && !head.contains("Content-Length: 0"), "{head}");
        }
        let head = answer("HEAD / HTTP/1.1\r\n\r\n", &rules());
        assert!(page.starts_with(&head) && head.ends_with("\r\n\r\n"), "{head}");
        let len = page.len() - head.len();
        assert!(head.contains(&format!("\r\nContent-Length: {len}\r\n")), "{head}");
        let query = answer("GET /?a=/x HTTP/1.1\r\n\r\n", &rules());
        assert_eq!(query, page);
    }

    #[test]
    fn a_file_that_is_known_is_not_sent_again() {
        let of = |known: &str| {
            answer(&format!("GET /icon.svg HTTP/1.1\r\nIf-None-Match: {known}\r\n\r\n"), &rules())
        };
        let tag = &PAGE.file("/icon.svg").unwrap().tag;
        for known in [tag.clone(), format!("W/{tag}"), format!("\"x\", {tag}")] {
            let told = of(&known);
            assert!(told.starts_with("HTTP/1.1 304") && told.ends_with("\r\n\r\n"), "{told}");
        }
        assert!(of("\"x\"").starts_with("HTTP/1.1 200"));
    }

    #[test]
    fn metrics_are_for_who_may_ask_for_the_routes() {
        let user = |name: &str, token: &str, services: &str| {
            let mut user = User::unrestricted(name, Token::new(token));
            user.may.call_service = Globs::parse(services).unwrap();
            user
        };
        let users = vec![user("watcher", "sesame", ""), user("driver", "thyme", "[/drive]")];
        let closed = Access::new(ServerGlobs::default(), users);
        let check = |access: &Access, header: &str, expected: &str| {
            let rules = Rules { access, ..rules() };
            let told = answer(&format!("GET /metrics HTTP/1.1\r\n{header}\r\n"), &rules);
            assert!(told.starts_with(expected), "{header}: {told}");
        };
        let open = &SETTINGS.access;
        check(open, "", "Prometheus true false");
        check(open, "Accept: application/openmetrics-text;version=1.0.0, */*\r\n", "OpenMetrics ");
        check(open, "Authorization: Bearer x\r\n", "HTTP/1.1 401");
        let told = answer("GET /metrics HTTP/1.1\r\nAuthorization: Bearer x\r\n\r\n", &rules());
        assert!(told.ends_with("metrics: a token of nobody; here they need none\n"), "{told}");
        check(&closed, "", "HTTP/1.1 401 Unauthorized\r\n");
        check(&closed, "Authorization: Bearer x\r\n", "HTTP/1.1 401");
        check(&closed, "Authorization: Basic sesame\r\n", "HTTP/1.1 401");
        check(&closed, "Authorization: bearer sesame\r\n", "Prometheus true true");
        check(&closed, "Authorization: Bearer thyme\r\n", "HTTP/1.1 403");
        let other = vec![User::unrestricted("other", Token::new("schlüssel"))];
        check(
            &Access::new(ServerGlobs::default(), other),
            "Authorization: Bearer schlüssel\r\n",
            "Prometheus true true",
        );
        let told = answer("GET /metrics HTTP/1.1\r\n\r\n", &Rules { access: &closed, ..rules() });
        assert!(told.contains("\r\nWWW-Authenticate: Bearer realm="), "{told}");
    }

    #[test]
    fn a_page_of_elsewhere_gets_no_metrics_where_origins_are_named() {
        let origins = ["https://robot.example".to_owned()];
        let check = |host: &str, header: &str, is_tls: bool, expected: &str| {
            let rules = Rules { origins: &origins, is_tls, ..rules() };
            let request = format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\n{header}\r\n");
            let told = answer(&request, &rules);
            assert!(told.starts_with(expected), "{host} {header}: {told}");
        };
        check("evil.example", "Origin: http://evil.example\r\n", false, "HTTP/1.1 403");
        check("evil.example", "Sec-Fetch-Site: same-origin\r\n", false, "HTTP/1.1 403");
        check("robot.example", "Sec-Fetch-Site: same-origin\r\n", true, "Prometheus");
        check("127.0.0.1:9090", "Sec-Fetch-Site: same-origin\r\n", false, "Prometheus");
        check("evil.example", "", false, "Prometheus");
    }

    #[test]
    fn health_and_metrics_are_below_the_path_of_websockets_too() {
        let robot = Rules { url_path: "/robots/one/", ..rules() };
        for path in ["/metrics", "/robots/one/metrics"] {
            let told = answer(&format!("HEAD {path} HTTP/1.1\r\n\r\n"), &robot);
            assert_eq!(told, "Prometheus false false");
        }
        for path in ["/healthz", "/robots/one/healthz"] {
            let told = answer(&format!("GET {path} HTTP/1.1\r\n\r\n"), &robot);
            assert!(told.starts_with("HTTP/1.1 200") && told.ends_with("\r\n\r\nok\n"), "{told}");
        }
        for path in ["/robots/onemetrics", "/robots/metrics", "/metrics/"] {
            let told = answer(&format!("GET {path} HTTP/1.1\r\n\r\n"), &robot);
            assert!(told.starts_with("HTTP/1.1 404"), "{told}");
        }
        let none = Rules { metrics: false, ..rules() };
        assert!(answer("GET /metrics HTTP/1.1\r\n\r\n", &none).starts_with("HTTP/1.1 404"));
    }

    #[test]
    fn nothing_beside_the_files_is_served() {
        for path in
            ["/page", "/index.html", "/../Cargo.toml", "/vendor/../../Cargo.toml", "/%2e%2e/", "*"]
        {
            let told = answer(&format!("GET {path} HTTP/1.1\r\n\r\n"), &rules());
            assert!(told.starts_with("HTTP/1.1 404") || told.starts_with("HTTP/1.1 400"), "{told}");
        }
        let told = answer("DELETE / HTTP/1.1\r\n\r\n", &rules());
        assert!(told.contains("\r\nAllow: GET, HEAD\r\n"), "{told}");
    }
}
