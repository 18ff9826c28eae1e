//! `signature key`: creates the keys that sign verdicts and cards.

use anyhow::Context as _;
use clresolve_cards::signature::CardSigningKey;
use clresolve_jose::Ed25519SigningKey;
use clresolve_resolver::sign::{read_private_key_text, save_signing_key};
use serde_json::json;

use super::args::SigningKeyCommand;
use super::exit::ExitStatus;
use super::notice;
use super::output::{self, OutputSink};

pub(super) fn run(command: SigningKeyCommand) -> anyhow::Result<ExitStatus> {
    let (key, args) = match command {
        SigningKeyCommand::New(args) => {
            let key = Ed25519SigningKey::generate()?;
            save_signing_key(&key, &args.key)?;
            notice::print_notice(format_args!(
                "clresolve: wrote a private key to {}; keep it to yourself",
                args.key.display()
            ));
            (CardSigningKey::from(key), args)
        }
        SigningKeyCommand::Public(args) => {
            let key = CardSigningKey::from_pem(&read_private_key_text(&args.key)?);
            (key.with_context(|| args.key.display().to_string())?, args)
        }
    };
    let set = json!({ "keys": [key.public_jwk()] });
    OutputSink::new(&args.out)?.write_all_and_finish((output::pretty_json(&set)? + "\n").as_bytes())?;
    Ok(ExitStatus::Trusted)
}
