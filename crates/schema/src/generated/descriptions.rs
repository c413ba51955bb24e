// Written by `cargo xtask codegen` from the OPC UA 1.05.07 NodeSet. Do not edit.

//! Descriptions of the data types of namespace 0, sorted by DataType id.

use taktwerk_types::BuiltInType;

describe_structures! {
    "RolePermissionType" 96 128 Plain ["RoleId" 17, "Permissions" 94];
    "StructureDefinition" 99 122 Plain ["DefaultEncodingId" 17, "BaseDataType" 17, "StructureType" 98,
        "Fields" 101 array];
    "EnumDefinition" 100 123 Plain ["Fields" 102 array];
    "StructureField" 101 14844 Plain ["Name" 12, "Description" 21, "DataType" 17, "ValueRank" 6,
        "ArrayDimensions" 7 array, "MaxStringLength" 7, "IsOptional" 1];
    "EnumField" 102 14845 Plain ["Value" 8, "DisplayName" 21, "Description" 21, "Name" 12];
    "Argument" 296 298 Plain ["Name" 12, "DataType" 17, "ValueRank" 6, "ArrayDimensions" 7 array,
        "Description" 21];
    "StatusResult" 299 301 Plain ["StatusCode" 19, "DiagnosticInfo" 25];
    "UserTokenPolicy" 304 306 Plain ["PolicyId" 12, "TokenType" 303, "IssuedTokenType" 12,
        "IssuerEndpointUrl" 12, "SecurityPolicyUri" 12];
    "ApplicationDescription" 308 310 Plain ["ApplicationUri" 12, "ProductUri" 12, "ApplicationName" 21,
        "ApplicationType" 307, "GatewayServerUri" 12, "DiscoveryProfileUri" 12, "DiscoveryUrls" 12 array];
    "EndpointDescription" 312 314 Plain ["EndpointUrl" 12, "Server" 308, "ServerCertificate" 311,
        "SecurityMode" 302, "SecurityPolicyUri" 12, "UserIdentityTokens" 304 array,
        "TransportProfileUri" 12, "SecurityLevel" 3];
    "AnonymousIdentityToken" 319 321 Plain ["PolicyId" 12];
    "UserNameIdentityToken" 322 324 Plain ["PolicyId" 12, "UserName" 12, "Password" 15,
        "EncryptionAlgorithm" 12];
    "X509IdentityToken" 325 327 Plain ["PolicyId" 12, "CertificateData" 15];
    "EndpointConfiguration" 331 333 Plain ["OperationTimeout" 6, "UseBinaryEncoding" 1,
        "MaxStringLength" 6, "MaxByteStringLength" 6, "MaxArrayLength" 6, "MaxMessageSize" 6,
        "MaxBufferSize" 6, "ChannelLifetime" 6, "SecurityTokenLifetime" 6];
    "BuildInfo" 338 340 Plain ["ProductUri" 12, "ManufacturerName" 12, "ProductName" 12,
        "SoftwareVersion" 12, "BuildNumber" 12, "BuildDate" 294];
    "SignedSoftwareCertificate" 344 346 Plain ["CertificateData" 15, "Signature" 15];
    "NodeAttributes" 349 351 Plain ["SpecifiedAttributes" 7, "DisplayName" 21, "Description" 21,
        "WriteMask" 7, "UserWriteMask" 7];
    "ObjectAttributes" 352 354 Plain ["SpecifiedAttributes" 7, "DisplayName" 21, "Description" 21,
        "WriteMask" 7, "UserWriteMask" 7, "EventNotifier" 3];
    "VariableAttributes" 355 357 Plain ["SpecifiedAttributes" 7, "DisplayName" 21, "Description" 21,
        "WriteMask" 7, "UserWriteMask" 7, "Value" 24, "DataType" 17, "ValueRank" 6,
        "ArrayDimensions" 7 array, "AccessLevel" 3, "UserAccessLevel" 3, "MinimumSamplingInterval" 11,
        "Historizing" 1];
    "MethodAttributes" 358 360 Plain ["SpecifiedAttributes" 7, "DisplayName" 21, "Description" 21,
        "WriteMask" 7, "UserWriteMask" 7, "Executable" 1, "UserExecutable" 1];
    "ObjectTypeAttributes" 361 363 Plain ["SpecifiedAttributes" 7, "DisplayName" 21, "Description" 21,
        "WriteMask" 7, "UserWriteMask" 7, "IsAbstract" 1];
    "VariableTypeAttributes" 364 366 Plain ["SpecifiedAttributes" 7, "DisplayName" 21, "Description" 21,
        "WriteMask" 7, "UserWriteMask" 7, "Value" 24, "DataType" 17, "ValueRank" 6,
        "ArrayDimensions" 7 array, "IsAbstract" 1];
    "ReferenceTypeAttributes" 367 369 Plain ["SpecifiedAttributes" 7, "DisplayName" 21, "Description" 21,
        "WriteMask" 7, "UserWriteMask" 7, "IsAbstract" 1, "Symmetric" 1, "InverseName" 21];
    "DataTypeAttributes" 370 372 Plain ["SpecifiedAttributes" 7, "DisplayName" 21, "Description" 21,
        "WriteMask" 7, "UserWriteMask" 7, "IsAbstract" 1];
    "ViewAttributes" 373 375 Plain ["SpecifiedAttributes" 7, "DisplayName" 21, "Description" 21,
        "WriteMask" 7, "UserWriteMask" 7, "ContainsNoLoops" 1, "EventNotifier" 3];
    "AddNodesItem" 376 378 Plain ["ParentNodeId" 18, "ReferenceTypeId" 17, "RequestedNewNodeId" 18,
        "BrowseName" 20, "NodeClass" 257, "NodeAttributes" 22, "TypeDefinition" 18];
    "AddReferencesItem" 379 381 Plain ["SourceNodeId" 17, "ReferenceTypeId" 17, "IsForward" 1,
        "TargetServerUri" 12, "TargetNodeId" 18, "TargetNodeClass" 257];
    "DeleteNodesItem" 382 384 Plain ["NodeId" 17, "DeleteTargetReferences" 1];
    "DeleteReferencesItem" 385 387 Plain ["SourceNodeId" 17, "ReferenceTypeId" 17, "IsForward" 1,
        "TargetNodeId" 18, "DeleteBidirectional" 1];
    "RequestHeader" 389 391 Plain ["AuthenticationToken" 17, "Timestamp" 13, "RequestHandle" 7,
        "ReturnDiagnostics" 7, "AuditEntryId" 12, "TimeoutHint" 7, "AdditionalHeader" 22];
    "ResponseHeader" 392 394 Plain ["Timestamp" 13, "RequestHandle" 7, "ServiceResult" 19,
        "ServiceDiagnostics" 25, "StringTable" 12 array, "AdditionalHeader" 22];
    "ServiceFault" 395 397 Plain ["ResponseHeader" 392];
    "FindServersRequest" 420 422 Plain ["RequestHeader" 389, "EndpointUrl" 12, "LocaleIds" 12 array,
        "ServerUris" 12 array];
    "FindServersResponse" 423 425 Plain ["ResponseHeader" 392, "Servers" 308 array];
    "GetEndpointsRequest" 426 428 Plain ["RequestHeader" 389, "EndpointUrl" 12, "LocaleIds" 12 array,
        "ProfileUris" 12 array];
    "GetEndpointsResponse" 429 431 Plain ["ResponseHeader" 392, "Endpoints" 312 array];
    "RegisteredServer" 432 434 Plain ["ServerUri" 12, "ProductUri" 12, "ServerNames" 21 array,
        "ServerType" 307, "GatewayServerUri" 12, "DiscoveryUrls" 12 array, "SemaphoreFilePath" 12,
        "IsOnline" 1];
    "RegisterServerRequest" 435 437 Plain ["RequestHeader" 389, "Server" 432];
    "RegisterServerResponse" 438 440 Plain ["ResponseHeader" 392];
    "ChannelSecurityToken" 441 443 Plain ["ChannelId" 7, "TokenId" 7, "CreatedAt" 13, "RevisedLifetime" 7];
    "OpenSecureChannelRequest" 444 446 Plain ["RequestHeader" 389, "ClientProtocolVersion" 7,
        "RequestType" 315, "SecurityMode" 302, "ClientNonce" 15, "RequestedLifetime" 7];
    "OpenSecureChannelResponse" 447 449 Plain ["ResponseHeader" 392, "ServerProtocolVersion" 7,
        "SecurityToken" 441, "ServerNonce" 15];
    "CloseSecureChannelRequest" 450 452 Plain ["RequestHeader" 389];
    "CloseSecureChannelResponse" 453 455 Plain ["ResponseHeader" 392];
    "SignatureData" 456 458 Plain ["Algorithm" 12, "Signature" 15];
    "CreateSessionRequest" 459 461 Plain ["RequestHeader" 389, "ClientDescription" 308, "ServerUri" 12,
        "EndpointUrl" 12, "SessionName" 12, "ClientNonce" 15, "ClientCertificate" 15,
        "RequestedSessionTimeout" 11, "MaxResponseMessageSize" 7];
    "CreateSessionResponse" 462 464 Plain ["ResponseHeader" 392, "SessionId" 17,
        "AuthenticationToken" 17, "RevisedSessionTimeout" 11, "ServerNonce" 15, "ServerCertificate" 15,
        "ServerEndpoints" 312 array, "ServerSoftwareCertificates" 344 array, "ServerSignature" 456,
        "MaxRequestMessageSize" 7];
    "ActivateSessionRequest" 465 467 Plain ["RequestHeader" 389, "ClientSignature" 456,
        "ClientSoftwareCertificates" 344 array, "LocaleIds" 12 array, "UserIdentityToken" 22,
        "UserTokenSignature" 456];
    "ActivateSessionResponse" 468 470 Plain ["ResponseHeader" 392, "ServerNonce" 15, "Results" 19 array,
        "DiagnosticInfos" 25 array];
    "CloseSessionRequest" 471 473 Plain ["RequestHeader" 389, "DeleteSubscriptions" 1];
    "CloseSessionResponse" 474 476 Plain ["ResponseHeader" 392];
    "CancelRequest" 477 479 Plain ["RequestHeader" 389, "RequestHandle" 7];
    "CancelResponse" 480 482 Plain ["ResponseHeader" 392, "CancelCount" 7];
    "AddNodesResult" 483 485 Plain ["StatusCode" 19, "AddedNodeId" 17];
    "AddNodesRequest" 486 488 Plain ["RequestHeader" 389, "NodesToAdd" 376 array];
    "AddNodesResponse" 489 491 Plain ["ResponseHeader" 392, "Results" 483 array,
        "DiagnosticInfos" 25 array];
    "AddReferencesRequest" 492 494 Plain ["RequestHeader" 389, "ReferencesToAdd" 379 array];
    "AddReferencesResponse" 495 497 Plain ["ResponseHeader" 392, "Results" 19 array,
        "DiagnosticInfos" 25 array];
    "DeleteNodesRequest" 498 500 Plain ["RequestHeader" 389, "NodesToDelete" 382 array];
    "DeleteNodesResponse" 501 503 Plain ["ResponseHeader" 392, "Results" 19 array,
        "DiagnosticInfos" 25 array];
    "DeleteReferencesRequest" 504 506 Plain ["RequestHeader" 389, "ReferencesToDelete" 385 array];
    "DeleteReferencesResponse" 507 509 Plain ["ResponseHeader" 392, "Results" 19 array,
        "DiagnosticInfos" 25 array];
    "ViewDescription" 511 513 Plain ["ViewId" 17, "Timestamp" 13, "ViewVersion" 7];
    "BrowseDescription" 514 516 Plain ["NodeId" 17, "BrowseDirection" 510, "ReferenceTypeId" 17,
        "IncludeSubtypes" 1, "NodeClassMask" 7, "ResultMask" 7];
    "ReferenceDescription" 518 520 Plain ["ReferenceTypeId" 17, "IsForward" 1, "NodeId" 18,
        "BrowseName" 20, "DisplayName" 21, "NodeClass" 257, "TypeDefinition" 18];
    "BrowseResult" 522 524 Plain ["StatusCode" 19, "ContinuationPoint" 15, "References" 518 array];
    "BrowseRequest" 525 527 Plain ["RequestHeader" 389, "View" 511, "RequestedMaxReferencesPerNode" 7,
        "NodesToBrowse" 514 array];
    "BrowseResponse" 528 530 Plain ["ResponseHeader" 392, "Results" 522 array, "DiagnosticInfos" 25 array];
    "BrowseNextRequest" 531 533 Plain ["RequestHeader" 389, "ReleaseContinuationPoints" 1,
        "ContinuationPoints" 15 array];
    "BrowseNextResponse" 534 536 Plain ["ResponseHeader" 392, "Results" 522 array,
        "DiagnosticInfos" 25 array];
    "RelativePathElement" 537 539 Plain ["ReferenceTypeId" 17, "IsInverse" 1, "IncludeSubtypes" 1,
        "TargetName" 20];
    "RelativePath" 540 542 Plain ["Elements" 537 array];
    "BrowsePath" 543 545 Plain ["StartingNode" 17, "RelativePath" 540];
    "BrowsePathTarget" 546 548 Plain ["TargetId" 18, "RemainingPathIndex" 7];
    "BrowsePathResult" 549 551 Plain ["StatusCode" 19, "Targets" 546 array];
    "TranslateBrowsePathsToNodeIdsRequest" 552 554 Plain ["RequestHeader" 389, "BrowsePaths" 543 array];
    "TranslateBrowsePathsToNodeIdsResponse" 555 557 Plain ["ResponseHeader" 392, "Results" 549 array,
        "DiagnosticInfos" 25 array];
    "RegisterNodesRequest" 558 560 Plain ["RequestHeader" 389, "NodesToRegister" 17 array];
    "RegisterNodesResponse" 561 563 Plain ["ResponseHeader" 392, "RegisteredNodeIds" 17 array];
    "UnregisterNodesRequest" 564 566 Plain ["RequestHeader" 389, "NodesToUnregister" 17 array];
    "UnregisterNodesResponse" 567 569 Plain ["ResponseHeader" 392];
    "QueryDataDescription" 570 572 Plain ["RelativePath" 540, "AttributeId" 7, "IndexRange" 12];
    "NodeTypeDescription" 573 575 Plain ["TypeDefinitionNode" 18, "IncludeSubTypes" 1,
        "DataToReturn" 570 array];
    "QueryDataSet" 577 579 Plain ["NodeId" 18, "TypeDefinitionNode" 18, "Values" 24 array];
    "NodeReference" 580 582 Plain ["NodeId" 17, "ReferenceTypeId" 17, "IsForward" 1,
        "ReferencedNodeIds" 17 array];
    "ContentFilterElement" 583 585 Plain ["FilterOperator" 576, "FilterOperands" 22 array];
    "ContentFilter" 586 588 Plain ["Elements" 583 array];
    "ElementOperand" 592 594 Plain ["Index" 7];
    "LiteralOperand" 595 597 Plain ["Value" 24];
    "AttributeOperand" 598 600 Plain ["NodeId" 17, "Alias" 12, "BrowsePath" 540, "AttributeId" 288,
        "IndexRange" 291];
    "SimpleAttributeOperand" 601 603 Plain ["TypeDefinitionId" 17, "BrowsePath" 20 array,
        "AttributeId" 288, "IndexRange" 291];
    "ContentFilterElementResult" 604 606 Plain ["StatusCode" 19, "OperandStatusCodes" 19 array,
        "OperandDiagnosticInfos" 25 array];
    "ContentFilterResult" 607 609 Plain ["ElementResults" 604 array, "ElementDiagnosticInfos" 25 array];
    "ParsingResult" 610 612 Plain ["StatusCode" 19, "DataStatusCodes" 19 array,
        "DataDiagnosticInfos" 25 array];
    "QueryFirstRequest" 613 615 Plain ["RequestHeader" 389, "View" 511, "NodeTypes" 573 array,
        "Filter" 586, "MaxDataSetsToReturn" 7, "MaxReferencesToReturn" 7];
    "QueryFirstResponse" 616 618 Plain ["ResponseHeader" 392, "QueryDataSets" 577 array,
        "ContinuationPoint" 15, "ParsingResults" 610 array, "DiagnosticInfos" 25 array, "FilterResult" 607];
    "QueryNextRequest" 619 621 Plain ["RequestHeader" 389, "ReleaseContinuationPoint" 1,
        "ContinuationPoint" 15];
    "QueryNextResponse" 622 624 Plain ["ResponseHeader" 392, "QueryDataSets" 577 array,
        "RevisedContinuationPoint" 15];
    "ReadValueId" 626 628 Plain ["NodeId" 17, "AttributeId" 7, "IndexRange" 12, "DataEncoding" 20];
    "ReadRequest" 629 631 Plain ["RequestHeader" 389, "MaxAge" 11, "TimestampsToReturn" 625,
        "NodesToRead" 626 array];
    "ReadResponse" 632 634 Plain ["ResponseHeader" 392, "Results" 23 array, "DiagnosticInfos" 25 array];
    "HistoryReadValueId" 635 637 Plain ["NodeId" 17, "IndexRange" 12, "DataEncoding" 20,
        "ContinuationPoint" 15];
    "HistoryReadResult" 638 640 Plain ["StatusCode" 19, "ContinuationPoint" 15, "HistoryData" 22];
    "HistoryReadDetails" 641 643 Plain [];
    "ReadEventDetails" 644 646 Plain ["NumValuesPerNode" 7, "StartTime" 13, "EndTime" 13, "Filter" 725];
    "ReadRawModifiedDetails" 647 649 Plain ["IsReadModified" 1, "StartTime" 13, "EndTime" 13,
        "NumValuesPerNode" 7, "ReturnBounds" 1];
    "ReadProcessedDetails" 650 652 Plain ["StartTime" 13, "EndTime" 13, "ProcessingInterval" 11,
        "AggregateType" 17 array, "AggregateConfiguration" 948];
    "ReadAtTimeDetails" 653 655 Plain ["ReqTimes" 13 array, "UseSimpleBounds" 1];
    "HistoryData" 656 658 Plain ["DataValues" 23 array];
    "HistoryEvent" 659 661 Plain ["Events" 920 array];
    "HistoryReadRequest" 662 664 Plain ["RequestHeader" 389, "HistoryReadDetails" 22,
        "TimestampsToReturn" 625, "ReleaseContinuationPoints" 1, "NodesToRead" 635 array];
    "HistoryReadResponse" 665 667 Plain ["ResponseHeader" 392, "Results" 638 array,
        "DiagnosticInfos" 25 array];
    "WriteValue" 668 670 Plain ["NodeId" 17, "AttributeId" 7, "IndexRange" 12, "Value" 23];
    "WriteRequest" 671 673 Plain ["RequestHeader" 389, "NodesToWrite" 668 array];
    "WriteResponse" 674 676 Plain ["ResponseHeader" 392, "Results" 19 array, "DiagnosticInfos" 25 array];
    "HistoryUpdateDetails" 677 679 Plain [];
    "UpdateDataDetails" 680 682 Plain ["NodeId" 17, "PerformInsertReplace" 11293, "UpdateValues" 23 array];
    "UpdateEventDetails" 683 685 Plain ["NodeId" 17, "PerformInsertReplace" 11293, "Filter" 725,
        "EventData" 920 array];
    "DeleteRawModifiedDetails" 686 688 Plain ["NodeId" 17, "IsDeleteModified" 1, "StartTime" 13,
        "EndTime" 13];
    "DeleteAtTimeDetails" 689 691 Plain ["NodeId" 17, "ReqTimes" 13 array];
    "DeleteEventDetails" 692 694 Plain ["NodeId" 17, "EventIds" 15 array];
    "HistoryUpdateResult" 695 697 Plain ["StatusCode" 19, "OperationResults" 19 array,
        "DiagnosticInfos" 25 array];
    "HistoryUpdateRequest" 698 700 Plain ["RequestHeader" 389, "HistoryUpdateDetails" 22 array];
    "HistoryUpdateResponse" 701 703 Plain ["ResponseHeader" 392, "Results" 695 array,
        "DiagnosticInfos" 25 array];
    "CallMethodRequest" 704 706 Plain ["ObjectId" 17, "MethodId" 17, "InputArguments" 24 array];
    "CallMethodResult" 707 709 Plain ["StatusCode" 19, "InputArgumentResults" 19 array,
        "InputArgumentDiagnosticInfos" 25 array, "OutputArguments" 24 array];
    "CallRequest" 710 712 Plain ["RequestHeader" 389, "MethodsToCall" 704 array];
    "CallResponse" 713 715 Plain ["ResponseHeader" 392, "Results" 707 array, "DiagnosticInfos" 25 array];
    "MonitoringFilter" 719 721 Plain [];
    "DataChangeFilter" 722 724 Plain ["Trigger" 717, "DeadbandType" 7, "DeadbandValue" 11];
    "EventFilter" 725 727 Plain ["SelectClauses" 601 array, "WhereClause" 586];
    "AggregateFilter" 728 730 Plain ["StartTime" 13, "AggregateType" 17, "ProcessingInterval" 11,
        "AggregateConfiguration" 948];
    "MonitoringFilterResult" 731 733 Plain [];
    "EventFilterResult" 734 736 Plain ["SelectClauseResults" 19 array,
        "SelectClauseDiagnosticInfos" 25 array, "WhereClauseResult" 607];
    "AggregateFilterResult" 737 739 Plain ["RevisedStartTime" 13, "RevisedProcessingInterval" 11,
        "RevisedAggregateConfiguration" 948];
    "MonitoringParameters" 740 742 Plain ["ClientHandle" 7, "SamplingInterval" 11, "Filter" 22,
        "QueueSize" 7, "DiscardOldest" 1];
    "MonitoredItemCreateRequest" 743 745 Plain ["ItemToMonitor" 626, "MonitoringMode" 716,
        "RequestedParameters" 740];
    "MonitoredItemCreateResult" 746 748 Plain ["StatusCode" 19, "MonitoredItemId" 7,
        "RevisedSamplingInterval" 11, "RevisedQueueSize" 7, "FilterResult" 22];
    "CreateMonitoredItemsRequest" 749 751 Plain ["RequestHeader" 389, "SubscriptionId" 7,
        "TimestampsToReturn" 625, "ItemsToCreate" 743 array];
    "CreateMonitoredItemsResponse" 752 754 Plain ["ResponseHeader" 392, "Results" 746 array,
        "DiagnosticInfos" 25 array];
    "MonitoredItemModifyRequest" 755 757 Plain ["MonitoredItemId" 7, "RequestedParameters" 740];
    "MonitoredItemModifyResult" 758 760 Plain ["StatusCode" 19, "RevisedSamplingInterval" 11,
        "RevisedQueueSize" 7, "FilterResult" 22];
    "ModifyMonitoredItemsRequest" 761 763 Plain ["RequestHeader" 389, "SubscriptionId" 7,
        "TimestampsToReturn" 625, "ItemsToModify" 755 array];
    "ModifyMonitoredItemsResponse" 764 766 Plain ["ResponseHeader" 392, "Results" 758 array,
        "DiagnosticInfos" 25 array];
    "SetMonitoringModeRequest" 767 769 Plain ["RequestHeader" 389, "SubscriptionId" 7,
        "MonitoringMode" 716, "MonitoredItemIds" 7 array];
    "SetMonitoringModeResponse" 770 772 Plain ["ResponseHeader" 392, "Results" 19 array,
        "DiagnosticInfos" 25 array];
    "SetTriggeringRequest" 773 775 Plain ["RequestHeader" 389, "SubscriptionId" 7, "TriggeringItemId" 7,
        "LinksToAdd" 7 array, "LinksToRemove" 7 array];
    "SetTriggeringResponse" 776 778 Plain ["ResponseHeader" 392, "AddResults" 19 array,
        "AddDiagnosticInfos" 25 array, "RemoveResults" 19 array, "RemoveDiagnosticInfos" 25 array];
    "DeleteMonitoredItemsRequest" 779 781 Plain ["RequestHeader" 389, "SubscriptionId" 7,
        "MonitoredItemIds" 7 array];
    "DeleteMonitoredItemsResponse" 782 784 Plain ["ResponseHeader" 392, "Results" 19 array,
        "DiagnosticInfos" 25 array];
    "CreateSubscriptionRequest" 785 787 Plain ["RequestHeader" 389, "RequestedPublishingInterval" 11,
        "RequestedLifetimeCount" 7, "RequestedMaxKeepAliveCount" 7, "MaxNotificationsPerPublish" 7,
        "PublishingEnabled" 1, "Priority" 3];
    "CreateSubscriptionResponse" 788 790 Plain ["ResponseHeader" 392, "SubscriptionId" 7,
        "RevisedPublishingInterval" 11, "RevisedLifetimeCount" 7, "RevisedMaxKeepAliveCount" 7];
    "ModifySubscriptionRequest" 791 793 Plain ["RequestHeader" 389, "SubscriptionId" 7,
        "RequestedPublishingInterval" 11, "RequestedLifetimeCount" 7, "RequestedMaxKeepAliveCount" 7,
        "MaxNotificationsPerPublish" 7, "Priority" 3];
    "ModifySubscriptionResponse" 794 796 Plain ["ResponseHeader" 392, "RevisedPublishingInterval" 11,
        "RevisedLifetimeCount" 7, "RevisedMaxKeepAliveCount" 7];
    "SetPublishingModeRequest" 797 799 Plain ["RequestHeader" 389, "PublishingEnabled" 1,
        "SubscriptionIds" 7 array];
    "SetPublishingModeResponse" 800 802 Plain ["ResponseHeader" 392, "Results" 19 array,
        "DiagnosticInfos" 25 array];
    "NotificationMessage" 803 805 Plain ["SequenceNumber" 7, "PublishTime" 13, "NotificationData" 22 array];
    "MonitoredItemNotification" 806 808 Plain ["ClientHandle" 7, "Value" 23];
    "DataChangeNotification" 809 811 Plain ["MonitoredItems" 806 array, "DiagnosticInfos" 25 array];
    "StatusChangeNotification" 818 820 Plain ["Status" 19, "DiagnosticInfo" 25];
    "SubscriptionAcknowledgement" 821 823 Plain ["SubscriptionId" 7, "SequenceNumber" 7];
    "PublishRequest" 824 826 Plain ["RequestHeader" 389, "SubscriptionAcknowledgements" 821 array];
    "PublishResponse" 827 829 Plain ["ResponseHeader" 392, "SubscriptionId" 7,
        "AvailableSequenceNumbers" 7 array, "MoreNotifications" 1, "NotificationMessage" 803,
        "Results" 19 array, "DiagnosticInfos" 25 array];
    "RepublishRequest" 830 832 Plain ["RequestHeader" 389, "SubscriptionId" 7,
        "RetransmitSequenceNumber" 7];
    "RepublishResponse" 833 835 Plain ["ResponseHeader" 392, "NotificationMessage" 803];
    "TransferResult" 836 838 Plain ["StatusCode" 19, "AvailableSequenceNumbers" 7 array];
    "TransferSubscriptionsRequest" 839 841 Plain ["RequestHeader" 389, "SubscriptionIds" 7 array,
        "SendInitialValues" 1];
    "TransferSubscriptionsResponse" 842 844 Plain ["ResponseHeader" 392, "Results" 836 array,
        "DiagnosticInfos" 25 array];
    "DeleteSubscriptionsRequest" 845 847 Plain ["RequestHeader" 389, "SubscriptionIds" 7 array];
    "DeleteSubscriptionsResponse" 848 850 Plain ["ResponseHeader" 392, "Results" 19 array,
        "DiagnosticInfos" 25 array];
    "RedundantServerDataType" 853 855 Plain ["ServerId" 12, "ServiceLevel" 3, "ServerState" 852];
    "SamplingIntervalDiagnosticsDataType" 856 858 Plain ["SamplingInterval" 290, "MonitoredItemCount" 7,
        "MaxMonitoredItemCount" 7, "DisabledMonitoredItemCount" 7];
    "ServerDiagnosticsSummaryDataType" 859 861 Plain ["ServerViewCount" 7, "CurrentSessionCount" 7,
        "CumulatedSessionCount" 7, "SecurityRejectedSessionCount" 7, "RejectedSessionCount" 7,
        "SessionTimeoutCount" 7, "SessionAbortCount" 7, "CurrentSubscriptionCount" 7,
        "CumulatedSubscriptionCount" 7, "PublishingIntervalCount" 7, "SecurityRejectedRequestsCount" 7,
        "RejectedRequestsCount" 7];
    "ServerStatusDataType" 862 864 Plain ["StartTime" 294, "CurrentTime" 294, "State" 852,
        "BuildInfo" 338, "SecondsTillShutdown" 7, "ShutdownReason" 21];
    "SessionDiagnosticsDataType" 865 867 Plain ["SessionId" 17, "SessionName" 12,
        "ClientDescription" 308, "ServerUri" 12, "EndpointUrl" 12, "LocaleIds" 295 array,
        "ActualSessionTimeout" 290, "MaxResponseMessageSize" 7, "ClientConnectionTime" 294,
        "ClientLastContactTime" 294, "CurrentSubscriptionsCount" 7, "CurrentMonitoredItemsCount" 7,
        "CurrentPublishRequestsInQueue" 7, "TotalRequestCount" 871, "UnauthorizedRequestCount" 7,
        "ReadCount" 871, "HistoryReadCount" 871, "WriteCount" 871, "HistoryUpdateCount" 871,
        "CallCount" 871, "CreateMonitoredItemsCount" 871, "ModifyMonitoredItemsCount" 871,
        "SetMonitoringModeCount" 871, "SetTriggeringCount" 871, "DeleteMonitoredItemsCount" 871,
        "CreateSubscriptionCount" 871, "ModifySubscriptionCount" 871, "SetPublishingModeCount" 871,
        "PublishCount" 871, "RepublishCount" 871, "TransferSubscriptionsCount" 871,
        "DeleteSubscriptionsCount" 871, "AddNodesCount" 871, "AddReferencesCount" 871,
        "DeleteNodesCount" 871, "DeleteReferencesCount" 871, "BrowseCount" 871, "BrowseNextCount" 871,
        "TranslateBrowsePathsToNodeIdsCount" 871, "QueryFirstCount" 871, "QueryNextCount" 871,
        "RegisterNodesCount" 871, "UnregisterNodesCount" 871];
    "SessionSecurityDiagnosticsDataType" 868 870 Plain ["SessionId" 17, "ClientUserIdOfSession" 12,
        "ClientUserIdHistory" 12 array, "AuthenticationMechanism" 12, "Encoding" 12,
        "TransportProtocol" 12, "SecurityMode" 302, "SecurityPolicyUri" 12, "ClientCertificate" 15];
    "ServiceCounterDataType" 871 873 Plain ["TotalCount" 7, "ErrorCount" 7];
    "SubscriptionDiagnosticsDataType" 874 876 Plain ["SessionId" 17, "SubscriptionId" 7, "Priority" 3,
        "PublishingInterval" 290, "MaxKeepAliveCount" 7, "MaxLifetimeCount" 7,
        "MaxNotificationsPerPublish" 7, "PublishingEnabled" 1, "ModifyCount" 7, "EnableCount" 7,
        "DisableCount" 7, "RepublishRequestCount" 7, "RepublishMessageRequestCount" 7,
        "RepublishMessageCount" 7, "TransferRequestCount" 7, "TransferredToAltClientCount" 7,
        "TransferredToSameClientCount" 7, "PublishRequestCount" 7, "DataChangeNotificationsCount" 7,
        "EventNotificationsCount" 7, "NotificationsCount" 7, "LatePublishRequestCount" 7,
        "CurrentKeepAliveCount" 7, "CurrentLifetimeCount" 7, "UnacknowledgedMessageCount" 7,
        "DiscardedMessageCount" 7, "MonitoredItemCount" 7, "DisabledMonitoredItemCount" 7,
        "MonitoringQueueOverflowCount" 7, "NextSequenceNumber" 7, "EventQueueOverflowCount" 7];
    "ModelChangeStructureDataType" 877 879 Plain ["Affected" 17, "AffectedType" 17, "Verb" 3];
    "Range" 884 886 Plain ["Low" 11, "High" 11];
    "EUInformation" 887 889 Plain ["NamespaceUri" 12, "UnitId" 6, "DisplayName" 21, "Description" 21];
    "Annotation" 891 893 Plain ["Message" 12, "UserName" 12, "AnnotationTime" 294];
    "ProgramDiagnosticDataType" 894 896 Plain ["CreateSessionId" 17, "CreateClientName" 12,
        "InvocationCreationTime" 294, "LastTransitionTime" 294, "LastMethodCall" 12,
        "LastMethodSessionId" 17, "LastMethodInputArguments" 296 array,
        "LastMethodOutputArguments" 296 array, "LastMethodCallTime" 294, "LastMethodReturnStatus" 299];
    "SemanticChangeStructureDataType" 897 899 Plain ["Affected" 17, "AffectedType" 17];
    "EventNotificationList" 914 916 Plain ["Events" 917 array];
    "EventFieldList" 917 919 Plain ["ClientHandle" 7, "EventFields" 24 array];
    "HistoryEventFieldList" 920 922 Plain ["EventFields" 24 array];
    "IssuedIdentityToken" 938 940 Plain ["PolicyId" 12, "TokenData" 15, "EncryptionAlgorithm" 12];
    "NotificationData" 945 947 Plain [];
    "AggregateConfiguration" 948 950 Plain ["UseServerCapabilitiesDefaults" 1, "TreatUncertainAsBad" 1,
        "PercentDataBad" 3, "PercentDataGood" 3, "UseSlopedExtrapolation" 1];
    "EnumValueType" 7594 8251 Plain ["Value" 8, "DisplayName" 21, "Description" 21];
    "TimeZoneDataType" 8912 8917 Plain ["Offset" 4, "DaylightSavingInOffset" 1];
    "ModificationInfo" 11216 11226 Plain ["ModificationTime" 294, "UpdateType" 11234, "UserName" 12];
    "HistoryModifiedData" 11217 11227 Plain ["DataValues" 23 array, "ModificationInfos" 11216 array];
    "UpdateStructureDataDetails" 11295 11300 Plain ["NodeId" 17, "PerformInsertReplace" 11293,
        "UpdateValues" 23 array];
    "EndpointUrlListDataType" 11943 11957 Plain ["EndpointUrlList" 12 array];
    "NetworkGroupDataType" 11944 11958 Plain ["ServerUri" 12, "NetworkPaths" 11943 array];
    "AxisInformation" 12079 12089 Plain ["EngineeringUnits" 887, "EURange" 884, "Title" 21,
        "AxisScaleType" 12077, "AxisSteps" 11 array];
    "XVType" 12080 12090 Plain ["X" 11, "Value" 10];
    "ComplexNumberType" 12171 12181 Plain ["Real" 10, "Imaginary" 10];
    "DoubleComplexNumberType" 12172 12182 Plain ["Real" 11, "Imaginary" 11];
    "ServerOnNetwork" 12189 12207 Plain ["RecordId" 7, "ServerName" 12, "DiscoveryUrl" 12,
        "ServerCapabilities" 12 array];
    "FindServersOnNetworkRequest" 12190 12208 Plain ["RequestHeader" 389, "StartingRecordId" 7,
        "MaxRecordsToReturn" 7, "ServerCapabilityFilter" 12 array];
    "FindServersOnNetworkResponse" 12191 12209 Plain ["ResponseHeader" 392, "LastCounterResetTime" 13,
        "Servers" 12189 array];
    "RegisterServer2Request" 12193 12211 Plain ["RequestHeader" 389, "Server" 432,
        "DiscoveryConfiguration" 22 array];
    "RegisterServer2Response" 12194 12212 Plain ["ResponseHeader" 392, "ConfigurationResults" 19 array,
        "DiagnosticInfos" 25 array];
    "TrustListDataType" 12554 12680 Plain ["SpecifiedLists" 7, "TrustedCertificates" 15 array,
        "TrustedCrls" 15 array, "IssuerCertificates" 15 array, "IssuerCrls" 15 array];
    "DiscoveryConfiguration" 12890 12900 Plain [];
    "MdnsDiscoveryConfiguration" 12891 12901 Plain ["MdnsServerName" 12, "ServerCapabilities" 12 array];
    "PublishedVariableDataType" 14273 14323 Plain ["PublishedVariable" 17, "AttributeId" 288,
        "SamplingIntervalHint" 290, "DeadbandType" 7, "DeadbandValue" 11, "IndexRange" 291,
        "SubstituteValue" 24, "MetaDataProperties" 20 array];
    "DataSetMetaDataType" 14523 124 Plain ["Namespaces" 12 array, "StructureDataTypes" 15487 array,
        "EnumDataTypes" 15488 array, "SimpleDataTypes" 15005 array, "Name" 12, "Description" 21,
        "Fields" 14524 array, "DataSetClassId" 14, "ConfigurationVersion" 14593];
    "FieldMetaData" 14524 14839 Plain ["Name" 12, "Description" 21, "FieldFlags" 15904, "BuiltInType" 3,
        "DataType" 17, "ValueRank" 6, "ArrayDimensions" 7 array, "MaxStringLength" 7,
        "DataSetFieldId" 14, "Properties" 14533 array];
    "KeyValuePair" 14533 14846 Plain ["Key" 20, "Value" 24];
    "ConfigurationVersionDataType" 14593 14847 Plain ["MajorVersion" 20998, "MinorVersion" 20998];
    "FieldTargetDataType" 14744 14848 Plain ["DataSetFieldId" 14, "ReceiverIndexRange" 291,
        "TargetNodeId" 17, "AttributeId" 288, "WriteIndexRange" 291, "OverrideValueHandling" 15874,
        "OverrideValue" 24];
    "SimpleTypeDescription" 15005 15421 Plain ["DataTypeId" 17, "Name" 20, "BaseDataType" 17,
        "BuiltInType" 3];
    "UABinaryFileDataType" 15006 15422 Plain ["Namespaces" 12 array, "StructureDataTypes" 15487 array,
        "EnumDataTypes" 15488 array, "SimpleDataTypes" 15005 array, "SchemaLocation" 12,
        "FileHeader" 14533 array, "Body" 24];
    "BrokerConnectionTransportDataType" 15007 15479 Plain ["ResourceUri" 12, "AuthenticationProfileUri" 12];
    "CertificateGroupDataType" 15436 16540 Plain ["Name" 12, "RecordProperties" 14533 array,
        "Purpose" 17, "CertificateTypes" 17 array, "IsCertificateAssigned" 1 array,
        "ValidationOptions" 23564];
    "WriterGroupDataType" 15480 21150 WithSubtypedValues ["Name" 12, "Enabled" 1, "SecurityMode" 302,
        "SecurityGroupId" 12, "SecurityKeyServices" 312 array, "MaxNetworkMessageSize" 7,
        "GroupProperties" 14533 array, "WriterGroupId" 5, "PublishingInterval" 290, "KeepAliveTime" 290,
        "Priority" 3, "LocaleIds" 295 array, "HeaderLayoutUri" 12, "TransportSettings" 15611 optional,
        "MessageSettings" 15616 optional, "DataSetWriters" 15597 array];
    "StructureDescription" 15487 126 Plain ["DataTypeId" 17, "Name" 20, "StructureDefinition" 99];
    "EnumDescription" 15488 127 Plain ["DataTypeId" 17, "Name" 20, "EnumDefinition" 100, "BuiltInType" 3];
    "NetworkAddressUrlDataType" 15510 21152 Plain ["NetworkInterface" 12, "Url" 12];
    "ReaderGroupDataType" 15520 21153 WithSubtypedValues ["Name" 12, "Enabled" 1, "SecurityMode" 302,
        "SecurityGroupId" 12, "SecurityKeyServices" 312 array, "MaxNetworkMessageSize" 7,
        "GroupProperties" 14533 array, "TransportSettings" 15621 optional,
        "MessageSettings" 15622 optional, "DataSetReaders" 15623 array];
    "EndpointType" 15528 15671 Plain ["EndpointUrl" 12, "SecurityMode" 302, "SecurityPolicyUri" 12,
        "TransportProfileUri" 12];
    "PubSubConfigurationDataType" 15530 21154 Plain ["PublishedDataSets" 15578 array,
        "Connections" 15617 array, "Enabled" 1];
    "DatagramWriterGroupTransportDataType" 15532 21155 Plain ["MessageRepeatCount" 3,
        "MessageRepeatDelay" 290];
    "ConfigurationUpdateTargetType" 15538 16541 Plain ["Path" 12, "UpdateType" 15539];
    "ApplicationIdentityDataType" 15556 16543 Plain ["Name" 12, "RecordProperties" 14533 array,
        "ApplicationUri" 23751, "ApplicationNames" 21 array, "AdditionalServers" 308 array];
    "EndpointDataType" 15557 16544 Plain ["Name" 12, "RecordProperties" 14533 array,
        "DiscoveryUrls" 23751 array, "NetworkName" 12, "Port" 5];
    "ServerEndpointDataType" 15558 16545 Plain ["Name" 12, "RecordProperties" 14533 array,
        "DiscoveryUrls" 23751 array, "NetworkName" 12, "Port" 5, "EndpointUrls" 23751 array,
        "SecuritySettingNames" 12 array, "TransportProfileUri" 23751, "UserTokenSettingNames" 12 array,
        "ReverseConnectUrls" 12 array];
    "SecuritySettingsDataType" 15559 16546 Plain ["Name" 12, "RecordProperties" 14533 array,
        "SecurityModes" 302 array, "SecurityPolicyUris" 12 array, "CertificateGroupName" 12];
    "UserTokenSettingsDataType" 15560 16547 Plain ["Name" 12, "RecordProperties" 14533 array,
        "TokenType" 303, "IssuedTokenType" 12, "IssuerEndpointUrl" 12, "SecurityPolicyUri" 12,
        "CertificateGroupName" 12, "AuthorizationServiceName" 12];
    "PublishedDataSetDataType" 15578 15677 WithSubtypedValues ["Name" 12, "DataSetFolder" 12 array,
        "DataSetMetaData" 14523, "ExtensionFields" 14533 array, "DataSetSource" 15580 optional];
    "PublishedDataItemsDataType" 15581 15679 Plain ["PublishedData" 14273 array];
    "PublishedEventsDataType" 15582 15681 Plain ["EventNotifier" 17, "SelectedFields" 601 array,
        "Filter" 586];
    "DataSetWriterDataType" 15597 15682 WithSubtypedValues ["Name" 12, "Enabled" 1, "DataSetWriterId" 5,
        "DataSetFieldContentMask" 15583, "KeyFrameCount" 7, "DataSetName" 12,
        "DataSetWriterProperties" 14533 array, "TransportSettings" 15598 optional,
        "MessageSettings" 15605 optional];
    "PubSubConnectionDataType" 15617 15694 WithSubtypedValues ["Name" 12, "Enabled" 1, "PublisherId" 24,
        "TransportProfileUri" 12, "Address" 15502 optional, "ConnectionProperties" 14533 array,
        "TransportSettings" 15618 optional, "WriterGroups" 15480 array, "ReaderGroups" 15520 array];
    "DataSetReaderDataType" 15623 15703 WithSubtypedValues ["Name" 12, "Enabled" 1, "PublisherId" 24,
        "WriterGroupId" 5, "DataSetWriterId" 5, "DataSetMetaData" 14523, "DataSetFieldContentMask" 15583,
        "MessageReceiveTimeout" 290, "KeyFrameCount" 7, "HeaderLayoutUri" 12, "SecurityMode" 302,
        "SecurityGroupId" 12, "SecurityKeyServices" 312 array, "DataSetReaderProperties" 14533 array,
        "TransportSettings" 15628 optional, "MessageSettings" 15629 optional,
        "SubscribedDataSet" 15630 optional];
    "TargetVariablesDataType" 15631 15712 Plain ["TargetVariables" 14744 array];
    "IdentityMappingRuleType" 15634 15736 Plain ["CriteriaType" 15632, "Criteria" 12];
    "SubscribedDataSetMirrorDataType" 15635 15713 Plain ["ParentNodeName" 12, "RolePermissions" 96 array];
    "UadpWriterGroupMessageDataType" 15645 15715 Plain ["GroupVersion" 20998, "DataSetOrdering" 20408,
        "NetworkMessageContentMask" 15642, "SamplingOffset" 290, "PublishingOffset" 290 array];
    "UadpDataSetWriterMessageDataType" 15652 15717 Plain ["DataSetMessageContentMask" 15646,
        "ConfiguredSize" 5, "NetworkMessageNumber" 5, "DataSetOffset" 5];
    "UadpDataSetReaderMessageDataType" 15653 15718 Plain ["GroupVersion" 20998, "NetworkMessageNumber" 5,
        "DataSetOffset" 5, "DataSetClassId" 14, "NetworkMessageContentMask" 15642,
        "DataSetMessageContentMask" 15646, "PublishingInterval" 290, "ReceiveOffset" 290,
        "ProcessingOffset" 290];
    "JsonWriterGroupMessageDataType" 15657 15719 Plain ["NetworkMessageContentMask" 15654];
    "JsonDataSetWriterMessageDataType" 15664 15724 Plain ["DataSetMessageContentMask" 15658];
    "JsonDataSetReaderMessageDataType" 15665 15725 Plain ["NetworkMessageContentMask" 15654,
        "DataSetMessageContentMask" 15658];
    "BrokerWriterGroupTransportDataType" 15667 15727 Plain ["QueueName" 12, "ResourceUri" 12,
        "AuthenticationProfileUri" 12, "RequestedDeliveryGuarantee" 15008];
    "BrokerDataSetWriterTransportDataType" 15669 15729 Plain ["QueueName" 12, "ResourceUri" 12,
        "AuthenticationProfileUri" 12, "RequestedDeliveryGuarantee" 15008, "MetaDataQueueName" 12,
        "MetaDataUpdateTime" 290];
    "BrokerDataSetReaderTransportDataType" 15670 15733 Plain ["QueueName" 12, "ResourceUri" 12,
        "AuthenticationProfileUri" 12, "RequestedDeliveryGuarantee" 15008, "MetaDataQueueName" 12];
    "SessionlessInvokeRequestType" 15901 15903 Plain ["UrisVersion" 7, "NamespaceUris" 12 array,
        "ServerUris" 12 array, "LocaleIds" 12 array, "ServiceId" 7];
    "AdditionalParametersType" 16313 17537 Plain ["Parameters" 14533 array];
    "DatagramConnectionTransportDataType" 17467 17468 WithSubtypedValues [
        "DiscoveryAddress" 15502 optional];
    "EphemeralKeyType" 17548 17549 Plain ["PublicKey" 15, "Signature" 15];
    "GenericAttributeValue" 17606 17610 Plain ["AttributeId" 7, "Value" 24];
    "GenericAttributes" 17607 17611 Plain ["SpecifiedAttributes" 7, "DisplayName" 21, "Description" 21,
        "WriteMask" 7, "UserWriteMask" 7, "AttributeValues" 17606 array];
    "ActionTargetDataType" 18593 18598 Plain ["ActionTargetId" 5, "Name" 12, "Description" 21];
    "PublishedActionDataType" 18594 18599 Plain ["RequestDataSetMetaData" 14523,
        "ActionTargets" 18593 array];
    "ActionMethodDataType" 18597 18600 Plain ["ObjectId" 17, "MethodId" 17];
    "SortRuleElement" 18648 18650 Plain ["SortOrder" 18646, "EventField" 601];
    "ReadEventDetailsSorted" 18649 18651 Plain ["NumValuesPerNode" 7, "StartTime" 13, "EndTime" 13,
        "Filter" 725, "SortClause" 18648 array];
    "PublishedActionMethodDataType" 18793 18795 Plain ["RequestDataSetMetaData" 14523,
        "ActionTargets" 18593 array, "ActionMethods" 18597 array];
    "DtlsPubSubConnectionDataType" 18794 18930 Plain ["ClientCipherSuite" 12,
        "ServerCipherSuites" 12 array, "ZeroRTT" 1, "CertificateGroupId" 17, "VerifyClientCertificate" 1];
    "RationalNumber" 18806 18815 Plain ["Numerator" 6, "Denominator" 7];
    "ThreeDVector" 18808 18817 Plain ["X" 11, "Y" 11, "Z" 11];
    "ThreeDCartesianCoordinates" 18810 18819 Plain ["X" 11, "Y" 11, "Z" 11];
    "ThreeDOrientation" 18812 18821 Plain ["A" 11, "B" 11, "C" 11];
    "ThreeDFrame" 18814 18823 Plain ["CartesianCoordinates" 18810, "Orientation" 18812];
    "LldpManagementAddressTxPortType" 18953 19079 Plain ["AddressSubtype" 7, "ManAddress" 12,
        "TxEnable" 1, "AddrLen" 7, "IfSubtype" 18951, "IfId" 7];
    "LldpManagementAddressType" 18954 19080 Plain ["AddressSubtype" 7, "Address" 12, "IfSubtype" 18951,
        "IfId" 7];
    "LldpTlvType" 18955 19081 Plain ["TlvType" 7, "TlvInfo" 15];
    "JsonNetworkMessage" 19311 0 Plain ["MessageId" 12, "MessageType" 12, "PublisherId" 12,
        "WriterGroupName" 12, "DataSetClassId" 12, "Messages" 22 array];
    "JsonDataSetMessage" 19312 0 Plain ["DataSetWriterId" 5, "DataSetWriterName" 12, "PublisherId" 12,
        "WriterGroupName" 12, "SequenceNumber" 7, "MetaDataVersion" 14593, "MinorVersion" 7,
        "Timestamp" 13, "Status" 19, "MessageType" 12, "Payload" 22];
    "JsonDataSetMetaDataMessage" 19313 0 Plain ["MessageId" 12, "MessageType" 12, "PublisherId" 12,
        "DataSetWriterId" 5, "WriterGroupName" 12, "DataSetWriterName" 12, "Timestamp" 13,
        "MetaData" 14523];
    "JsonApplicationDescriptionMessage" 19314 0 Plain ["MessageId" 12, "MessageType" 12,
        "PublisherId" 12, "Timestamp" 13, "Description" 308, "ServerCapabilities" 12 array];
    "JsonServerEndpointsMessage" 19315 0 Plain ["MessageId" 12, "MessageType" 12, "PublisherId" 12,
        "Timestamp" 13, "Description" 308, "Endpoints" 312 array];
    "JsonStatusMessage" 19316 0 Plain ["MessageId" 12, "MessageType" 12, "PublisherId" 12,
        "Timestamp" 13, "IsCyclic" 1, "Status" 14647, "NextReportTime" 13];
    "JsonPubSubConnectionMessage" 19317 0 Plain ["MessageId" 12, "MessageType" 12, "PublisherId" 12,
        "Timestamp" 13, "Connection" 15617];
    "JsonActionMetaDataMessage" 19318 0 Plain ["MessageId" 12, "MessageType" 12, "PublisherId" 12,
        "DataSetWriterId" 5, "DataSetWriterName" 12, "Timestamp" 13, "ActionTargets" 18593 array,
        "Request" 14523, "Response" 14523, "ActionMethods" 18597 array];
    "JsonActionResponderMessage" 19319 0 Plain ["MessageId" 12, "MessageType" 12, "PublisherId" 12,
        "Timestamp" 13, "Connection" 15617];
    "JsonActionNetworkMessage" 19320 0 Plain ["MessageId" 12, "MessageType" 12, "PublisherId" 12,
        "Timestamp" 13, "ResponseAddress" 12, "CorrelationData" 15, "RequestorId" 12, "TimeoutHint" 11,
        "Messages" 22 array];
    "JsonActionRequestMessage" 19321 0 Plain ["DataSetWriterId" 5, "ActionTargetId" 5,
        "DataSetWriterName" 12, "WriterGroupName" 12, "MetaDataVersion" 14593, "MinorVersion" 7,
        "Timestamp" 13, "MessageType" 12, "RequestId" 5, "ActionState" 18595, "Payload" 22];
    "JsonActionResponseMessage" 19322 0 Plain ["DataSetWriterId" 5, "ActionTargetId" 5,
        "DataSetWriterName" 12, "WriterGroupName" 12, "MetaDataVersion" 14593, "MinorVersion" 7,
        "Timestamp" 13, "Status" 19, "MessageType" 12, "RequestId" 5, "ActionState" 18595, "Payload" 22];
    "LogRecord" 19361 19379 WithOptionalFields ["Time" 13, "Severity" 5, "EventType" 17 optional,
        "SourceNode" 17 optional, "SourceName" 12 optional, "Message" 21, "TraceContext" 19747 optional,
        "AdditionalData" 19748 array optional];
    "LogRecordsDataType" 19745 19753 Plain ["LogRecordArray" 19361 array];
    "SpanContextDataType" 19746 19754 Plain ["TraceId" 14, "SpanId" 9];
    "TraceContextDataType" 19747 19755 Plain ["TraceId" 14, "SpanId" 9, "ParentSpanId" 9,
        "ParentIdentifier" 12];
    "NameValuePair" 19748 19756 Plain ["Name" 12, "Value" 24];
    "SessionlessInvokeResponseType" 20999 21001 Plain ["NamespaceUris" 12 array, "ServerUris" 12 array,
        "ServiceId" 7];
    "AliasNameDataType" 23468 23499 Plain ["AliasName" 20, "ReferencedNodes" 18 array];
    "ReadAnnotationDataDetails" 23497 23500 Plain ["ReqTimes" 13 array];
    "CurrencyUnitType" 23498 23507 Plain ["NumericCode" 4, "Exponent" 2, "AlphabeticCode" 12,
        "Currency" 21];
    "StandaloneSubscribedDataSetRefDataType" 23599 23851 Plain ["DataSetName" 12];
    "StandaloneSubscribedDataSetDataType" 23600 23852 WithSubtypedValues ["Name" 12,
        "DataSetFolder" 12 array, "DataSetMetaData" 14523, "SubscribedDataSet" 15630 optional];
    "SecurityGroupDataType" 23601 23853 Plain ["Name" 12, "SecurityGroupFolder" 12 array,
        "KeyLifetime" 290, "SecurityPolicyUri" 12, "MaxFutureKeyCount" 7, "MaxPastKeyCount" 7,
        "SecurityGroupId" 12, "RolePermissions" 96 array, "GroupProperties" 14533 array];
    "PubSubConfiguration2DataType" 23602 23854 Plain ["PublishedDataSets" 15578 array,
        "Connections" 15617 array, "Enabled" 1, "SubscribedDataSets" 23600 array,
        "DataSetClasses" 14523 array, "DefaultSecurityKeyServices" 312 array,
        "SecurityGroups" 23601 array, "PubSubKeyPushTargets" 25270 array, "ConfigurationVersion" 20998,
        "ConfigurationProperties" 14533 array];
    "TransmitQosPriorityDataType" 23605 23857 Plain ["PriorityLabel" 12];
    "ReceiveQosPriorityDataType" 23609 23861 Plain ["PriorityLabel" 12];
    "DatagramConnectionTransport2DataType" 23612 23864 WithSubtypedValues [
        "DiscoveryAddress" 15502 optional, "DiscoveryAnnounceRate" 7, "DiscoveryMaxMessageSize" 7,
        "QosCategory" 12, "DatagramQos" 23603 array optional];
    "DatagramWriterGroupTransport2DataType" 23613 23865 WithSubtypedValues ["MessageRepeatCount" 3,
        "MessageRepeatDelay" 290, "Address" 15502 optional, "QosCategory" 12,
        "DatagramQos" 23604 array optional, "DiscoveryAnnounceRate" 7, "Topic" 12];
    "DatagramDataSetReaderTransportDataType" 23614 23866 WithSubtypedValues ["Address" 15502 optional,
        "QosCategory" 12, "DatagramQos" 23608 array optional, "Topic" 12];
    "ServiceCertificateDataType" 23724 23725 Plain ["Certificate" 15, "Issuers" 15 array,
        "ValidFrom" 294, "ValidTo" 294];
    "ApplicationConfigurationDataType" 23743 23754 Plain ["ConfigurationVersion" 20998,
        "ConfigurationProperties" 14533 array, "ApplicationIdentity" 15556,
        "CertificateGroups" 15436 array, "ServerEndpoints" 15558 array, "ClientEndpoints" 15557 array,
        "SecuritySettings" 15559 array, "UserTokenSettings" 15560 array,
        "AuthorizationServices" 23744 array];
    "AuthorizationServiceConfigurationDataType" 23744 23755 Plain ["Name" 12,
        "RecordProperties" 14533 array, "ServiceUri" 23751, "ServiceCertificates" 23724 array,
        "IssuerEndpointSettings" 12];
    "NumberRange" 23903 24250 Plain ["Low" 26, "High" 26];
    "ProgramDiagnostic2DataType" 24033 24034 Plain ["CreateSessionId" 17, "CreateClientName" 12,
        "InvocationCreationTime" 294, "LastTransitionTime" 294, "LastMethodCall" 12,
        "LastMethodSessionId" 17, "LastMethodInputArguments" 296 array,
        "LastMethodOutputArguments" 296 array, "LastMethodInputValues" 24 array,
        "LastMethodOutputValues" 24 array, "LastMethodCallTime" 294, "LastMethodReturnStatus" 19];
    "AliasNameVerboseDataType" 24051 24262 Plain ["AliasName" 20, "ReferencedNodes" 18 array,
        "ServerUris" 12 array, "AliasNameCategoryId" 17];
    "AliasCategoryUpdateDataType" 24052 24338 Plain ["Category" 24106, "LastChange" 20998];
    "AliasUpdateDataType" 24053 24339 Plain ["ApplicationUri" 12, "Categories" 24052 array];
    "PortableQualifiedName" 24105 24108 Plain ["NamespaceUri" 12, "Name" 12];
    "PortableNodeId" 24106 24109 Plain ["NamespaceUri" 12, "Identifier" 17];
    "UnsignedRationalNumber" 24107 24110 Plain ["Numerator" 7, "Denominator" 7];
    "UserManagementDataType" 24281 24292 Plain ["UserName" 12, "UserConfiguration" 24279, "Description" 12];
    "PriorityMappingEntryType" 25220 25239 Plain ["MappingUri" 12, "PriorityLabel" 12,
        "PriorityValue_PCP" 3, "PriorityValue_DSCP" 7];
    "PublishedDataSetCustomSourceDataType" 25269 25529 Plain ["CyclicDataSet" 1];
    "PubSubKeyPushTargetDataType" 25270 25530 Plain ["ApplicationUri" 12, "PushTargetFolder" 12 array,
        "EndpointUrl" 12, "SecurityPolicyUri" 12, "UserTokenType" 304, "RequestedKeyCount" 5,
        "RetryInterval" 290, "PushTargetProperties" 14533 array, "SecurityGroups" 12 array];
    "PubSubConfigurationRefDataType" 25519 25531 Plain ["ConfigurationMask" 25517, "ElementIndex" 5,
        "ConnectionIndex" 5, "GroupIndex" 5];
    "PubSubConfigurationValueDataType" 25520 25532 Plain ["ConfigurationElement" 25519, "Name" 12,
        "Identifier" 24];
    "TransactionErrorType" 32285 32382 Plain ["TargetId" 17, "Error" 19, "Message" 21];
    "BitFieldDefinition" 32421 32422 Plain ["Name" 12, "Description" 21, "Reserved" 1,
        "StartingBitPosition" 7, "EndingBitPosition" 7];
    "AnnotationDataType" 32434 32560 Plain ["Annotation" 12, "Discipline" 12, "Uri" 12];
    "LinearConversionDataType" 32435 32561 Plain ["InitialAddend" 10, "Multiplicand" 10, "Divisor" 10,
        "FinalAddend" 10];
    "QuantityDimension" 32438 32562 Plain ["MassExponent" 2, "LengthExponent" 2, "TimeExponent" 2,
        "ElectricCurrentExponent" 2, "AmountOfSubstanceExponent" 2, "LuminousIntensityExponent" 2,
        "AbsoluteTemperatureExponent" 2, "DimensionlessExponent" 2];
    "ReferenceDescriptionDataType" 32659 32661 Plain ["SourceNode" 17, "ReferenceType" 17, "IsForward" 1,
        "TargetNode" 18];
    "ReferenceListEntryDataType" 32660 32662 Plain ["ReferenceType" 17, "IsForward" 1, "TargetNode" 18];
    "ReadEventDetails2" 32799 32800 Plain ["NumValuesPerNode" 7, "StartTime" 13, "EndTime" 13,
        "Filter" 725, "ReadModified" 1];
    "HistoryModifiedEvent" 32824 32825 Plain ["Events" 920 array, "ModificationInfos" 11216 array];
}

describe_enumerations! {
    "Enumeration" 29 false [];
    "PermissionType" 94 true ["Browse" 0, "ReadRolePermissions" 1, "WriteAttribute" 2,
        "WriteRolePermissions" 3, "WriteHistorizing" 4, "Read" 5, "Write" 6, "ReadHistory" 7,
        "InsertHistory" 8, "ModifyHistory" 9, "DeleteHistory" 10, "ReceiveEvents" 11, "Call" 12,
        "AddReference" 13, "RemoveReference" 14, "DeleteNode" 15, "AddNode" 16];
    "AccessRestrictionType" 95 true ["SigningRequired" 0, "EncryptionRequired" 1, "SessionRequired" 2,
        "ApplyRestrictionsToBrowse" 3];
    "StructureType" 98 false ["Structure" 0, "StructureWithOptionalFields" 1, "Union" 2,
        "StructureWithSubtypedValues" 3, "UnionWithSubtypedValues" 4];
    "NamingRuleType" 120 false ["Mandatory" 1, "Optional" 2, "Constraint" 3];
    "IdType" 256 false ["Numeric" 0, "String" 1, "Guid" 2, "Opaque" 3];
    "NodeClass" 257 false ["Unspecified" 0, "Object" 1, "Variable" 2, "Method" 4, "ObjectType" 8,
        "VariableType" 16, "ReferenceType" 32, "DataType" 64, "View" 128];
    "MessageSecurityMode" 302 false ["Invalid" 0, "None" 1, "Sign" 2, "SignAndEncrypt" 3];
    "UserTokenType" 303 false ["Anonymous" 0, "UserName" 1, "Certificate" 2, "IssuedToken" 3];
    "ApplicationType" 307 false ["Server" 0, "Client" 1, "ClientAndServer" 2, "DiscoveryServer" 3];
    "SecurityTokenRequestType" 315 false ["Issue" 0, "Renew" 1];
    "AttributeWriteMask" 347 true ["AccessLevel" 0, "ArrayDimensions" 1, "BrowseName" 2,
        "ContainsNoLoops" 3, "DataType" 4, "Description" 5, "DisplayName" 6, "EventNotifier" 7,
        "Executable" 8, "Historizing" 9, "InverseName" 10, "IsAbstract" 11, "MinimumSamplingInterval" 12,
        "NodeClass" 13, "NodeId" 14, "Symmetric" 15, "UserAccessLevel" 16, "UserExecutable" 17,
        "UserWriteMask" 18, "ValueRank" 19, "WriteMask" 20, "ValueForVariableType" 21,
        "DataTypeDefinition" 22, "RolePermissions" 23, "AccessRestrictions" 24, "AccessLevelEx" 25];
    "NodeAttributesMask" 348 false ["None" 0, "AccessLevel" 1, "ArrayDimensions" 2, "BrowseName" 4,
        "ContainsNoLoops" 8, "DataType" 16, "Description" 32, "DisplayName" 64, "EventNotifier" 128,
        "Executable" 256, "Historizing" 512, "InverseName" 1024, "IsAbstract" 2048,
        "MinimumSamplingInterval" 4096, "NodeClass" 8192, "NodeId" 16384, "Symmetric" 32768,
        "UserAccessLevel" 65536, "UserExecutable" 131072, "UserWriteMask" 262144, "ValueRank" 524288,
        "WriteMask" 1048576, "Value" 2097152, "DataTypeDefinition" 4194304, "RolePermissions" 8388608,
        "AccessRestrictions" 16777216, "All" 33554431, "BaseNode" 26501220, "Object" 26501348,
        "ObjectType" 26503268, "Variable" 26571383, "VariableType" 28600438, "Method" 26632548,
        "ReferenceType" 26537060, "View" 26501356];
    "BrowseDirection" 510 false ["Forward" 0, "Inverse" 1, "Both" 2, "Invalid" 3];
    "BrowseResultMask" 517 false ["None" 0, "ReferenceTypeId" 1, "IsForward" 2, "NodeClass" 4,
        "BrowseName" 8, "DisplayName" 16, "TypeDefinition" 32, "All" 63, "ReferenceTypeInfo" 3,
        "TargetInfo" 60];
    "FilterOperator" 576 false ["Equals" 0, "IsNull" 1, "GreaterThan" 2, "LessThan" 3,
        "GreaterThanOrEqual" 4, "LessThanOrEqual" 5, "Like" 6, "Not" 7, "Between" 8, "InList" 9,
        "And" 10, "Or" 11, "Cast" 12, "InView" 13, "OfType" 14, "RelatedTo" 15, "BitwiseAnd" 16,
        "BitwiseOr" 17];
    "TimestampsToReturn" 625 false ["Source" 0, "Server" 1, "Both" 2, "Neither" 3, "Invalid" 4];
    "MonitoringMode" 716 false ["Disabled" 0, "Sampling" 1, "Reporting" 2];
    "DataChangeTrigger" 717 false ["Status" 0, "StatusValue" 1, "StatusValueTimestamp" 2];
    "DeadbandType" 718 false ["None" 0, "Absolute" 1, "Percent" 2];
    "RedundancySupport" 851 false ["None" 0, "Cold" 1, "Warm" 2, "Hot" 3, "Transparent" 4,
        "HotAndMirrored" 5];
    "ServerState" 852 false ["Running" 0, "Failed" 1, "NoConfiguration" 2, "Suspended" 3, "Shutdown" 4,
        "Test" 5, "CommunicationFault" 6, "Unknown" 7];
    "ExceptionDeviationFormat" 890 false ["AbsoluteValue" 0, "PercentOfValue" 1, "PercentOfRange" 2,
        "PercentOfEURange" 3, "Unknown" 4];
    "HistoryUpdateType" 11234 false ["Insert" 1, "Replace" 2, "Update" 3, "Delete" 4];
    "PerformUpdateType" 11293 false ["Insert" 1, "Replace" 2, "Update" 3, "Remove" 4];
    "OpenFileMode" 11939 false ["Read" 1, "Write" 2, "EraseExisting" 4, "Append" 8];
    "ModelChangeStructureVerbMask" 11941 false ["NodeAdded" 1, "NodeDeleted" 2, "ReferenceAdded" 4,
        "ReferenceDeleted" 8, "DataTypeChanged" 16];
    "AxisScaleEnumeration" 12077 false ["Linear" 0, "Log" 1, "Ln" 2];
    "TrustListMasks" 12552 false ["None" 0, "TrustedCertificates" 1, "TrustedCrls" 2,
        "IssuerCertificates" 4, "IssuerCrls" 8, "All" 15];
    "PubSubState" 14647 false ["Disabled" 0, "Paused" 1, "Operational" 2, "Error" 3, "PreOperational" 4];
    "BrokerTransportQualityOfService" 15008 false ["NotSpecified" 0, "BestEffort" 1, "AtLeastOnce" 2,
        "AtMostOnce" 3, "ExactlyOnce" 4];
    "AccessLevelType" 15031 true ["CurrentRead" 0, "CurrentWrite" 1, "HistoryRead" 2, "HistoryWrite" 3,
        "SemanticChange" 4, "StatusWrite" 5, "TimestampWrite" 6];
    "EventNotifierType" 15033 true ["SubscribeToEvents" 0, "HistoryRead" 2, "HistoryWrite" 3];
    "AccessLevelExType" 15406 true ["CurrentRead" 0, "CurrentWrite" 1, "HistoryRead" 2, "HistoryWrite" 3,
        "SemanticChange" 4, "StatusWrite" 5, "TimestampWrite" 6, "NonatomicRead" 8, "NonatomicWrite" 9,
        "WriteFullArrayOnly" 10, "NoSubDataTypes" 11, "NonVolatile" 12, "Constant" 13];
    "ConfigurationUpdateType" 15539 false ["Insert" 1, "Replace" 2, "InsertOrReplace" 3, "Delete" 4];
    "DataSetFieldContentMask" 15583 true ["StatusCode" 0, "SourceTimestamp" 1, "ServerTimestamp" 2,
        "SourcePicoSeconds" 3, "ServerPicoSeconds" 4, "RawData" 5];
    "IdentityCriteriaType" 15632 false ["UserName" 1, "Thumbprint" 2, "Role" 3, "GroupId" 4,
        "Anonymous" 5, "AuthenticatedUser" 6, "Application" 7, "X509Subject" 8, "TrustedApplication" 9];
    "UadpNetworkMessageContentMask" 15642 true ["PublisherId" 0, "GroupHeader" 1, "WriterGroupId" 2,
        "GroupVersion" 3, "NetworkMessageNumber" 4, "SequenceNumber" 5, "PayloadHeader" 6, "Timestamp" 7,
        "PicoSeconds" 8, "DataSetClassId" 9, "PromotedFields" 10];
    "UadpDataSetMessageContentMask" 15646 true ["Timestamp" 0, "PicoSeconds" 1, "Status" 2,
        "MajorVersion" 3, "MinorVersion" 4, "SequenceNumber" 5];
    "JsonNetworkMessageContentMask" 15654 true ["NetworkMessageHeader" 0, "DataSetMessageHeader" 1,
        "SingleDataSetMessage" 2, "PublisherId" 3, "DataSetClassId" 4, "ReplyTo" 5, "WriterGroupName" 6];
    "JsonDataSetMessageContentMask" 15658 true ["DataSetWriterId" 0, "MetaDataVersion" 1,
        "SequenceNumber" 2, "Timestamp" 3, "Status" 4, "MessageType" 5, "DataSetWriterName" 6,
        "FieldEncoding1" 7, "PublisherId" 8, "WriterGroupName" 9, "MinorVersion" 10, "FieldEncoding2" 11];
    "OverrideValueHandling" 15874 false ["Disabled" 0, "LastUsableValue" 1, "OverrideValue" 2];
    "DataSetFieldFlags" 15904 true ["PromotedField" 0];
    "ActionState" 18595 false ["Idle" 0, "Executing" 1, "Done" 2];
    "SortOrderType" 18646 false ["Ascending" 0, "Descending" 1];
    "ChassisIdSubtype" 18947 false ["ChassisComponent" 1, "InterfaceAlias" 2, "PortComponent" 3,
        "MacAddress" 4, "NetworkAddress" 5, "InterfaceName" 6, "Local" 7];
    "PortIdSubtype" 18949 false ["InterfaceAlias" 1, "PortComponent" 2, "MacAddress" 3,
        "NetworkAddress" 4, "InterfaceName" 5, "AgentCircuitId" 6, "Local" 7];
    "ManAddrIfSubtype" 18951 false ["None" 0, "Unknown" 1, "PortRef" 2, "SystemPortNumber" 3];
    "LldpSystemCapabilitiesMap" 18956 true ["Other" 0, "Repeater" 1, "Bridge" 2, "WlanAccessPoint" 3,
        "Router" 4, "Telephone" 5, "DocsisCableDevice" 6, "StationOnly" 7, "CvlanComponent" 8,
        "SvlanComponent" 9, "TwoPortMacRelay" 10];
    "DiagnosticsLevel" 19723 false ["Basic" 0, "Advanced" 1, "Info" 2, "Log" 3, "Debug" 4];
    "PubSubDiagnosticsCounterClassification" 19730 false ["Information" 0, "Error" 1];
    "LogRecordMask" 19749 true ["EventType" 0, "SourceNode" 1, "SourceName" 2, "TraceContext" 3,
        "AdditionalData" 4];
    "DataSetOrderingType" 20408 false ["Undefined" 0, "AscendingWriterId" 1, "AscendingWriterIdSingle" 2];
    "TrustListValidationOptions" 23564 true ["SuppressCertificateExpired" 0, "SuppressHostNameInvalid" 1,
        "SuppressRevocationStatusUnknown" 2, "SuppressIssuerCertificateExpired" 3,
        "SuppressIssuerRevocationStatusUnknown" 4, "CheckRevocationStatusOnline" 5,
        "CheckRevocationStatusOffline" 6];
    "Duplex" 24210 false ["Full" 0, "Half" 1, "Unknown" 2];
    "InterfaceAdminStatus" 24212 false ["Up" 0, "Down" 1, "Testing" 2];
    "InterfaceOperStatus" 24214 false ["Up" 0, "Down" 1, "Testing" 2, "Unknown" 3, "Dormant" 4,
        "NotPresent" 5, "LowerLayerDown" 6];
    "NegotiationStatus" 24216 false ["InProgress" 0, "Complete" 1, "Failed" 2, "Unknown" 3,
        "NoNegotiation" 4];
    "TsnFailureCode" 24218 false ["NoFailure" 0, "InsufficientBandwidth" 1, "InsufficientResources" 2,
        "InsufficientTrafficClassBandwidth" 3, "StreamIdInUse" 4, "StreamDestinationAddressInUse" 5,
        "StreamPreemptedByHigherRank" 6, "LatencyHasChanged" 7, "EgressPortNotAvbCapable" 8,
        "UseDifferentDestinationAddress" 9, "OutOfMsrpResources" 10, "OutOfMmrpResources" 11,
        "CannotStoreDestinationAddress" 12, "PriorityIsNotAnSrcClass" 13, "MaxFrameSizeTooLarge" 14,
        "MaxFanInPortsLimitReached" 15, "FirstValueChangedForStreamId" 16, "VlanBlockedOnEgress" 17,
        "VlanTaggingDisabledOnEgress" 18, "SrClassPriorityMismatch" 19, "FeatureNotPropagated" 20,
        "MaxLatencyExceeded" 21, "BridgeDoesNotProvideNetworkId" 22, "StreamTransformNotSupported" 23,
        "StreamIdTypeNotSupported" 24, "FeatureNotSupported" 25];
    "TsnStreamState" 24220 false ["Disabled" 0, "Configuring" 1, "Ready" 2, "Operational" 3, "Error" 4];
    "TsnTalkerStatus" 24222 false ["None" 0, "Ready" 1, "Failed" 2];
    "TsnListenerStatus" 24224 false ["None" 0, "Ready" 1, "PartialFailed" 2, "Failed" 3];
    "PasswordOptionsMask" 24277 true ["SupportInitialPasswordChange" 0, "SupportDisableUser" 1,
        "SupportDisableDeleteForUser" 2, "SupportNoChangeForUser" 3, "SupportDescriptionForUser" 4,
        "RequiresUpperCaseCharacters" 5, "RequiresLowerCaseCharacters" 6, "RequiresDigitCharacters" 7,
        "RequiresSpecialCharacters" 8];
    "UserConfigurationMask" 24279 true ["NoDelete" 0, "Disabled" 1, "NoChangeByUser" 2,
        "MustChangePassword" 3];
    "PubSubConfigurationRefMask" 25517 true ["ElementAdd" 0, "ElementMatch" 1, "ElementModify" 2,
        "ElementRemove" 3, "ReferenceWriter" 4, "ReferenceReader" 5, "ReferenceWriterGroup" 6,
        "ReferenceReaderGroup" 7, "ReferenceConnection" 8, "ReferencePubDataset" 9,
        "ReferenceSubDataset" 10, "ReferenceSecurityGroup" 11, "ReferencePushTarget" 12];
    "AlarmMask" 32251 true ["Active" 0, "Unacknowledged" 1, "Unconfirmed" 2];
    "RedundantServerMode" 32417 false ["PrimaryWithBackup" 0, "PrimaryOnly" 1, "BackupReady" 2,
        "BackupNotReady" 3];
    "ConversionLimitEnum" 32436 false ["NoConversion" 0, "Limited" 1, "Unlimited" 2];
}

/// The built-in type of the values of all other data types.
pub(crate) static SIMPLE_TYPES: &[(u32, BuiltInType)] = &[
    (1, BuiltInType::Boolean),
    (2, BuiltInType::SByte),
    (3, BuiltInType::Byte),
    (4, BuiltInType::Int16),
    (5, BuiltInType::UInt16),
    (6, BuiltInType::Int32),
    (7, BuiltInType::UInt32),
    (8, BuiltInType::Int64),
    (9, BuiltInType::UInt64),
    (10, BuiltInType::Float),
    (11, BuiltInType::Double),
    (12, BuiltInType::String),
    (13, BuiltInType::DateTime),
    (14, BuiltInType::Guid),
    (15, BuiltInType::ByteString),
    (16, BuiltInType::XmlElement),
    (17, BuiltInType::NodeId),
    (18, BuiltInType::ExpandedNodeId),
    (19, BuiltInType::StatusCode),
    (20, BuiltInType::QualifiedName),
    (21, BuiltInType::LocalizedText),
    (22, BuiltInType::ExtensionObject),
    (23, BuiltInType::DataValue),
    (24, BuiltInType::Variant),
    (25, BuiltInType::DiagnosticInfo),
    (26, BuiltInType::Variant),
    (27, BuiltInType::Variant),
    (28, BuiltInType::Variant),
    (30, BuiltInType::ByteString),
    (50, BuiltInType::Variant),
    (94, BuiltInType::UInt32),
    (95, BuiltInType::UInt16),
    (97, BuiltInType::ExtensionObject),
    (288, BuiltInType::UInt32),
    (289, BuiltInType::UInt32),
    (290, BuiltInType::Double),
    (291, BuiltInType::String),
    (294, BuiltInType::DateTime),
    (295, BuiltInType::String),
    (311, BuiltInType::ByteString),
    (316, BuiltInType::ExtensionObject),
    (347, BuiltInType::UInt32),
    (388, BuiltInType::NodeId),
    (521, BuiltInType::ByteString),
    (589, BuiltInType::ExtensionObject),
    (2000, BuiltInType::ByteString),
    (2001, BuiltInType::ByteString),
    (2002, BuiltInType::ByteString),
    (2003, BuiltInType::ByteString),
    (11737, BuiltInType::UInt64),
    (12755, BuiltInType::ExtensionObject),
    (12756, BuiltInType::ExtensionObject),
    (12877, BuiltInType::String),
    (12878, BuiltInType::String),
    (12879, BuiltInType::String),
    (12880, BuiltInType::String),
    (12881, BuiltInType::String),
    (14525, BuiltInType::ExtensionObject),
    (15031, BuiltInType::Byte),
    (15033, BuiltInType::Byte),
    (15406, BuiltInType::UInt32),
    (15434, BuiltInType::ExtensionObject),
    (15435, BuiltInType::ExtensionObject),
    (15502, BuiltInType::ExtensionObject),
    (15534, BuiltInType::ExtensionObject),
    (15580, BuiltInType::ExtensionObject),
    (15583, BuiltInType::UInt32),
    (15598, BuiltInType::ExtensionObject),
    (15605, BuiltInType::ExtensionObject),
    (15609, BuiltInType::ExtensionObject),
    (15611, BuiltInType::ExtensionObject),
    (15616, BuiltInType::ExtensionObject),
    (15618, BuiltInType::ExtensionObject),
    (15621, BuiltInType::ExtensionObject),
    (15622, BuiltInType::ExtensionObject),
    (15628, BuiltInType::ExtensionObject),
    (15629, BuiltInType::ExtensionObject),
    (15630, BuiltInType::ExtensionObject),
    (15642, BuiltInType::UInt32),
    (15646, BuiltInType::UInt32),
    (15654, BuiltInType::UInt32),
    (15658, BuiltInType::UInt32),
    (15904, BuiltInType::UInt16),
    (16307, BuiltInType::ByteString),
    (17588, BuiltInType::UInt32),
    (18807, BuiltInType::ExtensionObject),
    (18809, BuiltInType::ExtensionObject),
    (18811, BuiltInType::ExtensionObject),
    (18813, BuiltInType::ExtensionObject),
    (18956, BuiltInType::UInt32),
    (19749, BuiltInType::UInt32),
    (20998, BuiltInType::UInt32),
    (23564, BuiltInType::UInt32),
    (23603, BuiltInType::ExtensionObject),
    (23604, BuiltInType::ExtensionObject),
    (23608, BuiltInType::ExtensionObject),
    (23751, BuiltInType::String),
    (24263, BuiltInType::String),
    (24277, BuiltInType::UInt32),
    (24279, BuiltInType::UInt32),
    (25517, BuiltInType::UInt32),
    (25726, BuiltInType::String),
    (31917, BuiltInType::UInt32),
    (31918, BuiltInType::String),
    (32251, BuiltInType::UInt16),
];
