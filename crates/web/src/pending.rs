//! Tracks which connections have a pending response: the request is complete, and the response is not written yet.
//! Other connections are closed first when there are too many.

use crate::slots::{Activity, PendingResponse};
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// Tracks a request until its response is written.
pub(crate) async fn watch(activity: Activity, request: Request<Body>, next: Next) -> Response {
    let pending = PendingResponse::new(activity);
    let is_whole = request.body().is_end_stream();
    if is_whole {
        pending.begin();
    }
    let request = request
        .map(|body| if is_whole { body } else { Body::new(Incoming { body, pending: pending.clone() }) });
    let response = next.run(request).await;
    // Also covers handlers that do not read the request body.
    response.map(|body| Body::new(Outgoing { body, _pending: pending }))
}

/// The body of a request.
struct Incoming {
    body: Body,
    pending: PendingResponse,
}

impl HttpBody for Incoming {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if frame.is_none() || self.body.is_end_stream() {
            self.pending.begin();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of a response. The response is pending until it is dropped.
struct Outgoing {
    body: Body,
    _pending: PendingResponse,
}

impl HttpBody for Outgoing {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
