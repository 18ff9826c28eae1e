//! `serve`: the daemon.

use anyhow::Context as _;
use tokio::sync::oneshot;

use super::args::ServeArgs;
use super::exit::Exit;
use super::notice;
use super::stop::StopAsks;
use super::world::{self, Reader};
use crate::http::{self, Server};
use crate::resolve::Resolver;
use crate::verdict::Depth;

pub(super) fn run(args: ServeArgs) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Runtime::new().context("the runtime does not start")?;
    let done = runtime.block_on(serve(args));
    // Runs for clients that have gone may still be under way; their answers are not needed.
    runtime.shutdown_background();
    done
}

async fn serve(args: ServeArgs) -> anyhow::Result<Exit> {
    let (mut config, sandbox) = world::settings(&args.world, Reader::Programs, Depth::default()).await?;
    config.http.listen = args.listen.unwrap_or(config.http.listen);
    if args.check_config {
        http::check(&config)?;
        Resolver::new(&config).await?;
        notice::note(format_args!("clresolve: the configuration is good"));
        return Ok(Exit::Trusted);
    }
    let server = Server::bind(&config).await?;
    let mut asks = StopAsks::listen();
    anstream::eprintln!("clresolve: listening on http://{}", server.address());
    let sandbox_ends = async {
        match sandbox {
            Some(sandbox) => sandbox.stopped().await,
            None => std::future::pending().await,
        }
    };
    let (ask, asked) = oneshot::channel();
    let asked_twice = async {
        asks.next().await;
        // A server that has ended by itself need not be asked.
        let _ = ask.send(());
        asks.next().await;
    };
    tokio::select! {
        () = server.run(async { _ = asked.await }) => Ok(Exit::Trusted),
        () = sandbox_ends => Ok(Exit::Trusted),
        () = asked_twice => {
            anstream::eprintln!("clresolve: asked twice to stop; requests in progress are cut");
            Ok(Exit::Interrupted)
        }
    }
}
