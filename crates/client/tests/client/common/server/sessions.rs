//! Endpoints and sessions.

use super::*;

impl Server {
    pub(super) fn endpoints(
        &mut self,
        _: GetEndpointsRequest,
        _: ConnectionId,
        _: &mut Connection,
        _: u32,
        _: Instant,
    ) -> Result<GetEndpointsResponse, StatusCode> {
        let mut endpoints = self.endpoint_list();
        if let Some(edit) = self.knobs.edit_discovery {
            edit(&mut endpoints);
        }
        Ok(GetEndpointsResponse { endpoints, ..Default::default() })
    }

    pub(super) fn create_session(
        &mut self,
        request: CreateSessionRequest,
        id: ConnectionId,
        connection: &mut Connection,
        _: u32,
        _: Instant,
    ) -> Result<CreateSessionResponse, StatusCode> {
        assert!(request.request_header.authentication_token.is_null());
        self.named.push(request.endpoint_url.as_str().to_owned());
        self.next_session += 1;
        let nonce = vec![self.next_session as u8; 32];
        let policy = connection.channel.policy();
        let own = self.config.provider.own_certificate(policy).unwrap_or_default().to_vec();
        let mut server_signature = SignatureData::default();
        if policy != SecurityPolicy::None {
            let data = [request.client_certificate.as_bytes(), request.client_nonce.as_bytes()].concat();
            let signed = Job::Sign { policy, data: data.into() }.run(self.config.provider.as_ref());
            let Ok(JobOutput::Bytes(bytes)) = signed else { panic!("signature") };
            server_signature.signature = bytes.into();
        }
        let session = Session {
            connection: id,
            nonce: nonce.clone(),
            client_certificate: request.client_certificate.as_bytes().to_vec(),
            ..Session::default()
        };
        self.sessions.insert(self.next_session, session);
        let server_endpoints =
            self.knobs.endpoints_in_session.clone().unwrap_or_else(|| self.endpoint_list());
        let mut response = CreateSessionResponse {
            session_id: NodeId::numeric(1, self.next_session),
            authentication_token: NodeId::string(1, self.next_session.to_string()),
            revised_session_timeout: request.requested_session_timeout,
            server_nonce: nonce.into(),
            server_certificate: self.knobs.certificate.clone().unwrap_or(own).into(),
            server_endpoints,
            server_signature,
            ..Default::default()
        };
        if let Some(edit) = self.knobs.edit_created {
            edit(&mut response);
        }
        Ok(response)
    }

    pub(super) fn activate(
        &mut self,
        request: ActivateSessionRequest,
        id: ConnectionId,
        connection: &mut Connection,
        _: u32,
        _: Instant,
    ) -> Result<ActivateSessionResponse, StatusCode> {
        let token = token_of(&request.request_header)?;
        let policy = connection.channel.policy();
        let own = self.config.provider.own_certificate(policy).unwrap_or_default().to_vec();
        let session: &mut Session =
            self.sessions.get_mut(&token).ok_or(StatusCode::BAD_SESSION_ID_INVALID)?;
        if policy != SecurityPolicy::None {
            let job = Job::Verify {
                policy,
                certificate: session.client_certificate.as_slice().into(),
                data: vec![[own.as_slice(), &session.nonce].concat().into()],
                signature: request.client_signature.signature.as_bytes().to_vec(),
            };
            job.run(self.config.provider.as_ref())
                .map_err(|_| StatusCode::BAD_APPLICATION_SIGNATURE_INVALID)?;
        }
        session.activated = true;
        session.connection = id;
        session.identity = Some(request.user_identity_token);
        if self.knobs.stale_nonce {
            return Ok(ActivateSessionResponse {
                server_nonce: session.nonce.clone().into(),
                ..Default::default()
            });
        }
        session.nonce = session.nonce.iter().map(|byte| byte.wrapping_add(1).max(1)).collect();
        let mut response =
            ActivateSessionResponse { server_nonce: session.nonce.clone().into(), ..Default::default() };
        if let Some(edit) = self.knobs.edit_activated {
            edit(&mut response);
        }
        Ok(response)
    }

    pub(super) fn close_session(
        &mut self,
        request: CloseSessionRequest,
        id: ConnectionId,
        _: &mut Connection,
        _: u32,
        _: Instant,
    ) -> Result<CloseSessionResponse, StatusCode> {
        let token = self.session_of(&request.request_header, id)?;
        self.sessions.remove(&token);
        self.subscriptions.retain(|_, subscription| subscription.session != token);
        Ok(CloseSessionResponse::default())
    }
}
