//! `key`: the key that verdicts are signed with.

use super::args::{KeyArgs, KeyCommand};
use super::exit::Exit;
use super::output::{Output, json};
use crate::sign::{SigningKey, TrustedKeys};

pub(super) fn run(args: KeyArgs) -> anyhow::Result<Exit> {
    let (key, args) = match args.command {
        KeyCommand::New(args) => {
            let key = SigningKey::generate()?;
            key.save(&args.key)?;
            anstream::eprintln!("clresolve: wrote a private key to {}; keep it to yourself", args.key.display());
            (key, args)
        }
        KeyCommand::Public(args) => (SigningKey::from_file(&args.key)?, args),
    };
    let set = TrustedKeys::from(key.public()).to_jwks();
    Output::new(args.out)?.write((json(&set)? + "\n").as_bytes())?;
    Ok(Exit::Trusted)
}
