// Written by `cargo xtask codegen` from the OPC UA 1.05.07 NodeSet. Do not edit.

use super::StatusCode;

impl StatusCode {
    /// The operation succeeded.
    pub const GOOD: Self = Self(0x0000_0000);
    /// The subscription was transferred to another session.
    pub const GOOD_SUBSCRIPTION_TRANSFERRED: Self = Self(0x002D_0000);
    /// The processing will complete asynchronously.
    pub const GOOD_COMPLETES_ASYNCHRONOUSLY: Self = Self(0x002E_0000);
    /// Sampling has slowed down due to resource limitations.
    pub const GOOD_OVERLOAD: Self = Self(0x002F_0000);
    /// The value written was accepted but was clamped.
    pub const GOOD_CLAMPED: Self = Self(0x0030_0000);
    /// The value has been overridden.
    pub const GOOD_LOCAL_OVERRIDE: Self = Self(0x0096_0000);
    /// The data or event was successfully inserted into the historical database.
    pub const GOOD_ENTRY_INSERTED: Self = Self(0x00A2_0000);
    /// The data or event field was successfully replaced in the historical database.
    pub const GOOD_ENTRY_REPLACED: Self = Self(0x00A3_0000);
    /// No data exists for the requested time range or event filter.
    pub const GOOD_NO_DATA: Self = Self(0x00A5_0000);
    /// More data is available in the time range beyond the number of values requested.
    pub const GOOD_MORE_DATA: Self = Self(0x00A6_0000);
    /// The communication layer has raised an event.
    pub const GOOD_COMMUNICATION_EVENT: Self = Self(0x00A7_0000);
    /// The system is shutting down.
    pub const GOOD_SHUTDOWN_EVENT: Self = Self(0x00A8_0000);
    /// The operation is not finished and needs to be called again.
    pub const GOOD_CALL_AGAIN: Self = Self(0x00A9_0000);
    /// A non-critical timeout occurred.
    pub const GOOD_NON_CRITICAL_TIMEOUT: Self = Self(0x00AA_0000);
    /// The server should have followed a reference to a node in a remote server but did not. The result set may be incomplete.
    pub const GOOD_RESULTS_MAY_BE_INCOMPLETE: Self = Self(0x00BA_0000);
    /// The request specifies fields which are not valid for the EventType or cannot be saved by the historian.
    pub const GOOD_DATA_IGNORED: Self = Self(0x00D9_0000);
    /// The value does not come from the real source and has been edited by the server.
    pub const GOOD_EDITED: Self = Self(0x00DC_0000);
    /// There was an error in execution of these post-actions.
    pub const GOOD_POST_ACTION_FAILED: Self = Self(0x00DD_0000);
    /// The Server does not support retransmission queue and acknowledgement of sequence numbers is not available.
    pub const GOOD_RETRANSMISSION_QUEUE_NOT_SUPPORTED: Self = Self(0x00DF_0000);
    /// A dependent value has been changed but the change has not been applied to the device.
    pub const GOOD_DEPENDENT_VALUE_CHANGED: Self = Self(0x00E0_0000);
    /// The value is derived from multiple sources and has the required number of Good sources, but less than the full number of Good sources.
    pub const GOOD_SUB_NORMAL: Self = Self(0x00EB_0000);
    /// The log-on for the user succeeded but the user is required to change the password.
    pub const GOOD_PASSWORD_CHANGE_REQUIRED: Self = Self(0x00EF_0000);
    /// It is delivered with a dominant Variable value when a dependent Variable has changed but the change has not been applied.
    pub const GOOD_EDITED_DEPENDENT_VALUE_CHANGED: Self = Self(0x0116_0000);
    /// It is delivered with a dependent Variable value when a dominant Variable has changed but the change has not been applied.
    pub const GOOD_EDITED_DOMINANT_VALUE_CHANGED: Self = Self(0x0117_0000);
    /// It is delivered with a dependent Variable value when a dominant or dependent Variable has changed but change has not been applied.
    pub const GOOD_EDITED_DOMINANT_VALUE_CHANGED_DEPENDENT_VALUE_CHANGED: Self = Self(0x0118_0000);
    /// The value source supports cascade handshaking and the value has been Initialized based on an initialization request from a cascade secondary.
    pub const GOOD_CASCADE_INITIALIZATION_ACKNOWLEDGED: Self = Self(0x0401_0000);
    /// The value source supports cascade handshaking and is requesting initialization of a cascade primary.
    pub const GOOD_CASCADE_INITIALIZATION_REQUEST: Self = Self(0x0402_0000);
    /// The value source supports cascade handshaking, however, the source's current state does not allow for cascade.
    pub const GOOD_CASCADE_NOT_INVITED: Self = Self(0x0403_0000);
    /// The value source supports cascade handshaking, however, the source has not selected the corresponding cascade primary for use.
    pub const GOOD_CASCADE_NOT_SELECTED: Self = Self(0x0404_0000);
    /// There is a fault state condition active in the value source.
    pub const GOOD_FAULT_STATE_ACTIVE: Self = Self(0x0407_0000);
    /// A fault state condition is being requested of the destination.
    pub const GOOD_INITIATE_FAULT_STATE: Self = Self(0x0408_0000);
    /// The value is accurate, and the signal source supports cascade handshaking.
    pub const GOOD_CASCADE: Self = Self(0x0409_0000);
    /// The operation was uncertain.
    pub const UNCERTAIN: Self = Self(0x4000_0000);
    /// One of the references to follow in the relative path references to a node in the address space in another server.
    pub const UNCERTAIN_REFERENCE_OUT_OF_SERVER: Self = Self(0x406C_0000);
    /// Communication to the data source has failed. The variable value is the last value that had a good quality.
    pub const UNCERTAIN_NO_COMMUNICATION_LAST_USABLE_VALUE: Self = Self(0x408F_0000);
    /// Whatever was updating this value has stopped doing so.
    pub const UNCERTAIN_LAST_USABLE_VALUE: Self = Self(0x4090_0000);
    /// The value is an operational value that was manually overwritten.
    pub const UNCERTAIN_SUBSTITUTE_VALUE: Self = Self(0x4091_0000);
    /// The value is an initial value for a variable that normally receives its value from another variable.
    pub const UNCERTAIN_INITIAL_VALUE: Self = Self(0x4092_0000);
    /// The value is at one of the sensor limits.
    pub const UNCERTAIN_SENSOR_NOT_ACCURATE: Self = Self(0x4093_0000);
    /// The value is outside of the range of values defined for this parameter.
    pub const UNCERTAIN_ENGINEERING_UNITS_EXCEEDED: Self = Self(0x4094_0000);
    /// The data value is derived from multiple sources and has less than the required number of Good sources.
    pub const UNCERTAIN_SUB_NORMAL: Self = Self(0x4095_0000);
    /// The aggregate value is derived from multiple values and has less than the required number of Good values.
    pub const UNCERTAIN_DATA_SUB_NORMAL: Self = Self(0x40A4_0000);
    /// The server was not able to delete all target references.
    pub const UNCERTAIN_REFERENCE_NOT_DELETED: Self = Self(0x40BC_0000);
    /// The list of references may not be complete because the underlying system is not available.
    pub const UNCERTAIN_NOT_ALL_NODES_AVAILABLE: Self = Self(0x40C0_0000);
    /// The related EngineeringUnit has been changed but the Variable Value is still provided based on the previous unit.
    pub const UNCERTAIN_DOMINANT_VALUE_CHANGED: Self = Self(0x40DE_0000);
    /// A dependent value has been changed but the change has not been applied to the device. The quality of the dominant variable is uncertain.
    pub const UNCERTAIN_DEPENDENT_VALUE_CHANGED: Self = Self(0x40E2_0000);
    /// The value is over the allowed range.
    pub const UNCERTAIN_OVER_RANGE: Self = Self(0x40F2_0000);
    /// The value is under the allowed range.
    pub const UNCERTAIN_UNDER_RANGE: Self = Self(0x40F3_0000);
    /// The value may not be accurate because the transducer is in manual mode.
    pub const UNCERTAIN_TRANSDUCER_IN_MANUAL: Self = Self(0x4208_0000);
    /// The value is simulated.
    pub const UNCERTAIN_SIMULATED_VALUE: Self = Self(0x4209_0000);
    /// The value may not be accurate due to a sensor calibration fault.
    pub const UNCERTAIN_SENSOR_CALIBRATION: Self = Self(0x420A_0000);
    /// The value may not be accurate due to a configuration issue.
    pub const UNCERTAIN_CONFIGURATION_ERROR: Self = Self(0x420F_0000);
    /// The operation failed.
    pub const BAD: Self = Self(0x8000_0000);
    /// An unexpected error occurred.
    pub const BAD_UNEXPECTED_ERROR: Self = Self(0x8001_0000);
    /// An internal error occurred as a result of a programming or configuration error.
    pub const BAD_INTERNAL_ERROR: Self = Self(0x8002_0000);
    /// Not enough memory to complete the operation.
    pub const BAD_OUT_OF_MEMORY: Self = Self(0x8003_0000);
    /// An operating system resource is not available.
    pub const BAD_RESOURCE_UNAVAILABLE: Self = Self(0x8004_0000);
    /// A low level communication error occurred.
    pub const BAD_COMMUNICATION_ERROR: Self = Self(0x8005_0000);
    /// Encoding halted because of invalid data in the objects being serialized.
    pub const BAD_ENCODING_ERROR: Self = Self(0x8006_0000);
    /// Decoding halted because of invalid data in the stream.
    pub const BAD_DECODING_ERROR: Self = Self(0x8007_0000);
    /// The message encoding/decoding limits imposed by the stack have been exceeded.
    pub const BAD_ENCODING_LIMITS_EXCEEDED: Self = Self(0x8008_0000);
    /// An unrecognized response was received from the server.
    pub const BAD_UNKNOWN_RESPONSE: Self = Self(0x8009_0000);
    /// The operation timed out.
    pub const BAD_TIMEOUT: Self = Self(0x800A_0000);
    /// The server does not support the requested service.
    pub const BAD_SERVICE_UNSUPPORTED: Self = Self(0x800B_0000);
    /// The operation was cancelled because the application is shutting down.
    pub const BAD_SHUTDOWN: Self = Self(0x800C_0000);
    /// The operation could not complete because the client is not connected to the server.
    pub const BAD_SERVER_NOT_CONNECTED: Self = Self(0x800D_0000);
    /// The server has stopped and cannot process any requests.
    pub const BAD_SERVER_HALTED: Self = Self(0x800E_0000);
    /// No processing could be done because there was nothing to do.
    pub const BAD_NOTHING_TO_DO: Self = Self(0x800F_0000);
    /// The request could not be processed because it specified too many operations.
    pub const BAD_TOO_MANY_OPERATIONS: Self = Self(0x8010_0000);
    /// The extension object cannot be (de)serialized because the data type id is not recognized.
    pub const BAD_DATA_TYPE_ID_UNKNOWN: Self = Self(0x8011_0000);
    /// The certificate provided as a parameter is not valid.
    pub const BAD_CERTIFICATE_INVALID: Self = Self(0x8012_0000);
    /// An error occurred verifying security.
    pub const BAD_SECURITY_CHECKS_FAILED: Self = Self(0x8013_0000);
    /// The certificate has expired or is not yet valid.
    pub const BAD_CERTIFICATE_TIME_INVALID: Self = Self(0x8014_0000);
    /// An issuer certificate has expired or is not yet valid.
    pub const BAD_CERTIFICATE_ISSUER_TIME_INVALID: Self = Self(0x8015_0000);
    /// The HostName used to connect to a server does not match a HostName in the certificate.
    pub const BAD_CERTIFICATE_HOST_NAME_INVALID: Self = Self(0x8016_0000);
    /// The URI specified in the ApplicationDescription does not match the URI in the certificate.
    pub const BAD_CERTIFICATE_URI_INVALID: Self = Self(0x8017_0000);
    /// The certificate may not be used for the requested operation.
    pub const BAD_CERTIFICATE_USE_NOT_ALLOWED: Self = Self(0x8018_0000);
    /// The issuer certificate may not be used for the requested operation.
    pub const BAD_CERTIFICATE_ISSUER_USE_NOT_ALLOWED: Self = Self(0x8019_0000);
    /// The certificate is not trusted.
    pub const BAD_CERTIFICATE_UNTRUSTED: Self = Self(0x801A_0000);
    /// It was not possible to determine if the certificate has been revoked.
    pub const BAD_CERTIFICATE_REVOCATION_UNKNOWN: Self = Self(0x801B_0000);
    /// It was not possible to determine if the issuer certificate has been revoked.
    pub const BAD_CERTIFICATE_ISSUER_REVOCATION_UNKNOWN: Self = Self(0x801C_0000);
    /// The certificate has been revoked.
    pub const BAD_CERTIFICATE_REVOKED: Self = Self(0x801D_0000);
    /// The issuer certificate has been revoked.
    pub const BAD_CERTIFICATE_ISSUER_REVOKED: Self = Self(0x801E_0000);
    /// User does not have permission to perform the requested operation.
    pub const BAD_USER_ACCESS_DENIED: Self = Self(0x801F_0000);
    /// The user identity token is not valid.
    pub const BAD_IDENTITY_TOKEN_INVALID: Self = Self(0x8020_0000);
    /// The user identity token is valid but the server has rejected it.
    pub const BAD_IDENTITY_TOKEN_REJECTED: Self = Self(0x8021_0000);
    /// The specified secure channel is no longer valid.
    pub const BAD_SECURE_CHANNEL_ID_INVALID: Self = Self(0x8022_0000);
    /// The timestamp is outside the range allowed by the server.
    pub const BAD_INVALID_TIMESTAMP: Self = Self(0x8023_0000);
    /// The nonce does appear to be not a random value or it is not the correct length.
    pub const BAD_NONCE_INVALID: Self = Self(0x8024_0000);
    /// The session id is not valid.
    pub const BAD_SESSION_ID_INVALID: Self = Self(0x8025_0000);
    /// The session was closed by the client.
    pub const BAD_SESSION_CLOSED: Self = Self(0x8026_0000);
    /// The session cannot be used because ActivateSession has not been called.
    pub const BAD_SESSION_NOT_ACTIVATED: Self = Self(0x8027_0000);
    /// The subscription id is not valid.
    pub const BAD_SUBSCRIPTION_ID_INVALID: Self = Self(0x8028_0000);
    /// The header for the request is missing or invalid.
    pub const BAD_REQUEST_HEADER_INVALID: Self = Self(0x802A_0000);
    /// The timestamps to return parameter is invalid.
    pub const BAD_TIMESTAMPS_TO_RETURN_INVALID: Self = Self(0x802B_0000);
    /// The request was cancelled by the client.
    pub const BAD_REQUEST_CANCELLED_BY_CLIENT: Self = Self(0x802C_0000);
    /// Communication with the data source is defined, but not established, and there is no last known value available.
    pub const BAD_NO_COMMUNICATION: Self = Self(0x8031_0000);
    /// Waiting for the server to obtain values from the underlying data source.
    pub const BAD_WAITING_FOR_INITIAL_DATA: Self = Self(0x8032_0000);
    /// The syntax the node id is not valid or refers to a node that is not valid for the operation.
    pub const BAD_NODE_ID_INVALID: Self = Self(0x8033_0000);
    /// The node id refers to a node that does not exist in the server address space.
    pub const BAD_NODE_ID_UNKNOWN: Self = Self(0x8034_0000);
    /// The attribute is not supported for the specified Node.
    pub const BAD_ATTRIBUTE_ID_INVALID: Self = Self(0x8035_0000);
    /// The syntax of the index range parameter is invalid.
    pub const BAD_INDEX_RANGE_INVALID: Self = Self(0x8036_0000);
    /// No data exists within the range of indexes specified.
    pub const BAD_INDEX_RANGE_NO_DATA: Self = Self(0x8037_0000);
    /// The data encoding is invalid.
    pub const BAD_DATA_ENCODING_INVALID: Self = Self(0x8038_0000);
    /// The server does not support the requested data encoding for the node.
    pub const BAD_DATA_ENCODING_UNSUPPORTED: Self = Self(0x8039_0000);
    /// The access level does not allow reading or subscribing to the Node.
    pub const BAD_NOT_READABLE: Self = Self(0x803A_0000);
    /// The access level does not allow writing to the Node.
    pub const BAD_NOT_WRITABLE: Self = Self(0x803B_0000);
    /// The value was out of range.
    pub const BAD_OUT_OF_RANGE: Self = Self(0x803C_0000);
    /// The requested operation is not supported.
    pub const BAD_NOT_SUPPORTED: Self = Self(0x803D_0000);
    /// A requested item was not found or a search operation ended without success.
    pub const BAD_NOT_FOUND: Self = Self(0x803E_0000);
    /// The object cannot be used because it has been deleted.
    pub const BAD_OBJECT_DELETED: Self = Self(0x803F_0000);
    /// Requested operation is not implemented.
    pub const BAD_NOT_IMPLEMENTED: Self = Self(0x8040_0000);
    /// The monitoring mode is invalid.
    pub const BAD_MONITORING_MODE_INVALID: Self = Self(0x8041_0000);
    /// The monitoring item id does not refer to a valid monitored item.
    pub const BAD_MONITORED_ITEM_ID_INVALID: Self = Self(0x8042_0000);
    /// The monitored item filter parameter is not valid.
    pub const BAD_MONITORED_ITEM_FILTER_INVALID: Self = Self(0x8043_0000);
    /// The server does not support the requested monitored item filter.
    pub const BAD_MONITORED_ITEM_FILTER_UNSUPPORTED: Self = Self(0x8044_0000);
    /// A monitoring filter cannot be used in combination with the attribute specified.
    pub const BAD_FILTER_NOT_ALLOWED: Self = Self(0x8045_0000);
    /// A mandatory structured parameter was missing or null.
    pub const BAD_STRUCTURE_MISSING: Self = Self(0x8046_0000);
    /// The event filter is not valid.
    pub const BAD_EVENT_FILTER_INVALID: Self = Self(0x8047_0000);
    /// The content filter is not valid.
    pub const BAD_CONTENT_FILTER_INVALID: Self = Self(0x8048_0000);
    /// The operand used in a content filter is not valid.
    pub const BAD_FILTER_OPERAND_INVALID: Self = Self(0x8049_0000);
    /// The continuation point provide is longer valid.
    pub const BAD_CONTINUATION_POINT_INVALID: Self = Self(0x804A_0000);
    /// The operation could not be processed because all continuation points have been allocated.
    pub const BAD_NO_CONTINUATION_POINTS: Self = Self(0x804B_0000);
    /// The reference type id does not refer to a valid reference type node.
    pub const BAD_REFERENCE_TYPE_ID_INVALID: Self = Self(0x804C_0000);
    /// The browse direction is not valid.
    pub const BAD_BROWSE_DIRECTION_INVALID: Self = Self(0x804D_0000);
    /// The node is not part of the view.
    pub const BAD_NODE_NOT_IN_VIEW: Self = Self(0x804E_0000);
    /// The ServerUri is not a valid URI.
    pub const BAD_SERVER_URI_INVALID: Self = Self(0x804F_0000);
    /// No ServerName was specified.
    pub const BAD_SERVER_NAME_MISSING: Self = Self(0x8050_0000);
    /// No DiscoveryUrl was specified.
    pub const BAD_DISCOVERY_URL_MISSING: Self = Self(0x8051_0000);
    /// The semaphore file specified by the client is not valid.
    pub const BAD_SEMAPHORE_FILE_MISSING: Self = Self(0x8052_0000);
    /// The security token request type is not valid.
    pub const BAD_REQUEST_TYPE_INVALID: Self = Self(0x8053_0000);
    /// The security mode does not meet the requirements set by the server.
    pub const BAD_SECURITY_MODE_REJECTED: Self = Self(0x8054_0000);
    /// The security policy does not meet the requirements set by the server.
    pub const BAD_SECURITY_POLICY_REJECTED: Self = Self(0x8055_0000);
    /// The server has reached its maximum number of sessions.
    pub const BAD_TOO_MANY_SESSIONS: Self = Self(0x8056_0000);
    /// The user token signature is missing or invalid.
    pub const BAD_USER_SIGNATURE_INVALID: Self = Self(0x8057_0000);
    /// The signature generated with the client certificate is missing or invalid.
    pub const BAD_APPLICATION_SIGNATURE_INVALID: Self = Self(0x8058_0000);
    /// The client did not provide at least one software certificate that is valid and meets the profile requirements for the server.
    pub const BAD_NO_VALID_CERTIFICATES: Self = Self(0x8059_0000);
    /// The request was cancelled by the client with the Cancel service.
    pub const BAD_REQUEST_CANCELLED_BY_REQUEST: Self = Self(0x805A_0000);
    /// The parent node id does not to refer to a valid node.
    pub const BAD_PARENT_NODE_ID_INVALID: Self = Self(0x805B_0000);
    /// The reference could not be created because it violates constraints imposed by the data model.
    pub const BAD_REFERENCE_NOT_ALLOWED: Self = Self(0x805C_0000);
    /// The requested node id was reject because it was either invalid or server does not allow node ids to be specified by the client.
    pub const BAD_NODE_ID_REJECTED: Self = Self(0x805D_0000);
    /// The requested node id is already used by another node.
    pub const BAD_NODE_ID_EXISTS: Self = Self(0x805E_0000);
    /// The node class is not valid.
    pub const BAD_NODE_CLASS_INVALID: Self = Self(0x805F_0000);
    /// The browse name is invalid.
    pub const BAD_BROWSE_NAME_INVALID: Self = Self(0x8060_0000);
    /// The browse name is not unique among nodes that share the same relationship with the parent.
    pub const BAD_BROWSE_NAME_DUPLICATED: Self = Self(0x8061_0000);
    /// The node attributes are not valid for the node class.
    pub const BAD_NODE_ATTRIBUTES_INVALID: Self = Self(0x8062_0000);
    /// The type definition node id does not reference an appropriate type node.
    pub const BAD_TYPE_DEFINITION_INVALID: Self = Self(0x8063_0000);
    /// The source node id does not reference a valid node.
    pub const BAD_SOURCE_NODE_ID_INVALID: Self = Self(0x8064_0000);
    /// The target node id does not reference a valid node.
    pub const BAD_TARGET_NODE_ID_INVALID: Self = Self(0x8065_0000);
    /// The reference type between the nodes is already defined.
    pub const BAD_DUPLICATE_REFERENCE_NOT_ALLOWED: Self = Self(0x8066_0000);
    /// The server does not allow this type of self reference on this node.
    pub const BAD_INVALID_SELF_REFERENCE: Self = Self(0x8067_0000);
    /// The reference type is not valid for a reference to a remote server.
    pub const BAD_REFERENCE_LOCAL_ONLY: Self = Self(0x8068_0000);
    /// The server will not allow the node to be deleted.
    pub const BAD_NO_DELETE_RIGHTS: Self = Self(0x8069_0000);
    /// The server index is not valid.
    pub const BAD_SERVER_INDEX_INVALID: Self = Self(0x806A_0000);
    /// The view id does not refer to a valid view node.
    pub const BAD_VIEW_ID_UNKNOWN: Self = Self(0x806B_0000);
    /// The requested operation has too many matches to return.
    pub const BAD_TOO_MANY_MATCHES: Self = Self(0x806D_0000);
    /// The requested operation requires too many resources in the server.
    pub const BAD_QUERY_TOO_COMPLEX: Self = Self(0x806E_0000);
    /// The requested operation has no match to return.
    pub const BAD_NO_MATCH: Self = Self(0x806F_0000);
    /// The max age parameter is invalid.
    pub const BAD_MAX_AGE_INVALID: Self = Self(0x8070_0000);
    /// The history details parameter is not valid.
    pub const BAD_HISTORY_OPERATION_INVALID: Self = Self(0x8071_0000);
    /// The server does not support the requested operation.
    pub const BAD_HISTORY_OPERATION_UNSUPPORTED: Self = Self(0x8072_0000);
    /// The server does not support writing the combination of value, status and timestamps provided.
    pub const BAD_WRITE_NOT_SUPPORTED: Self = Self(0x8073_0000);
    /// The value supplied for the attribute is not of the same type as the attribute's value.
    pub const BAD_TYPE_MISMATCH: Self = Self(0x8074_0000);
    /// The method id does not refer to a method for the specified object.
    pub const BAD_METHOD_INVALID: Self = Self(0x8075_0000);
    /// The client did not specify all of the input arguments for the method.
    pub const BAD_ARGUMENTS_MISSING: Self = Self(0x8076_0000);
    /// The server has reached its maximum number of subscriptions.
    pub const BAD_TOO_MANY_SUBSCRIPTIONS: Self = Self(0x8077_0000);
    /// The server has reached the maximum number of queued publish requests.
    pub const BAD_TOO_MANY_PUBLISH_REQUESTS: Self = Self(0x8078_0000);
    /// There is no subscription available for this session.
    pub const BAD_NO_SUBSCRIPTION: Self = Self(0x8079_0000);
    /// The sequence number is unknown to the server.
    pub const BAD_SEQUENCE_NUMBER_UNKNOWN: Self = Self(0x807A_0000);
    /// The requested notification message is no longer available.
    pub const BAD_MESSAGE_NOT_AVAILABLE: Self = Self(0x807B_0000);
    /// The client of the current session does not support one or more Profiles that are necessary for the subscription.
    pub const BAD_INSUFFICIENT_CLIENT_PROFILE: Self = Self(0x807C_0000);
    /// The server cannot process the request because it is too busy.
    pub const BAD_TCP_SERVER_TOO_BUSY: Self = Self(0x807D_0000);
    /// The type of the message specified in the header invalid.
    pub const BAD_TCP_MESSAGE_TYPE_INVALID: Self = Self(0x807E_0000);
    /// The SecureChannelId and/or TokenId are not currently in use.
    pub const BAD_TCP_SECURE_CHANNEL_UNKNOWN: Self = Self(0x807F_0000);
    /// The size of the message chunk specified in the header is too large.
    pub const BAD_TCP_MESSAGE_TOO_LARGE: Self = Self(0x8080_0000);
    /// There are not enough resources to process the request.
    pub const BAD_TCP_NOT_ENOUGH_RESOURCES: Self = Self(0x8081_0000);
    /// An internal error occurred.
    pub const BAD_TCP_INTERNAL_ERROR: Self = Self(0x8082_0000);
    /// The server does not recognize the QueryString specified.
    pub const BAD_TCP_ENDPOINT_URL_INVALID: Self = Self(0x8083_0000);
    /// The request could not be sent because of a network interruption.
    pub const BAD_REQUEST_INTERRUPTED: Self = Self(0x8084_0000);
    /// Timeout occurred while processing the request.
    pub const BAD_REQUEST_TIMEOUT: Self = Self(0x8085_0000);
    /// The secure channel has been closed.
    pub const BAD_SECURE_CHANNEL_CLOSED: Self = Self(0x8086_0000);
    /// The token has expired or is not recognized.
    pub const BAD_SECURE_CHANNEL_TOKEN_UNKNOWN: Self = Self(0x8087_0000);
    /// The sequence number is not valid.
    pub const BAD_SEQUENCE_NUMBER_INVALID: Self = Self(0x8088_0000);
    /// There is a problem with the configuration that affects the usefulness of the value.
    pub const BAD_CONFIGURATION_ERROR: Self = Self(0x8089_0000);
    /// The variable should receive its value from another variable, but has never been configured to do so.
    pub const BAD_NOT_CONNECTED: Self = Self(0x808A_0000);
    /// There has been a failure in the device/data source that generates the value that has affected the value.
    pub const BAD_DEVICE_FAILURE: Self = Self(0x808B_0000);
    /// There has been a failure in the sensor from which the value is derived by the device/data source.
    pub const BAD_SENSOR_FAILURE: Self = Self(0x808C_0000);
    /// The source of the data is not operational.
    pub const BAD_OUT_OF_SERVICE: Self = Self(0x808D_0000);
    /// The deadband filter is not valid.
    pub const BAD_DEADBAND_FILTER_INVALID: Self = Self(0x808E_0000);
    /// This Condition refresh failed, a Condition refresh operation is already in progress.
    pub const BAD_REFRESH_IN_PROGRESS: Self = Self(0x8097_0000);
    /// This condition has already been disabled.
    pub const BAD_CONDITION_ALREADY_DISABLED: Self = Self(0x8098_0000);
    /// Property not available, this condition is disabled.
    pub const BAD_CONDITION_DISABLED: Self = Self(0x8099_0000);
    /// The specified event id is not recognized.
    pub const BAD_EVENT_ID_UNKNOWN: Self = Self(0x809A_0000);
    /// No data exists for the requested time range or event filter.
    pub const BAD_NO_DATA: Self = Self(0x809B_0000);
    /// Data is missing due to collection started/stopped/lost.
    pub const BAD_DATA_LOST: Self = Self(0x809D_0000);
    /// Expected data is unavailable for the requested time range due to an un-mounted volume, an off-line archive or tape, or similar reason for temporary unavailability.
    pub const BAD_DATA_UNAVAILABLE: Self = Self(0x809E_0000);
    /// The data or event was not successfully inserted because a matching entry exists.
    pub const BAD_ENTRY_EXISTS: Self = Self(0x809F_0000);
    /// The data or event was not successfully updated because no matching entry exists.
    pub const BAD_NO_ENTRY_EXISTS: Self = Self(0x80A0_0000);
    /// The Client requested history using a TimestampsToReturn the Server does not support.
    pub const BAD_TIMESTAMP_NOT_SUPPORTED: Self = Self(0x80A1_0000);
    /// One or more arguments are invalid.
    pub const BAD_INVALID_ARGUMENT: Self = Self(0x80AB_0000);
    /// Could not establish a network connection to remote server.
    pub const BAD_CONNECTION_REJECTED: Self = Self(0x80AC_0000);
    /// The server has disconnected from the client.
    pub const BAD_DISCONNECT: Self = Self(0x80AD_0000);
    /// The network connection has been closed.
    pub const BAD_CONNECTION_CLOSED: Self = Self(0x80AE_0000);
    /// The operation cannot be completed because the object is closed, uninitialized or in some other invalid state.
    pub const BAD_INVALID_STATE: Self = Self(0x80AF_0000);
    /// Cannot move beyond end of the stream.
    pub const BAD_END_OF_STREAM: Self = Self(0x80B0_0000);
    /// No data is currently available for reading from a non-blocking stream.
    pub const BAD_NO_DATA_AVAILABLE: Self = Self(0x80B1_0000);
    /// The asynchronous operation is waiting for a response.
    pub const BAD_WAITING_FOR_RESPONSE: Self = Self(0x80B2_0000);
    /// The asynchronous operation was abandoned by the caller.
    pub const BAD_OPERATION_ABANDONED: Self = Self(0x80B3_0000);
    /// The stream did not return all data requested (possibly because it is a non-blocking stream).
    pub const BAD_EXPECTED_STREAM_TO_BLOCK: Self = Self(0x80B4_0000);
    /// Non blocking behaviour is required and the operation would block.
    pub const BAD_WOULD_BLOCK: Self = Self(0x80B5_0000);
    /// A value had an invalid syntax.
    pub const BAD_SYNTAX_ERROR: Self = Self(0x80B6_0000);
    /// The operation could not be finished because all available connections are in use.
    pub const BAD_MAX_CONNECTIONS_REACHED: Self = Self(0x80B7_0000);
    /// The request message size exceeds limits set by the server.
    pub const BAD_REQUEST_TOO_LARGE: Self = Self(0x80B8_0000);
    /// The response message size exceeds limits set by the client or server.
    pub const BAD_RESPONSE_TOO_LARGE: Self = Self(0x80B9_0000);
    /// The event cannot be acknowledged.
    pub const BAD_EVENT_NOT_ACKNOWLEDGEABLE: Self = Self(0x80BB_0000);
    /// The defined timestamp to return was invalid.
    pub const BAD_INVALID_TIMESTAMP_ARGUMENT: Self = Self(0x80BD_0000);
    /// The applications do not have compatible protocol versions.
    pub const BAD_PROTOCOL_VERSION_UNSUPPORTED: Self = Self(0x80BE_0000);
    /// The sub-state machine is not currently active.
    pub const BAD_STATE_NOT_ACTIVE: Self = Self(0x80BF_0000);
    /// An unrecognized operator was provided in a filter.
    pub const BAD_FILTER_OPERATOR_INVALID: Self = Self(0x80C1_0000);
    /// A valid operator was provided, but the server does not provide support for this filter operator.
    pub const BAD_FILTER_OPERATOR_UNSUPPORTED: Self = Self(0x80C2_0000);
    /// The number of operands provided for the filter operator was less then expected for the operand provided.
    pub const BAD_FILTER_OPERAND_COUNT_MISMATCH: Self = Self(0x80C3_0000);
    /// The referenced element is not a valid element in the content filter.
    pub const BAD_FILTER_ELEMENT_INVALID: Self = Self(0x80C4_0000);
    /// The referenced literal is not a valid value.
    pub const BAD_FILTER_LITERAL_INVALID: Self = Self(0x80C5_0000);
    /// The server does not support changing the user identity assigned to the session.
    pub const BAD_IDENTITY_CHANGE_NOT_SUPPORTED: Self = Self(0x80C6_0000);
    /// The provided Nodeid was not a type definition nodeid.
    pub const BAD_NOT_TYPE_DEFINITION: Self = Self(0x80C8_0000);
    /// The view timestamp is not available or not supported.
    pub const BAD_VIEW_TIMESTAMP_INVALID: Self = Self(0x80C9_0000);
    /// The view parameters are not consistent with each other.
    pub const BAD_VIEW_PARAMETER_MISMATCH: Self = Self(0x80CA_0000);
    /// The view version is not available or not supported.
    pub const BAD_VIEW_VERSION_INVALID: Self = Self(0x80CB_0000);
    /// This condition has already been enabled.
    pub const BAD_CONDITION_ALREADY_ENABLED: Self = Self(0x80CC_0000);
    /// The dialog condition is not active.
    pub const BAD_DIALOG_NOT_ACTIVE: Self = Self(0x80CD_0000);
    /// The response is not valid for the dialog.
    pub const BAD_DIALOG_RESPONSE_INVALID: Self = Self(0x80CE_0000);
    /// The condition branch has already been acknowledged.
    pub const BAD_CONDITION_BRANCH_ALREADY_ACKED: Self = Self(0x80CF_0000);
    /// The condition branch has already been confirmed.
    pub const BAD_CONDITION_BRANCH_ALREADY_CONFIRMED: Self = Self(0x80D0_0000);
    /// The condition has already been shelved.
    pub const BAD_CONDITION_ALREADY_SHELVED: Self = Self(0x80D1_0000);
    /// The condition is not currently shelved.
    pub const BAD_CONDITION_NOT_SHELVED: Self = Self(0x80D2_0000);
    /// The shelving time not within an acceptable range.
    pub const BAD_SHELVING_TIME_OUT_OF_RANGE: Self = Self(0x80D3_0000);
    /// The requested number of Aggregates does not match the requested number of NodeIds.
    pub const BAD_AGGREGATE_LIST_MISMATCH: Self = Self(0x80D4_0000);
    /// The requested Aggregate is not support by the server.
    pub const BAD_AGGREGATE_NOT_SUPPORTED: Self = Self(0x80D5_0000);
    /// The aggregate value could not be derived due to invalid data inputs.
    pub const BAD_AGGREGATE_INVALID_INPUTS: Self = Self(0x80D6_0000);
    /// No data found to provide upper or lower bound value.
    pub const BAD_BOUND_NOT_FOUND: Self = Self(0x80D7_0000);
    /// The server cannot retrieve a bound for the variable.
    pub const BAD_BOUND_NOT_SUPPORTED: Self = Self(0x80D8_0000);
    /// The aggregate configuration is not valid for specified node.
    pub const BAD_AGGREGATE_CONFIGURATION_REJECTED: Self = Self(0x80DA_0000);
    /// The request could not be processed because there are too many monitored items in the subscription.
    pub const BAD_TOO_MANY_MONITORED_ITEMS: Self = Self(0x80DB_0000);
    /// The related EngineeringUnit has been changed but this change has not been applied to the device. The Variable Value is still dependent on the previous unit but its status is currently Bad.
    pub const BAD_DOMINANT_VALUE_CHANGED: Self = Self(0x80E1_0000);
    /// A dependent value has been changed but the change has not been applied to the device. The quality of the dominant variable is Bad.
    pub const BAD_DEPENDENT_VALUE_CHANGED: Self = Self(0x80E3_0000);
    /// The request was rejected by the server because it did not meet the criteria set by the server.
    pub const BAD_REQUEST_NOT_ALLOWED: Self = Self(0x80E4_0000);
    /// Too many arguments were provided.
    pub const BAD_TOO_MANY_ARGUMENTS: Self = Self(0x80E5_0000);
    /// The operation is not permitted over the current secure channel.
    pub const BAD_SECURITY_MODE_INSUFFICIENT: Self = Self(0x80E6_0000);
    /// The DataSet specified for the DataSetWriter creation is invalid.
    pub const BAD_DATA_SET_ID_INVALID: Self = Self(0x80E7_0000);
    /// The operation is not allowed because a transaction is in progress.
    pub const BAD_TRANSACTION_PENDING: Self = Self(0x80E8_0000);
    /// The requested operation is not allowed, because the Node is locked by a different application.
    pub const BAD_LOCKED: Self = Self(0x80E9_0000);
    /// The written data does not match the IndexRange specified.
    pub const BAD_INDEX_RANGE_DATA_MISMATCH: Self = Self(0x80EA_0000);
    /// The requested operation is not allowed, because the Node is not locked by the application.
    pub const BAD_REQUIRES_LOCK: Self = Self(0x80EC_0000);
    /// The locale in the requested write operation is not supported.
    pub const BAD_LOCALE_NOT_SUPPORTED: Self = Self(0x80ED_0000);
    /// The Server does not have the resources to process the request at this time.
    pub const BAD_SERVER_TOO_BUSY: Self = Self(0x80EE_0000);
    /// The variable has no default value and no initial value.
    pub const BAD_NO_VALUE: Self = Self(0x80F0_0000);
    /// The operation failed and all changes which were part of the transaction are rolled back.
    pub const BAD_TRANSACTION_FAILED: Self = Self(0x80F1_0000);
    /// The certificate chain is incomplete.
    pub const BAD_CERTIFICATE_CHAIN_INCOMPLETE: Self = Self(0x810D_0000);
    /// The server requires a license to operate in general or to perform a service or operation, but existing license is expired.
    pub const BAD_LICENSE_EXPIRED: Self = Self(0x810E_0000);
    /// The server has limits on number of allowed operations / objects, based on installed licenses, and these limits where exceeded.
    pub const BAD_LICENSE_LIMITS_EXCEEDED: Self = Self(0x810F_0000);
    /// The server does not have a license which is required to operate in general or to perform a service or operation.
    pub const BAD_LICENSE_NOT_AVAILABLE: Self = Self(0x8110_0000);
    /// The executable attribute does not allow the execution of the method.
    pub const BAD_NOT_EXECUTABLE: Self = Self(0x8111_0000);
    /// The number was not accepted because of a numeric overflow.
    pub const BAD_NUMERIC_OVERFLOW: Self = Self(0x8112_0000);
    /// The request has not been processed by the server yet.
    pub const BAD_REQUEST_NOT_COMPLETE: Self = Self(0x8113_0000);
    /// The certificate does not meet the requirements of the security policy.
    pub const BAD_CERTIFICATE_POLICY_CHECK_FAILED: Self = Self(0x8114_0000);
    /// An equivalent rule already exists.
    pub const BAD_ALREADY_EXISTS: Self = Self(0x8115_0000);
    /// It is delivered with a Variable value when Variable has changed but the value is not legal.
    pub const BAD_EDITED_OUT_OF_RANGE: Self = Self(0x8119_0000);
    /// It is delivered with a Variable value when a source Variable has changed but the value is not legal.
    pub const BAD_INITIAL_VALUE_OUT_OF_RANGE: Self = Self(0x811A_0000);
    /// It is delivered with a dependent Variable value when a dominant Variable has changed and the value is not legal.
    pub const BAD_OUT_OF_RANGE_DOMINANT_VALUE_CHANGED: Self = Self(0x811B_0000);
    /// It is delivered with a dependent Variable value when a dominant Variable has changed, the value is not legal and the change has not been applied.
    pub const BAD_EDITED_OUT_OF_RANGE_DOMINANT_VALUE_CHANGED: Self = Self(0x811C_0000);
    /// It is delivered with a dependent Variable value when a dominant or dependent Variable has changed and the value is not legal.
    pub const BAD_OUT_OF_RANGE_DOMINANT_VALUE_CHANGED_DEPENDENT_VALUE_CHANGED: Self = Self(0x811D_0000);
    /// It is delivered with a dependent Variable value when a dominant or dependent Variable has changed, the value is not legal and the change has not been applied.
    pub const BAD_EDITED_OUT_OF_RANGE_DOMINANT_VALUE_CHANGED_DEPENDENT_VALUE_CHANGED: Self =
        Self(0x811E_0000);
    /// The device identity needs a ticket before it can be accepted.
    pub const BAD_TICKET_REQUIRED: Self = Self(0x811F_0000);
    /// The device identity needs a ticket before it can be accepted.
    pub const BAD_TICKET_INVALID: Self = Self(0x8120_0000);
}

/// Code, name and description, sorted by code.
pub(super) static TABLE: &[(u32, &str, &str)] = &[
    (0x0000_0000, "Good", "The operation succeeded."),
    (0x002D_0000, "GoodSubscriptionTransferred", "The subscription was transferred to another session."),
    (0x002E_0000, "GoodCompletesAsynchronously", "The processing will complete asynchronously."),
    (0x002F_0000, "GoodOverload", "Sampling has slowed down due to resource limitations."),
    (0x0030_0000, "GoodClamped", "The value written was accepted but was clamped."),
    (0x0096_0000, "GoodLocalOverride", "The value has been overridden."),
    (
        0x00A2_0000,
        "GoodEntryInserted",
        "The data or event was successfully inserted into the historical database.",
    ),
    (
        0x00A3_0000,
        "GoodEntryReplaced",
        "The data or event field was successfully replaced in the historical database.",
    ),
    (0x00A5_0000, "GoodNoData", "No data exists for the requested time range or event filter."),
    (
        0x00A6_0000,
        "GoodMoreData",
        "More data is available in the time range beyond the number of values requested.",
    ),
    (0x00A7_0000, "GoodCommunicationEvent", "The communication layer has raised an event."),
    (0x00A8_0000, "GoodShutdownEvent", "The system is shutting down."),
    (0x00A9_0000, "GoodCallAgain", "The operation is not finished and needs to be called again."),
    (0x00AA_0000, "GoodNonCriticalTimeout", "A non-critical timeout occurred."),
    (
        0x00BA_0000,
        "GoodResultsMayBeIncomplete",
        "The server should have followed a reference to a node in a remote server but did not. The result set may be incomplete.",
    ),
    (
        0x00D9_0000,
        "GoodDataIgnored",
        "The request specifies fields which are not valid for the EventType or cannot be saved by the historian.",
    ),
    (
        0x00DC_0000,
        "GoodEdited",
        "The value does not come from the real source and has been edited by the server.",
    ),
    (0x00DD_0000, "GoodPostActionFailed", "There was an error in execution of these post-actions."),
    (
        0x00DF_0000,
        "GoodRetransmissionQueueNotSupported",
        "The Server does not support retransmission queue and acknowledgement of sequence numbers is not available.",
    ),
    (
        0x00E0_0000,
        "GoodDependentValueChanged",
        "A dependent value has been changed but the change has not been applied to the device.",
    ),
    (
        0x00EB_0000,
        "GoodSubNormal",
        "The value is derived from multiple sources and has the required number of Good sources, but less than the full number of Good sources.",
    ),
    (
        0x00EF_0000,
        "GoodPasswordChangeRequired",
        "The log-on for the user succeeded but the user is required to change the password.",
    ),
    (
        0x0116_0000,
        "GoodEdited_DependentValueChanged",
        "It is delivered with a dominant Variable value when a dependent Variable has changed but the change has not been applied.",
    ),
    (
        0x0117_0000,
        "GoodEdited_DominantValueChanged",
        "It is delivered with a dependent Variable value when a dominant Variable has changed but the change has not been applied.",
    ),
    (
        0x0118_0000,
        "GoodEdited_DominantValueChanged_DependentValueChanged",
        "It is delivered with a dependent Variable value when a dominant or dependent Variable has changed but change has not been applied.",
    ),
    (
        0x0401_0000,
        "GoodCascadeInitializationAcknowledged",
        "The value source supports cascade handshaking and the value has been Initialized based on an initialization request from a cascade secondary.",
    ),
    (
        0x0402_0000,
        "GoodCascadeInitializationRequest",
        "The value source supports cascade handshaking and is requesting initialization of a cascade primary.",
    ),
    (
        0x0403_0000,
        "GoodCascadeNotInvited",
        "The value source supports cascade handshaking, however, the source's current state does not allow for cascade.",
    ),
    (
        0x0404_0000,
        "GoodCascadeNotSelected",
        "The value source supports cascade handshaking, however, the source has not selected the corresponding cascade primary for use.",
    ),
    (0x0407_0000, "GoodFaultStateActive", "There is a fault state condition active in the value source."),
    (0x0408_0000, "GoodInitiateFaultState", "A fault state condition is being requested of the destination."),
    (
        0x0409_0000,
        "GoodCascade",
        "The value is accurate, and the signal source supports cascade handshaking.",
    ),
    (0x4000_0000, "Uncertain", "The operation was uncertain."),
    (
        0x406C_0000,
        "UncertainReferenceOutOfServer",
        "One of the references to follow in the relative path references to a node in the address space in another server.",
    ),
    (
        0x408F_0000,
        "UncertainNoCommunicationLastUsableValue",
        "Communication to the data source has failed. The variable value is the last value that had a good quality.",
    ),
    (0x4090_0000, "UncertainLastUsableValue", "Whatever was updating this value has stopped doing so."),
    (
        0x4091_0000,
        "UncertainSubstituteValue",
        "The value is an operational value that was manually overwritten.",
    ),
    (
        0x4092_0000,
        "UncertainInitialValue",
        "The value is an initial value for a variable that normally receives its value from another variable.",
    ),
    (0x4093_0000, "UncertainSensorNotAccurate", "The value is at one of the sensor limits."),
    (
        0x4094_0000,
        "UncertainEngineeringUnitsExceeded",
        "The value is outside of the range of values defined for this parameter.",
    ),
    (
        0x4095_0000,
        "UncertainSubNormal",
        "The data value is derived from multiple sources and has less than the required number of Good sources.",
    ),
    (
        0x40A4_0000,
        "UncertainDataSubNormal",
        "The aggregate value is derived from multiple values and has less than the required number of Good values.",
    ),
    (0x40BC_0000, "UncertainReferenceNotDeleted", "The server was not able to delete all target references."),
    (
        0x40C0_0000,
        "UncertainNotAllNodesAvailable",
        "The list of references may not be complete because the underlying system is not available.",
    ),
    (
        0x40DE_0000,
        "UncertainDominantValueChanged",
        "The related EngineeringUnit has been changed but the Variable Value is still provided based on the previous unit.",
    ),
    (
        0x40E2_0000,
        "UncertainDependentValueChanged",
        "A dependent value has been changed but the change has not been applied to the device. The quality of the dominant variable is uncertain.",
    ),
    (0x40F2_0000, "UncertainOverRange", "The value is over the allowed range."),
    (0x40F3_0000, "UncertainUnderRange", "The value is under the allowed range."),
    (
        0x4208_0000,
        "UncertainTransducerInManual",
        "The value may not be accurate because the transducer is in manual mode.",
    ),
    (0x4209_0000, "UncertainSimulatedValue", "The value is simulated."),
    (
        0x420A_0000,
        "UncertainSensorCalibration",
        "The value may not be accurate due to a sensor calibration fault.",
    ),
    (
        0x420F_0000,
        "UncertainConfigurationError",
        "The value may not be accurate due to a configuration issue.",
    ),
    (0x8000_0000, "Bad", "The operation failed."),
    (0x8001_0000, "BadUnexpectedError", "An unexpected error occurred."),
    (
        0x8002_0000,
        "BadInternalError",
        "An internal error occurred as a result of a programming or configuration error.",
    ),
    (0x8003_0000, "BadOutOfMemory", "Not enough memory to complete the operation."),
    (0x8004_0000, "BadResourceUnavailable", "An operating system resource is not available."),
    (0x8005_0000, "BadCommunicationError", "A low level communication error occurred."),
    (
        0x8006_0000,
        "BadEncodingError",
        "Encoding halted because of invalid data in the objects being serialized.",
    ),
    (0x8007_0000, "BadDecodingError", "Decoding halted because of invalid data in the stream."),
    (
        0x8008_0000,
        "BadEncodingLimitsExceeded",
        "The message encoding/decoding limits imposed by the stack have been exceeded.",
    ),
    (0x8009_0000, "BadUnknownResponse", "An unrecognized response was received from the server."),
    (0x800A_0000, "BadTimeout", "The operation timed out."),
    (0x800B_0000, "BadServiceUnsupported", "The server does not support the requested service."),
    (0x800C_0000, "BadShutdown", "The operation was cancelled because the application is shutting down."),
    (
        0x800D_0000,
        "BadServerNotConnected",
        "The operation could not complete because the client is not connected to the server.",
    ),
    (0x800E_0000, "BadServerHalted", "The server has stopped and cannot process any requests."),
    (0x800F_0000, "BadNothingToDo", "No processing could be done because there was nothing to do."),
    (
        0x8010_0000,
        "BadTooManyOperations",
        "The request could not be processed because it specified too many operations.",
    ),
    (
        0x8011_0000,
        "BadDataTypeIdUnknown",
        "The extension object cannot be (de)serialized because the data type id is not recognized.",
    ),
    (0x8012_0000, "BadCertificateInvalid", "The certificate provided as a parameter is not valid."),
    (0x8013_0000, "BadSecurityChecksFailed", "An error occurred verifying security."),
    (0x8014_0000, "BadCertificateTimeInvalid", "The certificate has expired or is not yet valid."),
    (
        0x8015_0000,
        "BadCertificateIssuerTimeInvalid",
        "An issuer certificate has expired or is not yet valid.",
    ),
    (
        0x8016_0000,
        "BadCertificateHostNameInvalid",
        "The HostName used to connect to a server does not match a HostName in the certificate.",
    ),
    (
        0x8017_0000,
        "BadCertificateUriInvalid",
        "The URI specified in the ApplicationDescription does not match the URI in the certificate.",
    ),
    (
        0x8018_0000,
        "BadCertificateUseNotAllowed",
        "The certificate may not be used for the requested operation.",
    ),
    (
        0x8019_0000,
        "BadCertificateIssuerUseNotAllowed",
        "The issuer certificate may not be used for the requested operation.",
    ),
    (0x801A_0000, "BadCertificateUntrusted", "The certificate is not trusted."),
    (
        0x801B_0000,
        "BadCertificateRevocationUnknown",
        "It was not possible to determine if the certificate has been revoked.",
    ),
    (
        0x801C_0000,
        "BadCertificateIssuerRevocationUnknown",
        "It was not possible to determine if the issuer certificate has been revoked.",
    ),
    (0x801D_0000, "BadCertificateRevoked", "The certificate has been revoked."),
    (0x801E_0000, "BadCertificateIssuerRevoked", "The issuer certificate has been revoked."),
    (0x801F_0000, "BadUserAccessDenied", "User does not have permission to perform the requested operation."),
    (0x8020_0000, "BadIdentityTokenInvalid", "The user identity token is not valid."),
    (
        0x8021_0000,
        "BadIdentityTokenRejected",
        "The user identity token is valid but the server has rejected it.",
    ),
    (0x8022_0000, "BadSecureChannelIdInvalid", "The specified secure channel is no longer valid."),
    (0x8023_0000, "BadInvalidTimestamp", "The timestamp is outside the range allowed by the server."),
    (
        0x8024_0000,
        "BadNonceInvalid",
        "The nonce does appear to be not a random value or it is not the correct length.",
    ),
    (0x8025_0000, "BadSessionIdInvalid", "The session id is not valid."),
    (0x8026_0000, "BadSessionClosed", "The session was closed by the client."),
    (
        0x8027_0000,
        "BadSessionNotActivated",
        "The session cannot be used because ActivateSession has not been called.",
    ),
    (0x8028_0000, "BadSubscriptionIdInvalid", "The subscription id is not valid."),
    (0x802A_0000, "BadRequestHeaderInvalid", "The header for the request is missing or invalid."),
    (0x802B_0000, "BadTimestampsToReturnInvalid", "The timestamps to return parameter is invalid."),
    (0x802C_0000, "BadRequestCancelledByClient", "The request was cancelled by the client."),
    (
        0x8031_0000,
        "BadNoCommunication",
        "Communication with the data source is defined, but not established, and there is no last known value available.",
    ),
    (
        0x8032_0000,
        "BadWaitingForInitialData",
        "Waiting for the server to obtain values from the underlying data source.",
    ),
    (
        0x8033_0000,
        "BadNodeIdInvalid",
        "The syntax the node id is not valid or refers to a node that is not valid for the operation.",
    ),
    (
        0x8034_0000,
        "BadNodeIdUnknown",
        "The node id refers to a node that does not exist in the server address space.",
    ),
    (0x8035_0000, "BadAttributeIdInvalid", "The attribute is not supported for the specified Node."),
    (0x8036_0000, "BadIndexRangeInvalid", "The syntax of the index range parameter is invalid."),
    (0x8037_0000, "BadIndexRangeNoData", "No data exists within the range of indexes specified."),
    (0x8038_0000, "BadDataEncodingInvalid", "The data encoding is invalid."),
    (
        0x8039_0000,
        "BadDataEncodingUnsupported",
        "The server does not support the requested data encoding for the node.",
    ),
    (0x803A_0000, "BadNotReadable", "The access level does not allow reading or subscribing to the Node."),
    (0x803B_0000, "BadNotWritable", "The access level does not allow writing to the Node."),
    (0x803C_0000, "BadOutOfRange", "The value was out of range."),
    (0x803D_0000, "BadNotSupported", "The requested operation is not supported."),
    (
        0x803E_0000,
        "BadNotFound",
        "A requested item was not found or a search operation ended without success.",
    ),
    (0x803F_0000, "BadObjectDeleted", "The object cannot be used because it has been deleted."),
    (0x8040_0000, "BadNotImplemented", "Requested operation is not implemented."),
    (0x8041_0000, "BadMonitoringModeInvalid", "The monitoring mode is invalid."),
    (
        0x8042_0000,
        "BadMonitoredItemIdInvalid",
        "The monitoring item id does not refer to a valid monitored item.",
    ),
    (0x8043_0000, "BadMonitoredItemFilterInvalid", "The monitored item filter parameter is not valid."),
    (
        0x8044_0000,
        "BadMonitoredItemFilterUnsupported",
        "The server does not support the requested monitored item filter.",
    ),
    (
        0x8045_0000,
        "BadFilterNotAllowed",
        "A monitoring filter cannot be used in combination with the attribute specified.",
    ),
    (0x8046_0000, "BadStructureMissing", "A mandatory structured parameter was missing or null."),
    (0x8047_0000, "BadEventFilterInvalid", "The event filter is not valid."),
    (0x8048_0000, "BadContentFilterInvalid", "The content filter is not valid."),
    (0x8049_0000, "BadFilterOperandInvalid", "The operand used in a content filter is not valid."),
    (0x804A_0000, "BadContinuationPointInvalid", "The continuation point provide is longer valid."),
    (
        0x804B_0000,
        "BadNoContinuationPoints",
        "The operation could not be processed because all continuation points have been allocated.",
    ),
    (
        0x804C_0000,
        "BadReferenceTypeIdInvalid",
        "The reference type id does not refer to a valid reference type node.",
    ),
    (0x804D_0000, "BadBrowseDirectionInvalid", "The browse direction is not valid."),
    (0x804E_0000, "BadNodeNotInView", "The node is not part of the view."),
    (0x804F_0000, "BadServerUriInvalid", "The ServerUri is not a valid URI."),
    (0x8050_0000, "BadServerNameMissing", "No ServerName was specified."),
    (0x8051_0000, "BadDiscoveryUrlMissing", "No DiscoveryUrl was specified."),
    (0x8052_0000, "BadSemaphoreFileMissing", "The semaphore file specified by the client is not valid."),
    (0x8053_0000, "BadRequestTypeInvalid", "The security token request type is not valid."),
    (
        0x8054_0000,
        "BadSecurityModeRejected",
        "The security mode does not meet the requirements set by the server.",
    ),
    (
        0x8055_0000,
        "BadSecurityPolicyRejected",
        "The security policy does not meet the requirements set by the server.",
    ),
    (0x8056_0000, "BadTooManySessions", "The server has reached its maximum number of sessions."),
    (0x8057_0000, "BadUserSignatureInvalid", "The user token signature is missing or invalid."),
    (
        0x8058_0000,
        "BadApplicationSignatureInvalid",
        "The signature generated with the client certificate is missing or invalid.",
    ),
    (
        0x8059_0000,
        "BadNoValidCertificates",
        "The client did not provide at least one software certificate that is valid and meets the profile requirements for the server.",
    ),
    (
        0x805A_0000,
        "BadRequestCancelledByRequest",
        "The request was cancelled by the client with the Cancel service.",
    ),
    (0x805B_0000, "BadParentNodeIdInvalid", "The parent node id does not to refer to a valid node."),
    (
        0x805C_0000,
        "BadReferenceNotAllowed",
        "The reference could not be created because it violates constraints imposed by the data model.",
    ),
    (
        0x805D_0000,
        "BadNodeIdRejected",
        "The requested node id was reject because it was either invalid or server does not allow node ids to be specified by the client.",
    ),
    (0x805E_0000, "BadNodeIdExists", "The requested node id is already used by another node."),
    (0x805F_0000, "BadNodeClassInvalid", "The node class is not valid."),
    (0x8060_0000, "BadBrowseNameInvalid", "The browse name is invalid."),
    (
        0x8061_0000,
        "BadBrowseNameDuplicated",
        "The browse name is not unique among nodes that share the same relationship with the parent.",
    ),
    (0x8062_0000, "BadNodeAttributesInvalid", "The node attributes are not valid for the node class."),
    (
        0x8063_0000,
        "BadTypeDefinitionInvalid",
        "The type definition node id does not reference an appropriate type node.",
    ),
    (0x8064_0000, "BadSourceNodeIdInvalid", "The source node id does not reference a valid node."),
    (0x8065_0000, "BadTargetNodeIdInvalid", "The target node id does not reference a valid node."),
    (
        0x8066_0000,
        "BadDuplicateReferenceNotAllowed",
        "The reference type between the nodes is already defined.",
    ),
    (
        0x8067_0000,
        "BadInvalidSelfReference",
        "The server does not allow this type of self reference on this node.",
    ),
    (
        0x8068_0000,
        "BadReferenceLocalOnly",
        "The reference type is not valid for a reference to a remote server.",
    ),
    (0x8069_0000, "BadNoDeleteRights", "The server will not allow the node to be deleted."),
    (0x806A_0000, "BadServerIndexInvalid", "The server index is not valid."),
    (0x806B_0000, "BadViewIdUnknown", "The view id does not refer to a valid view node."),
    (0x806D_0000, "BadTooManyMatches", "The requested operation has too many matches to return."),
    (0x806E_0000, "BadQueryTooComplex", "The requested operation requires too many resources in the server."),
    (0x806F_0000, "BadNoMatch", "The requested operation has no match to return."),
    (0x8070_0000, "BadMaxAgeInvalid", "The max age parameter is invalid."),
    (0x8071_0000, "BadHistoryOperationInvalid", "The history details parameter is not valid."),
    (0x8072_0000, "BadHistoryOperationUnsupported", "The server does not support the requested operation."),
    (
        0x8073_0000,
        "BadWriteNotSupported",
        "The server does not support writing the combination of value, status and timestamps provided.",
    ),
    (
        0x8074_0000,
        "BadTypeMismatch",
        "The value supplied for the attribute is not of the same type as the attribute's value.",
    ),
    (0x8075_0000, "BadMethodInvalid", "The method id does not refer to a method for the specified object."),
    (
        0x8076_0000,
        "BadArgumentsMissing",
        "The client did not specify all of the input arguments for the method.",
    ),
    (0x8077_0000, "BadTooManySubscriptions", "The server has reached its maximum number of subscriptions."),
    (
        0x8078_0000,
        "BadTooManyPublishRequests",
        "The server has reached the maximum number of queued publish requests.",
    ),
    (0x8079_0000, "BadNoSubscription", "There is no subscription available for this session."),
    (0x807A_0000, "BadSequenceNumberUnknown", "The sequence number is unknown to the server."),
    (0x807B_0000, "BadMessageNotAvailable", "The requested notification message is no longer available."),
    (
        0x807C_0000,
        "BadInsufficientClientProfile",
        "The client of the current session does not support one or more Profiles that are necessary for the subscription.",
    ),
    (0x807D_0000, "BadTcpServerTooBusy", "The server cannot process the request because it is too busy."),
    (0x807E_0000, "BadTcpMessageTypeInvalid", "The type of the message specified in the header invalid."),
    (
        0x807F_0000,
        "BadTcpSecureChannelUnknown",
        "The SecureChannelId and/or TokenId are not currently in use.",
    ),
    (
        0x8080_0000,
        "BadTcpMessageTooLarge",
        "The size of the message chunk specified in the header is too large.",
    ),
    (0x8081_0000, "BadTcpNotEnoughResources", "There are not enough resources to process the request."),
    (0x8082_0000, "BadTcpInternalError", "An internal error occurred."),
    (0x8083_0000, "BadTcpEndpointUrlInvalid", "The server does not recognize the QueryString specified."),
    (
        0x8084_0000,
        "BadRequestInterrupted",
        "The request could not be sent because of a network interruption.",
    ),
    (0x8085_0000, "BadRequestTimeout", "Timeout occurred while processing the request."),
    (0x8086_0000, "BadSecureChannelClosed", "The secure channel has been closed."),
    (0x8087_0000, "BadSecureChannelTokenUnknown", "The token has expired or is not recognized."),
    (0x8088_0000, "BadSequenceNumberInvalid", "The sequence number is not valid."),
    (
        0x8089_0000,
        "BadConfigurationError",
        "There is a problem with the configuration that affects the usefulness of the value.",
    ),
    (
        0x808A_0000,
        "BadNotConnected",
        "The variable should receive its value from another variable, but has never been configured to do so.",
    ),
    (
        0x808B_0000,
        "BadDeviceFailure",
        "There has been a failure in the device/data source that generates the value that has affected the value.",
    ),
    (
        0x808C_0000,
        "BadSensorFailure",
        "There has been a failure in the sensor from which the value is derived by the device/data source.",
    ),
    (0x808D_0000, "BadOutOfService", "The source of the data is not operational."),
    (0x808E_0000, "BadDeadbandFilterInvalid", "The deadband filter is not valid."),
    (
        0x8097_0000,
        "BadRefreshInProgress",
        "This Condition refresh failed, a Condition refresh operation is already in progress.",
    ),
    (0x8098_0000, "BadConditionAlreadyDisabled", "This condition has already been disabled."),
    (0x8099_0000, "BadConditionDisabled", "Property not available, this condition is disabled."),
    (0x809A_0000, "BadEventIdUnknown", "The specified event id is not recognized."),
    (0x809B_0000, "BadNoData", "No data exists for the requested time range or event filter."),
    (0x809D_0000, "BadDataLost", "Data is missing due to collection started/stopped/lost."),
    (
        0x809E_0000,
        "BadDataUnavailable",
        "Expected data is unavailable for the requested time range due to an un-mounted volume, an off-line archive or tape, or similar reason for temporary unavailability.",
    ),
    (
        0x809F_0000,
        "BadEntryExists",
        "The data or event was not successfully inserted because a matching entry exists.",
    ),
    (
        0x80A0_0000,
        "BadNoEntryExists",
        "The data or event was not successfully updated because no matching entry exists.",
    ),
    (
        0x80A1_0000,
        "BadTimestampNotSupported",
        "The Client requested history using a TimestampsToReturn the Server does not support.",
    ),
    (0x80AB_0000, "BadInvalidArgument", "One or more arguments are invalid."),
    (0x80AC_0000, "BadConnectionRejected", "Could not establish a network connection to remote server."),
    (0x80AD_0000, "BadDisconnect", "The server has disconnected from the client."),
    (0x80AE_0000, "BadConnectionClosed", "The network connection has been closed."),
    (
        0x80AF_0000,
        "BadInvalidState",
        "The operation cannot be completed because the object is closed, uninitialized or in some other invalid state.",
    ),
    (0x80B0_0000, "BadEndOfStream", "Cannot move beyond end of the stream."),
    (
        0x80B1_0000,
        "BadNoDataAvailable",
        "No data is currently available for reading from a non-blocking stream.",
    ),
    (0x80B2_0000, "BadWaitingForResponse", "The asynchronous operation is waiting for a response."),
    (0x80B3_0000, "BadOperationAbandoned", "The asynchronous operation was abandoned by the caller."),
    (
        0x80B4_0000,
        "BadExpectedStreamToBlock",
        "The stream did not return all data requested (possibly because it is a non-blocking stream).",
    ),
    (0x80B5_0000, "BadWouldBlock", "Non blocking behaviour is required and the operation would block."),
    (0x80B6_0000, "BadSyntaxError", "A value had an invalid syntax."),
    (
        0x80B7_0000,
        "BadMaxConnectionsReached",
        "The operation could not be finished because all available connections are in use.",
    ),
    (0x80B8_0000, "BadRequestTooLarge", "The request message size exceeds limits set by the server."),
    (
        0x80B9_0000,
        "BadResponseTooLarge",
        "The response message size exceeds limits set by the client or server.",
    ),
    (0x80BB_0000, "BadEventNotAcknowledgeable", "The event cannot be acknowledged."),
    (0x80BD_0000, "BadInvalidTimestampArgument", "The defined timestamp to return was invalid."),
    (
        0x80BE_0000,
        "BadProtocolVersionUnsupported",
        "The applications do not have compatible protocol versions.",
    ),
    (0x80BF_0000, "BadStateNotActive", "The sub-state machine is not currently active."),
    (0x80C1_0000, "BadFilterOperatorInvalid", "An unrecognized operator was provided in a filter."),
    (
        0x80C2_0000,
        "BadFilterOperatorUnsupported",
        "A valid operator was provided, but the server does not provide support for this filter operator.",
    ),
    (
        0x80C3_0000,
        "BadFilterOperandCountMismatch",
        "The number of operands provided for the filter operator was less then expected for the operand provided.",
    ),
    (
        0x80C4_0000,
        "BadFilterElementInvalid",
        "The referenced element is not a valid element in the content filter.",
    ),
    (0x80C5_0000, "BadFilterLiteralInvalid", "The referenced literal is not a valid value."),
    (
        0x80C6_0000,
        "BadIdentityChangeNotSupported",
        "The server does not support changing the user identity assigned to the session.",
    ),
    (0x80C8_0000, "BadNotTypeDefinition", "The provided Nodeid was not a type definition nodeid."),
    (0x80C9_0000, "BadViewTimestampInvalid", "The view timestamp is not available or not supported."),
    (0x80CA_0000, "BadViewParameterMismatch", "The view parameters are not consistent with each other."),
    (0x80CB_0000, "BadViewVersionInvalid", "The view version is not available or not supported."),
    (0x80CC_0000, "BadConditionAlreadyEnabled", "This condition has already been enabled."),
    (0x80CD_0000, "BadDialogNotActive", "The dialog condition is not active."),
    (0x80CE_0000, "BadDialogResponseInvalid", "The response is not valid for the dialog."),
    (0x80CF_0000, "BadConditionBranchAlreadyAcked", "The condition branch has already been acknowledged."),
    (0x80D0_0000, "BadConditionBranchAlreadyConfirmed", "The condition branch has already been confirmed."),
    (0x80D1_0000, "BadConditionAlreadyShelved", "The condition has already been shelved."),
    (0x80D2_0000, "BadConditionNotShelved", "The condition is not currently shelved."),
    (0x80D3_0000, "BadShelvingTimeOutOfRange", "The shelving time not within an acceptable range."),
    (
        0x80D4_0000,
        "BadAggregateListMismatch",
        "The requested number of Aggregates does not match the requested number of NodeIds.",
    ),
    (0x80D5_0000, "BadAggregateNotSupported", "The requested Aggregate is not support by the server."),
    (
        0x80D6_0000,
        "BadAggregateInvalidInputs",
        "The aggregate value could not be derived due to invalid data inputs.",
    ),
    (0x80D7_0000, "BadBoundNotFound", "No data found to provide upper or lower bound value."),
    (0x80D8_0000, "BadBoundNotSupported", "The server cannot retrieve a bound for the variable."),
    (
        0x80DA_0000,
        "BadAggregateConfigurationRejected",
        "The aggregate configuration is not valid for specified node.",
    ),
    (
        0x80DB_0000,
        "BadTooManyMonitoredItems",
        "The request could not be processed because there are too many monitored items in the subscription.",
    ),
    (
        0x80E1_0000,
        "BadDominantValueChanged",
        "The related EngineeringUnit has been changed but this change has not been applied to the device. The Variable Value is still dependent on the previous unit but its status is currently Bad.",
    ),
    (
        0x80E3_0000,
        "BadDependentValueChanged",
        "A dependent value has been changed but the change has not been applied to the device. The quality of the dominant variable is Bad.",
    ),
    (
        0x80E4_0000,
        "BadRequestNotAllowed",
        "The request was rejected by the server because it did not meet the criteria set by the server.",
    ),
    (0x80E5_0000, "BadTooManyArguments", "Too many arguments were provided."),
    (
        0x80E6_0000,
        "BadSecurityModeInsufficient",
        "The operation is not permitted over the current secure channel.",
    ),
    (0x80E7_0000, "BadDataSetIdInvalid", "The DataSet specified for the DataSetWriter creation is invalid."),
    (
        0x80E8_0000,
        "BadTransactionPending",
        "The operation is not allowed because a transaction is in progress.",
    ),
    (
        0x80E9_0000,
        "BadLocked",
        "The requested operation is not allowed, because the Node is locked by a different application.",
    ),
    (0x80EA_0000, "BadIndexRangeDataMismatch", "The written data does not match the IndexRange specified."),
    (
        0x80EC_0000,
        "BadRequiresLock",
        "The requested operation is not allowed, because the Node is not locked by the application.",
    ),
    (0x80ED_0000, "BadLocaleNotSupported", "The locale in the requested write operation is not supported."),
    (
        0x80EE_0000,
        "BadServerTooBusy",
        "The Server does not have the resources to process the request at this time.",
    ),
    (0x80F0_0000, "BadNoValue", "The variable has no default value and no initial value."),
    (
        0x80F1_0000,
        "BadTransactionFailed",
        "The operation failed and all changes which were part of the transaction are rolled back.",
    ),
    (0x810D_0000, "BadCertificateChainIncomplete", "The certificate chain is incomplete."),
    (
        0x810E_0000,
        "BadLicenseExpired",
        "The server requires a license to operate in general or to perform a service or operation, but existing license is expired.",
    ),
    (
        0x810F_0000,
        "BadLicenseLimitsExceeded",
        "The server has limits on number of allowed operations / objects, based on installed licenses, and these limits where exceeded.",
    ),
    (
        0x8110_0000,
        "BadLicenseNotAvailable",
        "The server does not have a license which is required to operate in general or to perform a service or operation.",
    ),
    (0x8111_0000, "BadNotExecutable", "The executable attribute does not allow the execution of the method."),
    (0x8112_0000, "BadNumericOverflow", "The number was not accepted because of a numeric overflow."),
    (0x8113_0000, "BadRequestNotComplete", "The request has not been processed by the server yet."),
    (
        0x8114_0000,
        "BadCertificatePolicyCheckFailed",
        "The certificate does not meet the requirements of the security policy.",
    ),
    (0x8115_0000, "BadAlreadyExists", "An equivalent rule already exists."),
    (
        0x8119_0000,
        "BadEdited_OutOfRange",
        "It is delivered with a Variable value when Variable has changed but the value is not legal.",
    ),
    (
        0x811A_0000,
        "BadInitialValue_OutOfRange",
        "It is delivered with a Variable value when a source Variable has changed but the value is not legal.",
    ),
    (
        0x811B_0000,
        "BadOutOfRange_DominantValueChanged",
        "It is delivered with a dependent Variable value when a dominant Variable has changed and the value is not legal.",
    ),
    (
        0x811C_0000,
        "BadEdited_OutOfRange_DominantValueChanged",
        "It is delivered with a dependent Variable value when a dominant Variable has changed, the value is not legal and the change has not been applied.",
    ),
    (
        0x811D_0000,
        "BadOutOfRange_DominantValueChanged_DependentValueChanged",
        "It is delivered with a dependent Variable value when a dominant or dependent Variable has changed and the value is not legal.",
    ),
    (
        0x811E_0000,
        "BadEdited_OutOfRange_DominantValueChanged_DependentValueChanged",
        "It is delivered with a dependent Variable value when a dominant or dependent Variable has changed, the value is not legal and the change has not been applied.",
    ),
    (0x811F_0000, "BadTicketRequired", "The device identity needs a ticket before it can be accepted."),
    (0x8120_0000, "BadTicketInvalid", "The device identity needs a ticket before it can be accepted."),
];
