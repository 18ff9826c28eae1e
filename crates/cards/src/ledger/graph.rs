//! Computes influence and betweenness in the graph of causes.

use petgraph::csr::Csr;
use petgraph::visit::{EdgeRef as _, IntoEdgeReferences as _, NodeIndexable as _};

/// Share of the rank that follows links. The rest is spread over all agents. The value is that of the PageRank paper.
pub(super) const DAMPING: f64 = 0.85;

/// The iteration ends when the sum of all changes is less than this.
pub(super) const TOLERANCE: f64 = 1e-12;

/// Maximum number of rounds. With this damping, the changes reach the tolerance after about 170.
const MAX_ROUNDS: usize = 500;

/// A directed graph without loops and without parallel links.
pub(super) struct SimpleDirectedGraph(Csr<(), ()>);

impl SimpleDirectedGraph {
    /// The graph of the nodes `0..nodes`. `links` must be in ascending order, without duplicates.
    pub(super) fn new(nodes: usize, links: &[(u32, u32)]) -> Self {
        let mut graph = Csr::from_sorted_edges(links).expect("the links of a sorted set are sorted");
        for _ in graph.node_count()..nodes {
            graph.add_node(());
        }
        Self(graph)
    }

    fn node_count(&self) -> usize {
        self.0.node_bound()
    }

    /// PageRank by power iteration. The rank of agents without links is spread over all agents. The ranks sum to 1.
    ///
    /// `petgraph::algo::page_rank` gives other figures (it omits the random jump along links) and takes nodes² × links
    /// steps in each round.
    pub(super) fn page_rank(&self) -> Vec<f64> {
        let nodes = self.node_count();
        let mut ranks = vec![1.0 / nodes as f64; nodes];
        for _ in 0..MAX_ROUNDS {
            let dangling: f64 =
                (0..nodes).filter(|node| self.successors(*node).is_empty()).map(|node| ranks[node]).sum();
            let base = (1.0 - DAMPING + DAMPING * dangling) / nodes as f64;
            let mut next = vec![base; nodes];
            for edge in self.0.edge_references() {
                let (from, to) = (edge.source() as usize, edge.target() as usize);
                next[to] += DAMPING * ranks[from] / self.successors(from).len() as f64;
            }
            let change: f64 = ranks.iter().zip(&next).map(|(old, new)| (old - new).abs()).sum();
            ranks = next;
            if change < TOLERANCE {
                break;
            }
        }
        ranks
    }

    /// Betweenness by Brandes' algorithm: the share of shortest paths between two other nodes that pass through a node,
    /// summed over all ordered pairs and divided by their number, (n - 1)(n - 2). The only crate that implements it
    /// (rustworkx-core) depends on rayon, ndarray and rand.
    pub(super) fn betweenness(&self) -> Vec<f64> {
        let nodes = self.node_count();
        let mut scores = vec![0.0; nodes];
        for source in 0..nodes {
            self.add_betweenness_from(source, &mut scores);
        }
        let pairs = (nodes.saturating_sub(1) * nodes.saturating_sub(2)) as f64;
        if pairs > 0.0 {
            scores.iter_mut().for_each(|score| *score /= pairs);
        }
        scores
    }

    /// Adds the contribution of the shortest paths from `source` to each node.
    fn add_betweenness_from(&self, source: usize, scores: &mut [f64]) {
        let nodes = self.node_count();
        let (mut distance, mut paths) = (vec![usize::MAX; nodes], vec![0.0_f64; nodes]);
        let mut order = vec![source];
        (distance[source], paths[source]) = (0, 1.0);
        let mut at = 0;
        while let Some(&node) = order.get(at) {
            at += 1;
            for next in self.successors(node) {
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
            for next in self.successors(node).iter().map(|next| *next as usize) {
                if distance[next] == distance[node] + 1 {
                    dependency[node] += paths[node] / paths[next] * (1.0 + dependency[next]);
                }
            }
            if node != source {
                scores[node] += dependency[node];
            }
        }
    }

    fn successors(&self, node: usize) -> &[u32] {
        self.0.neighbors_slice(node as u32)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Figures of networkx 3.6.1 for the same graph: `pagerank(G, alpha=0.85, tol=1e-15)`, `betweenness_centrality(G)`.
    struct ReferenceGraph {
        links: &'static [(u32, u32)],
        ranks: &'static [f64],
        scores: &'static [f64],
    }

    /// The figures of the first two graphs, and every betweenness, were also derived by hand. For example, in a graph
    /// with one link, r(a) = 0.15/2 + 0.85·r(b)/2 and r(a) + r(b) = 1, so r(a) = 0.5/1.425.
    const KNOWN: [ReferenceGraph; 4] = [
        ReferenceGraph { links: &[(0, 1)], ranks: &[0.350_877_192_982, 0.649_122_807_018], scores: &[0.0, 0.0] },
        ReferenceGraph {
            links: &[(0, 1), (1, 2)],
            ranks: &[0.184_416_781_927, 0.341_171_046_565, 0.474_412_171_508],
            // One of (3 - 1)(3 - 2) pairs has a node in between.
            scores: &[0.0, 0.5, 0.0],
        },
        ReferenceGraph {
            links: &[(0, 1), (0, 2), (1, 3), (2, 3)],
            ranks: &[0.137_504_297_009, 0.195_943_623_238, 0.195_943_623_238, 0.470_608_456_514],
            // Half of the shortest paths of one pair, out of (4 - 1)(4 - 2) pairs.
            scores: &[0.0, 0.5 / 6.0, 0.5 / 6.0, 0.0],
        },
        ReferenceGraph {
            links: &[(0, 1), (1, 2), (2, 0), (2, 3), (3, 1), (4, 3)],
            ranks: &[0.159_164_480_078, 0.322_254_616_132, 0.303_916_423_712, 0.184_664_480_078, 0.03],
            scores: &[0.5 / 12.0, 0.5, 5.0 / 12.0, 3.5 / 12.0, 0.0],
        },
    ];

    fn close(found: &[f64], known: &[f64]) {
        assert_eq!(found.len(), known.len());
        for (found, known) in found.iter().zip(known) {
            assert!((found - known).abs() < 1e-11, "{found} is not {known}");
        }
    }

    #[test]
    fn small_graphs_have_the_figures_of_networkx() {
        for ReferenceGraph { links, ranks, scores } in KNOWN {
            let graph = SimpleDirectedGraph::new(ranks.len(), links);
            close(&graph.page_rank(), ranks);
            close(&graph.betweenness(), scores);
        }
    }

    #[test]
    fn graphs_without_links_or_nodes_have_figures_too() {
        for nodes in [0, 1, 2, 5] {
            let graph = SimpleDirectedGraph::new(nodes, &[]);
            close(&graph.page_rank(), &vec![1.0 / nodes as f64; nodes]);
            close(&graph.betweenness(), &vec![0.0; nodes]);
        }
    }

    proptest! {
        #[test]
        fn ranks_sum_to_one_and_scores_stay_in_bounds(
            links in proptest::collection::btree_set((0_u32..12, 0_u32..12), 0..60)
        ) {
            let links: Vec<_> = links.into_iter().filter(|(from, to)| from != to).collect();
            let graph = SimpleDirectedGraph::new(12, &links);
            prop_assert!((graph.page_rank().iter().sum::<f64>() - 1.0).abs() < 1e-9);
            prop_assert!(graph.betweenness().iter().all(|score| (0.0..=1.0).contains(score)));
        }
    }
}
