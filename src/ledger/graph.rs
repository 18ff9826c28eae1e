//! Influence and betweenness in the graph of who was caused by whom.

use petgraph::csr::Csr;
use petgraph::visit::{EdgeRef as _, IntoEdgeReferences as _, NodeIndexable as _};

/// Share of the rank that follows links; the rest goes to every agent alike. The value of the PageRank paper.
pub(super) const DAMPING: f64 = 0.85;

/// The iteration ends when the ranks together change by less.
pub(super) const TOLERANCE: f64 = 1e-12;

/// Most rounds: with this damping a change shrinks to the tolerance in some 170.
const MAX_ROUNDS: usize = 500;

/// A directed graph without loops and without parallel links.
pub(super) struct Graph(Csr<(), ()>);

impl Graph {
    /// The graph of the nodes `0..nodes`; `links` are in ascending order and each stands there once.
    pub(super) fn new(nodes: usize, links: &[(u32, u32)]) -> Self {
        let mut graph = Csr::from_sorted_edges(links).expect("the links of a sorted set are sorted");
        for _ in graph.node_count()..nodes {
            graph.add_node(());
        }
        Self(graph)
    }

    fn nodes(&self) -> usize {
        self.0.node_bound()
    }

    /// PageRank by power iteration. What agents without links would pass on goes to every agent alike; the ranks sum to 1.
    ///
    /// `petgraph::algo::page_rank` gives other figures (it takes the random jump out where there is a link) and takes
    /// the square of the nodes times the links in each round.
    pub(super) fn page_rank(&self) -> Vec<f64> {
        let nodes = self.nodes();
        let mut ranks = vec![1.0 / nodes as f64; nodes];
        for _ in 0..MAX_ROUNDS {
            let dangling: f64 = (0..nodes).filter(|node| self.next(*node).is_empty()).map(|node| ranks[node]).sum();
            let base = (1.0 - DAMPING + DAMPING * dangling) / nodes as f64;
            let mut next = vec![base; nodes];
            for edge in self.0.edge_references() {
                let (from, to) = (edge.source() as usize, edge.target() as usize);
                next[to] += DAMPING * ranks[from] / self.next(from).len() as f64;
            }
            let change: f64 = ranks.iter().zip(&next).map(|(old, new)| (old - new).abs()).sum();
            ranks = next;
            if change < TOLERANCE {
                break;
            }
        }
        ranks
    }

    /// Betweenness by Brandes' algorithm: the share of shortest paths between two others that lead through a node,
    /// summed over all ordered pairs and divided by their number, (n - 1)(n - 2). No crate was found that has it at less
    /// than rayon, ndarray and rand (rustworkx-core).
    pub(super) fn betweenness(&self) -> Vec<f64> {
        let nodes = self.nodes();
        let mut scores = vec![0.0; nodes];
        for source in 0..nodes {
            self.add_dependencies(source, &mut scores);
        }
        let pairs = (nodes.saturating_sub(1) * nodes.saturating_sub(2)) as f64;
        if pairs > 0.0 {
            scores.iter_mut().for_each(|score| *score /= pairs);
        }
        scores
    }

    /// Adds what the shortest paths from `source` make of each node.
    fn add_dependencies(&self, source: usize, scores: &mut [f64]) {
        let nodes = self.nodes();
        let (mut distance, mut paths) = (vec![usize::MAX; nodes], vec![0.0_f64; nodes]);
        let mut order = vec![source];
        (distance[source], paths[source]) = (0, 1.0);
        let mut at = 0;
        while let Some(&node) = order.get(at) {
            at += 1;
            for next in self.next(node) {
                let next = *next as usize;
                if distance[next] == usize::MAX {
                    distance[next] = distance[node] + 1;
                    order.push(next);
                }
                if distance[next] == distance[node] + 1 {
                    paths[next] += paths[node];
                }
            }
        }
        let mut dependency = vec![0.0_f64; nodes];
        for node in order.into_iter().rev() {
            for next in self.next(node).iter().map(|next| *next as usize) {
                if distance[next] == distance[node] + 1 {
                    dependency[node] += paths[node] / paths[next] * (1.0 + dependency[next]);
                }
            }
            if node != source {
                scores[node] += dependency[node];
            }
        }
    }

    fn next(&self, node: usize) -> &[u32] {
        self.0.neighbors_slice(node as u32)
    }
}
