//! Platforms that call us: a listener for the requests of one channel.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::response::Response;
use axum::routing::any;
use hermes_core::{Channel, Inlet, WebRequest, WebResponse, WebhookPlace};
use http::StatusCode;
use tokio::time::{sleep, timeout};

use crate::http_server::HttpServer;
use crate::shutdown::Shutdown;

/// Between attempts to listen where another program still does.
const LISTEN_RETRY: Duration = Duration::from_secs(5);
/// A body that is not there by then does not come.
const BODY_TIMEOUT: Duration = Duration::from_secs(20);

/// Answers a channel's platform until the gateway takes nothing new.
pub(super) async fn serve(
    channel: Arc<dyn Channel>,
    inlet: Arc<dyn Inlet>,
    place: WebhookPlace,
    shutdown: Shutdown,
) {
    let server = loop {
        match HttpServer::bind(&place.host, place.port).await {
            Ok(server) => break server,
            Err(error) => {
                let platform = channel.facts().platform;
                tracing::error!(platform, %error, "its requests cannot be listened for");
                tokio::select! {
                    () = sleep(LISTEN_RETRY) => {}
                    () = shutdown.draining() => return,
                }
            }
        }
    };
    let bytes_max = place.body_bytes_max;
    let answer = move |request: Request| {
        let (channel, inlet) = (Arc::clone(&channel), Arc::clone(&inlet));
        async move { answer(channel.as_ref(), inlet.as_ref(), request, bytes_max).await }
    };
    let router = Router::new().route(&place.path, any(answer));
    server.run(router, shutdown, async {}).await;
}

async fn answer(
    channel: &dyn Channel,
    inlet: &dyn Inlet,
    request: Request,
    bytes_max: usize,
) -> Response {
    let (head, body) = request.into_parts();
    let body = match timeout(BODY_TIMEOUT, to_bytes(body, bytes_max)).await {
        Ok(Ok(body)) => body.to_vec(),
        Ok(Err(_)) => return status(StatusCode::PAYLOAD_TOO_LARGE),
        Err(_) => return status(StatusCode::REQUEST_TIMEOUT),
    };
    let headers = head.headers.iter().filter_map(|(name, value)| {
        let value = value.to_str().ok()?;
        Some((name.as_str().to_owned(), value.to_owned()))
    });
    let request = WebRequest {
        method: head.method.as_str().to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        headers: headers.collect(),
        body,
    };
    let WebResponse {
        status: code,
        content_type,
        body,
    } = channel.on_request(request, inlet).await;
    let mut response = status(StatusCode::from_u16(code).unwrap_or(StatusCode::OK));
    if !body.is_empty() {
        let content_type = http::HeaderValue::from_static(content_type);
        response
            .headers_mut()
            .insert(http::header::CONTENT_TYPE, content_type);
        *response.body_mut() = Body::from(body);
    }
    response
}

fn status(code: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = code;
    response
}
