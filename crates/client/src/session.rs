//! CreateSession and ActivateSession (Part 4 §5.7): who we are, and proof of it.

use crate::client::Client;
use crate::config::{Identity, Target};
use crate::effect::{Effect, JobToken};
use crate::endpoint::{same_endpoints, token_policy, token_type};
use crate::error::{ClientError, SecurityProblem};
use crate::event::{Restored, Sink};
use crate::link::Answer;
use crate::outstanding::Purpose;
use std::collections::VecDeque;
use std::sync::Arc;
use taktwerk_crypto::der::leaf;
use taktwerk_crypto::secret::uses_ephemeral_keys;
use taktwerk_crypto::{
    CertificatePurpose, CryptoError, Job, JobOutput, Provider, SealSecret, Secret, SecurityPolicy,
    SessionBinding,
};
use taktwerk_schema::{
    ActivateSessionRequest, ActivateSessionResponse, AnonymousIdentityToken, ApplicationDescription,
    ApplicationType, CreateSessionRequest, CreateSessionResponse, EndpointDescription, SignatureData,
    UserNameIdentityToken, UserTokenPolicy, X509IdentityToken,
};
use taktwerk_types::{ByteString, ExtensionObject, Instant, LocalizedText, NodeId, UaString, UtcTime};

/// A session as the server gave it to us. It outlives its connections.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: NodeId,
    authentication_token: NodeId,
    /// In milliseconds.
    pub(crate) revised_timeout_ms: f64,
    /// To be signed by the next ActivateSession.
    server_nonce: Box<[u8]>,
    server_certificate: Arc<[u8]>,
    /// Of CreateSession.
    client_nonce: Box<[u8]>,
    /// How the endpoint takes identities.
    token_policies: Vec<UserTokenPolicy>,
    /// Whether ActivateSession has succeeded.
    pub(crate) activated: bool,
    /// Whether the application knows of it.
    pub(crate) told: bool,
    /// The subscriptions of the session before this one have not been taken over yet.
    pub(crate) transfer_due: bool,
    /// How often that was tried.
    pub(crate) transfers: u8,
}

/// An ActivateSession request that is waiting for its signatures.
#[derive(Debug)]
pub(crate) struct Activation {
    request: Box<ActivateSessionRequest>,
    steps: VecDeque<(Step, Job, Arc<dyn Provider>)>,
}

/// What a job of an activation is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The server's signature in CreateSession.
    VerifyServer,
    /// Our signature.
    SignClient,
    /// The certificate that the password is encrypted for, where the channel has not vouched for it.
    ValidateServer,
    /// The user's password.
    EncryptPassword,
    /// The signature of the user's certificate.
    SignUser,
}

/// What a job is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobPurpose {
    /// The channel knows.
    Channel,
    /// A step of an activation.
    Activation(Step),
}

/// Bytes of our nonces; the specification asks for 32 at least.
const NONCE_LEN: usize = 32;

impl Client {
    pub(crate) fn start_job(&mut self, purpose: JobPurpose, job: Job, provider: Arc<dyn Provider>) {
        self.next_job = self.next_job.wrapping_add(1);
        let token = JobToken(self.next_job);
        self.jobs.push((token, purpose));
        self.effects.push_back(Effect::Crypto { token, job: Box::new(job), provider });
    }

    pub(crate) fn create_session(&mut self, now: Instant, sink: &mut dyn Sink) {
        let mut nonce = vec![0; NONCE_LEN];
        self.entropy.fill(&mut nonce);
        let (Some(target), Some(chosen)) = (&self.target, &self.chosen) else { return };
        let provider = &self.config.channel.provider;
        let own = provider.own_certificate(chosen.policy);
        // Servers compare the name with the certificate's: what stands there cannot be wrong.
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
        self.client_nonce = nonce.into();
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
        let Some(chosen) = &self.chosen else { return Ok(()) };
        let policy = chosen.policy;
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
        // Without discovery the policies for identities come with the session.
        let announced = response.server_endpoints.iter().find(matching);
        let described = Some(&chosen.description).filter(|known| !known.user_identity_tokens.is_empty());
        let token_policies =
            described.or(announced).map(|endpoint| endpoint.user_identity_tokens.clone()).unwrap_or_default();
        let mut verify = None;
        if policy != SecurityPolicy::None {
            if !self.discovered.is_empty() && !same_endpoints(&self.discovered, &response.server_endpoints) {
                return Err(SecurityProblem::EndpointsChanged.into());
            }
            verify = Some(self.check_server(&response, policy)?);
        }
        let client_nonce = core::mem::take(&mut self.client_nonce);
        self.discovered = Vec::new();
        self.link.set_token(&response.authentication_token);
        self.session = Some(Session {
            id: response.session_id,
            authentication_token: response.authentication_token,
            revised_timeout_ms: response.revised_session_timeout,
            server_nonce: response.server_nonce.as_bytes().into(),
            server_certificate: response.server_certificate.as_bytes().into(),
            client_nonce,
            token_policies,
            activated: false,
            told: false,
            transfer_due: true,
            transfers: 0,
        });
        self.activate(verify, now, sink)
    }

    /// What must hold of a server's answer over a secured channel (Part 4 §5.7.2.2); the signature is left as a job.
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
        if !is_nonce(response.server_nonce.as_bytes()) {
            return Err(SecurityProblem::Nonce.into());
        }
        let certificate = Arc::clone(of_channel);
        let binding = self.binding(&certificate, response.server_nonce.as_bytes(), &self.client_nonce);
        let mut data = vec![binding.server_signature(policy)];
        data.extend(binding.server_signature_over_chain(policy));
        let signature = response.server_signature.signature.as_bytes().to_vec();
        Ok(Job::Verify { policy, certificate, data, signature })
    }

    /// What signatures of the session depend on, over the channel there is.
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

    /// Starts ActivateSession for the session there is, over the channel there is.
    pub(crate) fn activate(
        &mut self,
        verify: Option<Job>,
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Result<(), ClientError> {
        let (Some(target), Some(chosen), Some(session)) = (&self.target, &self.chosen, &self.session) else {
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
        let user = identify(target, session, policy, provider, &binding, self.link.utc(now))?;
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
            (Step::VerifyServer | Step::ValidateServer, Ok(JobOutput::Accepted)) => {}
            (Step::SignClient, Ok(JobOutput::Bytes(bytes))) => {
                request.client_signature.signature = bytes.into()
            }
            (Step::SignUser, Ok(JobOutput::Bytes(bytes))) => {
                request.user_token_signature.signature = bytes.into()
            }
            (Step::EncryptPassword, Ok(JobOutput::SealedSecret(sealed))) => {
                if let Ok(mut token) = request.user_identity_token.decode::<UserNameIdentityToken>() {
                    token.encryption_algorithm = sealed.algorithm.into();
                    token.password = sealed.bytes.into();
                    request.user_identity_token = ExtensionObject::new(&token);
                }
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
                    self.chosen.as_ref().is_some_and(|chosen| chosen.policy != SecurityPolicy::None);
                if secured && (!is_nonce(nonce) || *nonce == *session.server_nonce) {
                    return self.lose(SecurityProblem::Nonce.into(), now, sink);
                }
                session.server_nonce = nonce.into();
                session.activated = true;
                // It may have been activated before, over a connection that broke before anything came of it.
                let restored = if session.told { Restored::SameSession } else { Restored::NewSession };
                self.on_activated(restored, now, sink);
            }
            // The server does not know the old session any more, or does not give it to this channel: Part 4 §6.7 goes
            // on with a new one.
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

/// Long enough, and not what a broken generator makes (Part 4 §5.7.2.2).
fn is_nonce(nonce: &[u8]) -> bool {
    nonce.len() >= NONCE_LEN && nonce.iter().any(|byte| *byte != 0)
}

/// A user identity token and what is still missing in it.
struct User {
    token: ExtensionObject,
    signature: SignatureData,
    steps: Vec<(Step, Job, Arc<dyn Provider>)>,
}

/// Makes the user identity token (Part 4 §7.40).
fn identify(
    target: &Target,
    session: &Session,
    channel_policy: SecurityPolicy,
    provider: &Arc<dyn Provider>,
    binding: &SessionBinding,
    signing_time: UtcTime,
) -> Result<User, ClientError> {
    let plain = |token| User { token, signature: SignatureData::default(), steps: Vec::new() };
    let Some(token_policy) = token_policy(&session.token_policies, &target.identity, provider.as_ref())
    else {
        // A server that names no policies at all takes the missing token for anonymous (Part 4 §5.7.3.2).
        let anonymous = matches!(target.identity, Identity::Anonymous) && session.token_policies.is_empty();
        if anonymous {
            return Ok(plain(ExtensionObject::NULL));
        }
        return Err(SecurityProblem::NoTokenPolicy(token_type(&target.identity).1).into());
    };
    let policy_id = token_policy.policy_id.clone();
    // No policy of its own means the channel's (Part 4 §7.41).
    let policy =
        SecurityPolicy::from_uri(token_policy.security_policy_uri.as_str()).unwrap_or(channel_policy);
    match &target.identity {
        Identity::Anonymous => Ok(plain(ExtensionObject::new(&AnonymousIdentityToken { policy_id }))),
        Identity::UserName { name, password } => {
            let mut token =
                UserNameIdentityToken { policy_id, user_name: (&**name).into(), ..Default::default() };
            if policy == SecurityPolicy::None {
                if !target.allow_plaintext_password {
                    return Err(SecurityProblem::PlaintextPassword.into());
                }
                token.password = password.expose().as_bytes().into();
                return Ok(plain(ExtensionObject::new(&token)));
            }
            if uses_ephemeral_keys(policy) {
                return Err(SecurityProblem::Unsupported(policy, Default::default()).into());
            }
            if session.server_certificate.is_empty() {
                return Err(SecurityProblem::CertificateChanged.into());
            }
            let mut steps = Vec::new();
            if channel_policy == SecurityPolicy::None {
                // Anybody could have sent this certificate: it has to be trusted before a password is encrypted for it.
                let purpose = CertificatePurpose::Server { host_name: target.url.host.clone().into() };
                let chain = session.server_certificate.as_ref().into();
                steps.push((
                    Step::ValidateServer,
                    Job::Validate { certificate: chain, purpose },
                    provider.clone(),
                ));
            }
            let seal = SealSecret {
                policy,
                receiver_certificate: Arc::clone(&session.server_certificate),
                server_nonce: session.server_nonce.to_vec(),
                secret: Secret::new(password.expose().as_bytes().to_vec()),
                signing_time,
                receiver_key: None,
            };
            steps.push((Step::EncryptPassword, Job::SealSecret(seal), provider.clone()));
            Ok(User { token: ExtensionObject::new(&token), signature: SignatureData::default(), steps })
        }
        Identity::X509 { provider } => {
            if policy == SecurityPolicy::None {
                return Err(SecurityProblem::Unsupported(policy, Default::default()).into());
            }
            let certificate = provider.own_certificate(policy).ok_or(CryptoError::NoOwnCertificate);
            let certificate_data = ByteString::from(certificate.map_err(SecurityProblem::Crypto)?);
            let token = X509IdentityToken { policy_id, certificate_data };
            let signature = SignatureData {
                algorithm: policy.info().asymmetric_signature.uri().into(),
                ..SignatureData::default()
            };
            let job = Job::Sign { policy, data: binding.user_signature(policy) };
            let steps = vec![(Step::SignUser, job, provider.clone())];
            Ok(User { token: ExtensionObject::new(&token), signature, steps })
        }
    }
}
