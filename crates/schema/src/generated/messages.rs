// Written by `cargo xtask codegen` from the OPC UA 1.05.07 NodeSet. Do not edit.

//! Service messages by the id of their binary encoding.

use super::structures::*;

request!(FindServersRequest -> FindServersResponse);
request!(GetEndpointsRequest -> GetEndpointsResponse);
request!(RegisterServerRequest -> RegisterServerResponse);
request!(OpenSecureChannelRequest -> OpenSecureChannelResponse);
request!(CloseSecureChannelRequest -> CloseSecureChannelResponse);
request!(CreateSessionRequest -> CreateSessionResponse);
request!(ActivateSessionRequest -> ActivateSessionResponse);
request!(CloseSessionRequest -> CloseSessionResponse);
request!(CancelRequest -> CancelResponse);
request!(AddNodesRequest -> AddNodesResponse);
request!(AddReferencesRequest -> AddReferencesResponse);
request!(DeleteNodesRequest -> DeleteNodesResponse);
request!(DeleteReferencesRequest -> DeleteReferencesResponse);
request!(BrowseRequest -> BrowseResponse);
request!(BrowseNextRequest -> BrowseNextResponse);
request!(TranslateBrowsePathsToNodeIdsRequest -> TranslateBrowsePathsToNodeIdsResponse);
request!(RegisterNodesRequest -> RegisterNodesResponse);
request!(UnregisterNodesRequest -> UnregisterNodesResponse);
request!(QueryFirstRequest -> QueryFirstResponse);
request!(QueryNextRequest -> QueryNextResponse);
request!(ReadRequest -> ReadResponse);
request!(HistoryReadRequest -> HistoryReadResponse);
request!(WriteRequest -> WriteResponse);
request!(HistoryUpdateRequest -> HistoryUpdateResponse);
request!(CallRequest -> CallResponse);
request!(CreateMonitoredItemsRequest -> CreateMonitoredItemsResponse);
request!(ModifyMonitoredItemsRequest -> ModifyMonitoredItemsResponse);
request!(SetMonitoringModeRequest -> SetMonitoringModeResponse);
request!(SetTriggeringRequest -> SetTriggeringResponse);
request!(DeleteMonitoredItemsRequest -> DeleteMonitoredItemsResponse);
request!(CreateSubscriptionRequest -> CreateSubscriptionResponse);
request!(ModifySubscriptionRequest -> ModifySubscriptionResponse);
request!(SetPublishingModeRequest -> SetPublishingModeResponse);
request!(PublishRequest -> PublishResponse);
request!(RepublishRequest -> RepublishResponse);
request!(TransferSubscriptionsRequest -> TransferSubscriptionsResponse);
request!(DeleteSubscriptionsRequest -> DeleteSubscriptionsResponse);
request!(FindServersOnNetworkRequest -> FindServersOnNetworkResponse);
request!(RegisterServer2Request -> RegisterServer2Response);
response!(ServiceFault);
response!(FindServersResponse);
response!(GetEndpointsResponse);
response!(RegisterServerResponse);
response!(OpenSecureChannelResponse);
response!(CloseSecureChannelResponse);
response!(CreateSessionResponse);
response!(ActivateSessionResponse);
response!(CloseSessionResponse);
response!(CancelResponse);
response!(AddNodesResponse);
response!(AddReferencesResponse);
response!(DeleteNodesResponse);
response!(DeleteReferencesResponse);
response!(BrowseResponse);
response!(BrowseNextResponse);
response!(TranslateBrowsePathsToNodeIdsResponse);
response!(RegisterNodesResponse);
response!(UnregisterNodesResponse);
response!(QueryFirstResponse);
response!(QueryNextResponse);
response!(ReadResponse);
response!(HistoryReadResponse);
response!(WriteResponse);
response!(HistoryUpdateResponse);
response!(CallResponse);
response!(CreateMonitoredItemsResponse);
response!(ModifyMonitoredItemsResponse);
response!(SetMonitoringModeResponse);
response!(SetTriggeringResponse);
response!(DeleteMonitoredItemsResponse);
response!(CreateSubscriptionResponse);
response!(ModifySubscriptionResponse);
response!(SetPublishingModeResponse);
response!(PublishResponse);
response!(RepublishResponse);
response!(TransferSubscriptionsResponse);
response!(DeleteSubscriptionsResponse);
response!(FindServersOnNetworkResponse);
response!(RegisterServer2Response);

/// The name of a service message, from the id of its binary encoding: `ReadRequest` for 631.
#[must_use]
pub fn message_name(type_id: u32) -> Option<&'static str> {
    Some(match type_id {
        397 => "ServiceFault",
        422 => "FindServersRequest",
        425 => "FindServersResponse",
        428 => "GetEndpointsRequest",
        431 => "GetEndpointsResponse",
        437 => "RegisterServerRequest",
        440 => "RegisterServerResponse",
        446 => "OpenSecureChannelRequest",
        449 => "OpenSecureChannelResponse",
        452 => "CloseSecureChannelRequest",
        455 => "CloseSecureChannelResponse",
        461 => "CreateSessionRequest",
        464 => "CreateSessionResponse",
        467 => "ActivateSessionRequest",
        470 => "ActivateSessionResponse",
        473 => "CloseSessionRequest",
        476 => "CloseSessionResponse",
        479 => "CancelRequest",
        482 => "CancelResponse",
        488 => "AddNodesRequest",
        491 => "AddNodesResponse",
        494 => "AddReferencesRequest",
        497 => "AddReferencesResponse",
        500 => "DeleteNodesRequest",
        503 => "DeleteNodesResponse",
        506 => "DeleteReferencesRequest",
        509 => "DeleteReferencesResponse",
        527 => "BrowseRequest",
        530 => "BrowseResponse",
        533 => "BrowseNextRequest",
        536 => "BrowseNextResponse",
        554 => "TranslateBrowsePathsToNodeIdsRequest",
        557 => "TranslateBrowsePathsToNodeIdsResponse",
        560 => "RegisterNodesRequest",
        563 => "RegisterNodesResponse",
        566 => "UnregisterNodesRequest",
        569 => "UnregisterNodesResponse",
        615 => "QueryFirstRequest",
        618 => "QueryFirstResponse",
        621 => "QueryNextRequest",
        624 => "QueryNextResponse",
        631 => "ReadRequest",
        634 => "ReadResponse",
        664 => "HistoryReadRequest",
        667 => "HistoryReadResponse",
        673 => "WriteRequest",
        676 => "WriteResponse",
        700 => "HistoryUpdateRequest",
        703 => "HistoryUpdateResponse",
        712 => "CallRequest",
        715 => "CallResponse",
        751 => "CreateMonitoredItemsRequest",
        754 => "CreateMonitoredItemsResponse",
        763 => "ModifyMonitoredItemsRequest",
        766 => "ModifyMonitoredItemsResponse",
        769 => "SetMonitoringModeRequest",
        772 => "SetMonitoringModeResponse",
        775 => "SetTriggeringRequest",
        778 => "SetTriggeringResponse",
        781 => "DeleteMonitoredItemsRequest",
        784 => "DeleteMonitoredItemsResponse",
        787 => "CreateSubscriptionRequest",
        790 => "CreateSubscriptionResponse",
        793 => "ModifySubscriptionRequest",
        796 => "ModifySubscriptionResponse",
        799 => "SetPublishingModeRequest",
        802 => "SetPublishingModeResponse",
        826 => "PublishRequest",
        829 => "PublishResponse",
        832 => "RepublishRequest",
        835 => "RepublishResponse",
        841 => "TransferSubscriptionsRequest",
        844 => "TransferSubscriptionsResponse",
        847 => "DeleteSubscriptionsRequest",
        850 => "DeleteSubscriptionsResponse",
        12208 => "FindServersOnNetworkRequest",
        12209 => "FindServersOnNetworkResponse",
        12211 => "RegisterServer2Request",
        12212 => "RegisterServer2Response",
        _ => return None,
    })
}
