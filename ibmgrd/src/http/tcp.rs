// SPDX-License-Identifier: Apache-2.0 OR MIT
//! HTTP over TCP, with TLS 1.3 only: what it takes to listen, and who is at the other end.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use clap::Args;
use nix::sys::socket::{setsockopt, sockopt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};
use tokio_rustls::server::TlsStream;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::credentials::{Credentials, Unknown, secret_file};
use crate::error::Error;
use crate::office::Caller;

/// How long a handshake may take.
const HANDSHAKE_TIME: Duration = Duration::from_secs(5);
/// How long the other end may keep silent about what was sent to it, in milliseconds.
const SILENCE_MS: u32 = 30_000;
/// How long a connection may be idle before the other end is asked for, and between further questions,
/// in seconds.
const IDLE: (u32, u32) = (30, 10);

/// Where to answer over TLS, and who may ask.
#[derive(Args, Clone, Debug, Default)]
pub struct TcpOptions {
    /// Address and port to answer at over TLS, too, such as 192.0.2.1:8443; may be given several times
    #[arg(long, value_name = "ADDR:PORT", requires_all = ["tls_cert", "tls_key", "tokens"])]
    pub listen: Vec<SocketAddr>,

    /// Certificate to answer with and those that sign it, as PEM
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub tls_cert: Option<PathBuf>,

    /// Its private key, as PEM
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub tls_key: Option<PathBuf>,

    /// Certificates that sign those of clients, as PEM
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub client_ca: Option<PathBuf>,

    /// Tokens and names of client certificates, with what each may do, as TOML
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub tokens: Option<PathBuf>,
}

/// What a configuration comes to, until the next one.
struct Present {
    acceptor: TlsAcceptor,
    credentials: Arc<Credentials>,
}

/// How to answer over TLS, and who may do what: the same for all listening sockets, and read again on a
/// signal. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Tls {
    options: Arc<TcpOptions>,
    present: Arc<RwLock<Arc<Present>>>,
}

/// Listens at all addresses; without any, returns `None`.
///
/// # Errors
///
/// A file is wrong or can be used by everybody, nobody could ask, or an address can't be had.
pub(crate) fn listen(options: &TcpOptions) -> Result<Option<(Vec<TcpListener>, Tls)>, Error> {
    if options.listen.is_empty() {
        return Ok(None);
    }
    let tls = Tls {
        options: Arc::new(options.clone()),
        present: Arc::new(RwLock::new(Arc::new(present(options)?))),
    };
    let mut listeners = Vec::new();
    for address in &options.listen {
        let failed = || Error::io(format!("listening at {address}"));
        let listener = TcpListener::bind(address).map_err(failed())?;
        listener.set_nonblocking(true).map_err(failed())?;
        // The port may have been left to the kernel.
        let bound = listener.local_addr().map_err(failed())?;
        tracing::info!(address = %bound, "answers over TLS");
        listeners.push(listener);
    }
    Ok(Some((listeners, tls)))
}

impl Tls {
    fn now(&self) -> Arc<Present> {
        let present = self.present.read();
        Arc::clone(&present.unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads all files again. When one is wrong, everything stays as it was.
    pub(crate) fn reload(&self) {
        match present(&self.options) {
            Ok(new) => {
                let mut present = self.present.write().unwrap_or_else(PoisonError::into_inner);
                *present = Arc::new(new);
            }
            Err(error) => {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                tracing::error!(
                    cause,
                    "certificates and tokens stay as they were read last: {error}"
                );
            }
        }
    }

    /// Begins TLS on a connection, in bounded time. `None` when nothing comes of it, which is the
    /// client's trouble.
    pub(super) async fn accept(&self, stream: TcpStream) -> Option<(TlsStream<TcpStream>, Pass)> {
        // Who is gone without a word is found out; so is who reads nothing of what it asked for. A kernel
        // without one of these does without it.
        let _ = setsockopt(&stream, sockopt::KeepAlive, &true);
        let _ = setsockopt(&stream, sockopt::TcpKeepIdle, &IDLE.0);
        let _ = setsockopt(&stream, sockopt::TcpKeepInterval, &IDLE.1);
        let _ = setsockopt(&stream, sockopt::TcpUserTimeout, &SILENCE_MS);
        let _ = stream.set_nodelay(true);
        let address = stream.peer_addr().ok()?;
        let handshake = self.now().acceptor.accept(stream);
        let stream = match tokio::time::timeout(HANDSHAKE_TIME, handshake).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => {
                tracing::debug!(%address, %error, "no TLS");
                return None;
            }
            Err(_) => {
                tracing::debug!(%address, "no TLS in time");
                return None;
            }
        };
        let certificates = stream.get_ref().1.peer_certificates();
        let names = certificates
            .and_then(<[_]>::first)
            .map(|certificate| names_of(certificate));
        let pass = Pass {
            tls: self.clone(),
            address,
            certificate: names.map(Arc::new),
        };
        Some((stream, pass))
    }
}

/// What one end of a connection over TLS has shown.
#[derive(Clone)]
pub(super) struct Pass {
    tls: Tls,
    /// Where it comes from.
    pub(super) address: SocketAddr,
    /// The names in its certificate, which a trusted one signed.
    pub(super) certificate: Option<Arc<Vec<String>>>,
}

impl Pass {
    /// Returns who has that token, as the file says by now.
    pub(super) fn token(&self, token: &[u8]) -> Result<Caller, Unknown> {
        let credentials = Arc::clone(&self.tls.now().credentials);
        credentials.token(token, SystemTime::now())
    }

    /// Returns who has the certificate that was shown.
    pub(super) fn certificate(&self, names: &[String]) -> Result<Caller, Unknown> {
        let credentials = Arc::clone(&self.tls.now().credentials);
        credentials.certificate(names, SystemTime::now())
    }
}

fn present(options: &TcpOptions) -> Result<Present, Error> {
    // The command line demands all three.
    let file = |file: &Option<PathBuf>| file.clone().unwrap_or_default();
    let (cert, key, tokens) = (
        file(&options.tls_cert),
        file(&options.tls_key),
        file(&options.tokens),
    );
    let credentials = Credentials::read(&tokens)?;
    match &options.client_ca {
        None if !credentials.has_tokens() => {
            let what = "it has no [[token]], and without --client-ca no certificate counts: nobody could ask";
            return Err(Error::tcp(&tokens, what));
        }
        Some(_) if !credentials.has_certificates() => {
            let what =
                "it has no [[certificate]]: with --client-ca, name those that may do something";
            return Err(Error::tcp(&tokens, what));
        }
        None | Some(_) => {}
    }
    let provider = Arc::new(default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&TLS13])
        .map_err(|error| Error::tcp(&cert, error.to_string()))?;
    let builder = match &options.client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(path)? {
                let added = roots.add(certificate);
                added.map_err(|error| Error::tcp(path, error.to_string()))?;
            }
            // Who has none may have a token.
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .allow_unauthenticated()
                .build();
            let verifier = verifier.map_err(|error| Error::tcp(path, error.to_string()))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let chain = certificates(&cert)?;
    let private = secret_file(&key)?;
    let private = PrivateKeyDer::from_pem_slice(&private);
    let private = private.map_err(|_| Error::tcp(&key, "it is no private key as PEM"))?;
    let config = builder.with_single_cert(chain, private);
    let mut config = config.map_err(|error| Error::tcp(&cert, error.to_string()))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Present {
        acceptor: TlsAcceptor::from(Arc::new(config)),
        credentials: Arc::new(credentials),
    })
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let text = std::fs::read(path);
    let text = text.map_err(Error::io(format!("reading {}", path.display())))?;
    let all = CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>();
    let all = all.map_err(|error| Error::tcp(path, error.to_string()))?;
    if all.is_empty() {
        return Err(Error::tcp(path, "it has no certificate as PEM"));
    }
    Ok(all)
}

/// Returns the names of a certificate: of its subject, then the alternative ones (RFC 5280, sections
/// 4.1.2.6 and 4.2.1.6).
fn names_of(certificate: &CertificateDer<'_>) -> Vec<String> {
    let Ok((_, certificate)) = X509Certificate::from_der(certificate) else {
        return Vec::new();
    };
    let subject = certificate.subject().iter_common_name();
    let mut names: Vec<String> = subject
        .filter_map(|name| name.as_str().ok().map(str::to_owned))
        .collect();
    if let Ok(Some(others)) = certificate.subject_alternative_name() {
        names.extend(
            others
                .value
                .general_names
                .iter()
                .filter_map(|name| match name {
                    GeneralName::DNSName(name)
                    | GeneralName::RFC822Name(name)
                    | GeneralName::URI(name) => Some((*name).to_owned()),
                    _ => None,
                }),
        );
    }
    names
}
