//! CreateSession and ActivateSession (Part 4 §5.7): user identity and proof of it.

use crate::client::Client;
use crate::effect::{Effect, JobToken};
use crate::endpoint::same_endpoints;
use crate::error::{ClientError, SecurityProblem, is_busy};
use crate::event::{Restored, Sink};
use crate::identity::{Applicant, key_policy, put_secret};
use crate::link::Answer;
use crate::outstanding::Purpose;
use crate::session::{Activation, JobPurpose, NONCE_LEN, Session, Step, is_nonce};
use std::collections::VecDeque;
use std::sync::Arc;
use taktwerk_channel::ephemeral;
use taktwerk_crypto::der::leaf;
use taktwerk_crypto::{CryptoError, Job, JobOutput, Provider, SecurityPolicy, SessionBinding};
use taktwerk_schema::{
    ActivateSessionRequest, ActivateSessionResponse, ApplicationDescription, ApplicationType,
    CreateSessionRequest, CreateSessionResponse, EndpointDescription, EphemeralKeyType, ResponseHeader,
};
use taktwerk_types::{Instant, LocalizedText, NodeId, UaString};

impl Client {
    pub(crate) fn start_job(&mut self, purpose: JobPurpose, job: Job, provider: Arc<dyn Provider>) {
        self.jobs.last = self.jobs.last.wrapping_add(1);
        let token = JobToken(self.jobs.last);
        self.work.jobs += 1;
        self.jobs.waiting.push((token, purpose));
        self.effects.push_back(Effect::Crypto { token, job: Box::new(job), provider });
    }

    pub(crate) fn create_session(&mut self, now: Instant, sink: &mut dyn Sink) {
        let mut nonce = vec![0; NONCE_LEN];
        self.entropy.fill(&mut nonce);
        let (Some(target), Some(chosen)) = (&self.dialled.target, &self.dialled.chosen) else { return };
        let provider = &self.config.channel.provider;
        let own = provider.own_certificate(chosen.policy);
        // Servers compare the ApplicationUri with the certificate's, so use the one in the certificate.
        let of_certificate = own.and_then(|own| provider.application_uri(own));
        let application_uri = of_certificate.as_deref().unwrap_or(&self.config.application_uri);
        let mut request = CreateSessionRequest {
            client_description: ApplicationDescription {
                application_uri: application_uri.into(),
                product_uri: (&*self.config.product_uri).into(),
                application_name: LocalizedText::from_text(&*self.config.application_name),
                application_type: ApplicationType::CLIENT,
                ..ApplicationDescription::default()
            },
            endpoint_url: chosen.url.to_string().into(),
            session_name: (&*target.session_name).into(),
            client_nonce: nonce.clone().into(),
            client_certificate: own.into(),
            requested_session_timeout: self.config.session_timeout_ms,
            max_response_message_size: self.config.channel.limits.message_size_max,
            ..CreateSessionRequest::default()
        };
        // The server sends the key for encrypting a secret only if it is asked for it.
        let token_policies = &chosen.description.user_identity_tokens;
        if let Some(policy) = key_policy(token_policies, &target.identity, chosen.policy, provider.as_ref()) {
            request.request_header.additional_header = ephemeral::ask(policy);
        }
        self.nonces.client = nonce.into();
        self.send_step(&mut request, Purpose::CreateSession, now, sink);
    }

    pub(crate) fn on_session_created(
        &mut self,
        result: Result<Answer<'_>, ClientError>,
        now: Instant,
        sink: &mut dyn Sink,
    ) {
        match result.and_then(|answer| answer.read("CreateSession")) {
            Ok(response) => {
                if let Err(error) = self.accept_session(response, now, sink) {
                    self.lose(error, now, sink);
                }
            }
            Err(error) => self.lose(error, now, sink),
        }
    }

    fn accept_session(
        &mut self,
        response: CreateSessionResponse,
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Result<(), ClientError> {
        let Some(chosen) = &self.dialled.chosen else { return Ok(()) };
        let policy = chosen.policy;
        let security = (policy, chosen.mode);
        let repeated = self
            .session
            .as_ref()
            .is_some_and(|old| old.authentication_token == response.authentication_token);
        if repeated || response.authentication_token.is_null() {
            return Err(SecurityProblem::TokenRepeated.into());
        }
        let matching = |endpoint: &&EndpointDescription| {
            endpoint.security_policy_uri.as_str() == policy.uri()
                && endpoint.security_mode.0 == chosen.mode.number()
        };
        // Without discovery, the token policies arrive with CreateSession.
        let announced = response.server_endpoints.iter().find(matching);
        let described = Some(&chosen.description).filter(|known| !known.user_identity_tokens.is_empty());
        let token_policies =
            described.or(announced).map(|endpoint| endpoint.user_identity_tokens.clone()).unwrap_or_default();
        let mut verify = None;
        if policy != SecurityPolicy::None {
            if !self.dialled.discovered.is_empty()
                && !same_endpoints(&self.dialled.discovered, &response.server_endpoints)
            {
                return Err(SecurityProblem::EndpointsChanged.into());
            }
            verify = Some(self.check_server(&response, policy)?);
        }
        let client_nonce = core::mem::take(&mut self.nonces.client);
        let key = offered_key(&response.response_header);
        self.dialled.discovered = Vec::new();
        self.nonces.server = response.server_nonce.as_bytes().into();
        self.link.set_token(&response.authentication_token);
        self.session = Some(Session {
            id: response.session_id,
            authentication_token: response.authentication_token,
            revised_timeout_ms: response.revised_session_timeout,
            server_nonce: response.server_nonce.as_bytes().into(),
            server_certificate: response.server_certificate.as_bytes().into(),
            security,
            client_nonce,
            token_policies,
            key,
            activated: false,
            is_reported: false,
            transfer_due: true,
            transfers: 0,
        });
        self.activate(verify, now, sink)
    }

    /// Checks a CreateSession response over a secured channel (Part 4 §5.7.2.2). The signature is verified by a
    /// separate job.
    fn check_server(
        &self,
        response: &CreateSessionResponse,
        policy: SecurityPolicy,
    ) -> Result<Job, ClientError> {
        let certificate = response.server_certificate.as_bytes();
        let of_channel = self.link.channel.as_ref().and_then(|channel| channel.peer_certificate());
        let Some(of_channel) = of_channel.filter(|known| leaf(known) == leaf(certificate)) else {
            return Err(SecurityProblem::CertificateChanged.into());
        };
        let nonce = response.server_nonce.as_bytes();
        if !is_nonce(nonce) || *nonce == *self.nonces.server || *nonce == *self.nonces.client {
            return Err(SecurityProblem::Nonce.into());
        }
        self.check_application(of_channel, response)?;
        let certificate = Arc::clone(of_channel);
        let binding = self.binding(&certificate, response.server_nonce.as_bytes(), &self.nonces.client);
        let mut data = vec![binding.server_signature(policy)];
        data.extend(binding.server_signature_over_chain(policy));
        let signature = response.server_signature.signature.as_bytes().to_vec();
        Ok(Job::Verify { policy, certificate, data, signature })
    }

    /// Checks that the server is the application named in its endpoints (Part 4 §5.5.1).
    fn check_application(
        &self,
        certificate: &[u8],
        response: &CreateSessionResponse,
    ) -> Result<(), SecurityProblem> {
        let named = self.config.channel.provider.application_uri(certificate);
        let of_discovery = self.dialled.chosen.as_ref().map(|chosen| &chosen.description);
        let described = of_discovery.filter(|known| !known.security_policy_uri.is_empty());
        let mut claims = described.into_iter().chain(&response.server_endpoints);
        if claims.all(|claim| named.as_deref() == Some(claim.server.application_uri.as_str())) {
            return Ok(());
        }
        Err(SecurityProblem::ApplicationUri { certificate: named.map(Into::into) })
    }

    /// The data that session signatures depend on, for the current channel.
    fn binding(
        &self,
        server_certificate: &Arc<[u8]>,
        server_nonce: &[u8],
        client_nonce: &[u8],
    ) -> SessionBinding {
        let channel = self.link.channel.as_ref();
        let own = channel.and_then(|channel| self.config.channel.provider.own_certificate(channel.policy()));
        SessionBinding {
            channel_thumbprint: channel.map_or_else(Arc::default, |channel| channel.thumbprint().into()),
            server_certificate: Arc::clone(server_certificate),
            client_certificate: own.unwrap_or_default().into(),
            server_nonce: server_nonce.to_vec(),
            client_nonce: client_nonce.to_vec(),
        }
    }

    /// Whether the current session can be reactivated on the current channel: it was activated, and the channel has the
    /// same security and the same server certificate (Part 4 §5.6.2.1). Otherwise another server would get its token,
    /// or would be accepted without the proof in CreateSession.
    pub(crate) fn can_reactivate(&self) -> bool {
        let (Some(session), Some(channel)) = (&self.session, &self.link.channel) else { return false };
        let (policy, _) = session.security;
        let is_same_server = match channel.peer_certificate() {
            Some(certificate) => leaf(certificate) == leaf(&session.server_certificate),
            None => !policy.is_secure(),
        };
        session.activated && session.security == (channel.policy(), channel.mode()) && is_same_server
    }

    /// Starts ActivateSession for the current session on the current channel.
    pub(crate) fn activate(
        &mut self,
        verify: Option<Job>,
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Result<(), ClientError> {
        let (Some(target), Some(chosen), Some(session)) =
            (&self.dialled.target, &self.dialled.chosen, &self.session)
        else {
            return Ok(());
        };
        let policy = chosen.policy;
        let provider = &self.config.channel.provider;
        let mut steps = VecDeque::new();
        if let Some(job) = verify {
            steps.push_back((Step::VerifyServer, job, provider.clone()));
        }
        let mut request = ActivateSessionRequest {
            locale_ids: target.locale_ids.iter().map(|locale| UaString::from(&**locale)).collect(),
            ..ActivateSessionRequest::default()
        };
        let binding = self.binding(&session.server_certificate, &session.server_nonce, &session.client_nonce);
        if policy != SecurityPolicy::None {
            request.client_signature.algorithm = policy.info().asymmetric_signature.uri().into();
            let job = Job::Sign { policy, data: binding.client_signature(policy) };
            steps.push_back((Step::SignClient, job, provider.clone()));
        }
        let applicant = Applicant {
            target,
            token_policies: &session.token_policies,
            server_certificate: &session.server_certificate,
            key: session.key.as_ref(),
            channel: (policy, chosen.mode),
            provider,
            binding: &binding,
            now: self.link.utc(now),
        };
        let user = applicant.identify()?;
        request.user_identity_token = user.token;
        request.user_token_signature = user.signature;
        steps.extend(user.steps);
        self.activation = Some(Activation { request: Box::new(request), steps });
        self.next_activation_step(now, sink);
        Ok(())
    }

    fn next_activation_step(&mut self, now: Instant, sink: &mut dyn Sink) {
        let Some(activation) = &mut self.activation else { return };
        if let Some((step, job, provider)) = activation.steps.pop_front() {
            return self.start_job(JobPurpose::Activation(step), job, provider);
        }
        if let Some(mut activation) = self.activation.take() {
            self.send_step(&mut *activation.request, Purpose::ActivateSession, now, sink);
        }
    }

    pub(crate) fn on_activation_job(
        &mut self,
        step: Step,
        result: Result<JobOutput, CryptoError>,
        now: Instant,
        sink: &mut dyn Sink,
    ) {
        let Some(activation) = &mut self.activation else { return };
        let request = &mut activation.request;
        match (step, result) {
            (Step::VerifyServer | Step::ValidateServer | Step::VerifyKey, Ok(JobOutput::Accepted)) => {}
            (Step::SignClient, Ok(JobOutput::Bytes(bytes))) => {
                request.client_signature.signature = bytes.into()
            }
            (Step::SignUser, Ok(JobOutput::Bytes(bytes))) => {
                request.user_token_signature.signature = bytes.into()
            }
            (Step::EncryptSecret, Ok(JobOutput::SealedSecret(sealed))) => {
                put_secret(&mut request.user_identity_token, sealed);
            }
            (_, result) => {
                let error = result.err().unwrap_or(CryptoError::Internal);
                return self.lose(SecurityProblem::Crypto(error).into(), now, sink);
            }
        }
        self.next_activation_step(now, sink);
    }

    pub(crate) fn on_session_activated(
        &mut self,
        result: Result<Answer<'_>, ClientError>,
        now: Instant,
        sink: &mut dyn Sink,
    ) {
        let result = result.and_then(|answer| answer.read::<ActivateSessionResponse>("ActivateSession"));
        let Some(session) = &mut self.session else { return };
        match result {
            Ok(response) => {
                let nonce = response.server_nonce.as_bytes();
                let secured =
                    self.dialled.chosen.as_ref().is_some_and(|chosen| chosen.policy != SecurityPolicy::None);
                if secured && (!is_nonce(nonce) || *nonce == *session.server_nonce) {
                    return self.lose(SecurityProblem::Nonce.into(), now, sink);
                }
                self.nonces.server = nonce.into();
                session.server_nonce = nonce.into();
                session.key = offered_key(&response.response_header);
                session.activated = true;
                // It may have been activated before, over a connection that broke before the application was notified.
                let restored = if session.is_reported { Restored::SameSession } else { Restored::NewSession };
                self.on_activated(restored, now, sink);
            }
            // A busy server would refuse a new session, too: keep the old one for the next attempt.
            Err(error) if is_busy(error.status()) => self.lose(error, now, sink),
            Err(error) if error.is_refused_user() && !self.config.reconnect.retry_refused_user => {
                self.lose(error, now, sink);
            }
            // The server has lost the session or refuses it on this channel. Part 4 §6.7 requires a new session then.
            Err(ClientError::Service { .. }) if session.activated => {
                self.forget_session();
                self.create_session(now, sink);
            }
            Err(error) => self.lose(error, now, sink),
        }
    }

    pub(crate) fn forget_session(&mut self) {
        self.session = None;
        self.link.set_token(&NodeId::NULL);
        self.publisher.reset();
    }
}

/// The key for a secret that a response offers. If it is missing, only identities that need one fail.
fn offered_key(header: &ResponseHeader) -> Option<EphemeralKeyType> {
    ephemeral::offered(&header.additional_header)?.ok()
}
