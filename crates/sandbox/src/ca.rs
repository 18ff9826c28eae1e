//! The certificate authority of a sandbox. It is created at each start and valid only for the sandbox's own hosts.

use std::sync::Arc;

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, GeneralSubtree, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, NameConstraints, date_time_ymd,
};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// The domain of every sandbox host. `.example` is reserved (RFC 2606), so no such host exists.
pub(super) const DOMAIN: &str = "sandbox.example";

/// Creates an authority and one certificate for `hosts`. Returns the authority's certificate, and what the servers of
/// these hosts use. The authority's key is dropped, so it cannot sign anything else.
///
/// The authority can vouch only for hosts below [`DOMAIN`], so that trusting it by mistake is harmless.
pub(super) fn issue_certificates(hosts: &[&str]) -> Result<(String, Arc<ServerConfig>), rcgen::Error> {
    let ca_key = KeyPair::generate()?;
    let ca = authority_params()?;
    let ca_pem = ca.self_signed(&ca_key)?.pem();

    let key = KeyPair::generate()?;
    let names: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
    let mut leaf = with_validity(CertificateParams::new(names)?);
    leaf.distinguished_name.push(DnType::CommonName, DOMAIN);
    leaf.use_authority_key_identifier_extension = true;
    leaf.key_usages.push(KeyUsagePurpose::DigitalSignature);
    leaf.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
    let certificate = leaf.signed_by(&key, &Issuer::new(ca, ca_key))?;

    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut tls = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has cipher suites for TLS 1.2 and 1.3")
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
        )
        .expect("certificate and key were made for each other");
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok((ca_pem, Arc::new(tls)))
}

fn authority_params() -> Result<CertificateParams, rcgen::Error> {
    let mut ca = with_validity(CertificateParams::new(Vec::new())?);
    ca.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    ca.distinguished_name.push(DnType::CommonName, "clresolve sandbox, of no worth anywhere else");
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    ca.name_constraints = Some(NameConstraints {
        permitted_subtrees: vec![GeneralSubtree::DnsName(DOMAIN.to_owned())],
        excluded_subtrees: Vec::new(),
    });
    Ok(ca)
}

/// Valid from the start of last year to the end of next year, to tolerate a slightly wrong clock.
fn with_validity(mut params: CertificateParams) -> CertificateParams {
    let year = i32::from(Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).year());
    params.not_before = date_time_ymd(year - 1, 1, 1);
    params.not_after = date_time_ymd(year + 2, 1, 1);
    params
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_start_has_another_authority() {
        let [one, two] = [issue_certificates(&["a.sandbox.example"]), issue_certificates(&["a.sandbox.example"])]
            .map(Result::unwrap);
        assert_ne!(one.0, two.0);
        assert!(!one.0.contains("PRIVATE"));
    }
}
