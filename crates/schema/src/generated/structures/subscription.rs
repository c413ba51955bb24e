// Written by `cargo xtask codegen` from the OPC UA 1.05.07 NodeSet. Do not edit.

//! Subscriptions and notifications (Part 4 §5.14).

use super::session::{RequestHeader, ResponseHeader};
use taktwerk_types::{DataValue, DiagnosticInfo, ExtensionObject, StatusCode, UtcTime, Variant};

structure! {
    /// `CreateSubscriptionRequest` (DataType i=785).
    pub struct CreateSubscriptionRequest = 785, 787 {
        request_header: RequestHeader,
        requested_publishing_interval: f64,
        requested_lifetime_count: u32,
        requested_max_keep_alive_count: u32,
        max_notifications_per_publish: u32,
        publishing_enabled: bool,
        priority: u8,
    }
}

structure! {
    /// `CreateSubscriptionResponse` (DataType i=788).
    pub struct CreateSubscriptionResponse = 788, 790 {
        response_header: ResponseHeader,
        subscription_id: u32,
        revised_publishing_interval: f64,
        revised_lifetime_count: u32,
        revised_max_keep_alive_count: u32,
    }
}

structure! {
    /// `ModifySubscriptionRequest` (DataType i=791).
    pub struct ModifySubscriptionRequest = 791, 793 {
        request_header: RequestHeader,
        subscription_id: u32,
        requested_publishing_interval: f64,
        requested_lifetime_count: u32,
        requested_max_keep_alive_count: u32,
        max_notifications_per_publish: u32,
        priority: u8,
    }
}

structure! {
    /// `ModifySubscriptionResponse` (DataType i=794).
    pub struct ModifySubscriptionResponse = 794, 796 {
        response_header: ResponseHeader,
        revised_publishing_interval: f64,
        revised_lifetime_count: u32,
        revised_max_keep_alive_count: u32,
    }
}

structure! {
    /// `SetPublishingModeRequest` (DataType i=797).
    pub struct SetPublishingModeRequest = 797, 799 {
        request_header: RequestHeader,
        publishing_enabled: bool,
        subscription_ids: Vec<u32>,
    }
}

structure! {
    /// `SetPublishingModeResponse` (DataType i=800).
    pub struct SetPublishingModeResponse = 800, 802 {
        response_header: ResponseHeader,
        results: Vec<StatusCode>,
        diagnostic_infos: Vec<DiagnosticInfo>,
    }
}

structure! {
    /// `NotificationMessage` (DataType i=803).
    pub struct NotificationMessage = 803, 805 {
        sequence_number: u32,
        publish_time: UtcTime,
        notification_data: Vec<ExtensionObject>,
    }
}

structure! {
    /// `MonitoredItemNotification` (DataType i=806).
    pub struct MonitoredItemNotification = 806, 808 {
        client_handle: u32,
        value: DataValue,
    }
}

structure! {
    /// `DataChangeNotification` (DataType i=809).
    pub struct DataChangeNotification = 809, 811 {
        monitored_items: Vec<MonitoredItemNotification>,
        diagnostic_infos: Vec<DiagnosticInfo>,
    }
}

structure! {
    /// `StatusChangeNotification` (DataType i=818).
    pub struct StatusChangeNotification = 818, 820 {
        status: StatusCode,
        diagnostic_info: DiagnosticInfo,
    }
}

structure! {
    /// `SubscriptionAcknowledgement` (DataType i=821).
    pub struct SubscriptionAcknowledgement = 821, 823 {
        subscription_id: u32,
        sequence_number: u32,
    }
}

structure! {
    /// `PublishRequest` (DataType i=824).
    pub struct PublishRequest = 824, 826 {
        request_header: RequestHeader,
        subscription_acknowledgements: Vec<SubscriptionAcknowledgement>,
    }
}

structure! {
    /// `PublishResponse` (DataType i=827).
    pub struct PublishResponse = 827, 829 {
        response_header: ResponseHeader,
        subscription_id: u32,
        available_sequence_numbers: Vec<u32>,
        more_notifications: bool,
        notification_message: NotificationMessage,
        results: Vec<StatusCode>,
        diagnostic_infos: Vec<DiagnosticInfo>,
    }
}

structure! {
    /// `RepublishRequest` (DataType i=830).
    pub struct RepublishRequest = 830, 832 {
        request_header: RequestHeader,
        subscription_id: u32,
        retransmit_sequence_number: u32,
    }
}

structure! {
    /// `RepublishResponse` (DataType i=833).
    pub struct RepublishResponse = 833, 835 {
        response_header: ResponseHeader,
        notification_message: NotificationMessage,
    }
}

structure! {
    /// `TransferResult` (DataType i=836).
    pub struct TransferResult = 836, 838 {
        status_code: StatusCode,
        available_sequence_numbers: Vec<u32>,
    }
}

structure! {
    /// `TransferSubscriptionsRequest` (DataType i=839).
    pub struct TransferSubscriptionsRequest = 839, 841 {
        request_header: RequestHeader,
        subscription_ids: Vec<u32>,
        send_initial_values: bool,
    }
}

structure! {
    /// `TransferSubscriptionsResponse` (DataType i=842).
    pub struct TransferSubscriptionsResponse = 842, 844 {
        response_header: ResponseHeader,
        results: Vec<TransferResult>,
        diagnostic_infos: Vec<DiagnosticInfo>,
    }
}

structure! {
    /// `DeleteSubscriptionsRequest` (DataType i=845).
    pub struct DeleteSubscriptionsRequest = 845, 847 {
        request_header: RequestHeader,
        subscription_ids: Vec<u32>,
    }
}

structure! {
    /// `DeleteSubscriptionsResponse` (DataType i=848).
    pub struct DeleteSubscriptionsResponse = 848, 850 {
        response_header: ResponseHeader,
        results: Vec<StatusCode>,
        diagnostic_infos: Vec<DiagnosticInfo>,
    }
}

structure! {
    /// `EventNotificationList` (DataType i=914).
    pub struct EventNotificationList = 914, 916 {
        events: Vec<EventFieldList>,
    }
}

structure! {
    /// `EventFieldList` (DataType i=917).
    pub struct EventFieldList = 917, 919 {
        client_handle: u32,
        event_fields: Vec<Variant>,
    }
}

structure! {
    /// `NotificationData` (DataType i=945).
    pub struct NotificationData = 945, 947 {}
}
