//! Resources of Orloj with one system that is exposed.

/// As `orloj` reads them from a file.
pub(crate) const SYSTEM: &str = "\
apiVersion: orloj.dev/v1
kind: AgentSystem
metadata: {name: research, labels: {orloj.dev/version: 2.0.0}, annotations: {orloj.dev/description: Reads papers.}}
spec: {agents: [], a2a: {enabled: true}}
---
a2a: {protocolVersion: '1.0'}
";
