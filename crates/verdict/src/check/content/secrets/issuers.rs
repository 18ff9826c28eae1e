//! Token formats as documented by their issuers. Most issuers give their tokens a prefix so that scanners find them.

use std::sync::LazyLock;

use super::random::{has_digit, is_hex_or_mixed_alphanumeric, is_scrambled};

/// A token format: its prefix, and the characters after it.
pub(super) struct TokenFormat {
    pub(super) prefix: &'static str,
    /// Minimum number of characters after the prefix.
    pub(super) least: usize,
    /// Maximum number of characters after the prefix.
    most: usize,
    pub(super) letters: TokenAlphabet,
    pub(super) kind: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenAlphabet {
    /// Letters, digits, `-`, `_` and `.`, with at least one digit.
    Digit,
    /// Like [`TokenAlphabet::Digit`], but in mixed case or hexadecimal, because the prefix could begin a word.
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
const fn distinct_prefix_token_format(prefix: &'static str, least: usize, kind: &'static str) -> TokenFormat {
    TokenFormat { prefix, least, most: usize::MAX, letters: TokenAlphabet::Digit, kind }
}

/// At least `least` random characters after a prefix that could begin a word.
const fn ambiguous_prefix_token_format(prefix: &'static str, least: usize, kind: &'static str) -> TokenFormat {
    TokenFormat { prefix, least, most: usize::MAX, letters: TokenAlphabet::Random, kind }
}

/// Exactly `length` characters of one kind.
const fn exact_token_format(
    prefix: &'static str,
    length: usize,
    letters: TokenAlphabet,
    kind: &'static str,
) -> TokenFormat {
    TokenFormat { prefix, least: length, most: length, letters, kind }
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

pub(super) const ISSUERS: [TokenFormat; 153] = [
    // Keys.
    distinct_prefix_token_format("AGE-SECRET-KEY-1", 40, "an age secret key"),
    distinct_prefix_token_format("AGE-PLUGIN-", 30, "an age secret key"),
    distinct_prefix_token_format("nsec1", 50, "a Nostr secret key"),
    distinct_prefix_token_format("xprv", 100, "an extended private key"),
    distinct_prefix_token_format("yprv", 100, "an extended private key"),
    distinct_prefix_token_format("zprv", 100, "an extended private key"),
    distinct_prefix_token_format("tprv", 100, "an extended private key"),
    exact_token_format("6P", 56, TokenAlphabet::Random, "an encrypted private key"),
    distinct_prefix_token_format("edsk", 50, PRIVATE_KEY),
    distinct_prefix_token_format("suiprivkey1", 50, PRIVATE_KEY),
    distinct_prefix_token_format("ed25519-priv-", 20, PRIVATE_KEY),
    // The start of private keys in base64: PEM encoded again, OpenSSH's format, and DER.
    distinct_prefix_token_format("LS0tLS1CRUdJTiBQUklWQVRFIEtFW", 1, PRIVATE_KEY),
    distinct_prefix_token_format("LS0tLS1CRUdJTiBSU0EgUFJJVkFURS", 1, PRIVATE_KEY),
    distinct_prefix_token_format("LS0tLS1CRUdJTiBFQyBQUklWQVRFI", 1, PRIVATE_KEY),
    distinct_prefix_token_format("LS0tLS1CRUdJTiBPUEVOU1NIIFBSSVZBVEUg", 1, PRIVATE_KEY),
    distinct_prefix_token_format("LS0tLS1CRUdJTiBFTkNSWVBURUQgUFJJVkFURS", 1, PRIVATE_KEY),
    distinct_prefix_token_format("b3BlbnNzaC1rZXktdjEA", 1, PRIVATE_KEY),
    distinct_prefix_token_format("MC4CAQAwBQYDK2VwBCIEI", 1, PRIVATE_KEY),
    distinct_prefix_token_format("MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQ", 1, PRIVATE_KEY),
    distinct_prefix_token_format("MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", 1, PRIVATE_KEY),
    distinct_prefix_token_format("MIIEvAIBADANBgkqhkiG9w0BAQEFAASC", 1, PRIVATE_KEY),
    distinct_prefix_token_format("MIIEowIBAAKCAQEA", 1, PRIVATE_KEY),
    distinct_prefix_token_format("MIIEpAIBAAKCAQEA", 1, PRIVATE_KEY),
    distinct_prefix_token_format("MHcCAQEEI", 40, PRIVATE_KEY),
    // Clouds.
    exact_token_format("AKIA", 16, TokenAlphabet::Upper, "an AWS access key"),
    exact_token_format("ASIA", 16, TokenAlphabet::Upper, "an AWS access key"),
    exact_token_format("ABIA", 16, TokenAlphabet::Upper, "an AWS access key"),
    exact_token_format("ACCA", 16, TokenAlphabet::Upper, "an AWS access key"),
    distinct_prefix_token_format("AIza", 35, "a Google API key"),
    distinct_prefix_token_format("ya29.", 20, "a Google access token"),
    distinct_prefix_token_format("GOCSPX-", 20, "a Google client secret"),
    ambiguous_prefix_token_format("LTAI", 17, "an Alibaba Cloud key"),
    exact_token_format("AKID", 32, TokenAlphabet::Digit, "a Tencent Cloud key"),
    distinct_prefix_token_format("dop_v1_", 40, "a DigitalOcean token"),
    distinct_prefix_token_format("doo_v1_", 40, "a DigitalOcean token"),
    distinct_prefix_token_format("dor_v1_", 40, "a DigitalOcean token"),
    distinct_prefix_token_format("HRKU-", 30, "a Heroku key"),
    ambiguous_prefix_token_format("fo1_", 40, "a Fly.io token"),
    ambiguous_prefix_token_format("fm2_", 40, "a Fly.io token"),
    ambiguous_prefix_token_format("nfp_", 36, "a Netlify token"),
    distinct_prefix_token_format("sbp_", 36, "a Supabase token"),
    distinct_prefix_token_format("sb_secret_", 20, "a Supabase key"),
    exact_token_format("dapi", 32, TokenAlphabet::Hex, "a Databricks token"),
    distinct_prefix_token_format("dp.pt.", 40, "a Doppler token"),
    distinct_prefix_token_format("dp.st.", 40, "a Doppler token"),
    distinct_prefix_token_format("hvs.", 24, VAULT),
    distinct_prefix_token_format("hvb.", 24, VAULT),
    distinct_prefix_token_format("hvr.", 24, VAULT),
    ambiguous_prefix_token_format("pul-", 40, "a Pulumi token"),
    distinct_prefix_token_format("pscale_tkn_", 32, "a PlanetScale token"),
    distinct_prefix_token_format("pscale_pw_", 32, "a PlanetScale password"),
    distinct_prefix_token_format("CFPAT-", 40, "a Contentful token"),
    exact_token_format("v1.0-", 171, TokenAlphabet::Hex, "a Cloudflare key"),
    distinct_prefix_token_format("tskey-", 20, "a Tailscale key"),
    ambiguous_prefix_token_format("flyv1_", 40, "a Fly.io token"),
    ambiguous_prefix_token_format("scw_", 30, "a Scaleway key"),
    // Code hosts and registries of packages.
    distinct_prefix_token_format("github_pat_", 22, GITHUB),
    distinct_prefix_token_format("gho_", 30, GITHUB),
    distinct_prefix_token_format("ghp_", 30, GITHUB),
    distinct_prefix_token_format("ghr_", 30, GITHUB),
    distinct_prefix_token_format("ghs_", 30, GITHUB),
    distinct_prefix_token_format("ghu_", 30, GITHUB),
    distinct_prefix_token_format("glpat-", 20, GITLAB),
    distinct_prefix_token_format("gldt-", 20, GITLAB),
    distinct_prefix_token_format("glrt-", 20, GITLAB),
    distinct_prefix_token_format("glptt-", 20, GITLAB),
    distinct_prefix_token_format("gloas-", 20, GITLAB),
    distinct_prefix_token_format("glcbt-", 20, GITLAB),
    distinct_prefix_token_format("glsoat-", 20, GITLAB),
    distinct_prefix_token_format("glagent-", 20, GITLAB),
    distinct_prefix_token_format("glffct-", 20, GITLAB),
    distinct_prefix_token_format("glft-", 20, GITLAB),
    distinct_prefix_token_format("glimt-", 20, GITLAB),
    distinct_prefix_token_format("ATBB", 28, "a Bitbucket password"),
    distinct_prefix_token_format("ATATT3", 60, "an Atlassian token"),
    ambiguous_prefix_token_format("npm_", 30, "an npm token"),
    distinct_prefix_token_format("pypi-", 50, "a PyPI token"),
    distinct_prefix_token_format("rubygems_", 40, "a RubyGems key"),
    distinct_prefix_token_format("dckr_pat_", 24, "a Docker token"),
    distinct_prefix_token_format("dckr_oat_", 24, "a Docker token"),
    exact_token_format("oy2", 43, TokenAlphabet::Digit, "a NuGet key"),
    exact_token_format("cio", 32, TokenAlphabet::Random, "a crates.io token"),
    distinct_prefix_token_format("CLOJARS_", 40, "a Clojars token"),
    distinct_prefix_token_format("AKCp", 60, "an Artifactory key"),
    distinct_prefix_token_format("bkua_", 30, "a Buildkite token"),
    distinct_prefix_token_format("CCIPAT_", 30, "a CircleCI token"),
    distinct_prefix_token_format("CCIPRJ_", 30, "a CircleCI token"),
    distinct_prefix_token_format("sqp_", 36, SONAR),
    distinct_prefix_token_format("squ_", 36, SONAR),
    distinct_prefix_token_format("sqa_", 36, SONAR),
    distinct_prefix_token_format("PMAK-", 40, "a Postman key"),
    distinct_prefix_token_format("lin_api_", 30, "a Linear key"),
    distinct_prefix_token_format("figd_", 30, "a Figma token"),
    ambiguous_prefix_token_format("ntn_", 40, "a Notion token"),
    // Chat services and mail.
    distinct_prefix_token_format("xapp-", 20, SLACK),
    distinct_prefix_token_format("xoxa-", 10, SLACK),
    distinct_prefix_token_format("xoxb-", 10, SLACK),
    distinct_prefix_token_format("xoxc-", 10, SLACK),
    distinct_prefix_token_format("xoxd-", 10, SLACK),
    distinct_prefix_token_format("xoxe-", 10, SLACK),
    distinct_prefix_token_format("xoxe.", 10, SLACK),
    distinct_prefix_token_format("xoxp-", 10, SLACK),
    distinct_prefix_token_format("xoxr-", 10, SLACK),
    distinct_prefix_token_format("xoxs-", 10, SLACK),
    distinct_prefix_token_format("xwfp-", 10, SLACK),
    ambiguous_prefix_token_format("SG.", 40, "a SendGrid key"),
    exact_token_format("key-", 32, TokenAlphabet::Small, "a Mailgun key"),
    exact_token_format("SK", 32, TokenAlphabet::Hex, "a Twilio key"),
    distinct_prefix_token_format("xkeysib-", 60, "a Brevo key"),
    exact_token_format("pat-na1-", 36, TokenAlphabet::Hex, "a HubSpot token"),
    exact_token_format("pat-eu1-", 36, TokenAlphabet::Hex, "a HubSpot token"),
    distinct_prefix_token_format("EAAC", 60, "a Facebook access token"),
    distinct_prefix_token_format("EAAG", 60, "a Facebook access token"),
    // Payment.
    distinct_prefix_token_format("rk_live_", 16, STRIPE),
    distinct_prefix_token_format("rk_test_", 16, STRIPE),
    distinct_prefix_token_format("sk_live_", 16, STRIPE),
    distinct_prefix_token_format("sk_test_", 16, STRIPE),
    ambiguous_prefix_token_format("whsec_", 16, "a webhook secret"),
    distinct_prefix_token_format("sq0csp-", 40, "a Square secret"),
    distinct_prefix_token_format("sq0atp-", 20, "a Square token"),
    distinct_prefix_token_format("EAAA", 60, "a Square token"),
    distinct_prefix_token_format("shpat_", 30, SHOPIFY),
    distinct_prefix_token_format("shpca_", 30, SHOPIFY),
    distinct_prefix_token_format("shppa_", 30, SHOPIFY),
    distinct_prefix_token_format("shpss_", 30, SHOPIFY),
    exact_token_format("access-production-", 36, TokenAlphabet::Hex, "a Plaid token"),
    exact_token_format("access-sandbox-", 36, TokenAlphabet::Hex, "a Plaid token"),
    exact_token_format("live_", 30, TokenAlphabet::Random, "a Mollie key"),
    distinct_prefix_token_format("FLWSECK-", 32, "a Flutterwave key"),
    distinct_prefix_token_format("FLWSECK_TEST-", 12, "a Flutterwave key"),
    // Models.
    ambiguous_prefix_token_format("sk-", 20, API_KEY),
    exact_token_format("sk-or-v1-", 64, TokenAlphabet::Hex, API_KEY),
    ambiguous_prefix_token_format("gsk_", 40, "a Groq key"),
    ambiguous_prefix_token_format("hf_", 30, HUGGING_FACE),
    exact_token_format("hf_", 34, TokenAlphabet::Scrambled, HUGGING_FACE),
    exact_token_format("api_org_", 34, TokenAlphabet::Scrambled, HUGGING_FACE),
    ambiguous_prefix_token_format("xai-", 40, API_KEY),
    ambiguous_prefix_token_format("pplx-", 40, API_KEY),
    ambiguous_prefix_token_format("r8_", 37, "a Replicate token"),
    distinct_prefix_token_format("nvapi-", 60, "an NVIDIA key"),
    distinct_prefix_token_format("pcsk_", 40, "a Pinecone key"),
    ambiguous_prefix_token_format("tvly-", 30, "a Tavily key"),
    ambiguous_prefix_token_format("e2b_", 36, "an E2B key"),
    distinct_prefix_token_format("lsv2_pt_", 40, "a LangSmith key"),
    distinct_prefix_token_format("lsv2_sk_", 40, "a LangSmith key"),
    // Monitoring.
    distinct_prefix_token_format("NRAK-", 27, "a New Relic key"),
    ambiguous_prefix_token_format("glsa_", 36, GRAFANA),
    ambiguous_prefix_token_format("glc_", 40, GRAFANA),
    distinct_prefix_token_format("sntrys_", 40, "a Sentry token"),
    distinct_prefix_token_format("sntryu_", 40, "a Sentry token"),
    distinct_prefix_token_format("dt0c01.", 60, "a Dynatrace token"),
    distinct_prefix_token_format("dt0s16.", 60, "a Dynatrace token"),
    ambiguous_prefix_token_format("phx_", 40, "a PostHog key"),
];

/// Length of the shortest issued token, in bytes.
pub(super) const SHORTEST: usize = 15;

/// The formats by the first byte of their prefixes, which are ASCII. Most tokens in a card match no first byte.
static BY_FIRST_BYTE: LazyLock<[Vec<&TokenFormat>; 128]> = LazyLock::new(|| {
    let begins = |first: usize| ISSUERS.iter().filter(move |issuer| usize::from(issuer.prefix.as_bytes()[0]) == first);
    std::array::from_fn(|first| begins(first).collect())
});

pub(super) fn issued_kind_by_prefix(token: &str) -> Option<&'static str> {
    let first = usize::from(*token.as_bytes().first()?);
    let mut known = BY_FIRST_BYTE.get(first)?.iter().copied();
    // Every prefix has a second byte. Comparing it first rules out most prefixes.
    let may_fit = |issuer: &&TokenFormat| token.as_bytes().get(1) == issuer.prefix.as_bytes().get(1);
    let fits = |issuer: &&TokenFormat| {
        token.strip_prefix(issuer.prefix).is_some_and(|rest| issuer.has_token_form(token, rest))
    };
    known.find(|issuer| may_fit(issuer) && fits(issuer)).map(|issuer| issuer.kind)
}

impl TokenFormat {
    fn has_token_form(&self, token: &str, rest: &str) -> bool {
        (self.least..=self.most).contains(&rest.len())
            && match self.letters {
                TokenAlphabet::Digit => has_digit(token),
                TokenAlphabet::Random => is_hex_or_mixed_alphanumeric(rest),
                TokenAlphabet::Upper => rest.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit()),
                TokenAlphabet::Hex => rest.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-') && has_digit(rest),
                TokenAlphabet::Small => {
                    let digits = rest.bytes().filter(u8::is_ascii_digit).count();
                    digits * 8 >= rest.len() && rest.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
                }
                TokenAlphabet::Scrambled => is_scrambled(rest),
            }
    }
}
