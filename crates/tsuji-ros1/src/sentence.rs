//! What is printed of an error that `main` returns, which is its `{:?}`: the sentence.

use crate::header::HeaderError;
use crate::http::HttpError;
use crate::uri::UriError;
use crate::xmlrpc::XmlRpcError;

tsuji_msg::__sentences! {
    HeaderError,
    HttpError,
    UriError,
    XmlRpcError,
}
