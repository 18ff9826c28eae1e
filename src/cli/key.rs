//! `signature key`: creates the keys that sign verdicts and cards.

use anyhow::Context as _;
use clresolve_cards::signature::CardKey;
use clresolve_jose::SigningKey;
use clresolve_resolver::sign::{private_text, save_signing_key};
use serde_json::json;

use super::args::KeyCommand;
use super::exit::Exit;
use super::notice;
use super::output::{self, Output};

pub(super) fn run(command: KeyCommand) -> anyhow::Result<Exit> {
    let (key, args) = match command {
        KeyCommand::New(args) => {
            let key = SigningKey::generate()?;
            save_signing_key(&key, &args.key)?;
            notice::note(format_args!("clresolve: wrote a private key to {}; keep it to yourself", args.key.display()));
            (CardKey::from(key), args)
        }
        KeyCommand::Public(args) => {
            let key = CardKey::from_pem(&private_text(&args.key)?);
            (key.with_context(|| args.key.display().to_string())?, args)
        }
    };
    let set = json!({ "keys": [key.public_jwk()] });
    Output::new(&args.out)?.write_whole((output::json(&set)? + "\n").as_bytes())?;
    Ok(Exit::Trusted)
}
