//! Requests about nodes to a server that may not answer for single nodes: one request for all nodes, and if there is no answer,
//! one per node.

use core::future::Future;
use core::time::Duration;
use futures_util::StreamExt;
use futures_util::stream;
use std::collections::{HashMap, HashSet};
use taktwerk_types::NodeId;
use tokio::time::{Instant, timeout, timeout_at};

/// Most concurrent requests for single nodes.
const ALONE_MAX: usize = 32;
/// Most unresponsive nodes that are remembered.
const SLOW_MAX: usize = 10_000;

/// Why there are no answers.
#[derive(Debug)]
pub(super) enum Unanswered<E> {
    /// The request failed.
    Failed(E),
    /// The server does not answer, or is too slow for so many nodes.
    Silent,
}

/// The unresponsive nodes. They get separate requests, so that others do not wait for them.
#[derive(Debug, Default)]
pub(super) struct Isolation {
    slow: HashSet<NodeId>,
}

/// Timeouts within the deadline of a batch: for the request with all nodes, and for single requests. Both and a probe of the
/// server must fit into the deadline.
fn waits(deadline: Duration) -> (Duration, Duration) {
    (deadline / 3, deadline / 6)
}

impl Isolation {
    /// Asks about nodes, each of which occurs once. Answers are in the order of the questions; `None` for a node that does not
    /// answer although the server does. `probe` checks whether the server answers at all.
    ///
    /// # Errors
    /// A request failed, or the server does not answer in time.
    pub(super) async fn ask<Q: Clone, A, E, F: Future<Output = Result<Vec<A>, E>>>(
        &mut self,
        deadline: Duration,
        questions: Vec<(NodeId, Q)>,
        request: impl Fn(Vec<(NodeId, Q)>) -> F,
        probe: impl Future<Output = bool>,
    ) -> Result<Vec<Option<A>>, Unanswered<E>> {
        let (wait, wait_alone) = waits(deadline);
        let is_slow = |(node, _): &&(NodeId, Q)| self.slow.contains(node);
        let (slow, quick): (Vec<_>, Vec<_>) = questions.iter().partition(is_slow);
        let copy = |questions: &[&(NodeId, Q)]| questions.iter().map(|&one| one.clone()).collect::<Vec<_>>();
        let all = copy(&quick);
        let together =
            async { if all.is_empty() { Ok(Ok(Vec::new())) } else { timeout(wait, request(all)).await } };
        let (together, alone) =
            tokio::join!(together, each(copy(&slow), Instant::now() + wait_alone, &request));
        let mut answers = alone.map_err(Unanswered::Failed)?;
        let mut hanging: Vec<NodeId> = Vec::new();
        match together {
            Ok(found) => {
                let found = found.map_err(Unanswered::Failed)?;
                answers.extend(quick.iter().map(|(node, _)| node.clone()).zip(found));
            }
            Err(_) => {
                if quick.len() > 1 {
                    let end = Instant::now() + wait_alone;
                    answers.extend(each(copy(&quick), end, &request).await.map_err(Unanswered::Failed)?);
                }
                let is_open = |node: &&NodeId| !answers.contains_key(*node);
                hanging.extend(quick.iter().map(|(node, _)| node).filter(is_open).cloned());
            }
        }
        // If most nodes do not answer, the server is too slow for so many.
        let is_server = quick.len() > 1 && hanging.len() * 2 > quick.len();
        let is_silent = answers.is_empty() && !questions.is_empty();
        if is_server || is_silent && !timeout(wait_alone, probe).await.unwrap_or(false) {
            return Err(Unanswered::Silent);
        }
        self.slow.retain(|node| !answers.contains_key(node));
        hanging.into_iter().for_each(|node| self.hangs(node));
        Ok(questions.iter().map(|(node, _)| answers.remove(node)).collect())
    }

    /// Remembers an unresponsive node.
    fn hangs(&mut self, node: NodeId) {
        if self.slow.len() < SLOW_MAX {
            self.slow.insert(node);
        }
    }
}

/// Asks about each node in a separate request until `end`; returns the answers so far.
async fn each<Q, A, E, F: Future<Output = Result<Vec<A>, E>>>(
    questions: Vec<(NodeId, Q)>,
    end: Instant,
    request: impl Fn(Vec<(NodeId, Q)>) -> F,
) -> Result<HashMap<NodeId, A>, E> {
    let ask = |(node, question): (NodeId, Q)| {
        let answer = request(vec![(node.clone(), question)]);
        async move { (node, answer.await) }
    };
    let mut under_way = stream::iter(questions.into_iter().map(ask)).buffer_unordered(ALONE_MAX);
    let mut answers = HashMap::new();
    while let Ok(Some((node, answer))) = timeout_at(end, under_way.next()).await {
        if let Some(answer) = answer?.pop() {
            answers.insert(node, answer);
        }
    }
    Ok(answers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    const DEADLINE: Duration = Duration::from_millis(300);

    fn node(number: u32) -> NodeId {
        NodeId::numeric(1, number)
    }

    /// A server that does not answer if an unresponsive node is among the questions.
    struct Fake {
        hanging: Mutex<HashSet<NodeId>>,
        /// The number of nodes in each request.
        asked: Mutex<Vec<usize>>,
    }

    impl Fake {
        fn new(hanging: impl IntoIterator<Item = u32>) -> Self {
            Self { hanging: Mutex::new(hanging.into_iter().map(node).collect()), asked: Mutex::default() }
        }

        async fn ask(
            &self,
            isolation: &mut Isolation,
            nodes: impl IntoIterator<Item = u32>,
            lives: bool,
        ) -> Result<Vec<Option<u32>>, Unanswered<String>> {
            self.asked.lock().unwrap().clear();
            let questions = nodes.into_iter().map(|number| (node(number), number * 10)).collect();
            let request = |questions: Vec<(NodeId, u32)>| {
                self.asked.lock().unwrap().push(questions.len());
                let hangs = questions.iter().any(|(node, _)| self.hanging.lock().unwrap().contains(node));
                async move {
                    if hangs {
                        core::future::pending::<()>().await;
                    }
                    Ok(questions.into_iter().map(|(_, question)| question).collect())
                }
            };
            isolation.ask(DEADLINE, questions, request, async { lives }).await
        }
    }

    #[tokio::test]
    async fn an_unresponsive_node_gets_separate_requests() {
        let (fake, mut isolation) = (Fake::new([3]), Isolation::default());
        let expected: Vec<_> = (1..=100).map(|number| (number != 3).then_some(number * 10)).collect();
        assert_eq!(fake.ask(&mut isolation, 1..=100, true).await.unwrap(), expected);
        // Now the others are answered in one request.
        assert_eq!(fake.ask(&mut isolation, 1..=100, true).await.unwrap(), expected);
        assert_eq!(*fake.asked.lock().unwrap(), [99, 1]);
        // Alone, it is identified as the unresponsive node, because the server answers the probe.
        assert_eq!(fake.ask(&mut isolation, [3], true).await.unwrap(), [None]);
        // When it answers again, it is asked once alone and then with the others.
        fake.hanging.lock().unwrap().clear();
        assert_eq!(fake.ask(&mut isolation, 1..=4, true).await.unwrap()[2], Some(30));
        assert_eq!(fake.ask(&mut isolation, 1..=4, true).await.unwrap()[2], Some(30));
        assert_eq!(*fake.asked.lock().unwrap(), [4]);
    }

    #[tokio::test]
    async fn a_single_node_is_unresponsive_if_the_server_answers_a_probe() {
        let (fake, mut isolation) = (Fake::new([3]), Isolation::default());
        assert!(matches!(fake.ask(&mut isolation, [3], false).await, Err(Unanswered::Silent)));
        assert!(isolation.slow.is_empty());
        assert_eq!(fake.ask(&mut isolation, [3], true).await.unwrap(), [None]);
    }

    #[tokio::test]
    async fn a_slow_server_is_not_mistaken_for_unresponsive_nodes() {
        let (fake, mut isolation) = (Fake::new(1..=60), Isolation::default());
        assert!(matches!(fake.ask(&mut isolation, 1..=100, true).await, Err(Unanswered::Silent)));
        assert!(isolation.slow.is_empty());
        // More unresponsive nodes than concurrent requests.
        let fake = Fake::new(1..=40);
        let answers = fake.ask(&mut isolation, (1..=100).rev(), true).await.unwrap();
        assert_eq!(answers.iter().flatten().count(), 60);
    }

    #[tokio::test]
    async fn an_empty_list_sends_no_request() {
        let (fake, mut isolation) = (Fake::new([]), Isolation::default());
        assert!(fake.ask(&mut isolation, [], false).await.unwrap().is_empty());
        assert!(fake.asked.lock().unwrap().is_empty());
    }
}
