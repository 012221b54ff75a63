// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whoever asks over TLS: certificates made by openssl, requests by curl, and connections kept by rustls.

use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::support::{Daemon, Home, Net};

pub(crate) const ADDRESS: &str = "127.0.0.1:8443";
/// No extensions but those that are asked for.
const OPENSSL: &str = "[req]\ndistinguished_name = dn\n[dn]\n";

/// A namespace with the pair `v0`, `v1`, and its loopback up.
pub(crate) fn net() -> Net {
    let net = Net::with_veth();
    net.run("ip link set lo up");
    net
}

#[track_caller]
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output();
    let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

impl Home {
    /// Writes a file that only its owner may read.
    pub(crate) fn secret(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("its mode");
        path
    }

    /// Makes `NAME.pem` and `NAME.key`, signed by `by`, or by itself as an authority.
    pub(crate) fn certificate(
        &self,
        name: &str,
        subject: &str,
        alternative: &str,
        by: Option<&str>,
    ) {
        let config = self.secret("openssl.cnf", OPENSSL);
        let mut openssl = Command::new("openssl");
        openssl
            .args([
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
            ])
            .args(["-nodes", "-days", "2", "-subj", subject, "-config"])
            .arg(config)
            .arg("-keyout")
            .arg(self.path(&format!("{name}.key")))
            .arg("-out")
            .arg(self.path(&format!("{name}.pem")));
        match by {
            None => openssl.args(["-addext", "basicConstraints=critical,CA:TRUE"]),
            Some(by) => openssl
                .arg("-CA")
                .arg(self.path(&format!("{by}.pem")))
                .arg("-CAkey")
                .arg(self.path(&format!("{by}.key")))
                .args(["-addext", "basicConstraints=critical,CA:FALSE"]),
        };
        if !alternative.is_empty() {
            openssl.args(["-addext", &format!("subjectAltName={alternative}")]);
        }
        run(&mut openssl);
        let key = self.path(&format!("{name}.key"));
        fs::set_permissions(key, fs::Permissions::from_mode(0o600)).expect("its mode");
    }

    /// Makes an authority, and the daemon's certificate by it.
    pub(crate) fn authority(&self) {
        self.certificate("ca", "/CN=Authority", "", None);
        self.certificate("server", "/CN=ibmgrd", "IP:127.0.0.1", Some("ca"));
    }

    /// Returns the arguments for TLS.
    pub(crate) fn tls_args(&self) -> Vec<String> {
        let path = |name: &str| self.path(name).to_str().expect("UTF-8").to_owned();
        let mut args = vec!["--listen".to_owned(), ADDRESS.to_owned()];
        for (name, file) in [
            ("--tls-cert", "server.pem"),
            ("--tls-key", "server.key"),
            ("--tokens", "tokens.toml"),
            ("--client-ca", "ca.pem"),
        ] {
            args.extend([name.to_owned(), path(file)]);
        }
        args
    }

    /// Starts a daemon that answers over TLS.
    #[track_caller]
    pub(crate) fn start_tls(&self) -> Daemon<'_> {
        let args = self.tls_args();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        self.start(&args)
    }

    /// Returns `curl` for the daemon; it prints the body, then a line with the status.
    pub(crate) fn curl(&self, path: &str) -> Command {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--max-time", "20", "--cacert"])
            .arg(self.path("ca.pem"))
            .args(["--write-out", "\n%{http_code}"])
            .arg(format!("https://{ADDRESS}{path}"));
        curl
    }

    /// Opens a connection of our own that stays.
    pub(crate) fn connect(&self) -> Stream {
        let socket = TcpStream::connect(ADDRESS).expect("the daemon listens");
        socket
            .set_read_timeout(Some(Duration::from_secs(20)))
            .expect("a time limit");
        let mut roots = RootCertStore::empty();
        let ca = CertificateDer::from_pem_file(self.path("ca.pem")).expect("a certificate");
        roots.add(ca).expect("an authority");
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = "127.0.0.1".try_into().expect("a name");
        let tls = ClientConnection::new(Arc::new(config), name).expect("a client");
        StreamOwned::new(tls, socket)
    }
}

pub(crate) type Stream = StreamOwned<ClientConnection, TcpStream>;

/// Runs what [`Home::curl`] made; status and body.
#[track_caller]
pub(crate) fn answer(curl: &mut Command) -> (u16, String) {
    let text = run(curl);
    let (body, status) = text.rsplit_once('\n').expect("a status");
    (status.parse().expect("a number"), body.to_owned())
}

/// The same, as a problem's detail.
#[track_caller]
pub(crate) fn detail(curl: &mut Command) -> (u16, String) {
    let (status, body) = answer(curl);
    let problem: Value = serde_json::from_str(&body).unwrap_or_default();
    let detail = problem["detail"].as_str().unwrap_or_default().to_owned();
    (status, detail)
}
