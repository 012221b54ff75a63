// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The daemon keeps its OpenAPI document: requests are made from it, right and wrong ones, over TLS in a
//! network namespace, and each answer is held against it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use anyhow::{Context as _, Result};
use ib_tests::lab::cache::Cache;
use ib_tests::lab::place;
use ib_tests::lab::schemathesis::Schemathesis;
use ib_tests::lab::session::build_program;

/// Starts the daemon with a token, and lets requests at it. What stands in capitals comes in the
/// environment. The daemon must be there at the end, no larger than 64 MB.
const SCRIPT: &str = r#"
set -eu
mount --make-rprivate /
mount -t sysfs sysfs /sys
mount -t tmpfs -o mode=755 tmpfs /run
ip link set lo up
ip link add v0 type veth peer name p0
ip link set p0 up
mkdir /run/conf.d
cd /run
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=ibmgrd \
    -addext subjectAltName=IP:127.0.0.1 -keyout key.pem -out cert.pem 2>/dev/null
umask 077
printf '[[token]]\nname = "fuzz"\nsha256 = "%s"\nrights = ["read", "write"]\n' \
    "$(printf token | sha256sum | cut -d ' ' -f 1)" > tokens.toml
chmod 600 key.pem
"$DAEMON" --config-dir conf.d --socket http.sock --state-dir state --keep-dir keep --lock lock \
    --listen 127.0.0.1:8443 --tls-cert cert.pem --tls-key key.pem --tokens tokens.toml 2>log &
daemon=$!
trap 'kill $daemon' EXIT
for try in $(seq 100); do
    [ -S http.sock ] && break
    sleep 0.1
done
# The right namespace, else hardly any request gets further than that.
ask() { curl --silent --cacert cert.pem --header 'Authorization: Bearer token' "$@"; }
namespace=$(ask --header 'Ibmgr-Namespace: 1' https://127.0.0.1:8443/healthz | sed -n 's/.*the network namespace \([0-9]*\),.*/\1/p')
cat > schemathesis.toml <<'END'
[checks]
# Words of the document can be right and still name no knob, or a value that this device does not take.
positive_data_acceptance.enabled = false
# A request for another network namespace is turned away before its body is looked at.
negative_data_rejection.expected-statuses = [400, 401, 403, 404, 405, 406, 409, 412, 413, 415, 421, 422, 428]
END
# The stream of events never ends.
$SCHEMATHESIS --config-file schemathesis.toml run "$DOCUMENT" --url https://127.0.0.1:8443 --tls-verify false \
    --header 'Authorization: Bearer token' --header "Ibmgr-Namespace: $namespace" --exclude-path /v1/events --max-examples "$EXAMPLES" --seed 1 \
    --no-color || { tail -20 log; exit 1; }
kill -0 $daemon
awk '/^VmHWM/ { print "the daemon took at most " $2 " kB"; exit $2 > 65536 }' /proc/$daemon/status
"#;

#[test]
fn the_daemon_keeps_its_document() -> Result<()> {
    let cache = Cache::open()?;
    let program = Schemathesis::ensure(&cache)?;
    let folder = tempfile::tempdir()?;
    let script = folder.path().join("run.sh");
    fs::write(&script, SCRIPT)?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o700))?;
    let is_long = std::env::var_os("IB_TESTS_LONG").is_some();
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("unshare")
        .args(["--net", "--mount", "sh"])
        .arg(&script)
        .env("PATH", format!("{path}:/usr/sbin:/sbin"))
        .env("HOME", folder.path())
        .env("DAEMON", build_program("ibmgrd", false)?)
        .env(
            "DOCUMENT",
            place::repo().join("docs/reference/openapi.json"),
        )
        .env("SCHEMATHESIS", program.words())
        .env("EXAMPLES", if is_long { "500" } else { "20" })
        .output()
        .context("can't run unshare")?;
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{printed}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(printed.contains("Tested: 13"), "{printed}");
    Ok(())
}
