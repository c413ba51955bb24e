//! History of values and events (Part 4 §5.11.3, §5.11.5; Part 11 §6).

use super::{Client, Error, Namespaces, ToNodeId};
use taktwerk_client::history::{HistoryError, HistoryReader, annotation_value};
use taktwerk_schema::{
    Annotation, DeleteAtTimeDetails, DeleteEventDetails, DeleteRawModifiedDetails, EventFilter,
    HistoryEventFieldList, HistoryUpdateRequest, HistoryUpdateResult, PerformUpdateType, UpdateDataDetails,
    UpdateEventDetails, UpdateStructureDataDetails,
};
use taktwerk_types::{ByteString, DataValue, ExtensionObject, NodeId, StatusCode, UtcTime, Variant};

pub use taktwerk_client::history::{HistoryPage, HistoryQuery, HistoryRange};

impl Client {
    /// Reads the history of a node, following all continuation points.
    ///
    /// ```no_run
    /// # async fn example(client: taktwerk::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use taktwerk::client::{HistoryQuery, HistoryRange};
    /// use taktwerk::history::Aggregate;
    /// use taktwerk::types::UtcTime;
    /// let end = UtcTime::parse("2026-03-04T12:00:00Z").unwrap();
    /// let last_100 = HistoryQuery::raw(HistoryRange::before(end, 100));
    /// for value in client.history("ns=2;s=Boiler", last_100).await?.values {
    ///     println!("{:?} {:?}", value.source_timestamp, value.value);
    /// }
    /// let per_minute = HistoryQuery::Processed {
    ///     start: UtcTime::parse("2026-03-04T11:00:00Z").unwrap(),
    ///     end,
    ///     aggregate: Aggregate::Average.node_id(),
    ///     interval: std::time::Duration::from_secs(60),
    ///     configuration: None,
    /// };
    /// let averages = client.history("ns=2;s=Boiler", per_minute).await?.values;
    /// # let _ = averages;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The server has no history of the node or refuses, or there is no answer.
    pub async fn history(&self, node: impl ToNodeId, query: HistoryQuery) -> Result<HistoryPage, Error> {
        let mut pages = self.history_pages(node, &query)?;
        let mut all = HistoryPage::default();
        while let Some(page) = pages.next().await? {
            all.append(page);
        }
        Ok(all)
    }

    /// Reads the history of a node in pages, for histories that do not fit into memory.
    ///
    /// # Errors
    /// The text is not a NodeId.
    pub fn history_pages(&self, node: impl ToNodeId, query: &HistoryQuery) -> Result<HistoryPages, Error> {
        let node = self.resolve(&node)?;
        let reader = HistoryReader::new(node.clone(), query);
        Ok(HistoryPages { client: self.clone(), reader, node })
    }

    fn resolve(&self, node: &impl ToNodeId) -> Result<NodeId, Error> {
        let namespaces: Namespaces = self.namespaces();
        node.to_node_id(&namespaces)
    }

    /// Inserts, replaces or updates values, and returns a status for each. Each value needs a source timestamp.
    ///
    /// # Errors
    /// The server refuses all of them, or there is no answer.
    pub async fn update_history(
        &self,
        node: impl ToNodeId,
        perform: PerformUpdateType,
        values: Vec<DataValue>,
    ) -> Result<Vec<StatusCode>, Error> {
        let node_id = self.resolve(&node)?;
        let what = format!("update the history of {node_id}");
        let details = UpdateDataDetails { node_id, perform_insert_replace: perform, update_values: values };
        Ok(self.change(what, ExtensionObject::new(&details)).await?.operation_results)
    }

    /// Deletes the values between two times; with `modified`, deletes the record of modified values instead. Good_NoData if there
    /// are none.
    ///
    /// # Errors
    /// The server refuses, or there is no answer.
    pub async fn delete_history(
        &self,
        node: impl ToNodeId,
        start: UtcTime,
        end: UtcTime,
        modified: bool,
    ) -> Result<StatusCode, Error> {
        let node_id = self.resolve(&node)?;
        let what = format!("delete the history of {node_id}");
        let details = DeleteRawModifiedDetails {
            node_id,
            is_delete_modified: modified,
            start_time: start,
            end_time: end,
        };
        Ok(self.change(what, ExtensionObject::new(&details)).await?.status_code)
    }

    /// Deletes the values at some times, and returns a status for each.
    ///
    /// # Errors
    /// The server refuses, or there is no answer.
    pub async fn delete_history_at(
        &self,
        node: impl ToNodeId,
        times: Vec<UtcTime>,
    ) -> Result<Vec<StatusCode>, Error> {
        let node_id = self.resolve(&node)?;
        let what = format!("delete the history of {node_id}");
        let details = DeleteAtTimeDetails { node_id, req_times: times };
        Ok(self.change(what, ExtensionObject::new(&details)).await?.operation_results)
    }

    /// Inserts, replaces or updates events, and returns a status for each. The filter names the fields of each list.
    ///
    /// # Errors
    /// The server refuses all of them, or there is no answer.
    pub async fn update_event_history(
        &self,
        node: impl ToNodeId,
        perform: PerformUpdateType,
        filter: EventFilter,
        events: Vec<Vec<Variant>>,
    ) -> Result<Vec<StatusCode>, Error> {
        let node_id = self.resolve(&node)?;
        let what = format!("update the events of {node_id}");
        let events = events.into_iter().map(|event_fields| HistoryEventFieldList { event_fields });
        let details = UpdateEventDetails {
            node_id,
            perform_insert_replace: perform,
            filter,
            event_data: events.collect(),
        };
        Ok(self.change(what, ExtensionObject::new(&details)).await?.operation_results)
    }

    /// Deletes events by their EventIds, and returns a status for each.
    ///
    /// # Errors
    /// The server refuses, or there is no answer.
    pub async fn delete_event_history(
        &self,
        node: impl ToNodeId,
        event_ids: Vec<ByteString>,
    ) -> Result<Vec<StatusCode>, Error> {
        let node_id = self.resolve(&node)?;
        let what = format!("delete events of {node_id}");
        let details = DeleteEventDetails { node_id, event_ids };
        Ok(self.change(what, ExtensionObject::new(&details)).await?.operation_results)
    }

    /// Reads the annotations of a Variable's history with their annotated times.
    ///
    /// ```no_run
    /// # async fn example(client: taktwerk::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use taktwerk::client::HistoryRange;
    /// use taktwerk::types::UtcTime;
    /// let now = UtcTime::parse("2026-03-04T12:00:00Z").unwrap();
    /// for (time, annotation) in client.annotations("ns=2;s=Boiler", HistoryRange::before(now, 10)).await? {
    ///     println!("{time} {}: {}", annotation.user_name, annotation.message);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The Variable has no Annotations Property (Bad_NoMatch), the server refuses, or there is no answer.
    pub async fn annotations(
        &self,
        node: impl ToNodeId,
        range: HistoryRange,
    ) -> Result<Vec<(UtcTime, Annotation)>, Error> {
        let property = self.find(node, "Annotations").await?;
        let what = format!("read the history of {property}");
        let page = self.history(property, HistoryQuery::raw(range)).await?;
        page.annotations().map_err(|_| Error::status_of(what, StatusCode::BAD_DECODING_ERROR))
    }

    /// Inserts, replaces, updates or removes annotations, each with its annotated time, and returns a status for each.
    ///
    /// Annotated time, user and annotation time identify an annotation. For a new annotation, the server fills in the
    /// user of the session and the present time if they are missing.
    ///
    /// # Errors
    /// The Variable has no Annotations Property (Bad_NoMatch), the server refuses all of them, or there is no answer.
    pub async fn annotate(
        &self,
        node: impl ToNodeId,
        perform: PerformUpdateType,
        annotations: Vec<(UtcTime, Annotation)>,
    ) -> Result<Vec<StatusCode>, Error> {
        let node_id = self.find(node, "Annotations").await?;
        let what = format!("annotate the history with {node_id}");
        let values = annotations.iter().map(|(time, annotation)| annotation_value(*time, annotation));
        let details = UpdateStructureDataDetails {
            node_id,
            perform_insert_replace: perform,
            update_values: values.collect(),
        };
        Ok(self.change(what, ExtensionObject::new(&details)).await?.operation_results)
    }

    async fn change(&self, what: String, details: ExtensionObject) -> Result<HistoryUpdateResult, Error> {
        let request = HistoryUpdateRequest { history_update_details: vec![details], ..Default::default() };
        let mut response = self.request(request, None).await?;
        let result = response.results.pop();
        let result = result.ok_or_else(|| Error::status_of(&*what, StatusCode::BAD_UNEXPECTED_ERROR))?;
        if result.status_code.is_bad() {
            return Err(Error::status_of(what, result.status_code));
        }
        Ok(result)
    }
}

/// The pages of a node's history.
#[derive(Debug)]
pub struct HistoryPages {
    client: Client,
    reader: HistoryReader,
    node: NodeId,
}

impl HistoryPages {
    /// The next page; `None` after the last one.
    ///
    /// # Errors
    /// The server refuses, or there is no answer.
    pub async fn next(&mut self) -> Result<Option<HistoryPage>, Error> {
        let Some(request) = self.reader.request() else { return Ok(None) };
        let response = self.client.request(request, None).await?;
        let failed = |error: HistoryError| {
            Error::status_of(format!("read the history of {}", self.node), error.status())
        };
        self.reader.accept(response).map(Some).map_err(failed)
    }

    /// Ends reading early: releases the continuation point.
    ///
    /// # Errors
    /// There is no answer.
    pub async fn finish(mut self) -> Result<(), Error> {
        self.reader.finish();
        if let Some(request) = self.reader.request() {
            self.client.request(request, None).await?;
        }
        Ok(())
    }
}
