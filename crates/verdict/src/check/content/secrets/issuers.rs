//! Token formats as documented by their issuers. Most issuers give their tokens a prefix so that scanners find them.

use std::sync::LazyLock;

use super::random::{has_digit, is_random, is_scrambled};

/// A token format: its prefix, and the characters after it.
pub(super) struct Issuer {
    pub(super) prefix: &'static str,
    /// Minimum number of characters after the prefix.
    pub(super) least: usize,
    /// Maximum number of characters after the prefix.
    most: usize,
    pub(super) letters: Letters,
    pub(super) kind: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Letters {
    /// Letters, digits, `-`, `_` and `.`, with at least one digit.
    Digit,
    /// Like [`Letters::Digit`], but in mixed case or hexadecimal, because the prefix could begin a word.
    Random,
    /// Upper-case letters and digits.
    Upper,
    /// Hexadecimal digits and hyphens, with at least one digit.
    Hex,
    /// Lowercase letters and digits, at least one in eight of which is a digit.
    Small,
    /// Scrambled letters of both cases. Only these need no digit.
    Scrambled,
}

/// At least `least` characters after a prefix that begins no word.
const fn any(prefix: &'static str, least: usize, kind: &'static str) -> Issuer {
    Issuer { prefix, least, most: usize::MAX, letters: Letters::Digit, kind }
}

/// At least `least` random characters after a prefix that could begin a word.
const fn random(prefix: &'static str, least: usize, kind: &'static str) -> Issuer {
    Issuer { prefix, least, most: usize::MAX, letters: Letters::Random, kind }
}

/// Exactly `length` characters of one kind.
const fn exact(prefix: &'static str, length: usize, letters: Letters, kind: &'static str) -> Issuer {
    Issuer { prefix, least: length, most: length, letters, kind }
}

const PRIVATE_KEY: &str = "a private key";
const API_KEY: &str = "a secret API key";
const GITHUB: &str = "a GitHub token";
const GITLAB: &str = "a GitLab token";
const SLACK: &str = "a Slack token";
const STRIPE: &str = "a Stripe key";
const SHOPIFY: &str = "a Shopify token";
const VAULT: &str = "a Vault token";
const GRAFANA: &str = "a Grafana token";
const SONAR: &str = "a SonarQube token";
const HUGGING_FACE: &str = "a Hugging Face token";

pub(super) const ISSUERS: [Issuer; 153] = [
    // Keys.
    any("AGE-SECRET-KEY-1", 40, "an age secret key"),
    any("AGE-PLUGIN-", 30, "an age secret key"),
    any("nsec1", 50, "a Nostr secret key"),
    any("xprv", 100, "an extended private key"),
    any("yprv", 100, "an extended private key"),
    any("zprv", 100, "an extended private key"),
    any("tprv", 100, "an extended private key"),
    exact("6P", 56, Letters::Random, "an encrypted private key"),
    any("edsk", 50, PRIVATE_KEY),
    any("suiprivkey1", 50, PRIVATE_KEY),
    any("ed25519-priv-", 20, PRIVATE_KEY),
    // The start of private keys in base64: PEM encoded again, OpenSSH's format, and DER.
    any("LS0tLS1CRUdJTiBQUklWQVRFIEtFW", 1, PRIVATE_KEY),
    any("LS0tLS1CRUdJTiBSU0EgUFJJVkFURS", 1, PRIVATE_KEY),
    any("LS0tLS1CRUdJTiBFQyBQUklWQVRFI", 1, PRIVATE_KEY),
    any("LS0tLS1CRUdJTiBPUEVOU1NIIFBSSVZBVEUg", 1, PRIVATE_KEY),
    any("LS0tLS1CRUdJTiBFTkNSWVBURUQgUFJJVkFURS", 1, PRIVATE_KEY),
    any("b3BlbnNzaC1rZXktdjEA", 1, PRIVATE_KEY),
    any("MC4CAQAwBQYDK2VwBCIEI", 1, PRIVATE_KEY),
    any("MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQ", 1, PRIVATE_KEY),
    any("MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", 1, PRIVATE_KEY),
    any("MIIEvAIBADANBgkqhkiG9w0BAQEFAASC", 1, PRIVATE_KEY),
    any("MIIEowIBAAKCAQEA", 1, PRIVATE_KEY),
    any("MIIEpAIBAAKCAQEA", 1, PRIVATE_KEY),
    any("MHcCAQEEI", 40, PRIVATE_KEY),
    // Clouds.
    exact("AKIA", 16, Letters::Upper, "an AWS access key"),
    exact("ASIA", 16, Letters::Upper, "an AWS access key"),
    exact("ABIA", 16, Letters::Upper, "an AWS access key"),
    exact("ACCA", 16, Letters::Upper, "an AWS access key"),
    any("AIza", 35, "a Google API key"),
    any("ya29.", 20, "a Google access token"),
    any("GOCSPX-", 20, "a Google client secret"),
    random("LTAI", 17, "an Alibaba Cloud key"),
    exact("AKID", 32, Letters::Digit, "a Tencent Cloud key"),
    any("dop_v1_", 40, "a DigitalOcean token"),
    any("doo_v1_", 40, "a DigitalOcean token"),
    any("dor_v1_", 40, "a DigitalOcean token"),
    any("HRKU-", 30, "a Heroku key"),
    random("fo1_", 40, "a Fly.io token"),
    random("fm2_", 40, "a Fly.io token"),
    random("nfp_", 36, "a Netlify token"),
    any("sbp_", 36, "a Supabase token"),
    any("sb_secret_", 20, "a Supabase key"),
    exact("dapi", 32, Letters::Hex, "a Databricks token"),
    any("dp.pt.", 40, "a Doppler token"),
    any("dp.st.", 40, "a Doppler token"),
    any("hvs.", 24, VAULT),
    any("hvb.", 24, VAULT),
    any("hvr.", 24, VAULT),
    random("pul-", 40, "a Pulumi token"),
    any("pscale_tkn_", 32, "a PlanetScale token"),
    any("pscale_pw_", 32, "a PlanetScale password"),
    any("CFPAT-", 40, "a Contentful token"),
    exact("v1.0-", 171, Letters::Hex, "a Cloudflare key"),
    any("tskey-", 20, "a Tailscale key"),
    random("flyv1_", 40, "a Fly.io token"),
    random("scw_", 30, "a Scaleway key"),
    // Code hosts and registries of packages.
    any("github_pat_", 22, GITHUB),
    any("gho_", 30, GITHUB),
    any("ghp_", 30, GITHUB),
    any("ghr_", 30, GITHUB),
    any("ghs_", 30, GITHUB),
    any("ghu_", 30, GITHUB),
    any("glpat-", 20, GITLAB),
    any("gldt-", 20, GITLAB),
    any("glrt-", 20, GITLAB),
    any("glptt-", 20, GITLAB),
    any("gloas-", 20, GITLAB),
    any("glcbt-", 20, GITLAB),
    any("glsoat-", 20, GITLAB),
    any("glagent-", 20, GITLAB),
    any("glffct-", 20, GITLAB),
    any("glft-", 20, GITLAB),
    any("glimt-", 20, GITLAB),
    any("ATBB", 28, "a Bitbucket password"),
    any("ATATT3", 60, "an Atlassian token"),
    random("npm_", 30, "an npm token"),
    any("pypi-", 50, "a PyPI token"),
    any("rubygems_", 40, "a RubyGems key"),
    any("dckr_pat_", 24, "a Docker token"),
    any("dckr_oat_", 24, "a Docker token"),
    exact("oy2", 43, Letters::Digit, "a NuGet key"),
    exact("cio", 32, Letters::Random, "a crates.io token"),
    any("CLOJARS_", 40, "a Clojars token"),
    any("AKCp", 60, "an Artifactory key"),
    any("bkua_", 30, "a Buildkite token"),
    any("CCIPAT_", 30, "a CircleCI token"),
    any("CCIPRJ_", 30, "a CircleCI token"),
    any("sqp_", 36, SONAR),
    any("squ_", 36, SONAR),
    any("sqa_", 36, SONAR),
    any("PMAK-", 40, "a Postman key"),
    any("lin_api_", 30, "a Linear key"),
    any("figd_", 30, "a Figma token"),
    random("ntn_", 40, "a Notion token"),
    // Chat services and mail.
    any("xapp-", 20, SLACK),
    any("xoxa-", 10, SLACK),
    any("xoxb-", 10, SLACK),
    any("xoxc-", 10, SLACK),
    any("xoxd-", 10, SLACK),
    any("xoxe-", 10, SLACK),
    any("xoxe.", 10, SLACK),
    any("xoxp-", 10, SLACK),
    any("xoxr-", 10, SLACK),
    any("xoxs-", 10, SLACK),
    any("xwfp-", 10, SLACK),
    random("SG.", 40, "a SendGrid key"),
    exact("key-", 32, Letters::Small, "a Mailgun key"),
    exact("SK", 32, Letters::Hex, "a Twilio key"),
    any("xkeysib-", 60, "a Brevo key"),
    exact("pat-na1-", 36, Letters::Hex, "a HubSpot token"),
    exact("pat-eu1-", 36, Letters::Hex, "a HubSpot token"),
    any("EAAC", 60, "a Facebook access token"),
    any("EAAG", 60, "a Facebook access token"),
    // Payment.
    any("rk_live_", 16, STRIPE),
    any("rk_test_", 16, STRIPE),
    any("sk_live_", 16, STRIPE),
    any("sk_test_", 16, STRIPE),
    random("whsec_", 16, "a webhook secret"),
    any("sq0csp-", 40, "a Square secret"),
    any("sq0atp-", 20, "a Square token"),
    any("EAAA", 60, "a Square token"),
    any("shpat_", 30, SHOPIFY),
    any("shpca_", 30, SHOPIFY),
    any("shppa_", 30, SHOPIFY),
    any("shpss_", 30, SHOPIFY),
    exact("access-production-", 36, Letters::Hex, "a Plaid token"),
    exact("access-sandbox-", 36, Letters::Hex, "a Plaid token"),
    exact("live_", 30, Letters::Random, "a Mollie key"),
    any("FLWSECK-", 32, "a Flutterwave key"),
    any("FLWSECK_TEST-", 12, "a Flutterwave key"),
    // Models.
    random("sk-", 20, API_KEY),
    exact("sk-or-v1-", 64, Letters::Hex, API_KEY),
    random("gsk_", 40, "a Groq key"),
    random("hf_", 30, HUGGING_FACE),
    exact("hf_", 34, Letters::Scrambled, HUGGING_FACE),
    exact("api_org_", 34, Letters::Scrambled, HUGGING_FACE),
    random("xai-", 40, API_KEY),
    random("pplx-", 40, API_KEY),
    random("r8_", 37, "a Replicate token"),
    any("nvapi-", 60, "an NVIDIA key"),
    any("pcsk_", 40, "a Pinecone key"),
    random("tvly-", 30, "a Tavily key"),
    random("e2b_", 36, "an E2B key"),
    any("lsv2_pt_", 40, "a LangSmith key"),
    any("lsv2_sk_", 40, "a LangSmith key"),
    // Monitoring.
    any("NRAK-", 27, "a New Relic key"),
    random("glsa_", 36, GRAFANA),
    random("glc_", 40, GRAFANA),
    any("sntrys_", 40, "a Sentry token"),
    any("sntryu_", 40, "a Sentry token"),
    any("dt0c01.", 60, "a Dynatrace token"),
    any("dt0s16.", 60, "a Dynatrace token"),
    random("phx_", 40, "a PostHog key"),
];

/// Length of the shortest issued token, in bytes.
pub(super) const SHORTEST: usize = 15;

/// The formats by the first byte of their prefixes, which are ASCII. Most tokens in a card match no first byte.
static BY_FIRST_BYTE: LazyLock<[Vec<&Issuer>; 128]> = LazyLock::new(|| {
    let begins = |first: usize| ISSUERS.iter().filter(move |issuer| usize::from(issuer.prefix.as_bytes()[0]) == first);
    std::array::from_fn(|first| begins(first).collect())
});

pub(super) fn kind(token: &str) -> Option<&'static str> {
    let first = usize::from(*token.as_bytes().first()?);
    let mut known = BY_FIRST_BYTE.get(first)?.iter().copied();
    // Every prefix has a second byte. Comparing it first rules out most prefixes.
    let may_fit = |issuer: &&Issuer| token.as_bytes().get(1) == issuer.prefix.as_bytes().get(1);
    let fits = |issuer: &&Issuer| token.strip_prefix(issuer.prefix).is_some_and(|rest| issuer.has_form(token, rest));
    known.find(|issuer| may_fit(issuer) && fits(issuer)).map(|issuer| issuer.kind)
}

impl Issuer {
    fn has_form(&self, token: &str, rest: &str) -> bool {
        (self.least..=self.most).contains(&rest.len())
            && match self.letters {
                Letters::Digit => has_digit(token),
                Letters::Random => is_random(rest),
                Letters::Upper => rest.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit()),
                Letters::Hex => rest.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-') && has_digit(rest),
                Letters::Small => {
                    let digits = rest.bytes().filter(u8::is_ascii_digit).count();
                    digits * 8 >= rest.len() && rest.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
                }
                Letters::Scrambled => is_scrambled(rest),
            }
    }
}
