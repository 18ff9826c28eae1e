//! The daemon: its routes, behind proxies, as replicas that share a cache, and among hostile hosts, gateways, endpoints
//! and clients.

#[path = "daemon/fleet.rs"]
mod fleet;
#[path = "daemon/hostile.rs"]
mod hostile;
#[path = "daemon/http.rs"]
mod http;
#[path = "daemon/proxy.rs"]
mod proxy;

#[allow(dead_code, reason = "each program uses a part of the helpers")]
#[path = "support"]
mod support {
    pub(crate) mod corpus;
    pub(crate) mod disguise;
    pub(crate) mod faults;
    pub(crate) mod orloj;
    pub(crate) mod payer;
    pub(crate) mod proxy;
    pub(crate) mod redis;
    pub(crate) mod serve;
    pub(crate) mod server;
}
