//! Conditions of a server: lists that stay up to date, and operators' actions.

use super::{Client, Error, Item, Subscription, SubscriptionEvent, Update};
use core::time::Duration;
use taktwerk_client::condition::{ConditionEvent, ConditionTable, TableChange, calls};
use taktwerk_client::shelving;
use taktwerk_schema::ids::object_ids;
use taktwerk_schema::{CallMethodRequest, CallRequest};
use taktwerk_types::{NodeId, StatusCode};

/// Operators' actions on conditions; from [`Client::conditions`].
#[derive(Debug, Clone)]
pub struct Conditions {
    client: Client,
}

/// A list of the conditions that operators should see. It stays up to date.
#[derive(Debug)]
pub struct ConditionList {
    conditions: Conditions,
    subscription: Subscription,
    table: ConditionTable,
    item: u32,
}

impl Client {
    /// Access to the conditions and alarms of the server.
    ///
    /// ```no_run
    /// # async fn example(client: taktwerk::Client) -> Result<(), taktwerk::client::Error> {
    /// let conditions = client.conditions();
    /// for alarm in conditions.list().await? {
    ///     println!("{:>4}  {}  {}", alarm.severity, alarm.source_name, alarm.message);
    ///     if alarm.acked == Some(false) {
    ///         conditions.acknowledge(&alarm, "seen").await?;
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn conditions(&self) -> Conditions {
        Conditions { client: self.clone() }
    }
}

impl Conditions {
    /// The conditions that operators should see (Retain), the most urgent first.
    ///
    /// # Errors
    /// The server refuses the subscription or ConditionRefresh, or does not answer.
    pub async fn list(&self) -> Result<Vec<ConditionEvent>, Error> {
        let list = self.watch(Duration::from_millis(100)).await?;
        Ok(list.sorted().into_iter().cloned().collect())
    }

    /// A list of the conditions that operators should see, updated from now on. Returns when the list is complete.
    ///
    /// # Errors
    /// The server refuses the subscription or ConditionRefresh, or does not answer.
    pub async fn watch(&self, interval: Duration) -> Result<ConditionList, Error> {
        self.watch_at(NodeId::numeric(0, object_ids::SERVER), interval).await
    }

    /// The same for the conditions below a node with an EventNotifier.
    ///
    /// # Errors
    /// As [`Self::watch`].
    pub async fn watch_at(&self, node: NodeId, interval: Duration) -> Result<ConditionList, Error> {
        let subscription = self.client.subscribe(interval).await?;
        let item = subscription.monitor_item(Item::events(node, ConditionEvent::query())).await?;
        let mut list =
            ConditionList { conditions: self.clone(), subscription, table: ConditionTable::new(), item };
        list.refresh().await?;
        loop {
            match list.next().await {
                Some(TableChange::RefreshEnded) => return Ok(list),
                Some(_) => {}
                None => return Err(Error::status_of("list conditions", StatusCode::BAD_CONNECTION_CLOSED)),
            }
        }
    }

    /// Acknowledges the state that an event reported.
    ///
    /// # Errors
    /// The server's answer, such as Bad_ConditionBranchAlreadyAcked or Bad_EventIdUnknown.
    pub async fn acknowledge(&self, event: &ConditionEvent, comment: &str) -> Result<(), Error> {
        self.call("acknowledge", calls::acknowledge(&event.condition_id, &event.event_id, comment)).await
    }

    /// Confirms the state that an event reported.
    ///
    /// # Errors
    /// The server's answer.
    pub async fn confirm(&self, event: &ConditionEvent, comment: &str) -> Result<(), Error> {
        self.call("confirm", calls::confirm(&event.condition_id, &event.event_id, comment)).await
    }

    /// Adds a comment.
    ///
    /// # Errors
    /// The server's answer.
    pub async fn add_comment(&self, event: &ConditionEvent, comment: &str) -> Result<(), Error> {
        self.call("comment", calls::add_comment(&event.condition_id, &event.event_id, comment)).await
    }

    /// Shelves an alarm for a time, or, without `time`, until it becomes inactive.
    ///
    /// # Errors
    /// The server's answer.
    pub async fn shelve(&self, condition: &NodeId, time: Option<Duration>) -> Result<(), Error> {
        let call = match time {
            Some(time) => calls::timed_shelve(condition, time.as_secs_f64() * 1e3),
            None => calls::one_shot_shelve(condition),
        };
        self.call("shelve", call).await
    }

    /// Ends the shelving.
    ///
    /// # Errors
    /// The server's answer.
    pub async fn unshelve(&self, condition: &NodeId) -> Result<(), Error> {
        self.call("unshelve", calls::unshelve(condition)).await
    }

    /// Enables or disables a condition.
    ///
    /// # Errors
    /// The server's answer.
    pub async fn enable(&self, condition: &NodeId, enabled: bool) -> Result<(), Error> {
        self.call("enable", calls::enable(condition, enabled)).await
    }

    /// Calls another Method, made by [`taktwerk_client::condition::calls`]. If the server refuses to shelve an alarm by its
    /// ConditionId, calls the Method of its ShelvingState.
    ///
    /// # Errors
    /// The server's answer.
    pub async fn call(&self, what: &str, call: CallMethodRequest) -> Result<(), Error> {
        let about = format!("{what} {}", call.object_id);
        let mut status = self.call_once(call.clone()).await?;
        if status == StatusCode::BAD_METHOD_INVALID
            && let Some(request) = shelving::paths(&call)
            && let Some(call) = shelving::at_paths(call, &self.client.operate(request).await?)
        {
            status = self.call_once(call).await?;
        }
        if status.is_bad() { Err(Error::status_of(about, status)) } else { Ok(()) }
    }

    async fn call_once(&self, call: CallMethodRequest) -> Result<StatusCode, Error> {
        let request = CallRequest { methods_to_call: vec![call], ..Default::default() };
        let response = self.client.operate(request).await?;
        Ok(response.results.first().map_or(StatusCode::BAD_UNEXPECTED_ERROR, |one| one.status_code))
    }
}

impl ConditionList {
    /// The conditions, the most urgent first; equally urgent ones the newest first.
    #[must_use]
    pub fn sorted(&self) -> Vec<&ConditionEvent> {
        self.table.sorted()
    }

    /// Waits for the next change; `None` when the client has ended. If events were lost or the subscription was recreated, the
    /// list is refreshed.
    pub async fn next(&mut self) -> Option<TableChange> {
        loop {
            match self.subscription.next().await? {
                Update::Event(item, fields) if item == self.item => {
                    let change = self.table.take(ConditionEvent::read(&fields));
                    if change == TableChange::RefreshRequired {
                        // If this fails, the next event triggers it again.
                        let _ = self.refresh().await;
                    }
                    if change != TableChange::Nothing {
                        return Some(change);
                    }
                }
                Update::State(SubscriptionEvent::Created { .. } | SubscriptionEvent::DataLost { .. })
                | Update::Lagged(_) => {
                    let _ = self.refresh().await;
                }
                _ => {}
            }
        }
    }

    async fn refresh(&self) -> Result<(), Error> {
        // While the subscription is being recreated there is nothing to refresh. The list is refreshed when it exists.
        let Some(id) = self.subscription.handle().server_id().await? else { return Ok(()) };
        let refreshed = self.conditions.call("refresh", calls::condition_refresh(id)).await;
        match refreshed {
            // Another refresh is running and will end soon.
            Err(error) if error.status() == StatusCode::BAD_REFRESH_IN_PROGRESS => Ok(()),
            other => other,
        }
    }
}
